"""What every task brings: spaces, rewards, and the rules between a plant's telemetry, observation and action.

The engine (`netbuf_gym.engine.Engine`) runs any of them; nothing there knows what is being controlled. Arrays are batch
first, a row being one agent: a sender, or a switch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from netbuf_gym.arguments import choice, whole
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.plants.sim import SimPlant
from netbuf_gym.plants.telemetry import TelemetrySchema
from netbuf_gym.scenarios import Scenario

MAX_AGENTS = 1024


@dataclass(frozen=True)
class Feature:
    """One component of an observation: its name, the raw range that is mapped onto the space, and its meaning."""

    name: str
    low: float
    high: float
    meaning: str


@dataclass(frozen=True)
class Panel:
    """A strip chart of a picture: an entry of `Task.show`, what is written above it, its colour.

    Likewise `limit_key`, `limit_label` and `limit_color` of what is drawn behind it on the same scale, where it is given.
    """

    key: str
    label: str
    color: tuple[int, int, int]
    limit_key: str | None = None
    limit_label: str = ""
    limit_color: tuple[int, int, int] = (200, 200, 200)


class Task(ABC):
    """One recipe of a task.

    Args:
        recipe: one of `recipes`.
        history: feature vectors stacked into one observation, oldest first, 1 to 64; None: the recipe's default.
        agents: controlled senders or switches in each world.

    Attributes:
        name, recipes, default_history, default_scenario: of the task.
        options: further arguments that its environments take.
        rewards: the rewards that it knows, by name; `default_reward` is the recipe's.
        panels: what pictures of an episode show.
        telemetry: the schema of what its plant measures.
        features: the components of one feature vector, `width` of them.
        action_space, observation_space: of a single agent.
        fixed_steps: whether decisions come at fixed times, so that an episode's number of them is known beforehand.
    """

    name: ClassVar[str]
    recipes: ClassVar[tuple[str, ...]]
    default_history: ClassVar[dict[str, int]]
    default_scenario: ClassVar[str]
    options: ClassVar[tuple[str, ...]] = ()
    rewards: ClassVar[dict[str, type]]

    panels: tuple[Panel, ...]
    telemetry: TelemetrySchema
    features: tuple[Feature, ...]
    default_reward: str
    action_space: gym.Space
    observation_space: gym.spaces.Box
    fixed_steps: bool = True

    def __init__(self, recipe: str = "default", history: int | None = None, agents: int = 1):
        self.recipe = choice("recipe", recipe, self.recipes)
        self.history = self.default_history[recipe] if history is None else whole("history", history, 1, 64)
        self.agents = whole("senders", agents, 1, MAX_AGENTS)

    @property
    def width(self) -> int:
        """Length of a feature vector."""
        return len(self.features)

    @classmethod
    def fitted(cls, world: Scenario) -> dict[str, Any]:
        """Arguments that the world decides and no user, from one scenario that is to be played."""
        return {}

    @abstractmethod
    def control(self, scenario: Scenario) -> Scenario:
        """The same world with as many agents in it as `agents`.

        Raises:
            ConfigError: the world has no place for them.
        """

    @abstractmethod
    def make_plant(self, worlds: int, threads: int) -> SimPlant:
        """What is being controlled, many worlds at a time."""

    @abstractmethod
    def make_tracker(self, rows: int, interval_s: float) -> Any:
        """What is remembered of telemetry: `update(telemetry)`, `now` and `last` of shape (fields, rows), `rows`."""

    @abstractmethod
    def start(self, tracker: Any, rows: slice, scenario: Scenario) -> None:
        """Makes a tracker's rows those of a world that starts anew."""

    def advance(self, plant: SimPlant, interval_ns: int, end_ns: np.ndarray) -> None:
        """Runs every world to its next decision; `end_ns`, `(worlds,)`, is when their scenarios end."""
        plant.advance(interval_ns)

    @abstractmethod
    def decode(self, action: np.ndarray, tracker: Any, out: np.ndarray) -> np.ndarray:
        """The plant's control for checked actions, (rows, ...), into `out`."""

    @abstractmethod
    def observe(self, tracker: Any, out: np.ndarray) -> np.ndarray:
        """The feature vectors of the interval just ended, `(width, rows)`, into `out`: finite and within the space."""

    @abstractmethod
    def show(self, tracker: Any, row: int) -> dict[str, float]:
        """One agent's state for pictures and time series, by name."""

    @abstractmethod
    def line(self, state: dict[str, float]) -> str:
        """What `show` gave, and `time_s`, as a line of text."""

    def check_actions(self, action: Any, rows: int) -> np.ndarray:
        """`action` as an array of shape `(rows, ...)`: of a discrete space integers `(rows,)`.

        Raises:
            ConfigError: wrong shape or type, NaN, or not in the discrete space.
        """
        array = action_array(action)
        if array.shape != (rows,):
            raise ConfigError(f"actions have shape {array.shape}; valid: ({rows},), one action for each agent")
        if array.dtype.kind not in "iu":
            raise ConfigError(f"actions have type {array.dtype} ({shown(array.ravel()[0])}); valid: integers")
        count = int(self.action_space.n)
        if array.min() < 0 or array.max() >= count:
            wrong = array[(array < 0) | (array >= count)][0]
            raise ConfigError(f"action = {shown(wrong)} is out of range; valid: 0 to {count - 1}")
        return array

    def single_action(self, action: Any) -> np.ndarray:
        """One agent's action as a batch of one.

        Raises:
            ConfigError: not of the space's shape.
        """
        array, valid = action_array(action), self.action_space.shape
        if array.shape != valid:
            what = "a number for each queue" if valid else "a single integer"
            raise ConfigError(f"action has shape {array.shape}; valid: {valid}, {what}")
        return array[None]

    def to_dict(self) -> dict[str, Any]:
        """What a saved model must agree with: recipe, features with their ranges, history."""
        return {
            "task": self.name,
            "recipe": self.recipe,
            "history": self.history,
            "features": [asdict(feature) for feature in self.features],
        }


def action_array(action: Any) -> np.ndarray:
    """An array of whatever an agent decided; ConfigError for ragged nests."""
    try:
        return np.asarray(action)
    except ValueError as error:
        raise ConfigError(f"actions are no array: {error}") from None
