"""Reports of runs on suites whose worlds are averaged by family: tables, figures, rows, JSON, changes from earlier results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.evaluation.suites import Edition, Metric, Suite
from netbuf_gym.evaluation.suites.config import RunConfig
from netbuf_gym.evaluation.summary import find_range, format_flows, format_range
from netbuf_gym.leaderboard.play import SuiteRun
from netbuf_gym.leaderboard.rows import RESULT_SCHEMA, describe_edition, read_result
from netbuf_gym.simulation.results.traffic import ENOUGH
from netbuf_gym.utils import plots, statistics
from netbuf_gym.utils.files import write_atomic, write_json
from netbuf_gym.utils.tables import csv_table, markdown_table
from netbuf_gym.version import __version__

ALL = "all"
"""Name of the row over all worlds."""
WORST = 0.1
"""Share of the worlds below the value in the column of the worst ones."""


def summarise(played: SuiteRun, suite: Suite, families: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the statistics of each family, and of all worlds; None where nothing has a value.

    These are the number of worlds, the mean of each metric over the worlds that have it, the half-width of the score's
    interval, the score that a tenth of the worlds is below, and the range of a percentile's number of flows, `KEY_flows`.
    """
    made = {}
    for family in (*families, ALL):
        own: dict[str, Any] = {"worlds": len(played.list_values(suite.score.key, None if family == ALL else family))}
        for metric in suite.metrics:
            values = np.asarray(played.list_values(metric.key, None if family == ALL else family), float)
            if metric.count:
                flows = np.asarray(played.list_values(metric.count, None if family == ALL else family), float)
                own[f"{metric.key}_flows"] = find_range(flows[np.isfinite(values)])
            values = values[np.isfinite(values)]
            own[metric.key] = float(values.mean()) if len(values) else None
            if metric is suite.score and len(values):
                interval = statistics.mean_interval(values)
                own[f"{metric.key}_half"] = (interval.high - interval.low) / 2 if len(values) > 1 else None
                own[f"{metric.key}_worst_tenth"] = float(np.quantile(values, WORST))
        made[family] = own
    return made


def format_tables(
    suite: Suite, summaries: Mapping[str, Mapping[str, Mapping[str, Any]]], failed: Mapping[str, str] | None = None
) -> str:
    """Return Markdown: failed controllers with reasons, a table of scores by family if there are several controllers, and then
    each controller with all its metrics."""
    parts = []
    if failed:
        parts.append(markdown_table(["controller", "failed"], list(failed.items())))
    score = suite.score
    if len(summaries) > 1:
        families = list(next(iter(summaries.values())))
        rows = []
        for family in families:
            means = [one[family][score.key] for one in summaries.values()]
            best = max((mean for mean in means if mean is not None), default=None)
            cells = [
                f"**{_format_cell(mean, score)}**" if mean is not None and mean == best else _format_cell(mean, score)
                for mean in means
            ]
            if score.count:
                flows = _find_flow_range([one[family] for one in summaries.values()], score)
                cells.insert(0, "-" if flows is None else format_range(flows))
            rows.append([family, str(next(iter(summaries.values()))[family]["worlds"]), *cells])
        heads = ["family", "worlds", *["flows"] * bool(score.count), *summaries]
        parts.append(f"{score.label} by family, the best in bold\n\n{markdown_table(heads, rows)}")
    others = [metric for metric in suite.metrics[1:] if metric.key not in suite.counts]
    for name, found in summaries.items():
        heads = ["family", "worlds", score.label, "worst tenth", *(metric.label for metric in others)]
        rows = [
            [
                family,
                str(own["worlds"]),
                _format_interval(own, score),
                _format_cell(own.get(f"{score.key}_worst_tenth"), score),
                *(_format_interval(own, metric) for metric in others),
            ]
            for family, own in found.items()
        ]
        parts.append(f"{name}\n\n{markdown_table(heads, rows)}")
    return "\n\n".join(parts)


def _find_flow_range(found: Sequence[Mapping[str, Any]], metric: Metric) -> tuple[int, int] | None:
    """Return the least and the largest number of flows in a world that a percentile is of, over summaries; None: unknown."""
    known = [bound for one in found for bound in one.get(f"{metric.key}_flows") or ()]
    return (min(known), max(known)) if known else None


def warn_of_few(suite: Suite, summaries: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Return a sentence on metrics that are 99th percentiles of fewer than `ENOUGH` flows in a world; "" if there are none."""
    flows = {metric.label: _find_flow_range([one[ALL] for one in summaries.values()], metric) for metric in suite.metrics}
    few = [f"{one[0]:,} behind {label}" for label, one in flows.items() if one is not None and one[0] < ENOUGH]
    return f"few flows in a world: {', '.join(few)}; below {ENOUGH}, one or two of them decide a 99th percentile" if few else ""


def format_notes(suite: Suite, families: Sequence[str]) -> str:
    """Return the notes on the tables: columns and families in words."""
    said = [f"* {metric.label}: {metric.says}" for metric in suite.metrics if metric.key not in suite.counts]
    if suite.counts:
        said.append("* flows: the least and the largest number in a world that a percentile is of")
    said.insert(
        1,
        f"* ±: half of the 95 % t interval over the worlds; worst tenth: what a tenth of the worlds is below in "
        f"{suite.score.label}",
    )
    return "\n".join([*said, "", *(f"* {family}: {suite.families[family]}" for family in families)])


def format_rows(played: Sequence[SuiteRun], suite: Suite, command: str) -> str:
    """Return CSV with a row per controller and world; missing values are empty."""
    columns = ["controller", "family", "world", "agents", "seed", *(metric.key for metric in suite.metrics)]
    made = [
        {"controller": one.name, "family": cell.family, "world": cell.name, "agents": cell.agents, "seed": cell.seed}
        | {metric.key: "" if math.isnan(values[metric.key]) else values[metric.key] for metric in suite.metrics}
        for one in played
        for cell, values in zip(one.cells, one.values, strict=True)
    ]
    return csv_table(columns, made, command)


def to_dict(
    suite: Suite,
    edition: Edition,
    played: Sequence[SuiteRun],
    summaries: Mapping[str, Mapping[str, Mapping[str, Any]]],
    models: Mapping[str, str | None],
    command: str,
    failed: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return a JSON-able form: the edition, each controller's summary and values of every world, and reasons of failures."""
    return {
        "schema": RESULT_SCHEMA,
        "netbuf_gym": __version__,
        "suite": suite.name,
        "version": edition.version,
        "digest": edition.digest,
        "task": suite.task,
        "command": command,
        "score": suite.score.key,
        **({"failed": dict(failed)} if failed else {}),
        **({"warnings": [few]} if (few := warn_of_few(suite, summaries)) else {}),
        "controllers": {
            one.name: {
                "model_sha256": models.get(one.name),
                "seconds": one.seconds,
                "cpu_seconds": one.cpu_seconds,
                "families": summaries[one.name],
                "worlds": one.worlds,
            }
            for one in played
        },
    }


def read_earlier(file: Path, suite: Suite, edition: Edition, families: Sequence[str]) -> dict[str, Any]:
    """Return the result of an earlier run, read from its result.json.

    Args:
        families: Families that the result must have for each controller.

    Raises:
        ConfigError: If the file cannot be read, is of another version, or of a suite with other worlds, whose figures cannot be
            compared with these, or lacks a family.
    """
    data = read_result(file, "against")
    of, controllers = (data["suite"], data["version"], data["digest"]), data["controllers"]
    ours = suite.name, edition.version, edition.digest
    if of[-1] != ours[-1] or (of[0] == ours[0] and of != ours):
        named = describe_edition(*of), describe_edition(*ours)
        raise ConfigError(f"against = {file}: is of {named[0]}; valid: {named[1]}, as figures of others are of other worlds")
    for name, one in controllers.items():
        for family in families:
            worlds, where = len(edition.select_cells([family])), f"against = {file}: controllers.{name}.families.{family}"
            try:
                found, value = one["families"][family]["worlds"], one["families"][family][suite.score.key]
            except (KeyError, TypeError):
                raise ConfigError(f"{where} is not there; valid: a result over all families that are run") from None
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if found != worlds or not (number or value is None):
                said = f"{where} has {quote(found)} worlds, {suite.score.key} {quote(value)}"
                raise ConfigError(f"{said}; valid: {worlds}, and a number, or null where none is known")
    return data


def compare_results(
    suite: Suite,
    summaries: Mapping[str, Mapping[str, Mapping[str, Any]]],
    before: Mapping[str, Any],
    tolerance: float,
) -> tuple[str, list[str]]:
    """Compare the first controller with an earlier result.

    Args:
        before: Earlier result, from `read_earlier`; its controller of the same name is used, or else its first one.
        tolerance: Difference of the score up to which the controller is not behind.

    Returns:
        A table of the score by family, and the families in which the controller is behind by more than `tolerance`.
    """
    name, score = next(iter(summaries)), suite.score
    then = name if name in before["controllers"] else next(iter(before["controllers"]))
    old = before["controllers"][then]["families"]
    lines, behind = [], []
    for family, own in summaries[name].items():
        if family not in old or old[family]["worlds"] != own["worlds"]:
            continue  # the row over all worlds, if the families differ
        was, now = old[family][score.key], own[score.key]
        lost = was is not None and (now is None or now < was - tolerance)
        behind += [family] * lost
        change = "-" if was is None or now is None else f"{now - was:+.{score.digits}f}"
        lines.append([family, _format_cell(was, score), _format_cell(now, score), change, "behind" if lost else ""])
    table = markdown_table(["family", f"{then}, then", f"{name}, now", "change", f"by more than {tolerance:g}"], lines)
    return table, behind


def describe_standing(data: Mapping[str, Any], metric: Metric) -> str:
    """Return a sentence on a result's first controller: in how many families it is the best, and where others are above it.

    Args:
        data: Contents of a result.json with several controllers. A score may be None; a family without any is not counted.
        metric: The score.
    """
    (first, ours), *others = ((name, one["families"]) for name, one in data["controllers"].items())
    above: dict[str, list[str]] = {}
    least = 10**-metric.digits
    for family, scores in ours.items():
        own = scores[metric.key]
        for name, theirs in others:
            their = theirs[family][metric.key]
            if their is None or (own is not None and their <= own):
                continue
            said = (
                f"({first} has no score)"
                if own is None
                else f"by {their - own:.{metric.digits}f}"
                if their - own >= least
                else f"by less than {least:g}"
            )
            above.setdefault(family, []).append(f"{name} {said}")
    families = [family for family in ours if family != ALL and (family in above or ours[family][metric.key] is not None)]
    behind = [family for family in families if family in above]
    where = "; ".join(f"in `{family}` {', '.join(above[family])}" for family in behind) or "nowhere"
    over_all = f"behind {', '.join(above[ALL])}" if ALL in above else "ahead of all of them"
    count = f"{len(families) - len(behind)} of {len(families)} families"
    best = f"of these {first} has the highest mean {metric.label} in {count}, and over all worlds is {over_all}"
    return f"On suite `{data['suite']}`, version {data['version']}, {best}. Above it are: {where}."


def format_families(data: Mapping[str, Any], suite: Suite) -> str:
    """Return a result as Markdown: its command, the scores by family, and `describe_standing`."""
    table = format_tables(suite, {name: one["families"] for name, one in data["controllers"].items()}).partition("\n\n")[2]
    return f"`{data['command']}`:\n\n{table.partition(chr(10) * 2)[0]}\n\n{describe_standing(data, suite.score)}"


def _format_cell(value: float | None, metric: Metric) -> str:
    return "-" if value is None else f"{value * metric.factor:.{metric.digits}f}"


def _format_interval(own: Mapping[str, Any], metric: Metric) -> str:
    """Format a metric, with the half-width of its interval, and of a percentile the number of flows, where they are known."""
    half, flows = own.get(f"{metric.key}_half"), _find_flow_range([own], metric)
    interval = f" ± {_format_cell(half, metric)}" if half is not None else ""
    return _format_cell(own[metric.key], metric) + interval + (f", {format_flows(flows)}" if flows is not None else "")


class ReportWriter(Protocol):
    """Writer of a run's results; raises ConfigError on construction for an order that it cannot report.

    Attributes:
        needs: Controllers that the report requires; they are run even if the user did not name them.
    """

    needs: Sequence[str]

    def write(self, played: Sequence[SuiteRun], failed: Mapping[str, str], models: Mapping[str, str | None]) -> tuple[str, str]:
        """Write the results into the order's folder.

        Args:
            played: Results of the controllers.
            failed: Controllers that failed, with reasons.
            models: Digests of the files of models.

        Returns:
            The text to print, and the closing message if the exit status is to be 1, else "".
        """
        ...


class FamilyReport:
    """Tables and figures by family; see `ReportWriter`."""

    needs: Sequence[str] = ()

    def __init__(self, suite: Suite, edition: Edition, families: Sequence[str], order: RunConfig):
        if order.beside is not None:
            raise ConfigError(
                f"beside = {', '.join(map(str, order.beside)) or '[]'}: {suite.name} ranks no controllers; valid: no beside"
            )
        self._suite, self._edition, self._families, self._order = suite, edition, families, order
        self._before = None if order.against is None else read_earlier(order.against, suite, edition, families)

    def write(self, played: Sequence[SuiteRun], failed: Mapping[str, str], models: Mapping[str, str | None]) -> tuple[str, str]:
        """Write worlds.csv, table.md, figures/ and result.json; see `ReportWriter`."""
        suite, edition, families, order = self._suite, self._edition, self._families, self._order
        summaries = {one.name: summarise(one, suite, families) for one in played}
        table = format_tables(suite, summaries, failed)
        few = warn_of_few(suite, summaries)
        table += f"\n\nWarning: {few}" if few else ""
        behind: list[str] = []
        if self._before is not None and played:
            beside, behind = compare_results(suite, summaries, self._before, order.tolerance)
            table += f"\n\nagainst {order.against}\n\n{beside}"
        # result.json marks the folder as complete and of one run, so it is removed first and written last.
        (order.output / "result.json").unlink(missing_ok=True)
        write_atomic(order.output / "worlds.csv", format_rows(played, suite, order.command))
        title = f"suite {suite.name}, version {edition.version}"
        write_atomic(order.output / "table.md", f"{title}\n\n{table}\n\n{format_notes(suite, families)}\n")
        if order.figures and played:
            draw_figures(suite, played, families, order.output / "figures", title)
        data: dict[str, Any] = to_dict(suite, edition, played, summaries, models, order.command, failed)
        write_json(order.output / "result.json", data)
        return table, f"behind {order.against} by more than {order.tolerance:g}: {', '.join(behind)}" if behind else ""


LOWEST = 0.02
"""Quantile of all scores at which figures of scores begin, so that a few failures do not hide the rest."""


def draw_figures(suite: Suite, played: Sequence[SuiteRun], families: Sequence[str], folder: Path, title: str) -> list[Path]:
    """Draw families.png, worlds.png and scatter.png into a folder and return their paths.

    Raises:
        MissingExtraError: If matplotlib is not installed.
        OSError: If a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.png" for name in ("families", "worlds", "scatter")]
    draw_families(suite, played, families, paths[0], title)
    draw_distribution(suite, played, paths[1], title)
    tradeoff_scatter(suite, played, families, paths[2], title)
    return paths


def draw_families(suite: Suite, played: Sequence[SuiteRun], families: Sequence[str], path: Path, title: str) -> None:
    """Draw a row per family: faint dots for worlds, a marker for the mean of each controller."""
    figure = plots.make_figure(7.2, 1.2 + 0.48 * len(families))
    axes, key = figure.add_subplot(), suite.score.key
    for number, one in enumerate(played):
        colour, marker, _ = plots.get_style(number)
        shift = 0.75 * ((number + 0.5) / len(played) - 0.5)
        for row, family in enumerate(families):
            values = np.asarray(one.list_values(key, family), float)
            values = values[np.isfinite(values)]
            axes.plot(values, np.full(len(values), row + shift), ".", color=colour, alpha=0.3, markersize=4, zorder=2)
            if len(values):
                label = one.name if row == 0 else None
                look = {"markersize": _get_marker_size(marker), "markeredgecolor": "white", "zorder": 3 + (number == 0)}
                axes.plot(values.mean(), row + shift, marker, color=colour, label=label, linestyle="none", **look)
    axes.set_yticks(range(len(families)), families)
    axes.invert_yaxis()
    axes.axvline(0, **plots.LIMIT)
    _limit_score_axis(axes, suite, played)
    plots.format_axes(axes, f"{suite.score.label} (small: worlds, large: means)", title=title)
    plots.add_legend_below(figure, [axes])
    plots.write_figure(figure, path)


def draw_distribution(suite: Suite, played: Sequence[SuiteRun], path: Path, title: str) -> None:
    """Draw the share of the worlds in which each controller's score is below a value."""
    figure = plots.make_figure(6.4, 4.0)
    axes = figure.add_subplot()
    for number, one in enumerate(played):
        values = np.sort(np.asarray(one.list_values(suite.score.key), float))  # NaN comes last and is not drawn
        colour, _, dashes = plots.get_style(number)
        share = np.arange(1, len(values) + 1) / max(len(values), 1)
        axes.step(values, share, where="post", color=colour, linestyle=dashes, linewidth=plots.WIDE, label=one.name)
    axes.set_ylim(0, 1)
    _limit_score_axis(axes, suite, played)
    plots.format_axes(axes, suite.score.label, "share of the worlds below", title, legend=1)
    plots.write_figure(figure, path)


def tradeoff_scatter(suite: Suite, played: Sequence[SuiteRun], families: Sequence[str], path: Path, title: str) -> None:
    """Draw a panel per family, one metric against another: faint dots for worlds, large markers for means."""
    x, y = (suite.metric(key) for key in suite.scatter)
    columns = min(4, len(families))
    lines = -(-len(families) // columns)
    figure = plots.make_figure(0.6 + 2.3 * columns, 0.9 + 1.9 * lines)
    panels = figure.subplots(lines, columns, squeeze=False)
    for index, (axes, family) in enumerate(zip(panels.flat, families, strict=False)):
        everything = np.concatenate([x.factor * np.asarray(one.list_values(x.key, family), float) for one in played])
        plots.set_log_scale(axes, "x", everything)
        for number, one in enumerate(played):
            colour, marker, _ = plots.get_style(number)
            across = x.factor * np.asarray(one.list_values(x.key, family), float)
            up = y.factor * np.asarray(one.list_values(y.key, family), float)
            both = np.isfinite(across) & np.isfinite(up)
            axes.plot(across[both], up[both], ".", color=colour, alpha=0.35, markersize=4, zorder=2)
            if both.any():
                centre = across[both].mean(), up[both].mean()
                look = {"markersize": _get_marker_size(marker), "markeredgecolor": "white", "linestyle": "none", "zorder": 3}
                axes.plot(*centre, marker, color=colour, label=one.name, **look)
        highest = np.concatenate([y.factor * np.asarray(one.list_values(y.key, family), float) for one in played])
        axes.set_ylim(0, 1.1 * float(np.nanmax(highest, initial=1e-9)))
        last = index + columns >= len(families)
        plots.format_axes(axes, x.label if last else "", y.label if index % columns == 0 else "", family)
    for axes in list(panels.flat)[len(families) :]:
        axes.set_axis_off()
    figure.suptitle(title, fontsize=plots.TEXT + 1)
    plots.add_legend_below(figure, list(panels.flat))
    plots.write_figure(figure, path)


def _get_marker_size(marker: str) -> int:
    """Return the size at which a marker looks as large as the others."""
    return 12 if marker == "*" else 8


def _limit_score_axis(axes: object, suite: Suite, played: Sequence[SuiteRun]) -> None:
    """Start the score axis where all but a few scores lie; the others are left to the tables."""
    values = np.concatenate([np.asarray(one.list_values(suite.score.key), float) for one in played])
    values = values[np.isfinite(values)]
    if len(values) > 20:
        low, high = float(np.quantile(values, LOWEST)), float(values.max())
        axes.set_xlim(left=low - 0.05 * (high - low), right=high + 0.05 * (high - low))  # type: ignore[attr-defined]
