"""Baselines of the congestion-window task: the simulator's congestion controls, and rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import plants
from netbuf_gym.controllers import Controller, Decider, InWorld, KeepAction, Named, Policy, RandomAction, code_references
from netbuf_gym.controllers import user_code as own
from netbuf_gym.errors import ControlError, ScenarioError, quote
from netbuf_gym.plants.counters import sender_counters
from netbuf_gym.plants.simulator import FLOW_SAMPLE, LINK_SAMPLE, Simulator
from netbuf_gym.scenarios import OwnControl, compiled
from netbuf_gym.scenarios.catalogue import CONGESTION_CONTROLS, WITHOUT_AGENT, parse_congestion_control
from netbuf_gym.scenarios.types import AGENT, Scenario
from netbuf_gym.tasks.congestion_window.observations import DEFAULT_FEATURES
from netbuf_gym.tasks.congestion_window.report import episode_report
from netbuf_gym.tasks.congestion_window.task import CONTINUOUS, NO_CLAMP, CongestionWindow, agent_flows
from netbuf_gym.utils.arguments import as_argument_check, check_choice
from netbuf_gym.utils.parameters import Tunable, TunableParameter

SAMPLES_PER_INTERVAL = 20
"""Number of samples of a control's window in an interval, whose mean is followed."""

_COLUMN = {feature.name: column for column, feature in enumerate(DEFAULT_FEATURES)}


def names() -> tuple[str, ...]:
    """Return the simulator's congestion controls, of all stacks."""
    return WITHOUT_AGENT


class CongestionControl(InWorld):
    """Congestion control of the simulator in place of the agents, which acts on every ACK.

    Args:
        name: One of `netbuf_gym.scenarios.congestion_controls(stack)`, of the scenario's stack.
        settings: Parameters of the congestion control, see `netbuf-gym list congestion-controls`.

    Raises:
        ConfigError: Values that do not go together.
    """

    def __init__(self, name: str, **settings: Any):
        self.name = self.control = check_choice("congestion control", name, names())
        self.settings = settings
        self.cc: Any = {"name": name, **settings} if settings else name
        if settings:
            as_argument_check(parse_congestion_control)("cc", self.cc, names())

    @property
    def parameters(self) -> tuple[TunableParameter, ...]:
        """See `Controller.parameters`: those that the core declares."""
        return CONGESTION_CONTROLS[self.control].list_tunable(self.settings)

    def with_parameters(self, values: Mapping[str, Any]) -> CongestionControl:
        return CongestionControl(self.control, **(self.settings | dict(values)))

    def place(self, scenario: Scenario) -> Scenario:
        """Return the same world with this congestion control in place of every agent."""
        senders: list[Any] = [self.cc if flow.cc == AGENT else flow.cc for flow in scenario.flows]
        return scenario.with_senders(senders)

    def make_follower(self, scenario: Scenario, seed: int, interval_s: float) -> WindowFollower:
        """See `InWorld.make_follower`; raise ScenarioError where the control has no place in the world."""
        end_ns, step_ns = round(scenario.duration_s * 1e9), max(round(interval_s * 1e9 / SAMPLES_PER_INTERVAL), 1)
        first, column = agent_flows(scenario)[0], FLOW_SAMPLE.index("cwnd_packets")
        windows = []
        with closing(plants.make_lone_world("sim", self.place(scenario), seed)) as world:
            while world.now_ns < end_ns:
                world.run(min(world.now_ns + step_ns, end_ns))
                windows.append(float(world.flow_sample()[first][column]))
        means = [float(np.mean(windows[at : at + SAMPLES_PER_INTERVAL])) for at in range(0, len(windows), SAMPLES_PER_INTERVAL)]
        return WindowFollower(self.name, np.maximum(means, 1.0))

    def report(self, scenario: Scenario, world: Simulator) -> list[dict[str, Any]]:
        """See `netbuf_gym.tasks.congestion_window.report.episode_report`."""
        flows = agent_flows(scenario)
        counters = sender_counters(world, scenario, flows)
        return [episode_report(scenario, flow, own) for flow, own in zip(flows, counters, strict=True)]

    def make_watcher(self, scenario: Scenario, world: Simulator) -> Callable[[], dict[str, float]]:
        cwnd, rtt = (FLOW_SAMPLE.index(name) for name in ("cwnd_packets", "rtt_ms"))
        queue, first = LINK_SAMPLE.index("queue_packets"), agent_flows(scenario)[0]

        acked, then_s = 0, 0.0

        def show() -> dict[str, float]:
            nonlocal acked, then_s
            flow, link = world.flow_sample()[first], world.link_sample()[scenario.bottleneck]
            before, before_s = acked, then_s
            acked, then_s = world.flow_stats()[first]["acked_bytes"], world.now_ns * 1e-9
            rate = (acked - before) * 8e-6 / (then_s - before_s) if then_s > before_s else math.nan
            return {"throughput_mbps": rate, "cwnd_packets": flow[cwnd], "rtt_ms": flow[rtt], "queue_packets": link[queue]}

        return show


class UserCongestionControl(CongestionControl):
    """Congestion control from the user's own code in place of the agents.

    Args:
        name: Name in tables.
        cc: The congestion control.
    """

    def __init__(self, name: str, cc: OwnControl):
        self.name, self.cc = name, cc

    @property
    def parameters(self) -> tuple[TunableParameter, ...]:
        """None: the user's own control has no declared parameters."""
        return ()

    def report(self, scenario: Scenario, world: Simulator) -> list[dict[str, Any]]:
        """See `CongestionControl.report`.

        Raises:
            ControlError: A flow has run for more than `NEVER_SENDS_S` without anything acknowledged.
        """
        for flow in agent_flows(scenario):
            start_s, acked = scenario.flows[flow].start_s, world.flow_stats()[flow]["acked_bytes"]
            if acked == 0 and world.now_ns * 1e-9 - start_s > NEVER_SENDS_S:
                since = f"in {world.now_ns * 1e-9 - start_s:g} s of {scenario.name or 'a world'}"
                raise ControlError(
                    f"congestion control {self.name} never sends: nothing was acknowledged {since}; valid: one that sends"
                )
        return super().report(scenario, world)


NEVER_SENDS_S = 1.0
"""Time in seconds after which a flow of the user's congestion control must have delivered something."""


def load_user_controller(word: str) -> Controller:
    """Return the controller for a reference to the user's code: a congestion control in C++ or Python, or a `Controller`.

    Raises:
        ControlError: The code cannot be compiled or imported, or is neither of these.
    """
    if code_references.is_compiled(word):
        return UserCongestionControl(Path(word).name, compiled(word))
    found = code_references.load_object(word)
    made = own.as_controller(found)
    if made is not None:
        return made
    if not callable(found):
        valid = "a congestion control, or a netbuf_gym.controllers.Controller"
        raise ControlError(f"{quote(word)} = {quote(found)}; valid: {valid}")
    try:
        return UserCongestionControl(word.rpartition(":")[2], OwnControl(found))
    except ScenarioError as error:
        raise ControlError(f"{quote(word)}: {error}") from None


class WindowFollower(Decider[CongestionWindow]):
    """Controller that holds, in each interval, the mean window of a congestion control in the same world.

    The actions are the factors, of 1/2 to 2, that lead to that window from the present one. Between decisions the window stands
    still, while that of the congestion control moves with each ACK.

    Args:
        name: Name of the congestion control.
        windows: Windows in segments from the start of the world on, float64 (intervals,).
    """

    recipes = ("default",)

    def __init__(self, name: str, windows: np.ndarray):
        self.name, self.windows = name, windows

    @property
    def env(self) -> dict[str, Any]:
        """See `Controller.env`: continuous actions, and nothing else that changes the window."""
        alone = {"clamp": NO_CLAMP, "drain": False, "paced": False, "slow_start": False}
        return {"recipe": "default", "actions": CONTINUOUS, **alone}

    def start(self, rules: CongestionWindow, seeds: Sequence[int]) -> Policy:
        self._require_recipe(rules)
        at = iter(self.windows.tolist())
        wanted = self.windows[-1]

        def policy(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
            nonlocal wanted
            wanted = next(at, wanted)
            return rules.nearest_actions(np.log(wanted / _latest_window(observations))), None

        return policy


def _latest_window(observations: np.ndarray) -> np.ndarray:
    """Return the window in segments, `(rows,)`, from the default recipe's latest features."""
    latest = observations[:, -len(DEFAULT_FEATURES) :].astype(np.float64)
    return 65536.0 ** latest[:, _COLUMN["window_size"]]


class KeepWindow(KeepAction):
    """Window kept as it is: in recipes default and robust what the slow start reached, in ppcc and bare the initial one.

    The discrete factors of recipes default, bare and robust do not include 1, so continuous actions are used there.
    """

    @property
    def env(self) -> dict[str, Any]:
        """See `Controller.env`: continuous actions."""
        return {"actions": CONTINUOUS}

    def merge_arguments(self, env: Mapping[str, Any]) -> dict[str, Any]:
        return {**env} if env.get("recipe") == "ppcc" else super().merge_arguments(env)

    def match_arguments(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """See `Controller.match_arguments`: always its own actions, not those of `env`."""
        return self.merge_arguments({key: value for key, value in env.items() if key != "actions"})


class QueueTarget(Tunable, Decider[CongestionWindow]):
    """Rule that keeps a few segments in the queue, like Vegas, using only the latest features of recipe default.

    This baseline shows that the observations suffice, and is a standard for agents. The estimate of queued segments includes
    about one that is waiting for the receiver's delayed ACK.

    Args:
        segments: Target number of queued segments, 0.5 to 1000.
        share: Further segments, as a share of the window, 0 to 1.
        gain: Part of the difference that one decision corrects, 0.01 to 2.
    """

    name = "queue_target"
    recipes = ("default", "bare", "robust")
    tunable = (
        TunableParameter(name="segments", low=0.5, high=1000),
        TunableParameter(name="share", low=0, high=1),
        TunableParameter(name="gain", low=0.01, high=2),
    )
    segments: float
    share: float
    gain: float

    def __init__(self, segments: float = 1.5, share: float = 0.01, gain: float = 0.6):
        self.set_parameters(segments=segments, share=share, gain=gain)

    def start(self, rules: CongestionWindow, seeds: Sequence[int]) -> Policy:
        self._require_recipe(rules)
        width, own = rules.width, len(DEFAULT_FEATURES)  # which are the first ones of each recipe

        def policy(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
            return rules.nearest_actions(self.log_window_changes(observations[:, -width:][:, :own])), None

        return policy

    def log_window_changes(self, observations: np.ndarray) -> np.ndarray:
        """Return the changes of the log window, `(rows,)`, for observations of recipe default, `(rows, features)`."""
        latest = observations[:, -len(DEFAULT_FEATURES) :].astype(np.float64)
        window = _latest_window(observations)
        queued = 64.0 ** latest[:, _COLUMN["segments_queued"]] - 1
        in_intervals = latest[:, _COLUMN["rtt_in_intervals"]]
        growth = 2.0 ** latest[:, _COLUMN["rate_change"]]

        target = self.segments + self.share * window
        change = self.gain * (target - queued) / window / np.maximum(1, 64.0**in_intervals)
        change = np.clip(change, np.log(0.5), 0.1)
        change = np.where((queued < target) & (growth > 1.1), np.log(1.4), change)
        return np.where(in_intervals == 0, 0.0, change)  # nothing has been measured yet


RULES = {"keep": KeepWindow, "random": RandomAction, "queue_target": QueueTarget}
CONTROLLERS = Named(names, CongestionControl, RULES, own=load_user_controller)
"""Every congestion control of the simulator, controllers that act as agents do, and the user's own code."""

PLAIN_CONTROLLERS = Named(names, CongestionControl, {"random": RandomAction}, own=load_user_controller)
"""Controllers beside agents of any observations and actions, as a subclass of the task has: every congestion control of the
simulator, random actions, and the user's own code."""
