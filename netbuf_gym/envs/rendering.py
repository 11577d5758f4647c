"""Pictures of one agent's episode: a line of text, or charts, by Matplotlib where it is installed and else by numpy alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from netbuf_gym.errors import MissingExtraError
from netbuf_gym.tasks.task import Panel, Task

SHOWN_DECISIONS = 240
"""Number of past decisions in a picture."""

WIDTH, PANEL, HEADER = 480, 120, 22
"""Pixels of a picture drawn by numpy: picture width, panel height, and height of a panel's text."""
CHART_WIDTH, CHART_PANEL, CHART_DPI = 640, 160, 100
"""Pixels of a picture drawn by Matplotlib, even as videos require; and dots per inch."""

_GLYPHS = dict(
    zip(
        " 0123456789./ABCDEFGHIJKLMNOPQRSTUVWXYZ+-",
        (
            "00000 75557 26227 71747 71717 55711 74717 74757 71122 75757 75717 00002 11244 25755 65656 74447 "
            "65556 74647 74644 74557 55755 72227 11157 55655 44447 57755 65555 75557 75744 75571 65655 74717 "
            "72222 55557 55552 55575 55255 55222 71247 02720 00700"
        ).split(),
        strict=True,
    )
)
"""A font of 3 x 5 pixels: five rows from top to bottom, an octal digit each."""


class Recorder:
    """The last `SHOWN_DECISIONS` states of an agent (`Engine.show`) and their drawing as set by the task.

    Matplotlib draws where it is installed, else numpy. The first picture settles the choice, so that all have one shape.
    """

    def __init__(self, task: Task):
        self._task = task
        self._states: list[dict[str, float]] = []
        self._draw: Callable[[list[dict[str, float]]], np.ndarray] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the canvas, which is made anew."""
        return {**self.__dict__, "_draw": None}

    def start(self) -> None:
        """Forget the past episode."""
        self._states.clear()

    def add(self, state: dict[str, float]) -> None:
        """Add the state after one decision."""
        self._states.append(state)
        del self._states[:-SHOWN_DECISIONS]

    def ansi(self) -> str:
        """Return the last state as one line of text."""
        if not self._states:
            return "nothing has been decided yet\n"
        return f"{self._task.format_state(self._states[-1])}\n"

    def rgb_array(self) -> np.ndarray:
        """Draw the task's panels over the last decisions, `(height, width, 3)` uint8."""
        if self._draw is None:
            try:
                self._draw = ChartRenderer(self._task.panels)
            except MissingExtraError:
                self._draw = lambda states: draw_strips(self._task.panels, states)
        return self._draw(self._states)


def frames_per_second(interval_s: float, fixed: bool) -> float:
    """Return the frame rate at which a video of decisions runs as fast as the world did; 30 for intervals of varying length."""
    return 1 / interval_s if fixed else 30


class ChartRenderer:
    """Drawing on one off-screen Matplotlib figure: axes only when their limits change, lines and text each time.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """

    def __init__(self, panels: Sequence[Panel]):
        from netbuf_gym.utils import plots  # takes longer to import than an environment

        figure = plots.make_figure(CHART_WIDTH / CHART_DPI, len(panels) * CHART_PANEL / CHART_DPI)
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        figure.set_dpi(CHART_DPI)
        self._canvas: Any = FigureCanvasAgg(figure)  # its methods are not typed
        self._panels = panels
        self._axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        self._artists = []
        for axes, panel in zip(self._axes, panels, strict=True):
            plots.format_axes(axes)
            axes.set_title(
                panel.title or panel.label.lower(), loc="left", fontsize=plots.TEXT, color=_convert_colour(panel.color)
            )
            look = {"linewidth": plots.WIDE, "animated": True}
            limit = axes.plot([], [], color=_convert_colour(panel.limit_color), **look | {"linewidth": plots.LINE})[0]
            line = axes.plot([], [], color=_convert_colour(panel.color), **look)[0]
            place = {"ha": "right", "va": "bottom", "transform": axes.transAxes}
            words = axes.text(1, 1.04, "", fontsize=plots.TEXT, animated=True, **place)
            words.set_in_layout(False)
            self._artists.append((limit, line, words))
        plots.format_axes(self._axes[-1], xlabel="seconds before now")
        self._limits: list[tuple[float, float]] = []
        self._background: Any = None

    def __call__(self, states: Sequence[Mapping[str, float]]) -> np.ndarray:
        """Draw the picture of these states, the last of which is now."""
        time_s = _extract_column(states, "time_s")
        before = time_s - time_s[-1] if len(time_s) else time_s
        limits = [(-_round_up(-float(before.min(initial=0.0)) or 1.0), 0.0)]
        for panel, (limit, line, words) in zip(self._panels, self._artists, strict=True):
            values = _extract_column(states, panel.key)
            others = _extract_column(states, panel.limit_key) if panel.limit_key is not None else values[:0]
            line.set_data(before, values)
            limit.set_data(before[: len(others)], others)
            known = np.concatenate([one[np.isfinite(one)] for one in (values, others)])
            limits.append((-_round_up(-float(known.min(initial=0.0))), _round_up(float(known.max(initial=0.0))) or 1.0))
            said = (
                f"{_format_last(values)} ({panel.limit_label.lower()} {_format_last(others)})"
                if len(others)
                else _format_last(values)
            )
            words.set_text(said)  # short: glyphs take most of a frame's time
        if limits != self._limits:
            self._axes[0].set_xlim(*limits[0])
            for axes, between in zip(self._axes, limits[1:], strict=True):
                axes.set_ylim(*between)
            self._canvas.draw()
            self._background, self._limits = self._canvas.copy_from_bbox(self._canvas.figure.bbox), limits
        self._canvas.restore_region(self._background)
        for axes, moving in zip(self._axes, self._artists, strict=True):
            for one in moving:
                axes.draw_artist(one)
        return np.asarray(self._canvas.buffer_rgba())[:, :, :3].copy()


def draw_strips(panels: Sequence[Panel], states: Sequence[Mapping[str, float]]) -> np.ndarray:
    """Draw the picture of these states with numpy alone, `(panels * PANEL, WIDTH, 3)` uint8."""
    image = np.full((len(panels) * PANEL, WIDTH, 3), 255, np.uint8)
    for i, one in enumerate(panels):
        panel = image[i * PANEL : (i + 1) * PANEL]
        panel[-1] = 200
        values = np.nan_to_num(_extract_column(states, one.key) if states else np.zeros(1))
        text, top = f"{one.label} {values[-1]:.4g} MAX {values.max():.4g}", float(values.max())
        if one.limit_key is not None:
            limits = np.nan_to_num(_extract_column(states, one.limit_key) if states else np.zeros(1))
            top = max(top, float(limits.max()))
            _draw_line(panel, np.clip(limits / max(top, 1e-9), 0, 1), np.array(one.limit_color, np.uint8))
            text += f" {one.limit_label} {limits[-1]:.4g}"
        _draw_line(panel, np.clip(values / max(top, 1e-9), 0, 1), np.array(one.color, np.uint8))
        _write_text(panel, text)
    return image


def _extract_column(states: Sequence[Mapping[str, float]], key: str) -> np.ndarray:
    return np.array([state[key] for state in states], float)


def _format_last(values: np.ndarray) -> str:
    if not len(values) or not np.isfinite(values[-1]):
        return "-"
    return f"{values[-1]:,.0f}" if abs(values[-1]) >= 1000 else f"{values[-1]:.3g}"


def _round_up(value: float) -> float:
    """Return the next of 1, 2, 2.5, 5 times a power of ten; 0 for a value not above 0."""
    if value <= 0:
        return 0.0
    decade = 10.0 ** math.floor(math.log10(value))
    return next((factor * decade for factor in (1.0, 2.0, 2.5, 5.0) if value <= factor * decade), 10 * decade)


def _convert_colour(rgb: tuple[int, int, int]) -> tuple[float, ...]:
    return tuple(part / 255 for part in rgb)


def _draw_line(panel: np.ndarray, heights: np.ndarray, color: np.ndarray) -> None:
    """Draw a line, two pixels wide, through heights in [0, 1] from left to right."""
    rows = np.rint(HEADER + (1 - heights) * (PANEL - HEADER - 4)).astype(int)
    step = WIDTH // SHOWN_DECISIONS
    for k, row in enumerate(rows):
        before = rows[k - 1] if k else row
        low, high = min(before, row), max(before, row)
        panel[low : high + 2, k * step : (k + 1) * step] = color


def _write_text(panel: np.ndarray, text: str, scale: int = 2) -> None:
    """Write `text` in the upper left corner of a panel; characters that the font lacks are left blank."""
    for k, letter in enumerate(text.upper()):
        for y, row in enumerate(_GLYPHS.get(letter, _GLYPHS[" "])):
            for x in range(3):
                if int(row) >> (2 - x) & 1:
                    top, left = 6 + y * scale, 6 + (4 * k + x) * scale
                    panel[top : top + scale, left : left + scale] = 60
