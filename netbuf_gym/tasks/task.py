"""What every task brings: spaces, and the rules between a plant's telemetry, observation and action.

The engine (`netbuf_gym.envs.engine.Engine`) runs any of them; nothing there knows what is being controlled. Arrays are batch
first, a row being one agent, world by world.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from netbuf_gym.errors import ConfigError, called, shown
from netbuf_gym.plants.kinds import AgentKind
from netbuf_gym.plants.plant import INTERVAL
from netbuf_gym.plants.telemetry import TelemetrySchema
from netbuf_gym.tasks import actions
from netbuf_gym.tasks.tracking import LastMeasured
from netbuf_gym.utils.arguments import choice, whole

MAX_AGENTS = 1024
Spans = Sequence[tuple[float, float]]
"""Times from and to, in seconds, an end of inf for ever."""


@dataclass(frozen=True)
class Feature:
    """One component of an observation.

    Attributes:
        name: identifier.
        low, high: the raw range that is mapped onto the space.
        meaning: a phrase; what scale the mapping has, too, where it is not linear.
        floor: what `low` is mapped onto; `high` is 1.
    """

    name: str
    low: float
    high: float
    meaning: str
    floor: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """What a saved model must agree with."""
        return {"name": self.name, "low": self.low, "high": self.high, "meaning": self.meaning}


@dataclass(frozen=True)
class Panel:
    """A chart of a picture: an entry of `Task.show`, what is written above it, its colour.

    Likewise `limit_key`, `limit_label` and `limit_color` of what is drawn behind it on the same scale, where it is given.
    `title` is written above it where there are small letters; "": the label.
    """

    key: str
    label: str
    color: tuple[int, int, int]
    limit_key: str | None = None
    limit_label: str = ""
    limit_color: tuple[int, int, int] = (200, 200, 200)
    title: str = ""


def outage(scenario: Any) -> str:
    """What is said of a world in which nothing passes, so that no share of its capacity can be told."""
    return (
        f"{called(scenario)} carries nothing in its duration_s = {scenario.duration_s:g}: its trace is an outage that"
        " long; valid: one in which something can be sent"
    )


class Task(ABC):
    """One recipe of a task.

    Args:
        recipe: one of `recipes`.
        history: feature vectors stacked into one observation, oldest first, 1 to 64; None: the recipe's default.
        agents: controlled agents in each world.

    Attributes:
        name, recipes, default_history, default_scenario, default_interval_s: of the task; the last one is the time between
            decisions unless another is asked for.
        options: further arguments that its environments take, and the constructor by name.
        discrete: by recipe, arguments with which an agent chooses one of a number of actions (`Discrete`), for learners of each
            action's value; recipes that do so anyway, or cannot, are left out.
        agents_argument: what environments call the number of agents in a world beside `agents`.
        hidden: what may be there in a world that agents are not told, by name; `present` says when. Learners may be made to
            guess it in training.
        kind: of its agents: what plants must measure and take.
        panels: what pictures of an episode show; as set here, what is first in `show`.
        features: the components of one feature vector, `width` of them.
        default_reward: the recipe's.
        action_space, observation_space: of a single agent. Actions may be `Discrete`, `MultiDiscrete`, `MultiBinary` or a
            `Box`; for others `check_actions` must be written.
        action_is: one agent's action in words, for messages; None: what the space says.
        until: what decisions wait for, `"interval"` or `"event"` (`Plant.advance`).
    """

    name: ClassVar[str]
    recipes: ClassVar[tuple[str, ...]] = ("default",)
    default_history: ClassVar[dict[str, int]] = {"default": 1}
    default_scenario: ClassVar[str]
    default_interval_s: ClassVar[float] = 0.1
    options: ClassVar[tuple[str, ...]] = ()
    discrete: ClassVar[dict[str, dict[str, Any]]] = {}
    agents_argument: ClassVar[str] = "agents"
    hidden: ClassVar[tuple[str, ...]] = ()

    kind: AgentKind
    features: tuple[Feature, ...]
    default_reward: str
    action_space: gym.Space
    observation_space: gym.spaces.Box
    action_is: str | None = None
    until: str = INTERVAL

    def __init__(self, recipe: str = "default", history: int | None = None, agents: int = 1):
        self.recipe = choice("recipe", recipe, self.recipes)
        self.history = self.default_history[recipe] if history is None else whole("history", history, 1, 64)
        self.agents = whole(self.agents_argument, agents, 1, MAX_AGENTS)

    @property
    def width(self) -> int:
        """Length of a feature vector."""
        return len(self.features)

    @property
    def telemetry(self) -> TelemetrySchema:
        """The schema of what is measured."""
        return self.kind.telemetry

    @property
    def fixed_steps(self) -> bool:
        """Whether decisions come at intervals, so that an episode's number of them may be known beforehand."""
        return self.until == INTERVAL

    @classmethod
    def feature_tables(cls) -> dict[str, str]:
        """A Markdown table of the features of each recipe (`netbuf_gym.tasks.feature_table`), for pages."""
        return {}

    @classmethod
    def fitted(cls, world: Any) -> dict[str, Any]:
        """Arguments that the world decides and no user, from one scenario that is to be played."""
        return {}

    @abstractmethod
    def control(self, scenario: Any) -> Any:
        """The same world with as many agents in it as `agents`.

        Raises:
            ConfigError: the world has no place for them, or nothing that they could control.
        """

    def make_tracker(self, rows: int, interval_s: float) -> Any:
        """What is remembered of telemetry, a `LastMeasured`: `update(telemetry)`, `now` and `last`, `(fields, rows)`."""
        return LastMeasured(self.telemetry, rows)

    def start(self, tracker: Any, rows: slice, scenario: Any) -> None:
        """Makes a tracker's rows those of a world that starts anew."""
        tracker.forget(rows)

    def present(self, scenario: Any) -> list[tuple[Spans, ...]]:
        """When each of `hidden` is there in a world, for each of its agents."""
        return [() for _ in range(self.agents)]

    @abstractmethod
    def decode(self, action: np.ndarray, tracker: Any, out: np.ndarray) -> np.ndarray:
        """The plant's control for checked actions, (rows, ...), into `out`, float64 `(rows, controls)`."""

    @abstractmethod
    def observe(self, tracker: Any, out: np.ndarray) -> np.ndarray:
        """The feature vectors of the interval just ended, `(width, rows)`, into `out`: finite and within the space."""

    def terminal(self, tracker: Any) -> np.ndarray | None:
        """Whose task is over for good after the interval just ended, bool `(rows,)`; None: nobody's, ever.

        A world terminates with the first of its agents.
        """
        return None

    def measured(self, tracker: Any, rows: slice, counters: list[Any]) -> list[Any]:
        """What `report` is given of a world: what the plant counted, and what the tracker knows of these rows beside it."""
        return counters

    def report(self, scenario: Any, counters: list[Any]) -> list[dict[str, Any]]:
        """What each agent of a world achieved since its start, from what the plant counted (`Plant.report`, and `measured`).

        Dicts of numbers and text, all with the same keys.
        """
        return counters

    def show(self, tracker: Any, row: int) -> dict[str, float]:
        """One agent's state for pictures and time series, by name."""
        return dict(zip(self.telemetry.names, tracker.last[:, row].tolist(), strict=True))

    def line(self, state: dict[str, float]) -> str:
        """What `show` gave, and `time_s`, as a line of text."""
        values = "   ".join(f"{key} {value:10.4g}" for key, value in state.items() if key != "time_s")
        return f"t {state['time_s']:8.2f} s   {values}"

    @property
    def panels(self) -> tuple[Panel, ...]:
        """What pictures show: the first three values of telemetry but for the time."""
        names = [name for name in self.telemetry.names if name != "elapsed_s"][:3]
        return tuple(Panel(name, name, (31, 119, 180)) for name in names)

    def check_actions(self, action: Any, rows: int) -> np.ndarray:
        """`action` as an array of shape `(rows, ...)`: integers, or of a `Box` float64 clipped to it.

        Raises:
            ConfigError: wrong shape or type, NaN, or not in a space of integers.
        """
        return actions.checked(action, self.action_space, rows, self._action_is)

    def single_action(self, action: Any) -> np.ndarray:
        """One agent's action as a batch of one.

        Raises:
            ConfigError: not of the space's shape.
        """
        return actions.single(action, self.action_space, self._action_is())

    def require_observed(self, found: Any, out: np.ndarray) -> None:
        """Raises ConfigError where what `observe` gave for `out` is not what it is to give, or no observation of the space."""
        where, shape = f"{type(self).__name__}.observe", f"(features, rows) = {out.shape}"
        if self.observation_space.shape != (self.history * self.width,):
            lasting = f"history x features = {self.history} x {self.width} numbers"
            raise ConfigError(f"{type(self).__name__}.observation_space = {self.observation_space}; valid: {lasting}")
        if found is not out:
            what = f"another array, {found.shape}" if isinstance(found, np.ndarray) else shown(found)
            raise ConfigError(f"{where} gave {what}; valid: the array `out` that it was given, {shape}, filled")
        low, high = (end[: self.width, None] for end in (self.observation_space.low, self.observation_space.high))
        wrong = np.argwhere(~((out >= low) & (out <= high)))
        if len(wrong):
            at, row = wrong[0].tolist()
            valid = f"{low[at, 0]:g} to {high[at, 0]:g}, as the observation space has it"
            raise ConfigError(f"{where}: feature {self.features[at].name!r} of row {row} is {out[at, row]:g}; valid: {valid}")

    def _action_is(self) -> str:
        return actions.in_words(self.action_space) if self.action_is is None else self.action_is

    def to_dict(self) -> dict[str, Any]:
        """What a saved model must agree with: recipe, features with their ranges, history, and what actions there are."""
        return {
            "task": self.name,
            "recipe": self.recipe,
            "history": self.history,
            "features": [feature.to_dict() for feature in self.features],
            "actions": str(self.action_space),
        }
