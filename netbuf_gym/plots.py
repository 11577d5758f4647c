"""Pictures of evaluations. Needs matplotlib (`pip install netbuf-gym[train]`), loaded when a picture is drawn.

Every function writes one file, atomically; its suffix decides the format (png, pdf, svg).
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.errors import ConfigError, MissingExtraError
from netbuf_gym.files import write_atomic

FORMATS = ("png", "pdf", "svg")
COLOURS = (
    *("#d1495b", "#00798c", "#edae49", "#3d348b", "#6a994e", "#8a8a8a", "#b5179e", "#7f4f24", "#48cae4", "#000000"),
    *("#ff8fab", "#2a52be", "#a3a300", "#ff7f2a", "#1fbf8f"),
)
MARKERS = "*osD^vPXh<>pd8H"
DASHES = ("-", "--", ":", "-.")


def style(index: int) -> tuple[str, str, str]:
    """Colour, marker and line style of the contender of this number; after fifteen the next line style begins."""
    return COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)], DASHES[index // len(COLOURS) % len(DASHES)]


def throughput_delay(
    points: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    path: str | Path,
    title: str = "",
    capacity_mbps: float | None = None,
    xlabel: str = "mean queueing delay (ms)",
    ylabel: str = "goodput (Mbit/s)",
) -> None:
    """Throughput against queueing delay, or against what else it is bought with.

    One point a contender, an ellipse of one standard deviation, its runs faintly.

    Args:
        points: for each contender (mean queueing delays in ms, throughputs in Mbit/s), one pair a run.
        capacity_mbps: drawn as a line.
        xlabel, ylabel: what the points are.
    """
    figure = figure_of(6.4, 4.4)
    axes = figure.add_subplot()
    if capacity_mbps is not None:
        axes.axhline(capacity_mbps, color="0.75", linewidth=1, linestyle="--", zorder=0)
    for index, (name, (delays, throughputs)) in enumerate(points.items()):
        delay, throughput = _both_finite(delays, throughputs)
        if not len(delay):
            continue
        delay = np.maximum(delay, 1e-2)
        colour, marker, dashes = style(index)
        axes.plot(delay, throughput, ".", color=colour, alpha=0.25, markersize=4, zorder=1)
        centre = delay.mean(), throughput.mean()  # as in the tables; the ellipse is that of the logarithms
        if len(delay) > 2:
            outline = _ellipse(np.log(delay), throughput)
            axes.plot(*outline, color=colour, linewidth=1, linestyle=dashes, alpha=0.8, zorder=2)
        size = 14 if marker == "*" else 8
        axes.plot(*centre, marker, color=colour, markersize=size, markeredgecolor="white", label=name, zorder=3)
    axes.set_xscale("log")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_title(title)
    axes.legend(frameon=False, fontsize=8)
    axes.grid(alpha=0.25)
    write(figure, path)


def time_series(
    series: Mapping[str, Mapping[str, Any]],
    path: str | Path,
    rows: Sequence[tuple[str, str]],
    title: str = "",
    numbers: Mapping[str, int] | None = None,
) -> None:
    """Quantities over time; one panel each, one line a contender.

    Args:
        series: for each contender arrays `time_s` and those that `rows` names, (samples,).
        rows: names and labels of the panels.
        numbers: of the contenders, which decide how their lines look (`style`); None: as they come.
    """
    figure = figure_of(7.2, 6.4)
    panels = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (key, label) in zip(panels, rows, strict=True):
        top = low = 0.0
        for index, (name, one) in enumerate(series.items()):
            values = np.asarray(one[key], dtype=float)
            first = index == 0  # the agent: on top
            colour, _, dashes = style(index if numbers is None else numbers[name])
            axes.plot(
                one["time_s"],
                values,
                color=colour,
                linestyle=dashes,
                linewidth=1.6 if first else 0.9,
                alpha=1.0 if first else 0.75,
                zorder=3 if first else 2,
                label=name,
            )
            top, low = max(top, float(np.nanmax(values, initial=0.0))), min(low, float(np.nanmin(values, initial=0.0)))
        if top > 500:
            axes.set_yscale("symlog", linthresh=10)
        if low == 0:
            axes.set_ylim(bottom=0)
        axes.set_ylabel(label)
        axes.grid(alpha=0.25)
    panels[0].set_title(title)
    panels[0].legend(frameon=False, fontsize=8, ncols=3)
    panels[-1].set_xlabel("time (s)")
    write(figure, path)


def learning_curves(
    curves: Mapping[str, Sequence[tuple[Sequence[float], Sequence[float]]]],
    path: str | Path,
    ylabel: str,
    xlabel: str = "environment steps",
    title: str = "",
) -> None:
    """Mean over runs with their range shaded, one line a learner.

    Args:
        curves: for each learner its runs, each (x ascending, y).
    """
    figure = figure_of(6.4, 4.0)
    axes = figure.add_subplot()
    for index, (name, runs) in enumerate(curves.items()):
        lines = [(np.asarray(x, float), np.asarray(y, float)) for x, y in runs if len(x)]
        if not lines:
            continue
        grid = np.linspace(max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines), 200)
        values = np.stack([np.interp(grid, x, y) for x, y in lines])
        colour = style(index)[0]
        axes.plot(grid, values.mean(axis=0), color=colour, label=f"{name} ({len(runs)} seeds)")
        axes.fill_between(grid, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.2, linewidth=0)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_title(title)
    axes.legend(frameon=False, fontsize=8)
    axes.grid(alpha=0.25)
    write(figure, path)


def figure_of(width: float, height: float) -> Any:
    """An empty figure of this size in inches, which no window shows.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("a plot", "train", "matplotlib") from None
    return Figure(figsize=(width, height), layout="constrained")


def pyplot() -> Any:
    """matplotlib.pyplot, drawing to files only.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise MissingExtraError("a plot", "train", error.name) from None
    matplotlib.use("Agg")
    import matplotlib.pyplot

    return matplotlib.pyplot


def write(figure: Any, path: str | Path, dpi: int = 150) -> None:
    """Writes a figure, atomically; its suffix decides the format.

    Raises:
        ConfigError: the suffix is none of `FORMATS`.
        OSError: the file cannot be written.
    """
    kind = Path(path).suffix.lower().lstrip(".")
    if kind not in FORMATS:
        raise ConfigError(f"{path}: cannot draw a {kind or 'file without suffix'}; valid: {', '.join(FORMATS)}")
    data = io.BytesIO()
    figure.savefig(data, format=kind, dpi=dpi)
    write_atomic(path, data.getvalue())


def _ellipse(log_x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One standard deviation around the mean, in the plane of log x and y; (x, y) of its outline."""
    values, vectors = np.linalg.eigh(np.cov(log_x, y))
    angle = np.linspace(0, 2 * np.pi, 100)
    circle = np.stack((np.cos(angle), np.sin(angle)))
    outline = vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * circle)
    return np.exp(outline[0] + log_x.mean()), outline[1] + y.mean()


def _both_finite(x: Sequence[float], y: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """The pairs without NaN."""
    pairs = np.array((x, y), dtype=float)
    kept = pairs[:, np.isfinite(pairs).all(axis=0)]
    return kept[0], kept[1]
