"""Trained senders in integers: `netbuf-gym compile`, and how far the integers are from the network in floating point."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from netbuf_gym import _core, tasks
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.evaluation.suites import Cell, Suite, get_suite
from netbuf_gym.leaderboard import play
from netbuf_gym.scenarios.compiled_agent import SUFFIX, CompiledAgent, write_compiled_agent
from netbuf_gym.tasks.congestion_window.baselines import UserCongestionControl
from netbuf_gym.tasks.congestion_window.task import CongestionWindow
from netbuf_gym.tasks.congestion_window.tracker import MSS, Tracker
from netbuf_gym.training.checkpoints import digest
from netbuf_gym.version import __version__
from netbuf_gym.zoo.agent import Agent
from netbuf_gym.zoo.integer_policy import INTERVAL_FIELDS, ONE, count_intervals, extract_network, quantise

TASK = "congestion_window"
WORLDS = 64
"""Number of worlds that states are recorded in at once."""
SEED = 77_000
_CWND, _MSS = INTERVAL_FIELDS.index("cwnd"), INTERVAL_FIELDS.index("mss")
Progress = Callable[[int, int], None]
"""Is called with what is done, and with what there is to do."""


@dataclass(frozen=True)
class Agreement:
    """Comparison of a compiled sender with its agent, on states that the agent has met.

    Attributes:
        states: Number of decisions.
        same_actions: Share of them with the same action, of features and network in integers.
        same_actions_of_network: The same for the network alone, on the agent's own features.
        same_silence: Share of them in which both decide on a window, or neither does.
        window_error: Largest relative difference of windows, over decisions with the same action; 99.9th percentile.
    """

    states: int
    same_actions: float
    same_actions_of_network: float
    same_silence: float
    window_error: float


@dataclass(frozen=True)
class ClosedLoop:
    """Comparison of a compiled sender with its agent, each playing the worlds of a suite.

    Attributes:
        suite: Name of the suite.
        worlds: Number of worlds.
        agent, compiled: Means of the suite's score.
        standard_error: Standard error of the mean difference. A world in which decisions feed back may go either way after a
            first decision that differs, so that single worlds say little.
    """

    suite: str
    worlds: int
    agent: float
    compiled: float
    standard_error: float


def compile_agent(agent: Agent) -> CompiledAgent:
    """Return a trained sender in integers.

    Raises:
        ConfigError: An agent of another task, or a network, a recipe or an argument that integers do not have.
    """
    task, interval_s = _make_task(agent)
    network = extract_network(agent.controller.model(task).policy)
    policy = quantise(network, task, interval_s).tobytes()
    about = {
        "agent": agent.name,
        "model_sha256": digest.compute_model_digest(agent.path),
        "network": network.describe(),
        "recipe": task.recipe,
        "interval_s": interval_s,
        "netbuf_gym": __version__,
    }
    return CompiledAgent(name_file(agent), policy, about)


def name_file(agent: Agent) -> str:
    """Return the usual name of a compiled agent's file."""
    name = Path(agent.name).resolve().name if agent.name.startswith(".") else agent.name
    return name.strip("/").replace("/", "-").removesuffix(".zip") + SUFFIX


def write_compiled(compiled: CompiledAgent, file: str | Path, **measured: Agreement | ClosedLoop | None) -> None:
    """Write a compiled sender with what was measured of it.

    Raises:
        OSError: The file cannot be written.
    """
    found = {name: vars(one) for name, one in measured.items() if one is not None}
    write_compiled_agent(file, compiled.policy, {**compiled.about, **found})


def _make_task(agent: Agent) -> tuple[CongestionWindow, float]:
    """Return the rules of an agent's environment and its interval in seconds."""
    if tasks.find_task(agent.env_id) != TASK:
        raise ConfigError(f"agent = {quote(agent.name)} is of {agent.env_id}; valid: an agent of {tasks.get(TASK).ids[0]}")
    env: Any = agent.make_env()
    with closing(env):
        engine = env.unwrapped.engine
        return cast(CongestionWindow, engine.task), float(engine.interval_s)


def compare_decisions(
    agent: Agent, compiled: CompiledAgent, states: int, threads: int = 1, each: Progress = lambda done, total: None
) -> Agreement:
    """Let an agent play worlds of its training, and compare what its integers decide on the same telemetry.

    Args:
        agent, compiled: The agent and its integers.
        states: Number of decisions that are compared, at least.
        threads: Number of threads that run the worlds.
        each: Is called now and then.

    Raises:
        ConfigError, ScenarioError: The worlds cannot be made.
    """
    env: Any = agent.make_vec(min(WORLDS, max(states // 100, 1)), threads=threads)
    with closing(env):
        return _compare(agent, compiled.policy, env, states, each)


def _compare(agent: Agent, policy: bytes, env: Any, states: int, each: Progress) -> Agreement:
    engine = env.unwrapped.engine
    tracker, rows = cast(Tracker, engine.tracker), engine.rows
    whole, network = _core.IntegerPolicy(policy, rows), _core.IntegerPolicy(policy, rows)
    found, alone, windows = np.zeros((3, rows), np.int64)
    counted = same = same_alone = silent = 0
    errors: list[np.ndarray] = []
    observations, _ = env.reset(seed=SEED)
    memory, starts = None, np.ones(rows, bool)
    while counted < states:
        intervals = count_intervals(engine.plant.telemetry.reshape(rows, -1))
        intervals[starts, _CWND], intervals[starts, _MSS] = tracker.cwnd[starts], tracker.last[MSS][starts]
        actions, memory = agent.predict(observations, memory, starts)
        whole.step(np.ascontiguousarray(intervals), starts, found, windows)
        network.infer(np.round(observations.reshape(rows, -1) * 2.0**ONE).astype(np.int32), starts, alone)
        observations, _, terminated, truncated, _ = env.step(actions)
        decided, ended = engine.plant.control.reshape(rows, -1)[:, 0], terminated | truncated  # which forgets the control
        of_states, both = ~(starts | ended), ~ended & (actions == found) & (windows > 0) & ~np.isnan(decided)
        counted += int(of_states.sum())
        same += int((actions == found)[of_states].sum())
        same_alone += int((actions == alone)[of_states].sum())
        silent += int((np.isnan(decided) == (windows == 0))[of_states].sum())
        errors.append(np.abs(windows[both] / decided[both] - 1))
        starts = ended
        each(min(counted, states), states)
    apart = np.concatenate(errors)
    error = float(np.quantile(apart, 0.999)) if len(apart) else 0.0
    return Agreement(counted, same / counted, same_alone / counted, silent / counted, error)


def compare_scores(
    agent: Agent,
    compiled: CompiledAgent,
    suite: str = "gate",
    worlds: int | None = None,
    threads: int = 1,
    each: Progress = lambda done, total: None,
) -> ClosedLoop:
    """Let an agent and its integers play the worlds of a suite.

    Args:
        agent, compiled: The agent and its integers, which decide at the first ACK after the end of an interval.
        suite: Name of the suite.
        worlds: Number of worlds of each family, evenly spread; None: all.
        threads: Number of threads that run the worlds.
        each: Is called after each world.

    Raises:
        ConfigError, CheckpointError: The agent has no place in a world.
    """
    own = get_suite(suite)
    cells = _choose_cells(own, worlds)
    done = 0

    def count(cell: Cell) -> None:
        nonlocal done
        done += 1
        each(done, 2 * len(cells))

    players = (agent.controller, UserCongestionControl(compiled.name, compiled))
    scores = [
        np.array(play.run(own, cells, one, threads=threads, each=count).list_values(own.score.key), float) for one in players
    ]
    agents, integers = scores
    apart = (integers - agents)[~np.isnan(integers - agents)]
    error = float(apart.std(ddof=1)) / math.sqrt(len(apart)) if len(apart) > 1 else math.inf
    return ClosedLoop(own.name, len(cells), float(np.nanmean(agents)), float(np.nanmean(integers)), error)


def _choose_cells(suite: Suite, worlds: int | None) -> Sequence[Cell]:
    edition = suite.load()
    if worlds is None:
        return edition.cells
    families = [edition.select_cells([family]) for family in edition.families]
    return [own[k] for own in families for k in sorted({len(own) * i // worlds for i in range(min(worlds, len(own)))})]
