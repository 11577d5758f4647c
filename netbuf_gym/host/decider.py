"""Deciders for a host: the controllers of a task, trained agents among them, without an environment around them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.controllers import Controller
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.scenarios import Scenario
from netbuf_gym.scenarios.hosts import Host
from netbuf_gym.scenarios.sources import resolve_scenario, sample_example
from netbuf_gym.tasks.history import History
from netbuf_gym.tasks.host_buffers.baselines import Bpftune, KeepSettings, Setting
from netbuf_gym.tasks.host_buffers.hosts import change_hosts
from netbuf_gym.tasks.host_buffers.task import HostBuffers

TASK = "host_buffers"
NON_RULE_ARGUMENTS = ("plant", "interval_s", "threads", "max_episode_steps", "scenario", "reward", "agents", "task")
"""Arguments of environments that have no influence on observations and decisions."""

_BUFFERS = "valid: a controller of buffers alone"


class Decider(Protocol):
    """Protocol of deciders."""

    name: str

    def decide(self, telemetry: Mapping[str, float]) -> dict[str, float]:
        """Return controls by name for the measurements, by name; controls that are NaN or missing stay."""


class FixedControls:
    """A decider that always returns the same controls.

    Args:
        controls: values by name of the control.
    """

    def __init__(self, controls: Mapping[str, float], name: str = "fixed"):
        self.controls, self.name = dict(controls), name

    def decide(self, telemetry: Mapping[str, float]) -> dict[str, float]:
        return dict(self.controls)


class ChangedControlsDecider:
    """Decider for a rule that sets every control: each control keeps its present value until the rule has changed its decision.

    Args:
        rule: the rule, whose first decision is the one that later decisions are compared with.
    """

    def __init__(self, rule: Decider):
        self.name, self._rule = rule.name, rule
        self._first: dict[str, float] | None = None
        self._changed: set[str] = set()

    def decide(self, telemetry: Mapping[str, float]) -> dict[str, float]:
        decided = self._rule.decide(telemetry)
        first = self._first = decided if self._first is None else self._first
        self._changed |= {name for name, value in decided.items() if value != first.get(name)}
        return {name: value for name, value in decided.items() if name in self._changed}


def make_decider(controller: Controller, interval_s: float, in_force: Mapping[str, float], **env: Any) -> Decider:
    """Create the decider on a host for a controller of the host-buffers task, which decides as in an environment.

    A controller that consists of settings asks for these; all others begin with the settings in force.

    Args:
        controller: a controller that decides; one that acts in the simulated world itself is refused.
        interval_s: time between decisions.
        in_force: settings of the host as they are now, by the names of controls.
        env: arguments of the environment that are not the controller's own.

    Raises:
        ConfigError: the controller does not decide, or on more than buffers, or an argument is wrong, or would do nothing.
        CheckpointError: the agent knows other rules.
    """
    if isinstance(controller, (Setting, KeepSettings)) and env:
        name, value = next(iter(env.items()))
        said = f"{name} = {quote(value)} does nothing with controller {controller.name!r}"
        raise ConfigError(f"{said}; valid: the controller alone")
    if isinstance(controller, Setting):
        if controller.cc is not None:
            why = f"sets congestion control {controller.cc!r}, which is not tuned here"
            raise ConfigError(f"controller {controller.name!r} {why}; {_BUFFERS}")
        return FixedControls(controller.settings.controls, controller.name)
    if isinstance(controller, Bpftune):
        return ChangedControlsDecider(
            ControllerDecider(controller.starting_with(controller.first.with_controls(in_force)), interval_s, in_force, **env)
        )
    return ControllerDecider(controller, interval_s, in_force, **env)


class ControllerDecider:
    """A controller of the host-buffers task, or a trained agent, deciding as in an environment, from the settings in force on.

    Args:
        controller: a controller that decides.
        interval_s: time between decisions.
        in_force: settings of the host as they are now, by the names of controls.
        env: arguments of the environment that are not the controller's own.

    Raises:
        ConfigError: the controller does not decide, or an argument is wrong. CheckpointError: the agent knows other rules.
    """

    def __init__(self, controller: Controller, interval_s: float, in_force: Mapping[str, float], **env: Any):
        record = tasks.get(TASK)
        own = {key: value for key, value in controller.merge_arguments(env).items() if key not in NON_RULE_ARGUMENTS}
        first = sample_example(resolve_scenario(record.rules.default_scenario, 1))
        recipe, history = own.pop("recipe", "default"), own.pop("history", None)
        self.name = controller.name
        self._rules = rules = record.rules(recipe, history, 1, **record.rules.world_arguments(first), **own)
        assert isinstance(rules, HostBuffers)
        if rules.controls:
            raise ConfigError(
                f"controller {controller.name!r} chooses congestion controls, which are not tuned here; {_BUFFERS}"
            )
        there = _with_host_settings(rules.control(first), in_force)
        policy = controller.start(rules, [0])
        if policy is None:
            raise ConfigError(f"controller {controller.name!r} acts in the simulated world itself; valid: one that decides")
        self._policy, self._state, self._first = policy, None, True
        self._tracker = rules.make_tracker(1, interval_s)
        rules.start(self._tracker, slice(0, 1), there)
        self._history = History(1, rules.history, rules.width)
        self._features = np.zeros((rules.width, 1), np.float32)
        self._control = np.full((1, len(rules.kind.controls)), np.nan)

    def decide(self, telemetry: Mapping[str, float]) -> dict[str, float]:
        row = np.array([[telemetry.get(name, math.nan) for name in self._rules.telemetry.names]])
        self._tracker.update(row)
        features = self._rules.observe(self._tracker, self._features)
        if self._first:
            self._history.fill(slice(0, 1), features)
        else:
            self._history.push(features)
        seen = self._history.read_rows(slice(0, 1)).reshape(1, *self._rules.observation_space.shape)
        actions, self._state = self._policy(seen, self._state, np.array([self._first]))
        self._first = False
        checked = self._rules.check_actions(actions, 1)
        control = self._rules.decode(checked, self._tracker, self._control)
        decided = dict(zip((one.name for one in self._rules.kind.controls), control[0].tolist(), strict=True))
        return {name: value for name, value in decided.items() if not math.isnan(value)}


def _with_host_settings(world: Scenario, in_force: Mapping[str, float]) -> Scenario:
    """Return the world with the settings of its host replaced by those of this host."""

    def replace_settings(host: Host) -> Host:
        found: dict[str, Any] = {}
        for what in ("tcp_rmem", "tcp_wmem"):
            old = getattr(host, what)
            default = int(in_force.get(f"{what}_default_bytes", old[1]))
            most = int(in_force.get(f"{what}_max_bytes", old[2]))
            found[what] = (min(old[0], default), default, most)
        for field in ("socket_bytes", "ring_packets", "limit_output_bytes", "notsent_lowat_bytes"):
            if field in in_force:
                found[field] = int(in_force[field])
        return replace(host, **found)

    return change_hosts(world, world.agent_hosts, replace_settings)
