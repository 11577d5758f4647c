"""The protocol of controllers, below tasks, which bring controllers of their own; `netbuf_gym.evaluation.rollout` runs them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from netbuf_gym.controllers import code_references
from netbuf_gym.errors import ConfigError
from netbuf_gym.scenarios import Scenario

Policy = Callable[[np.ndarray, Any, np.ndarray], tuple[np.ndarray, Any]]
"""`(observations, state, starts) -> (actions, state)`: one decision of every row.

observations float32 `(rows, *observation_space.shape)`, a row being one agent, world by world; state None at the first call
and then what the last one returned; starts bool `(rows,)`, whose episode has just begun; actions `(rows,
*action_space.shape)`, in the type of the action space.
"""

SHARED = ("interval_s", "agents", "plant")
"""Arguments of environments that mean the same in every recipe."""


class Rules(Protocol):
    """What a controller may ask of the rules of an environment (`netbuf_gym.tasks.Task`)."""

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


class Controller(ABC):
    """Something that can play an episode: it decides in the agents' place, or it acts in the world instead of them.

    Attributes:
        name: how tables call it.
        recipes: those whose observations and actions it speaks, None: every one.
        own_code: the word that names it where it is code of the user's, which is played in a process beside; None: it is not.
    """

    name: str
    recipes: tuple[str, ...] | None = None
    own_code: str | None = None

    @property
    def env(self) -> dict[str, Any]:
        """The arguments of the environment that it plays by, unless others are asked for."""
        return {} if self.recipes is None else {"recipe": self.recipes[0]}

    def playing(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that it plays by where these are asked for: its own are those that are not given."""
        return {**self.env, **env}

    def beside(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that it plays by where it is compared with what plays by `env`.

        One that does not speak the recipe plays its own, at the same intervals and on the same plant.
        """
        if self.recipes is None or env.get("recipe", self.recipes[0]) in self.recipes:
            return self.playing(env)
        return {key: env[key] for key in SHARED if key in env} | self.env

    def place(self, scenario: Any) -> Any:
        """The world that it plays in, made from one with agents in it: that one, unless it changes the world.

        Raises:
            ConfigError, ScenarioError: it has no place there.
        """
        return scenario

    @abstractmethod
    def start(self, rules: Rules, seeds: Sequence[int]) -> Policy | None:
        """What decides in worlds that are about to begin; None: it acts in the world (`InWorld`) and decides nothing.

        Args:
            rules: of their environment.
            seeds: of the episodes, one for each world.

        Raises:
            ConfigError: it does not speak the recipe, or does not fit the action space.
            CheckpointError: a trained model that was trained by other rules.
        """


class Decider(Controller):
    """A controller that decides in the agents' place."""

    @abstractmethod
    def start(self, rules: Rules, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`."""

    def _require_recipe(self, rules: Rules) -> None:
        if self.recipes is not None and rules.recipe not in self.recipes:
            valid = ", ".join(map(repr, self.recipes))
            raise ConfigError(f"{self.name} does not speak recipe {rules.recipe!r}; valid: {valid}")


class InWorld(Controller):
    """A controller that is part of the world, and acts on every packet or ACK without being asked.

    It says what its world has achieved, by the same functions and counters as the agents' plant.
    """

    def beside(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """See `Controller.beside`: how many agents it replaces, how often it is looked at, and on which plant."""
        return {key: env[key] for key in SHARED if key in env}

    def start(self, rules: Rules, seeds: Sequence[int]) -> None:
        """See `Controller.start`."""
        return None

    @abstractmethod
    def place(self, scenario: Scenario) -> Scenario:
        """See `Controller.place`: the scenario with this controller wherever an agent was."""

    def followed(self, scenario: Scenario, seed: int, interval_s: float) -> Decider | None:
        """Who decides in the agents' place what this does in a world, which it plays for that; None: no agent can.

        Args:
            scenario: the world with agents in it.
            seed: of the world.
            interval_s: between decisions.
        """
        return None

    @abstractmethod
    def report(self, scenario: Scenario, world: Any) -> list[dict[str, Any]]:
        """What agents in its place would be told at the end, one report for each.

        Args:
            scenario: the world with agents in it, as it was before `place`.
            world: the simulated world (`netbuf_gym.plants.simulator.Simulator`), as far as it has run.
        """

    def sampler(self, scenario: Scenario, world: Any) -> Callable[[], None] | None:
        """What is called after each interval of a world, where reports need more than counters at the end; None: nothing.

        Arguments as for `report`, before the world runs.
        """
        return None

    @abstractmethod
    def watcher(self, scenario: Scenario, world: Any) -> Callable[[], dict[str, float]]:
        """A function that shows the first agent's place, called after each interval; arguments as for `report`.

        It gives what the task shows of agents (`Task.show`), by the same names; what cannot be known may be left out.
        """


class Named(Mapping[str, Callable[[], Controller]]):
    """Controllers by name: all of a catalogue, as it is when it is asked, and others.

    Args:
        catalogue: the names that there are; `make` makes the controller of one.
        others: makers by name.
        numbered: makers of what has numbers or settings after its name and a colon, `limits:20`, by that name: they are given
            what stands after the colon, and raise ConfigError where it says nothing. Such names are known and not listed.
        own: what makes one of a word that names code of the user's; None: such words are not known.
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
        if self._own is not None and (code_references.is_compiled(name) or code_references.is_python(name)):
            return partial(_of_word, self._own, name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._catalogue(), *self._others)))

    def __len__(self) -> int:
        return len(list(iter(self)))


def _of_word(make: Callable[[str], Controller], word: str) -> Controller:
    controller = make(word)
    controller.own_code = word
    return controller
