"""Controllers of the receiver-window task that do not learn: the simulator's receivers and congestion controls, and rules."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from netbuf_gym.controllers import Controller, InWorld, KeepAction, Named, RandomAction
from netbuf_gym.controllers.user_code import make_controller
from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.plants.counters import sender_counters
from netbuf_gym.plants.simulator import FLOW_SAMPLE, LINK_SAMPLE, Simulator
from netbuf_gym.scenarios.catalogue import CONGESTION_CONTROLS, RECEIVER_CONTROLS, WITHOUT_AGENT, parse_congestion_control
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.flows import capacity_mbps
from netbuf_gym.tasks.receiver_window.meter import UtilityMeter
from netbuf_gym.tasks.receiver_window.random_paths import RECEIVER_DRIVEN
from netbuf_gym.tasks.receiver_window.refill import DataRefill, Refill
from netbuf_gym.tasks.receiver_window.report import episode_reports
from netbuf_gym.tasks.receiver_window.task import PAPER_PARAMETERS
from netbuf_gym.utils.arguments import as_argument_check, check_choice
from netbuf_gym.utils.parameters import TunableParameter

DEFAULT_SENDER = "cubic"
"""The unchanged sender that receivers are paired with, unless they need a sender of their own."""

GAINS = (1, 2, 7, 9)
"""The paper's gains k."""

LARGEST_BUFFER_BYTES = 6 * 2**20
"""Linux's default limit of a receive buffer (tcp_rmem), up to which it is tuned."""

RECEIVERS: dict[str, dict[str, Any]] = {
    "nuwa": {"receiver": "nuwa"},
    **{f"nuwa_k{k}": {"receiver": {"name": "nuwa", "k": k}} for k in GAINS},
    **{f"nuwa_paper_k{k}": {"receiver": {"name": "nuwa", "k": k, **PAPER_PARAMETERS}} for k in GAINS},
    **{
        name: {"receiver": name, "cc": DEFAULT_SENDER}
        for name, record in RECEIVER_CONTROLS.items()
        if not record.agent and name != "nuwa"
    },
    "autotuned": {"receiver": None, "cc": DEFAULT_SENDER, "receive_buffer_bytes": LARGEST_BUFFER_BYTES},
}
"""Fields of an agent's flow that each receiver changes, by its name. Without `cc` the sender stays the same."""


def control_names() -> tuple[str, ...]:
    """Return the names of receivers and of all stacks' congestion controls, except the one that a receiver must drive."""
    return tuple(dict.fromkeys((*RECEIVERS, *(name for name in WITHOUT_AGENT if name != RECEIVER_DRIVEN))))


class ReplacingControl(InWorld):
    """A control of the simulator that replaces the agents' receivers and acts on every packet.

    Args:
        name: Name in tables.
        changes: Fields of an agent's flow (`netbuf_gym.scenarios.Flow`) to change.
    """

    def __init__(self, name: str, changes: Mapping[str, Any]):
        self.name, self.changes = name, dict(changes)
        self._meters: weakref.WeakKeyDictionary[Simulator, tuple[UtilityMeter, list[int]]] = weakref.WeakKeyDictionary()

    def place(self, scenario: Scenario) -> Scenario:
        """Return the same world with this control in place of each agent.

        Raises:
            ConfigError: The control does not fit the world.
        """
        controlled = scenario.agent_receivers
        try:
            flows = [replace(f, **self.changes) if i in controlled else f for i, f in enumerate(scenario.flows)]
            return replace(scenario, flows=tuple(flows))
        except ScenarioError as error:
            raise ConfigError(str(error)) from None

    def make_sampler(self, scenario: Scenario, world: Simulator) -> Callable[[], None]:
        """See `InWorld.make_sampler`: takes per-interval measurements as in agents' telemetry."""
        flows = list(scenario.agent_receivers)
        meter = UtilityMeter(len(flows))
        capacities = [capacity_mbps(scenario, flow) * 1e6 for flow in flows]
        meter.reset(slice(None), capacities, [scenario.flows[flow].start_s for flow in flows])
        self._meters[world] = meter, flows
        before = _read_counters(scenario, world, flows)

        def sample() -> None:
            nonlocal before
            now = _read_counters(scenario, world, flows)
            elapsed_s, delivered, sojourn_s, passed, sent, lost = (now - before).T
            before = now
            with np.errstate(invalid="ignore", divide="ignore"):
                meter.add(elapsed_s, delivered * 8 / elapsed_s, sojourn_s / passed, sent, lost)

        return sample

    def report(self, scenario: Scenario, world: Simulator) -> list[dict[str, Any]]:
        """See `netbuf_gym.tasks.receiver_window.report.episode_reports`; without samples of a world the utility is NaN."""
        flows = list(scenario.agent_receivers)
        meter = self._meters[world][0] if world in self._meters else UtilityMeter(len(flows))
        counters = enumerate(sender_counters(world, scenario, flows))
        return episode_reports(scenario, flows, [{**own, "achieved": meter.summarize(row)} for row, own in counters])

    def make_watcher(self, scenario: Scenario, world: Simulator) -> Callable[[], dict[str, float]]:
        """See `InWorld.make_watcher`: shows throughput as it arrives, the bottleneck's queue, and the sender's window."""
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


class ReceiverControl(ReplacingControl):
    """A receiver of the simulator in place of the agents.

    Args:
        name: One of `RECEIVERS`.
        parameters: Parameters of the receiver control, see `netbuf-gym list receiver-controls`.
    """

    def __init__(self, name: str, **parameters: Any):
        changes = dict(RECEIVERS[check_choice("receiver", name, RECEIVERS)])
        if parameters:
            control = changes["receiver"]
            if control is None:
                raise ConfigError(f"receiver {name!r} has no parameters, got {', '.join(parameters)}")
            changes["receiver"] = {**(control if isinstance(control, dict) else {"name": control}), **parameters}
        super().__init__(name, changes)
        self.receiver, self.settings = name, parameters

    @property
    def parameters(self) -> tuple[TunableParameter, ...]:
        """See `Controller.parameters`: those that the core declares."""
        control = self.changes["receiver"]
        own = control if isinstance(control, dict) else {"name": control}
        return () if control is None else RECEIVER_CONTROLS[own["name"]].list_tunable(own)

    def with_parameters(self, values: Mapping[str, Any]) -> ReceiverControl:
        return ReceiverControl(self.receiver, **(self.settings | dict(values)))


class CongestionControl(ReplacingControl):
    """A congestion control of the simulator at the sender instead of the agent; the receiver's window never limits it.

    Args:
        name: One of `netbuf_gym.scenarios.congestion_controls(stack)`, of the scenario's stack.
        settings: Parameters of the congestion control, see `netbuf-gym list congestion-controls`.

    Raises:
        ConfigError: Values that do not go together.
    """

    def __init__(self, name: str, **settings: Any):
        cc = {"name": check_choice("congestion control", name, control_names()), **settings} if settings else name
        super().__init__(check_choice("congestion control", name, control_names()), {"cc": cc, "receiver": None})
        if settings:
            as_argument_check(parse_congestion_control)("cc", cc, WITHOUT_AGENT)
        self.control, self.settings = name, settings

    @property
    def parameters(self) -> tuple[TunableParameter, ...]:
        """See `Controller.parameters`: those that the core declares."""
        return CONGESTION_CONTROLS[self.control].list_tunable(self.settings)

    def with_parameters(self, values: Mapping[str, Any]) -> CongestionControl:
        return CongestionControl(self.control, **(self.settings | dict(values)))


def _read_counters(scenario: Scenario, world: Simulator, flows: Sequence[int]) -> np.ndarray:
    """Return `(flows, 6)`: time in s, bytes delivered, seconds and packets at the bottleneck, packets sent and lost."""
    keys = ("now_s", "delivered_bytes", "sojourn_sum_s", "sojourn_count", "packets_sent", "packets_lost_marked")
    return np.array([[own[key] for key in keys] for own in sender_counters(world, scenario, flows)], np.float64)


def make_control(name: str) -> ReplacingControl:
    """Return the receiver or congestion control with this name."""
    return ReceiverControl(name) if name in RECEIVERS else CongestionControl(name)


DECIDERS: dict[str, Callable[[], Controller]] = {
    **{rule.name: rule for rule in (Refill, DataRefill)},
    "keep": KeepAction,
    "random": RandomAction,
}
"""Controllers that decide in the agents' place, by name."""

CONTROLLERS = Named(control_names, make_control, DECIDERS, own=make_controller)
"""Every receiver and congestion control of the simulator, and the controllers that decide as agents do."""
