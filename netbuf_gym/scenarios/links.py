"""Links: queue, transmission, random loss, propagation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, quote
from netbuf_gym.scenarios.fields import boolean, check_fields, choice, integer, number, rule
from netbuf_gym.scenarios.impairments import DelaySchedule, Jitter, LossSchedule, check_delay, check_loss
from netbuf_gym.scenarios.limits import MAX_COUNT, MAX_DELAY_MS
from netbuf_gym.traces.capacity import capacity_steps
from netbuf_gym.traces.types import MAX_RATE_MBPS, MIN_RATE_MBPS, DeliveryTrace, RateTrace, Trace
from netbuf_gym.utils import checks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netbuf_gym.scenarios.disciplines import Discipline
    from netbuf_gym.scenarios.media import Medium

ON_OUTAGE = ("hold", "drop")
OUTAGE_MS = 100.0
_SHARE = number(0, 1)


def _parse_discipline(label: str, value: object) -> Any:
    from netbuf_gym.scenarios.disciplines import parse_discipline

    return parse_discipline(label, value)


def _parse_medium(label: str, value: object) -> Any:
    from netbuf_gym.scenarios.media import parse_medium

    return parse_medium(label, value)


@dataclass(frozen=True, kw_only=True)
class GilbertElliott:
    """Bursty loss: a two-state Markov chain that advances with each packet, and a loss probability for each state.

    Args:
        p_good_to_bad, p_bad_to_good: Transition probabilities per packet, 0 to 1.
        loss_good, loss_bad: Probability that a packet is lost in the state, 0 to 1.
    """

    p_good_to_bad: float = field(metadata=_SHARE)
    p_bad_to_good: float = field(metadata=_SHARE)
    loss_good: float = field(default=0.0, metadata=_SHARE)
    loss_bad: float = field(default=1.0, metadata=_SHARE)

    def __post_init__(self) -> None:
        check_fields(self, "gilbert_elliott.")

    @property
    def mean_loss(self) -> float:
        """Long-run share of packets lost."""
        total = self.p_good_to_bad + self.p_bad_to_good
        bad = self.p_good_to_bad / total if total else 0.0
        return bad * self.loss_bad + (1 - bad) * self.loss_good


@dataclass(frozen=True, kw_only=True)
class Link:
    """Link: a queue (drop-tail unless it has a discipline), transmission, random loss, then propagation delay.

    Args:
        name: Name, unique in the scenario.
        rate_mbps: Rate, 1e-6 to 1e6 Mbit/s; None: infinitely fast, or given by `trace`.
        delay_ms: Propagation delay, 0 to 1e5 ms, or a `DelaySchedule`.
        queue_packets, queue_bytes: Queue limit, 1 to 2**40, without the packet in service; None: no limit. A packet longer than
            `queue_bytes`, or than the burst of a token bucket, is dropped whenever it comes, with or without a discipline.
        loss: Probability that a packet is lost after its transmission, 0 to below 1, or a `LossSchedule`.
        gilbert_elliott: Bursty loss instead of `loss`.
        loss_on_acks: Whether random loss affects ACKs as well as data packets.
        trace: `RateTrace` or `DeliveryTrace` instead of `rate_mbps`.
        discipline: Queue discipline: a name, a dict of `name` and parameters, or an object: `"codel"`,
            `{"name": "codel", "target_ms": 10}`, `CoDel(target_ms=10)` (`netbuf-gym list queue-disciplines`); None:
            first in, first out, by the simulator's fast path. No effect on an infinitely fast link, which has no queue.
        device_packets: Packets that the device holds behind a discipline or a switch, besides the one in service, 0 to
            1000; ns-3's devices hold 1.
        jitter: `Jitter`, a random delay of each packet in addition to `delay_ms`; None: no jitter.
        on_outage: Treatment of the queue when the trace serves nothing for `outage_ms` or longer: `"hold"`: packets wait until
            the link is back; `"drop"`: packets that wait or are in transmission when the outage begins are dropped, and so are
            packets that arrive before it ends. Such packets count as queue drops.
        outage_ms: Shortest gap without service that is such an outage, 1 to 1e5 ms (for `"drop"` only).
        duplicate: Share of the packets, ACKs included, that are queued twice, 0 to 1 (tc-netem(8): before queueing).
        corrupt: Share of the packets, copies and ACKs included, that are damaged before they are queued, 0 to 1: they take room
            in the queue and time on the link, and are discarded behind it. They count as random losses. Linux' netem inverts a
            bit, which the receiver's checksum finds.
        medium: `Wifi`, `Cellular`, or a name or a dict like a discipline's, which transmits instead of `rate_mbps` or `trace`.
            Links whose media are equal share one, so that data and ACKs contend for the same air.
        uplink: Whether the link leads from a station or user to the access point or base station (beside a medium).
        gain_db: Signal of the link's user above that of the cell, -60 to 60 dB (beside `Cellular`).
    """

    name: str = field(metadata=rule(None, core="name"))
    rate_mbps: float | None = field(default=None, metadata=number(MIN_RATE_MBPS, MAX_RATE_MBPS, core="rate_bps"))
    delay_ms: float | DelaySchedule = field(default=0.0, metadata=rule(check_delay))
    queue_packets: int | None = field(default=None, metadata=integer(1, MAX_COUNT, core="queue_limit_packets"))
    queue_bytes: int | None = field(default=None, metadata=integer(1, MAX_COUNT, core="queue_limit_bytes"))
    loss: float | LossSchedule = field(default=0.0, metadata=rule(check_loss))
    gilbert_elliott: GilbertElliott | None = None
    loss_on_acks: bool = field(default=False, metadata=boolean(core="loss_on_acks"))
    trace: Trace | None = None
    discipline: Discipline | str | dict | None = field(default=None, metadata=rule(_parse_discipline))
    device_packets: int = field(default=0, metadata=integer(0, 1000, core="device_packets"))
    jitter: Jitter | None = None
    on_outage: str = field(default="hold", metadata=choice(ON_OUTAGE))
    outage_ms: float = field(default=OUTAGE_MS, metadata=number(1, MAX_DELAY_MS))
    duplicate: float = field(default=0.0, metadata=number(0, 1, core="duplicate"))
    corrupt: float = field(default=0.0, metadata=number(0, 1, core="corrupt"))
    medium: Medium | str | dict | None = field(default=None, metadata=rule(_parse_medium))
    uplink: bool = field(default=False, metadata=boolean(core="uplink"))
    gain_db: float = field(default=0.0, metadata=number(-60, 60, core="gain_db"))

    def __post_init__(self) -> None:
        checks.name("link.name", self.name)
        at = f"link {self.name!r}: "
        check_fields(self, at)
        if self.gilbert_elliott is not None:
            if not isinstance(self.gilbert_elliott, GilbertElliott):
                raise ScenarioTypeError(f"{at}gilbert_elliott = {quote(self.gilbert_elliott)} is not a GilbertElliott")
            if self.loss:
                raise ScenarioError(f"{at}loss = {quote(self.loss)} beside gilbert_elliott; valid: one of them")
        if self.trace is not None:
            if not isinstance(self.trace, (RateTrace, DeliveryTrace)):
                raise ScenarioTypeError(f"{at}trace = {quote(self.trace)} is not a RateTrace or DeliveryTrace")
            if self.rate_mbps is not None:
                raise ScenarioError(f"{at}rate_mbps = {self.rate_mbps:g} beside a trace; valid: one of them")
        elif self.on_outage == "drop":
            raise ScenarioError(f"{at}on_outage = 'drop' without a trace, of which outages are part; valid: 'hold'")
        self._check_medium(at)
        if self.jitter is not None:
            if not isinstance(self.jitter, Jitter):
                raise ScenarioTypeError(f"{at}jitter = {quote(self.jitter)} is not a Jitter")
            if isinstance(self.delay_ms, DelaySchedule) and self.delay_ms.reorder and not self.jitter.reorder:
                raise ScenarioError(f"{at}jitter.reorder = False beside a delay_ms that may reorder; valid: both or neither")

    def _check_medium(self, at: str) -> None:
        if self.medium is None:
            if self.uplink:
                raise ScenarioError(f"{at}uplink = True without a medium; valid: False")
            if self.gain_db:
                raise ScenarioError(f"{at}gain_db = {self.gain_db:g} without a medium; valid: 0")
            return
        if self.rate_mbps is not None:
            raise ScenarioError(f"{at}rate_mbps = {self.rate_mbps:g} beside a medium; valid: one of them")
        if self.trace is not None:
            raise ScenarioError(f"{at}a trace beside a medium; valid: one of them")
        if self.device_packets:
            raise ScenarioError(f"{at}device_packets = {self.device_packets} beside a medium; valid: 0")
        if self.gain_db:
            from netbuf_gym.scenarios.media import Cellular

            if not isinstance(self.medium, Cellular):
                raise ScenarioError(f"{at}gain_db = {self.gain_db:g} beside a medium that is not Cellular; valid: 0")

    @property
    def least_delay_ms(self) -> float:
        """Propagation delay, or the smallest delay of the schedule, ms; without jitter."""
        return self.delay_ms.least_ms if isinstance(self.delay_ms, DelaySchedule) else self.delay_ms

    def mean_loss(self, duration_s: float) -> float:
        """Return the mean share of the packets that are lost at random, damaged ones included, 0 to 1."""
        if self.gilbert_elliott is not None:
            lost = self.gilbert_elliott.mean_loss
        else:
            lost = self.loss.mean_loss(duration_s) if isinstance(self.loss, LossSchedule) else self.loss
        return 1 - (1 - lost) * (1 - self.corrupt)

    @property
    def may_reorder(self) -> bool:
        """Whether packets may overtake each other."""
        scheduled = isinstance(self.delay_ms, DelaySchedule) and self.delay_ms.reorder
        return scheduled or (self.jitter is not None and self.jitter.reorder)

    @property
    def has_finite_rate(self) -> bool:
        """Whether transmission takes time, so that a queue can form."""
        return self.rate_mbps is not None or self.trace is not None or self.medium is not None

    @property
    def constant_mbps(self) -> float | None:
        """Rate, or the mean capacity of the link's medium, Mbit/s; None: infinitely fast, or a trace's."""
        if self.medium is None:
            return self.rate_mbps
        return cast("Medium", self.medium).capacity_mbps(up=self.uplink, gain_db=self.gain_db)

    @property
    def throughput_limit_mbps(self) -> float:
        """Long-run throughput limit of the discipline's tokens, Mbit/s; infinity without tokens."""
        return math.inf if self.discipline is None else cast("Discipline", self.discipline).throughput_limit_mbps

    def mean_mbps(self, duration_s: float | None = None) -> float:
        """Return the mean capacity over `duration_s` seconds (None: over the trace's own length); infinity if unlimited.

        A medium's is what it carries of this link alone (`Medium.capacity_mbps`).
        A token bucket caps the capacity at its rate.
        """
        own = self.trace.mean_mbps(duration_s) if self.trace is not None else self.constant_mbps
        own = math.inf if own is None else own
        return own if self.discipline is None else min(own, self.throughput_limit_mbps)

    def compute_carrying_s(self, size_bytes: float, start_s: float = 0.0) -> float:
        """Return the time in seconds that the idle link takes to carry `size_bytes` from `start_s` on; 0 if unlimited."""
        if self.trace is not None:
            return self.trace.compute_carrying_s(size_bytes, start_s)
        mbps = self.constant_mbps
        return size_bytes * 8e-6 / mbps if mbps is not None else 0.0

    def capacity_steps(self, duration_s: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the capacity over `duration_s` seconds as a step function; infinity if unlimited.

        A token bucket caps the capacity at its rate.

        Returns:
            Edges in seconds, (steps + 1,), and Mbit/s, (steps,); see `netbuf_gym.traces.capacity_steps`.
        """
        if self.trace is not None:
            edges, mbps = capacity_steps(self.trace, duration_s)
            return edges, np.minimum(mbps, self.throughput_limit_mbps)
        return np.array([0.0, duration_s]), np.array([self.mean_mbps()])

    def service_ms(self, wire_bytes: int) -> float:
        """Return the least transmission time of a packet of `wire_bytes`, ms (0 on a delivery trace, and on a medium)."""
        if isinstance(self.trace, DeliveryTrace) or self.medium is not None:
            return 0.0
        rate = self.trace.peak_mbps if self.trace is not None else self.rate_mbps
        return wire_bytes * 8e-3 / rate if rate is not None else 0.0
