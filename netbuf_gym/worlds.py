"""What the scenario arguments of environments mean: a source of worlds, one for each episode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from netbuf_gym import scenarios
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.scenarios import Distribution, Scenario


def resolve(spec: Any, agents: int = 1) -> Any:
    """The world, or distribution over worlds, that a `scenario` argument stands for.

    Args:
        spec: a name for `scenarios.get`; a dict of `name` and arguments for it; or a dict from `Scenario.to_dict`.
        agents: in each world. A named scenario that takes a number `n` of those that agents may be gets this many, unless the
            spec says otherwise; what further ones do is the scenario's.

    Returns:
        A `Scenario`, a `Distribution`, or what else was registered under the name.

    Raises:
        ConfigError: the spec is of no such form.
        ScenarioError: an unknown name, or a field out of range.
    """
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
    if agents > 1 and scenarios.takes_number(spec["name"], arguments):
        arguments["n"] = agents
    return scenarios.get(spec["name"], **arguments)


def example(world: Any) -> Any:
    """The scenario, or one that the distribution draws."""
    return world.sample(np.random.default_rng(0)) if isinstance(world, Distribution) else world


class WorldSource:
    """Draws the scenario of each episode, with agents in their places.

    Args:
        world: a scenario, or a distribution over them.
        control: puts the agents into a scenario (`Task.control`).

    Raises:
        ConfigError: the scenario has no place for the agents.
    """

    def __init__(self, world: Any, control: Callable[[Any], Any]):
        self.world = world
        self._control = control
        self._fixed = None if isinstance(world, Distribution) else control(world)

    def draw(self, rng: np.random.Generator) -> Any:
        """The scenario of the next episode; a fixed one is the same object each time."""
        return self._fixed if self._fixed is not None else self._control(self.world.sample(rng))

    @property
    def duration_s(self) -> float | None:
        """The length of every episode in seconds, or None when it varies or is not known beforehand."""
        if self._fixed is not None:
            return self._fixed.duration_s
        return getattr(self.world, "duration_s", None)
