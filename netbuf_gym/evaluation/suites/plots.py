"""Figures of a suite: the score by family, its distribution over the worlds, and the trade-off between two metrics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from netbuf_gym.evaluation.suites.runner import SuiteRun
from netbuf_gym.evaluation.suites.suite import Suite
from netbuf_gym.utils import plots

LOWEST = 0.02
"""Quantile of all scores at which figures of scores begin, so that a few failures do not hide the rest."""


def draw(suite: Suite, played: Sequence[SuiteRun], families: Sequence[str], folder: Path, title: str) -> list[Path]:
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
            values = np.asarray(one.of(key, family), float)
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
        values = np.sort(np.asarray(one.of(suite.score.key), float))  # NaN comes last and is not drawn
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
        everything = np.concatenate([x.factor * np.asarray(one.of(x.key, family), float) for one in played])
        plots.set_log_scale(axes, "x", everything)
        for number, one in enumerate(played):
            colour, marker, _ = plots.get_style(number)
            across = x.factor * np.asarray(one.of(x.key, family), float)
            up = y.factor * np.asarray(one.of(y.key, family), float)
            both = np.isfinite(across) & np.isfinite(up)
            axes.plot(across[both], up[both], ".", color=colour, alpha=0.35, markersize=4, zorder=2)
            if both.any():
                centre = across[both].mean(), up[both].mean()
                look = {"markersize": _get_marker_size(marker), "markeredgecolor": "white", "linestyle": "none", "zorder": 3}
                axes.plot(*centre, marker, color=colour, label=one.name, **look)
        highest = np.concatenate([y.factor * np.asarray(one.of(y.key, family), float) for one in played])
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
    values = np.concatenate([np.asarray(one.of(suite.score.key), float) for one in played])
    values = values[np.isfinite(values)]
    if len(values) > 20:
        low, high = float(np.quantile(values, LOWEST)), float(values.max())
        axes.set_xlim(left=low - 0.05 * (high - low), right=high + 0.05 * (high - low))  # type: ignore[attr-defined]
