"""Families of paths for training and evaluating senders, each a distribution over worlds.

A path has one service, the way in which its bottleneck delivers, and any number of further conditions. A family is named after
the one property that its worlds have; a share of them (`mixed_probability`) has a property of another family as well. Where
that is another service, the order of precedence is: outages before jitter, and jitter before steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios.catalogue import parse_congestion_control, sender_controls
from netbuf_gym.scenarios.delays import handovers, leo_delays, route_change
from netbuf_gym.scenarios.distributions import SENDERS, SHARE, Distribution, check_interval, interval, log_uniform
from netbuf_gym.scenarios.fields import check_fields, choice, number, rule, text
from netbuf_gym.scenarios.impairments import DelaySchedule
from netbuf_gym.scenarios.limits import MAX_DELAY_MS, MAX_DURATION_S, compute_bdp_packets
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.congestion_window.paths import GeneratedTrace, Path, PathWorld, RivalFlow
from netbuf_gym.traces.types import RateTrace
from netbuf_gym.utils import checks

SERVICES = {
    "fixed": "one rate throughout",
    "steps": "a rate that changes at random moments",
    "jitter": "service that jitters within a round trip",
    "cellular": "generated traces of 4G, 5G, Wi-Fi and wired networks",
    "outages": "a rate that is gone for 0.3 to 10 s, once or more often, the queue held or dropped",
}
"""Ways in which a bottleneck delivers."""
CONDITIONS = {
    "loss": "random loss of data packets",
    "delays": "propagation that changes: one step up or down, handovers, satellites",
    "reverse": "traffic on the way back",
    "rivals": "one to three flows of other congestion controls over the same bottleneck",
    "agents": "two to eight senders that share a bottleneck and start one after the other",
}
"""Further conditions on a sender's path."""
FAMILIES = SERVICES | CONDITIONS

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


def default_rivals() -> tuple[str, ...]:
    """Return the congestion controls of rivals where none are named."""
    return tuple(name for name in sender_controls("linux") if name not in (*EXCLUDED_RIVALS, *LATER_RIVALS))


def _check_networks(label: str, value: object) -> tuple[str, ...]:
    networks = checks.sequence(label, value, "names")
    return tuple(checks.choice(f"{label}[{i}]", network, NETWORKS) for i, network in enumerate(networks))


def _check_stagger(label: str, value: object) -> tuple[float, float]:
    if not isinstance(value, bool) and value in (0, (0, 0), [0, 0]):
        return 0.0, 0.0
    return check_interval(label, value, MAX_DURATION_S)


@dataclass(frozen=True, kw_only=True)
class SenderPaths(Distribution):
    """Distribution over the worlds of one family, each path with its own rate, round trip and buffer.

    Several senders share a path in the family `agents`; in the others each has its own path, all in one world, so that an
    environment of any number of agents can be trained on them.

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
        mixed_probability: Share of the paths that also have a property of another family, 0 to 1.
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
    mixed_probability: float = field(default=0.2, metadata=SHARE)
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
        first_mbps = log_uniform(places[0][0], self.rate_mbps)
        duration_s = self._choose_duration(first_mbps, rtts[0])
        most_mbps = float(np.clip(self.most_mbit / duration_s, *self.rate_mbps))  # limit for other paths of the same duration
        rates = [first_mbps, *(log_uniform(one[0], (self.rate_mbps[0], most_mbps)) for one in places[1:])]
        paths = [
            self._draw_path(rng, size, rate, rtt, log_uniform(one[2], self.buffer_bdp), duration_s)
            for size, rate, rtt, one in zip(sizes, rates, rtts, places, strict=True)
        ]
        return PathWorld(family=self.family, duration_s=duration_s, paths=paths)

    def _draw_sizes(self, rng: np.random.Generator) -> list[int]:
        """Return the number of senders on each path."""
        left, sizes = len(self.senders), []
        while left:
            most = min(left, 8)
            size = int(rng.integers(min(2, most), most + 1)) if self.family == "agents" else 1
            sizes.append(size)
            left -= size
        return sizes

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
            others = [name for name in FAMILIES if name not in (self.family, "agents", "cellular")]
            has.add(others[int(rng.integers(len(others)))])
        if size > 1 and self.rivals_probability and rng.random() < self.rivals_probability:
            has.add("rivals")
        service = next((name for name in ("cellular", "outages", "jitter", "steps") if name in has), "fixed")
        what = self._draw_service(rng, service, rate_mbps, duration_s)
        trace = what.get("trace")
        mean_mbps = rate_mbps if trace is None else trace.mean_mbps(duration_s)
        if "loss" in has:
            what["loss"] = log_uniform(rng.random(), self.loss)
        if "delays" in has:
            what["delays"] = self._draw_delays(rng, rtt_ms, duration_s)
        if self.jitter_probability and rng.random() < self.jitter_probability:
            what["jitter_ms"] = log_uniform(rng.random(), (0.2, max(0.2, min(30.0, rtt_ms / 2))))
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
        rate_mbps = max(mean_mbps * log_uniform(rng.random(), (0.1, 1.0)), 0.25)
        rate_mbps = max(min(rate_mbps, MAX_RETURN_MBPS), LEAST_RETURN_SHARE * mean_mbps)
        buffer = max(10, round(log_uniform(rng.random(), (0.5, 4.0)) * _limited_bdp_packets(rate_mbps, rtt_ms)))
        flows = tuple(
            RivalFlow("cubic" if rng.random() < 0.6 else self._draw_competitor(rng), float(rng.uniform(0, 0.4)) * duration_s)
            for _ in range(1 + (rng.random() < 0.25))
        )
        return {"return_mbps": rate_mbps, "return_packets": buffer, "reverse": flows}

    def _draw_rivals(self, rng: np.random.Generator, duration_s: float) -> tuple[RivalFlow, ...]:
        """Return one to three rivals that start at once or later; some of them leave."""
        made = []
        for _ in range(1 if rng.random() < 0.7 else int(rng.integers(2, 4))):
            cc, u = self._draw_competitor(rng), rng.random(4)
            start_s = 0.0 if u[0] < 0.5 else 0.4 * float(u[1]) * duration_s
            stop_s = start_s + (0.2 + 0.6 * float(u[2])) * (duration_s - start_s) if u[3] < self.leave_probability else None
            made.append(RivalFlow(cc, start_s, stop_s))
        return tuple(made)

    def _draw_competitor(self, rng: np.random.Generator) -> Any:
        assert self.competitors is not None  # set in __post_init__
        return self.competitors[int(rng.integers(len(self.competitors)))]


def _generate_trace(
    kind: str, duration_s: float, rng: np.random.Generator, arguments: dict[str, Any], by_seconds: bool = False
) -> dict[str, Any]:
    """Return a trace and the call that generates it, as fields of `Path`."""
    call = GeneratedTrace(kind, duration_s, int(rng.integers(2**53)), arguments, by_seconds)
    return {"generated": call, "trace": call.trace()}


def _limited_bdp_packets(rate_mbps: float, rtt_ms: float) -> float:
    """Return the bandwidth-delay product in full packets, at most 2**32, which keeps buffers within memory."""
    return min(compute_bdp_packets(rate_mbps, rtt_ms), math.ldexp(1, 32))
