"""Claims of the thesis on learned queue thresholds, checked against a campaign's results."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from netbuf_gym.utils import statistics
from netbuf_gym.utils.tables import markdown_table
from studies.common import judging
from studies.common.judging import HIGHER, LOWER, NOT_LOWER, Claim, compute_interval, format_judgement, judge_claim
from studies.common.results import Runs
from studies.common.verdicts import format_verdicts_table, judge_change, make_claim_row, make_row
from studies.rlbm.rlbm_settings import LEARNED, RANDOM, RANDOM_NO_BETA

CELLS = ("cc", "size", "load")
"""Columns that pair runs."""
STATIC = ("naive", "sophisticated")
CLAIMS = (
    Claim("small buffers: significantly less throughput", "8, 9", "throughput_mbps", STATIC, LOWER, 0.02, where={"size": 100}),
    Claim(
        "500 packets: the same throughput as naive or more",
        "8, 9",
        "throughput_mbps",
        ("naive",),
        NOT_LOWER,
        where={"size": 500},
    ),
    Claim("1000 packets: hardly less throughput", "8, 9", "throughput_mbps", STATIC, NOT_LOWER, where={"size": 1000}),
    Claim("small buffers: much lower worst slowdown", "8, 9", "difference_p99_s", STATIC, LOWER, 0.05, where={"size": 100}),
    Claim("lower 99th percentile of occupancy, at all sizes", "17-22", "occupancy_p99", STATIC, LOWER),
    Claim("small buffers: shorter mean FCT", "10, 23-26", "fct_mean_s", STATIC, LOWER, where={"size": 100}),
    Claim("large buffers: more flows completed", "10, 23-26", "flows_completed", STATIC, HIGHER, where={"size": 1000}),
    Claim("small buffers: much less delay of pings", "11, 12", "ping_mean_ms", STATIC, LOWER, 0.05, where={"size": 100}),
    Claim("large buffers: still less delay of pings", "11, 12", "ping_mean_ms", STATIC, LOWER, where={"size": 1000}),
    Claim("shorter queues than naive", "13-15", "queue_mean_packets", ("naive",), LOWER),
    Claim("shorter queue 0 than sophisticated", "15", "queue_mean_packets_0", ("sophisticated",), LOWER),
)


def compute_change(runs: Runs, scheme: str, rival: str, measure: str) -> statistics.Interval | None:
    """Compute the relative change of a measure from the rival to the scheme; see `judging.compute_change`."""
    return judging.compute_change(runs, scheme, rival, measure, CELLS)


def select_interval(runs: Runs, interval_s: float) -> Runs:
    """Select the rows of schemes that decide at an interval, and of schemes that make no decisions."""
    own = runs.columns["interval_s"]
    return runs.mask(np.isnan(own) | np.isclose(own, interval_s))


def format_claims_table(runs: Runs) -> str:
    """Return a table of all claims, for random thresholds and, where there is one, the trained agent."""
    schemes = [scheme for scheme in (RANDOM, LEARNED) if scheme in runs.values("scheme")]
    rows = []
    for claim in CLAIMS:
        for rival in claim.rivals:
            cells = [judge_claim(claim, runs, scheme, rival, CELLS) for scheme in schemes]
            rows.append([f"{claim.text} ({claim.figures})", rival, *cells])
    rows += _make_delay_rows(runs, schemes)
    if RANDOM_NO_BETA in runs.values("scheme"):
        found = compute_change(runs, RANDOM_NO_BETA, RANDOM, "queue_mean_packets_1")
        text = "without beta more buffer for priority 1 (14)"
        rows.append([text, "with beta", format_judgement(HIGHER, found), *("" for _ in schemes[1:])])
    names = {RANDOM: "random thresholds", LEARNED: "RLBM, trained"}
    return markdown_table(["the thesis' claim about RLBM (figures)", "against", *(names[scheme] for scheme in schemes)], rows)


def format_verdicts(runs: Runs) -> str:
    """Return the table of verdicts for the trained agent; "" where the agent did not run."""
    if LEARNED not in runs.values("scheme"):
        return ""
    rows = [make_claim_row(claim, runs, LEARNED, CELLS) for claim in CLAIMS]
    for text, column, value in _compare_delays(runs, LEARNED):
        if value is not None:
            rows.append(make_row(text, "Fig. 11, 12", {column: judge_change(HIGHER, value)}))
    found = compute_change(runs, RANDOM_NO_BETA, RANDOM, "queue_mean_packets_1")
    if found is not None:
        rows.append(
            make_row("random thresholds without beta: more buffer for priority 1", "Fig. 14", {"": judge_change(HIGHER, found)})
        )
    return format_verdicts_table(rows)


def format_sweep_table(runs: Runs, cc: str) -> str:
    """Return throughput and slowdown by decision interval: means over loads and seeds; bold at the highest throughput."""
    rows, intervals = [], []
    for scheme in (RANDOM, RANDOM_NO_BETA, LEARNED):
        own = runs.where(scheme=scheme, cc=cc)
        if len(own.values("interval_s")) < 2:
            continue
        intervals = sorted(own.values("interval_s"))
        sizes = [size for size in own.values("size") if len(own.where(size=size).values("interval_s")) > 1]
        for size in sizes:
            at = [own.where(size=size, interval_s=value) for value in intervals]
            rates = [_compute_mean(one, "throughput_mbps") for one in at]
            texts = [f"{rate:.3f}; {_compute_mean(one, 'difference_p99_s'):.1f}" for rate, one in zip(rates, at, strict=True)]
            texts[int(np.argmax(rates))] = f"**{texts[int(np.argmax(rates))]}**"
            rows.append([scheme, f"{size:g}", *texts])
    return markdown_table(["scheme", "size", *(f"{1e3 * value:.0f} ms" for value in intervals)], rows)


def describe_sweep(runs: Runs, cc: str) -> str:
    """Return the thesis' claim that 50 ms is the best interval and the results of each swept scheme, in words."""
    parts = []
    for scheme in (RANDOM, RANDOM_NO_BETA, LEARNED):
        own = runs.where(scheme=scheme, cc=cc)
        intervals = own.values("interval_s")
        if 0.05 not in intervals or len(intervals) < 2:
            continue
        sizes = [size for size in own.values("size") if len(own.where(size=size).values("interval_s")) > 1]
        counts = []
        for measure, best in (("throughput_mbps", np.argmax), ("difference_p99_s", np.argmin)):
            means = [[_compute_mean(own.where(size=size, interval_s=value), measure) for value in intervals] for size in sizes]
            counts.append(sum(intervals[int(best(values))] == 0.05 for values in means))
        found = f"the highest throughput at {counts[0]}, the lowest slowdown at {counts[1]} of {len(sizes)} sizes"
        parts.append(f"{scheme}: {found}")
    claim = "The thesis (16): 50 ms gives the highest throughput at every size and near the lowest slowdown."
    return f"{claim} Here 50 ms gives, {'; '.join(parts)}." if parts else claim


def format_means_table(runs: Runs, sizes: Sequence[int]) -> str:
    """Return a table with a row per scheme and size: means over congestion controls, loads and seeds."""
    measures = (
        ("throughput_mbps", "throughput, Mbit/s", 3, 1.0),
        ("difference_p99_s", "p99 of FCT - ideal, s", 1, 1.0),
        ("slowdown_p99_p0", "p99 of FCT / ideal, priority 0", 1, 1.0),
        ("fct_mean_s", "mean FCT, s", 2, 1.0),
        ("flows_completed", "flows completed", 1, 1.0),
        ("occupancy_p99", "p99 of occupancy, %", 1, 100.0),
        ("queue_mean_packets", "queues, packets", 0, 1.0),
        ("ping_mean_ms", "ping, ms", 1, 1.0),
    )
    rows = []
    for size in sizes:
        for scheme in runs.values("scheme"):
            own, cells = runs.where(scheme=scheme, size=size), [f"{size:g}", scheme]
            for name, _, digits, scale in measures:
                values = np.array([value for value in own.compute_seed_means(name).values() if np.isfinite(value)])
                if not len(values):
                    cells.append("-")
                    continue
                mean, low, high = statistics.mean_interval(scale * values)
                half = f" ± {(high - low) / 2:.{digits}f}" if np.isfinite(high) else ""
                cells.append(f"{mean:.{digits}f}{half}")
            rows.append(cells)
    return markdown_table(["size", "scheme", *(title for _, title, _, _ in measures)], rows)


def _make_delay_rows(runs: Runs, schemes: Sequence[str]) -> list[list[str]]:
    """Return rows for the claims that the delay of pings grows with the buffer and with the load, judged for each scheme."""
    found = [_compare_delays(runs, scheme) for scheme in schemes]
    return [[same[0][0], same[0][1], *(format_judgement(HIGHER, one[2]) for one in same)] for same in zip(*found, strict=True)]


def _compare_delays(runs: Runs, scheme: str) -> list[tuple[str, str, statistics.Interval | None]]:
    """Return for each claim on growing delays the text, the values compared, and the change."""
    found = []
    for text, column in (("more delay of pings with larger buffers (11, 12)", "size"), ("and with higher loads", "load")):
        low, high = min(runs.values(column)), max(runs.values(column))
        own = runs.where(scheme=scheme)
        ends = [own.where(**{column: value}).compute_seed_means("ping_mean_ms") for value in (low, high)]
        grown = compute_interval([math.log(ends[1][seed] / ends[0][seed]) for seed in ends[0]])
        found.append((text, f"{column} {high:g} against {low:g}", grown))
    return found


def _compute_mean(runs: Runs, measure: str) -> float:
    values = runs.columns[measure]
    return float(np.nanmean(values)) if np.isfinite(values).any() else math.nan
