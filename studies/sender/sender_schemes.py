"""Schemes: the agent, controls, rules, the best constant action, bounds that know a trace; with names and colours."""

from __future__ import annotations

from netbuf_gym.controllers import Controller
from netbuf_gym.evaluation.rollout import get_controller
from netbuf_gym.leaderboard.standings import read_best_constant
from netbuf_gym.scenarios.catalogue import sender_controls
from netbuf_gym.tasks.congestion_window import CongestionWindow
from netbuf_gym.tasks.congestion_window.families import EXCLUDED_RIVALS, LATER_RIVALS
from netbuf_gym.utils.plots import COLOURS
from studies.sender.bounds import CAUSAL, ORACLE, Bound

TASK = CongestionWindow.name
LEARNED, RULE, KEEP, CONSTANT = "agent", "queue_target", "keep", "constant"
BOUNDS = (ORACLE, CAUSAL)
USUAL = ("newreno", "cubic", "bbr", "vegas", "westwood", "copa")
"""Congestion controls that run by default."""
NO_CLASSIC = (*EXCLUDED_RIVALS, *LATER_RIVALS, "qtcp")
"""Controls not compared: those that need special peers, those added after the comparisons, and one that learns."""
CLASSIC = (*USUAL, *(name for name in sender_controls("linux") if name not in (*USUAL, *NO_CLASSIC)))
"""Controls of which the best is compared with an agent."""

_KNOWN: dict[str, tuple[str, str, str]] = {
    LEARNED: (COLOURS[0], "-", "our agent"),
    "newreno": (COLOURS[1], "-", "NewReno"),
    "cubic": (COLOURS[1], "--", "CUBIC"),
    "bbr": (COLOURS[6], "-", "BBR"),
    "vegas": (COLOURS[2], "-", "Vegas"),
    "westwood": (COLOURS[8], "-", "Westwood+"),
    "copa": (COLOURS[14], "-", "Copa"),
    "bbr3": (COLOURS[6], "--", "BBRv3"),
    RULE: (COLOURS[9], "-", "rule queue_target"),
    KEEP: ("#bc8a5f", "--", "rule keep"),
    CONSTANT: ("#bc8a5f", "-", "best constant action"),
    ORACLE: (COLOURS[5], "-", "oracle"),
    CAUSAL: (COLOURS[5], "--", "causal bound"),
}
_FREE = (COLOURS[3], COLOURS[4], COLOURS[7], COLOURS[11], COLOURS[12], COLOURS[13])
STYLES = _KNOWN | {
    name: (_FREE[at % len(_FREE)], (":", "-.")[at // len(_FREE) % 2], name)
    for at, name in enumerate(name for name in CLASSIC if name not in _KNOWN)
}
"""Colour, line style and name of each scheme, the same in every figure."""
NAMES = tuple(STYLES)
PLACES = tuple(name for name in NAMES if name not in BOUNDS)
"""Schemes for which claims about the agent are judged."""


def label(scheme: str) -> str:
    """Return the name of a scheme in figures and tables."""
    return STYLES[scheme][2]


def make_controller(scheme: str) -> Controller:
    """Return the controller of a scheme other than the trained agent."""
    if scheme in BOUNDS:
        return Bound(scheme)
    return get_controller(read_best_constant(TASK) if scheme == CONSTANT else scheme, TASK)
