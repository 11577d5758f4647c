"""Metrics of the Sussex testbeds: goodputs second by second, efficiency, adaptation; and the scores of families."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from netbuf_gym.evaluation.suites.recorder import Record, finite_mean
from netbuf_gym.evaluation.suites.suite import Metric

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
