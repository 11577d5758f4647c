"""Shared-buffer switches: priority queues at one or more ports that share one buffer, and rules of admission to the buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, quote
from netbuf_gym.scenarios.fields import Rule, boolean, check_fields, choice, integer, links, rule
from netbuf_gym.scenarios.limits import MAX_ALPHA, MAX_COUNT, MAX_QUEUES
from netbuf_gym.utils import checks


def _check_factors(label: str, value: object) -> tuple[float, ...]:
    values = checks.sequence(label, value, "numbers")
    return tuple(checks.number(f"{label}[{q}]", factor, 0, MAX_ALPHA) for q, factor in enumerate(values))


def _each_integer(items: str, low: int, high: int, core: str) -> dict[str, Rule]:
    """Return the metadata of a field with an integer in [low, high] for each queue; `items`: word for them in messages."""

    def check(label: str, value: object) -> tuple[int, ...]:
        values = checks.sequence(label, value, items)
        return tuple(checks.integer(f"{label}[{q}]", number, low, high) for q, number in enumerate(values))

    return rule(check, core)


@dataclass(frozen=True, kw_only=True)
class StaticThresholds:
    """Fixed limits: a packet of queue q is admitted while the queue is below `limits[q]`.

    Args:
        limits: For each queue of a port, 0 to 2**40, in the switch's unit (packets or bytes).
    """

    limits: Sequence[int] = field(metadata=_each_integer("limits", 0, MAX_COUNT, core="thresholds"))
    kind: ClassVar[str] = "static"

    def __post_init__(self) -> None:
        check_fields(self, "static.")

    @property
    def queues(self) -> int:
        """Number of queues."""
        return len(self.limits)


@dataclass(frozen=True, kw_only=True)
class DynamicThresholds:
    """Dynamic Thresholds (Choudhury and Hahne 1998): the limit of queue q is alpha_q times the free buffer.

    Args:
        alphas: For each queue, 0 to 1e6.
    """

    alphas: Sequence[float] = field(metadata=rule(_check_factors, core="alphas"))
    kind: ClassVar[str] = "dynamic"

    def __post_init__(self) -> None:
        check_fields(self, "dynamic.")

    @property
    def queues(self) -> int:
        """Number of queues."""
        return len(self.alphas)


@dataclass(frozen=True, kw_only=True)
class ABM:
    """Active buffer management (Addanki et al. 2022): alpha_q / n_q times the free buffer times the queue's share.

    n_q is the number of ports whose queue q is backlogged; the queue's share of its port (mu/b in the paper) is taken
    as 1 over the number of backlogged queues there, whatever the scheduler; the arriving packet's queue counts in both.

    Args:
        alphas: For each queue, 0 to 1e6.
    """

    alphas: Sequence[float] = field(metadata=rule(_check_factors, core="alphas"))
    kind: ClassVar[str] = "abm"

    def __post_init__(self) -> None:
        check_fields(self, "abm.")

    @property
    def queues(self) -> int:
        """Number of queues."""
        return len(self.alphas)


@dataclass(frozen=True, kw_only=True)
class AgentThresholds:
    """Limits that an agent sets: alpha_q * beta_q times the free buffer, with alpha_q from the agent and fixed beta_q.

    Args:
        betas: For each queue, 0 to 1e6.
        alphas: For each queue until the agent's first action, 0 to 1e6; None: all 1.
    """

    betas: Sequence[float] = field(default=(1.0, 1.0), metadata=rule(_check_factors, core="betas"))
    alphas: Sequence[float] | None = field(default=None, metadata=rule(_check_factors, core="alphas"))
    kind: ClassVar[str] = "agent"

    def __post_init__(self) -> None:
        check_fields(self, "agent.")
        if self.alphas is None:
            object.__setattr__(self, "alphas", (1.0,) * len(self.betas))
        elif len(self.alphas) != len(self.betas):
            raise ScenarioError(f"agent.alphas has {len(self.alphas)} values for {len(self.betas)} betas; valid: as many")

    @property
    def queues(self) -> int:
        """Number of queues."""
        return len(self.betas)


def compute_limit(alpha: Any, beta: Any, free: Any, *caps: Any) -> Any:
    """Compute a queue's limit by Dynamic Thresholds: alpha * beta * free buffer, at most the least of `caps`.

    Arguments are numbers or arrays, all lengths in one unit.
    """
    limit = alpha * beta * free
    for cap in caps:
        limit = np.minimum(limit, cap)
    return limit


def compute_alpha(limit: Any, beta: Any, free: Any, least: Any) -> Any:
    """Compute the alpha for which `compute_limit` is `limit`, without caps; beta * free buffer counts as at least `least`."""
    return limit / np.maximum(beta * free, least)


Admission = StaticThresholds | DynamicThresholds | ABM | AgentThresholds
ADMISSIONS: dict[str, type] = {cls.kind: cls for cls in (StaticThresholds, DynamicThresholds, ABM, AgentThresholds)}


DROPS = ("tail", "head")
"""Packets dropped when a queue may not grow: the arriving one, or the oldest of its queue."""

CONGESTED = ("drop", "mark")
"""Treatment of packets of ECN flows when only the admission rule keeps their queue from growing."""

DRR_QUANTUM_BYTES = 1500


@dataclass(frozen=True, kw_only=True)
class RoundRobin:
    """Round robin by packet: one packet from each backlogged queue in turn."""

    kind: ClassVar[str] = "round_robin"

    def compute_shares(self, queues: int) -> tuple[float, ...]:
        """Return each queue's share of a port where all are backlogged, with equal packets."""
        return (1 / queues,) * queues

    @classmethod
    def make_default(cls, queues: int) -> RoundRobin:
        """Return the default scheduler for a number of queues."""
        return cls()


@dataclass(frozen=True, kw_only=True)
class DRR:
    """Deficit round robin (Shreedhar and Varghese 1995).

    Args:
        quanta_bytes: Quantum of each queue per turn, 1 to 1e9 bytes.
    """

    quanta_bytes: Sequence[int] = field(metadata=_each_integer("quanta", 1, 10**9, core="quanta"))
    kind: ClassVar[str] = "drr"

    def __post_init__(self) -> None:
        check_fields(self, "drr.")

    def compute_shares(self, queues: int) -> tuple[float, ...]:
        """Return each queue's share of a port where all are backlogged."""
        return tuple(quantum / sum(self.quanta_bytes) for quantum in self.quanta_bytes)

    @classmethod
    def make_default(cls, queues: int) -> DRR:
        """Return the default scheduler for a number of queues: quanta of 1500 bytes."""
        return cls(quanta_bytes=(DRR_QUANTUM_BYTES,) * queues)


@dataclass(frozen=True, kw_only=True)
class StrictPriority:
    """Strict priority: the backlogged queue of the lowest number first."""

    kind: ClassVar[str] = "strict_priority"

    def compute_shares(self, queues: int) -> tuple[float, ...]:
        """Return each queue's share of a port where all are backlogged."""
        return (1.0, *(0.0,) * (queues - 1))

    @classmethod
    def make_default(cls, queues: int) -> StrictPriority:
        """Return the default scheduler for a number of queues."""
        return cls()


Scheduler = RoundRobin | DRR | StrictPriority
SCHEDULERS: dict[str, type[Scheduler]] = {cls.kind: cls for cls in (RoundRobin, DRR, StrictPriority)}


SERVICES = ("drr", "fifo")
"""Order in which a queue with a flow table is sent: slot by slot, or first in, first out."""

VICTIMS = ("any", "large")
"""Flows whose packets are dropped or marked when a queue may not grow: any, or those of slots with more than an equal share."""


@dataclass(frozen=True, kw_only=True)
class FlowTable:
    """Table of flows for each queue of each port: a bounded number of slots that flows are hashed to (a flow's ACKs apart).

    Each slot knows the bytes that its flows have waiting: what a programmable switch keeps in registers. With `service="drr"`
    it has a list of packets too, as in FQ-CoDel (RFC 8290) and AFQ (Sharma et al., NSDI 2018). The largest slot is searched
    only when a packet is dropped for it.

    Args:
        slots: Slots for each queue of each port, 1 to 65536. Two flows in one slot count as one.
        service: "drr": slots take turns, new ones first (RFC 8290, 4.1 and 4.2); "fifo": first in, first out.
        quantum_bytes: Bytes that a slot may send per turn, 64 to 1,000,000.
    """

    slots: int = field(default=256, metadata=integer(1, 65_536, core="flow_slots"))
    service: str = field(default="drr", metadata=choice(SERVICES, core="flow_service"))
    quantum_bytes: int = field(default=1514, metadata=integer(64, 1_000_000, core="flow_quantum"))

    def __post_init__(self) -> None:
        check_fields(self, "flow_table.")


@dataclass(frozen=True, kw_only=True)
class Switch:
    """Switch whose ports keep their packets in one shared buffer, in `queues` priority queues each.

    A packet of queue q is admitted if its queue is below the limit that `admission` sets and the buffer has room for it. The
    packet in transmission at a port is not in the buffer.

    Args:
        name: Name, unique among the switches of a scenario.
        ports: Output links, as names or indices into `Scenario.links`; each belongs to one switch, and has no queue limit or
            discipline of its own.
        queues: Number of queues at each port, 1 to 64; a flow's or probe's priority is its queue.
        buffer_packets, buffer_bytes: Shared buffer, 1 to 2**40; exactly one of the two, which sets the switch's unit.
        admission: `StaticThresholds`, `DynamicThresholds`, `ABM` or `AgentThresholds`, for as many queues; None:
            `DynamicThresholds` with all alphas 1.
        scheduler: `RoundRobin()`, `DRR(...)` or `StrictPriority()`, between the queues of a port.
        queue_cap: Largest length of a queue, in the switch's unit, 1 to 2**40; None: no such limit.
        mark: Queue length above which arriving packets of ECN flows are marked, in the switch's unit, 1 to 2**40 (RFC 8257,
            3.1); None: never.
        drop: Packets dropped when a queue may not grow: "tail": the arriving one; "head": the oldest ones of its queue, as many
            as make room for the arriving one (Lakshman, Neidhardt and Ott 1996; Linux's pfifo_head_drop). A queue whose limit
            has fallen is not cut at once, but no longer grows. If a queue has too little to drop, and is closed or the buffer
            is full, the arriving packet is dropped. A packet in transmission is never dropped.
        congested: Treatment of packets of ECN flows when only the admission rule keeps their queue from growing: "drop", as
            for other packets, or "mark": they are stored and marked, up to `queue_cap` and the buffer's size.
        protect_syn: Whether packets that open connections (SYN, SYN-ACK) are exempt from limits and `queue_cap`, though not
            from a full buffer, and from head drops: the arriving packet is dropped in their place.
        flow_table: Table of the flows of each queue; None: none. DRR between queues then lets a queue send while its deficit is
            above 0, a packet more than `DRR` has it, which its next turn makes up for.
        victims: Flows that `drop` and `congested` hit: "any"; "large" (with a flow table): slots whose bytes, with the arriving
            packet's, are at least an equal share of the queue's. What arrives for smaller ones is stored while the buffer and
            `queue_cap` have room; with drops at the head and `service="drr"` the oldest of the largest slot goes for it.
            "any" with drops at the head drops, by service, the oldest of the queue or of the arriving packet's slot.

    Raises:
        ScenarioError: A field out of range, or an admission or scheduler for another number of queues.
    """

    name: str = field(default="switch", metadata=rule(None, core="name"))
    ports: Sequence[int | str] = field(default=("bottleneck",), metadata=links(core="ports"))
    queues: int = field(default=2, metadata=integer(1, MAX_QUEUES, core="queues"))
    buffer_packets: int | None = field(default=None, metadata=integer(1, MAX_COUNT))
    buffer_bytes: int | None = field(default=None, metadata=integer(1, MAX_COUNT))
    admission: Admission | None = None
    scheduler: Scheduler = RoundRobin()
    queue_cap: int | None = field(default=None, metadata=integer(1, MAX_COUNT, core="queue_cap"))
    drop: str = field(default="tail", metadata=choice(DROPS, core="drop"))
    protect_syn: bool = field(default=False, metadata=boolean(core="protect_syn"))
    mark: int | None = field(default=None, metadata=integer(1, MAX_COUNT, core="mark"))
    congested: str = field(default="drop", metadata=choice(CONGESTED, core="congested"))
    flow_table: FlowTable | None = None
    victims: str = field(default="any", metadata=choice(VICTIMS, core="victims"))

    def __post_init__(self) -> None:
        put = object.__setattr__
        checks.name("switch.name", self.name)
        at = f"switch {self.name!r}: "
        check_fields(self, at)
        if (self.buffer_packets is None) == (self.buffer_bytes is None):
            given = "neither" if self.buffer_packets is None else "both"
            raise ScenarioError(f"{at}{given} of buffer_packets and buffer_bytes is given; valid: one of them")
        if self.admission is None:
            put(self, "admission", DynamicThresholds(alphas=(1.0,) * self.queues))
        if not isinstance(self.admission, Admission):
            valid = "StaticThresholds, DynamicThresholds, ABM or AgentThresholds"
            raise ScenarioTypeError(f"{at}admission = {quote(self.admission)}; valid: {valid}")
        if self.admission.queues != self.queues:
            raise ScenarioError(f"{at}admission is for {self.admission.queues} queues; valid: {self.queues}")
        if not isinstance(self.scheduler, Scheduler):
            valid = "RoundRobin(), DRR(...) or StrictPriority()"
            raise ScenarioTypeError(f"{at}scheduler = {quote(self.scheduler)}; valid: {valid}")
        if isinstance(self.scheduler, DRR) and len(self.scheduler.quanta_bytes) != self.queues:
            quanta = len(self.scheduler.quanta_bytes)
            raise ScenarioError(f"{at}scheduler has {quanta} quanta for {self.queues} queues; valid: as many")
        if not isinstance(self.flow_table, FlowTable | None):
            raise ScenarioTypeError(f"{at}flow_table = {quote(self.flow_table)}; valid: FlowTable(...) or None")
        if self.victims != "any" and self.flow_table is None:
            raise ScenarioError(f'{at}victims = "{self.victims}" without a flow_table; valid: "any", or with FlowTable(...)')

    @property
    def in_bytes(self) -> bool:
        """Whether the switch's unit is bytes (otherwise packets)."""
        return self.buffer_bytes is not None

    @property
    def capacity(self) -> int:
        """Size of the shared buffer, in the switch's unit."""
        return self.buffer_packets or self.buffer_bytes or 0  # exactly one is set, and not 0

    def with_capacity(self, capacity: int) -> Switch:
        """Return the switch with another buffer size, in the switch's unit."""
        return replace(self, buffer_bytes=capacity) if self.in_bytes else replace(self, buffer_packets=capacity)
