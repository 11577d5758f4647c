"""The one rollout: any controller over many worlds, each from its start to its end.

>>> from netbuf_gym import rollout
>>> reports = rollout.evaluate("cubic", task="congestion_window", scenario="ppcc/2", seeds=range(5), threads=2)

Every controller meets the same worlds under the same seeds, the ones that an environment draws, and is told what agents are
told. What comes out depends on neither `threads` nor on how many worlds are run together; of a trained network the last bits of
its sums, and so in time its decisions, may depend on the latter.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from netbuf_gym import plants, tasks
from netbuf_gym.controllers import ConstantAction, Controller, InWorld, Policy
from netbuf_gym.envs.engine import MAX_SEED, Engine, draw_episode, generator_of, take_agents
from netbuf_gym.errors import ConfigError, PlantFault, called, shown
from netbuf_gym.plants.simulator import World as Simulated
from netbuf_gym.scenarios import Scenario
from netbuf_gym.scenarios.sources import ScenarioLike
from netbuf_gym.utils import sandbox
from netbuf_gym.utils.arguments import choice, whole
from netbuf_gym.utils.sandbox import Stop

CONSTANT = "constant:"
"""What the name of a controller begins with that does the same always."""


class Stopped(Exception):
    """Work was given up because `stop` was set."""


class World(NamedTuple):
    """What a controller meets in an episode: the scenario with agents in their places, and the seed of its plant.

    `episode` is the seed that both were drawn under.
    """

    scenario: Any
    seed: int
    episode: int


class Playing(Protocol):
    """What has a controller, as trained agents (`netbuf_gym.zoo.load`) do."""

    @property
    def controller(self) -> Controller: ...


class View:
    """One world while it is played, or at its end.

    Attributes:
        index: of the world, as it was given.
        scenario: the scenario that is run.
    """

    def __init__(
        self,
        index: int,
        scenario: Any,
        simulated: Callable[[], Simulated],
        show: Callable[[], dict[str, float]],
        report: Callable[[], list[dict[str, Any]]],
    ):
        self.index, self.scenario = index, scenario
        self._simulated, self._show, self._report = simulated, show, report

    @property
    def simulated(self) -> Simulated:
        """Its counters and samples, more than agents are told; of plants that tell them."""
        return self._simulated()

    def show(self) -> dict[str, float]:
        """The first agent's state, or that of what is in its place, and `time_s`; to be asked once an interval."""
        return self._show()

    def report(self) -> list[dict[str, Any]]:
        """What each agent, or what is in its place, achieved so far; `failure` says why a world has failed."""
        return self._report()

    def whole_report(self) -> list[dict[str, Any]]:
        """The same of a world that has come to its end.

        Raises:
            PlantFault: it has failed; says why.
        """
        reports = self.report()
        for one in reports:
            if "failure" in one:
                raise PlantFault(f"world {self.index} of {called(self.scenario)} has failed: {one['failure']}")
        return reports


Look = Callable[[View], None]


def controller_of(name: str, task: str) -> Controller:
    """A task's controller by its name, `constant:ACTION` being the same always, as JSON; raises `ConfigError` for another."""
    known = tasks.get(task).controllers
    if isinstance(name, str) and name.startswith(CONSTANT) and name not in known:
        try:
            return ConstantAction(json.loads(name.removeprefix(CONSTANT)), name)
        except ValueError:
            raise ConfigError(f"controller = {shown(name)}; valid: {CONSTANT}ACTION, e.g. constant:5, constant:[0.2]") from None
    return known[name if name in known else choice("controller", name, known)]()


def player(one: str | Controller | Playing, task: str) -> Controller:
    """What plays: a controller, one of the task's by its name, or that of a trained agent (`netbuf_gym.zoo.load`).

    Raises:
        ConfigError: another name, or nothing of the kind.
    """
    if isinstance(one, str):
        return controller_of(one, task)
    made = one if isinstance(one, Controller) else getattr(one, "controller", None)
    if isinstance(made, Controller):
        return made
    valid = "a name, a netbuf_gym.controllers.Controller, or what netbuf_gym.zoo.load gives"
    if isinstance(one, type) and issubclass(one, Controller):
        valid = f"an object of it, {one.__name__}(...)"
    elif hasattr(one, "predict"):
        valid = "netbuf_gym.controllers.Model(model, name=...), which plays what has stable-baselines3's predict"
    elif callable(one):
        valid = "netbuf_gym.controllers.Callback(function), which plays observations in, actions out"
    raise ConfigError(f"controller = {shown(one)} is none; valid: {valid}")


def draw(task: str, scenario: ScenarioLike | None, seeds: Sequence[int], **env: Any) -> list[World]:
    """The worlds that an environment of a task draws under these seeds.

    Args:
        task: its name.
        scenario: as for the environment; None: the task's default.
        seeds: of the episodes.
        env: further arguments of the environment.

    Raises:
        ConfigError: no seeds, or an argument that the environment refuses.
    """
    seeds = checked_seeds(seeds)
    with closing(_engine(1, task, scenario, env)) as engine:
        return [World(*draw_episode(engine.source, generator_of(seed)), seed) for seed in seeds]


def evaluate(
    controller: str | Controller | Playing,
    task: str,
    scenario: ScenarioLike | None = None,
    seeds: Sequence[int] = (0,),
    threads: int = 1,
    **env: Any,
) -> list[dict[str, Any]]:
    """One episode for each seed.

    Args:
        controller: one; the name of one of the task's (`netbuf_gym.tasks.get(task).controllers`); a word of the user's code
            (`netbuf_gym.controllers.code_references`), which is run in a process beside; or a trained agent, as
            `netbuf_gym.zoo.load` gives it.
        task: its name.
        scenario: as for the environment; None: the task's default.
        seeds: of the episodes.
        threads: that run the worlds.
        env: further arguments of the environment: what agents see and decide, and when. A controller that is part of the
            world is bound by none of them, but for the number of agents that it replaces.

    Returns:
        the report of every agent, or of what is in its place, seed by seed.

    Raises:
        ConfigError: no seeds, arguments that the environment refuses, or a controller that has no place in it.
        ControlError: code of the user's that does not compile, crashes, hangs, or sets no window.
        SimulatorFault: the simulator found its own state inconsistent.
    """
    controller = player(controller, task)
    env = controller.playing(env)
    scenario = tasks.get(task).rules.default_scenario if scenario is None else scenario
    worlds = draw(task, scenario, seeds, **env)
    if controller.own_code is not None and not sandbox.here():
        return sandbox.run(controller.name, _reports, controller.own_code, worlds, task, scenario, 1, env)
    return _reports(controller, worlds, task, scenario, threads, env)


def _reports(
    controller: str | Controller,
    worlds: Sequence[World],
    task: str,
    scenario: ScenarioLike,
    threads: int,
    env: Mapping[str, Any],
    each: Callable[[int], None] = lambda world: None,
    stop: Stop | None = None,
) -> list[dict[str, Any]]:
    """The reports of every agent, world by world."""
    found: list[list[dict[str, Any]]] = [[] for _ in worlds]

    def keep(view: View) -> None:
        found[view.index] = view.report()
        each(view.index)

    play(player(controller, task), worlds, keep, task=task, scenario=scenario, threads=threads, stop=stop, **env)
    return [report for reports in found for report in reports]


def play(
    controller: Controller,
    worlds: Sequence[World],
    each: Look,
    *,
    task: str,
    scenario: ScenarioLike | None = None,
    threads: int = 1,
    watch: Mapping[int, Look] | None = None,
    stop: Stop | None = None,
    **env: Any,
) -> None:
    """Runs worlds, each from its start to its end.

    Args:
        controller: who plays.
        worlds: as `draw` gives them, or any others with a place for the task's agents.
        each: called at the end of each world, in whatever order they end.
        task: its name.
        scenario: what the worlds were drawn from, or one like them, as for the environment; None: the first of them.
        threads: that run the worlds.
        watch: by the number of a world, what is called after each of its decisions; where the controller decides nothing,
            after each `interval_s`, and at the end.
        stop: ends the work early, by `Stopped`, when it is set.
        env: further arguments of the environment, see `evaluate`; the controller's own are those that are not given.

    Raises:
        ConfigError: no worlds, arguments that the environment refuses, or a controller that has no place in a world or on the
            plant.
        CheckpointError: a trained model that does not fit.
        SimulatorFault: the simulator found its own state inconsistent.
    """
    if not len(worlds):
        raise ConfigError("worlds is empty; valid: at least one, as netbuf_gym.evaluation.rollout.draw gives them")
    watch, stop = watch or {}, stop or threading.Event()
    like = worlds[0].scenario if scenario is None else scenario
    together = 1 if isinstance(controller, InWorld) else len(worlds)
    with closing(_engine(together, task, like, {**controller.playing(env), "threads": threads})) as engine:
        _require_its_plant(controller, engine, env)
        policy = controller.start(engine.task, [world.episode for world in worlds])
        if policy is not None:
            placed = [world._replace(scenario=controller.place(world.scenario)) for world in worlds]
            _decisions(policy, engine, placed, each, watch, stop)
        else:
            alone = lambda scenario, seed: plants.lone(engine.plant_spec, scenario, seed)  # noqa: E731
            _in_worlds(cast(InWorld, controller), worlds, each, engine.interval_ns, threads, watch, stop, alone)


def check(controller: Controller, scenario: ScenarioLike | None, *, task: str, **env: Any) -> None:
    """Raises what `play` would raise of a controller that does not fit such worlds, before anything is run."""
    with closing(_engine(1, task, scenario, controller.playing(env))) as engine:
        _require_its_plant(controller, engine, env)
        controller.start(engine.task, [0])


def _require_its_plant(controller: Controller, engine: Engine, env: Mapping[str, Any]) -> None:
    """Raises ConfigError for a controller that acts in worlds, on a plant that has none for it."""
    if isinstance(controller, InWorld) and not engine.plant.in_world:
        plant = shown(env.get("plant"))
        raise ConfigError(f"{controller.name} acts in the world, where plant = {plant} lets nobody; valid: 'sim', 'linux'")


def _engine(worlds: int, task: str, scenario: ScenarioLike | None, env: Mapping[str, Any]) -> Engine:
    env = {"recipe": tasks.get(task).rules.recipes[0], **env, "task": task}
    return Engine(worlds, scenario=scenario, agents=take_agents(env), **env)


def _decisions(
    policy: Policy, engine: Engine, worlds: Sequence[World], each: Look, watch: Mapping[int, Look], stop: Stop
) -> None:
    """All worlds step by step. One that has ended goes on, unseen, until the last has."""
    views = []
    controlled: dict[int, Any] = {}  # a fixed scenario stays one object, and is prepared once
    for index, (scenario, seed, _) in enumerate(worlds):
        if id(scenario) not in controlled:
            controlled[id(scenario)] = engine.task.control(scenario)
        engine.start_world(index, controlled[id(scenario)], seed)
        views.append(_view(engine, index))
    engine.start_history(range(len(worlds)))
    shape = (engine.rows, *engine.task.observation_space.shape)
    state: Any = None
    starts = np.ones(engine.rows, bool)
    running = np.ones(len(worlds), bool)
    while running.any():
        if stop.is_set():
            raise Stopped
        actions, state = policy(engine.history.read(np.empty(shape, np.float32)), state, starts)
        engine.decide(engine.task.check_actions(actions, engine.rows))
        starts = np.zeros(engine.rows, bool)
        for index in np.flatnonzero(running).tolist():
            if index in watch:
                watch[index](views[index])
            if engine.ended[index]:
                each(views[index])
        running &= ~engine.ended


def _view(engine: Engine, index: int) -> View:
    return View(
        index,
        engine.scenarios[index],
        lambda: cast(Any, engine.plant).world(index),
        lambda: engine.show(index * engine.agents),
        lambda: _report(engine, index),
    )


def _report(engine: Engine, index: int) -> list[dict[str, Any]]:
    """The reports of a world's agents; those of one that has failed say why."""
    why = {"failure": engine.failures[index]} if index in engine.failures else {}
    return [report | why for report in engine.report(index)]


def _in_worlds(
    controller: InWorld,
    worlds: Sequence[World],
    each: Look,
    interval_ns: int,
    threads: int,
    watch: Mapping[int, Look],
    stop: Stop,
    alone: Callable[[Scenario, int], Any],
) -> None:
    """World by world, in threads: the simulator leaves the interpreter while it runs. alone: makes one."""
    one_at_a_time = threading.Lock()

    def look_at_stop() -> None:
        if stop.is_set():
            raise Stopped

    def run(index: int) -> None:
        scenario = worlds[index].scenario
        sandbox.at(f"{f'world {scenario.name}' if scenario.name else 'the world'}, seed {worlds[index].seed}")
        with closing(alone(controller.place(scenario), worlds[index].seed)) as world:
            run_one(index, scenario, world)

    def run_one(index: int, scenario: Scenario, world: Any) -> None:
        world.between = look_at_stop
        end_ns = round(scenario.duration_s * 1e9)
        show, sample = controller.watcher(scenario, world), controller.sampler(scenario, world)
        timed = lambda: {"time_s": world.now_ns * 1e-9, **show()}  # noqa: E731
        view = View(index, world.scenario, lambda: world, timed, lambda: controller.report(scenario, world))
        while world.now_ns < end_ns:
            look_at_stop()
            step_by_step = sample is not None or index in watch
            world.run(min(world.now_ns + interval_ns, end_ns) if step_by_step else end_ns)
            if sample is not None:
                sample()
            if index in watch:
                with one_at_a_time:
                    watch[index](view)
        with one_at_a_time:
            each(view)

    if threads == 1:
        for index in range(len(worlds)):
            run(index)
        return
    with ThreadPoolExecutor(threads) as pool:
        try:
            for _ in pool.map(run, range(len(worlds))):
                pass
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def checked_seeds(seeds: Sequence[int]) -> list[int]:
    """Seeds of episodes as a list of ints.

    Raises:
        ConfigError: none, or one that is no whole number from 0 to 2^63 - 1.
    """
    if not isinstance(seeds, (Sequence, np.ndarray)) or isinstance(seeds, str):
        raise ConfigError(f"seeds = {shown(seeds)}; valid: whole numbers, one for each episode")
    if not len(seeds):
        raise ConfigError("seeds is empty; valid: one for each episode")
    return [whole(f"seeds[{k}]", seed, 0, MAX_SEED - 1) for k, seed in enumerate(seeds)]
