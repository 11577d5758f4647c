"""The common part of both Gymnasium classes: worlds, one decision for all of their agents, and the ends of episodes.

The vector environment is a thin shell around an engine of many worlds, the scalar one around an engine of one world, so
that no rule is written twice. Rows are agents, world by world: row = world * agents + agent. The plant
(`netbuf_gym.plants`) is what is controlled; the task (`netbuf_gym.tasks`) measures, observes and rewards.
"""

from __future__ import annotations

import inspect
import math
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding

from netbuf_gym import _core, plants, tasks
from netbuf_gym.errors import ConfigError, ConfigTypeError, PlantFault, quote
from netbuf_gym.plants.plant import EVENT, check_advance
from netbuf_gym.rewards import Telemetry, bind_reward
from netbuf_gym.scenarios.sources import ScenarioLike, WorldSource, resolve_scenario, sample_example
from netbuf_gym.tasks.history import History
from netbuf_gym.tasks.task import MAX_AGENTS
from netbuf_gym.utils.arguments import check_choice, check_integer, check_real
from netbuf_gym.utils.suggestions import suggest_valid
from netbuf_gym.utils.thread_guard import Turn, Uncopyable

MAX_ROWS = 1 << 20
MAX_SEED = 1 << 63
MAX_THREADS = 256
FOREVER_NS = MOST_STEPS = (1 << 63) - 1

INFO = ("reward_terms", "telemetry")
"""Entries that environments put into `info` on request."""


class Engine(Uncopyable):
    """Steps `worlds` worlds of `agents` agents each; arguments as in the task's docstring, the task's own ones in `options`.

    Args:
        worlds: Number of worlds, at least 1.
        task: Name of the task; None: the first that was registered.
        scenario: See `netbuf_gym.scenarios.sources.resolve_scenario`; None: the task's default.
        reward: A name, a dict of `name` and parameters, or a user-defined reward, see `netbuf_gym.rewards`; None: the recipe's.
        agents: Agents in each world; the task may have a name of its own for this argument (`Task.agents_argument`).
        plant: A name of `netbuf_gym.plants`, or a dict of `name` and the plant's own arguments.

    Attributes:
        record: Record of the task; `task`: its rules with these arguments.
        rows: worlds * agents.
        rewards: float32 `(rows,)`, of the last decision; `terms` are the rewards' parts, `(number of terms, rows)`.
        terminated: bool `(worlds,)`, True where the task came to its end with the last decision.
        truncated: bool `(worlds,)`, True where the last decision used up the duration (or number of steps), or the world
            failed.
        ended: bool `(worlds,)`, terminated or truncated.
        failures: Reason of each failed world, by the world's number, until it is reset.
        time_ns: int64 `(worlds,)`, time since each world's reset, as measured by the plant.
        scenarios: Scenario of each world; `seeds`: seed of each world's plant, int64 `(worlds,)`.
        turn: Lock held by each step and reset (`netbuf_gym.utils.thread_guard.exclusive_method`).
    """

    def __init__(
        self,
        worlds: int,
        *,
        task: str | None = None,
        scenario: ScenarioLike | None = None,
        recipe: str | None = None,
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
        check_arguments(self.record.name, options)
        self.agents = check_integer(rules.agents_argument, agents, 1, MAX_AGENTS)
        self.worlds = check_integer("worlds", worlds, 1, MAX_ROWS // self.agents)
        self.rows = self.worlds * self.agents
        self.interval_s = check_real("interval_s", rules.default_interval_s if interval_s is None else interval_s, 0.001, 100.0)
        self.interval_ns = round(self.interval_s * 1e9)
        self.max_episode_steps = (
            None if max_episode_steps is None else check_integer("max_episode_steps", max_episode_steps, 1, 2**62)
        )
        world = resolve_scenario(rules.default_scenario if scenario is None else scenario, self.agents)
        first = sample_example(world)
        self._fitted = rules.world_arguments(first)
        self.task = rules(rules.recipes[0] if recipe is None else recipe, history, self.agents, **self._fitted, **options)
        self.source = WorldSource(world, self.task.control)
        if first is not world:
            self.task.control(first)  # a world without a place for agents is rejected now, not at the first reset
        self.tracker = self.task.make_tracker(self.rows, self.interval_s)
        self.history = History(self.rows, self.task.history, self.task.width)
        self.scenarios: list[Any] = [None] * self.worlds
        self.failures: dict[int, str] = {}
        self._unstarted: set[int] = set()  # worlds that failed by a reset that raised, unknown to the plant
        self.seeds = np.zeros(self.worlds, np.int64)
        self.rewards = np.zeros(self.rows, np.float32)
        over = np.zeros((3, self.worlds), bool)
        self.terminated, self.truncated, self.ended = over
        self.steps, self.time_ns, self._end_ns = np.zeros((3, self.worlds), np.int64)
        self._episodes = _core.Episodes(self.time_ns, self._end_ns, self.steps, self.rewards, over)
        self._features = np.zeros((self.task.width, self.rows), np.float32)
        self._weigh: Callable[[Any], np.ndarray] | None = None
        self._factors: np.ndarray | None = None
        self._checks_left = 2
        self.set_reward(self.task.default_reward if reward is None else reward)

        self.turn = Turn()
        self.plant_spec, self._threads = plant, check_integer("threads", threads, 1, MAX_THREADS)
        self._make_plant()

    def _make_plant(self) -> None:
        """Make the plant."""
        self.plant = plants.make(self.plant_spec, self.worlds, self.agents, self.task.kind, self._threads)
        self._release = weakref.finalize(self, self.plant.close)
        self._release.atexit = self.plant.outlives_program
        if self.task.until not in self.plant.untils:
            self.close()
            raise ConfigError(
                f"plant = {quote(self.plant_spec)} cannot wait for an event, as task {self.task.name!r} asks here; "
                f"it advances until: {', '.join(self.plant.untils)}"
            )
        self._telemetry = self.plant.telemetry.reshape(self.rows, -1)
        self._control = self.plant.control.reshape(self.rows, -1)
        self._alive = self.plant.agent_mask.reshape(self.rows)
        self.tracker.attach(self.plant, self.seeds)
        self.failures.clear()
        self._unstarted.clear()

    @property
    def started(self) -> bool:
        """Whether a world was started, ever."""
        return any(scenario is not None for scenario in self.scenarios)

    @property
    def closed(self) -> bool:
        """Whether the plant was closed."""
        return not self._release.alive

    def close(self) -> None:
        """Close the plant, once; dropping the engine also does, and so does the end of the program where necessary.

        A step in progress in another thread is completed first.
        """
        self.turn.settle()
        self._release()

    def episode_steps(self) -> int | None:
        """Return the number of decisions in every episode, or None when that is not fixed in advance."""
        duration_s = self.source.duration_s
        if duration_s is None or not (self.task.fixed_steps and self.plant.virtual_time and math.isfinite(duration_s)):
            return None
        return count_steps(duration_s, self.interval_ns)

    def make_source(self, scenario: ScenarioLike) -> WorldSource:
        """Return a source of worlds; assigned to `source`, it provides the worlds of all later episodes.

        Raises:
            ConfigError: The worlds have no place for the agents, or need other rules.
            ScenarioError: The scenario is invalid.
        """
        world = resolve_scenario(scenario, self.agents)
        first = sample_example(world)
        fitted = self.record.rules.world_arguments(first)
        if fitted != self._fitted:
            raise ConfigError(f"scenario = {quote(scenario)} needs {fitted}; valid: worlds that need {self._fitted}")
        self.task.control(first)
        return WorldSource(world, self.task.control)

    def reset_world(self, world: int, rng: np.random.Generator) -> None:
        """Start a world anew; its scenario, if not fixed, and its seed are drawn from `rng`."""
        self.start_world(world, *draw_episode(self.source, rng))

    def restart_world(self, world: int, rng: np.random.Generator) -> None:
        """Start a world anew, see `reset_world`; a world that does not start has failed, and the next decision truncates it."""
        with suppress(PlantFault):
            self.reset_world(world, rng)

    def start_world(self, world: int, scenario: Any, seed: int) -> None:
        """Start a world anew with this scenario, agents in their places, and this seed of its plant.

        After `close` the plant is made anew, and all worlds must be reset.

        Raises:
            ConfigError: The plant does not support such worlds.
            PlantFault: The world does not start. It counts as failed, for this reason, until it starts.
        """
        if self.closed:
            self._make_plant()
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
        if self._weigh is not None and self._factors is not None:
            self._factors[:, rows] = self._weigh(scenario)[:, None]
        self.steps[world] = 0
        self.time_ns[world] = 0
        self.terminated[world] = self.truncated[world] = self.ended[world] = False
        self.failures.pop(world, None)
        self._unstarted.discard(world)

    def start_history(self, worlds: Sequence[int] | np.ndarray) -> None:
        """Fill the history of freshly reset worlds with their first feature vector."""
        first = self._observe_checked()
        for world in worlds:
            rows = slice(world * self.agents, (world + 1) * self.agents)
            self.history.fill(rows, first[:, rows])

    def decide(self, actions: np.ndarray) -> None:
        """Apply checked actions, `(rows, ...)`, run all worlds to their next decision, and observe and reward.

        A world that fails is truncated: it has no measurements, its reward is 0 and its observation carries on.

        Raises:
            SimulatorFault, PlantFault: The plant cannot go on; it is closed.
            gymnasium.error.ClosedEnvironmentError: The plant was closed before.
        """
        if self.closed:
            raise gym.error.ClosedEnvironmentError("the environment is closed; reset() opens it again")
        self.task.decode(actions, self.tracker, self._control)
        self._advance()
        self.tracker.update(self._telemetry)
        self.history.push(self._observe_checked())
        self.reward(self.tracker, self.terms)
        if self._factors is not None:
            np.multiply(self.terms, self._factors, out=self.terms)
        if b"\0" in self._alive.tobytes():  # as a rule nobody is absent
            np.multiply(self.terms, self._alive != 0, out=self.terms)
        for world in self.failures:
            self.terms[:, world * self.agents : (world + 1) * self.agents] = 0
        over = self.task.terminal(self.tracker)
        if over is not None:
            np.any(np.reshape(over, (self.worlds, self.agents)), axis=1, out=self.terminated)
        self._episodes.end_decision(self.terms, self.max_episode_steps or MOST_STEPS)
        for world in self.failures:
            self.terminated[world], self.truncated[world], self.ended[world] = False, True, True

    def _observe_checked(self) -> np.ndarray:
        """Return the present features; the first two calls, after a reset and after a decision, check them."""
        found = self.task.observe(self.tracker, self._features)
        if self._checks_left:
            self._checks_left -= 1
            self.task.require_valid_observation(found, self._features)
        return found

    def _advance(self) -> None:
        """Run the plant to the next decision; after any exception the plant is closed."""
        try:
            self.plant.apply(self.plant.control)
            left_ns = self._end_ns - self.time_ns if self.task.until == EVENT else None
            advance = self.plant.advance(self.interval_ns, self.task.until, left_ns)
            elapsed_ns, failures = check_advance(advance, self.plant_spec, self.worlds, self.task.until, self.failures)
        except BaseException:
            self.close()
            raise
        self._episodes.pass_time(elapsed_ns)
        if failures or self.failures:
            unstarted = {world: self.failures[world] for world in self._unstarted}
            self.failures = {**failures, **unstarted}
            self.time_ns[list(unstarted)] = 0
            for world in self.failures:
                self._telemetry[world * self.agents : (world + 1) * self.agents] = np.nan

    def set_reward(self, reward: Any) -> None:
        """Reward decisions from now on by another rule, which the engine copies.

        Args:
            reward: See the argument of the same name.

        Raises:
            ConfigError: The value is no reward, or needs telemetry that the task does not have; the previous reward stays.
        """
        telemetry = Telemetry(self.tracker, self.task.name, self.agents, lambda: np.repeat(self.steps == 0, self.agents))
        made = bind_reward(tasks.make_task_reward(self.task.name, reward), telemetry)
        self.reward_argument = reward
        self.reward, self.terms = made, np.zeros((len(made.terms), self.rows), np.float32)
        self._weigh = self._factors = None

    def weigh_terms(self, weigh: Callable[[Any], np.ndarray] | None) -> None:
        """Multiply the terms of the reward, from the next decision on, by factors of each world, until another reward is set.

        Args:
            weigh: Returns the factors of a scenario, float32 `(number of terms,)`, asked for running worlds now and for others
                as they start; None: no factors.
        """
        self._weigh, self._factors = weigh, None
        if weigh is not None:
            self._factors = np.ones_like(self.terms)
            for world, scenario in enumerate(self.scenarios):
                if scenario is not None:
                    self._factors[:, world * self.agents : (world + 1) * self.agents] = weigh(scenario)[:, None]

    def step_info(self, name: str) -> dict[str, np.ndarray]:
        """Return an entry of `INFO` for the last decision: its reward terms, or the measurements of its interval (NaN: none).

        The result is a dict of copies `(rows,)` by name. Call this before a world starts anew.
        """
        if name == "telemetry":
            return dict(zip(self.task.telemetry.names, self.tracker.now.copy(), strict=True))
        return dict(zip(self.reward.terms, self.terms.copy(), strict=True))

    def report(self, world: int) -> list[dict[str, Any]]:
        """Return the task's report of each agent's episode so far in a world; empty dicts if the world did not start."""
        if world in self._unstarted:
            return [{} for _ in range(self.agents)]
        rows = slice(world * self.agents, (world + 1) * self.agents)
        counted = self.task.report_input(self.tracker, rows, self.plant.report(world))
        timing = self.plant.timing(world)
        return [{**report, **timing} for report in self.task.report(self.scenarios[world], counted)]

    def show(self, row: int) -> dict[str, float]:
        """Return one agent's state for pictures and series: time in s, and the values that the task shows."""
        return {"time_s": float(self.time_ns[row // self.agents]) * 1e-9, **self.task.show(self.tracker, row)}

    def schema(self) -> dict[str, Any]:
        """Return everything that a saved model must agree with, JSON-able: compare with `netbuf_gym.tasks.require_schema`."""
        return {"telemetry": self.task.telemetry.to_dict(), **self.task.to_dict(), "interval_s": self.interval_s}


def pop_agents(kwargs: dict[str, Any], default: int = 1) -> tuple[str, int]:
    """Remove the number of agents in a world from an environment's arguments; return the name it is given by, and the number.

    Raises:
        ConfigError: The number is given under both of its names, `agents` and the task's own, or is out of range.
    """
    own = tasks.get(kwargs.get("task")).rules.agents_argument
    given = {name: kwargs.pop(name) for name in ("agents", own) if name in kwargs}
    if len(given) > 1:
        raise ConfigError(f"agents and {own} are given; valid: one of them, since both are the number of agents")
    name, agents = next(iter(given.items()), (own, default))
    return name, check_integer(name, agents, 1, MAX_AGENTS)


def check_options(options: Any, valid: Iterable[str] = ()) -> dict[str, Any]:
    """Return the options of a reset as a dict of their own.

    Raises:
        ConfigError: The value is no dict, or has a key that is not one of `valid`.
    """
    names = list(valid)
    if options is not None and not isinstance(options, Mapping):
        raise ConfigTypeError(f"options = {quote(options)}; valid: None or a dict{f' of {names[0]}' if names else ', empty'}")
    given = dict(options or {})
    for name in given:
        if name not in names:
            raise ConfigError(f"options has no key {quote(name)}; valid: {', '.join(names) or 'none'}")
    return given


def check_info(value: Any) -> tuple[str, ...]:
    """Return the entries requested by an `info` argument, one of `INFO` or several.

    Raises:
        ConfigError: The value is anything else.
    """
    names = (value,) if isinstance(value, str) else value
    if names is None or isinstance(names, (list, tuple)):
        return tuple(dict.fromkeys(check_choice("info", name, INFO) for name in names or ()))
    raise ConfigError(f"info = {quote(value)}; valid: names of {', '.join(INFO)}")


def check_arguments(task: str, options: Iterable[str]) -> None:
    """Raise ConfigTypeError for a name that is no argument of a task's environments."""
    own = [name for name, is_a in inspect.signature(Engine).parameters.items() if is_a.kind is is_a.KEYWORD_ONLY]
    rules = tasks.get(task).rules
    valid = list(dict.fromkeys([*own, rules.agents_argument, *rules.options]))
    for name in options:
        if name not in valid:
            raise ConfigTypeError(f"got an unexpected keyword argument {name!r}; {suggest_valid(name, valid)}")


def make_generator(seed: int | None) -> np.random.Generator:
    """Return the generator that a separately seeded single world draws its episodes from (None: random seed)."""
    return seeding.np_random(seed)[0].spawn(1)[0]


def draw_episode(source: WorldSource, rng: np.random.Generator) -> tuple[Any, int]:
    """Return the next episode of a world: its scenario, and the seed of its plant."""
    scenario = source.draw(rng)
    return scenario, int(rng.integers(MAX_SEED))


def count_steps(duration_s: float, interval_ns: int) -> int:
    """Return the number of decisions until `duration_s` is reached: the last interval is a whole one."""
    return max(1, -(-round(duration_s * 1e9) // interval_ns))
