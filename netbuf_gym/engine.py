"""What both Gymnasium classes share: worlds, one decision for all of their agents, and the ends of episodes.

The vector environment is a thin shell around an engine of many worlds, the scalar one around an engine of one world, so
that no rule is written twice. Rows are agents (senders, or switches), world by world: row = world * agents + agent. What
is controlled, measured, observed and rewarded is the task's (`netbuf_gym.tasks.task.Task`).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium.utils import seeding

from netbuf_gym.arguments import choice, real, whole
from netbuf_gym.errors import ConfigError
from netbuf_gym.rewards import make_reward
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks import TASKS
from netbuf_gym.tasks.history import History
from netbuf_gym.tasks.task import MAX_AGENTS
from netbuf_gym.worlds import WorldSource, example, resolve

MAX_ROWS = 1 << 20
MAX_SEED = 1 << 63


class Engine:
    """Steps `worlds` worlds of `senders` agents each; arguments as in the task's docstring, its own ones in `options`.

    Attributes:
        rows: worlds * senders.
        rewards: float32 `(rows,)`, of the last decision; `terms` are its parts, `(number of terms, rows)`.
        ended: bool `(worlds,)`, whose duration (or number of steps) the last decision used up.
        scenarios: the scenario that each world runs; seeds: that of its simulator, int64 `(worlds,)`.
    """

    def __init__(
        self,
        worlds: int,
        *,
        task: str = "congestion_window",
        scenario: str | dict[str, Any] | None = None,
        recipe: str = "default",
        history: int | None = None,
        reward: str | dict[str, Any] | None = None,
        interval_s: float = 0.1,
        senders: int = 1,
        plant: str = "sim",
        threads: int = 1,
        max_episode_steps: int | None = None,
        **options: Any,
    ):
        kind = TASKS[choice("task", task, TASKS)]
        check_names(kind.name, options)
        choice("plant", plant, ("sim",))
        self.agents = whole("senders", senders, 1, MAX_AGENTS)
        self.worlds = whole("worlds", worlds, 1, MAX_ROWS // self.agents)
        self.rows = self.worlds * self.agents
        self.interval_s = real("interval_s", interval_s, 0.001, 100.0)
        self.interval_ns = round(self.interval_s * 1e9)
        self.max_episode_steps = None if max_episode_steps is None else whole("max_episode_steps", max_episode_steps, 1, 2**62)
        world = resolve(kind.default_scenario if scenario is None else scenario, self.agents)
        self.task = kind(recipe, history, self.agents, **kind.fitted(example(world)), **options)
        self.source = WorldSource(world, self.task.control)
        self.set_reward(make_reward(self.task.default_reward if reward is None else reward, self.task.rewards))
        self.plant = self.task.make_plant(self.worlds, whole("threads", threads, 1, 256))

        self.tracker = self.task.make_tracker(self.rows, self.interval_s)
        self.history = History(self.rows, self.task.history, self.task.width)
        self.scenarios: list[Scenario | None] = [None] * self.worlds
        self.seeds = np.zeros(self.worlds, np.int64)
        self.rewards = np.zeros(self.rows, np.float32)
        self.ended = np.zeros(self.worlds, bool)
        self.steps = np.zeros(self.worlds, np.int64)
        self._end_ns = np.zeros(self.worlds, np.int64)
        self._features = np.zeros((self.task.width, self.rows), np.float32)
        self._telemetry = self.plant.telemetry.reshape(self.rows, -1)
        self._control = self.plant.control.reshape(self.rows, *self.plant.control.shape[2:])
        self._alive = self.plant.agent_mask.reshape(self.rows)

    def episode_steps(self) -> int | None:
        """Decisions in every episode, or None when that is not fixed beforehand."""
        duration_s = self.source.duration_s
        return None if duration_s is None or not self.task.fixed_steps else steps_of(duration_s, self.interval_ns)

    def reset_world(self, world: int, rng: np.random.Generator) -> None:
        """Starts a world anew; its scenario, if not fixed, and its seed are drawn from `rng`."""
        scenario, seed = draw_episode(self.source, rng)
        self.plant.reset(world, scenario, seed)
        self.seeds[world] = seed
        rows = slice(world * self.agents, (world + 1) * self.agents)
        if self.scenarios[world] is not scenario:
            self.scenarios[world] = scenario
            self._end_ns[world] = round(scenario.duration_s * 1e9)
        self.task.start(self.tracker, rows, scenario)
        self.steps[world] = 0
        self.ended[world] = False

    def start_history(self, worlds: Sequence[int] | np.ndarray) -> None:
        """Makes the observation of freshly reset worlds: their first feature vector, as often as the history is deep."""
        first = self.task.observe(self.tracker, self._features)
        for world in worlds:
            rows = slice(world * self.agents, (world + 1) * self.agents)
            self.history.fill(rows, first[:, rows])

    def decide(self, actions: np.ndarray) -> None:
        """Applies checked actions, `(rows, ...)`, runs all worlds to their next decision, and observes and rewards.

        Raises:
            SimulatorFault: the simulator found its own state inconsistent.
        """
        self.task.decode(actions, self.tracker, self._control)
        self.task.advance(self.plant, self.interval_ns, self._end_ns)
        self.tracker.update(self._telemetry)
        self.history.push(self.task.observe(self.tracker, self._features))
        self.reward(self.tracker, self.terms)
        np.multiply(self.terms, self._alive, out=self.terms)
        np.sum(self.terms, axis=0, out=self.rewards)
        self.steps += 1
        np.greater_equal(self.plant.time_ns, self._end_ns, out=self.ended)
        if self.max_episode_steps is not None:
            self.ended |= self.steps >= self.max_episode_steps

    def set_reward(self, reward: Any) -> None:
        """Rewards decisions from now on by another rule.

        Raises:
            ConfigError: it is not one of the task's.
        """
        if type(reward) not in self.task.rewards.values():
            valid = ", ".join(self.task.rewards)
            raise ConfigError(f"reward {reward.name!r} is not one of task {self.task.name!r}; valid: {valid}")
        self.reward = reward
        self.terms = np.zeros((len(reward.terms), self.rows), np.float32)

    def report(self, world: int) -> list[dict[str, Any]]:
        """What each agent of a world achieved in its episode so far (see `netbuf_gym.plants.sim`)."""
        return self.plant.report(world)

    def show(self, row: int) -> dict[str, float]:
        """One agent's state for pictures and series: time in s, and what the task shows."""
        return {"time_s": float(self.plant.time_ns[row // self.agents]) * 1e-9, **self.task.show(self.tracker, row)}

    def schema(self) -> dict[str, Any]:
        """Everything a saved model must agree with, JSON-able: compare with `netbuf_gym.tasks.require_schema`."""
        return {"telemetry": self.task.telemetry.to_dict(), **self.task.to_dict(), "interval_s": self.interval_s}


def check_names(task: str, options: Iterable[str]) -> None:
    """Raises ConfigError for a name that is no argument of a task's environments."""
    own = [name for name, is_a in inspect.signature(Engine).parameters.items() if is_a.kind is is_a.KEYWORD_ONLY]
    valid = [*own, *TASKS[task].options]
    for name in options:
        if name not in valid:
            raise ConfigError(f"there is no argument {name!r}; valid: {', '.join(valid)}")


def generator_of(seed: int | None) -> np.random.Generator:
    """The generator that a single world draws its episodes from when it is seeded by itself (None: at random)."""
    return seeding.np_random(seed)[0].spawn(1)[0]


def draw_episode(source: WorldSource, rng: np.random.Generator) -> tuple[Scenario, int]:
    """The next episode of a world: its scenario, and the seed of its simulator."""
    scenario = source.draw(rng)
    return scenario, int(rng.integers(MAX_SEED))


def steps_of(duration_s: float, interval_ns: int) -> int:
    """Decisions until `duration_s` is reached: the last interval is a whole one."""
    return max(1, -(-round(duration_s * 1e9) // interval_ns))
