"""Who plays: Nuwa with several gains, Nuwa-RL, other receivers, congestion controls; with names and colours."""

from __future__ import annotations

from netbuf_gym.contenders import Contender
from netbuf_gym.plots import COLOURS
from netbuf_gym.rollout import contender_of as named
from netbuf_gym.tasks.receiver_window import ReceiverControl, ReceiverWindow

TASK = ReceiverWindow.name
LEARNED, RANDOM = "nuwa_rl", "random"
BULK_MS = 150.0
"""Target delay of bulk transfers, which Table I's are."""

GAINS = (1, 2, 3, 5, 7, 9)
BY_GAIN = tuple(f"nuwa_k{k}" for k in GAINS)
PAPER, PAPER_BULK = "nuwa_k7", "nuwa_k7_bulk"
"""The gain of Table I and Fig. 17 at the default target delay (video), and at that of bulk transfers."""

STYLES: dict[str, tuple[str, str, str]] = {
    LEARNED: (COLOURS[0], "-", "Nuwa-RL, trained"),
    "nuwa_k1": (COLOURS[2], "-", "Nuwa, k = 1"),
    "nuwa_k2": ("#d98f1f", "-", "Nuwa, k = 2"),
    "nuwa_k3": ("#b9731a", "-", "Nuwa, k = 3"),
    "nuwa_k5": ("#995a14", "-", "Nuwa, k = 5"),
    "nuwa_k7": (COLOURS[7], "-", "Nuwa, k = 7"),
    "nuwa_k9": ("#4a2e10", "-", "Nuwa, k = 9"),
    PAPER_BULK: ("#c08457", "--", "Nuwa, k = 7, 150 ms"),
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
"""Colour, line and name of each scheme, the same in every figure."""

NAMES = tuple(STYLES)
SENDERS = ("cubic", "newreno", "westwood", "vegas", "bbr", "bbrplus", "copa", "vivace", "inigo", "qtcp")


def label(scheme: str) -> str:
    """How figures and tables call it."""
    return STYLES[scheme][2]


def contender_of(scheme: str) -> Contender:
    """Who plays under a name, but for the trained agent; ConfigError for a congestion control that there is none of."""
    if scheme == PAPER_BULK:
        return ReceiverControl("nuwa", k=7, target_ms=BULK_MS)
    if scheme in BY_GAIN:
        return ReceiverControl("nuwa", k=int(scheme.removeprefix("nuwa_k")))
    return named(scheme, TASK)
