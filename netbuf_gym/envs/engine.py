"""What both Gymnasium classes share: worlds, one decision for all of their agents, and the ends of episodes.

The vector environment is a thin shell around an engine of many worlds, the scalar one around an engine of one world, so
that no rule is written twice. Rows are agents, world by world: row = world * agents + agent. What is controlled is the
plant's (`netbuf_gym.plants`), what of it is measured, observed and rewarded the task's (`netbuf_gym.tasks`).
"""

from __future__ import annotations

import inspect
import math
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding

from netbuf_gym import plants, tasks
from netbuf_gym.errors import ConfigError, PlantFault, shown
from netbuf_gym.plants.plant import EVENT, checked
from netbuf_gym.rewards import Telemetry, fitted
from netbuf_gym.scenarios.sources import ScenarioLike, WorldSource, example, resolve
from netbuf_gym.tasks.history import History
from netbuf_gym.tasks.task import MAX_AGENTS
from netbuf_gym.utils.arguments import choice, real, whole
from netbuf_gym.utils.suggestions import instead
from netbuf_gym.utils.thread_guard import Turn, Unique

MAX_ROWS = 1 << 20
MAX_SEED = 1 << 63
MAX_THREADS = 256
FOREVER_NS = (1 << 63) - 1

INFO = ("reward_terms", "telemetry")
"""What environments put into `info` on request."""


class Engine(Unique):
    """Steps `worlds` worlds of `agents` agents each; arguments as in the task's docstring, its own ones in `options`.

    Args:
        worlds: at least 1.
        task: its name; None: the first that was registered.
        scenario: see `netbuf_gym.scenarios.sources.resolve`; None: the task's default.
        reward: a name, a dict of `name` and parameters, or a reward of one's own, see `netbuf_gym.rewards`; None: the recipe's.
        agents: in each world; the task may have a name of its own for it (`Task.agents_argument`).
        plant: a name of `netbuf_gym.plants`, or a dict of `name` and the plant's own arguments.

    Attributes:
        record: the task's; `task` are its rules as they are here.
        rows: worlds * agents.
        rewards: float32 `(rows,)`, of the last decision; `terms` are its parts, `(number of terms, rows)`.
        terminated: bool `(worlds,)`, whose task came to its end with the last decision.
        truncated: bool `(worlds,)`, whose duration (or number of steps) the last decision used up, or which have failed.
        ended: bool `(worlds,)`, terminated or truncated.
        failures: the reason of each world that has failed, by its number, until it is reset.
        time_ns: int64 `(worlds,)`, the time since each world's reset, as its plant measured it.
        scenarios: the scenario that each world runs; seeds: that of its plant, int64 `(worlds,)`.
        turn: taken by whoever steps or resets (`netbuf_gym.utils.thread_guard.one_at_a_time`).
    """

    def __init__(
        self,
        worlds: int,
        *,
        task: str | None = None,
        scenario: ScenarioLike | None = None,
        recipe: str = "default",
        history: int | None = None,
        reward: Any = None,
        interval_s: float | None = None,
        agents: int = 1,
        plant: str | dict[str, Any] = "sim",
        threads: int = 1,
        max_episode_steps: int | None = None,
        **options: Any,
    ):
        self.record = tasks.get(task)
        rules = self.record.rules
        if rules.agents_argument in options:
            agents = options.pop(rules.agents_argument)
        check_names(self.record.name, options)
        self.agents = whole(rules.agents_argument, agents, 1, MAX_AGENTS)
        self.worlds = whole("worlds", worlds, 1, MAX_ROWS // self.agents)
        self.rows = self.worlds * self.agents
        self.interval_s = real("interval_s", rules.default_interval_s if interval_s is None else interval_s, 0.001, 100.0)
        self.interval_ns = round(self.interval_s * 1e9)
        self.max_episode_steps = None if max_episode_steps is None else whole("max_episode_steps", max_episode_steps, 1, 2**62)
        world = resolve(rules.default_scenario if scenario is None else scenario, self.agents)
        first = example(world)
        self._fitted = rules.fitted(first)
        self.task = rules(recipe, history, self.agents, **self._fitted, **options)
        self.source = WorldSource(world, self.task.control)
        if first is not world:
            self.task.control(first)  # a place for agents is missed now, not at the first reset
        self.tracker = self.task.make_tracker(self.rows, self.interval_s)
        self.history = History(self.rows, self.task.history, self.task.width)
        self.scenarios: list[Any] = [None] * self.worlds
        self.failures: dict[int, str] = {}
        self._unstarted: set[int] = set()  # failed, by a reset that raised: the plant knows nothing of them
        self.seeds = np.zeros(self.worlds, np.int64)
        self.rewards = np.zeros(self.rows, np.float32)
        self.terminated, self.truncated, self.ended = np.zeros((3, self.worlds), bool)
        self.steps = np.zeros(self.worlds, np.int64)
        self.time_ns = np.zeros(self.worlds, np.int64)
        self._end_ns = np.zeros(self.worlds, np.int64)
        self._features = np.zeros((self.task.width, self.rows), np.float32)
        self._looks = 2
        self.set_reward(self.task.default_reward if reward is None else reward)

        self.turn = Turn()
        self.plant_spec, self._threads = plant, whole("threads", threads, 1, MAX_THREADS)
        self._open()

    def _open(self) -> None:
        """Makes the plant."""
        self.plant = plants.make(self.plant_spec, self.worlds, self.agents, self.task.kind, self._threads)
        self._release = weakref.finalize(self, self.plant.close)
        self._release.atexit = self.plant.outlives_program
        if self.task.until not in self.plant.untils:
            self.close()
            raise ConfigError(
                f"plant = {shown(self.plant_spec)} cannot wait for an event, as task {self.task.name!r} asks here; "
                f"it advances until: {', '.join(self.plant.untils)}"
            )
        self._telemetry = self.plant.telemetry.reshape(self.rows, -1)
        self._control = self.plant.control.reshape(self.rows, -1)
        self._alive = self.plant.agent_mask.reshape(self.rows)
        self.failures.clear()
        self._unstarted.clear()

    @property
    def closed(self) -> bool:
        """Whether the plant was closed."""
        return not self._release.alive

    def close(self) -> None:
        """Closes the plant, once; dropping the engine does so too, and the end of the program where it has to be.

        A step that another thread is in comes to its end before.
        """
        self.turn.settle()
        self._release()

    def episode_steps(self) -> int | None:
        """Decisions in every episode, or None when that is not fixed beforehand."""
        duration_s = self.source.duration_s
        if duration_s is None or not (self.task.fixed_steps and self.plant.virtual_time and math.isfinite(duration_s)):
            return None
        return steps_of(duration_s, self.interval_ns)

    def source_of(self, scenario: ScenarioLike) -> WorldSource:
        """Where worlds come from; as `source`, those of all episodes from then on.

        Raises:
            ConfigError: they have no place for the agents, or need other rules.
            ScenarioError: there are none such.
        """
        world = resolve(scenario, self.agents)
        first = example(world)
        fitted = self.record.rules.fitted(first)
        if fitted != self._fitted:
            raise ConfigError(f"scenario = {shown(scenario)} needs {fitted}; valid: worlds that need {self._fitted}")
        self.task.control(first)
        return WorldSource(world, self.task.control)

    def reset_world(self, world: int, rng: np.random.Generator) -> None:
        """Starts a world anew; its scenario, if not fixed, and its seed are drawn from `rng`."""
        self.start_world(world, *draw_episode(self.source, rng))

    def restart_world(self, world: int, rng: np.random.Generator) -> None:
        """As `reset_world`, but a world that does not start has failed, so that the next decision truncates it."""
        with suppress(PlantFault):
            self.reset_world(world, rng)

    def start_world(self, world: int, scenario: Any, seed: int) -> None:
        """Starts a world anew as this scenario, with agents in their places, under this seed of its plant.

        After `close` the plant is made anew, and all worlds must be reset.

        Raises:
            ConfigError: the plant has no such worlds.
            PlantFault: the world does not start. It has failed, for this reason, until it does.
        """
        if self.closed:
            self._open()
        try:
            self.plant.reset(world, scenario, seed)
        except PlantFault as error:
            self._begin_episode(world, scenario, seed)
            self.failures[world] = str(error)
            self._unstarted.add(world)
            raise
        self._begin_episode(world, scenario, seed)

    def _begin_episode(self, world: int, scenario: Any, seed: int) -> None:
        self.seeds[world] = seed
        rows = slice(world * self.agents, (world + 1) * self.agents)
        if self.scenarios[world] is not scenario:
            self.scenarios[world] = scenario
            self._end_ns[world] = round(scenario.duration_s * 1e9) if math.isfinite(scenario.duration_s) else FOREVER_NS
        self.task.start(self.tracker, rows, scenario)
        self.steps[world] = 0
        self.time_ns[world] = 0
        self.terminated[world] = self.truncated[world] = self.ended[world] = False
        self.failures.pop(world, None)
        self._unstarted.discard(world)

    def start_history(self, worlds: Sequence[int] | np.ndarray) -> None:
        """Makes the observation of freshly reset worlds: their first feature vector, as often as the history is deep."""
        first = self._observed()
        for world in worlds:
            rows = slice(world * self.agents, (world + 1) * self.agents)
            self.history.fill(rows, first[:, rows])

    def decide(self, actions: np.ndarray) -> None:
        """Applies checked actions, `(rows, ...)`, runs all worlds to their next decision, and observes and rewards.

        A world that fails is truncated: nothing was measured of it, its reward is 0 and its observation carries on.

        Raises:
            SimulatorFault, PlantFault: the plant cannot go on; it is closed.
            gymnasium.error.ClosedEnvironmentError: it was closed before.
        """
        if self.closed:
            raise gym.error.ClosedEnvironmentError("the environment is closed; reset() opens it again")
        self.task.decode(actions, self.tracker, self._control)
        self._advance()
        self.tracker.update(self._telemetry)
        self.history.push(self._observed())
        self.reward(self.tracker, self.terms)
        if not np.minimum.reduce(self._alive):
            np.multiply(self.terms, self._alive != 0, out=self.terms)
        for world in self.failures:
            self.terms[:, world * self.agents : (world + 1) * self.agents] = 0
        np.add.reduce(self.terms, axis=0, out=self.rewards)
        self.steps += 1
        self._end_episodes()

    def _observed(self) -> np.ndarray:
        """The features now; the first ones, after a reset and after a decision, are looked at."""
        found = self.task.observe(self.tracker, self._features)
        if self._looks:
            self._looks -= 1
            self.task.require_observed(found, self._features)
        return found

    def _advance(self) -> None:
        """Runs the plant to the next decision; whatever it raises, it is of no further use."""
        try:
            self.plant.apply(self.plant.control)
            left_ns = self._end_ns - self.time_ns if self.task.until == EVENT else None
            advance = self.plant.advance(self.interval_ns, self.task.until, left_ns)
            elapsed_ns, failures = checked(advance, self.plant_spec, self.worlds, self.task.until, self.failures)
        except BaseException:
            self.close()
            raise
        self.time_ns += elapsed_ns
        if failures or self.failures:
            unstarted = {world: self.failures[world] for world in self._unstarted}
            self.failures = {**failures, **unstarted}
            self.time_ns[list(unstarted)] = 0
            for world in self.failures:
                self._telemetry[world * self.agents : (world + 1) * self.agents] = np.nan

    def _end_episodes(self) -> None:
        np.greater_equal(self.time_ns, self._end_ns, out=self.truncated)
        if self.max_episode_steps is not None:
            self.truncated |= self.steps >= self.max_episode_steps
        over = self.task.terminal(self.tracker)
        if over is not None:
            np.any(np.reshape(over, (self.worlds, self.agents)), axis=1, out=self.terminated)
        for world in self.failures:
            self.truncated[world], self.terminated[world] = True, False
        np.logical_or(self.truncated, self.terminated, out=self.ended)

    def set_reward(self, reward: Any) -> None:
        """Rewards decisions from now on by another rule, of which the engine has a copy.

        Args:
            reward: as the argument of the same name.

        Raises:
            ConfigError: it is no reward, or needs telemetry that the task does not have. The reward is as it was.
        """
        telemetry = Telemetry(self.tracker, self.task.name, self.agents, lambda: np.repeat(self.steps == 0, self.agents))
        made = fitted(tasks.reward_for(self.task.name, reward), telemetry)
        self.reward, self.terms = made, np.zeros((len(made.terms), self.rows), np.float32)

    def told(self, name: str) -> dict[str, np.ndarray]:
        """What `INFO` names of the last decision: the terms of its rewards, or what its interval measured (NaN: nothing).

        By name, each `(rows,)`, copies. To be asked for before a world starts anew.
        """
        if name == "telemetry":
            return dict(zip(self.task.telemetry.names, self.tracker.now.copy(), strict=True))
        return dict(zip(self.reward.terms, self.terms.copy(), strict=True))

    def report(self, world: int) -> list[dict[str, Any]]:
        """What each agent of a world achieved in its episode so far, by the task; nothing, if it did not start."""
        if world in self._unstarted:
            return [{} for _ in range(self.agents)]
        rows = slice(world * self.agents, (world + 1) * self.agents)
        counted = self.task.measured(self.tracker, rows, self.plant.report(world))
        return self.task.report(self.scenarios[world], counted)

    def show(self, row: int) -> dict[str, float]:
        """One agent's state for pictures and series: time in s, and what the task shows."""
        return {"time_s": float(self.time_ns[row // self.agents]) * 1e-9, **self.task.show(self.tracker, row)}

    def schema(self) -> dict[str, Any]:
        """Everything a saved model must agree with, JSON-able: compare with `netbuf_gym.tasks.require_schema`."""
        return {"telemetry": self.task.telemetry.to_dict(), **self.task.to_dict(), "interval_s": self.interval_s}


def take_agents(kwargs: dict[str, Any], default: int = 1) -> int:
    """Takes the number of agents in a world out of an environment's arguments, under either of its names.

    Raises:
        ConfigError: it is given twice, or out of range.
    """
    own, name = tasks.get(kwargs.get("task")).rules.agents_argument, agents_name(kwargs)
    given = {name: kwargs.pop(name) for name in ("agents", own) if name in kwargs}
    if len(given) > 1:
        raise ConfigError(f"agents and {own} are given; they say the same, valid: one of them")
    return whole(name, given.get(name, default), 1, MAX_AGENTS)


def agents_name(kwargs: Mapping[str, Any]) -> str:
    """What an environment's arguments call the number of agents; the task's own name where they do not say it."""
    own = tasks.get(kwargs.get("task")).rules.agents_argument
    return "agents" if "agents" in kwargs else own


def info_names(value: Any) -> tuple[str, ...]:
    """What an `info` argument asks for, one of `INFO` or several; raises ConfigError for anything else."""
    names = (value,) if isinstance(value, str) else value
    if names is None or isinstance(names, (list, tuple)):
        return tuple(dict.fromkeys(choice("info", name, INFO) for name in names or ()))
    raise ConfigError(f"info = {shown(value)}; valid: names of {', '.join(INFO)}")


def check_names(task: str, options: Iterable[str]) -> None:
    """Raises ConfigError for a name that is no argument of a task's environments."""
    own = [name for name, is_a in inspect.signature(Engine).parameters.items() if is_a.kind is is_a.KEYWORD_ONLY]
    rules = tasks.get(task).rules
    valid = list(dict.fromkeys([*own, rules.agents_argument, *rules.options]))
    for name in options:
        if name not in valid:
            raise ConfigError(f"there is no argument {name!r}; {instead(name, valid)}")


def generator_of(seed: int | None) -> np.random.Generator:
    """The generator that a single world draws its episodes from when it is seeded by itself (None: at random)."""
    return seeding.np_random(seed)[0].spawn(1)[0]


def draw_episode(source: WorldSource, rng: np.random.Generator) -> tuple[Any, int]:
    """The next episode of a world: its scenario, and the seed of its plant."""
    scenario = source.draw(rng)
    return scenario, int(rng.integers(MAX_SEED))


def steps_of(duration_s: float, interval_ns: int) -> int:
    """Decisions until `duration_s` is reached: the last interval is a whole one."""
    return max(1, -(-round(duration_s * 1e9) // interval_ns))
