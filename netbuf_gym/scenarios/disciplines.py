"""Queue disciplines: what a link keeps its waiting packets in, and which of them it drops.

The limit is the link's (`queue_packets`, `queue_bytes`). Parameters carry the RFCs' names, the defaults are their
recommendations; the few beyond them repeat what ns-3.44 does otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

from netbuf_gym import checks
from netbuf_gym.errors import ScenarioError


@dataclass(frozen=True, kw_only=True)
class Discipline:
    """What the disciplines have in common: fields that are numbers or truth values, with ranges.

    Attributes:
        kind: Its name in JSON and in the core.
        RANGES: Lowest and highest value of each number.
    """

    kind: ClassVar[str] = ""
    RANGES: ClassVar[dict[str, tuple[float, float]]] = {}

    def __post_init__(self):
        for field in fields(self):
            value, label = getattr(self, field.name), f"{self.kind}.{field.name}"
            if value is None and field.default is None:
                continue
            if isinstance(field.default, bool):
                value = checks.boolean(label, value)
            elif isinstance(field.default, int):
                value = checks.integer(label, value, *self.RANGES[field.name])
            else:
                value = checks.number(label, value, *self.RANGES[field.name])
            object.__setattr__(self, field.name, value)

    def parameters(self) -> dict[str, float]:
        """The core's parameters; those that are None are left to it."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: float(value) for name, value in values.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class DropTail(Discipline):
    """First in, first out; a packet that finds the queue full is dropped.

    On a link that follows a `DeliveryTrace` the packet that has begun to use opportunities is held beside the queue, as
    in Mahimahi's link shell, and does not count towards the limit.
    """

    kind: ClassVar[str] = "droptail"


@dataclass(frozen=True, kw_only=True)
class RED(Discipline):
    """Random early detection (Floyd and Jacobson 1993), gentle (2000), optionally adaptive (2001).

    Args:
        min_packets, max_packets: Thresholds of the mean queue, 0.001 to 1e9 packets, both or none; None: a fifth of the
            link's limit and three times that, or what `target_ms` asks for when adaptive or without a limit.
        weight: Of a sample in the mean queue, 1e-9 to 1; None: 0.002, from the link's rate when adaptive.
        max_probability: Drop probability at `max_packets`, 1e-9 to 1.
        gentle: Above `max_packets` the probability rises to 1 at twice that, instead of being 1.
        wait: Keep drops at least 1/p arrivals apart, as ns-3 does.
        adaptive: Adapt `max_probability` to a mean queue between the thresholds, every `adapt_ms` (1 to 1e5 ms).
        target_ms: The delay that adaptive thresholds aim at, 0.01 to 1e4 ms.
        mean_packet_bytes: For turning rates into packets, 1 to 65536.
    """

    min_packets: float | None = None
    max_packets: float | None = None
    weight: float | None = None
    max_probability: float = 0.02
    gentle: bool = True
    wait: bool = False
    adaptive: bool = False
    target_ms: float = 5.0
    adapt_ms: float = 500.0
    mean_packet_bytes: int = 1500
    kind: ClassVar[str] = "red"
    RANGES: ClassVar[dict[str, tuple[float, float]]] = {
        "min_packets": (1e-3, 1e9),
        "max_packets": (1e-3, 1e9),
        "weight": (1e-9, 1),
        "max_probability": (1e-9, 1),
        "target_ms": (0.01, 10_000),
        "adapt_ms": (1, 100_000),
        "mean_packet_bytes": (1, 65_536),
    }

    def __post_init__(self):
        super().__post_init__()
        if (self.min_packets is None) != (self.max_packets is None):
            raise ScenarioError("one of red.min_packets and red.max_packets is given; valid: both or none")
        if self.min_packets is not None and self.max_packets <= self.min_packets:
            raise ScenarioError(f"red.max_packets = {self.max_packets:g} is not above min_packets = {self.min_packets:g}")


@dataclass(frozen=True, kw_only=True)
class CoDel(Discipline):
    """Controlled delay (RFC 8289).

    Args:
        target_ms: Acceptable standing delay, 0.01 to 1e4 ms.
        interval_ms: A slow round trip's worth, 0.1 to 1e5 ms.
        mtu_bytes: Nothing is dropped while no more than this would be left, 0 to 65536 bytes; 1499 does as ns-3 does.
    """

    target_ms: float = 5.0
    interval_ms: float = 100.0
    mtu_bytes: int = 1514
    kind: ClassVar[str] = "codel"
    RANGES: ClassVar[dict[str, tuple[float, float]]] = {
        "target_ms": (0.01, 10_000),
        "interval_ms": (0.1, 100_000),
        "mtu_bytes": (0, 65_536),
    }


@dataclass(frozen=True, kw_only=True)
class FqCoDel(Discipline):
    """Fair queueing with CoDel in each queue (RFC 8290).

    Args:
        target_ms, interval_ms, mtu_bytes: As in `CoDel`.
        flows: Queues that flows are hashed to, 1 to 65536.
        quantum_bytes: What a queue may send in a turn, 64 to 1e6 bytes.
        drop_batch: Packets dropped at once from the longest queue when all are full, 1 to 1e6.
        perturbation: Of the hash, 1 to 2**32 - 1; None: drawn from the world's seed.
    """

    target_ms: float = 5.0
    interval_ms: float = 100.0
    mtu_bytes: int = 1514
    flows: int = 1024
    quantum_bytes: int = 1514
    drop_batch: int = 64
    perturbation: float | None = None
    kind: ClassVar[str] = "fq_codel"
    RANGES: ClassVar[dict[str, tuple[float, float]]] = {
        **CoDel.RANGES,
        "flows": (1, 65_536),
        "quantum_bytes": (64, 1_000_000),
        "drop_batch": (1, 1_000_000),
        "perturbation": (1, 2**32 - 1),
    }


@dataclass(frozen=True, kw_only=True)
class PIE(Discipline):
    """Proportional integral controller enhanced (RFC 8033).

    Args:
        target_ms: Reference delay, 0.01 to 1e4 ms.
        update_ms: Time between two updates of the drop probability, 0.1 to 1e4 ms.
        alpha, beta: Weights of the delay's deviation and of its change, 0 to 1000 a second.
        max_burst_ms: Bursts up to this long are let through, 0 to 1e4 ms.
        burst_quiet_s: The burst allowance is granted again after so long without congestion and runs from the first
            arrival on, as in ns-3 (1.5), up to 1000 s; 0: as in the RFC.
        mean_packet_bytes: 1 to 65536.
        cap_increase: The probability grows by at most 0.02 an update where it is high.
        derandomise: Keep drops apart (section 5.4).
        byte_mode: A packet's drop probability is proportional to its size.
    """

    target_ms: float = 15.0
    update_ms: float = 15.0
    alpha: float = 0.125
    beta: float = 1.25
    max_burst_ms: float = 150.0
    burst_quiet_s: float = 0.0
    mean_packet_bytes: int = 1514
    cap_increase: bool = True
    derandomise: bool = False
    byte_mode: bool = False
    kind: ClassVar[str] = "pie"
    RANGES: ClassVar[dict[str, tuple[float, float]]] = {
        "target_ms": (0.01, 10_000),
        "update_ms": (0.1, 10_000),
        "alpha": (0, 1_000),
        "beta": (0, 1_000),
        "max_burst_ms": (0, 10_000),
        "burst_quiet_s": (0, 1_000),
        "mean_packet_bytes": (1, 65_536),
    }


DISCIPLINES: dict[str, type[Discipline]] = {cls.kind: cls for cls in (DropTail, RED, CoDel, FqCoDel, PIE)}
"""Every discipline by its name in JSON and in the core."""
