"""Who plays: settings, congestion controls, tuners, agents; with names and colours."""

from __future__ import annotations

from netbuf_gym.controllers import Controller
from netbuf_gym.evaluation.rollout import controller_of as named
from netbuf_gym.tasks.host_buffers.baselines import Setting, WithCongestionControl
from netbuf_gym.tasks.host_buffers.task import HostBuffers
from netbuf_gym.utils.plots import COLOURS
from studies.auter import constants

TASK = HostBuffers.name
BBR = "bbr"
LEARNED, RECIPE, RANDOM = "agent", "auter", "random"
KERNEL, CONSTANT, BPFTUNE = "autotuning", "constant", "bpftune"
WITH_BBR = {RECIPE: f"{RECIPE}_bbr", LEARNED: f"{LEARNED}_bbr"}
"""The agents, and what they are called where the proxy sends by BBR."""

STYLES: dict[str, tuple[str, str, str]] = {
    "default": (COLOURS[5], "-", "default"),
    "tune-1": (COLOURS[8], "--", "tune-1"),
    "tune-2": (COLOURS[4], "--", "tune-2"),
    "max": (COLOURS[1], "-", "max"),
    BBR: (COLOURS[6], "-", "BBR"),
    RECIPE: (COLOURS[3], "-", "Auter, the paper's recipe"),
    WITH_BBR[RECIPE]: (COLOURS[3], "--", "Auter with BBR"),
    LEARNED: (COLOURS[0], "-", "our agent"),
    WITH_BBR[LEARNED]: (COLOURS[0], "--", "our agent with BBR"),
    KERNEL: (COLOURS[13], "-", "kernel's autotuning"),
    BPFTUNE: (COLOURS[7], "-", "bpftune's rule"),
    CONSTANT: (COLOURS[2], "-", "best constant"),
    RANDOM: (COLOURS[10], "-", "random actions"),
}
"""Colour, line and name of each scheme, the same in every figure."""

NAMES = tuple(STYLES)


def label(scheme: str) -> str:
    """How figures and tables call it."""
    return STYLES[scheme][2]


def agent_of(scheme: str) -> str | None:
    """The key of the settings whose file plays under a scheme's name; None: none does."""
    return next((key for key, own in (("agent", LEARNED), ("auter", RECIPE)) if scheme in (own, WITH_BBR[own])), None)


def controller_of(scheme: str, study: str, cell: str, agent: Controller | None = None) -> Controller:
    """Who plays under a name in a cell of a study.

    Args:
        scheme: One of `NAMES`.
        study, cell: Which constant is best depends on them.
        agent: Who plays as it, of schemes that are trained agents.

    Raises:
        ConfigError: It is not known which constant is best.
    """
    if agent is not None:
        return WithCongestionControl(agent, BBR) if scheme in WITH_BBR.values() else agent
    return Setting(constants.best(study, cell), CONSTANT) if scheme == CONSTANT else named(scheme, TASK)
