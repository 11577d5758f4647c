"""Families of paths for training and evaluating senders, each a distribution over worlds.

A path has one service, the way in which its bottleneck delivers, and any number of further conditions. A family is named after
the one property that its worlds have; a share of them (`mixed_probability`) has a property of another family as well. Where
that is another service, the order of precedence is: outages before jitter, jitter before steps, and steps before fades.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios.catalogue import parse_congestion_control, sender_controls
from netbuf_gym.scenarios.delays import delay_walk, handovers, leo_delays, route_change
from netbuf_gym.scenarios.distributions import SENDERS, SHARE, Distribution, check_interval, interval, log_uniform
from netbuf_gym.scenarios.fields import check_fields, choice, integer, number, rule, text
from netbuf_gym.scenarios.flows import OnOff
from netbuf_gym.scenarios.impairments import MAX_CORRELATION, DelaySchedule
from netbuf_gym.scenarios.limits import MAX_DELAY_MS, MAX_DURATION_S, compute_bdp_packets
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.congestion_window.paths import GeneratedTrace, Path, PathWorld, RivalFlow, ShortFlows
from netbuf_gym.traces.types import RateTrace
from netbuf_gym.utils import checks

SERVICES = {
    "fixed": "one rate throughout",
    "steps": "a rate that changes at random moments",
    "jitter": "service that jitters within a round trip",
    "cellular": "generated traces of 4G, 5G, Wi-Fi and wired networks",
    "outages": "a rate that is gone for 0.3 to 10 s, once or more often, the queue held or dropped",
    "fades": "a fast rate that walks, and falls to a part of itself again and again, as of 5G at high frequencies",
}
"""Ways in which a bottleneck delivers."""
CONDITIONS = {
    "loss": "random loss of data packets",
    "delays": "propagation that changes: one step up or down, handovers, satellites",
    "reverse": "traffic on the way back",
    "rivals": "one to three flows of other congestion controls over the same bottleneck",
    "agents": "two to eight senders that share a bottleneck and start one after the other",
    "crowd": "four to sixteen senders on a slow link, with fair shares of a packet to twelve in a round trip",
    "delay_jitter": "packets that each take up to 30 ms longer: in order, overtaking one another, or as a delay that wanders",
    "policer": "a token bucket that drops what exceeds a rate below the link's",
    "bursts": "flows that come and go: applications that pause, and short flows",
}
"""Further conditions on a sender's path."""
FAMILIES = SERVICES | CONDITIONS
USUAL_MIXED = ("fixed", "steps", "jitter", "outages", "loss", "delays", "reverse", "rivals")
"""Families whose property other worlds have as well, unless others are named."""
NEVER_MIXED = ("cellular", "agents", "crowd")
"""Families whose property no other worlds have."""

NETWORKS = ("4g", "5g", "wifi", "wired")
"""Networks of generated traces."""
MIXED_NETWORKS = ("4g", "4g", "5g", "wifi", "wired")
"""Networks of which one is drawn by default."""
EXCLUDED_RIVALS = ("receiver_driven", "dctcp")
"""Congestion controls that need a receiver that drives them, or switches that mark packets."""
LATER_RIVALS = ("bbr3", "ledbat", "ledbatpp", "prague")
"""Congestion controls added after worlds were drawn whose rivals must not change: rivals only where they are named."""
LOWEST_MBPS, MOST_MBPS = 0.01, 1e4
LEAST_MBPS = 0.1
"""Least mean rate of generated traces; slower ones are drawn anew."""
MAX_TRIES = 16
LEAST_RTTS = 20
"""Number of round trips below which a world's duration is not halved."""
LEAST_DURATION_S = 5.0
LONGEST_OUTAGE_S = 10.0
LEAST_RETURN_SHARE = 0.06
"""Least rate of a return link as a share of the bottleneck's rate, which its ACKs need."""
MAX_RETURN_MBPS = 100.0
LEAST_PACKETS = 4
"""Least limit of a queue."""
MOST_AGENTS = 8
"""Most senders on a path of the family `agents`."""
CROWD = (4, 16)
"""Number of senders on a path of the family `crowd`, if the world has as many."""
CROWD_PACKETS = (1.0, 12.0)
"""Packets that a fair share of a crowd carries in a round trip of propagation."""
FADING_MBPS = 50.0
"""Least rate of links that fade, unless all rates are lower."""
JITTER_MS = (1.0, 30.0)
"""Most that a packet is delayed in the family `delay_jitter`."""
POLICED = (0.1, 0.8)
"""Rate of a policer as a share of the link's."""
POLICED_S = (0.003, 0.3)
"""Burst of a policer, in seconds of its rate."""
MOST_SHORT_FLOWS = 300
"""Short flows on a path; where more would be due, they are larger."""
WIRE_BYTES = 1500


def default_rivals() -> tuple[str, ...]:
    """Return the congestion controls of rivals where none are named."""
    return tuple(name for name in sender_controls("linux") if name not in (*EXCLUDED_RIVALS, *LATER_RIVALS))


def _check_networks(label: str, value: object) -> tuple[str, ...]:
    networks = checks.sequence(label, value, "names")
    return tuple(checks.choice(f"{label}[{i}]", network, NETWORKS) for i, network in enumerate(networks))


def _check_mixed(label: str, value: object) -> tuple[str, ...]:
    families = [name for name in FAMILIES if name not in NEVER_MIXED]
    return tuple(
        checks.choice(f"{label}[{i}]", name, families) for i, name in enumerate(checks.sequence(label, value, "names"))
    )


def _check_stagger(label: str, value: object) -> tuple[float, float]:
    if not isinstance(value, bool) and value in (0, (0, 0), [0, 0]):
        return 0.0, 0.0
    return check_interval(label, value, MAX_DURATION_S)


@dataclass(frozen=True, kw_only=True)
class SenderPaths(Distribution):
    """Distribution over the worlds of one family, each path with its own rate, round trip and buffer.

    Several senders share a path in the families `agents` and `crowd`; in the others each has its own path, all in one world, so
    that an environment of any number of agents can be trained on them.

    Args:
        family: A key of `FAMILIES`.
        senders: Congestion controls of the senders, the first flows of every world; rivals and flows on the way back follow.
        rate_mbps: Range of the bottleneck's rate, log-uniform, within [0.01, 1e4]; generated traces of networks have that of
            their network.
        rtt_ms: Range of the propagation RTT, log-uniform, within (0, 1e5].
        buffer_bdp: Range of the buffer in bandwidth-delay products of the mean rate, log-uniform, within (0, 1e4].
        loss: Range of the loss rate in worlds with random loss, log-uniform, within (0, 1).
        competitors: Congestion controls of rivals, with equal probability; None: all of `default_rivals()`.
        networks: Networks of generated traces, from `NETWORKS`, with equal probability.
        leave_probability: Share of the rivals that leave before the end, 0 to 1.
        most_rivals: Most rivals on a path, 2 to 16; of several, their number is uniform.
        several_probability: Share of the paths with rivals that have several, 0 to 1.
        alike_probability: Share of the paths with several rivals on which all have the same congestion control, 0 to 1; on the
            others each is drawn.
        unequal_probability: Share of the paths with several flows on which each has its own round trip, 0 to 1.
        rtt_spread: Largest round trip on these, over `rtt_ms`, log-uniform, 1 to 100.
        idle_probability: Share of the paths whose senders have an application that pauses, 0 to 1.
        return_share: Range of the rate of a way back with traffic as a share of the bottleneck's, log-uniform, within (0, 100];
            more where the ACKs need it.
        mixed_probability: Share of the paths that also have a property of another family, 0 to 1.
        mixed_with: Families of which that property is, with equal probability; not `cellular`, `agents` or `crowd`.
        jitter_probability: Share of the paths that delay each packet by a further random time, up to 0.2 ms to half of their
            propagation RTT or 30 ms, 0 to 1.
        rivals_probability: Share of the paths with several senders that also have rivals, 0 to 1.
        stagger_s: Range of the time between the starts of successive senders on a path, log-uniform, within (0, 1e6], or
            (0, 0): all at once; less where the last would not have half of the world.
        duration_s: Duration of the longest worlds, 1 to 1e4 seconds.
        most_mbit: Most that a bottleneck carries in a world, 1 to 1e9 Mbit: the duration of worlds with more is halved until
            they are within it, but not below 5 s or 20 round trips.
        name: Label of the worlds.
    """

    family: str = field(metadata=choice(FAMILIES))
    senders: Sequence[Any] = field(default=("cubic",), metadata=SENDERS)
    rate_mbps: tuple[float, float] = field(default=(0.5, 1000.0), metadata=interval(MOST_MBPS, low=LOWEST_MBPS))
    rtt_ms: tuple[float, float] = field(default=(5.0, 400.0), metadata=interval(MAX_DELAY_MS))
    buffer_bdp: tuple[float, float] = field(default=(0.25, 16.0), metadata=interval(1e4))
    loss: tuple[float, float] = field(default=(1e-4, 2e-2), metadata=interval(0.999))
    competitors: Sequence[Any] | None = field(default=None, metadata=SENDERS)
    networks: Sequence[str] = field(default=MIXED_NETWORKS, metadata=rule(_check_networks))
    leave_probability: float = field(default=0.3, metadata=SHARE)
    most_rivals: int = field(default=3, metadata=integer(2, 16))
    several_probability: float = field(default=0.3, metadata=SHARE)
    alike_probability: float = field(default=0.0, metadata=SHARE)
    unequal_probability: float = field(default=0.0, metadata=SHARE)
    rtt_spread: float = field(default=10.0, metadata=number(1, 100))
    idle_probability: float = field(default=0.0, metadata=SHARE)
    return_share: tuple[float, float] = field(default=(0.1, 1.0), metadata=interval(100))
    mixed_probability: float = field(default=0.2, metadata=SHARE)
    mixed_with: Sequence[str] = field(default=USUAL_MIXED, metadata=rule(_check_mixed))
    jitter_probability: float = field(default=0.0, metadata=SHARE)
    rivals_probability: float = field(default=0.0, metadata=SHARE)
    stagger_s: tuple[float, float] = field(default=(0.05, 4.0), metadata=rule(_check_stagger))
    duration_s: float = field(default=20.0, metadata=number(1, 1e4))
    most_mbit: float = field(default=2000.0, metadata=number(1, 1e9))
    name: str = field(default="", metadata=text())

    def __post_init__(self) -> None:
        check_fields(self)
        if self.competitors is None:
            object.__setattr__(self, "competitors", default_rivals())
        possible = [name for name in sender_controls("linux") if name not in EXCLUDED_RIVALS]
        for i, cc in enumerate(self.competitors or ()):
            parse_congestion_control(f"competitors[{i}]", cc, possible, "linux")
        self.sample(np.random.default_rng(0))  # the remaining fields are checked where they are used

    @property
    def flows(self) -> int:
        """Number of senders in every world; rivals are not counted."""
        return len(self.senders)

    def sample(self, rng: np.random.Generator) -> Scenario:
        return self.draw(rng).scenario(self.senders, self.name)

    def draw(self, rng: np.random.Generator, place: Sequence[float] | None = None) -> PathWorld:
        """Draw one world in terms of its parts; `sample` returns its scenario.

        Args:
            rng: Random generator.
            place: Position of the first path in the ranges of rate, RTT and buffer, each 0 to 1; None: random.
        """
        sizes = self._draw_sizes(rng)
        places = rng.random((len(sizes), 3))
        if place is not None:
            places[0] = place
        rtts = [log_uniform(one[1], self.rtt_ms) for one in places]
        first_mbps = self._place_rate(places[0][0], sizes[0], rtts[0], self.rate_mbps[1])
        duration_s = self._choose_duration(first_mbps, rtts[0])
        most_mbps = float(np.clip(self.most_mbit / duration_s, *self.rate_mbps))  # limit for other paths of the same duration
        others = zip(places[1:], sizes[1:], rtts[1:], strict=True)
        rates = [first_mbps, *(self._place_rate(one[0], size, rtt, most_mbps) for one, size, rtt in others)]
        paths = [
            self._draw_path(rng, size, rate, rtt, log_uniform(one[2], self.buffer_bdp), duration_s)
            for size, rate, rtt, one in zip(sizes, rates, rtts, places, strict=True)
        ]
        return PathWorld(family=self.family, duration_s=duration_s, paths=paths)

    def _draw_sizes(self, rng: np.random.Generator) -> list[int]:
        """Return the number of senders on each path."""
        left, sizes = len(self.senders), []
        while left:
            size = 1
            if self.family in ("agents", "crowd"):
                low, high = (2, MOST_AGENTS) if self.family == "agents" else CROWD
                most = min(left, high)
                size = int(rng.integers(min(low, most), most + 1))
            sizes.append(size)
            left -= size
        return sizes

    def _place_rate(self, place: float, size: int, rtt_ms: float, most_mbps: float) -> float:
        """Return the rate at a place, 0 to 1, of the range that a path of `size` senders has in this family."""
        low_mbps = self.rate_mbps[0]
        if self.family == "crowd":
            packet_mbps = size * WIRE_BYTES * 8e-3 / rtt_ms  # a packet each in a round trip
            return float(np.clip(packet_mbps * log_uniform(place, CROWD_PACKETS), low_mbps, most_mbps))
        if self.family == "fades" and most_mbps > FADING_MBPS:
            low_mbps = max(low_mbps, FADING_MBPS)
        return log_uniform(place, (low_mbps, most_mbps))

    def _choose_duration(self, rate_mbps: float, rtt_ms: float) -> float:
        """Return the duration of a world with such a path."""
        if self.family == "cellular":  # the network's trace sets the rate
            rate_mbps = 0.0
        lasts_s, least_s = self.duration_s, max(LEAST_DURATION_S, LEAST_RTTS * rtt_ms * 1e-3)
        while lasts_s * rate_mbps > self.most_mbit and lasts_s / 2 >= least_s:
            lasts_s /= 2
        return lasts_s

    def _draw_path(
        self, rng: np.random.Generator, size: int, rate_mbps: float, rtt_ms: float, buffer_bdp: float, duration_s: float
    ) -> Path:
        has = {self.family}
        if rng.random() < self.mixed_probability:
            others = [name for name in self.mixed_with if name != self.family]
            if others:
                has.add(others[int(rng.integers(len(others)))])
        if size > 1 and self.rivals_probability and rng.random() < self.rivals_probability:
            has.add("rivals")
        service = next((name for name in ("cellular", "outages", "jitter", "steps", "fades") if name in has), "fixed")
        what = self._draw_service(rng, service, rate_mbps, duration_s)
        trace = what.get("trace")
        mean_mbps = rate_mbps if trace is None else trace.mean_mbps(duration_s)
        if "loss" in has:
            what["loss"] = log_uniform(rng.random(), self.loss)
        if "delays" in has:
            what["delays"] = self._draw_delays(rng, rtt_ms, duration_s)
        if self.jitter_probability and rng.random() < self.jitter_probability:
            what["jitter_ms"] = log_uniform(rng.random(), (0.2, max(0.2, min(30.0, rtt_ms / 2))))
        if "delay_jitter" in has:
            what |= self._draw_jitter(rng, mean_mbps, rtt_ms, duration_s, "delays" not in has)
        if "policer" in has:
            rate = mean_mbps * log_uniform(rng.random(), POLICED)
            burst = rate * 125e3 * log_uniform(rng.random(), POLICED_S)
            what |= {"policer_mbps": rate, "policer_bytes": max(2.0 * WIRE_BYTES, burst)}
        if "reverse" in has:
            what |= self._draw_reverse(rng, mean_mbps, rtt_ms, duration_s)
        starts_s = [0.0]
        if size > 1:
            stagger_s = min(log_uniform(rng.random(), self.stagger_s), duration_s / 2 / (size - 1))
            starts_s = [i * stagger_s for i in range(size)]
        elif "rivals" in has and rng.random() < 0.4:
            starts_s = [float(rng.uniform(0, 0.25)) * duration_s]
        if "rivals" in has:
            what["rivals"] = self._draw_rivals(rng, duration_s)
        if "bursts" in has:
            what |= self._draw_bursts(rng, mean_mbps, duration_s, what.get("rivals", ()))
        if self.unequal_probability and (size > 1 or what.get("rivals")) and rng.random() < self.unequal_probability:
            what |= self._draw_round_trips(rng, rtt_ms, size, what.get("rivals", ()))
        if self.idle_probability and rng.random() < self.idle_probability:
            what["app"] = _draw_application(rng, duration_s)
        buffer = max(LEAST_PACKETS, round(buffer_bdp * _limited_bdp_packets(mean_mbps, rtt_ms)))
        return Path(rtt_ms=rtt_ms, buffer_packets=buffer, starts_s=starts_s, **what)

    def _draw_service(self, rng: np.random.Generator, service: str, rate_mbps: float, duration_s: float) -> dict[str, Any]:
        """Return the rate or the trace of a bottleneck, as fields of `Path`."""
        if service == "fixed":
            return {"rate_mbps": rate_mbps}
        if service == "steps":
            return {"trace": self._draw_steps(rng, rate_mbps, duration_s)}
        if service == "outages":
            held = "hold" if rng.random() < 0.5 else "drop"
            return {"trace": self._draw_outages(rng, rate_mbps, duration_s), "on_outage": held}
        if service == "fades":
            return self._draw_fades(rng, rate_mbps, duration_s)
        if service == "jitter":
            u = rng.random(5)
            arguments = {
                "mean_mbps": rate_mbps,
                "sigma": log_uniform(u[0], (0.01, 0.15)),
                "range_factor": log_uniform(u[1], (1.2, 4.0)),
                "on_ms": log_uniform(u[2], (5.0, 80.0)),
                "off_ms": log_uniform(u[3], (2.0, 60.0)),
                "off_share": 0.5 * float(u[4]),
            }
            return _generate_trace("jittered", duration_s, rng, arguments)
        return self._draw_network(rng, duration_s)

    def _draw_network(self, rng: np.random.Generator, duration_s: float) -> dict[str, Any]:
        """Return a generated trace of a random network that carries at least `LEAST_MBPS`, as fields of `Path`."""
        network = self.networks[int(rng.integers(len(self.networks)))]
        even = bool(rng.random() < 0.25)
        held = "drop" if rng.random() < 0.2 else "hold"
        for _ in range(MAX_TRIES):
            try:
                made = _generate_trace(network, duration_s, rng, {"spread": 1.25}, by_seconds=even)
            except ScenarioError as error:
                if "outage throughout" in str(error):
                    continue
                raise
            if made["trace"].mean_mbps(duration_s) >= LEAST_MBPS:
                return {**made, "on_outage": held}
        found = f"network {network!r} gave no path of {LEAST_MBPS:g} Mbit/s in {MAX_TRIES} tries"
        raise ScenarioError(f"{found}; valid: a longer duration_s")

    def _draw_steps(self, rng: np.random.Generator, rate_mbps: float, duration_s: float) -> RateTrace:
        """Return a trace whose rate changes at random moments by a factor of up to 4, up or down, within the range of rates."""
        times, rates = [0.0], [rate_mbps]
        while (following := times[-1] + log_uniform(rng.random(), (0.5, duration_s / 2))) < duration_s:
            factor = log_uniform(rng.random(), (0.25, 4.0))
            times.append(following)
            rates.append(float(np.clip(rates[-1] * factor, max(self.rate_mbps[0], rate_mbps / 8), self.rate_mbps[1])))
        return RateTrace(times, rates)

    def _draw_fades(self, rng: np.random.Generator, rate_mbps: float, duration_s: float) -> dict[str, Any]:
        """Return a trace of at most `rate_mbps` that walks, and fades for 0.1 to 5 s at a time, as fields of `Path`."""
        u = rng.random(7)
        shortest_s = log_uniform(u[0], (0.1, min(1.0, duration_s / 8)))
        faded_mbps = rate_mbps * log_uniform(u[1], (0.01, 0.3))
        arguments = {
            "start_mbps": rate_mbps * log_uniform(u[2], (0.4, 1.0)),
            "low_mbps": rate_mbps * log_uniform(u[3], (0.15, 0.4)),
            "high_mbps": rate_mbps,
            "sigma": log_uniform(u[4], (0.02, 0.3)),
            "blockages_per_minute": log_uniform(u[5], (5.0, 40.0)),
            "blockage_min_s": shortest_s,
            "blockage_max_s": shortest_s * log_uniform(u[6], (1.0, 5.0)),
            "blocked_low_mbps": 0.5 * faded_mbps,
            "blocked_high_mbps": faded_mbps,
        }
        return _generate_trace("mmwave", duration_s, rng, arguments)

    def _draw_outages(self, rng: np.random.Generator, rate_mbps: float, duration_s: float) -> RateTrace:
        """Return a trace with one or more outages, in some worlds from the start, and another rate after each."""
        times, rates = [0.0], [rate_mbps]
        begins_s = 0.0 if rng.random() < 0.15 else float(rng.uniform(0.1, 0.5)) * duration_s
        while begins_s < 0.75 * duration_s:
            lasts_s = log_uniform(rng.random(), (min(0.3, duration_s / 8), min(LONGEST_OUTAGE_S, duration_s / 3)))
            if begins_s == 0:
                times, rates = [], []
            times += [begins_s, begins_s + lasts_s]
            rates += [0.0, rate_mbps * log_uniform(rng.random(), (0.5, 2.0))]
            begins_s += lasts_s + float(rng.uniform(0.2, 0.8)) * duration_s
        return RateTrace(times, rates)

    def _draw_delays(self, rng: np.random.Generator, rtt_ms: float, duration_s: float) -> DelaySchedule:
        """Return delays of the bottleneck: a route change in three of five cases, else handovers or satellites."""
        one_way_ms, u = rtt_ms / 2, rng.random(4)
        if u[0] < 0.6:
            change_ms = log_uniform(u[1], (5.0, 100.0))
            change_ms = change_ms if u[2] < 0.6 else -min(change_ms, 0.8 * one_way_ms)
            at_s = (0.2 + 0.4 * float(u[3])) * duration_s
            return route_change(delay_ms=one_way_ms, change_ms=change_ms, at_s=at_s)
        made = {"seed": int(rng.integers(2**62)), "duration_s": duration_s, "low_ms": one_way_ms}
        if u[0] < 0.8:
            return handovers(high_ms=one_way_ms + log_uniform(u[1], (5.0, 50.0)), interval_s=duration_s / 4, **made)
        later_s = log_uniform(u[1], (0.2, 1.0)) * min(15.0, duration_s)
        high_ms = one_way_ms + log_uniform(u[2], (5.0, 30.0))
        return leo_delays(high_ms=high_ms, interval_s=min(15.0, duration_s), first_s=later_s, **made)

    def _draw_reverse(self, rng: np.random.Generator, mean_mbps: float, rtt_ms: float, duration_s: float) -> dict[str, Any]:
        """Return a return link of finite rate with one or two flows over it, as fields of `Path`."""
        rate_mbps = max(mean_mbps * log_uniform(rng.random(), self.return_share), 0.25)
        rate_mbps = max(min(rate_mbps, MAX_RETURN_MBPS), LEAST_RETURN_SHARE * mean_mbps)
        buffer = max(10, round(log_uniform(rng.random(), (0.5, 4.0)) * _limited_bdp_packets(rate_mbps, rtt_ms)))
        flows = tuple(
            RivalFlow("cubic" if rng.random() < 0.6 else self._draw_competitor(rng), float(rng.uniform(0, 0.4)) * duration_s)
            for _ in range(1 + (rng.random() < 0.25))
        )
        return {"return_mbps": rate_mbps, "return_packets": buffer, "reverse": flows}

    def _draw_rivals(self, rng: np.random.Generator, duration_s: float) -> tuple[RivalFlow, ...]:
        """Return one rival or several that start at once or later; some of them leave."""
        made: list[RivalFlow] = []
        alone = rng.random() < 1 - self.several_probability
        number = 1 if alone else int(rng.integers(2, self.most_rivals + 1))
        alike = number > 1 and self.alike_probability > 0 and rng.random() < self.alike_probability
        for _ in range(number):
            cc = made[0].cc if alike and made else self._draw_competitor(rng)
            u = rng.random(4)
            start_s = 0.0 if u[0] < 0.5 else 0.4 * float(u[1]) * duration_s
            stop_s = start_s + (0.2 + 0.6 * float(u[2])) * (duration_s - start_s) if u[3] < self.leave_probability else None
            made.append(RivalFlow(cc, start_s, stop_s))
        return tuple(made)

    def _draw_jitter(
        self, rng: np.random.Generator, mean_mbps: float, rtt_ms: float, duration_s: float, may_wander: bool
    ) -> dict[str, Any]:
        """Return further delays of packets, as fields of `Path`: in order, overtaking, or successive ones alike."""
        u, most_ms = rng.random(4), float(rng.uniform(*JITTER_MS))
        if u[0] < 0.4:
            return {"jitter_ms": most_ms}
        if u[0] < 0.6:
            return {"jitter_ms": most_ms, "jitter_reorder": True}
        lasts_s = log_uniform(u[1], (0.01, 1.0))  # how long delays are alike
        if u[0] < 0.8 or not may_wander:
            packets = max(1.0, lasts_s * mean_mbps * 1e6 / (8 * WIRE_BYTES))
            return {"jitter_ms": most_ms, "jitter_correlation": min(math.exp(-1 / packets), MAX_CORRELATION)}
        step_s = log_uniform(u[2], (0.01, 0.1))
        sigma_ms, seed = most_ms * min(1.0, math.sqrt(step_s / lasts_s)), int(rng.integers(2**62))
        made = delay_walk(
            low_ms=rtt_ms / 2,
            high_ms=rtt_ms / 2 + most_ms,
            sigma_ms=sigma_ms,
            step_s=step_s,
            duration_s=duration_s,
            seed=seed,
        )
        return {"delays": made}

    def _draw_bursts(
        self, rng: np.random.Generator, mean_mbps: float, duration_s: float, rivals: Sequence[RivalFlow]
    ) -> dict[str, Any]:
        """Return rivals with pauses beside those given, or short flows, as fields of `Path`."""
        if rng.random() < 0.5:
            pausing = int(rng.integers(1, 4))
            made = [RivalFlow(self._draw_competitor(rng), app=_draw_application(rng, duration_s)) for _ in range(pausing)]
            return {"rivals": (*rivals, *made)}
        load, sigma = log_uniform(rng.random(), (0.05, 0.6)), float(rng.uniform(0.5, 1.5))
        median_bytes = log_uniform(rng.random(), (5e3, 5e5))
        per_s = load * mean_mbps * 125e3 / (median_bytes * math.exp(sigma**2 / 2))
        larger = max(1.0, per_s * duration_s / MOST_SHORT_FLOWS)
        cc, seed = self._draw_competitor(rng), int(rng.integers(2**53))
        return {"short_flows": ShortFlows(cc, max(per_s / larger, 1 / duration_s), median_bytes * larger, sigma, seed)}

    def _draw_round_trips(
        self, rng: np.random.Generator, rtt_ms: float, size: int, rivals: Sequence[RivalFlow]
    ) -> dict[str, Any]:
        """Return the senders' and rivals' own round trips as fields of `Path`; one flow has none beyond the path's."""
        spread = log_uniform(rng.random(), (1.0, max(1.0, min(self.rtt_spread, MAX_DELAY_MS / rtt_ms))))
        u = rng.random(size + len(rivals))
        more_ms = [rtt_ms * (log_uniform(one, (1.0, spread)) - 1) for one in u - u.min()]
        return {
            "more_rtts_ms": tuple(more_ms[:size]),
            "rivals": tuple(replace(one, more_rtt_ms=ms) for one, ms in zip(rivals, more_ms[size:], strict=True)),
        }

    def _draw_competitor(self, rng: np.random.Generator) -> Any:
        assert self.competitors is not None  # set in __post_init__
        return self.competitors[int(rng.integers(len(self.competitors)))]


def _draw_application(rng: np.random.Generator, duration_s: float) -> OnOff:
    """Return an application that sends and pauses at random, for a twentieth of a second to a third of the world."""
    on_s, off_s = (log_uniform(rng.random(), (0.05, duration_s / 3)) for _ in range(2))
    return OnOff(on_s=on_s, off_s=off_s, random=True)


def _generate_trace(
    kind: str, duration_s: float, rng: np.random.Generator, arguments: dict[str, Any], by_seconds: bool = False
) -> dict[str, Any]:
    """Return a trace and the call that generates it, as fields of `Path`."""
    call = GeneratedTrace(kind, duration_s, int(rng.integers(2**53)), arguments, by_seconds)
    return {"generated": call, "trace": call.trace()}


def _limited_bdp_packets(rate_mbps: float, rtt_ms: float) -> float:
    """Return the bandwidth-delay product in full packets, at most 2**32, which keeps buffers within memory."""
    return min(compute_bdp_packets(rate_mbps, rtt_ms), math.ldexp(1, 32))
