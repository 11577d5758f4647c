"""Baselines of the host-buffers task: constant settings, congestion controls, bpftune's rule, and random actions.

All of them decide in the agents' place, or only choose the initial state of the world, so that they run on every plant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from netbuf_gym.controllers import Controller, ControllerWrapper, Decider, KeepAction, Named, Policy, RandomAction, Rules
from netbuf_gym.controllers.user_code import make_controller
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.scenarios import Scenario
from netbuf_gym.scenarios.catalogue import CONGESTION_CONTROLS, parse_congestion_control
from netbuf_gym.tasks.host_buffers.actions import to_unit
from netbuf_gym.tasks.host_buffers.adaptive import AdaptiveControl
from netbuf_gym.tasks.host_buffers.hosts import apply_settings, change_hosts, find_agent_hosts, with_congestion_control
from netbuf_gym.tasks.host_buffers.observations import DEFAULT_FEATURES
from netbuf_gym.tasks.host_buffers.settings import (
    NAMED,
    PAIRS,
    RING_RANGE,
    SOCKET_RANGE,
    TCP_RANGE,
    Settings,
    constant_settings,
)
from netbuf_gym.tasks.host_buffers.task import HostBuffers
from netbuf_gym.utils.arguments import as_argument_check, check_integer
from netbuf_gym.utils.parameters import Tunable, TunableParameter

_check_congestion_control = as_argument_check(parse_congestion_control)
_COLUMN = {feature.name: column for column, feature in enumerate(DEFAULT_FEATURES)}


class KeepSettings(KeepAction):
    """Host that keeps the initial settings of its scenario."""

    recipes = ("default", "auter")


class Setting(KeepSettings):
    """Host that starts with these settings and keeps them.

    Args:
        settings: Name of settings in `NAMED`, or other settings.
        name: Name in tables; None: that of the settings.
        cc: Congestion control of everything that the host sends; None: as in the scenario.
    """

    def __init__(self, settings: str | Settings, name: str | None = None, cc: str | None = None):
        if isinstance(settings, str) and settings not in NAMED:
            raise ConfigError(f"settings = {quote(settings)}; valid: {', '.join(NAMED)}, or Settings(...)")
        self.settings = NAMED[settings] if isinstance(settings, str) else settings
        self.name = (settings if isinstance(settings, str) else "constant") if name is None else name
        self.cc = cc

    def place(self, scenario: Scenario) -> Scenario:
        """Return the same world with the agents' hosts starting with these settings."""
        which = find_agent_hosts(scenario)
        scenario = change_hosts(scenario, which, lambda host: apply_settings(host, self.settings))
        return scenario if self.cc is None else with_congestion_control(scenario, which, self.cc)


class WithCongestionControl(ControllerWrapper[Rules], Decider[Rules]):
    """Another controller on a host whose connections use a given congestion control.

    Args:
        controller: Controller that decides, for instance a trained agent.
        cc: Name of the congestion control, e.g. `"bbr"`.
    """

    def __init__(self, controller: Controller, cc: str = "bbr"):
        _check_congestion_control("cc", cc, CONGESTION_CONTROLS)
        super().__init__(controller)
        self.name, self.cc = f"{controller.name}+{cc}", cc

    def place(self, scenario: Scenario) -> Scenario:
        """Return the inner controller's world, with this congestion control for what the agents' hosts send."""
        return with_congestion_control(self.controller.place(scenario), find_agent_hosts(scenario), self.cc)

    def start(self, rules: Rules, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`; raise ConfigError where the controller decides nothing."""
        policy = self.controller.start(rules, seeds)
        if policy is None:
            raise ConfigError(f"{self.controller.name} acts in the world and decides nothing; valid: a controller that decides")
        return policy


class Bpftune(Tunable, Decider[HostBuffers]):
    """bpftune's rule for TCP buffers, applied once an interval, starting from given settings.

    A maximum grows by a quarter when the buffers in use come within a quarter of it; without connections none is in use. It
    stops growing for good where the correlation of buffer size and smoothed round-trip time, over at least ten intervals,
    passes a threshold: then a larger buffer only adds delay. Size and round trip are correlated over all intervals so far.

    Args:
        near: Distance of the buffer in use from the maximum, as a share of it, within which the maximum grows, above 0 to
            below 1.
        growth: Growth of the maximum, as a share, above 0 to 10.
        threshold: Threshold of the correlation, 0 to 1.
        samples: Least number of intervals that are correlated, 3 to 10000.
        first: Initial settings of the host, by default Linux's own.
    """

    name = "bpftune"
    recipes = ("direct",)
    tunable = (
        TunableParameter(name="near", low=0.001, high=0.999),
        TunableParameter(name="growth", low=0.001, high=10),
        TunableParameter(name="threshold", low=0, high=1),
        TunableParameter(name="samples", kind="whole", low=3, high=10_000),
    )
    near: float
    growth: float
    threshold: float
    samples: int

    def __init__(
        self,
        near: float = 0.25,
        growth: float = 0.25,
        threshold: float = 0.75,
        samples: int = 10,
        first: Settings = NAMED["autotuning"],
    ):
        self.set_parameters(near=near, growth=growth, threshold=threshold, samples=samples)
        self.first = first

    def with_parameters(self, values: Mapping[str, Any]) -> Bpftune:
        """See `Controller.with_parameters`; with the same initial settings."""
        return Bpftune(**(self.get_parameters() | dict(values)), first=self.first)

    def starting_with(self, first: Settings) -> Bpftune:
        """Return the same rule for a host that starts with other settings."""
        return Bpftune(self.near, self.growth, self.threshold, self.samples, first)

    def place(self, scenario: Scenario) -> Scenario:
        """Return the same world with the initial settings of this rule."""
        return change_hosts(scenario, find_agent_hosts(scenario), lambda host: apply_settings(host, self.first))

    def start(self, rules: HostBuffers, seeds: Sequence[int]) -> Policy:
        self._require_recipe(rules)
        rows = len(seeds) * rules.agents
        own = self.first
        first = np.full(rows, float(max(own.rmem_max_bytes, own.wmem_max_bytes)))
        width = rules.width
        start = to_unit(own.ring_packets, own.socket_bytes, own.rmem_default_bytes, own.rmem_max_bytes)
        sizes: list[np.ndarray] = []
        delays: list[np.ndarray] = []

        def policy(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
            most = first.copy() if state is None else state[0]
            stopped = np.zeros(rows, bool) if state is None else state[1]
            now = observations[:, -width:]
            inflation = np.exp(now[:, _COLUMN["rtt_inflation"]] * np.log(8.0))
            used = np.maximum(_buffer_use(now, "send_buffer"), _buffer_use(now, "receive_buffer"))
            if state is not None:  # the interval that used this maximum
                sizes.append(most.copy())
                delays.append(inflation)
            if len(sizes) >= self.samples:
                stopped |= _correlation(np.array(sizes), np.array(delays)) > self.threshold
            there = (now[:, _COLUMN["connections"]] > 0) | (now[:, _COLUMN["turnover"]] > 0) | (now[:, _COLUMN["busy"]] > 0)
            grows = (used >= 1 - self.near) & there & ~stopped & (state is not None)  # features of old connections do not count
            most = np.minimum(np.where(grows, most * (1 + self.growth), most), TCP_RANGE[1])
            actions = np.repeat(start[None], rows, axis=0)
            actions[:, 3] = 2 * np.log(most / TCP_RANGE[0]) / np.log(TCP_RANGE[1] / TCP_RANGE[0]) - 1
            return actions, (most, stopped)

        return policy


def _buffer_use(now: np.ndarray, name: str) -> np.ndarray:
    """Return a connection's mean buffer over the maximum, `(rows,)`, from a feature."""
    feature = DEFAULT_FEATURES[_COLUMN[name]]
    return feature.low * (feature.high / feature.low) ** now[:, _COLUMN[name]]


def _correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the Pearson correlation of each row over the samples, (samples, rows) each; 0 where either is constant."""
    da, db = a - a.mean(axis=0), b - b.mean(axis=0)
    size = np.sqrt((da**2).sum(axis=0) * (db**2).sum(axis=0))
    return np.where(size > 0, (da * db).sum(axis=0) / np.where(size > 0, size, 1), 0.0)


def make_baseline(name: str) -> Controller:
    """Return the controller of a name: settings, a congestion control with `default`, or both (`PAIRS`)."""
    if name in NAMED:
        return Setting(name)
    settings, plus, cc = name.rpartition("+")
    return Setting(settings, name, cc) if plus else Setting("default", name, name)


def controller_names() -> tuple[str, ...]:
    """Return the names of the settings, of the congestion controls with the `default` settings, and of the pairs."""
    return (*NAMED, *_CONTROLS, *PAIRS)


_CONTROLS = ("bbr", "cubic", "newreno", "vegas")


def parse_setting(numbers: str) -> Setting:
    """Return the setting of `RING:TCP:SOCKET`: packets of the ring, TCP maxima and cap of explicit socket buffers in bytes.

    Raises:
        ConfigError: There are not three numbers, or one is out of range.
    """
    given = numbers.split(":")
    if len(given) != 3 or not all(one.isascii() and one.isdigit() and len(one) < 10 for one in given):
        valid = "setting:RING:TCP:SOCKET, packets and bytes, e.g. setting:256:6291456:212992"
        raise ConfigError(f"controller = {quote(f'setting:{numbers}')}; valid: {valid}")
    bounds = zip(("ring", "tcp", "socket"), given, (RING_RANGE, TCP_RANGE, SOCKET_RANGE), strict=True)
    sizes = [check_integer(f"{key} of setting:{numbers}", int(one), int(low), int(high)) for key, one, (low, high) in bounds]
    return Setting(constant_settings(*sizes), f"setting:{numbers}")


CONTROLLERS = Named(
    controller_names,
    make_baseline,
    {"keep": KeepSettings, "bpftune": Bpftune, "adaptive": AdaptiveControl, "random": RandomAction},
    {"setting": parse_setting},
    own=make_controller,
)
"""Settings and congestion controls by name, controllers that act as agents do, and `setting:RING:TCP:SOCKET`."""
