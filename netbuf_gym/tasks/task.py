"""Base class of tasks: spaces, and the rules between a plant's telemetry, observation and action.

The engine (`netbuf_gym.envs.engine.Engine`) runs any task without knowing what is being controlled. Arrays are batch first: one
row per agent, world by world.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import gymnasium as gym
import numpy as np

from netbuf_gym.errors import ConfigError, describe_scenario, quote
from netbuf_gym.plants.kinds import AgentKind
from netbuf_gym.plants.plant import INTERVAL
from netbuf_gym.plants.telemetry import TelemetrySchema
from netbuf_gym.tasks import actions
from netbuf_gym.tasks.features import Feature, documented, feature_table
from netbuf_gym.tasks.tracking import LastMeasured
from netbuf_gym.utils.arguments import check_choice, check_integer

MAX_AGENTS = 1024
Spans = Sequence[tuple[float, float]]
"""Start and end times in seconds; an end of inf means for ever."""


@dataclass(frozen=True)
class Panel:
    """One chart of a rendered picture: an entry of `Task.show`, its label and its colour.

    `limit_key`, `limit_label` and `limit_color` are the same of a limit drawn behind it on the same scale, if given. `title`
    replaces the label where the font has lower-case letters; "": the label.
    """

    key: str
    label: str
    color: tuple[int, int, int]
    limit_key: str | None = None
    limit_label: str = ""
    limit_color: tuple[int, int, int] = (200, 200, 200)
    title: str = ""


def outage_message(scenario: Any) -> str:
    """Return the message for a world that carries nothing, so that no share of its capacity is defined."""
    return (
        f"{describe_scenario(scenario)} carries nothing in its duration_s = {scenario.duration_s:g}: its trace is an outage"
        " that long; valid: a world that can carry something"
    )


TrackerT = TypeVar("TrackerT", bound=LastMeasured)
"""Tracker of a task: what its rules know of each agent beside the present action."""


class Task(ABC, Generic[TrackerT]):
    """One recipe of a task. In a derived class's docstring `{features of RECIPE}` becomes the table of that recipe's features.

    Args:
        recipe: One of `recipes`.
        history: Feature vectors stacked into one observation, oldest first, 1 to 64; None: the recipe's default.
        agents: Controlled agents in each world.

    Attributes:
        name, recipes, default_history, default_scenario, default_interval_s: Defaults of the task; the interval is the time
            between decisions.
        recipe_features, recipe_rewards: `features` and `default_reward` of each recipe, where they differ.
        widened_recipes: By recipe, another one whose features are its first ones in their order, and whose actions are its own:
            a training of the former may start from the latter's agents.
        options: Further arguments of its environments, passed to the constructor by name.
        discrete: By recipe, arguments that give `Discrete` actions, for learners of action values; recipes with such actions
            by default, or without such a variant, are left out.
        agents_argument: Name that environments use, besides `agents`, for the number of agents in a world.
        hidden: Names of what a world may contain without the agents observing it; `hidden_spans` gives the times. Training
            may make learners predict it.
        privileged: Names of telemetry and quantities that critics may be told in training though no agent observes them, with
            the lower and upper ends of the logarithmic scale of each, above 0.
        kind: Kind of the agents: what plants must measure and accept.
        panels: Panels of an episode's picture; by default the first values of telemetry.
        features: Components of one feature vector, `width` of them.
        default_reward: Default reward of the recipe.
        action_space: Space of a single agent: `Discrete`, `MultiDiscrete`, `MultiBinary` or a `Box`; for others
            `check_actions` must be overridden.
        action_is: Phrase for one agent's action in messages; None: derived from the space.
        until: Event that ends a decision interval, `"interval"` or `"event"` (`Plant.advance`).
    """

    name: ClassVar[str]
    recipes: ClassVar[tuple[str, ...]] = ("default",)
    default_history: ClassVar[Mapping[str, int]] = {"default": 1}
    recipe_features: ClassVar[Mapping[str, tuple[Feature, ...]]] = {}
    recipe_rewards: ClassVar[Mapping[str, str]] = {}
    widened_recipes: ClassVar[Mapping[str, str]] = {}
    default_scenario: ClassVar[str]
    default_interval_s: ClassVar[float] = 0.1
    options: ClassVar[tuple[str, ...]] = ()
    discrete: ClassVar[dict[str, dict[str, Any]]] = {}
    agents_argument: ClassVar[str] = "agents"
    hidden: ClassVar[tuple[str, ...]] = ()
    privileged: ClassVar[tuple[tuple[str, float, float], ...]] = ()

    kind: AgentKind
    features: tuple[Feature, ...]
    default_reward: str
    action_space: gym.Space
    action_is: str | None = None
    until: str = INTERVAL

    def __init__(self, recipe: str = "default", history: int | None = None, agents: int = 1):
        self.recipe = check_choice("recipe", recipe, self.recipes)
        self.history = self.default_history[recipe] if history is None else check_integer("history", history, 1, 64)
        self.agents = check_integer(self.agents_argument, agents, 1, MAX_AGENTS)
        if recipe in self.recipe_features:
            self.features = self.recipe_features[recipe]
        if recipe in self.recipe_rewards:
            self.default_reward = self.recipe_rewards[recipe]

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        documented(cls)

    @cached_property
    def observation_space(self) -> gym.spaces.Box:
        """Space of a single agent's observations: `history` feature vectors, from the least floor of the features to 1."""
        least = min(feature.floor for feature in self.features)
        return gym.spaces.Box(least, 1.0, (self.history * self.width,), np.float32)

    @property
    def width(self) -> int:
        """Length of a feature vector."""
        return len(self.features)

    @property
    def telemetry(self) -> TelemetrySchema:
        """Schema of the measured telemetry."""
        return self.kind.telemetry

    @property
    def fixed_steps(self) -> bool:
        """True if decisions come at fixed intervals, so that an episode's number of them may be known beforehand."""
        return self.until == INTERVAL

    @classmethod
    def feature_tables(cls) -> dict[str, str]:
        """Return a Markdown table of the features of each recipe (`netbuf_gym.tasks.feature_table`), for pages."""
        of_recipes = cls.recipe_features or dict.fromkeys(cls.recipes, getattr(cls, "features", ()))
        return {recipe: feature_table(features) for recipe, features in of_recipes.items() if features}

    @classmethod
    def world_arguments(cls, world: Any) -> dict[str, Any]:
        """Return the arguments that are determined by the world to be played rather than by a user."""
        return {}

    @abstractmethod
    def control(self, scenario: Any) -> Any:
        """Return the scenario with `self.agents` of its places controlled by agents.

        Raises:
            ConfigError: The world has no place for them, or nothing that they could control.
        """

    def choose_agents(self, scenario: Any, found: Sequence[int], places: int, name: str) -> Sequence[int]:
        """Return the indices of the places that agents control in a world: those that are agents' already, or the first ones.

        Args:
            scenario: The world.
            found: Indices of the places that are agents' already.
            places: Number of places in the world.
            name: Plural of the places, for messages.

        Raises:
            ConfigError: Another number of places is agents', or the world has fewer places than agents.
        """
        if len(found) == self.agents:
            return found
        if found or places < self.agents:
            has = f"{describe_scenario(scenario)} has {places} {name}, {len(found)} of them an agent's"
            valid = f"a scenario with as many agents, or with none and at least as many {name}"
            raise ConfigError(f"{has}, and {self.agents_argument} = {self.agents}; valid: {valid}")
        return range(self.agents)

    def make_tracker(self, rows: int, interval_s: float) -> TrackerT:
        """Return a tracker of telemetry."""
        return LastMeasured(self.telemetry, rows)  # type: ignore[return-value]  # the tracker of tasks that have no other

    def start(self, tracker: TrackerT, rows: slice, scenario: Any) -> None:
        """Reset a tracker's rows to those of a world that starts anew."""
        tracker.forget(rows)

    def hidden_spans(self, scenario: Any) -> list[tuple[Spans, ...]]:
        """Return the times at which each of `hidden` is present in a world, for each of its agents."""
        return [() for _ in range(self.agents)]

    @abstractmethod
    def decode(self, action: np.ndarray, tracker: TrackerT, out: np.ndarray) -> np.ndarray:
        """Write the plant's controls for checked actions, (rows, ...), into `out`, float64 `(rows, controls)`; return `out`."""

    @abstractmethod
    def observe(self, tracker: TrackerT, out: np.ndarray) -> np.ndarray:
        """Write the last interval's feature vectors, finite and in the space, into `out`, `(width, rows)`; return `out`."""

    def terminal(self, tracker: TrackerT) -> np.ndarray | None:
        """Return which agents' tasks ended for good with the last interval, bool `(rows,)`, or None if none ever does.

        A world terminates with the first of its agents.
        """
        return None

    def report_input(self, tracker: TrackerT, rows: slice, counters: list[Any]) -> list[Any]:
        """Return the input of `report` for a world: the plant's counters, with what the tracker adds about these rows."""
        return counters

    def report(self, scenario: Any, counters: list[Any]) -> list[dict[str, Any]]:
        """Return the results of each agent of a world since its start, from the plant's counters (see `report_input`).

        The results are dicts of numbers and text, all with the same keys.
        """
        return counters

    def show(self, tracker: TrackerT, row: int) -> dict[str, float]:
        """Return one agent's state for pictures and time series, by name."""
        return dict(zip(self.telemetry.names, tracker.last[:, row].tolist(), strict=True))

    def format_state(self, state: dict[str, float]) -> str:
        """Return a state of `show`, with `time_s`, as a line of text."""
        values = "   ".join(f"{key} {value:10.4g}" for key, value in state.items() if key != "time_s")
        return f"t {state['time_s']:8.2f} s   {values}"

    @property
    def panels(self) -> tuple[Panel, ...]:
        """Panels of pictures: the first three values of telemetry except the time."""
        names = [name for name in self.telemetry.names if name != "elapsed_s"][:3]
        return tuple(Panel(name, name, (31, 119, 180)) for name in names)

    def check_actions(self, action: Any, rows: int) -> np.ndarray:
        """Return `action` as an array of shape `(rows, ...)`: integers, or float64 clipped to the space of a `Box`.

        Raises:
            ConfigError: The shape or type is wrong, or an action is NaN or outside a space of integers.
        """
        array, shape = actions.to_array(action), (rows, *(self.action_space.shape or ()))
        if array.shape != shape:
            raise ConfigError(f"actions have shape {array.shape}; valid: {shape}, for each agent {self._describe_action()}")
        return actions.check_values(array, self.action_space)

    def check_single_action(self, action: Any) -> np.ndarray:
        """Return one agent's action as a batch of one.

        Raises:
            ConfigError: The shape is not that of the space.
        """
        array = actions.to_array(action)
        if array.shape != self.action_space.shape:
            raise ConfigError(f"action has shape {array.shape}; valid: {self.action_space.shape}, {self._describe_action()}")
        return array[None]

    def require_valid_observation(self, found: Any, out: np.ndarray) -> None:
        """Raise ConfigError unless `observe` returned `out` itself, filled with observations of the space."""
        where, shape = f"{type(self).__name__}.observe", f"(features, rows) = {out.shape}"
        if self.observation_space.shape != (self.history * self.width,):
            lasting = f"history x features = {self.history} x {self.width} numbers"
            raise ConfigError(f"{type(self).__name__}.observation_space = {self.observation_space}; valid: {lasting}")
        if found is not out:
            what = f"another array, {found.shape}" if isinstance(found, np.ndarray) else quote(found)
            raise ConfigError(f"{where} gave {what}; valid: the array `out` that it was given, {shape}, filled")
        low, high = (end[: self.width, None] for end in (self.observation_space.low, self.observation_space.high))
        wrong = np.argwhere(~((out >= low) & (out <= high)))
        if len(wrong):
            at, row = wrong[0].tolist()
            valid = f"{low[at, 0]:g} to {high[at, 0]:g}, by the observation space"
            raise ConfigError(f"{where}: feature {self.features[at].name!r} of row {row} is {out[at, row]:g}; valid: {valid}")

    def _describe_action(self) -> str:
        return actions.describe_action(self.action_space) if self.action_is is None else self.action_is

    def to_dict(self) -> dict[str, Any]:
        """Return what a saved model must agree with: recipe, features with their ranges, history, and the action space."""
        return {
            "task": self.name,
            "recipe": self.recipe,
            "history": self.history,
            "features": [feature.to_dict() for feature in self.features],
            "actions": str(self.action_space),
        }
