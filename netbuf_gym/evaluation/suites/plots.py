"""The pictures of a suite: the score by family, its distribution over the worlds, and what is bought with what."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from netbuf_gym.evaluation.suites.runner import Played
from netbuf_gym.evaluation.suites.suite import Suite
from netbuf_gym.utils import plots

LOWEST = 0.02
"""Quantile of all scores below which the pictures of them end, so that a few failures do not hide the rest."""


def draw(suite: Suite, played: Sequence[Played], families: Sequence[str], folder: Path, title: str) -> list[Path]:
    """Draws families.png, worlds.png and scatter.png into a folder.

    Raises:
        MissingExtraError: matplotlib is not installed.
        OSError: A file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.png" for name in ("families", "worlds", "scatter")]
    by_family(suite, played, families, paths[0], title)
    distribution(suite, played, paths[1], title)
    bought(suite, played, families, paths[2], title)
    return paths


def by_family(suite: Suite, played: Sequence[Played], families: Sequence[str], path: Path, title: str) -> None:
    """A row a family: every world faintly, the mean of each controller as its marker."""
    figure = plots.figure_of(7.2, 1.2 + 0.48 * len(families))
    axes, key = figure.add_subplot(), suite.score.key
    for number, one in enumerate(played):
        colour, marker, _ = plots.style(number)
        shift = 0.75 * ((number + 0.5) / len(played) - 0.5)
        for row, family in enumerate(families):
            values = np.asarray(one.of(key, family), float)
            values = values[np.isfinite(values)]
            axes.plot(values, np.full(len(values), row + shift), ".", color=colour, alpha=0.3, markersize=4, zorder=2)
            if len(values):
                label = one.name if row == 0 else None
                look = {"markersize": _size(marker), "markeredgecolor": "white", "zorder": 3 + (number == 0)}
                axes.plot(values.mean(), row + shift, marker, color=colour, label=label, linestyle="none", **look)
    axes.set_yticks(range(len(families)), families)
    axes.invert_yaxis()
    axes.axvline(0, **plots.LIMIT)
    _from_lowest(axes, suite, played)
    plots.dress(axes, f"{suite.score.label} (small: worlds, large: means)", title=title)
    plots.legend_below(figure, [axes])
    plots.write(figure, path)


def distribution(suite: Suite, played: Sequence[Played], path: Path, title: str) -> None:
    """The share of the worlds in which each controller's score is below a value."""
    figure = plots.figure_of(6.4, 4.0)
    axes = figure.add_subplot()
    for number, one in enumerate(played):
        values = np.sort(np.asarray(one.of(suite.score.key), float))  # NaN last, where no line is
        colour, _, dashes = plots.style(number)
        share = np.arange(1, len(values) + 1) / max(len(values), 1)
        axes.step(values, share, where="post", color=colour, linestyle=dashes, linewidth=plots.WIDE, label=one.name)
    axes.set_ylim(0, 1)
    _from_lowest(axes, suite, played)
    plots.dress(axes, suite.score.label, "share of the worlds below", title, legend=1)
    plots.write(figure, path)


def bought(suite: Suite, played: Sequence[Played], families: Sequence[str], path: Path, title: str) -> None:
    """A panel a family: one metric against another, every world faintly, means large."""
    x, y = (suite.metric(key) for key in suite.scatter)
    columns = min(4, len(families))
    lines = -(-len(families) // columns)
    figure = plots.figure_of(0.6 + 2.3 * columns, 0.9 + 1.9 * lines)
    panels = figure.subplots(lines, columns, squeeze=False)
    for index, (axes, family) in enumerate(zip(panels.flat, families, strict=False)):
        everything = np.concatenate([x.factor * np.asarray(one.of(x.key, family), float) for one in played])
        plots.logarithmic(axes, "x", everything)
        for number, one in enumerate(played):
            colour, marker, _ = plots.style(number)
            across = x.factor * np.asarray(one.of(x.key, family), float)
            up = y.factor * np.asarray(one.of(y.key, family), float)
            both = np.isfinite(across) & np.isfinite(up)
            axes.plot(across[both], up[both], ".", color=colour, alpha=0.35, markersize=4, zorder=2)
            if both.any():
                centre = across[both].mean(), up[both].mean()
                look = {"markersize": _size(marker), "markeredgecolor": "white", "linestyle": "none", "zorder": 3}
                axes.plot(*centre, marker, color=colour, label=one.name, **look)
        highest = np.concatenate([y.factor * np.asarray(one.of(y.key, family), float) for one in played])
        axes.set_ylim(0, 1.1 * float(np.nanmax(highest, initial=1e-9)))
        last = index + columns >= len(families)
        plots.dress(axes, x.label if last else "", y.label if index % columns == 0 else "", family)
    for axes in list(panels.flat)[len(families) :]:
        axes.set_axis_off()
    figure.suptitle(title, fontsize=plots.TEXT + 1)
    plots.legend_below(figure, list(panels.flat))
    plots.write(figure, path)


def _size(marker: str) -> int:
    """At which markers look alike large."""
    return 12 if marker == "*" else 8


def _from_lowest(axes: object, suite: Suite, played: Sequence[Played]) -> None:
    """Lets the abscissa of scores begin where all but a few of them lie; of the rest the picture says nothing, tables do."""
    values = np.concatenate([np.asarray(one.of(suite.score.key), float) for one in played])
    values = values[np.isfinite(values)]
    if len(values) > 20:
        low, high = float(np.quantile(values, LOWEST)), float(values.max())
        axes.set_xlim(left=low - 0.05 * (high - low), right=high + 0.05 * (high - low))  # type: ignore[attr-defined]
