"""Resolution of the scenario arguments of environments to a source of worlds, one for each episode."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Union

import numpy as np

from netbuf_gym import scenarios
from netbuf_gym.errors import ConfigError, ScenarioTypeError, quote
from netbuf_gym.scenarios import Distribution, Scenario

ScenarioLike = Union[str, Mapping[str, Any], Scenario, Distribution, Callable[[np.random.Generator], Any]]  # noqa: UP007
"""Types of a `scenario` argument."""

VALID = "a name, a dict of name and arguments, Scenario.to_dict(), a Scenario, a Distribution, or a function (rng) -> Scenario"


class SampledScenario(Distribution):
    """Distribution over the worlds that a function returns, one for each episode.

    Args:
        make: `(rng) -> world`, with all randomness from the numpy Generator `rng`; returns a `Scenario`, a name, a dict, or a
            distribution to sample from.
        agents: Number of agents in each world; see `resolve_scenario`.

    Raises:
        ConfigError: A function that cannot be called with a generator alone.
    """

    def __init__(self, make: Callable[[np.random.Generator], Any], agents: int = 1):
        self.name = getattr(make, "__name__", type(make).__name__)
        try:
            inspect.signature(make).bind(None)
        except TypeError:
            what = f"scenario = {quote(make)} cannot be called with a generator alone"
            raise ConfigError(f"{what}; valid: (rng) -> Scenario") from None
        except ValueError:  # built-in function without a signature
            pass
        self._make, self._agents = make, agents

    @property
    def flows(self) -> int:
        """Number of flows of one sampled scenario; other samples may differ."""
        return len(self.sample(np.random.default_rng(0)).flows)

    def sample(self, rng: np.random.Generator) -> Any:
        """Sample the world of one episode.

        Raises:
            ConfigError: The function returned no valid scenario.
        """
        made = self._make(rng)
        if callable(made) and not isinstance(made, (Scenario, Distribution)):
            raise ConfigError(f"scenario {self.name} gave {quote(made)}; valid: a Scenario, a dict or a name")
        try:
            world = resolve_scenario(made, self._agents)
        except ConfigError as error:
            raise ConfigError(f"what scenario {self.name} gave: {error}") from None
        return world.sample(rng) if isinstance(world, Distribution) else world


def resolve_scenario(spec: ScenarioLike, agents: int = 1) -> Any:
    """Resolve a `scenario` argument to a world or a distribution over worlds.

    Args:
        spec: A name for `scenarios.get`; a dict of `name` and arguments for `get`; a dict from `Scenario.to_dict`; a `Scenario`
            or a `Distribution`; or a function `(rng) -> Scenario`, which is called with a numpy Generator at the start of each
            episode (and once more when an environment is made, for an example), and may return any of the other forms.
        agents: Number of agents in each world. A named scenario with an argument `n` gets `n=agents`, unless `spec` sets `n` or
            `senders`.

    Returns:
        A `Scenario`, a `Distribution`, or another object registered under the name.

    Raises:
        ConfigError: A spec of another form.
        ScenarioError: An unknown name, or a field out of range.
    """
    if isinstance(spec, (Scenario, Distribution)) or _is_foreign_world(spec):
        return spec
    if isinstance(spec, str):
        spec = {"name": spec}
    if isinstance(spec, Mapping):
        return _resolve_mapping(dict(spec), agents)
    if callable(spec) and not isinstance(spec, type):
        return SampledScenario(spec, agents)
    raise ConfigError(f"scenario = {quote(spec)}; valid: {VALID}")


def _is_foreign_world(spec: Any) -> bool:
    """Return whether `spec` is a world for a plant of another kind (`scenarios.register`)."""
    return hasattr(spec, "duration_s") and isinstance(getattr(spec, "name", None), str) and not callable(spec)


def _resolve_mapping(spec: dict[str, Any], agents: int) -> Any:
    if "links" in spec:
        return Scenario.from_dict(spec)
    if "name" not in spec:
        valid = ", ".join(scenarios.names())
        raise ConfigError(f"scenario = {quote(spec)} has neither a name nor links; valid names: {valid}")
    arguments = {key: value for key, value in spec.items() if key != "name"}
    if agents > 1 and scenarios.takes_number(spec["name"], arguments):
        arguments["n"] = agents
    return scenarios.get(spec["name"], **arguments)


def sample_example(world: Any) -> Any:
    """Return the scenario, or a sample of the distribution."""
    return world.sample(np.random.default_rng(0)) if isinstance(world, Distribution) else world


def resolve_world(spec: ScenarioLike, seed: int) -> Scenario:
    """Resolve a spec to one scenario, sampled with the seed if the spec is a distribution.

    Raises:
        ScenarioTypeError: A spec that gives no `Scenario`.
        ScenarioError: An unknown name, or a field out of range.
    """
    try:
        world = resolve_scenario(spec)
        world = world.sample(np.random.default_rng(seed)) if isinstance(world, Distribution) else world
    except ConfigError as error:
        raise ScenarioTypeError(f"scenario = {quote(spec)} is not a Scenario, nor stands for one: {error}") from None
    if not isinstance(world, Scenario):
        raise ScenarioTypeError(f"scenario = {quote(spec)} is not a Scenario, but {quote(world)}")
    return world


class WorldSource:
    """Source of each episode's scenario, with the agents put into it.

    Args:
        world: A scenario, or a distribution over scenarios.
        control: Function that puts the agents into a scenario (`Task.control`).

    Raises:
        ConfigError: A scenario without a place for the agents.
    """

    def __init__(self, world: Any, control: Callable[[Any], Any]):
        self.world = world
        self._control = control
        self._fixed = None if isinstance(world, Distribution) else control(world)

    def draw(self, rng: np.random.Generator) -> Any:
        """Return the scenario of the next episode; a fixed one is the same object each time."""
        return self._fixed if self._fixed is not None else self._control(self.world.sample(rng))

    @property
    def duration_s(self) -> float | None:
        """Length of every episode in seconds; None if it varies or is not known beforehand."""
        if self._fixed is not None:
            return self._fixed.duration_s
        return getattr(self.world, "duration_s", None)
