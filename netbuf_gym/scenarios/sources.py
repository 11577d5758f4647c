"""What the scenario arguments of environments mean: a source of worlds, one for each episode."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Union

import numpy as np

from netbuf_gym import scenarios
from netbuf_gym.errors import ConfigError, ScenarioTypeError, shown
from netbuf_gym.scenarios import Distribution, Scenario

ScenarioLike = Union[str, Mapping[str, Any], Scenario, Distribution, Callable[[np.random.Generator], Any]]  # noqa: UP007
"""What a `scenario` argument may be."""

VALID = "a name, a dict of name and arguments, Scenario.to_dict(), a Scenario, a Distribution, or a function (rng) -> Scenario"


class Drawn(Distribution):
    """Worlds that a function makes, one for each episode.

    Args:
        make: `(rng) -> world`, a numpy Generator in, which is to decide all that is random in it; out comes a `Scenario`, or
            what stands for one: a name, a dict, or a distribution, which is drawn from.
        agents: in each world, see `resolve`.
    """

    def __init__(self, make: Callable[[np.random.Generator], Any], agents: int = 1):
        self.name = getattr(make, "__name__", type(make).__name__)
        try:
            inspect.signature(make).bind(None)
        except TypeError:
            what = f"scenario = {shown(make)} cannot be called with a generator alone"
            raise ConfigError(f"{what}; valid: (rng) -> Scenario") from None
        except ValueError:  # built in, without a signature
            pass
        self._make, self._agents = make, agents

    @property
    def flows(self) -> int:
        """How many flows a scenario drawn has; that all have as many nobody knows."""
        return len(self.sample(np.random.default_rng(0)).flows)

    def sample(self, rng: np.random.Generator) -> Any:
        """The world of one episode.

        Raises:
            ConfigError: the function gives nothing of the kind.
        """
        made = self._make(rng)
        if callable(made) and not isinstance(made, (Scenario, Distribution)):
            raise ConfigError(f"scenario {self.name} gave {shown(made)}; valid: a Scenario, a dict or a name")
        try:
            world = resolve(made, self._agents)
        except ConfigError as error:
            raise ConfigError(f"what scenario {self.name} gave: {error}") from None
        return world.sample(rng) if isinstance(world, Distribution) else world


def resolve(spec: ScenarioLike, agents: int = 1) -> Any:
    """The world, or distribution over worlds, that a `scenario` argument stands for.

    Args:
        spec: a name for `scenarios.get`; a dict of `name` and arguments for it; a dict from `Scenario.to_dict`; a `Scenario` or
            a `Distribution` itself; or a function `(rng) -> Scenario`, which is called with a numpy Generator at the start of
            each episode (and once more, when an environment is made, for an example), and may give any of the others.
        agents: in each world. A named scenario that takes a number `n` of those that agents may be gets this many, unless the
            spec says otherwise; what further ones do is the scenario's.

    Returns:
        A `Scenario`, a `Distribution`, or what else was registered under the name.

    Raises:
        ConfigError: the spec is of no such form.
        ScenarioError: an unknown name, or a field out of range.
    """
    if isinstance(spec, (Scenario, Distribution)) or _is_world(spec):
        return spec
    if isinstance(spec, str):
        spec = {"name": spec}
    if isinstance(spec, Mapping):
        return _named(dict(spec), agents)
    if callable(spec) and not isinstance(spec, type):
        return Drawn(spec, agents)
    raise ConfigError(f"scenario = {shown(spec)}; valid: {VALID}")


def _is_world(spec: Any) -> bool:
    """Whether it is the world of a plant of another kind (`scenarios.register`)."""
    return hasattr(spec, "duration_s") and isinstance(getattr(spec, "name", None), str) and not callable(spec)


def _named(spec: dict[str, Any], agents: int) -> Any:
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


def world_of(spec: ScenarioLike, seed: int) -> Scenario:
    """The one scenario that a spec stands for, drawn by the seed where it is one of many.

    Raises:
        ScenarioTypeError: it stands for none.
        ScenarioError: an unknown name, or a field out of range.
    """
    try:
        world = resolve(spec)
        world = world.sample(np.random.default_rng(seed)) if isinstance(world, Distribution) else world
    except ConfigError as error:
        raise ScenarioTypeError(f"scenario = {shown(spec)} is not a Scenario, nor stands for one: {error}") from None
    if not isinstance(world, Scenario):
        raise ScenarioTypeError(f"scenario = {shown(spec)} is not a Scenario, but {shown(world)}")
    return world


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
