"""What plays the host-buffers task without learning: settings that stay, congestion controls, bpftune's rule, and chance.

All of them decide in the agents' place, or only choose how the world begins, so that they play on every plant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from netbuf_gym.controllers import Controller, Decider, Named, Policy, RandomAction
from netbuf_gym.controllers.policies import constant
from netbuf_gym.controllers.user_code import decider
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.scenarios import Scenario
from netbuf_gym.scenarios.catalogue import CONGESTION_CONTROLS, congestion_control
from netbuf_gym.tasks.host_buffers.actions import to_unit
from netbuf_gym.tasks.host_buffers.hosts import agent_hosts, changed, set_to, with_congestion_control
from netbuf_gym.tasks.host_buffers.observations import DEFAULT_FEATURES
from netbuf_gym.tasks.host_buffers.settings import NAMED, RING_RANGE, SOCKET_RANGE, TCP_RANGE, Settings
from netbuf_gym.tasks.host_buffers.settings import constant as constant_settings
from netbuf_gym.tasks.host_buffers.task import HostBuffers
from netbuf_gym.utils.arguments import for_arguments, real, whole

_control = for_arguments(congestion_control)
_COLUMN = {feature.name: column for column, feature in enumerate(DEFAULT_FEATURES)}


class Setting(Decider):
    """A host that begins with these settings and keeps them.

    Args:
        settings: one of `NAMED` by its name, or any other.
        name: how tables call it; None: that name.
        cc: congestion control of all that the host sends; None: as the scenario has it.
    """

    recipes = ("default", "auter")

    def __init__(self, settings: str | Settings, name: str | None = None, cc: str | None = None):
        if isinstance(settings, str) and settings not in NAMED:
            raise ConfigError(f"settings = {shown(settings)}; valid: {', '.join(NAMED)}, or Settings(...)")
        self.settings = NAMED[settings] if isinstance(settings, str) else settings
        self.name = (settings if isinstance(settings, str) else "constant") if name is None else name
        self.cc = cc

    def place(self, scenario: Scenario) -> Scenario:
        """The same world, the agents' hosts with these settings from its start on."""
        which = agent_hosts(scenario)
        scenario = changed(scenario, which, lambda host: set_to(host, self.settings))
        return scenario if self.cc is None else with_congestion_control(scenario, which, self.cc)

    def start(self, rules: HostBuffers, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`."""
        self._require_recipe(rules)
        return constant(rules.keep_action, rules, len(seeds))


class Keep(Decider):
    """A host that keeps the settings that its scenario starts with."""

    name = "keep"
    recipes = ("default", "auter")

    def start(self, rules: HostBuffers, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`."""
        self._require_recipe(rules)
        return constant(rules.keep_action, rules, len(seeds))


class WithCongestionControl(Decider):
    """Another controller on a host whose connections have this congestion control.

    Args:
        controller: that decides, a trained agent's for instance.
        cc: by name, e.g. `"bbr"`.
    """

    def __init__(self, controller: Controller, cc: str = "bbr"):
        _control("cc", cc, CONGESTION_CONTROLS)
        self.controller, self.cc = controller, cc
        self.name, self.recipes = f"{controller.name}+{cc}", controller.recipes

    @property
    def env(self) -> dict[str, Any]:
        """As the controller has it."""
        return self.controller.env

    def playing(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """As the controller has it."""
        return self.controller.playing(env)

    def beside(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """As the controller has it."""
        return self.controller.beside(env)

    def place(self, scenario: Scenario) -> Scenario:
        """The world as the controller has it, with this congestion control of what the agents' hosts send."""
        return with_congestion_control(self.controller.place(scenario), agent_hosts(scenario), self.cc)

    def start(self, rules: HostBuffers, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`; ConfigError where the controller decides nothing."""
        policy = self.controller.start(rules, seeds)
        if policy is None:
            raise ConfigError(f"{self.controller.name} acts in the world and decides nothing; valid: one that decides")
        return policy


class Bpftune(Decider):
    """bpftune's rule for TCP buffers, once an interval, from the settings on that it begins with.

    A maximum grows by a quarter when the buffers in use come within a quarter of it; without connections none is in use. It
    stops growing for good where the correlation of buffer size and smoothed round-trip time, over at least ten intervals,
    passes a threshold: then a larger buffer only adds delay. Size and round trip are correlated over all intervals so far.

    Args:
        near: share of the maximum that the buffer must be away from it, above 0 to below 1.
        growth: what is added, as a share, above 0 to 10.
        threshold: of the correlation, 0 to 1.
        samples: least number of intervals that are correlated, 3 to 10000.
        first: the settings that the host begins with, Linux's own unless others are given.
    """

    name = "bpftune"
    recipes = ("direct",)

    def __init__(
        self,
        near: float = 0.25,
        growth: float = 0.25,
        threshold: float = 0.75,
        samples: int = 10,
        first: Settings = NAMED["autotuning"],
    ):
        self.near = real("near", near, 0.001, 0.999)
        self.growth = real("growth", growth, 0.001, 10)
        self.threshold = real("threshold", threshold, 0, 1)
        self.samples = whole("samples", samples, 3, 10_000)
        self.first = first

    def on(self, first: Settings) -> Bpftune:
        """The same rule on a host that begins with other settings."""
        return Bpftune(self.near, self.growth, self.threshold, self.samples, first)

    def place(self, scenario: Scenario) -> Scenario:
        """The same world, with the settings that it begins with."""
        return changed(scenario, agent_hosts(scenario), lambda host: set_to(host, self.first))

    def start(self, rules: HostBuffers, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`."""
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
            used = np.maximum(_use(now, "send_buffer"), _use(now, "receive_buffer"))
            if state is not None:  # of an interval with this maximum
                sizes.append(most.copy())
                delays.append(inflation)
            if len(sizes) >= self.samples:
                stopped |= _correlation(np.array(sizes), np.array(delays)) > self.threshold
            there = (now[:, _COLUMN["connections"]] > 0) | (now[:, _COLUMN["turnover"]] > 0) | (now[:, _COLUMN["busy"]] > 0)
            grows = (used >= 1 - self.near) & there & ~stopped & (state is not None)  # without connections, of none now
            most = np.minimum(np.where(grows, most * (1 + self.growth), most), TCP_RANGE[1])
            actions = np.repeat(start[None], rows, axis=0)
            actions[:, 3] = 2 * np.log(most / TCP_RANGE[0]) / np.log(TCP_RANGE[1] / TCP_RANGE[0]) - 1
            return actions, (most, stopped)

        return policy


def _use(now: np.ndarray, name: str) -> np.ndarray:
    """A connection's buffer over the maximum, mean, as its feature tells."""
    feature = DEFAULT_FEATURES[_COLUMN[name]]
    return feature.low * (feature.high / feature.low) ** now[:, _COLUMN[name]]


def _correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Pearson's, of each row over the samples, (samples, rows) each; 0 where one of them does not vary."""
    da, db = a - a.mean(axis=0), b - b.mean(axis=0)
    size = np.sqrt((da**2).sum(axis=0) * (db**2).sum(axis=0))
    return np.where(size > 0, (da * db).sum(axis=0) / np.where(size > 0, size, 1), 0.0)


def make(name: str) -> Controller:
    """The controller of a name: settings as people recommend them, those with BBR, or a congestion control beside `default`."""
    if name in NAMED:
        return Setting(name)
    settings, plus, cc = name.rpartition("+")
    return Setting(settings, name, cc) if plus else Setting("default", name, name)


def names() -> tuple[str, ...]:
    """The settings, these with BBR, and the congestion controls with `default`'s settings."""
    return (*NAMED, *_CONTROLS, *(f"{name}+bbr" for name in NAMED if name != "default"))


_CONTROLS = ("bbr", "cubic", "newreno", "vegas")


def numbered(numbers: str) -> Setting:
    """The setting of `RING:TCP:SOCKET`: packets of the ring, TCP maxima and cap of explicit socket buffers in bytes.

    Raises:
        ConfigError: not three numbers, or one out of range.
    """
    given = numbers.split(":")
    if len(given) != 3 or not all(one.isascii() and one.isdigit() and len(one) < 10 for one in given):
        valid = "setting:RING:TCP:SOCKET, packets and bytes, e.g. setting:256:6291456:212992"
        raise ConfigError(f"controller = {shown(f'setting:{numbers}')}; valid: {valid}")
    bounds = zip(("ring", "tcp", "socket"), given, (RING_RANGE, TCP_RANGE, SOCKET_RANGE), strict=True)
    sizes = [whole(f"{key} of setting:{numbers}", int(one), int(low), int(high)) for key, one, (low, high) in bounds]
    return Setting(constant_settings(*sizes), f"setting:{numbers}")


CONTROLLERS = Named(names, make, {"keep": Keep, "bpftune": Bpftune, "random": RandomAction}, {"setting": numbered}, own=decider)
"""Settings and congestion controls by name, what decides as agents do, and `setting:RING:TCP:SOCKET` (`numbered`)."""
