"""The protocol of controllers, below tasks, which add controllers of their own; `netbuf_gym.evaluation.rollout` runs them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import gymnasium as gym
import numpy as np

from netbuf_gym.controllers import code_references
from netbuf_gym.errors import ConfigError
from netbuf_gym.scenarios import Scenario
from netbuf_gym.utils import parameters
from netbuf_gym.utils.moved import find_renamed
from netbuf_gym.utils.parameters import TunableParameter

Policy = Callable[[np.ndarray, Any, np.ndarray], tuple[np.ndarray, Any]]
"""`(observations, state, starts) -> (actions, state)`: one decision for every row.

observations: float32 `(rows, *observation_space.shape)`, a row being one agent, world by world. state: None at the first call
and then the one that the last call returned. starts: bool `(rows,)`, True where an episode has just begun. actions: `(rows,
*action_space.shape)`, in the type of the action space.
"""

SHARED_ARGUMENTS = ("interval_s", "agents", "plant")
"""Arguments of environments that mean the same in every recipe."""


class Rules(Protocol):
    """The properties of an environment's rules (`netbuf_gym.tasks.Task`) that controllers may use."""

    @property
    def name(self) -> str: ...

    @property
    def recipe(self) -> str: ...

    @property
    def agents(self) -> int: ...

    @property
    def action_space(self) -> gym.Space: ...

    @property
    def observation_space(self) -> gym.Space: ...


RulesT = TypeVar("RulesT", bound=Rules, contravariant=True)
"""Rules that a controller can play by: those of any task, or those of one (`Decider[QueueThreshold]`)."""


class Controller(ABC, Generic[RulesT]):
    """Base class of controllers: they decide in the agents' place, or act in the world instead of them.

    Attributes:
        name: Name in tables.
        recipes: Recipes whose observations and actions the controller supports; None: every recipe.
        own_code: The word that names the controller if it is user code, which runs in a separate process; None: it is not.
    """

    name: str
    recipes: tuple[str, ...] | None = None
    own_code: str | None = None

    @property
    def parameters(self) -> tuple[TunableParameter, ...]:
        """Parameters that the controller's name may set (`NAME:KEY=VALUE`) and a search tries, with the values in force."""
        if isinstance(self, parameters.Tunable):
            return tuple(replace(one, default=getattr(self, one.name)) for one in self.tunable)
        return ()

    def with_parameters(self, values: Mapping[str, Any]) -> Controller[RulesT]:
        """Return the same controller with other values of some of its `parameters`.

        Raises:
            ConfigError: A value out of range, or values that do not go together.
        """
        if isinstance(self, parameters.Tunable):
            return type(self)(**(self.get_parameters() | dict(values)))
        if values:
            raise ConfigError(f"{self.name} has no parameters, got {', '.join(values)}")
        return self

    @property
    def env(self) -> dict[str, Any]:
        """The controller's default arguments of the environment."""
        return {} if self.recipes is None else {"recipe": self.recipes[0]}

    def merge_arguments(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """Return the environment's arguments when `env` is requested: the controller's own, overridden by `env`."""
        return {**self.env, **env}

    def match_arguments(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """Return the environment's arguments when the controller is compared with one that uses `env`.

        A controller that does not support the recipe uses its own, at the same intervals and on the same plant.
        """
        if self.recipes is None or env.get("recipe", self.recipes[0]) in self.recipes:
            return self.merge_arguments(env)
        return {key: env[key] for key in SHARED_ARGUMENTS if key in env} | self.env

    def place(self, scenario: Any) -> Any:
        """Return the world that the controller plays in, made from one with agents in it; by default the same world.

        Raises:
            ConfigError, ScenarioError: The controller does not fit the world.
        """
        return scenario

    @abstractmethod
    def start(self, rules: RulesT, seeds: Sequence[int]) -> Policy | None:
        """Return the policy for worlds that are about to begin; None for a controller that acts in the world (`InWorld`).

        Args:
            rules: Rules of their environment.
            seeds: Seeds of the episodes, one for each world.

        Raises:
            ConfigError: The controller does not support the recipe, or does not fit the action space.
            CheckpointError: A trained model was trained by other rules.
        """


class Decider(Controller[RulesT]):
    """A controller that decides in the agents' place."""

    @abstractmethod
    def start(self, rules: RulesT, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`."""

    def _require_recipe(self, rules: Rules) -> None:
        if self.recipes is not None and rules.recipe not in self.recipes:
            valid = ", ".join(map(repr, self.recipes))
            raise ConfigError(f"{self.name} does not support recipe {rules.recipe!r}; valid: {valid}")


class ControllerWrapper(Controller[RulesT]):
    """Base class of controllers around another one, whose arguments, recipes and worlds are theirs."""

    def __init__(self, controller: Controller):
        self.controller, self.name, self.recipes = controller, controller.name, controller.recipes

    @property
    def env(self) -> dict[str, Any]:
        return self.controller.env

    def merge_arguments(self, env: Mapping[str, Any]) -> dict[str, Any]:
        return self.controller.merge_arguments(env)

    def match_arguments(self, env: Mapping[str, Any]) -> dict[str, Any]:
        return self.controller.match_arguments(env)

    def place(self, scenario: Any) -> Any:
        return self.controller.place(scenario)


class InWorld(Controller[Rules]):
    """A controller that is part of the world, and acts on every packet or ACK without being queried.

    Its reports are made by the same functions, from the same counters, as those of the agents' plant.
    """

    def match_arguments(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """See `Controller.match_arguments`: only the number of agents to replace, the measurement interval, and the plant."""
        return {key: env[key] for key in SHARED_ARGUMENTS if key in env}

    def start(self, rules: Rules, seeds: Sequence[int]) -> None:
        return None

    @abstractmethod
    def place(self, scenario: Scenario) -> Scenario:
        """See `Controller.place`: returns the scenario with this controller in place of each agent."""

    def make_follower(self, scenario: Scenario, seed: int, interval_s: float) -> Decider | None:
        """Play a world, and return a decider that repeats this controller's behaviour in the agents' place; None: no agent can.

        Args:
            scenario: The world with agents in it.
            seed: Seed of the world.
            interval_s: Time between decisions.
        """
        return None

    @abstractmethod
    def report(self, scenario: Scenario, world: Any) -> list[dict[str, Any]]:
        """Return the reports that agents in the controller's place would get at the end, one for each.

        Args:
            scenario: The world with agents in it, as it was before `place`.
            world: The simulated world (`netbuf_gym.plants.simulator.Simulator`), as far as it has run.
        """

    def make_sampler(self, scenario: Scenario, world: Any) -> Callable[[], None] | None:
        """Return a function to call after each interval of a world, if reports need more than final counters; None: no calls.

        Takes the arguments of `report`, before the world runs.
        """
        return None

    @abstractmethod
    def make_watcher(self, scenario: Scenario, world: Any) -> Callable[[], dict[str, float]]:
        """Return a function, to call after each interval, that shows the first agent's place; arguments as for `report`.

        It returns the values that the task shows of agents (`Task.show`), by the same names; unknown ones may be left out.
        """


class Named(Mapping[str, Callable[[], Controller]]):
    """Controllers by name: those of a catalogue, looked up at each access, and others.

    A controller with `parameters` is also known by its name with settings, `brief_pulse:every_ms=300:bursts=0.6`, which is then
    its name in tables.

    Args:
        catalogue: Returns the names in the catalogue; `make` makes the controller of one.
        make: Makes the controller of a name in the catalogue.
        others: Makers by name.
        numbered: Makers by the name before a colon, as in `limits:20`: they are given the text after the colon, and raise
            ConfigError where that is invalid. Such names are known and not listed.
        own: Makes the controller of a word that names user code; None: such words are unknown.
    """

    def __init__(
        self,
        catalogue: Callable[[], Iterable[str]],
        make: Callable[[str], Controller],
        others: Mapping[str, Callable[[], Controller]],
        numbered: Mapping[str, Callable[[str], Controller]] | None = None,
        own: Callable[[str], Controller] | None = None,
    ):
        self._catalogue, self._make, self._others, self._numbered = catalogue, make, others, numbered or {}
        self._own = own

    def __getitem__(self, name: str) -> Callable[[], Controller]:
        if name in self._others:
            return self._others[name]
        if name in self._catalogue():
            return lambda: self._make(name)
        kind, colon, numbers = name.partition(":")
        if colon and kind in self._numbered:
            return lambda: self._numbered[kind](numbers)
        if colon and (make := self._others.get(kind) or (kind in self._catalogue() and partial(self._make, kind))):
            if make().parameters:
                return partial(_make_with_settings, make, kind, numbers)
        if self._own is not None and (code_references.is_compiled(name) or code_references.is_python(name)):
            return partial(_make_user_controller, self._own, name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._catalogue(), *self._others)))

    def __len__(self) -> int:
        return len(list(iter(self)))


def _make_with_settings(make: Callable[[], Controller], name: str, settings: str) -> Controller:
    """Make a controller with settings; raise ConfigError for invalid ones."""
    plain = make()
    made = plain.with_parameters(parameters.read_settings(name, settings, plain.parameters))
    made.name = f"{name}:{settings}"
    return made


def _make_user_controller(make: Callable[[str], Controller], word: str) -> Controller:
    controller = make(word)
    controller.own_code = word
    return controller


def __getattr__(name: str) -> Any:
    """Find what has another name now."""
    return find_renamed(__name__, name)
