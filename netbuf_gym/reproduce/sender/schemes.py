"""Who plays: the agent, congestion controls, a rule, constant actions, and bounds that know a trace; with names and colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.contenders import Contender, Decider, Policy
from netbuf_gym.errors import ConfigError
from netbuf_gym.plots import COLOURS
from netbuf_gym.reproduce.sender.bounds import CAUSAL, ORACLE, Bound
from netbuf_gym.rollout import contender_of as named
from netbuf_gym.scenarios.catalogue import sender_controls
from netbuf_gym.tasks.congestion_window import CongestionWindow
from netbuf_gym.tasks.congestion_window.families import LATER, NO_RIVAL

TASK = CongestionWindow.name
LEARNED, RULE, CONSTANT = "agent", "queue_target", "constant"
BOUNDS = (ORACLE, CAUSAL)
USUAL = ("newreno", "cubic", "bbr", "vegas", "westwood", "copa")
"""Congestion controls that play where none are named."""
NO_CLASSIC = (*NO_RIVAL, *LATER, "qtcp")
"""Needs what is not there; came after the comparisons; learns."""
CLASSIC = (*USUAL, *(name for name in sender_controls("linux") if name not in (*USUAL, *NO_CLASSIC)))
"""Of whom the best is what an agent is compared with."""

_KNOWN: dict[str, tuple[str, str, str]] = {
    LEARNED: (COLOURS[0], "-", "our agent"),
    "newreno": (COLOURS[1], "-", "NewReno"),
    "cubic": (COLOURS[1], "--", "CUBIC"),
    "bbr": (COLOURS[6], "-", "BBR"),
    "vegas": (COLOURS[2], "-", "Vegas"),
    "westwood": (COLOURS[8], "-", "Westwood+"),
    "copa": (COLOURS[14], "-", "Copa"),
    RULE: (COLOURS[9], "-", "rule queue_target"),
    CONSTANT: ("#bc8a5f", "-", "best constant action"),
    ORACLE: (COLOURS[5], "-", "oracle"),
    CAUSAL: (COLOURS[5], "--", "causal bound"),
}
_FREE = (COLOURS[3], COLOURS[4], COLOURS[7], COLOURS[11], COLOURS[12], COLOURS[13])
STYLES = _KNOWN | {
    name: (_FREE[at % len(_FREE)], (":", "-.")[at // len(_FREE) % 2], name)
    for at, name in enumerate(name for name in CLASSIC if name not in _KNOWN)
}
"""Colour, line and name of each scheme, the same in every figure."""
NAMES = tuple(STYLES)
PLACES = tuple(name for name in NAMES if name not in BOUNDS)
"""Whom claims about the agent are judged for."""


def label(scheme: str) -> str:
    """How figures and tables call it."""
    return STYLES[scheme][2]


class EachAction(Decider):
    """Every action of the task's first recipe, each in a world of its own from its start to its end.

    Worlds are to come in groups of equal ones, in each as many as there are actions (`number`).
    """

    name = CONSTANT

    @property
    def env(self) -> dict[str, Any]:
        """See `Contender.env`."""
        return {"recipe": CongestionWindow.recipes[0]}

    @staticmethod
    def number() -> int:
        """How many actions there are.

        Raises:
            ConfigError: They cannot be counted.
        """
        space: Any = tasks.get(TASK).rules(CongestionWindow.recipes[0]).action_space
        if not hasattr(space, "n"):
            raise ConfigError(f"schemes holds {CONSTANT!r}, but the actions are {space}; valid: with a space Discrete(n)")
        return int(space.n)

    def start(self, rules: Any, seeds: Sequence[int]) -> Policy:
        """See `Contender.start`."""
        many = self.number()
        rows = np.repeat(np.arange(len(seeds)) % many, rules.agents).astype(rules.action_space.dtype)
        return lambda observations, state, starts: (rows, None)


def contender_of(scheme: str) -> Contender:
    """Who plays under a name, but for the trained agent."""
    if scheme in BOUNDS:
        return Bound(scheme)
    return EachAction() if scheme == CONSTANT else named(scheme, TASK)
