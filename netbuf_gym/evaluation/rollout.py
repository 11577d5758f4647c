"""Rollouts: any controller over many worlds, each from start to end.

>>> from netbuf_gym import rollout
>>> reports = rollout.evaluate("cubic", task="congestion_window", scenario="ppcc/2", seeds=range(5), threads=2)

Every controller meets the same worlds under the same seeds, those that an environment draws, and has the observations of an
agent. Results depend neither on `threads` nor on how many worlds run together, except for trained networks: the last bits of
their sums, and so in time their decisions, may depend on the number of worlds.
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
from netbuf_gym.envs.engine import MAX_SEED, MAX_THREADS, Engine, draw_episode, make_generator, pop_agents
from netbuf_gym.errors import ConfigError, PlantFault, describe_scenario, quote
from netbuf_gym.plants.simulator import World as Simulated
from netbuf_gym.scenarios import Scenario
from netbuf_gym.scenarios.sources import ScenarioLike
from netbuf_gym.simulation.results.traffic import COMPLETED, build_completions
from netbuf_gym.utils import sandbox
from netbuf_gym.utils.arguments import check_choice, check_integer
from netbuf_gym.utils.moved import find_renamed
from netbuf_gym.utils.sandbox import Stopped as Stopped
from netbuf_gym.utils.sandbox import StopSignal

CONSTANT = "constant:"
"""Prefix of the name of a controller that always takes the same action."""


class World(NamedTuple):
    """World of one episode: a scenario with agents in their places, and the seed of the plant.

    `episode` is the seed that both were drawn under.
    """

    scenario: Any
    seed: int
    episode: int


class HasController(Protocol):
    """Object with a controller, such as a trained agent (`netbuf_gym.zoo.load`)."""

    @property
    def controller(self) -> Controller: ...


class View:
    """View of one world during or at the end of its run.

    Attributes:
        index: Position of the world among those that were passed.
        scenario: Scenario that is run.
    """

    def __init__(
        self,
        index: int,
        scenario: Any,
        simulated: Callable[[], Simulated],
        show: Callable[[], dict[str, float]],
        report: Callable[[], list[dict[str, Any]]],
        timing: Callable[[], Mapping[str, float]],
    ):
        self.index, self.scenario = index, scenario
        self._simulated, self._show, self._report, self._timing = simulated, show, report, timing

    @property
    def simulated(self) -> Simulated:
        """Simulated world with its counters and samples, more than agents observe; only on plants that provide it."""
        return self._simulated()

    def show(self) -> dict[str, float]:
        """Return the state of the first agent, or of its replacement, and `time_s`; to be called once per interval."""
        return self._show()

    def report(self) -> list[dict[str, Any]]:
        """Return what each agent, or its replacement, has achieved so far; `failure` gives the reason if the world failed."""
        return self._report()

    def timing(self) -> Mapping[str, float]:
        """Return the entries of the report on how well a world in real time has kept its times; empty for simulated worlds."""
        return self._timing()

    def list_flows(self) -> list[dict[str, Any]]:
        """Return the finite flows that have completed so far, in the order of their ends.

        Each has `flow`, `priority`, `sender`, `size_bytes`, `start_s`, `fct_s`, `ideal_s`, `slowdown` (a ratio) and
        `difference_s` (fct_s - ideal_s).
        """
        return [dict(zip(COMPLETED.names or (), row.tolist(), strict=True)) for row in self.read_completions()]

    def read_completions(self) -> np.ndarray:
        """Return the finite flows that have completed so far, as `list_flows`, in an array (flows,) of `COMPLETED`."""
        if self.scenario.traffic is None:
            return np.zeros(0, COMPLETED)
        return build_completions(self.scenario, np.asarray(self.simulated.completions()))

    def whole_report(self) -> list[dict[str, Any]]:
        """Return the reports of a world that has ended.

        Raises:
            PlantFault: If the world has failed; gives the reason.
        """
        reports = self.report()
        for one in reports:
            if "failure" in one:
                raise PlantFault(f"world {self.index} of {describe_scenario(self.scenario)} has failed: {one['failure']}")
        return reports


ViewCallback = Callable[[View], None]


def get_controller(name: str, task: str) -> Controller:
    """Return a task's controller by name; `constant:ACTION`, with ACTION as JSON, always takes that action.

    Raises:
        ConfigError: For an unknown name.
    """
    known = tasks.get(task).controllers
    if isinstance(name, str) and name.startswith(CONSTANT) and name not in known:
        try:
            return ConstantAction(json.loads(name.removeprefix(CONSTANT)), name)
        except ValueError:
            raise ConfigError(f"controller = {quote(name)}; valid: {CONSTANT}ACTION, e.g. constant:5, constant:[0.2]") from None
    return known[name if name in known else check_choice("controller", name, known)]()


def as_controller(one: str | Controller | HasController, task: str) -> Controller:
    """Return the controller itself, a task's controller by name, or that of a trained agent (`netbuf_gym.zoo.load`).

    Raises:
        ConfigError: For an unknown name, or an object that is neither.
    """
    if isinstance(one, str):
        return get_controller(one, task)
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
    raise ConfigError(f"controller = {quote(one)} is none; valid: {valid}")


def draw_worlds(
    task: str, scenario: ScenarioLike | Sequence[ScenarioLike] | None, seeds: Sequence[int], **env: Any
) -> list[World]:
    """Draw the worlds that an environment of a task has under these seeds.

    Args:
        task: Name of the task.
        scenario: As for the environment; None: the task's default. A list: each of them under every seed, one after the other.
        seeds: Seeds of the episodes.
        env: Further arguments of the environment.

    Raises:
        ConfigError: If there are no seeds or no scenarios, or the environment refuses an argument.
    """
    seeds = check_seeds(seeds)
    if isinstance(scenario, (list, tuple)):
        if not scenario:
            raise ConfigError("scenario = [] holds no world; valid: at least one")
        return [world for one in scenario for world in draw_worlds(task, one, seeds, **env)]
    scenario = cast("ScenarioLike | None", scenario)
    with closing(_make_engine(1, task, scenario, env)) as engine:
        return [World(*draw_episode(engine.source, make_generator(seed)), seed) for seed in seeds]


def evaluate(
    controller: str | Controller | HasController,
    task: str,
    scenario: ScenarioLike | Sequence[ScenarioLike] | None = None,
    seeds: Sequence[int] = (0,),
    threads: int = 1,
    *,
    flows: bool = False,
    **env: Any,
) -> list[dict[str, Any]]:
    """Run one episode per seed, or per world of a list and seed.

    Args:
        controller: A controller; the name of one of the task's (`netbuf_gym.tasks.get(task).controllers`); a reference to user
            code (`netbuf_gym.controllers.code_references`), which runs in a separate process; or a trained agent from
            `netbuf_gym.zoo.load`.
        task: Name of the task.
        scenario: As for the environment, or a list of such, each run under every seed; None: the task's default.
        seeds: Seeds of the episodes.
        threads: Number of threads that run the worlds, of processes if they run user code.
        flows: Whether each report has `flows`, the world's completed flows (`View.list_flows`).
        env: Further arguments of the environment: what agents see and decide, and when. Of these a controller that is part of
            the world uses only the number of agents that it replaces.

    Returns:
        The report of every agent, or of its replacement, world by world, and seed by seed in each.

    Raises:
        ConfigError: If there are no seeds, the environment refuses an argument, or the controller has no place in it.
        ControlError: If user code does not compile, crashes, hangs, or sets no window.
        SimulatorFault: If the simulator finds its own state inconsistent.
    """
    controller = as_controller(controller, task)
    env = controller.merge_arguments(env)
    scenario = tasks.get(task).rules.default_scenario if scenario is None else scenario
    worlds = draw_worlds(task, scenario, seeds, **env)
    scenario = scenario[0] if isinstance(scenario, (list, tuple)) else cast("ScenarioLike", scenario)
    if controller.own_code is not None and not sandbox.is_worker():
        code, threads = controller.own_code, check_integer("threads", threads, 1, MAX_THREADS)
        reports = sandbox.run_parallel(
            controller.name, _collect_user_reports, worlds, threads, code, task, scenario, env, flows
        )
    else:
        reports = _collect_reports(worlds, controller, task, scenario, env, flows, threads)
    return [report for of_world in reports for report in of_world]


def _collect_user_reports(
    worlds: Sequence[World], code: str, task: str, scenario: ScenarioLike, env: Mapping[str, Any], flows: bool, **callbacks: Any
) -> list[list[dict[str, Any]]]:
    return _collect_reports(worlds, get_controller(code, task), task, scenario, env, flows, 1, **callbacks)


def _collect_reports(
    worlds: Sequence[World],
    controller: Controller,
    task: str,
    scenario: ScenarioLike,
    env: Mapping[str, Any],
    flows: bool,
    threads: int,
    each: Callable[[int], None] = lambda world: None,
    stop: StopSignal | None = None,
) -> list[list[dict[str, Any]]]:
    """Return the reports of each world's agents."""
    found: list[list[dict[str, Any]]] = [[] for _ in worlds]

    def keep(view: View) -> None:
        more = {"flows": view.list_flows()} if flows else {}
        found[view.index] = [report | more for report in view.report()]
        each(view.index)

    play(controller, worlds, keep, task=task, scenario=scenario, threads=threads, stop=stop, **env)
    return found


def play(
    controller: Controller,
    worlds: Sequence[World],
    each: ViewCallback,
    *,
    task: str,
    scenario: ScenarioLike | None = None,
    threads: int = 1,
    watch: Mapping[int, ViewCallback] | None = None,
    stop: StopSignal | None = None,
    **env: Any,
) -> None:
    """Run worlds, each from start to end.

    Args:
        controller: Controller to run.
        worlds: Worlds from `draw_worlds`, or any others; in one without agents the task's take their places, as in an
            environment.
        each: Called at the end of each world, in any order.
        task: Name of the task.
        scenario: Scenario that the worlds were drawn from, or a similar one, as for the environment; None: the first world's.
        threads: Number of threads that run the worlds.
        watch: By index of a world, a function called after each decision in it; if the controller decides nothing, after each
            `interval_s` and at the end.
        stop: Ends the work early, by `Stopped`, once set.
        env: Further arguments of the environment, see `evaluate`; the controller's own are the defaults.

    Raises:
        ConfigError: If there are no worlds, the environment refuses an argument, or the controller has no place in a world or
            on the plant.
        CheckpointError: If a trained model does not fit.
        SimulatorFault: If the simulator finds its own state inconsistent.
    """
    if not len(worlds):
        raise ConfigError("worlds is empty; valid: at least one, as netbuf_gym.evaluation.rollout.draw_worlds gives them")
    watch, stop = watch or {}, stop or threading.Event()
    like = worlds[0].scenario if scenario is None else scenario
    together = 1 if isinstance(controller, InWorld) else len(worlds)
    with closing(_make_engine(together, task, like, {**controller.merge_arguments(env), "threads": threads})) as engine:
        _require_in_world_plant(controller, engine, env)
        policy = controller.start(engine.task, [world.episode for world in worlds])
        if policy is not None:
            placed = [world._replace(scenario=controller.place(world.scenario)) for world in worlds]
            _run_decisions(policy, engine, placed, each, watch, stop)
        else:
            alone = lambda scenario, seed: plants.make_lone_world(engine.plant_spec, scenario, seed)  # noqa: E731
            placed = [world._replace(scenario=engine.task.control(world.scenario)) for world in worlds]
            _run_in_worlds(cast(InWorld, controller), placed, each, engine.interval_ns, threads, watch, stop, alone)


def check_controller(controller: Controller, scenario: ScenarioLike | None, *, task: str, **env: Any) -> None:
    """Raise the errors of `play` for a controller that does not fit such worlds, before anything is run."""
    with closing(_make_engine(1, task, scenario, controller.merge_arguments(env))) as engine:
        _require_in_world_plant(controller, engine, env)
        controller.start(engine.task, [0])
        controller.place(draw_episode(engine.source, make_generator(0))[0])


def _require_in_world_plant(controller: Controller, engine: Engine, env: Mapping[str, Any]) -> None:
    """Raise ConfigError for a controller that acts in worlds, on a plant that has no place for it."""
    if isinstance(controller, InWorld) and not engine.plant.in_world:
        plant = quote(env.get("plant"))
        raise ConfigError(f"{controller.name} acts in the world, which plant = {plant} does not allow; valid: 'sim', 'linux'")


def _make_engine(worlds: int, task: str, scenario: ScenarioLike | None, env: Mapping[str, Any]) -> Engine:
    env = {"recipe": tasks.get(task).rules.recipes[0], **env, "task": task}
    return Engine(worlds, scenario=scenario, agents=pop_agents(env)[1], **env)


def _run_decisions(
    policy: Policy,
    engine: Engine,
    worlds: Sequence[World],
    each: ViewCallback,
    watch: Mapping[int, ViewCallback],
    stop: StopSignal,
) -> None:
    """Run all worlds step by step; a world that has ended rests, a row without meaning, until the last one ends."""
    views = []
    controlled: dict[int, Any] = {}  # by identity: a fixed scenario is one object, prepared once
    for index, (scenario, seed, _) in enumerate(worlds):
        if id(scenario) not in controlled:
            controlled[id(scenario)] = engine.task.control(scenario)
        engine.start_world(index, controlled[id(scenario)], seed)
        views.append(_make_view(engine, index))
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
                engine.plant.rest(index)
        running &= ~engine.ended


def _make_view(engine: Engine, index: int) -> View:
    return View(
        index,
        engine.scenarios[index],
        lambda: cast(Any, engine.plant).world(index),
        lambda: engine.show(index * engine.agents),
        lambda: _report_world(engine, index),
        lambda: engine.plant.timing(index),
    )


def _report_world(engine: Engine, index: int) -> list[dict[str, Any]]:
    """Return the reports of a world's agents, with the reason if the world has failed."""
    why = {"failure": engine.failures[index]} if index in engine.failures else {}
    return [report | why for report in engine.report(index)]


def _run_in_worlds(
    controller: InWorld,
    worlds: Sequence[World],
    each: ViewCallback,
    interval_ns: int,
    threads: int,
    watch: Mapping[int, ViewCallback],
    stop: StopSignal,
    alone: Callable[[Scenario, int], Any],
) -> None:
    """Run worlds one by one or in threads (the simulator releases the interpreter lock as it runs); `alone` makes a world."""
    one_at_a_time = threading.Lock()

    def look_at_stop() -> None:
        if stop.is_set():
            raise Stopped

    def run(index: int) -> None:
        scenario = worlds[index].scenario
        sandbox.set_location(f"{f'world {scenario.name}' if scenario.name else 'the world'}, seed {worlds[index].seed}")
        with closing(alone(controller.place(scenario), worlds[index].seed)) as world:
            run_one(index, scenario, world)

    def run_one(index: int, scenario: Scenario, world: Any) -> None:
        world.between = look_at_stop
        end_ns = round(scenario.duration_s * 1e9)
        show, sample = controller.make_watcher(scenario, world), controller.make_sampler(scenario, world)
        timed = lambda: {"time_s": world.now_ns * 1e-9, **show()}  # noqa: E731
        report = lambda: [{**one, **world.timing()} for one in controller.report(scenario, world)]  # noqa: E731
        view = View(index, world.scenario, lambda: world, timed, report, world.timing)
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


def check_seeds(seeds: Sequence[int]) -> list[int]:
    """Return seeds of episodes as a list of ints.

    Raises:
        ConfigError: If there are none, or one is not a whole number from 0 to 2^63 - 1.
    """
    if not isinstance(seeds, (Sequence, np.ndarray)) or isinstance(seeds, str):
        raise ConfigError(f"seeds = {quote(seeds)}; valid: whole numbers, one for each episode")
    if not len(seeds):
        raise ConfigError("seeds is empty; valid: one for each episode")
    return [check_integer(f"seeds[{k}]", seed, 0, MAX_SEED - 1) for k, seed in enumerate(seeds)]


def __getattr__(name: str) -> Any:
    """Find the present name of a renamed member."""
    return find_renamed(__name__, name)
