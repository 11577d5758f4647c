"""Shared-buffer switches: priority queues at one or more ports that share one buffer, and who is admitted to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, shown
from netbuf_gym.scenarios.limits import MAX_ALPHA, MAX_COUNT, MAX_QUEUES
from netbuf_gym.utils import checks


@dataclass(frozen=True, kw_only=True)
class StaticThresholds:
    """Fixed limits: a packet of queue q is admitted while the queue holds less than `limits[q]`.

    Args:
        limits: For each queue of a port, 0 to 2**40, in the switch's unit (packets or bytes).
    """

    limits: Sequence[int]
    kind: ClassVar[str] = "static"

    def __post_init__(self) -> None:
        limits = checks.sequence("static.limits", self.limits, "limits")
        limits = tuple(checks.integer(f"static.limits[{q}]", x, 0, MAX_COUNT) for q, x in enumerate(limits))
        object.__setattr__(self, "limits", limits)

    @property
    def queues(self) -> int:
        """For how many queues it is."""
        return len(self.limits)


@dataclass(frozen=True, kw_only=True)
class DynamicThresholds:
    """Dynamic Thresholds (Choudhury and Hahne 1998): the limit of queue q is alpha_q times the free buffer.

    Args:
        alphas: For each queue, 0 to 1e6.
    """

    alphas: Sequence[float]
    kind: ClassVar[str] = "dynamic"

    def __post_init__(self) -> None:
        object.__setattr__(self, "alphas", _factors("dynamic.alphas", self.alphas))

    @property
    def queues(self) -> int:
        """For how many queues it is."""
        return len(self.alphas)


@dataclass(frozen=True, kw_only=True)
class ABM:
    """Active buffer management (Addanki et al. 2022): alpha_q / n_q times the free buffer times the queue's share.

    n_q is the number of ports whose queue q is backlogged; the queue's share of its port (mu/b in the paper) is taken
    as 1 over the number of backlogged queues there, whatever the scheduler; the arriving packet's queue counts in both.

    Args:
        alphas: For each queue, 0 to 1e6.
    """

    alphas: Sequence[float]
    kind: ClassVar[str] = "abm"

    def __post_init__(self) -> None:
        object.__setattr__(self, "alphas", _factors("abm.alphas", self.alphas))

    @property
    def queues(self) -> int:
        """For how many queues it is."""
        return len(self.alphas)


@dataclass(frozen=True, kw_only=True)
class AgentThresholds:
    """Limits that an environment sets: alpha_q * beta_q times the free buffer, alpha_q by the agent, beta_q fixed.

    Args:
        betas: For each queue, 0 to 1e6.
        alphas: Until the agent's first action, for each queue, 0 to 1e6; None: all 1.
    """

    betas: Sequence[float] = (1.0, 1.0)
    alphas: Sequence[float] | None = None
    kind: ClassVar[str] = "agent"

    def __post_init__(self) -> None:
        betas = _factors("agent.betas", self.betas)
        alphas = (1.0,) * len(betas) if self.alphas is None else _factors("agent.alphas", self.alphas)
        if len(alphas) != len(betas):
            raise ScenarioError(f"agent.alphas has {len(alphas)} values for {len(betas)} betas; valid: as many")
        object.__setattr__(self, "betas", betas)
        object.__setattr__(self, "alphas", alphas)

    @property
    def queues(self) -> int:
        """For how many queues it is."""
        return len(self.betas)


def limit_of(alpha: Any, beta: Any, free: Any, *caps: Any) -> Any:
    """The rule of Dynamic Thresholds: a queue may grow to alpha * beta * free buffer, and not beyond any of `caps`.

    Numbers or arrays, all lengths in one unit.
    """
    limit = alpha * beta * free
    for cap in caps:
        limit = np.minimum(limit, cap)
    return limit


def alpha_of(limit: Any, beta: Any, free: Any, least: Any) -> Any:
    """The alpha under which `limit_of` is `limit`, without caps; beta * free buffer counts as at least `least`."""
    return limit / np.maximum(beta * free, least)


Admission = StaticThresholds | DynamicThresholds | ABM | AgentThresholds
ADMISSIONS: dict[str, type] = {cls.kind: cls for cls in (StaticThresholds, DynamicThresholds, ABM, AgentThresholds)}


DROPS = ("tail", "head")
"""Which packet goes when a queue may not grow: the one that arrives, or the oldest of its queue."""

CONGESTED = ("drop", "mark")
"""What becomes of packets of flows that speak ECN where the admission alone keeps their queue from growing."""

DRR_QUANTUM_BYTES = 1500


@dataclass(frozen=True, kw_only=True)
class RoundRobin:
    """A packet from each backlogged queue in turn."""

    kind: ClassVar[str] = "round_robin"

    @classmethod
    def usual(cls, queues: int) -> RoundRobin:
        """It, for so many queues."""
        return cls()


@dataclass(frozen=True, kw_only=True)
class DRR:
    """Deficit round robin (Shreedhar and Varghese 1995).

    Args:
        quanta_bytes: What each queue may send in a turn, 1 to 1e9 bytes.
    """

    quanta_bytes: Sequence[int]
    kind: ClassVar[str] = "drr"

    def __post_init__(self) -> None:
        quanta = checks.sequence("drr.quanta_bytes", self.quanta_bytes, "quanta")
        quanta = tuple(checks.integer(f"drr.quanta_bytes[{q}]", x, 1, 10**9) for q, x in enumerate(quanta))
        object.__setattr__(self, "quanta_bytes", quanta)

    @classmethod
    def usual(cls, queues: int) -> DRR:
        """Quanta of 1500 bytes for so many queues."""
        return cls(quanta_bytes=(DRR_QUANTUM_BYTES,) * queues)


@dataclass(frozen=True, kw_only=True)
class StrictPriority:
    """The backlogged queue of the lowest number first."""

    kind: ClassVar[str] = "strict_priority"

    @classmethod
    def usual(cls, queues: int) -> StrictPriority:
        """It, for so many queues."""
        return cls()


Scheduler = RoundRobin | DRR | StrictPriority
SCHEDULERS: dict[str, type] = {cls.kind: cls for cls in (RoundRobin, DRR, StrictPriority)}


@dataclass(frozen=True, kw_only=True)
class Switch:
    """A switch whose ports keep their packets in one shared buffer, in `queues` priority queues each.

    A packet of queue q is admitted when its queue is below the limit that `admission` sets and the buffer has room for
    it. The packet in transmission at a port is not in the buffer.

    Args:
        name: Unique among the switches of a scenario.
        ports: The links that packets leave by, as names or indices into `Scenario.links`; each belongs to one switch,
            and has no queue limit or discipline of its own.
        queues: At each port, 1 to 64; a flow's or probe's priority is its queue.
        buffer_packets, buffer_bytes: The shared buffer, 1 to 2**40; one of the two, which is the switch's unit.
        admission: `StaticThresholds`, `DynamicThresholds`, `ABM` or `AgentThresholds`, for as many queues; None:
            `DynamicThresholds` with all alphas 1.
        scheduler: `RoundRobin()`, `DRR(...)` or `StrictPriority()`, between the queues of a port.
        queue_cap: No queue grows beyond this, in the switch's unit, 1 to 2**40; None: no such limit.
        mark: Packets of flows that speak ECN are marked where they find more than this in their queue, in the switch's unit,
            1 to 2**40 (RFC 8257, 3.1); None: never.
        drop: Which packet goes when a queue may not grow: "tail", the one that arrives; "head", the oldest ones of its
            queue, as many as give up the room that it takes (Lakshman, Neidhardt and Ott 1996; Linux's pfifo_head_drop).
            A queue whose limit has fallen is not cut at once: it no longer grows. Where a queue has too little to give
            up, and is closed or the buffer is full, what arrives goes. A packet in transmission never does.
        congested: What becomes of packets of flows that speak ECN where the admission alone keeps their queue from growing:
            "drop", as of others, or "mark": they are stored and marked, up to `queue_cap` and the buffer's end.
        protect_syn: Packets that open connections (SYN, SYN-ACK) meet neither limits nor `queue_cap`, only a full buffer,
            and are not dropped from the head: what arrives goes in their place.

    Raises:
        ScenarioError: A field out of range, or an admission or scheduler for another number of queues.
    """

    name: str = "switch"
    ports: Sequence[int | str] = ("bottleneck",)
    queues: int = 2
    buffer_packets: int | None = None
    buffer_bytes: int | None = None
    admission: Admission | None = None
    scheduler: Scheduler = RoundRobin()
    queue_cap: int | None = None
    drop: str = "tail"
    protect_syn: bool = False
    mark: int | None = None
    congested: str = "drop"

    def __post_init__(self) -> None:
        put = object.__setattr__
        if not checks.text("switch.name", self.name):
            raise ScenarioError("switch.name is empty; valid: a name")
        at = f"switch {self.name!r}: "
        put(self, "ports", checks.sequence(f"{at}ports", self.ports, "links"))
        put(self, "queues", checks.integer(f"{at}queues", self.queues, 1, MAX_QUEUES))
        for field in ("buffer_packets", "buffer_bytes", "queue_cap", "mark"):
            if getattr(self, field) is not None:
                put(self, field, checks.integer(at + field, getattr(self, field), 1, MAX_COUNT))
        put(self, "drop", checks.choice(f"{at}drop", self.drop, DROPS))
        put(self, "congested", checks.choice(f"{at}congested", self.congested, CONGESTED))
        put(self, "protect_syn", checks.boolean(f"{at}protect_syn", self.protect_syn))
        if (self.buffer_packets is None) == (self.buffer_bytes is None):
            given = "neither" if self.buffer_packets is None else "both"
            raise ScenarioError(f"{at}{given} of buffer_packets and buffer_bytes is given; valid: one of them")
        if self.admission is None:
            put(self, "admission", DynamicThresholds(alphas=(1.0,) * self.queues))
        if not isinstance(self.admission, Admission):
            valid = "StaticThresholds, DynamicThresholds, ABM or AgentThresholds"
            raise ScenarioTypeError(f"{at}admission = {shown(self.admission)}; valid: {valid}")
        if self.admission.queues != self.queues:
            raise ScenarioError(f"{at}admission is for {self.admission.queues} queues; valid: {self.queues}")
        if not isinstance(self.scheduler, Scheduler):
            valid = "RoundRobin(), DRR(...) or StrictPriority()"
            raise ScenarioTypeError(f"{at}scheduler = {shown(self.scheduler)}; valid: {valid}")
        if isinstance(self.scheduler, DRR) and len(self.scheduler.quanta_bytes) != self.queues:
            quanta = len(self.scheduler.quanta_bytes)
            raise ScenarioError(f"{at}scheduler has {quanta} quanta for {self.queues} queues; valid: as many")

    @property
    def in_bytes(self) -> bool:
        """Whether buffer and limits are counted in bytes (in packets otherwise)."""
        return self.buffer_bytes is not None

    @property
    def capacity(self) -> int:
        """The shared buffer, in the switch's unit."""
        return self.buffer_packets or self.buffer_bytes or 0  # one of them is given, and not 0

    def with_capacity(self, capacity: int) -> Switch:
        """The same switch with another buffer, in its unit."""
        return replace(self, buffer_bytes=capacity) if self.in_bytes else replace(self, buffer_packets=capacity)


def _factors(field: str, values: object) -> tuple[float, ...]:
    values = checks.sequence(field, values, "numbers")
    return tuple(checks.number(f"{field}[{q}]", value, 0, MAX_ALPHA) for q, value in enumerate(values))
