"""Schemes of the study: settings, congestion controls, tuners and agents, with labels and colours."""

from __future__ import annotations

from netbuf_gym.controllers import Controller
from netbuf_gym.evaluation.rollout import get_controller as named
from netbuf_gym.tasks.host_buffers.baselines import Setting, WithCongestionControl
from netbuf_gym.tasks.host_buffers.task import HostBuffers
from netbuf_gym.utils.plots import COLOURS
from studies.auter import constants

TASK = HostBuffers.name
BBR, VEGAS = "bbr", "vegas"
LEARNED, RECIPE, RANDOM = "agent", "auter", "random"
KERNEL, CONSTANT, BPFTUNE = "autotuning", "constant", "bpftune"
WITH_BBR = {RECIPE: f"{RECIPE}_bbr", LEARNED: f"{LEARNED}_bbr"}
WITH_VEGAS = {RECIPE: f"{RECIPE}_vegas", LEARNED: f"{LEARNED}_vegas"}
"""Names of the schemes in which an agent plays and the proxy sends with BBR, or with Vegas, by the agent's own name."""
OTHER_CONTROLS = {name: cc for names, cc in ((WITH_BBR, BBR), (WITH_VEGAS, VEGAS)) for name in names.values()}
"""Congestion control of each of these schemes."""

STYLES: dict[str, tuple[str, str, str]] = {
    "default": (COLOURS[5], "-", "default"),
    "tune-1": (COLOURS[8], "--", "tune-1"),
    "tune-2": (COLOURS[4], "--", "tune-2"),
    "max": (COLOURS[1], "-", "max"),
    BBR: (COLOURS[6], "-", "BBR"),
    VEGAS: (COLOURS[9], "-", "Vegas"),
    RECIPE: (COLOURS[3], "-", "Auter, the paper's recipe"),
    WITH_BBR[RECIPE]: (COLOURS[3], "--", "Auter with BBR"),
    WITH_VEGAS[RECIPE]: (COLOURS[3], ":", "Auter with Vegas"),
    LEARNED: (COLOURS[0], "-", "our agent"),
    WITH_BBR[LEARNED]: (COLOURS[0], "--", "our agent with BBR"),
    WITH_VEGAS[LEARNED]: (COLOURS[0], ":", "our agent with Vegas"),
    KERNEL: (COLOURS[13], "-", "kernel's autotuning"),
    f"{KERNEL}+{BBR}": (COLOURS[13], "--", "autotuning with BBR"),
    f"{KERNEL}+{VEGAS}": (COLOURS[13], ":", "autotuning with Vegas"),
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
    owns = {"agent": LEARNED, "auter": RECIPE}
    return next((key for key, own in owns.items() if scheme in (own, WITH_BBR[own], WITH_VEGAS[own])), None)


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
        return WithCongestionControl(agent, OTHER_CONTROLS[scheme]) if scheme in OTHER_CONTROLS else agent
    return Setting(constants.get_best_setting(study, cell), CONSTANT) if scheme == CONSTANT else named(scheme, TASK)
