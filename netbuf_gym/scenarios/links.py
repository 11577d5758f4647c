"""Links: queue, transmission, random loss, propagation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, shown
from netbuf_gym.scenarios.disciplines import Discipline, discipline_of
from netbuf_gym.scenarios.impairments import DelaySchedule, Jitter, LossSchedule, delay_of, loss_of
from netbuf_gym.scenarios.limits import MAX_COUNT, MAX_DELAY_MS
from netbuf_gym.traces.capacity import capacity_steps
from netbuf_gym.traces.types import MAX_RATE_MBPS, MIN_RATE_MBPS, DeliveryTrace, RateTrace, Trace
from netbuf_gym.utils import checks

ON_OUTAGE = ("hold", "drop")
OUTAGE_MS = 100.0


@dataclass(frozen=True, kw_only=True)
class GilbertElliott:
    """Bursty loss: a two-state chain that moves with each packet, and a loss probability in each state.

    Args:
        p_good_to_bad, p_bad_to_good: Transition probabilities a packet, 0 to 1.
        loss_good, loss_bad: Probability that a packet is lost, 0 to 1.
    """

    p_good_to_bad: float
    p_bad_to_good: float
    loss_good: float = 0.0
    loss_bad: float = 1.0

    def __post_init__(self) -> None:
        for field in ("p_good_to_bad", "p_bad_to_good", "loss_good", "loss_bad"):
            object.__setattr__(self, field, checks.number(f"gilbert_elliott.{field}", getattr(self, field), 0, 1))

    @property
    def mean_loss(self) -> float:
        """The long-run share of packets lost."""
        total = self.p_good_to_bad + self.p_bad_to_good
        bad = self.p_good_to_bad / total if total else 0.0
        return bad * self.loss_bad + (1 - bad) * self.loss_good


@dataclass(frozen=True, kw_only=True)
class Link:
    """A queue (drop-tail unless it has a discipline), transmission, random loss, then propagation delay.

    Args:
        name: Unique in its scenario.
        rate_mbps: 1e-6 to 1e6 Mbit/s; None: infinitely fast, or given by `trace`.
        delay_ms: Propagation, 0 to 1e5 ms, or a `DelaySchedule` of delays that change.
        queue_packets, queue_bytes: The queue's limit, 1 to 2**40; None: no limit. The packet in service does not count.
        loss: Probability that a packet is lost after its transmission, 0 to below 1, or a `LossSchedule`.
        gilbert_elliott: Bursty loss instead of `loss`.
        loss_on_acks: Random loss hits ACKs too, not data packets only.
        trace: A `RateTrace` or `DeliveryTrace` instead of `rate_mbps`.
        discipline: What manages the queue: a name, a dict of `name` and parameters, or an object: `"codel"`,
            `{"name": "codel", "target_ms": 10}`, `CoDel(target_ms=10)` (`netbuf-gym list queue-disciplines`); None:
            first in, first out, in the simulator's fast way. On an infinitely fast link there is nothing to manage.
        device_packets: Packets that the device holds behind a discipline or a switch, besides the one in service, 0 to
            1000; ns-3's devices hold 1.
        jitter: A `Jitter`: a random delay of each packet on top of `delay_ms`; None: none.
        on_outage: What happens to the queue where the trace serves nothing for `outage_ms` or longer: `"hold"`: it waits
            until the link is back; `"drop"`: what waits or is being sent when the outage begins is dropped, and so is
            whatever arrives before it ends. Such packets count as queue drops.
        outage_ms: How long a gap without service must be to be such an outage, 1 to 1e5 ms (of `"drop"` only).
    """

    name: str
    rate_mbps: float | None = None
    delay_ms: float | DelaySchedule = 0.0
    queue_packets: int | None = None
    queue_bytes: int | None = None
    loss: float | LossSchedule = 0.0
    gilbert_elliott: GilbertElliott | None = None
    loss_on_acks: bool = False
    trace: Trace | None = None
    discipline: Discipline | str | dict | None = None
    device_packets: int = 0
    jitter: Jitter | None = None
    on_outage: str = "hold"
    outage_ms: float = OUTAGE_MS

    def __post_init__(self) -> None:
        put = object.__setattr__
        if not checks.text("link.name", self.name):
            raise ScenarioError("link.name is empty; valid: a name")
        at = f"link {self.name!r}: "
        if self.rate_mbps is not None:
            put(self, "rate_mbps", checks.number(f"{at}rate_mbps", self.rate_mbps, MIN_RATE_MBPS, MAX_RATE_MBPS))
        put(self, "delay_ms", delay_of(f"{at}delay_ms", self.delay_ms))
        for field in ("queue_packets", "queue_bytes"):
            if getattr(self, field) is not None:
                put(self, field, checks.integer(at + field, getattr(self, field), 1, MAX_COUNT))
        put(self, "loss", loss_of(f"{at}loss", self.loss))
        put(self, "loss_on_acks", checks.boolean(f"{at}loss_on_acks", self.loss_on_acks))
        if self.gilbert_elliott is not None:
            if not isinstance(self.gilbert_elliott, GilbertElliott):
                raise ScenarioTypeError(f"{at}gilbert_elliott = {shown(self.gilbert_elliott)} is not a GilbertElliott")
            if self.loss:
                raise ScenarioError(f"{at}loss = {shown(self.loss)} beside gilbert_elliott; valid: one of them")
        if self.trace is not None:
            if not isinstance(self.trace, (RateTrace, DeliveryTrace)):
                raise ScenarioTypeError(f"{at}trace = {shown(self.trace)} is not a RateTrace or DeliveryTrace")
            if self.rate_mbps is not None:
                raise ScenarioError(f"{at}rate_mbps = {self.rate_mbps:g} beside a trace; valid: one of them")
        put(self, "device_packets", checks.integer(f"{at}device_packets", self.device_packets, 0, 1000))
        if self.discipline is not None:
            put(self, "discipline", discipline_of(f"{at}discipline", self.discipline))
        self._check_wire(at)

    def _check_wire(self, at: str) -> None:
        if self.jitter is not None:
            if not isinstance(self.jitter, Jitter):
                raise ScenarioTypeError(f"{at}jitter = {shown(self.jitter)} is not a Jitter")
            if isinstance(self.delay_ms, DelaySchedule) and self.delay_ms.reorder and not self.jitter.reorder:
                raise ScenarioError(f"{at}jitter.reorder = False beside a delay_ms that may reorder; valid: both or neither")
        checks.choice(f"{at}on_outage", self.on_outage, ON_OUTAGE)
        object.__setattr__(self, "outage_ms", checks.number(f"{at}outage_ms", self.outage_ms, 1, MAX_DELAY_MS))
        if self.on_outage == "drop" and self.trace is None:
            raise ScenarioError(f"{at}on_outage = 'drop' without a trace, of which outages are part; valid: 'hold'")

    @property
    def least_delay_ms(self) -> float:
        """The propagation delay, or the smallest of its schedule, ms; without jitter."""
        return self.delay_ms.least_ms if isinstance(self.delay_ms, DelaySchedule) else self.delay_ms

    @property
    def reorders(self) -> bool:
        """Whether packets may overtake each other."""
        scheduled = isinstance(self.delay_ms, DelaySchedule) and self.delay_ms.reorder
        return scheduled or (self.jitter is not None and self.jitter.reorder)

    @property
    def finite(self) -> bool:
        """Whether packets take time to pass (there can be a queue)."""
        return self.rate_mbps is not None or self.trace is not None

    @property
    def passes_mbps(self) -> float:
        """What the discipline's tokens let through in the long run, Mbit/s; infinity where it has none."""
        return self.discipline.passes_mbps if isinstance(self.discipline, Discipline) else float("inf")

    def mean_mbps(self, duration_s: float | None = None) -> float:
        """Mean capacity over `duration_s` seconds (a trace's own length when None); infinity when unlimited.

        Behind a token bucket no more than its rate.
        """
        own = self.trace.mean_mbps(duration_s) if self.trace is not None else self.rate_mbps
        return min(float("inf") if own is None else own, self.passes_mbps)

    def carrying_s(self, size_bytes: float, start_s: float = 0.0) -> float:
        """How long the link, alone, would take from `start_s` on to carry so many bytes, seconds; 0 when unlimited."""
        if self.trace is not None:
            return self.trace.carrying_s(size_bytes, start_s)
        return size_bytes * 8e-6 / self.rate_mbps if self.rate_mbps is not None else 0.0

    def capacity_steps(self, duration_s: float) -> tuple[np.ndarray, np.ndarray]:
        """The capacity over `duration_s` seconds, constant between edges; infinity when unlimited.

        Behind a token bucket no more than its rate.

        Returns:
            edges in seconds, (steps + 1,), and Mbit/s, (steps,); see `netbuf_gym.traces.capacity_steps`.
        """
        if self.trace is not None:
            edges, mbps = capacity_steps(self.trace, duration_s)
            return edges, np.minimum(mbps, self.passes_mbps)
        return np.array([0.0, duration_s]), np.array([self.mean_mbps()])

    def service_ms(self, wire_bytes: int) -> float:
        """The least time that a packet of `wire_bytes` spends in transmission, ms (0 on a delivery trace)."""
        if isinstance(self.trace, DeliveryTrace):
            return 0.0
        rate = self.trace.peak_mbps if self.trace is not None else self.rate_mbps
        return wire_bytes * 8e-3 / rate if rate is not None else 0.0
