"""Pictures of one agent's episode with numpy alone: a line of text, or strip charts."""

from __future__ import annotations

import numpy as np

from netbuf_gym.tasks.task import Task

SHOWN = 240
"""How many decisions a picture reaches back."""

WIDTH, PANEL, HEADER = 480, 120, 22

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
    """Keeps the last `SHOWN` states of an agent (`Engine.show`) and draws them as its task says."""

    def __init__(self, task: Task):
        self._task = task
        self._states: list[dict[str, float]] = []

    def start(self) -> None:
        """Forgets the past episode."""
        self._states.clear()

    def add(self, state: dict[str, float]) -> None:
        """Takes in one decision's outcome."""
        self._states.append(state)
        del self._states[:-SHOWN]

    def ansi(self) -> str:
        """The last state as one line of text."""
        if not self._states:
            return "nothing has been decided yet\n"
        return f"{self._task.line(self._states[-1])}\n"

    def rgb_array(self) -> np.ndarray:
        """The task's panels over the last decisions, `(panels * PANEL, WIDTH, 3)` uint8."""
        panels = self._task.panels
        image = np.full((len(panels) * PANEL, WIDTH, 3), 255, np.uint8)
        for i, one in enumerate(panels):
            panel = image[i * PANEL : (i + 1) * PANEL]
            panel[-1] = 200
            values = np.array([state[one.key] for state in self._states] or [0.0])
            text, top = f"{one.label} {values[-1]:.4g} MAX {values.max():.4g}", float(values.max())
            if one.limit_key is not None:
                limits = np.array([state[one.limit_key] for state in self._states] or [0.0])
                top = max(top, float(limits.max()))
                _draw_line(panel, limits / max(top, 1e-9), np.array(one.limit_color, np.uint8))
                text += f" {one.limit_label} {limits[-1]:.4g}"
            _draw_line(panel, values / max(top, 1e-9), np.array(one.color, np.uint8))
            _write(panel, text)
        return image


def _draw_line(panel: np.ndarray, heights: np.ndarray, color: np.ndarray) -> None:
    """Joins heights in [0, 1] from left to right, two pixels wide."""
    rows = np.rint(HEADER + (1 - heights) * (PANEL - HEADER - 4)).astype(int)
    step = WIDTH // SHOWN
    for k, row in enumerate(rows):
        before = rows[k - 1] if k else row
        low, high = min(before, row), max(before, row)
        panel[low : high + 2, k * step : (k + 1) * step] = color


def _write(panel: np.ndarray, text: str, scale: int = 2) -> None:
    """Writes `text` into the upper left corner of a panel; what the font lacks is left blank."""
    for k, letter in enumerate(text.upper()):
        for y, row in enumerate(_GLYPHS.get(letter, _GLYPHS[" "])):
            for x in range(3):
                if int(row) >> (2 - x) & 1:
                    top, left = 6 + y * scale, 6 + (4 * k + x) * scale
                    panel[top : top + scale, left : left + scale] = 60
