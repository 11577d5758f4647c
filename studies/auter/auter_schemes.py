"""Schemes of the study: settings, congestion controls, tuners and agents, with labels and colours."""

from __future__ import annotations

from netbuf_gym.controllers import Controller
from netbuf_gym.evaluation.rollout import get_controller as named
from netbuf_gym.tasks.host_buffers.baselines import Setting, WithCongestionControl
from netbuf_gym.tasks.host_buffers.task import HostBuffers
from netbuf_gym.utils.plots import COLOURS
from studies.auter import constants

TASK = HostBuffers.name
BBR = "bbr"
LEARNED, RECIPE, RANDOM = "agent", "auter", "random"
KERNEL, CONSTANT, BPFTUNE = "autotuning", "constant", "bpftune"
WITH_BBR = {RECIPE: f"{RECIPE}_bbr", LEARNED: f"{LEARNED}_bbr"}
"""Names of the schemes in which an agent plays and the proxy sends with BBR, by the agent's own name."""

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
"""Colour, line style and label of each scheme, the same in every figure."""

NAMES = tuple(STYLES)


def label(scheme: str) -> str:
    """Return the label of a scheme in figures and tables."""
    return STYLES[scheme][2]


def find_agent_key(scheme: str) -> str | None:
    """Return the settings key of the agent that plays as a scheme; None for schemes without a trained agent."""
    return next((key for key, own in (("agent", LEARNED), ("auter", RECIPE)) if scheme in (own, WITH_BBR[own])), None)


def make_controller(scheme: str, study: str, cell: str, agent: Controller | None = None) -> Controller:
    """Return the controller of a scheme in a cell of a study.

    Args:
        scheme: One of `NAMES`.
        study, cell: Study and cell, which decide the best constant.
        agent: Trained agent, for the schemes that need one.

    Raises:
        ConfigError: The rows that decide the best constant are missing.
    """
    if agent is not None:
        return WithCongestionControl(agent, BBR) if scheme in WITH_BBR.values() else agent
    return Setting(constants.get_best_setting(study, cell), CONSTANT) if scheme == CONSTANT else named(scheme, TASK)
