"""Pictures: the one style of everything that the package draws, and the pictures that evaluations and learners are drawn in.

Needs matplotlib (`pip install netbuf-gym[plots]`), loaded when a picture is drawn. Whoever draws takes colours, markers and
dashes from `style`, an empty figure from `figure_of`, finishes each axes with `dress`, and writes with `write`, atomically; the
suffix of the file decides the format (png, pdf, svg).
"""

from __future__ import annotations

import io
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from netbuf_gym.errors import ConfigError, MissingExtraError
from netbuf_gym.utils.files import write_atomic

FORMATS = ("png", "pdf", "svg")
COLOURS = (
    *("#d1495b", "#00798c", "#edae49", "#3d348b", "#6a994e", "#8a8a8a", "#b5179e", "#7f4f24", "#48cae4", "#000000"),
    *("#ff8fab", "#2a52be", "#a3a300", "#ff7f2a", "#1fbf8f"),
)
MARKERS = "*osD^vPXh<>pd8H"
DASHES = ("-", "--", ":", "-.")
LIMIT = {"color": "0.45", "linewidth": 1.0, "linestyle": "--", "zorder": 1.5}
"""How capacities, means and other lines to compare with are drawn."""
TEXT, SMALL = 9, 8
"""Sizes of labels, and of ticks and legends, in points."""
LEGEND = {"fontsize": SMALL, "frameon": True, "facecolor": "white", "framealpha": 0.75, "edgecolor": "none"}
"""How legends inside of axes are drawn: what is behind them shows through, and does not cross them out."""
WIDE, LINE, THIN = 1.6, 1.1, 0.7
"""Widths of lines: of what a picture is about, of others, of what lies behind them."""
DPI = 130
SYMLOG_BELOW = 10.0
"""Quantities that span decades are drawn linearly below this, and on logarithmic axes where none of their values is."""

Steps = tuple[np.ndarray, np.ndarray]
"""A quantity that is constant between edges: edges (steps + 1,), values (steps,)."""


def style(index: int) -> tuple[str, str, str]:
    """Colour, marker and line style of the controller of this number; after fifteen the next line style begins."""
    return COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)], DASHES[index // len(COLOURS) % len(DASHES)]


def dress(axes: Any, xlabel: str = "", ylabel: str = "", title: str = "", legend: int = 0, grid: str = "both") -> None:
    """What all axes have alike: labels, grid, sizes of text.

    Args:
        legend: its number of columns; 0: none. There is none either where nothing has a name.
        grid: which axes have lines, "both", "x" or "y"; "": none.
    """
    if grid:
        axes.grid(alpha=0.25, axis=grid)
    axes.tick_params(labelsize=SMALL, which="both")
    if xlabel:
        axes.set_xlabel(xlabel, fontsize=TEXT)
    if ylabel:
        axes.set_ylabel(ylabel, fontsize=TEXT)
    if title:
        axes.set_title(title, fontsize=TEXT + 1)
    if legend and axes.get_legend_handles_labels()[0]:
        axes.legend(ncols=legend, **LEGEND)


def from_zero(axes: Any) -> None:
    """Lets the ordinate begin at 0 where nothing that is drawn lies below it; leaves logarithmic ones alone."""
    if axes.get_yscale() != "linear":
        return
    drawn = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines] or [np.zeros(0)])
    drawn = drawn[np.isfinite(drawn)]
    if (drawn >= 0).all():
        axes.set_ylim(0, 1.05 * float(drawn.max(initial=0.0)) or 1.0)


def steps(axes: Any, limit: Steps, label: str | None = None, most_s: float | None = None) -> None:
    """Draws what is constant between edges, a link's capacity for one, as a line behind the others.

    What is infinite or NaN is left out; so is what begins after `most_s`.
    """
    edges, values = (np.asarray(part, float) for part in limit)
    if most_s is not None:
        kept = max(1, int((edges[:-1] < most_s).sum()))
        edges, values = np.minimum(edges[: kept + 1], most_s), values[:kept]
    values = np.where(np.isfinite(values), values, np.nan)
    if np.isfinite(values).any():
        x, y = np.repeat(edges, 2)[1:-1], np.repeat(values, 2)
        axes.plot(x, y, label=label, **(LIMIT | ({} if len(values) == 1 else {"linestyle": "-", "linewidth": THIN})))


def throughput_delay(
    points: Mapping[str, tuple[ArrayLike, ArrayLike]],
    path: str | os.PathLike,
    title: str = "",
    capacity_mbps: float | None = None,
    xlabel: str = "mean queueing delay (ms)",
    ylabel: str = "goodput (Mbit/s)",
    capacity_label: str = "capacity",
) -> None:
    """Throughput against queueing delay, or against what else it is bought with.

    One point a controller, an ellipse of one standard deviation, its runs faintly. The abscissa is logarithmic; where a value
    is 0 or below it is so on both sides of a linear stretch, and nothing is moved or left out.

    Args:
        points: for each controller (mean queueing delays in ms, throughputs in Mbit/s), one pair a run.
        capacity_mbps: drawn as a line, called `capacity_label`.
        xlabel, ylabel: what the points are.
    """
    figure = figure_of(6.4, 4.4)
    axes = figure.add_subplot()
    if capacity_mbps is not None and np.isfinite(capacity_mbps):
        axes.axhline(capacity_mbps, label=f"{capacity_label} {capacity_mbps:.4g}", **LIMIT)
    pairs = {name: _both_finite(*values) for name, values in points.items()}
    width = logarithmic(axes, "x", np.concatenate([x for x, _ in pairs.values()] or [np.ones(0)]))
    for index, (name, (delay, throughput)) in enumerate(pairs.items()):
        if not len(delay):
            continue
        colour, marker, dashes = style(index)
        axes.plot(delay, throughput, ".", color=colour, alpha=0.25, markersize=4, zorder=1)
        centre = delay.mean(), throughput.mean()  # as in the tables; the ellipse is that of the abscissa as it is drawn
        if len(delay) > 2:
            bent = np.log(delay) if width is None else np.arcsinh(delay / width)
            x, y = _ellipse(bent, throughput)
            x = np.exp(x) if width is None else np.sinh(x) * width
            axes.plot(x, y, color=colour, linewidth=1, linestyle=dashes, alpha=0.8, zorder=2)
        size = 14 if marker == "*" else 8
        axes.plot(*centre, marker, color=colour, markersize=size, markeredgecolor="white", label=name, zorder=3)
    dress(axes, xlabel, ylabel, title, legend=1)
    write(figure, path)


def time_series(
    series: Mapping[str, Mapping[str, Any]],
    path: str | os.PathLike,
    rows: Sequence[tuple[str, str]],
    title: str = "",
    numbers: Mapping[str, int] | None = None,
    limits: Mapping[str, tuple[str, Steps]] | None = None,
) -> None:
    """Quantities over time; one panel each, one line a controller, the first on top.

    Args:
        series: for each controller arrays `time_s` and those that `rows` names, (samples,).
        rows: names and labels of the panels.
        numbers: of the controllers, which decide how their lines look (`style`); None: as they come.
        limits: of quantities, with labels: a link's capacity over time.
    """
    many = len(series) > 8
    figure = figure_of(7.2, 0.6 + 1.95 * len(rows) + (0.2 * ((len(series) + 4) // 5) if many else 0))
    panels = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
    end_s = max((float(one["time_s"][-1]) for one in series.values() if len(one["time_s"])), default=None)
    for axes, (key, label) in zip(panels, rows, strict=True):
        drawn = []
        for index, (name, one) in enumerate(series.items()):
            values = np.asarray(one[key], dtype=float)
            first = index == 0  # the agent: on top
            colour, _, dashes = style(index if numbers is None else numbers[name])
            look = {"linewidth": WIDE, "zorder": 3} if first else {"linewidth": 0.9, "alpha": 0.75, "zorder": 2}
            axes.plot(one["time_s"], values, color=colour, linestyle=dashes, label=name, **look)
            drawn.append(values)
        if limits and key in limits:
            steps(axes, limits[key][1], limits[key][0], end_s)
        everything = np.concatenate(drawn or [np.ones(0)])
        if np.isfinite(everything).any() and np.nanmax(np.abs(everything)) > 500:
            if np.nanmin(everything) >= SYMLOG_BELOW:
                axes.set_yscale("log")
            else:
                axes.set_yscale("symlog", linthresh=SYMLOG_BELOW)
        from_zero(axes)
        if axes.get_yscale() == "symlog" and np.nanmin(everything) >= 0:
            axes.set_ylim(bottom=0)
        dress(axes, ylabel=label)
    if title:
        panels[0].set_title(title, fontsize=TEXT + 1)
    legend_below(figure, panels) if many else dress(panels[0], legend=3)
    named = [axes for axes, (key, _) in zip(panels, rows, strict=True) if limits and key in limits]
    if not many and named and named[0] is not panels[0]:
        handles, labels = named[0].get_legend_handles_labels()
        if len(labels) > len(series):
            named[0].legend(handles[-1:], labels[-1:], **LEGEND)
    panels[-1].set_xlabel("time (s)", fontsize=TEXT)
    write(figure, path)


def learning_curves(
    curves: Mapping[str, Sequence[tuple[Sequence[float], Sequence[float]]]],
    path: str | os.PathLike,
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
    for index, (name, given) in enumerate(curves.items()):
        runs = [(x, y) for x, y in (_both_finite(*run) for run in given) if len(x)]
        if not runs:
            continue
        grid = np.linspace(max(x[0] for x, _ in runs), min(x[-1] for x, _ in runs), 200)
        values = np.stack([np.interp(grid, x, y) for x, y in runs])
        colour, _, dashes = style(index)
        label = f"{name} ({len(runs)} seeds)" if len(runs) > 1 else name
        if len(runs) == 1:
            grid, values = runs[0][0], runs[0][1][None]
        dot = "." if len(grid) == 1 else ""
        axes.plot(grid, values.mean(axis=0), color=colour, linestyle=dashes, linewidth=WIDE, marker=dot, label=label)
        axes.fill_between(grid, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.2, linewidth=0)
    dress(axes, xlabel, ylabel, title, legend=1)
    write(figure, path)


def logarithmic(axes: Any, which: str, values: np.ndarray) -> float | None:
    """Makes an axis logarithmic, whatever is to be drawn on it.

    Returns:
        None where it is; where a value is 0 or below, the half-width of the stretch around 0 in which it is linear (the inverse
        hyperbolic sine of the values over it is what is drawn evenly).
    """
    known = np.asarray(values, float)
    known = known[np.isfinite(known)]
    setter = axes.set_xscale if which == "x" else axes.set_yscale
    if not len(known) or (known > 0).all():
        setter("log")
        log_ticks(axes.xaxis if which == "x" else axes.yaxis)
        return None
    sizes = np.abs(known[known != 0])
    width = float(np.clip(sizes.min(), sizes.max() * 1e-4, None)) if len(sizes) else 1.0
    setter("asinh", linear_width=width)
    low, high = (math.ceil(math.log10(one) - 1e-9) for one in (width, max(sizes.max(initial=width), width)))
    decades = 10.0 ** np.arange(low, high + 1)
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_ticks([*(-decades[::-1] if (known < 0).any() else ()), 0.0, *decades], minor=False)
    axis.set_ticks([], minor=True)
    axis.set_major_formatter("{x:g}")
    return width


def log_ticks(axis: Any) -> None:
    """Plain numbers at 1, 2 and 5 of each decade of a logarithmic axis."""
    from matplotlib.ticker import LogLocator

    axis.set_minor_locator(LogLocator(subs=(2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("{x:g}")


def legend_below(figure: Any, panels: Iterable[Any], columns: int = 5, inches: float = 0.0, first: Sequence[str] = ()) -> None:
    """One legend below all panels, of whatever any of them shows.

    Args:
        columns: its columns; with `inches` instead one for so much of the figure's width, two at least.
        first: labels in the order in which they come first, where there are such.
    """
    named: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    if not named:
        return
    order = [label for label in first if label in named]
    order += [label for label in named if label not in order]
    if inches:
        columns = min(len(order), max(2, int(figure.get_figwidth() // inches)))
    handles = [named[label] for label in order]
    figure.legend(handles, order, loc="outside lower center", ncols=columns, frameon=False, fontsize=SMALL)


def figure_of(width: float, height: float) -> Any:
    """An empty figure of this size in inches, which no window shows.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("a plot", "plots", "matplotlib") from None
    return Figure(figsize=(width, height), layout="constrained")


def require() -> None:
    """Raises MissingExtraError where nothing can be drawn."""
    figure_of(1, 1)


def format_of(path: str | os.PathLike) -> str:
    """The format that a file's suffix stands for.

    Raises:
        ConfigError: it is none of `FORMATS`.
    """
    kind = Path(path).suffix.lower().lstrip(".")
    if kind not in FORMATS:
        raise ConfigError(f"{path}: cannot draw a {kind or 'file without suffix'}; valid: {', '.join(FORMATS)}")
    return kind


def write(figure: Any, path: str | os.PathLike, dpi: int = DPI) -> None:
    """Writes a figure, atomically; its suffix decides the format.

    Raises:
        ConfigError: the suffix is none of `FORMATS`.
        OSError: the file cannot be written.
    """
    kind, data = format_of(path), io.BytesIO()
    figure.savefig(data, format=kind, dpi=dpi)
    write_atomic(path, data.getvalue())


def write_drawn(plot: Callable[[], object], path: str | os.PathLike) -> None:
    """Writes the picture that another library draws as the current one of pyplot; its figures are closed.

    Nothing is shown; the backend that pyplot had is set again afterwards (IPython wants `%matplotlib inline` besides).
    """
    import matplotlib

    others = matplotlib.get_backend() if "matplotlib.pyplot" in sys.modules else None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    before = set(plt.get_fignums())
    try:
        with matplotlib.rc_context(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about settings that were all tried at one value, and layouts with colour bars
            plot()
            plt.gcf().tight_layout()
            write(plt.gcf(), path)
    finally:
        for number in set(plt.get_fignums()) - before:
            plt.close(number)
        if others is not None:
            plt.switch_backend(others)


def _ellipse(x: np.ndarray, y: np.ndarray) -> Steps:
    """One standard deviation around the mean; (x, y) of its outline."""
    values, vectors = np.linalg.eigh(np.cov(x, y))
    angle = np.linspace(0, 2 * np.pi, 100)
    circle = np.stack((np.cos(angle), np.sin(angle)))
    outline = vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * circle)
    return outline[0] + x.mean(), outline[1] + y.mean()


def _both_finite(x: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The pairs without NaN."""
    pairs = np.array((x, y), dtype=float)
    kept = pairs[:, np.isfinite(pairs).all(axis=0)]
    return kept[0], kept[1]
