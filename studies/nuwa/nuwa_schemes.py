"""Schemes of the study: Nuwa with several gains, Nuwa-RL, other receivers, congestion controls; with labels and colours."""

from __future__ import annotations

from typing import Any

from netbuf_gym.controllers import Controller
from netbuf_gym.evaluation.rollout import get_controller as named
from netbuf_gym.tasks.receiver_window import ReceiverControl, ReceiverWindow
from netbuf_gym.tasks.receiver_window.task import PAPER_PARAMETERS
from netbuf_gym.utils.plots import COLOURS

TASK = ReceiverWindow.name
LEARNED, RANDOM = "nuwa_rl", "random"
BULK_MS = 150.0
"""Target delay of bulk transfers, as in Table I, in ms."""

GAINS = (1, 2, 3, 5, 7, 9)
OURS, PUBLISHED = "nuwa", "nuwa_paper"
"""Rules: Nuwa with the simulator's defaults, and the bare rule that the paper states."""
RULES: dict[str, dict[str, Any]] = {OURS: {}, PUBLISHED: PAPER_PARAMETERS}
BULK = {f"{rule}_k7_bulk": rule for rule in RULES}
"""Schemes with the gain of Table I and Fig. 17 at the target delay of bulk transfers; others use the default, video's."""
GAINED = {f"{rule}_k{k}": (rule, k) for rule in RULES for k in GAINS}
_BY_GAIN = dict(zip(GAINS, (COLOURS[2], "#d98f1f", "#b9731a", "#995a14", COLOURS[7], "#4a2e10"), strict=True))

STYLES: dict[str, tuple[str, str, str]] = {
    LEARNED: (COLOURS[0], "-", "Nuwa-RL, trained"),
    **{f"{OURS}_k{k}": (colour, "-", f"Nuwa, k = {k}") for k, colour in _BY_GAIN.items()},
    f"{OURS}_k7_bulk": ("#c08457", "-", "Nuwa, k = 7, 150 ms"),
    **{f"{PUBLISHED}_k{k}": (colour, "--", f"published rule, k = {k}") for k, colour in _BY_GAIN.items()},
    f"{PUBLISHED}_k7_bulk": ("#c08457", "--", "published rule, k = 7, 150 ms"),
    "rledbat": (COLOURS[4], "-", "rLEDBAT"),
    "fixed": ("#9dbf87", "--", "fixed window, 64 KiB"),
    "autotuned": ("#9dbf87", "-", "CUBIC, autotuned window"),
    "cubic": (COLOURS[1], "-", "CUBIC"),
    "newreno": (COLOURS[1], "--", "NewReno"),
    "westwood": ("#5ab1bb", "-", "Westwood+"),
    "vegas": (COLOURS[3], "-", "Vegas"),
    "bbr": (COLOURS[6], "-", "BBR"),
    "bbrplus": (COLOURS[6], "--", "BBRPlus"),
    "copa": (COLOURS[8], "-", "Copa"),
    "vivace": (COLOURS[11], "-", "PCC Vivace"),
    "inigo": (COLOURS[12], "-", "Inigo"),
    "qtcp": (COLOURS[13], "-", "QTCP"),
    RANDOM: (COLOURS[5], "-", "random actions"),
}
"""Colour, line style and label of each scheme, the same in every figure."""

NAMES = tuple(STYLES)


def label(scheme: str) -> str:
    """Return the label of a scheme in figures and tables."""
    return STYLES[scheme][2]


def make_controller(scheme: str) -> Controller:
    """Return the controller of a scheme other than the trained agent.

    Raises:
        ConfigError: The scheme names no known controller.
    """
    if scheme in BULK:
        return ReceiverControl("nuwa", k=7, target_ms=BULK_MS, **RULES[BULK[scheme]])
    if scheme in GAINED:
        rule, k = GAINED[scheme]
        return ReceiverControl("nuwa", k=k, **RULES[rule])
    return named(scheme, TASK)
