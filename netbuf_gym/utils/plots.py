"""Figures: the common style of everything that the package draws, and the figures of evaluations and learners.

Needs matplotlib (`pip install netbuf-gym[plots]`), loaded when a figure is drawn. Drawing code takes colours, markers and
dashes from `get_style`, an empty figure from `make_figure`, finishes each axes with `format_axes`, and writes with
`write_figure`, atomically; the suffix of the file decides the format (png, pdf, svg).
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

from netbuf_gym.errors import ConfigError, MissingExtraError, escape_surrogates
from netbuf_gym.utils.files import write_atomic

FORMATS = ("png", "pdf", "svg")
COLOURS = (
    *("#d1495b", "#00798c", "#edae49", "#3d348b", "#6a994e", "#8a8a8a", "#b5179e", "#7f4f24", "#48cae4", "#000000"),
    *("#ff8fab", "#2a52be", "#a3a300", "#ff7f2a", "#1fbf8f"),
)
MARKERS = "*osD^vPXh<>pd8H"
DASHES = ("-", "--", ":", "-.")
LIMIT = {"color": "0.45", "linewidth": 1.0, "linestyle": "--", "zorder": 1.5}
"""Line properties of capacities, means and other reference lines."""
TEXT, SMALL = 9, 8
"""Font sizes of labels, and of ticks and legends, in points."""
LEGEND = {"fontsize": SMALL, "frameon": True, "facecolor": "white", "framealpha": 0.75, "edgecolor": "none"}
"""Properties of legends inside axes: translucent, so that lines behind a legend show through without striking out its text."""
WIDE, LINE, THIN = 1.6, 1.1, 0.7
"""Line widths: of the main subject, of other lines, of background lines."""
DPI = 130
SYMLOG_BELOW = 10.0
"""Limit below which quantities that span decades are drawn linearly; axes without smaller values are purely logarithmic."""

Steps = tuple[np.ndarray, np.ndarray]
"""A quantity that is constant between edges: edges (steps + 1,), values (steps,)."""


def get_style(index: int) -> tuple[str, str, str]:
    """Return colour, marker and line style of the controller with this number; every fifteen, the next line style begins."""
    return COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)], DASHES[index // len(COLOURS) % len(DASHES)]


def format_axes(axes: Any, xlabel: str = "", ylabel: str = "", title: str = "", legend: int = 0, grid: str = "both") -> None:
    """Apply the common look of axes: labels, grid, font sizes.

    Args:
        legend: Number of the legend's columns; 0: no legend. There is none either if nothing has a label.
        grid: Axes with grid lines, "both", "x" or "y"; "": none.
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


def start_at_zero(axes: Any) -> None:
    """Start the ordinate at 0 unless a drawn value lies below it; logarithmic axes are left unchanged."""
    if axes.get_yscale() != "linear":
        return
    drawn = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines] or [np.zeros(0)])
    drawn = drawn[np.isfinite(drawn)]
    if (drawn >= 0).all():
        axes.set_ylim(0, 1.05 * float(drawn.max(initial=0.0)) or 1.0)


def plot_steps(axes: Any, limit: Steps, label: str | None = None, most_s: float | None = None) -> None:
    """Draw a piecewise constant quantity, such as a link's capacity, as a line behind the others.

    Infinite and NaN values are left out, and so are steps that begin after `most_s`.
    """
    edges, values = (np.asarray(part, float) for part in limit)
    if most_s is not None:
        kept = max(1, int((edges[:-1] < most_s).sum()))
        edges, values = np.minimum(edges[: kept + 1], most_s), values[:kept]
    values = np.where(np.isfinite(values), values, np.nan)
    if np.isfinite(values).any():
        x, y = np.repeat(edges, 2)[1:-1], np.repeat(values, 2)
        axes.plot(x, y, label=label, **(LIMIT | ({} if len(values) == 1 else {"linestyle": "-", "linewidth": THIN})))


def plot_throughput_delay(
    points: Mapping[str, tuple[ArrayLike, ArrayLike]],
    path: str | os.PathLike,
    title: str = "",
    capacity_mbps: float | None = None,
    xlabel: str = "mean queueing delay (ms)",
    ylabel: str = "goodput (Mbit/s)",
    capacity_label: str = "capacity",
) -> None:
    """Plot throughput against queueing delay, or against another cost.

    One point per controller, an ellipse of one standard deviation, its runs faintly. The abscissa is logarithmic; if a value
    is 0 or below it is logarithmic on both sides of a linear stretch, and nothing is moved or left out.

    Args:
        points: Mean queueing delays in ms and throughputs in Mbit/s by controller, one pair per run.
        capacity_mbps: Capacity drawn as a line, labelled `capacity_label`.
        xlabel, ylabel: Labels of the axes.
    """
    figure = make_figure(6.4, 4.4)
    axes = figure.add_subplot()
    if capacity_mbps is not None and np.isfinite(capacity_mbps):
        axes.axhline(capacity_mbps, label=f"{capacity_label} {capacity_mbps:.4g}", **LIMIT)
    pairs = {name: _keep_finite_pairs(*values) for name, values in points.items()}
    width = set_log_scale(axes, "x", np.concatenate([x for x, _ in pairs.values()] or [np.ones(0)]))
    for index, (name, (delay, throughput)) in enumerate(pairs.items()):
        if not len(delay):
            continue
        colour, marker, dashes = get_style(index)
        axes.plot(delay, throughput, ".", color=colour, alpha=0.25, markersize=4, zorder=1)
        centre = delay.mean(), throughput.mean()  # as in the tables; the ellipse is of the abscissa as drawn
        if len(delay) > 2:
            bent = np.log(delay) if width is None else np.arcsinh(delay / width)
            x, y = _compute_ellipse(bent, throughput)
            x = np.exp(x) if width is None else np.sinh(x) * width
            axes.plot(x, y, color=colour, linewidth=1, linestyle=dashes, alpha=0.8, zorder=2)
        size = 14 if marker == "*" else 8
        axes.plot(*centre, marker, color=colour, markersize=size, markeredgecolor="white", label=name, zorder=3)
    format_axes(axes, xlabel, ylabel, title, legend=1)
    write_figure(figure, path)


def plot_time_series(
    series: Mapping[str, Mapping[str, Any]],
    path: str | os.PathLike,
    rows: Sequence[tuple[str, str]],
    title: str = "",
    numbers: Mapping[str, int] | None = None,
    limits: Mapping[str, tuple[str, Steps]] | None = None,
) -> None:
    """Plot quantities over time: one panel per quantity, one line per controller, the first on top.

    Args:
        series: Arrays `time_s` and those named in `rows` by controller, (samples,) each.
        rows: Names and labels of the panels.
        numbers: Numbers of the controllers, which decide the look of their lines (`get_style`); None: in order.
        limits: Limits of quantities, with labels, such as a link's capacity over time.
    """
    many = len(series) > 8
    figure = make_figure(7.2, 0.6 + 1.95 * len(rows) + (0.2 * ((len(series) + 4) // 5) if many else 0))
    panels = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
    end_s = max((float(one["time_s"][-1]) for one in series.values() if len(one["time_s"])), default=None)
    for axes, (key, label) in zip(panels, rows, strict=True):
        drawn = []
        for index, (name, one) in enumerate(series.items()):
            values = np.asarray(one[key], dtype=float)
            first = index == 0  # the agent, drawn on top
            colour, _, dashes = get_style(index if numbers is None else numbers[name])
            look = {"linewidth": WIDE, "zorder": 3} if first else {"linewidth": 0.9, "alpha": 0.75, "zorder": 2}
            axes.plot(one["time_s"], values, color=colour, linestyle=dashes, label=name, **look)
            drawn.append(values)
        if limits and key in limits:
            plot_steps(axes, limits[key][1], limits[key][0], end_s)
        everything = np.concatenate(drawn or [np.ones(0)])
        if np.isfinite(everything).any() and np.nanmax(np.abs(everything)) > 500:
            if np.nanmin(everything) >= SYMLOG_BELOW:
                axes.set_yscale("log")
            else:
                axes.set_yscale("symlog", linthresh=SYMLOG_BELOW)
        start_at_zero(axes)
        if axes.get_yscale() == "symlog" and np.nanmin(everything) >= 0:
            axes.set_ylim(bottom=0)
        format_axes(axes, ylabel=label)
    if title:
        panels[0].set_title(title, fontsize=TEXT + 1)
    add_legend_below(figure, panels) if many else format_axes(panels[0], legend=3)
    named = [axes for axes, (key, _) in zip(panels, rows, strict=True) if limits and key in limits]
    if not many and named and named[0] is not panels[0]:
        handles, labels = named[0].get_legend_handles_labels()
        if len(labels) > len(series):
            named[0].legend(handles[-1:], labels[-1:], **LEGEND)
    panels[-1].set_xlabel("time (s)", fontsize=TEXT)
    write_figure(figure, path)


def plot_learning_curves(
    curves: Mapping[str, Sequence[tuple[Sequence[float], Sequence[float]]]],
    path: str | os.PathLike,
    ylabel: str,
    xlabel: str = "environment steps",
    title: str = "",
) -> None:
    """Plot the mean over runs with their range shaded, one line per learner.

    Args:
        curves: Runs by learner, each run (x ascending, y).
    """
    figure = make_figure(6.4, 4.0)
    axes = figure.add_subplot()
    for index, (name, given) in enumerate(curves.items()):
        runs = [(x, y) for x, y in (_keep_finite_pairs(*run) for run in given) if len(x)]
        if not runs:
            continue
        grid = np.linspace(max(x[0] for x, _ in runs), min(x[-1] for x, _ in runs), 200)
        values = np.stack([np.interp(grid, x, y) for x, y in runs])
        colour, _, dashes = get_style(index)
        label = f"{name} ({len(runs)} seeds)" if len(runs) > 1 else name
        if len(runs) == 1:
            grid, values = runs[0][0], runs[0][1][None]
        dot = "." if len(grid) == 1 else ""
        axes.plot(grid, values.mean(axis=0), color=colour, linestyle=dashes, linewidth=WIDE, marker=dot, label=label)
        axes.fill_between(grid, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.2, linewidth=0)
    format_axes(axes, xlabel, ylabel, title, legend=1)
    write_figure(figure, path)


def set_log_scale(axes: Any, which: str, values: np.ndarray) -> float | None:
    """Make an axis logarithmic for values of any sign.

    Returns:
        None if the axis is purely logarithmic; if a value is 0 or below, the half-width of the linear stretch around 0 (the
        inverse hyperbolic sine of values over this width is drawn evenly).
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
    """Put plain numbers at 1, 2 and 5 of each decade of a logarithmic axis."""
    from matplotlib.ticker import LogLocator

    axis.set_minor_locator(LogLocator(subs=(2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("{x:g}")


def add_legend_below(
    figure: Any, panels: Iterable[Any], columns: int = 5, inches: float = 0.0, first: Sequence[str] = ()
) -> None:
    """Draw one legend below all panels, with the labels of all of them.

    Args:
        columns: Number of columns; with `inches` instead one per that much of the figure's width, at least two.
        first: Labels that come first, in this order, if present.
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


def make_figure(width: float, height: float) -> Any:
    """Return an empty figure of this size in inches, without a window.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("a plot", "plots", "matplotlib") from None
    return Figure(figsize=(width, height), layout="constrained")


def require_matplotlib() -> None:
    """Raise MissingExtraError unless matplotlib is installed."""
    make_figure(1, 1)


def get_format(path: str | os.PathLike) -> str:
    """Return the format given by a file's suffix.

    Raises:
        ConfigError: The suffix is none of `FORMATS`.
    """
    kind = Path(path).suffix.lower().lstrip(".")
    if kind not in FORMATS:
        raise ConfigError(f"{path}: cannot draw a {kind or 'file without suffix'}; valid: {', '.join(FORMATS)}")
    return kind


def write_figure(figure: Any, path: str | os.PathLike, dpi: int = DPI) -> None:
    """Write a figure atomically; the file's suffix decides the format.

    Raises:
        ConfigError: The suffix is none of `FORMATS`.
        OSError: The file cannot be written.
    """
    kind, data = get_format(path), io.BytesIO()
    for text in figure.findobj(lambda artist: hasattr(artist, "set_text")):
        text.set_text(escape_surrogates(text.get_text()))  # which no font draws
    figure.savefig(data, format=kind, dpi=dpi)
    write_atomic(path, data.getvalue())


def write_current_figure(plot: Callable[[], object], path: str | os.PathLike) -> None:
    """Write the figure that another library draws as pyplot's current one, and close the figures it opened.

    Nothing is shown; pyplot's previous backend is restored afterwards (IPython also needs `%matplotlib inline`).
    """
    import matplotlib

    others = matplotlib.get_backend() if "matplotlib.pyplot" in sys.modules else None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    before = set(plt.get_fignums())
    try:
        with matplotlib.rc_context(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about hyperparameters with a single value, and layouts with colour bars
            plot()
            plt.gcf().tight_layout()
            write_figure(plt.gcf(), path)
    finally:
        for number in set(plt.get_fignums()) - before:
            plt.close(number)
        if others is not None:
            plt.switch_backend(others)


def _compute_ellipse(x: np.ndarray, y: np.ndarray) -> Steps:
    """Return the outline (x, y) of one standard deviation around the mean."""
    values, vectors = np.linalg.eigh(np.cov(x, y))
    angle = np.linspace(0, 2 * np.pi, 100)
    circle = np.stack((np.cos(angle), np.sin(angle)))
    outline = vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * circle)
    return outline[0] + x.mean(), outline[1] + y.mean()


def _keep_finite_pairs(x: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs in which both values are finite."""
    pairs = np.array((x, y), dtype=float)
    kept = pairs[:, np.isfinite(pairs).all(axis=0)]
    return kept[0], kept[1]
