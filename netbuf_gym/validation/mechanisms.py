"""Cells of ns-3's dumbbell with mechanisms of real paths: changing delay, jitter, datagrams, data on the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from netbuf_gym.errors import quote
from netbuf_gym.scenarios import DelaySchedule, Flow, Jitter, Link, Scenario, UdpSource
from netbuf_gym.simulation.results.result import Result
from netbuf_gym.validation.cells import (
    ALONE,
    DROPS,
    GOODPUT,
    GROUPED,
    ONE_PACKET,
    QUEUE_DELAY,
    Cell,
    Family,
    Numbers,
    Row,
    Setting,
    Tolerance,
    make_dumbbell_setting,
    register_family,
)
from netbuf_gym.validation.dumbbells import NS3_SCHEMES, explain_missing_scheme

NS3_MECHANISMS = "ns3-mechanisms"
ACCESS_DELAY_MS = 1.0
UDP_HEADERS = 30  # PPP, IPv4 and UDP, in bytes

GOODPUT_BACK, QUEUE_DELAY_BACK, DROPS_BACK = "goodput_back_mbps", "queue_delay_back_ms", "queue_drops_back"
UDP_RECEIVED, UDP_LOST, UDP_DELAY = "udp_received_mbps", "udp_lost", "udp_delay_ms"
COLUMNS = {
    GOODPUT: "goodput_w_mbps",
    QUEUE_DELAY: "sojourn_mean_w_ms",
    DROPS: "queue_drops",
    GOODPUT_BACK: "goodput_back_w_mbps",
    QUEUE_DELAY_BACK: "sojourn_back_mean_w_ms",
    DROPS_BACK: "queue_drops_back",
    UDP_RECEIVED: "udp_received_w_mbps",
    UDP_LOST: "udp_loss",
    UDP_DELAY: "udp_delay_w_ms",
}
"""Columns of the reference by quantity."""
TITLES = {
    GOODPUT_BACK: "goodput back",
    QUEUE_DELAY_BACK: "delay back",
    DROPS_BACK: "drops back",
    UDP_RECEIVED: "datagrams",
    UDP_LOST: "lost of them",
    UDP_DELAY: "their delay",
}
"""Column titles of the quantities: Mbit/s, ms, packets, Mbit/s, a share, ms one way."""

RATE, DELAY, LOSSES = Tolerance(0.02), Tolerance(0.10, 0.05), Tolerance(0.20, ONE_PACKET)
LOST = Tolerance(0.20, 1e-3)


@dataclass(frozen=True, kw_only=True)
class Mechanisms:
    """Parameters of a cell's mechanisms, beside those of the dumbbell, as in the reference program's columns; zero if absent.

    Attributes:
        back_flows, back_mbps, back_packets, back_start_s: Number and start of the reverse flows; rate and buffer of the reverse
            bottleneck.
        rtt_steps: Pairs of a time in s and the round-trip propagation in ms from then on.
        jitter_ms, reorder: Maximum of a uniform extra delay in the forward direction, and whether packets overtake each other.
        udp_mbps, udp_bytes, udp_on_s, udp_off_s, udp_random, udp_start_s, udp_back: Parameters of the datagrams; sizes and
            rates are those on the bottleneck.
    """

    back_flows: int = 0
    back_mbps: float = 0.0
    back_packets: int = 0
    back_start_s: float = 0.0
    rtt_steps: tuple[tuple[float, float], ...] = ()
    jitter_ms: float = 0.0
    reorder: bool = True
    udp_mbps: float = 0.0
    udp_bytes: int = 1502
    udp_on_s: float = 0.0
    udp_off_s: float = 0.0
    udp_random: bool = False
    udp_start_s: float = 0.0
    udp_back: bool = False

    @property
    def by_chance(self) -> bool:
        """True if a run depends on random draws."""
        return self.jitter_ms > 0 or (self.udp_mbps > 0 and self.udp_random)

    def describe(self) -> list[str]:
        """Return the mechanisms that are present, in a few words each."""
        words = []
        if self.rtt_steps:
            words.append("rtt" + "-".join(f"{rtt_ms:g}@{time_s:g}s" for time_s, rtt_ms in self.rtt_steps))
        if self.jitter_ms:
            words.append(f"jitter{self.jitter_ms:g}ms{'' if self.reorder else '-in-order'}")
        if self.udp_mbps:
            periods = f"-{self.udp_on_s:g}s-{self.udp_off_s:g}s{'-random' if self.udp_random else ''}" if self.udp_on_s else ""
            words.append(f"udp{'-back' if self.udp_back else ''}{self.udp_mbps:g}Mbps-{self.udp_bytes}B{periods}")
        if self.back_flows or self.udp_back:
            words.append(f"back{self.back_flows}-{self.back_mbps:g}Mbps-{self.back_packets}pkts")
        return words


def parse_steps(text: str) -> tuple[tuple[float, float], ...]:
    """Return the pairs of a list `t:rtt;t:rtt`; raise ValueError for another text."""
    try:
        return tuple((float(time_s), float(rtt_ms)) for time_s, rtt_ms in (step.split(":") for step in text.split(";") if step))
    except ValueError:
        raise ValueError(f"rtt_steps = {quote(text)}; valid: nothing, or s:ms;s:ms") from None


def make_setting(kind: str, row: Row, v: Numbers) -> Setting:
    """Return the setting described by a row's columns.

    Raises:
        ValueError: There are no flows, `rtt_steps` is no list of times and delays, or an RTT is below that of the access links.
    """
    if v["N"] + v["N_back"] == 0:
        raise ValueError("N = 0 and N_back = 0; valid: at least one flow")
    steps = parse_steps(row["rtt_steps"])
    least_ms = 4 * ACCESS_DELAY_MS
    for name, rtt_ms in (("rtt_prop_ms", v["rtt_prop_ms"]), *(("rtt_steps", step[1]) for step in steps)):
        if not rtt_ms >= least_ms:
            raise ValueError(f"{name} = {rtt_ms:g}; valid: at least the access links' {least_ms:g} ms")
    mechanisms = Mechanisms(
        back_flows=int(v["N_back"]),
        back_mbps=v["B_back_mbps"],
        back_packets=int(v["buffer_back_pkts"]),
        back_start_s=v["back_start_s"],
        rtt_steps=steps,
        jitter_ms=v["jitter_ms"],
        reorder=bool(v["reorder"]),
        udp_mbps=v["udp_mbps"],
        udp_bytes=int(v["udp_bytes"]),
        udp_on_s=v["udp_on_s"],
        udp_off_s=v["udp_off_s"],
        udp_random=bool(v["udp_random"]),
        udp_start_s=v["udp_start_s"],
        udp_back=bool(v["udp_back"]),
    )
    return make_dumbbell_setting(kind, row, v, mechanisms)


@register_family
class Ns3Mechanisms(Family):
    kind = NS3_MECHANISMS
    least_rtt_ms = 4 * ACCESS_DELAY_MS
    columns = ("flows", "buffer", "beside", "runs")

    def id_parts(self, s: Setting) -> list[str]:
        return [*super().id_parts(s), *s.own.describe()]

    def group_key(self, s: Setting) -> tuple[str, ...]:
        return tuple(self.list_tolerances(s))

    def why_not_judged(self, s: Setting) -> str:
        return explain_missing_scheme(s)

    def has_seeded_worlds(self, s: Setting) -> bool:
        return s.own.udp_mbps > 0 and s.own.udp_random

    def choose_judging(self, s: Setting) -> str:
        return ALONE if s.flows + s.own.back_flows == 1 and not s.own.by_chance else GROUPED

    def list_tolerances(self, s: Setting) -> Mapping[str, Tolerance]:
        found = {GOODPUT: RATE, QUEUE_DELAY: DELAY, DROPS: LOSSES}
        if s.own.back_flows:
            found |= {GOODPUT_BACK: RATE}
        if s.own.back_flows or s.own.udp_back:
            found |= {QUEUE_DELAY_BACK: DELAY, DROPS_BACK: LOSSES}
        if s.own.udp_mbps:
            found |= {UDP_RECEIVED: RATE, UDP_LOST: LOST, UDP_DELAY: DELAY}
        return found

    def measure_quantities(self, result: Result) -> dict[str, float]:
        """Return goodput and delays of the window after the warm-up; drops and the lost share of datagrams of the whole run."""
        there, back = result.links["bottleneck"], result.links["return"]
        flows = {name: [f for f in result.flows if f.name.startswith(name)] for name in ("there", "back")}
        values = {
            GOODPUT: sum(flow.goodput_mbps for flow in flows["there"]),
            QUEUE_DELAY: there.queue_delay_mean_ms,
            DROPS: float(there.queue_drops_total),
            GOODPUT_BACK: sum(flow.goodput_mbps for flow in flows["back"]),
            QUEUE_DELAY_BACK: back.queue_delay_mean_ms,
            DROPS_BACK: float(back.queue_drops_total),
        }
        for udp in result.udp:
            values |= {UDP_RECEIVED: udp.received_mbps, UDP_LOST: udp.lost_share_total, UDP_DELAY: udp.delay_mean_ms}
        return values

    def make_scenario(self, cell: Cell, seed: int | None) -> Scenario:
        s, own = cell.setting, cell.setting.own
        links = [
            Link(
                name="bottleneck",
                rate_mbps=s.rate_mbps,
                delay_ms=_make_delay(s),
                queue_packets=s.buffer_packets,
                jitter=Jitter(scale_ms=own.jitter_ms, reorder=own.reorder) if own.jitter_ms else None,
            ),
            Link(name="return", rate_mbps=own.back_mbps, delay_ms=_make_delay(s), queue_packets=own.back_packets or None),
        ]

        def add_ends(name: str, way: int) -> dict[str, Any]:
            first = len(links)
            for end in ("out", "in", "out-back", "in-back"):
                links.append(Link(name=f"{name}-{end}", rate_mbps=s.access_mbps, delay_ms=ACCESS_DELAY_MS))
            return {"path": (first, way, first + 1), "return_path": (first + 2, 1 - way, first + 3)}

        flows = []
        for name, count, way, start_s in (("there", s.flows, 0, 0.0), ("back", own.back_flows, 1, own.back_start_s)):
            for i in range(count):
                at_s = start_s + i * s.stagger_s
                flows.append(Flow(cc=NS3_SCHEMES[s.cc], name=f"{name}-{i}", start_s=at_s, **add_ends(f"{name}-{i}", way)))
        udp = _make_sources(s, seed, add_ends)
        return Scenario(links=links, flows=flows, udp=udp, duration_s=s.duration_s, stack="ns3", hystart=s.hystart, name=s.id)

    def format_row(self, s: Setting, runs: int) -> Sequence[str]:
        return [str(s.flows), str(s.buffer_packets), ", ".join(s.own.describe()), str(runs)]

    def report_fields(self, s: Setting) -> dict:
        return super().report_fields(s) | {"beside": s.own.describe()}


def _make_delay(s: Setting) -> float | DelaySchedule:
    """Return the bottleneck's one-way delay, the propagation less that of the access links.

    As on ns-3's channel, packets sent after a fall of the delay overtake earlier ones.
    """
    steps = ((0.0, s.rtt_ms), *s.own.rtt_steps)
    delays_ms = [rtt_ms / 2 - 2 * ACCESS_DELAY_MS for _, rtt_ms in steps]
    return DelaySchedule([time_s for time_s, _ in steps], delays_ms, reorder=True) if s.own.rtt_steps else delays_ms[0]


def _compute_rate_mbps(own: Mechanisms) -> float:
    """Return the rate of a source with periods as in the reference: ns-3's DataRate, of payload, is whole bit/s."""
    share = (own.udp_bytes - UDP_HEADERS) / own.udp_bytes
    return max(1, round(own.udp_mbps * 1e6 * share)) / share * 1e-6 if share > 0 else own.udp_mbps


def _sample_rest_s(own: Mechanisms, seed: int | None) -> float:
    """Return the rest of ns-3's sources with periods before the first of them; without a seed, the mean of such rests."""
    if own.udp_on_s and own.udp_random and seed is not None:
        return float(np.random.default_rng(seed).exponential(own.udp_off_s))
    return own.udp_off_s if own.udp_on_s else 0.0


def _make_sources(s: Setting, seed: int | None, ends: Callable[[str, int], dict[str, Any]]) -> list[UdpSource]:
    own = s.own
    if not own.udp_mbps:
        return []
    periods: dict[str, Any] = {"on_s": own.udp_on_s, "off_s": own.udp_off_s, "random": own.udp_random} if own.udp_on_s else {}
    rate_mbps = _compute_rate_mbps(own) if periods else own.udp_mbps
    begins_s = own.udp_start_s + _sample_rest_s(own, seed)
    path = ends("udp", int(own.udp_back))["path"]
    return [UdpSource(path=path, rate_mbps=rate_mbps, packet_bytes=own.udp_bytes, start_s=begins_s, **periods)]
