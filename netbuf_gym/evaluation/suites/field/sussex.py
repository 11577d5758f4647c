"""Experiments of the Sussex testbeds of 2024 and 2025: fairness, friendliness, efficiency, responsiveness.

Worlds are Mininet's dumbbells with netem before a token bucket. netem delays only data, by the whole round trip, and loses
before the queue; buffers are multiples of rate * 2^20 * RTT / 8 bytes. Behind it a token bucket (tbf) holds back what exceeds
its rate, and passes a burst at once: the data that arrives in 42 ms at that rate. Where the bucket's rate changes, and where it
holds another discipline, it is a plain rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from random import Random
from typing import Any, NamedTuple

import numpy as np

from netbuf_gym.evaluation.suites.field.suite import (
    SENDER,
    Column,
    FieldCell,
    FieldSuite,
    OmittedWorlds,
    Report,
    Results,
    Sign,
    Table,
    derive_seed,
    make_loader,
    rank_controllers,
)
from netbuf_gym.evaluation.suites.recorder import Record, finite_mean
from netbuf_gym.evaluation.suites.suite import Metric
from netbuf_gym.scenarios import DelaySchedule, Flow, Link, LossSchedule, Route, Scenario
from netbuf_gym.scenarios.types import AGENT
from netbuf_gym.traces import RateTrace
from netbuf_gym.utils import statistics

Measure = Callable[[Record], dict[str, float]]
Window = tuple[float, float]
"""Start and end, seconds."""
LEAST_MBPS = 1.0
"""Least goodput that a flow counts with in R3."""
METRICS = (
    Metric("score", "score", 3, "what the family is about, below, on a scale of which 1 is best: fairness, "
           "friendliness as the smaller over the larger, efficiency, or goodput over the mean capacity"),
    Metric("use", "goodput / rate (%)", 1, "goodput of all over what the link can carry", 100),
    Metric("inflation", "RTT / base", 2, "mean round-trip time over the least possible one; after a jump, over the new "
           "path's"),
    Metric("queue_ms", "queue (ms)", 1, "mean time of packets at the bottleneck, over the whole world"),
    Metric("fairness_r1", "R1", 3, "smallest over largest goodput, mean over seconds"),
    Metric("fairness_r1_end", "R1, end", 3, "the same over the last part: d/4 s; 25 s of the worlds of many rates; "
           "100 to 199 s of outages over satellites"),
    Metric("friendliness_r2", "R2", 3, "(smaller + 1) / (larger + 1) of the goodputs in Mbit/s, mean over seconds"),
    Metric("friendliness_r2_end", "R2, end", 3, "the same over the last part"),
    Metric("friendliness_r3", "R3", 3, "goodput over the CUBIC flow's, both at least 1 Mbit/s, mean over seconds"),
    Metric("friendliness_r4", "R4", 3, "goodput over the mean of the CUBIC flows', mean over seconds"),
    Metric("second_share", "second flow (%)", 1, "what the second of two flows has of their goodput, over the family's "
           "window; 50 is even", 100),
    Metric("spine_r5", "R5", 3, "goodput of the flow over all hops over the largest of the others', mean over seconds"),
    Metric("fairness_before", "R1, apart", 3, "R1 of four flows on two bottlenecks, two on each"),
    Metric("fairness_moved", "R1, moved", 3, "R1 while all four share the first one"),
    Metric("fairness_after", "R1, back", 3, "R1 once two of them are back on the second one"),
    Metric("efficiency_e1", "E1", 3, "goodput over rate, over RTT / base, mean over seconds"),
    Metric("efficiency_e2", "E2", 3, "the same of goodput less what was sent again"),
    Metric("adaptation_g", "G", 3, "goodput over the mean capacity"),
    Metric("retransmitted_mbps", "X (Mbit/s)", 2, "segments that were sent again"),
    Metric("converge_s", "convergence (s)", 1, "until a flow stays within 20 % of its share for 5 s, mean of flows"),
)  # fmt: skip


@dataclass(frozen=True)
class Score:
    """Score of a family.

    Attributes:
        key: Key of the metric.
        ratio: Whether the metric is a ratio that is best at 1 and symmetric around it; else more is better.
    """

    key: str
    ratio: bool = False

    def score_world(self, found: Mapping[str, float]) -> float:
        """Return a world's score, at most 1, which is best; NaN if its metric is."""
        value = found[self.key]
        if self.ratio and value > 1:
            return 1 / value
        return min(value, 1.0) if math.isfinite(value) else math.nan

    def to_rank_values(self, values: np.ndarray) -> np.ndarray:
        """Return the values that the ranking averages: for a ratio |ln|, at most ln 100, so that both sides weigh alike."""
        return np.abs(np.log(np.clip(values, 0.01, 100))) if self.ratio else values


R1, R2, R5 = Score("fairness_r1"), Score("friendliness_r2"), Score("spine_r5")
R3, R4 = Score("friendliness_r3", ratio=True), Score("friendliness_r4", ratio=True)
E1, G = Score("efficiency_e1"), Score("adaptation_g")


def compute_goodputs(record: Record, start: float, end: float) -> np.ndarray:
    """Return the goodput of each flow in each second, Mbit/s, `(flows, seconds)`."""
    times = np.linspace(start, end, max(2, round(end - start) + 1))
    return np.stack([record.goodput_mbps(i, times) for i in range(len(record.scenario.flows))])


def ratio(part: np.ndarray, whole: np.ndarray) -> float:
    """Return the mean of a ratio over the seconds in which its denominator is above 0; NaN without any."""
    known = whole > 0
    return float((part[known] / whole[known]).mean()) if known.any() else math.nan


def _r1(each: np.ndarray) -> float:
    return ratio(each.min(axis=0), each.max(axis=0))


def _r2(each: np.ndarray) -> float:
    return float(((each.min(axis=0) + 1) / (each.max(axis=0) + 1)).mean())


def _second_share(each: np.ndarray) -> float:
    """Return the second of two flows' share of their goodput; NaN if both have none."""
    both = float(each.sum())
    return float(each[1].sum()) / both if both > 0 else math.nan


def measure_fairness(start: float, end: float, last: Window | None = None) -> Measure:
    """Return a measure of two flows: R1, smaller over larger goodput, the second flow's share, optionally R1 of a last part."""

    def measure(record: Record) -> dict[str, float]:
        each = compute_goodputs(record, start, end)
        found = {"fairness_r1": _r1(each), "second_share": _second_share(each)}
        return found if last is None else {**found, "fairness_r1_end": _r1(compute_goodputs(record, *last))}

    return measure


def measure_friendliness(start: float, end: float, last: Window) -> Measure:
    """Return a measure of two flows: R2, also over a last part, R3, and the second flow's share.

    R3 is the goodput of the second flow, the scheme's, over that of the first, CUBIC's; less than 1 Mbit/s counts as 1 Mbit/s,
    as in the testbed's plots.
    """

    def measure(record: Record) -> dict[str, float]:
        each = compute_goodputs(record, start, end)
        return {
            "friendliness_r2": _r2(each),
            "friendliness_r2_end": _r2(compute_goodputs(record, *last)),
            "friendliness_r3": ratio(*np.maximum(each, LEAST_MBPS)[::-1]),
            "second_share": _second_share(each),
        }

    return measure


def measure_against_cubic(record: Record) -> dict[str, float]:
    """Return R4: the first flow's goodput, the scheme's, over the mean of the CUBIC flows'."""
    each = compute_goodputs(record, 45, 59)
    return {"friendliness_r4": ratio(each[0], each[1:].mean(axis=0))}


def measure_spine(start: float, end: float) -> Measure:
    """Return a measure of R5: the goodput of the first flow, over all hops, over the largest of the others'."""

    def measure(record: Record) -> dict[str, float]:
        each = compute_goodputs(record, start, end)
        return {"spine_r5": ratio(each[0], each[1:].max(axis=0))}

    return measure


def measure_phases(moved_s: float, back_s: float, rate_mbps: float) -> Measure:
    """Return a measure of R1 in three phases, and its mean: flows apart on two bottlenecks, all on one, apart again."""

    def measure(record: Record) -> dict[str, float]:
        end = record.scenario.duration_s
        windows = ((0.0, moved_s), (moved_s, back_s), (back_s, end))
        before, moved, after = (_r1(compute_goodputs(record, *window)) for window in windows)
        offered = rate_mbps * (2 * end - (back_s - moved_s))  # by two links, and by one while all share it
        used = end * sum(float(record.goodput_mbps(i, (0.0, end))[0]) for i in range(len(record.scenario.flows)))
        return {
            "fairness_r1": finite_mean([before, moved, after]),
            "fairness_before": before,
            "fairness_moved": moved,
            "fairness_after": after,
            "use": used / offered,
        }

    return measure


def _measure_joint(record: Record, windows: Sequence[Window]) -> dict[str, float]:
    """Return E1, E2: goodput of all flows over the rate, E2 less retransmissions, over mean RTT / base RTT; and both parts.

    E1 and E2 are means over seconds; a second without a measured round trip, as nothing comes back, counts as 0. A flow counts
    within its window.
    """
    start, end = windows[0][0], windows[-1][1]
    times = np.arange(start, end + 1)
    capacity = float(record.capacity_mbps((start, end))[0])
    used, again = np.zeros(len(times) - 1), np.zeros(len(times) - 1)
    rtts = np.full((len(windows), len(times) - 1), np.nan)
    for i, window in enumerate(windows):
        inside = (times[:-1] >= window[0]) & (times[1:] <= window[1])
        used += np.where(inside, record.goodput_mbps(i, times), 0)
        again += np.where(inside, record.retransmitted_mbps(i, times), 0)
        rtts[i] = np.where(inside, record.rtt_ms(i, times), np.nan) / record.scenario.base_rtt_ms(i)
    slower = np.nan_to_num([finite_mean(second) for second in rtts.T], nan=np.inf)
    whole = [record.rtt_ms(i, window)[0] / record.scenario.base_rtt_ms(i) for i, window in enumerate(windows)]
    return {
        "use": float(used.mean()) / capacity,
        "inflation": finite_mean(whole),
        "efficiency_e1": float((used / capacity / slower).mean()),
        "efficiency_e2": float(((used - again) / capacity / slower).mean()),
    }


def measure_efficiency(windows: Sequence[Window], rate_mbps: float) -> Measure:
    """Return a measure of flows that come and go, each in its window: E1, E2, and the first four's mean time to a share."""

    def measure(record: Record) -> dict[str, float]:
        step, times = windows[1][0] - windows[0][0], []
        for k, (start, _) in enumerate(windows[:4]):
            each = compute_goodputs(record, start, start + step)
            share = rate_mbps / (k + 1)
            near = np.abs(each[k] - share) <= 0.2 * share
            held = [t for t in range(len(near) - 4) if near[t : t + 5].all()]
            times.append(float(held[0]) if held else step)
        return {**_measure_joint(record, windows), "converge_s": float(np.mean(times))}

    return measure


def measure_solo(start: float = 0.0, base_ms: float | None = None) -> Measure:
    """Return a measure of a flow that is alone, from `start` on: G, goodput over the mean capacity, and X, retransmissions.

    Args:
        base_ms: Least round trip from then on; None: that of the whole world.
    """

    def measure(record: Record) -> dict[str, float]:
        whole = (start, record.scenario.duration_s)
        used = float(record.goodput_mbps(0, whole)[0]) / float(record.capacity_mbps(whole)[0])
        return {
            "adaptation_g": used,
            "retransmitted_mbps": float(record.retransmitted_mbps(0, whole)[0]),
            "use": used,
            "inflation": float(record.rtt_ms(0, whole)[0]) / (base_ms or record.scenario.base_rtt_ms(0)),
        }

    return measure


def measure_common(record: Record) -> dict[str, float]:
    """Return the metrics of every world: use of its bottleneck, time of packets there, the controller's round trip."""
    scenario = record.scenario
    times, link = (0.0, scenario.duration_s), scenario.bottleneck
    crossing = [i for i, flow in enumerate(scenario.flows) if link in flow.path]
    own = [i for i, flow in enumerate(scenario.flows) if flow.cc == "agent"]
    used = sum(float(record.goodput_mbps(i, times)[0]) for i in crossing)
    return {
        "use": used / float(record.capacity_mbps(times, link)[0]),
        "inflation": finite_mean([record.rtt_ms(i, times)[0] / scenario.base_rtt_ms(i) for i in own]),
        "queue_ms": float(record.queue_ms(times, link)[0]),
    }


RATE = 100.0
PEAK_MBPS = 10_000.0
"""Rate at which a burst leaves (ours): Mininet's pairs of devices have no rate of their own."""
DELAYS_MS, QUEUES = tuple(range(10, 101, 10)), (0.2, 1, 4)
DISCIPLINES: dict[str, dict[str, Any]] = {"codel": {"ecn": False}, "fq_codel": {"flows": 100}}
"""Disciplines behind which efficiency is measured, as `tc` sets them up: without an ECN option CoDel marks nothing."""
ORBIT_S = np.arange(0.0, 300.0, 15.0)
"""Times at which the paths of satellites are drawn anew."""
Place = tuple[str, float, float]
"""Control of a flow, its start and its stop."""
Worlds = Iterator["World"]


class World(NamedTuple):
    """World of an experiment: its name there, scenario, measure, and parameters."""

    name: str
    scenario: Scenario
    measure: Measure
    about: dict[str, Any]


@dataclass(frozen=True)
class Testbed:
    """Differences between the two testbeds in the experiments that both have.

    Attributes:
        rates: Rates of the experiment on fairness over rates, Mbit/s.
        friendly: Start and end of the window that friendliness is scored in, in seconds per ms of one-way delay.
        inverse_ms, efficient_ms: One-way delays of the inverse of friendliness, and of efficiency.
        fixed_buffer: Buffer in bytes of worlds whose rate is drawn anew.
    """

    rates: Sequence[int]
    friendly: tuple[float, float]
    inverse_ms: Sequence[int]
    efficient_ms: Sequence[int]
    fixed_buffer: int


# ---- paths


def buffer_bytes(rate_mbps: float, rtt_ms: float, q: float) -> int:
    """Return a multiple of what the path holds, as the testbed computes it: at least a packet."""
    return max(1500, int(q * rate_mbps * 2**20 * rtt_ms * 1e-3 / 8))


def burst_bytes(rate_mbps: float) -> int:
    """Return the size of the burst that the testbed lets its bucket pass at once."""
    return int(10 * rate_mbps * 2**20 / 250 / 8)


def make_bucket(rate_mbps: float, queue_bytes: int, name: str = "bottleneck") -> Link:
    """Return a tbf link: a queue before tokens that arrive at a rate."""
    tokens = {"name": "tbf", "rate_mbps": rate_mbps, "burst_bytes": burst_bytes(rate_mbps)}
    return Link(name=name, rate_mbps=PEAK_MBPS, queue_bytes=queue_bytes, discipline=tokens)


def make_dumbbell(
    bottleneck: Link,
    rtts: Sequence[Any],
    places: Sequence[Place],
    duration_s: float,
    name: str,
    *,
    loss: Any = 0.0,
    back: Link | None = None,
) -> Scenario:
    """Return a scenario of flows through netem and a bottleneck, with one round trip for all or one for each.

    Args:
        rtts: ms or schedules; one for all flows, or one per flow.
        loss: Loss at netem, before the queue, of data only.
        back: Return path; None: one without limit or delay.
    """
    ways = [Link(name=f"netem-{k}", delay_ms=rtt, loss=loss) for k, rtt in enumerate(rtts)]
    links = [bottleneck, back or Link(name="return"), *ways]
    flows = [
        Flow(cc=cc, path=(2 + (k if len(rtts) > 1 else 0), 0), return_path=(1,), start_s=start, stop_s=stop)
        for k, (cc, start, stop) in enumerate(places)
    ]
    return Scenario(links=links, flows=flows, duration_s=duration_s, name=name)


def _make_bucket_world(
    name: str,
    rtts_ms: Sequence[Any],
    q: float,
    places: Sequence[Place],
    duration_s: float,
    measure: Measure,
    about: dict[str, Any],
    *,
    rate: float = RATE,
    held_ms: float | None = None,
) -> World:
    """Return a world of flows through a bucket, with a buffer of q times what a path of `held_ms` holds; None: the longest."""
    link = make_bucket(rate, buffer_bytes(rate, max(rtts_ms) if held_ms is None else held_ms, q))
    return World(name, make_dumbbell(link, rtts_ms, places, duration_s, name), measure, about)


def make_parking_lot(switches: int, rtt_ms: float, queue_bytes: int, duration_s: float, name: str) -> Scenario:
    """Return a scenario of a flow over all hops, and one over each hop, all of one round trip."""
    hops = switches - 1
    links = [make_bucket(RATE, queue_bytes, f"hop-{k}") for k in range(hops)]
    links += [Link(name="netem", delay_ms=rtt_ms), Link(name="return")]
    late, whole = duration_s / 4, duration_s
    spine = Flow(cc=AGENT, path=(hops, *range(hops)), return_path=(hops + 1,), start_s=late, stop_s=whole)
    ribs = [Flow(cc=AGENT, path=(hops, k), return_path=(hops + 1,), stop_s=whole) for k in range(hops)]
    return Scenario(links=links, flows=[spine, *ribs], duration_s=duration_s, name=name)


def make_crossing(
    rtts_ms: tuple[float, float], queues: tuple[int, int], moved_s: float, back_s: float, duration_s: float, name: str
) -> Scenario:
    """Return a scenario of two flows over each of two buckets, of which the second pair uses the first bucket for a while.

    Routes change before netem, so they do so a round trip earlier, for the data sent then.
    """
    links = [make_bucket(RATE, queues[0]), make_bucket(RATE, queues[1], "second")]
    links += [*(Link(name=f"netem-{k}", delay_ms=rtt) for k, rtt in enumerate(rtts_ms)), Link(name="return")]
    first, second, back = (2, 0), (3, 1), (4,)
    early = rtts_ms[1] * 1e-3
    moves = [
        Route(at_s=moved_s - early, path=(3, 0), return_path=back),
        Route(at_s=back_s - early, path=second, return_path=back),
    ]
    flows = [Flow(cc=AGENT, path=first, return_path=back, stop_s=duration_s) for _ in range(2)]
    flows += [Flow(cc=AGENT, path=second, return_path=back, stop_s=duration_s, routes=moves) for _ in range(2)]
    return Scenario(links=links, flows=flows, duration_s=duration_s, name=name)


def _make_loss_schedule(starts: np.ndarray, lasts: np.ndarray) -> LossSchedule:
    """Return a schedule in which everything is lost in these intervals."""
    edges = np.stack([starts, starts + lasts], axis=1).ravel()
    return LossSchedule([0.0, *edges], [0.0, *([1.0, 0.0] * len(starts))])


def _make_outages(link: Link, rate: RateTrace, starts: np.ndarray, lasts: np.ndarray) -> tuple[Link, Link]:
    """Return a link of this rate that is down in these intervals, and its return path: queued and arriving packets are lost."""
    edges = np.stack([starts, starts + lasts], axis=1).ravel()
    times = np.union1d(rate.time_s, edges)
    rates = rate.rate_mbps[np.searchsorted(rate.time_s, times, side="right") - 1]
    within = (np.searchsorted(edges, times, side="right") % 2).astype(bool)
    trace = RateTrace(times, np.where(within, 0.0, rates))
    ahead = replace(link, rate_mbps=None, trace=trace, on_outage="drop", outage_ms=1)
    return ahead, Link(name="return", loss=_make_loss_schedule(starts, lasts), loss_on_acks=True)


# ---- fairness


def _make_two_flows(d: float, first: str = AGENT, second: str = AGENT) -> list[Place]:
    """Return two flows, the second from a quarter of the time on."""
    return [(first, 0.0, 4 * d), (second, float(d), 4 * d)]


def _get_last_window(d: int) -> Window:
    """Return the last part of the flows' time, which the plots of 2024 show."""
    return 4 * d - d // 4, 4 * d


RATES_S = 100.0
"""Duration of worlds over many rates, at which their first flow stops; the second one's 50 s alone would not be scored."""


def _two_over_rates(first: str = AGENT) -> list[Place]:
    """Return two flows, the second from 25 s on."""
    return [(first, 0.0, RATES_S), (AGENT, 25.0, RATES_S)]


def _two_rtts(testbed: Testbed, run: int, first_ms: Sequence[int] = ()) -> Worlds:
    """Yield worlds of two flows; both have one round trip, unless the first has another."""
    for d, q in product(DELAYS_MS, QUEUES):
        measure, about = measure_fairness(d, 4 * d, _get_last_window(d)), {"d": d, "q": q}
        yield _make_bucket_world(f"{d}ms-{q}", [*first_ms, 2 * d], q, _make_two_flows(d), 4 * d, measure, about)


def _rates(testbed: Testbed, run: int) -> Worlds:
    measure = measure_fairness(25, RATES_S, (75, RATES_S))
    for rate, q in product(testbed.rates, QUEUES):
        about = {"rate": rate, "q": q}
        yield _make_bucket_world(f"{rate}mbps-{q}", [40], q, _two_over_rates(), RATES_S, measure, about, rate=rate)


def _wide(testbed: Testbed, run: int) -> Worlds:
    for rate, r in product((20, 60, 100, 140, 180), DELAYS_MS):
        name, places = f"{rate}mbps-{r}ms", [(AGENT, 0.0, 2.0 * r), (AGENT, r / 2, 2.0 * r)]
        yield _make_bucket_world(name, [r], 1, places, 2 * r, measure_fairness(r / 2, 2 * r), {"rate": rate, "r": r}, rate=rate)


def _parking_lots(testbed: Testbed, run: int) -> Worlds:
    lots = [(4, q) for q in QUEUES] + [(n, 1) for n in (3, 5, 6)]
    for (n, q), d in product(lots, DELAYS_MS):
        name = f"{n}switches-{d}ms-{q}"
        scenario = make_parking_lot(n, 2 * d, buffer_bytes(RATE, 2 * d, q), 4 * d, name)
        yield World(name, scenario, measure_spine(3 * d, 4 * d), {"d": d, "q": q, "switches": n})


def _cross_intra(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds of two pairs of 40 ms; the first bucket's buffer is of 50 ms, as in the testbed's script."""
    for d, q in product((20,), QUEUES):
        name, queues = f"{d}ms-{q}", (buffer_bytes(RATE, 50, q), buffer_bytes(RATE, 2 * d, q))
        scenario = make_crossing((2 * d, 2 * d), queues, 4 * d, 8 * d, 12 * d, name)
        yield World(name, scenario, measure_phases(4 * d, 8 * d, RATE), {"d": d, "q": q})


def _cross_inter(testbed: Testbed, run: int) -> Worlds:
    for d, q in product(range(5, 51, 5), QUEUES):
        name, queues = f"{d}ms-{q}", (buffer_bytes(RATE, 50, q), buffer_bytes(RATE, 2 * d, q))
        scenario = make_crossing((50, 2 * d), queues, 100, 200, 300, name)
        yield World(name, scenario, measure_phases(100, 200, RATE), {"d": d, "q": q})


# ---- friendliness


def _friendly(testbed: Testbed, run: int) -> Worlds:
    start, end = testbed.friendly
    for d, q in product(DELAYS_MS, QUEUES):
        measure = measure_friendliness(start * d, end * d, _get_last_window(d))
        yield _make_bucket_world(f"{d}ms-{q}", [2 * d], q, _make_two_flows(d, "cubic"), 4 * d, measure, {"d": d, "q": q})


def _inverse(testbed: Testbed, run: int) -> Worlds:
    start, end = testbed.friendly
    for d, q in product(testbed.inverse_ms, QUEUES):
        measure, flows = measure_fairness(start * d, end * d), _make_two_flows(d, AGENT, "cubic")
        yield _make_bucket_world(f"{d}ms-{q}", [2 * d], q, flows, 4 * d, measure, {"d": d, "q": q})


def _friendly_rates(testbed: Testbed, run: int) -> Worlds:
    measure = measure_friendliness(25, RATES_S, (75, RATES_S))
    for rate, q in product(testbed.rates, QUEUES):
        about = {"rate": rate, "q": q}
        yield _make_bucket_world(f"{rate}mbps-{q}", [40], q, _two_over_rates("cubic"), RATES_S, measure, about, rate=rate)


def _many_cubic(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds of the controller and CUBIC flows that start within 15 s, drawn with the seed run * number of flows."""
    for n, q in product(range(2, 21, 2), QUEUES):
        draw = Random(run * (n + 1))
        places = [(AGENT, 0.0, 60.0), *(("cubic", float(draw.randint(1, 15)), 60.0) for _ in range(n))]
        yield _make_bucket_world(f"{n}cubic-{q}", [30], q, places, 60, measure_against_cubic, {"n": n, "q": q})


# ---- efficiency


def _efficient(testbed: Testbed, run: int) -> Worlds:
    windows = [(25.0 * i, 25.0 * i + 100) for i in range(4)]
    places = [(AGENT, *window) for window in windows]
    for d, q in product(testbed.efficient_ms, QUEUES):
        measure, about = measure_efficiency(windows, RATE), {"d": d, "q": q}
        yield _make_bucket_world(f"{d}ms-{q}", [2 * d], q, places, 175, measure, about)


def _managed_queues(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds of five such flows behind each of the disciplines; delays and buffers are ours."""
    windows = [(25.0 * i, 25.0 * i + 125) for i in range(5)]
    for (aqm, how), d, q in product(DISCIPLINES.items(), (10, 100), QUEUES):
        name, packets = f"{aqm}-{d}ms-{q}", buffer_bytes(RATE, 2 * d, q) // 1500
        link = Link(name="bottleneck", rate_mbps=RATE, queue_packets=packets, discipline={"name": aqm, **how})
        scenario = make_dumbbell(link, [2 * d], [(AGENT, *w) for w in windows], 225, name)
        yield World(name, scenario, measure_efficiency(windows, RATE), {"d": d, "q": q, "aqm": aqm})


# ---- paths that change


def _responsive(testbed: Testbed, run: int) -> Worlds:
    """Yield a world of rate and round trip drawn anew every 10 s; the run's number is the seed of the draws."""
    draw, times = Random(run), np.arange(0.0, 300.0, 10.0)
    rates_mbps, rtts = zip(*((draw.randint(1, 100), draw.randint(20, 200)) for _ in times), strict=True)
    yield _make_drawn_world(testbed, run, RateTrace(times, rates_mbps), DelaySchedule(times, rtts, reorder=True))


def _responsive_loss(testbed: Testbed, run: int) -> Worlds:
    draw, times = Random(run), np.arange(0.0, 300.0, 10.0)
    rates_mbps, losses = zip(*((draw.randint(1, 100), round(draw.uniform(0, 5), 2) / 100) for _ in times), strict=True)
    yield _make_drawn_world(testbed, run, RateTrace(times, rates_mbps), 100, LossSchedule(times, losses))


def _make_drawn_world(testbed: Testbed, run: int, trace: RateTrace, rtt: Any, loss: Any = 0.0) -> World:
    """Return a world of a flow alone for 300 s, over a rate that changes."""
    link = Link(name="bottleneck", trace=trace, queue_bytes=testbed.fixed_buffer)
    return World("draw", make_dumbbell(link, [rtt], [(AGENT, 0.0, 300.0)], 300, f"{run}", loss=loss), measure_solo(), {})


def _draw_orbit(draw: Random) -> tuple[int, int, float]:
    """Return a satellite's path: Mbit/s, round trip in ms, loss."""
    return draw.randint(50, 100), draw.randint(5, 100), round(draw.uniform(0, 1), 2) / 100


def _draw_orbit_and_outage(draw: Random) -> tuple[int, int, float, float]:
    """Return a satellite's path, and the seconds of outage before it, which only the scripts with outages draw."""
    return *_draw_orbit(draw), draw.randint(45, 120) * 1e-3


def _make_schedules(paths: Sequence[Sequence[float]]) -> tuple[RateTrace, DelaySchedule, LossSchedule]:
    """Return rate, round trip and loss of a flow's successive paths over satellites."""
    rates_mbps, rtts, losses, *_ = zip(*paths, strict=True)
    return RateTrace(ORBIT_S, rates_mbps), DelaySchedule(ORBIT_S, rtts, reorder=True), LossSchedule(ORBIT_S, losses)


def _leo(testbed: Testbed, run: int, lossy: bool = False) -> Worlds:
    draw = Random(run)
    trace, rtt, loss = _make_schedules([_draw_orbit(draw) for _ in ORBIT_S])
    yield _make_drawn_world(testbed, run, trace, rtt, loss if lossy else 0.0)


def _leo_outages(testbed: Testbed, run: int) -> Worlds:
    """Yield a world of paths over satellites with an outage of the bottleneck's link at each change."""
    draw = Random(run)
    paths = [_draw_orbit_and_outage(draw) for _ in ORBIT_S]
    trace, rtt, _ = _make_schedules(paths)
    gone_s = np.array([gone for *_, gone in paths])
    link = Link(name="bottleneck", queue_bytes=testbed.fixed_buffer)
    ahead, back = _make_outages(link, trace, ORBIT_S[1:], gone_s[1:])
    scenario = make_dumbbell(ahead, [rtt], [(AGENT, 0.0, 300.0)], 300, f"{run}", back=back)
    yield World("draw", scenario, measure_solo(), {})


def _leo_inter_rtt(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds of two flows of different round trips, and an outage of the bottleneck's link every 5 s.

    After an outage the bucket is full: none is shorter than its burst takes to arrive (Linux' `tbf_reset` fills the bucket when
    the device goes down).
    """
    for r, q in product(DELAYS_MS, QUEUES):
        name, draw, times = f"{r}ms-{q}", Random(run), np.arange(0.0, 200.0, 5.0)
        gone_s = np.array([_draw_orbit_and_outage(draw)[-1] for _ in times])
        link = make_bucket(RATE, buffer_bytes(RATE, max(10, r), q))
        ahead, back = _make_outages(link, RateTrace([0.0], [PEAK_MBPS]), times[1:], gone_s[1:])
        places = [(AGENT, 0.0, 200.0), (AGENT, 50.0, 200.0)]
        scenario = make_dumbbell(ahead, [10, r], places, 200, name, back=back)
        yield World(name, scenario, measure_fairness(50, 200, (100, 199)), {"r": r, "q": q})


def _handover(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds in which netem's link goes down after every 5 s and loses queued and arriving data, but not the bucket."""
    rtt_ms = 50
    for gone in range(20, 201, 20):
        starts = np.arange(5.0, 99.0, 5.0 + gone * 1e-3)
        lasts, early = np.full(len(starts), gone * 1e-3), rtt_ms * 1e-3
        back = Link(name="return", loss=_make_loss_schedule(starts, lasts), loss_on_acks=True)
        link, lost = make_bucket(RATE, buffer_bytes(RATE, rtt_ms, 1)), _make_loss_schedule(starts - early, lasts + early)
        scenario = make_dumbbell(link, [rtt_ms], [(AGENT, 0.0, 100.0)], 100, f"{gone}ms", loss=lost, back=back)
        yield World(f"{gone}ms", scenario, measure_solo(), {"gone": gone})


def _jump(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds in which the round trip is multiplied at 20 s; what follows is compared with the new one."""
    for r, times in product(DELAYS_MS, (1.5, 2, 3, 4)):
        rtt = DelaySchedule([0, 20], [r, r * times], reorder=True)
        places, measure, about = [(AGENT, 0.0, 50.0)], measure_solo(20.0, r * times), {"r": r, "times": times}
        yield _make_bucket_world(f"{r}ms-{times}", [rtt], 1, places, 50, measure, about, held_ms=r)


STARLINK = {522: 62.7, 408: 49.0, 388: 46.6, 326: 39.1, 582: 69.8, 219: 26.3, 696: 83.6, 740: 88.8}
"""Buffers in packets, and mean round trips in ms, of the paths that LeoEM has logs of. Here each rises second by second from
10 ms under its mean to 10 ms above it, and falls back after 15 s."""


def _starlink(testbed: Testbed, run: int, *, starts: Sequence[float], measure: Measure) -> Worlds:
    """Yield worlds of flows over sawtooth delays, in place of logs that are not stored."""
    for buffer, mean in STARLINK.items():
        rtt = DelaySchedule(np.arange(15.0), mean + np.linspace(-10, 10, 15), period_s=15, reorder=True)
        link = Link(name="bottleneck", rate_mbps=RATE, queue_bytes=1500 * buffer)
        name = f"{mean:g}ms-{len(starts)}"
        yield World(name, make_dumbbell(link, [rtt], [(AGENT, at, 300.0) for at in starts], 300, name), measure, {})


VERSIONS = {2024: 2, 2025: 3}
DRAWS = 50
START_WITHIN_S = 0.1
"""Largest delay of the flows' starts, drawn per run (ours): runs of Mininet are never identical."""
TESTBEDS = {
    2024: Testbed(
        rates=range(10, 101, 10),
        friendly=(1, 4),
        inverse_ms=DELAYS_MS,
        efficient_ms=(10, 100),
        fixed_buffer=131_072,
    ),
    2025: Testbed(
        rates=(*range(10, 101, 10), *range(150, 501, 50)),
        friendly=(3, 4),
        inverse_ms=(50,),
        efficient_ms=(10, 50, 100),
        fixed_buffer=655_360,
    ),
}


@dataclass(frozen=True)
class Experiment:
    """Experiment.

    Attributes:
        key: Name on the command line.
        says: Description.
        make: Returns the worlds of a run, numbered from 1 to `runs`.
        score: Score of the experiment.
        column: Heading of the ranking's column, shared by families of the same heading; None: in no column.
        testbeds: Years of the testbeds that have it; keys are unique within a testbed.
    """

    key: str
    says: str
    make: Callable[[Testbed, int], Worlds]
    score: Score
    column: str | None = None
    testbeds: Sequence[int] = (2025,)
    runs: int = 5

    def cells(self, testbed: Testbed) -> Iterator[FieldCell]:
        """Yield its worlds, run by run, with slightly delayed starts of flows."""
        for run in range(1, self.runs + 1):
            for world in self.make(testbed, run):
                name = f"{self.key}-{world.name}-{run}"
                seed, flows = derive_seed(name), world.scenario.flows
                late = np.random.default_rng(seed).uniform(0, START_WITHIN_S, len(flows)).tolist()
                flows = [replace(flow, start_s=flow.start_s + by) for flow, by in zip(flows, late, strict=True)]
                scenario, about = replace(world.scenario, flows=flows), {**world.about, "run": run}
                yield FieldCell(name, self.key, scenario, seed, measure=world.measure, about=about)


BOTH = (2024, 2025)
FAMILIES = (
    Experiment("intra-rtt", "two flows of one round trip, 20 to 200 ms, 100 Mbit/s, the second a quarter later",
           _two_rtts, R1, "R1, one RTT", BOTH),
    Experiment("inter-rtt", "two flows, one of 20 ms and one of 20 to 200 ms",
           partial(_two_rtts, first_ms=[20]), R1, "R1, several",
           BOTH),
    Experiment("rates", "two flows on 10 Mbit/s and more, 40 ms", _rates, R1, "R1, rates", BOTH),
    Experiment("friendly", "the controller joins a CUBIC flow", _friendly, R2, "R2", (2024,)),
    Experiment("friendly", "the controller joins a CUBIC flow", _friendly, R3, "|ln R3|, R4"),
    Experiment("inverse", "a CUBIC flow joins the controller", _inverse, R1, None, BOTH),
    Experiment("friendly-rates", "the controller joins a CUBIC flow, 10 to 100 Mbit/s, 40 ms", _friendly_rates, R2,
           "R2", (2024,)),
    Experiment("many-cubic", "the controller and 2 to 20 CUBIC flows that come in 15 s", _many_cubic, R4,
           "|ln R3|, R4"),
    Experiment("efficiency", "four flows that join every 25 s and leave so", _efficient, E1, "E1", BOTH),
    Experiment("aqm", "five such flows behind CoDel and FQ-CoDel, q = 0.2, 1, 4", _managed_queues, E1),
    Experiment("parking-lot", "one flow over two to five hops, another over each hop", _parking_lots, R5, "R5"),
    Experiment("cross-intra", "two pairs of 40 ms; the second is moved to the first one's bottleneck, and back",
           _cross_intra, R1, "R1, cross paths"),
    Experiment("cross-inter", "the same of 50 ms, and 10 to 100 ms", _cross_inter, R1, "R1, cross paths"),
    Experiment("handover", "one flow; every 5 s a link before the bottleneck is down for 20 to 200 ms", _handover, G,
           "G, handover"),
    Experiment("jump", "one flow whose round trip is multiplied by 1.5 to 4 at 20 s", _jump, G),
    Experiment("leo-inter-rtt", "two flows of different round trips, outages of 45 to 120 ms every 5 s",
           _leo_inter_rtt, R1),
    Experiment("wide", "two flows of one round trip on 20 to 180 Mbit/s, 10 to 100 ms", _wide, R1, runs=3),
    Experiment("responsive", "rate (1 to 100 Mbit/s) and round trip (20 to 200 ms) drawn anew every 10 s",
           _responsive, G, "G, responsive", BOTH, DRAWS),
    Experiment("responsive-loss", "rate and random loss (0 to 5 %) drawn anew every 10 s", _responsive_loss, G,
           "G, loss", BOTH, DRAWS),
    Experiment("leo", "rate (50 to 100 Mbit/s) and round trip (5 to 100 ms) drawn anew every 15 s", _leo, G,
           "G, LEO", runs=DRAWS),
    Experiment("leo-loss", "the same, with random loss of 0 to 1 %", partial(_leo, lossy=True), G, "G, LEO", runs=DRAWS),
    Experiment("leo-outages", "the same, with an outage of 45 to 120 ms at each change", _leo_outages, G, "G, LEO",
           runs=DRAWS),
    Experiment("starlink", "sawtooth delays with the means of eight Starlink paths, for logs that are not stored: one flow",
           partial(_starlink, starts=[0.0], measure=measure_solo()), G, runs=1),
    Experiment("starlink-two", "the same with two flows",
           partial(_starlink, starts=[0.0, 100.0], measure=measure_fairness(100, 300)), R1, runs=1),
)  # fmt: skip
"""Every experiment of either testbed."""


def get_experiments(year: int) -> dict[str, Experiment]:
    """Return the experiments of a testbed, by key."""
    return {family.key: family for family in FAMILIES if year in family.testbeds}


def make_cells(year: int) -> list[FieldCell]:
    """Return all worlds of a testbed, family by family."""
    return [cell for family in get_experiments(year).values() for cell in family.cells(TESTBEDS[year])]


def measure(year: int, cell: Any, record: Any) -> dict[str, float]:
    """Return the metrics of a world; those that are measured only in other worlds are NaN."""
    found = {metric.key: math.nan for metric in METRICS} | measure_common(record) | cell.measure(record)
    return found | {"score": get_experiments(year)[cell.family].score.score_world(found)}


# ---- ranking


def _make_columns(year: int, results: Results) -> dict[str, Column]:
    """Return the ranking's columns: for each heading the mean over the worlds of its families."""
    sharing: dict[str, list[Experiment]] = {}
    for family in get_experiments(year).values():
        if family.column is not None:
            sharing.setdefault(family.column, []).append(family)

    def mean(own: Sequence[Experiment], name: str) -> float:
        each = [one.score.to_rank_values(results.values(name, one.score.key, family=one.key)) for one in own]
        values = np.concatenate(each)
        return float(values.mean()) if len(values) else math.nan

    return {heading: (partial(mean, own), 3, own[0].score.ratio) for heading, own in sharing.items()}


def judge(year: int, results: Results) -> Report:
    """Rank controllers by the mean of their places in the columns; there is no published rule."""
    columns = _make_columns(year, results)
    order, table = rank_controllers(results, columns, "Ranking")
    first = [f"{order[0]} ranks first: mean place {table.rows[0][-1]} of {len(order)} over {len(columns)} columns."]
    tables = [table, _tabulate_buffers(year, results, order)]
    return Report(first, order, tables + ([_tabulate_disciplines(results, order)] if "aqm" in get_experiments(year) else []))


def _tabulate_buffers(year: int, results: Results, order: Sequence[str]) -> Table:
    own = [(one, q) for key in ("intra-rtt", "inter-rtt", "friendly") for one in [get_experiments(year)[key]] for q in QUEUES]
    labels = {metric.key: metric.label for metric in METRICS}
    header = ["controller", *(f"{labels[one.score.key]} of {one.key}, q = {q}" for one, q in own)]
    means = {name: [results.mean(name, one.score.key, family=one.key, q=q) for one, q in own] for name in order}
    return Table("By buffer, in BDP", header, [[name, *(f"{mean:.3f}" for mean in means[name])] for name in order])


def _tabulate_disciplines(results: Results, order: Sequence[str]) -> Table:
    metrics = [metric for metric in METRICS if metric.key in ("efficiency_e1", "efficiency_e2", "queue_ms")]
    columns = [(metric, aqm) for aqm in DISCIPLINES for metric in metrics]
    rows = []
    for name in order:
        means = [results.mean(name, metric.key, family="aqm", aqm=aqm) for metric, aqm in columns]
        rows.append([name, *(f"{mean:.{metric.digits}f}" for mean, (metric, _) in zip(means, columns, strict=True))])
    return Table("Behind managed queues", ["controller", *(f"{metric.label}, {aqm}" for metric, aqm in columns)], rows)


# ---- signs


def _all_finite(*values: float) -> bool:
    return all(map(math.isfinite, values))


def _compare_unequal(results: Results, name: str, key: str) -> tuple[statistics.Interval, tuple[float, float]]:
    """Return the difference of a metric of two flows between unequal round trips (ratio 5 to 10) and both at the longer one.

    Returns:
        The mean difference over round trips and buffers with its 95 % interval, and both means.
    """
    far = results.select_cells(family="inter-rtt", where=lambda cell: cell.about["d"] >= 50)
    alike = [{"d": d, "q": q} for d, q in sorted({(cell.about["d"], cell.about["q"]) for cell in far})]
    found = np.array([[results.mean(name, key, family=f"{kind}-rtt", **one) for kind in ("inter", "intra")] for one in alike])
    found = found.reshape(-1, 2)
    found = found[np.isfinite(found).all(axis=1)]
    if len(found) < 2:
        return statistics.Interval(math.nan, math.nan, math.nan), (math.nan, math.nan)
    unequal, equal = found.mean(axis=0)
    return statistics.mean_interval(found[:, 0] - found[:, 1]), (float(unequal), float(equal))


def _format_signed(interval: statistics.Interval, factor: float = 1.0, digits: int = 2) -> str:
    mean, low, high = (factor * one for one in interval)
    return f"{mean:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"


def check_signs(results: Results) -> list[Sign]:
    """Return the expectations of classic controls on both testbeds."""
    near = results.mean("cubic", R1.key, family="intra-rtt", q=[1, 4])
    even, evens = _compare_unequal(results, "cubic", R1.key)
    share, shares = _compare_unequal(results, "cubic", "second_share")
    _, reno = _compare_unequal(results, "newreno", "second_share")
    why = "CUBIC's window grows with time, not with round trips; of NewReno, whose grows with these, the longer has "
    why += f"{100 * reno[0]:.0f} % and the second of two as long {100 * reno[1]:.0f} %" if _all_finite(*reno) else "less"
    cubic, bbr = (results.mean(name, G.key, family="responsive-loss") for name in ("cubic", "bbr"))
    return [
        Sign("CUBIC shares evenly at equal round trips (R1 over 0.7, q >= 1)", "expected",
             near > 0.7 if _all_finite(near) else None, f"R1 {near:.2f}",
             "R1 is of single seconds of the whole overlap: the second flow's rise counts, and windows cut at different times"),
        Sign("CUBIC's R1 is lower at unequal round trips than at equal ones (ratios of 5 to 10; as long as the longer)",
             "expected", even.high < 0 if _all_finite(even.high) else None,
             f"{evens[0]:.2f} and {evens[1]:.2f}, {_format_signed(even)}", why),
        Sign("with unequal round trips CUBIC favours the shorter one (the longer, which comes second, has less than the "
             "second of two as long)", "recalled from the 2024 paper", share.high < 0 if _all_finite(share.high) else None,
             f"{100 * shares[0]:.0f} and {100 * shares[1]:.0f} %, in points {_format_signed(share, 100, 1)}", why),
        Sign("under random loss of 0 to 5 % CUBIC's goodput collapses while BBR's stays", "expected",
             cubic < 0.5 * bbr if _all_finite(cubic, bbr) else None, f"G {cubic:.2f} and {bbr:.2f}"),
    ]  # fmt: skip


ABSTRACT = "arXiv 2510.25105, abstract"


def check_2024_signs(results: Results) -> list[Sign]:
    """Return the signs of both testbeds, and those published in 2024 of controls that are not available here."""
    needs = "needs Orca and Aurora, which are not part of the package"
    says = "CUBIC and Orca share paths of equal round trips well, Aurora starves late comers"
    return [*check_signs(results), Sign(says, "recalled from the 2024 paper", None, needs)]


def check_2025_signs(results: Results) -> list[Sign]:
    """Return the signs of both testbeds, and those published in 2025 of learned controls."""
    shallow, deep = (results.mean("bbr", R3.key, family="friendly", q=q) for q in (0.2, 4))
    agents = [name for name in results.names if "/" in name]
    ours, others = SENDER if SENDER in agents else next(iter(agents), ""), [one for one in results.names if one not in agents]
    plain, lossy = (results.mean(ours, G.key, family=f) for f in ("responsive", "responsive-loss"))
    bbr = results.mean("bbr", G.key, family="responsive-loss")
    known = [value for name in others if _all_finite(value := results.mean(name, G.key, family="responsive"))]
    best = max(known, default=math.nan)
    full, delay = (results.mean(ours, key, family="efficiency") for key in ("use", "inflation"))
    least = results.mean("cubic", "inflation", family="efficiency")
    return [
        *check_signs(results),
        Sign("BBR takes more than CUBIC at q = 0.2 (R3 > 1), less at q = 4", "expected",
             shallow > 1 > deep if _all_finite(shallow, deep) else None, f"R3 {shallow:.2f} and {deep:.2f}"),
        Sign("Astraea is the fairest over the round trips and rates that it was made for, and outside of them no longer",
             ABSTRACT, None, "needs Astraea, which is not part of the package"),
        Sign("learned controls withstand random loss", ABSTRACT,
             lossy > bbr - 0.1 if _all_finite(lossy, bbr) else None, f"{ours} G {lossy:.2f}, bbr {bbr:.2f}"),
        Sign("learned controls fall behind when rate and round trip change every 10 s", ABSTRACT,
             plain < best if _all_finite(plain, best) else None, f"{ours} G {plain:.2f}, the best that is no agent {best:.2f}",
             "of another learned control, and another training: the published ones are Astraea, Orca, Sage, Vivace"),
        Sign("learned controls fill the link and keep delay low", ABSTRACT,
             full > 0.8 and delay < least if _all_finite(full, delay, least) else None,
             f"{ours}: {100 * full:.0f} % at RTT / base {delay:.2f}, CUBIC {least:.2f}"),
    ]  # fmt: skip


# ---- suites

NOT_SCORED = "nothing: the second flow is alone, and no score sees it"


def _make_suite(
    year: int, summary: str, source: str, signs: Callable[[Results], list[Sign]], not_run: tuple[OmittedWorlds, ...]
) -> FieldSuite:
    unranked = ", ".join(family.key for family in get_experiments(year).values() if family.column is None)
    return FieldSuite(
        name=f"testbed/{year}",
        summary=summary,
        load=make_loader(VERSIONS[year], partial(make_cells, year)),
        measure=partial(measure, year),
        sample_s=1.0,
        metrics=METRICS,
        scatter=("inflation", "use"),
        families={family.key: family.says for family in get_experiments(year).values()},
        source=source,
        rules=(
            "The testbeds' authors publish no ranking and no sum over experiments. Ours: each column a mean over its "
            "worlds and runs; controllers by the mean of their places.",
            f"In no column, and so without a say in the places: {unranked}.",
            "R1 is the smaller over the larger goodput of a second, R2 the same of both and 1 Mbit/s, R3 and R4 the "
            "scheme's over CUBIC's (in R3 both are at least 1 Mbit/s), of which 1 is friendly and |ln| is ranked, R5 "
            "that of the flow over all hops over the largest of the others', E1 utilisation over mean RTT in "
            "base RTTs, G goodput over the mean capacity.",
            "R1 and R2 over the last part, which the plots of 2024 show, are measured beside. On cross paths R1 is of "
            "all four flows, the mean of three phases.",
            "E1 and E2 are of each second, of all flows together. The plots of 2024 take the seconds that all flows "
            "share, those of 2025 each flow's seconds by themselves.",
            "netem before the bucket: data are delayed and lost before the queue. What comes in 42 ms at the rate "
            "passes at once, but where the rate is drawn anew, or CoDel or FQ-CoDel manages it.",
        ),
        judge=partial(judge, year),
        signs=signs,
        not_run=not_run,
        reference=("cubic",),
    )


SUITES = (
    _make_suite(
        2024,
        "the Sussex testbed of 2024: fairness, friendliness, efficiency, responsiveness",
        "giacomoni/mininettestbed, commit 11d25e8",
        check_2024_signs,
        (
            OmittedWorlds("bursts in responsive, responsive-loss: 100 runs", "a token bucket whose rate changes; a plain rate"),
            OmittedWorlds("the last 50 s in rates, friendly-rates: 300 runs", NOT_SCORED),
        ),
    ),
    _make_suite(
        2025,
        "the Sussex testbed of 2025: the same with more rates, hops, moved paths, handovers, satellites, AQMs",
        "Aruuni/mininettestbed, commit 61af361 (grids at 128d9d5); arXiv 2510.25105",
        check_2025_signs,
        (
            OmittedWorlds("efficiency under fq, fq_pie, sfq, sfb: 120 runs", "these disciplines"),
            OmittedWorlds("the last 50 s in rates: 270 runs", NOT_SCORED),
            OmittedWorlds(
                "bursts in responsive, responsive-loss, leo, leo-loss, leo-outages: 250 runs",
                "a token bucket whose rate changes; a plain rate",
            ),
            OmittedWorlds("bursts in aqm: 60 runs", "a token bucket that holds another discipline; a plain rate"),
            OmittedWorlds(
                "logs of eight Starlink paths, one flow and two, in three buffers: 240",
                "nothing: the logs are not stored; 16 runs of starlink stand for them",
            ),
        ),
    ),
)
