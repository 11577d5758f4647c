"""Pictures of one sender's episode with numpy alone: a line of text, or three strip charts."""

from __future__ import annotations

import numpy as np

SHOWN = 240
"""How many decisions a picture reaches back."""

WIDTH, PANEL, HEADER = 480, 120, 22
_PANELS = (
    ("cwnd_packets", "CWND PACKETS", (31, 119, 180)),
    ("rtt_ms", "RTT MS", (214, 39, 40)),
    ("throughput_mbps", "MBIT/S", (44, 160, 44)),
)

_GLYPHS = dict(
    zip(
        " 0123456789./ABCDEIKMNPRSTWX+-",
        "00000 75557 26227 71747 71717 55711 74717 74757 71122 75757 75717 00002 11244 25755 65656 74447 65556 74647"
        " 72227 55655 57755 65555 75744 65655 74717 72222 55575 55255 02720 00700".split(),
        strict=True,
    )
)
"""A font of 3 x 5 pixels: five rows from top to bottom, an octal digit each."""


class Recorder:
    """Keeps the last `SHOWN` states of a sender (`Engine.show`) and draws them."""

    def __init__(self):
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
        s = self._states[-1]
        return (
            f"t {s['time_s']:8.2f} s   cwnd {s['cwnd_packets']:8.1f} packets   RTT {s['rtt_ms']:8.2f} ms   "
            f"throughput {s['throughput_mbps']:8.3f} Mbit/s   queue {s['queue_packets']:6.0f} packets\n"
        )

    def rgb_array(self) -> np.ndarray:
        """Window, RTT and throughput of the last decisions, `(3 * PANEL, WIDTH, 3)` uint8."""
        image = np.full((len(_PANELS) * PANEL, WIDTH, 3), 255, np.uint8)
        for i, (key, label, color) in enumerate(_PANELS):
            panel = image[i * PANEL : (i + 1) * PANEL]
            panel[-1] = 200
            values = np.array([state[key] for state in self._states] or [0.0])
            top = max(float(values.max()), 1e-9)
            _draw_line(panel, values / top, np.array(color, np.uint8))
            _write(panel, f"{label} {values[-1]:.4g} MAX {values.max():.4g}")
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
