"""What plays the receiver-window task without learning: the simulator's receivers and congestion controls, and chance."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from netbuf_gym.controllers import Decider, InWorld, Named, Policy, RandomAction
from netbuf_gym.controllers.policies import constant
from netbuf_gym.controllers.user_code import decider
from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.plants.counters import sender_counters
from netbuf_gym.plants.simulator import FLOW_SAMPLE, LINK_SAMPLE, Simulator
from netbuf_gym.scenarios.catalogue import RECEIVER_CONTROLS, WITHOUT_AGENT
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.receiver_window.meter import Meter
from netbuf_gym.tasks.receiver_window.random_paths import DRIVEN
from netbuf_gym.tasks.receiver_window.report import episode_reports
from netbuf_gym.tasks.receiver_window.task import PAPERS_RULE, ReceiverWindow, capacity_mbps
from netbuf_gym.utils.arguments import choice

SENDER = "cubic"
"""The unchanged sender that receivers are set against, where they do not need one of their own."""

GAINS = (1, 2, 7, 9)
"""The paper's."""

LARGEST_BUFFER_BYTES = 6 * 2**20
"""Linux's default limit of a receive buffer (tcp_rmem), up to which it is tuned."""

RECEIVERS: dict[str, dict[str, Any]] = {
    "nuwa": {"receiver": "nuwa"},
    **{f"nuwa_k{k}": {"receiver": {"name": "nuwa", "k": k}} for k in GAINS},
    **{f"nuwa_paper_k{k}": {"receiver": {"name": "nuwa", "k": k, **PAPERS_RULE}} for k in GAINS},
    **{
        name: {"receiver": name, "cc": SENDER}
        for name, record in RECEIVER_CONTROLS.items()
        if not record.agent and name != "nuwa"
    },
    "autotuned": {"receiver": None, "cc": SENDER, "receive_buffer_bytes": LARGEST_BUFFER_BYTES},
}
"""Receivers by name: what becomes of an agent's flow. Where no congestion control is said the sender stays the agent's."""


def names() -> tuple[str, ...]:
    """The receivers, and the simulator's congestion controls, of whatever stack, but for the one that needs a receiver's."""
    return tuple(dict.fromkeys((*RECEIVERS, *(name for name in WITHOUT_AGENT if name != DRIVEN))))


class InPlace(InWorld):
    """Something of the simulator in the place of agents' receivers: it acts on every packet.

    Args:
        name: how tables call it.
        changes: fields of an agent's flow (`netbuf_gym.scenarios.Flow`) that it has otherwise.
    """

    def __init__(self, name: str, changes: Mapping[str, Any]):
        self.name, self.changes = name, dict(changes)
        self._meters: weakref.WeakKeyDictionary[Simulator, tuple[Meter, list[int]]] = weakref.WeakKeyDictionary()

    def place(self, scenario: Scenario) -> Scenario:
        """The same world with it wherever an agent was; ConfigError where it has no place there."""
        controlled = scenario.agent_receivers
        try:
            flows = [replace(f, **self.changes) if i in controlled else f for i, f in enumerate(scenario.flows)]
            return replace(scenario, flows=tuple(flows))
        except ScenarioError as error:
            raise ConfigError(str(error)) from None

    def sampler(self, scenario: Scenario, world: Simulator) -> Callable[[], None]:
        """See `InWorld.sampler`: what is measured interval by interval, as agents' telemetry is."""
        flows = list(scenario.agent_receivers)
        meter = Meter(len(flows))
        capacities = [capacity_mbps(scenario, flow) * 1e6 for flow in flows]
        meter.reset(slice(None), capacities, [scenario.flows[flow].start_s for flow in flows])
        self._meters[world] = meter, flows
        before = _counted(scenario, world, flows)

        def sample() -> None:
            nonlocal before
            now = _counted(scenario, world, flows)
            elapsed_s, delivered, sojourn_s, passed, sent, lost = (now - before).T
            before = now
            with np.errstate(invalid="ignore", divide="ignore"):
                meter.add(elapsed_s, delivered * 8 / elapsed_s, sojourn_s / passed, sent, lost)

        return sample

    def report(self, scenario: Scenario, world: Simulator) -> list[dict[str, Any]]:
        """See `netbuf_gym.tasks.receiver_window.report.episode_reports`; no utility of a world that was not sampled."""
        flows = list(scenario.agent_receivers)
        meter = self._meters[world][0] if world in self._meters else Meter(len(flows))
        achieved = [meter.achieved(row) for row in range(len(flows))]
        return episode_reports(scenario, flows, sender_counters(world, scenario, flows), achieved)

    def watcher(self, scenario: Scenario, world: Simulator) -> Callable[[], dict[str, float]]:
        """See `InWorld.watcher`: throughput as it arrives, the bottleneck's queue, and the sender's window."""
        cwnd, queue = FLOW_SAMPLE.index("cwnd_packets"), LINK_SAMPLE.index("queue_packets")
        first, link = scenario.agent_receivers[0], scenario.tightest_link(scenario.agent_receivers[0])
        arrived, waited, passed, then_s = 0, 0.0, 0, 0.0

        def show() -> dict[str, float]:
            nonlocal arrived, waited, passed, then_s
            before, before_waited, before_passed, before_s = arrived, waited, passed, then_s
            arrived, then_s = world.flow_arrivals()[first], world.now_ns * 1e-9
            stats = world.link_stats()[link]
            waited, passed = stats["sojourn_sum_s"], stats["sojourn_count"]
            rate = (arrived - before) * 8e-6 / (then_s - before_s) if then_s > before_s else math.nan
            delay = (waited - before_waited) / (passed - before_passed) * 1e3 if passed > before_passed else math.nan
            return {
                "throughput_mbps": rate,
                "window_packets": float(world.flow_sample()[first][cwnd]),
                "queue_delay_ms": delay,
                "queue_packets": float(world.link_sample()[link][queue]),
            }

        return show


class ReceiverControl(InPlace):
    """A receiver of the simulator in place of the agents.

    Args:
        name: one of `RECEIVERS`.
        parameters: of the receiver control, see `netbuf-gym list receiver-controls`.
    """

    def __init__(self, name: str, **parameters: Any):
        changes = dict(RECEIVERS[choice("receiver", name, RECEIVERS)])
        if parameters:
            control = changes["receiver"]
            if control is None:
                raise ConfigError(f"receiver {name!r} has no parameters, got {', '.join(parameters)}")
            changes["receiver"] = {**(control if isinstance(control, dict) else {"name": control}), **parameters}
        super().__init__(name, changes)


class CongestionControl(InPlace):
    """A congestion control of the simulator instead of the agent: at the sender, the receiver's window never in its way.

    Args:
        name: one of `netbuf_gym.scenarios.congestion_controls(stack)`, of the scenario's stack.
    """

    def __init__(self, name: str):
        super().__init__(choice("congestion control", name, names()), {"cc": name, "receiver": None})


def _counted(scenario: Scenario, world: Simulator, flows: Sequence[int]) -> np.ndarray:
    """Of each flow `(flows, 6)`: time in s, bytes delivered, seconds and packets at its bottleneck, packets sent and lost."""
    keys = ("now_s", "delivered_bytes", "sojourn_sum_s", "sojourn_count", "packets_sent", "packets_lost_marked")
    return np.array([[own[key] for key in keys] for own in sender_counters(world, scenario, flows)], np.float64)


def make(name: str) -> InPlace:
    """The receiver or congestion control of a name."""
    return ReceiverControl(name) if name in RECEIVERS else CongestionControl(name)


class Keep(Decider):
    """The action that leaves window, gain and target as they are, or most nearly so."""

    name = "keep"

    def start(self, rules: ReceiverWindow, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`."""
        return constant(rules.keep_action, rules, len(seeds))


CONTROLLERS = Named(names, make, {"keep": Keep, "random": RandomAction}, own=decider)
"""Every receiver and congestion control of the simulator, and what decides as agents do."""
