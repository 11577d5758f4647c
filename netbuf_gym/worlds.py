"""What the scenario arguments of environments mean: a source of worlds, one for each episode."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netbuf_gym import scenarios
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.scenarios import Distribution, Scenario

UNLIMITED_BUFFER_PACKETS = 150_000
"""What an unlimited queue counts as where a window must have an upper bound: the deepest buffer of TCP-PPCC."""


class WorldSource:
    """Draws the scenario of each episode, with its first `agents` flows controlled by agents.

    Args:
        spec: a name for `scenarios.get`; a dict of `name` and arguments for it; or a dict from `Scenario.to_dict`.
        agents: controlled flows in each world. A named scenario that takes a number of flows gets this many, unless the
            spec says otherwise; further flows keep their congestion control and are competing traffic. A scenario that
            has this many agent flows already is used as it is.

    Raises:
        ConfigError: the spec is of no such form, or the scenario has too few flows or no link of finite rate.
        ScenarioError: an unknown name, or a field out of range.
    """

    def __init__(self, spec: str | dict[str, Any], agents: int):
        self.agents = agents
        self.world = self._resolve(spec)
        self._fixed = self._controlled(self.world) if isinstance(self.world, Scenario) else None

    def _resolve(self, spec: Any) -> Scenario | Distribution:
        if isinstance(spec, (Scenario, Distribution)):
            raise ConfigError("scenario is an object; valid: a name, a dict of name and arguments, or Scenario.to_dict()")
        if isinstance(spec, str):
            spec = {"name": spec}
        if not isinstance(spec, dict):
            raise ConfigError(f"scenario = {shown(spec)}; valid: a name, a dict of name and arguments, or Scenario.to_dict()")
        if "links" in spec:
            return Scenario.from_dict(spec)
        if "name" not in spec:
            valid = ", ".join(scenarios.names())
            raise ConfigError(f"scenario = {shown(spec)} has neither a name nor links; valid names: {valid}")
        arguments = {key: value for key, value in spec.items() if key != "name"}
        counted = "n" in scenarios.parameters_of(spec["name"]) and not {"n", "senders"} & arguments.keys()
        if self.agents > 1 and counted:
            arguments["n"] = self.agents
        return scenarios.get(spec["name"], **arguments)

    def _controlled(self, scenario: Scenario) -> Scenario:
        if scenario.agents != self.agents:
            if scenario.agents or len(scenario.flows) < self.agents:
                raise ConfigError(
                    f"senders = {self.agents}, but scenario {scenario.name!r} has {len(scenario.flows)} flows, "
                    f"{scenario.agents} of them agents; valid: as many as its agents, or at most its flows if none is"
                )
            scenario = scenario.with_agents(self.agents)
        if not math.isfinite(scenario.capacity_mbps):
            raise ConfigError(f"scenario {scenario.name!r} has no link of finite rate, so that there is nothing to control")
        return scenario

    def draw(self, rng: np.random.Generator) -> Scenario:
        """The scenario of the next episode; a fixed one is the same object each time."""
        return self._fixed if self._fixed is not None else self._controlled(self.world.sample(rng))

    @property
    def duration_s(self) -> float | None:
        """The length of every episode in seconds, or None when it varies or is not known beforehand."""
        if self._fixed is not None:
            return self._fixed.duration_s
        return getattr(self.world, "duration_s", None)


def highest_window_packets(scenario: Scenario) -> float:
    """The clamp of an agent's window: twice what path and buffer hold."""
    link = scenario.links[scenario.bottleneck]
    limits = [UNLIMITED_BUFFER_PACKETS]
    if link.queue_packets is not None:
        limits.append(link.queue_packets)
    if link.queue_bytes is not None:
        limits.append(link.queue_bytes / scenarios.types.DATA_BYTES[scenario.stack])
    return 2 * (scenario.bdp_packets + min(limits))
