"""What plays the congestion-window task without learning: the simulator's congestion controls, and rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import plants
from netbuf_gym.controllers import Controller, Decider, InWorld, Named, Policy, RandomAction, code_references
from netbuf_gym.controllers import user_code as own
from netbuf_gym.controllers.policies import constant
from netbuf_gym.errors import ControlError, ScenarioError, shown
from netbuf_gym.plants.counters import sender_counters
from netbuf_gym.plants.simulator import FLOW_SAMPLE, LINK_SAMPLE, Simulator
from netbuf_gym.scenarios import OwnControl, compiled
from netbuf_gym.scenarios.catalogue import WITHOUT_AGENT
from netbuf_gym.scenarios.types import AGENT, Scenario
from netbuf_gym.tasks.congestion_window.observations import DEFAULT_FEATURES
from netbuf_gym.tasks.congestion_window.report import episode_report
from netbuf_gym.tasks.congestion_window.task import CONTINUOUS, NO_CLAMP, CongestionWindow
from netbuf_gym.utils.arguments import choice, real

SAMPLES = 20
"""Of a control's window in an interval, of which the mean is followed."""

_COLUMN = {feature.name: column for column, feature in enumerate(DEFAULT_FEATURES)}


def names() -> tuple[str, ...]:
    """The simulator's congestion controls, of whatever stack."""
    return WITHOUT_AGENT


class CongestionControl(InWorld):
    """A congestion control of the simulator in place of the agents: it acts on every ACK.

    Args:
        name: one of `netbuf_gym.scenarios.congestion_controls(stack)`, of the scenario's stack.
    """

    def __init__(self, name: str):
        self.name = choice("congestion control", name, names())
        self.cc: str | OwnControl = self.name

    def place(self, scenario: Scenario) -> Scenario:
        """The same world with this congestion control wherever an agent was."""
        return scenario.with_senders([self.cc if flow.cc == AGENT else flow.cc for flow in scenario.flows])

    def followed(self, scenario: Scenario, seed: int, interval_s: float) -> Followed:
        """See `InWorld.followed`; raises ScenarioError where the control has no place in the world."""
        end_ns, step_ns = round(scenario.duration_s * 1e9), max(round(interval_s * 1e9 / SAMPLES), 1)
        first, column = _places(scenario)[0], FLOW_SAMPLE.index("cwnd_packets")
        windows = []
        with closing(plants.lone("sim", self.place(scenario), seed)) as world:
            while world.now_ns < end_ns:
                world.run(min(world.now_ns + step_ns, end_ns))
                windows.append(float(world.flow_sample()[first][column]))
        means = [float(np.mean(windows[at : at + SAMPLES])) for at in range(0, len(windows), SAMPLES)]
        return Followed(self.name, np.maximum(means, 1.0))

    def report(self, scenario: Scenario, world: Simulator) -> list[dict[str, Any]]:
        """See `netbuf_gym.tasks.congestion_window.report.episode_report`."""
        flows = _places(scenario)
        counters = sender_counters(world, scenario, flows)
        return [episode_report(scenario, flow, own) for flow, own in zip(flows, counters, strict=True)]

    def watcher(self, scenario: Scenario, world: Simulator) -> Callable[[], dict[str, float]]:
        """See `InWorld.watcher`."""
        cwnd, rtt = (FLOW_SAMPLE.index(name) for name in ("cwnd_packets", "rtt_ms"))
        queue, first = LINK_SAMPLE.index("queue_packets"), _places(scenario)[0]

        acked, then_s = 0, 0.0

        def show() -> dict[str, float]:
            nonlocal acked, then_s
            flow, link = world.flow_sample()[first], world.link_sample()[scenario.bottleneck]
            before, before_s = acked, then_s
            acked, then_s = world.flow_stats()[first]["acked_bytes"], world.now_ns * 1e-9
            rate = (acked - before) * 8e-6 / (then_s - before_s) if then_s > before_s else math.nan
            return {"throughput_mbps": rate, "cwnd_packets": flow[cwnd], "rtt_ms": flow[rtt], "queue_packets": link[queue]}

        return show


class OwnCongestionControl(CongestionControl):
    """A congestion control of the user's in place of the agents.

    Args:
        name: how tables call it.
        cc: it.
    """

    def __init__(self, name: str, cc: OwnControl):
        self.name, self.cc = name, cc

    def report(self, scenario: Scenario, world: Simulator) -> list[dict[str, Any]]:
        """See `CongestionControl.report`.

        Raises:
            ControlError: a flow that has had a second has got nothing across.
        """
        for flow in _places(scenario):
            start_s, acked = scenario.flows[flow].start_s, world.flow_stats()[flow]["acked_bytes"]
            if acked == 0 and world.now_ns * 1e-9 - start_s > NEVER_SENDS_S:
                since = f"in {world.now_ns * 1e-9 - start_s:g} s of {scenario.name or 'a world'}"
                raise ControlError(f"congestion control {self.name} never sends: nothing was acknowledged {since}; valid: some")
        return super().report(scenario, world)


NEVER_SENDS_S = 1.0
"""That a flow of the user's control has at least to get something across."""


def own_code(word: str) -> Controller:
    """The controller that a word of the user's code stands for: a congestion control in C++ or Python, or what decides as
    agents do, where it is a `Controller`.

    Raises:
        ControlError: it cannot be compiled or imported, or is no such thing.
    """
    if code_references.is_compiled(word):
        return OwnCongestionControl(Path(word).name, compiled(word))
    found = code_references.python(word)
    made = own.as_controller(found)
    if made is not None:
        return made
    if not callable(found):
        valid = "a congestion control, or a netbuf_gym.controllers.Controller"
        raise ControlError(f"{shown(word)} = {shown(found)}; valid: {valid}")
    try:
        return OwnCongestionControl(word.rpartition(":")[2], OwnControl(found))
    except ScenarioError as error:
        raise ControlError(f"{shown(word)}: {error}") from None


def _places(scenario: Scenario) -> list[int]:
    """The flows that are agents'."""
    return [index for index, flow in enumerate(scenario.flows) if flow.cc == AGENT]


class Followed(Decider):
    """Holds, interval by interval, the window that a congestion control held on average in the same world.

    Its actions are the factors, of 1/2 to 2, that lead there from the window that there is. Between decisions its window
    stands still, where the control's moves with each ACK.

    Args:
        name: the control's.
        windows: float64 (intervals,), segments, from the start of the world on.
    """

    recipes = ("default",)

    def __init__(self, name: str, windows: np.ndarray):
        self.name, self.windows = name, windows

    @property
    def env(self) -> dict[str, Any]:
        """See `Controller.env`: continuous actions, and nothing that moves the window but they."""
        alone = {"clamp": NO_CLAMP, "drain": False, "paced": False, "slow_start": False}
        return {"recipe": "default", "actions": CONTINUOUS, **alone}

    def start(self, rules: CongestionWindow, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`."""
        self._require_recipe(rules)
        at = iter(self.windows.tolist())
        wanted = self.windows[-1]

        def policy(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
            nonlocal wanted
            wanted = next(at, wanted)
            return rules.nearest(np.log(wanted / _window(observations))), None

        return policy


def _window(observations: np.ndarray) -> np.ndarray:
    """Segments, `(rows,)`, of the default recipe's latest features."""
    latest = observations[:, -len(DEFAULT_FEATURES) :].astype(np.float64)
    return 65536.0 ** latest[:, _COLUMN["window_size"]]


class Keep(Decider):
    """The window as it is: of the recipe default what the slow start has come to, of ppcc the initial one.

    The discrete factors of recipe default have none of 1, so that it plays by continuous ones there.
    """

    name = "keep"

    @property
    def env(self) -> dict[str, Any]:
        """Continuous actions."""
        return {"actions": CONTINUOUS}

    def playing(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """See `Controller.playing`."""
        return {**env} if env.get("recipe") == "ppcc" else super().playing(env)

    def beside(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """See `Controller.beside`: its own actions, whatever the other's are."""
        return self.playing({key: value for key, value in env.items() if key != "actions"})

    def start(self, rules: CongestionWindow, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`; ConfigError where no action keeps a window."""
        return constant(rules.keep_action, rules, len(seeds))


class QueueTarget(Decider):
    """Holds a few segments in the queue, as Vegas means to, on the default recipe's latest features alone.

    It shows that these observations suffice, and is a bar for agents. The estimate of queued segments includes about
    one that is waiting for the receiver's delayed ACK.

    Args:
        segments: queued segments aimed at, 0.5 to 1000.
        share: further segments, as a share of the window, 0 to 1.
        gain: how much of the difference one decision corrects, 0.01 to 2.
    """

    name = "queue_target"
    recipes = ("default",)

    def __init__(self, segments: float = 1.5, share: float = 0.01, gain: float = 0.6):
        self.segments = real("segments", segments, 0.5, 1000)
        self.share = real("share", share, 0, 1)
        self.gain = real("gain", gain, 0.01, 2)

    def start(self, rules: CongestionWindow, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`."""
        self._require_recipe(rules)
        return lambda observations, state, starts: (rules.nearest(self.changes(observations)), None)

    def changes(self, observations: np.ndarray) -> np.ndarray:
        """What the logarithm of the window changes by, `(rows,)`, for observations `(rows, features)`."""
        latest = observations[:, -len(DEFAULT_FEATURES) :].astype(np.float64)
        window = _window(observations)
        queued = 64.0 ** latest[:, _COLUMN["segments_queued"]] - 1
        in_intervals = latest[:, _COLUMN["rtt_in_intervals"]]
        growth = 2.0 ** latest[:, _COLUMN["rate_change"]]

        target = self.segments + self.share * window
        change = self.gain * (target - queued) / window / np.maximum(1, 64.0**in_intervals)
        change = np.clip(change, np.log(0.5), 0.1)
        change = np.where((queued < target) & (growth > 1.1), np.log(1.4), change)
        return np.where(in_intervals == 0, 0.0, change)  # nothing has been measured yet


OTHERS = {"keep": Keep, "random": RandomAction, "queue_target": QueueTarget}
CONTROLLERS = Named(names, CongestionControl, OTHERS, own=own_code)
"""Every congestion control of the simulator, what decides as agents do, and the user's own."""
