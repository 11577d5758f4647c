"""Statistics and tables of controllers' results: means with intervals, margins paired by seed, breakdowns by world."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from netbuf_gym.scenarios import Scenario
from netbuf_gym.simulation.results.traffic import ENOUGH
from netbuf_gym.tasks.metrics import Column, Group, Margin, Measures
from netbuf_gym.utils import statistics
from netbuf_gym.utils.tables import markdown_table

POOLED = ("p50", "p90", "p99")
TIMING = (
    Column("decisions", "decisions", 1, says="made in an episode"),
    Column("interval_p50_s", "interval, p50 (s)", 4, says="time from decision to decision, median of an episode"),
    Column("interval_p99_s", "interval, p99 (s)", 4, says="the same, 99th percentile"),
    Column("packets_timed", "packets", 0, says="handed on by the links"),
    Column("packet_lateness_p50_ms", "lateness, p50 (ms)", 3, says="how late links handed on packets, median of an episode"),
    Column("packet_lateness_p99_ms", "lateness, p99 (ms)", 3, says="the same, 99th percentile"),
)
"""Columns of how well worlds in real time have kept their times, for entries of a plant's `timing`."""


@dataclass(frozen=True)
class Runs:
    """Results of one controller over several seeds.

    Attributes:
        name: Name of the controller.
        seeds: Seeds of the episodes.
        metrics: Each metric as an array (seeds,): of whole episodes, start-up included; mean over the world's agents.
        flows: Priority and slowdown of each completed flow of all episodes, (flows, 2); None: not collected.
        series: Time series of the first seed's first agent: time_s and those that the task's measures name, (samples,).
        timing: Those of the metrics that say how well worlds in real time have kept their times.
    """

    name: str
    seeds: list[int]
    metrics: dict[str, np.ndarray]
    series: dict[str, np.ndarray]
    flows: np.ndarray | None = None
    timing: tuple[str, ...] = ()

    def compute_interval(self, metric: str, confidence: float = 0.95) -> statistics.Interval:
        """Return the mean with its t interval, over the seeds of the episodes in which the metric was measured."""
        values = self.metrics[metric][np.isfinite(self.metrics[metric])]
        return statistics.mean_interval(values, confidence) if len(values) else statistics.Interval(*[math.nan] * 3)


def format_table(runs: Sequence[Runs], measures: Measures, confidence: float = 0.95, first: str = "the agent") -> str:
    """Return a Markdown table: a row per controller, means with the half-widths of their intervals, and margins to the first.

    A margin is the first controller's measure minus the row's, paired by seed. If a seed has no value, the row gives the number
    of seeds that a mean is over.

    Args:
        first: Name of the first controller in the headings of margins.
    """
    return _format_columns(runs, measures.columns, measures.counts, confidence, first)


def format_details(runs: Sequence[Runs], measures: Measures, confidence: float = 0.95) -> str:
    """Return a Markdown table of the task's further measures, a row per controller; empty if there are none."""
    return _format_columns(runs, measures.details, measures.counts, confidence, "") if measures.details else ""


def format_timing(runs: Sequence[Runs], confidence: float = 0.95) -> str:
    """Return a Markdown table of how well worlds in real time have kept their times, with notes; empty for simulated worlds."""
    named = {one.metric: one for one in TIMING}
    columns = list(dict.fromkeys(named.get(key, Column(key, key, 3)) for one in runs for key in one.timing))
    if not columns:
        return ""
    notes = "\n".join(f"* {one.label}: {one.says}" for one in columns if one.says)
    return f"times of worlds in real time\n\n{_format_columns(runs, columns, {}, confidence, '')}\n\n{notes}"


def _format_columns(
    runs: Sequence[Runs], columns: Sequence[Column | Margin], counts: Mapping[str, str], confidence: float, first: str
) -> str:
    heads = [f"{one.label} of {first}" if isinstance(one, Margin) else one.label for one in columns]
    lines = [f"| controller | {' | '.join(heads)} |", f"|:--|{'--:|' * len(heads)}"]
    for one in runs:
        cells = [_format_entry(column, runs[0], one, counts, confidence) for column in columns]
        lines.append(f"| {one.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def format_notes(measures: Measures, first: str) -> str:
    """Return the notes on the tables: what margins and means are, and each column in words."""
    metrics = [one.metric for one in measures.columns if isinstance(one, Margin)]
    some = "Means are over the seeds that gave a value; (n of N) says how many where some gave none."
    if metrics:
        better = "below" if measures.lower_is_better else "above"
        others = "".join(f"; one in {metric} above 0 that it has more" for metric in metrics if metric != measures.score)
        some = (
            f"A margin is the value of {first} minus the row's, paired by seed: one in {measures.score} {better} 0 says that "
            f"{first} is better{others}. {some}"
        )
    said = "\n".join(f"* {line}" for line in measures.describe_columns())
    return f"{some}\n\n{said}" if said else some


def _format_entry(column: Column | Margin, first: Runs, one: Runs, counts: Mapping[str, str], confidence: float) -> str:
    if isinstance(column, Margin):
        return "" if one is first else format_margin(compute_margin(first, one, column.metric, confidence, column.relative))
    if column.metric not in one.metrics:
        return "-"
    interval = statistics.Interval(*(column.factor * x for x in one.compute_interval(column.metric, confidence)))
    measured, seeds = int(np.isfinite(one.metrics[column.metric]).sum()), len(one.seeds)
    some = f" ({measured} of {seeds})" if 0 < measured < seeds else ""
    flows = count_flows([one], column.metric, counts)
    of = "" if flows is None else f", {format_flows(flows)}"
    return _format_cell(interval, column.digits) + some + of


def count_flows(
    runs: Sequence[Runs], metric: str, counts: Mapping[str, str], chosen: np.ndarray | slice = slice(None)
) -> tuple[int, int] | None:
    """Return the least and the largest number of flows that a percentile is of; None for a metric that is none.

    Args:
        counts: `Measures.counts`.
        chosen: Episodes that count, those that gave no value never do.
    """
    known = [one for one in runs if metric in one.metrics and counts.get(metric) in one.metrics]
    found = [one.metrics[counts[metric]][chosen][np.isfinite(one.metrics[metric][chosen])] for one in known]
    return find_range(np.concatenate(found)) if found else None


def find_range(values: np.ndarray) -> tuple[int, int] | None:
    """Return the least and the largest of some numbers, those that are NaN left out; None if there are no others."""
    known = values[np.isfinite(values)]
    return (int(known.min()), int(known.max())) if len(known) else None


def format_range(flows: tuple[int, int]) -> str:
    """Return the least and the largest number of flows as text: `22`, or `22 to 310`."""
    least, most = flows
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def format_flows(flows: tuple[int, int]) -> str:
    """Return the same with its unit: `22 to 310 flows`."""
    return f"{format_range(flows)} flow{'s' * (flows[1] != 1)}"


def warn_of_few(runs: Sequence[Runs], measures: Measures) -> list[str]:
    """Return a sentence on columns with 99th percentiles of fewer than `ENOUGH` flows, which one or two decide; [] for none."""
    columns = [one for one in measures.columns if isinstance(one, Column)]
    flows = {one.label: count_flows(runs, one.metric, measures.counts) for one in columns}
    few = [f"{one[0]:,} behind {label}" for label, one in flows.items() if one is not None and one[0] < ENOUGH]
    return (
        [f"few flows in an episode: {', '.join(few)}; below {ENOUGH}, one or two of them decide a 99th percentile"]
        if few
        else []
    )


def warn_of_equal(runs: Sequence[Runs], measures: Measures) -> list[str]:
    """Return a sentence on the controllers whose score is the same under every seed, so that its interval has no width."""
    known = {one.name: one.metrics[measures.score][np.isfinite(one.metrics[measures.score])] for one in runs}
    same = [name for name, values in known.items() if len(values) > 1 and (values == values[0]).all()]
    if not same:
        return []
    return [
        f"{measures.score} of {', '.join(same)} is the same under every seed that gave a value: where nothing in a world is "
        "random, an interval without width says nothing of other starts; valid: start_jitter_ms above 0, or random loss"
    ]


def pool_percentiles(one: Runs) -> dict[str, dict[str, float]]:
    """Return by priority (`p0`), and over `all`, the number of flows of all episodes, and percentiles of their slowdown."""
    if one.flows is None:
        return {}
    priorities, slowdowns = one.flows.T
    parts = {f"p{int(p)}": slowdowns[priorities == p] for p in np.unique(priorities)} | {"all": slowdowns}
    return {
        name: {"flows": len(own), **dict(zip(POOLED, statistics.compute_percentiles(own, (0.5, 0.9, 0.99)), strict=True))}
        for name, own in parts.items()
    }


def format_pooled(runs: Sequence[Runs]) -> str:
    """Return a Markdown table of percentiles of the slowdown over the flows of all episodes, a row per controller and priority.

    Percentiles of fewer than `ENOUGH` flows are marked. Without any completed flow, a sentence that says so.
    """
    if all(one.flows is None or not len(one.flows) for one in runs):
        return "No finite flow was completed in any world."
    rows = []
    for one in runs:
        for name, own in pool_percentiles(one).items():
            few = " (few)" if own["flows"] < ENOUGH else ""
            rows.append([one.name, name, f"{own['flows']:,}{few}", *(f"{own[key]:.2f}" for key in POOLED)])
    return markdown_table(["controller", "priority", "flows", *POOLED], rows)


def compute_margin(
    ours: Runs, theirs: Runs, metric: str, confidence: float = 0.95, relative: bool = False
) -> statistics.Interval:
    """Return the mean of our metric minus theirs, paired by seed, over the seeds where both have one; with its t interval.

    `relative`: in per cent of the mean of theirs.
    """
    difference = ours.metrics[metric] - theirs.metrics[metric]
    both = np.isfinite(difference)
    if not both.any():
        return statistics.Interval(*[math.nan] * 3)
    factor = 100 / theirs.metrics[metric][both].mean() if relative else 1.0
    return statistics.mean_interval(factor * difference[both], confidence)


def format_breakdown(runs: Sequence[Runs], worlds: Sequence[Scenario], measures: Measures) -> str:
    """Return Markdown tables of the mean score by properties of the worlds; empty if all worlds are alike.

    The best of a row is bold; the last cell names those that are ahead of the first controller by more than 0.5 %.
    """
    tables = [_format_group(runs, worlds, group, measures) for group in measures.groups]
    return "\n\n".join(one for one in tables if one)


def format_worlds(runs: Sequence[Runs], names: Sequence[str], measures: Measures) -> str:
    """Return a Markdown table of the mean score by world of a list, as `format_breakdown`; `names` has one for each episode."""
    return _format_parts(
        runs, "world", {one: np.array([name == one for name in names]) for one in dict.fromkeys(names)}, measures
    )


def _format_group(runs: Sequence[Runs], worlds: Sequence[Scenario], group: Group, measures: Measures) -> str:
    return _format_parts(runs, group.label, _split_worlds([group.of(world) for world in worlds], group), measures)


def _format_parts(runs: Sequence[Runs], label: str, parts: dict[str, np.ndarray], measures: Measures) -> str:
    if len(parts) < 2:
        return ""
    names, counted = [one.name for one in runs], count_flows(runs, measures.score, measures.counts) is not None
    lines = [
        f"| {label} | seeds |{' flows |' * counted} {' | '.join(names)} | ahead of {names[0]} |",
        f"|:--|--:|{'--:|' * (len(runs) + counted)}:--|",
    ]
    for part, chosen in parts.items():
        means = []
        for one in runs:
            values = one.metrics[measures.score][chosen]
            means.append(float(np.nanmean(values)) if np.isfinite(values).any() else math.nan)
        best = math.nan
        if np.isfinite(means).any():
            best = float((np.nanmin if measures.lower_is_better else np.nanmax)(means))
        cells = ["-" if mean != mean else f"**{mean:.2f}**" if mean == best else f"{mean:.2f}" for mean in means]
        gain = (means[0] - np.array(means)) * (1 if measures.lower_is_better else -1)
        ahead = [name for name, one in zip(names, gain > 0.005 * abs(means[0]), strict=True) if one]
        if counted:
            flows = count_flows(runs, measures.score, measures.counts, chosen)
            cells.insert(0, "-" if flows is None else format_range(flows))
        lines.append(f"| {part} | {int(chosen.sum())} | {' | '.join(cells)} | {', '.join(ahead)} |")
    return "\n".join(lines)


def _split_worlds(values: Sequence[float | str], group: Group) -> dict[str, np.ndarray]:
    """Return boolean masks of worlds by label: worlds of one value, or quarters if there are many values."""
    array = np.array(values)
    distinct = np.unique(array)
    if array.dtype.kind != "f":
        return {str(one): array == one for one in distinct}
    if len(distinct) <= 10:
        return {f"{one:.{group.digits}f}": array == one for one in distinct}
    edges = np.quantile(array, np.linspace(0, 1, 5))
    quarter = np.clip(np.searchsorted(edges, array, side="right") - 1, 0, 3)
    return {f"{edges[k]:.{group.digits}f} to {edges[k + 1]:.{group.digits}f}": quarter == k for k in range(4)}


def to_dict(runs: Sequence[Runs], measures: Measures, confidence: float = 0.95, whose: str = "the_agent") -> dict[str, Any]:
    """Return a JSON-able form: every episode, means with intervals, the number of seeds that gave a value.

    `flows` has the least and the largest number of flows in an episode that each percentile is of. Margins are the first
    controller's minus the row's, paired by seed; `first` names that controller. Missing values are None.
    """
    margins = [column for column in measures.columns if isinstance(column, Margin)]
    return {
        "confidence": confidence,
        "first": runs[0].name,
        "controllers": {
            one.name: {
                "seeds": one.seeds,
                "episodes": {metric: values.tolist() for metric, values in one.metrics.items()},
                "measured": {metric: int(np.isfinite(values).sum()) for metric, values in one.metrics.items()},
                **({} if one.flows is None else {"pooled": pool_percentiles(one)}),
                "intervals": {
                    metric: list(one.compute_interval(metric, confidence)) for metric in (*measures.metrics, *one.timing)
                },
                **({"flows": flows} if (flows := collect_counts([one], measures)) else {}),
                **{
                    f"{column.metric}_margin_of_{whose}{'_percent' if column.relative else ''}": None
                    if one is runs[0]
                    else list(compute_margin(runs[0], one, column.metric, confidence, column.relative))
                    for column in margins
                },
            }
            for one in runs
        },
    }


def collect_counts(runs: Sequence[Runs], measures: Measures) -> dict[str, tuple[int, int]]:
    """Return the least and the largest number of flows in an episode that each percentile is of."""
    found = {metric: count_flows(runs, metric, measures.counts) for metric in measures.counts}
    return {metric: flows for metric, flows in found.items() if flows is not None}


def format_margin(interval: statistics.Interval) -> str:
    """Return the text of a margin with its interval: the mean alone if there is no interval (one seed), `-` without values."""
    if not math.isfinite(interval.mean):
        return "-"
    if not math.isfinite(interval.low):
        return f"{interval.mean:.3f}"
    return str(interval)


def _format_cell(interval: statistics.Interval, digits: int) -> str:
    half = (interval.high - interval.low) / 2
    if not math.isfinite(interval.mean):
        return "-"
    return f"{interval.mean:.{digits}f}" + (f" ± {half:.{digits}f}" if math.isfinite(half) else "")
