"""Schemes: agents by the paper's recipe and by ours, congestion controls, rules, constant windows; with names and colours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from netbuf_gym.controllers import Controller, RandomAction
from netbuf_gym.evaluation.rollout import get_controller
from netbuf_gym.leaderboard.standings import read_best_constant
from netbuf_gym.scenarios import Scenario
from netbuf_gym.scenarios.types import AGENT
from netbuf_gym.tasks.congestion_window import CongestionControl, CongestionWindow
from netbuf_gym.utils.plots import COLOURS
from studies.ppcc import paper

TASK = CongestionWindow.name
RECIPE, LEARNED, RANDOM, CONSTANT, ACTION = paper.PPCC, "agent", "random", "constant", "constant_action"
LEARNERS = {"dqn": "DQN", "a2c": "A2C", "ppo": "PPO", "ppo_lstm": "PPO-LSTM"}
"""Further learners: those in the package are trained by the paper's recipe, those given as files by any."""
AGENTS = (RECIPE, LEARNED, *LEARNERS)
DELAYED_ACK = 1
"""Segments that wait for the receiver's delayed ACK, which a window must hold in addition to those on the path."""
LEAST_WINDOW = 2

STYLES: dict[str, tuple[str, str, str]] = {
    paper.NEWRENO: (COLOURS[1], "-", "NewReno"),
    paper.QTCP: (COLOURS[13], "-", "QTCP"),
    RECIPE: (COLOURS[3], "-", "TCP-PPCC, its recipe"),
    LEARNED: (COLOURS[0], "-", "our agent"),
    **{
        key: (colour, "--", f"{name}, as given")
        for (key, name), colour in zip(LEARNERS.items(), (COLOURS[4], COLOURS[7], COLOURS[11], COLOURS[12]), strict=True)
    },
    "cubic": (COLOURS[1], "--", "CUBIC"),
    "bbr": (COLOURS[6], "-", "BBR"),
    "vegas": (COLOURS[2], "-", "Vegas"),
    "westwood": (COLOURS[8], "-", "Westwood+"),
    "copa": (COLOURS[14], "-", "Copa"),
    "queue_target": (COLOURS[9], "-", "rule queue_target"),
    "keep": ("#bc8a5f", "--", "rule keep"),
    ACTION: ("#8d6e97", "-", "best constant action"),
    CONSTANT: ("#bc8a5f", "-", "constant window"),
    RANDOM: (COLOURS[5], "-", "random actions of the recipe"),
}
"""Colour, line style and name of each scheme, the same in every figure."""

NAMES = tuple(STYLES)
NOT_IN_NS3 = ("copa",)
"""Schemes that the ns-3 stack lacks."""


def label(scheme: str) -> str:
    """Return the name of a scheme in figures and tables."""
    return STYLES[scheme][2]


class RandomRecipeActions(RandomAction):
    """Random actions of the paper's recipe, regardless of the task's default recipe."""

    @property
    def env(self) -> dict[str, Any]:
        """See `Controller.env`."""
        return {"recipe": RECIPE}


class ConstantWindow(CongestionControl):
    """Constant window, which the receiver advertises and the sender fills.

    Args:
        packets: Window in segments; None: what the slowest link of the path carries within the base RTT at its mean rate,
            over the number of agents, plus one for the delayed ACK. No real sender knows that.
    """

    def __init__(self, packets: int | None = None):
        super().__init__("receiver_driven")
        self.packets = packets

    def place(self, scenario: Scenario) -> Scenario:
        """See `Controller.place`."""
        agents = [index for index, flow in enumerate(scenario.flows) if flow.cc == AGENT]
        flows = list(super().place(scenario).flows)
        for index in agents:
            packets = self.packets or compute_fitting_packets(scenario, index, len(agents))
            receiver = {"name": "fixed", "window_bytes": packets * scenario.mss}
            flows[index] = replace(flows[index], receiver=receiver)
        return replace(scenario, flows=flows)


def compute_fitting_packets(scenario: Scenario, flow: int, sharing: int = 1) -> int:
    """Compute the constant window that fits a flow's path shared by `sharing` agents; see `ConstantWindow`."""
    rate_mbps = scenario.links[scenario.tightest_link(flow)].mean_mbps(scenario.duration_s)
    product = rate_mbps * 1e3 * scenario.base_rtt_ms(flow) / 8 / scenario.data_bytes
    return max(LEAST_WINDOW, round(product / sharing + DELAYED_ACK))


def make_controller(scheme: str, packets: int | None = None) -> Controller:
    """Return the controller of a scheme that is no trained agent.

    Args:
        scheme: Name of the scheme.
        packets: Size of a constant window in segments; None: the fitting one.
    """
    if scheme == CONSTANT:
        return ConstantWindow(packets)
    if scheme == ACTION:
        return get_controller(read_best_constant(TASK), TASK)
    return RandomRecipeActions() if scheme == RANDOM else get_controller(scheme, TASK)
