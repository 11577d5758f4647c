"""Execution of the cells: every seed of every cell is a separate task, spread over processor cores.

The simulator releases the interpreter lock while it runs, so that threads suffice; results do not depend on their number.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace

import numpy as np

from netbuf_gym.errors import ReferenceDataError, ScenarioError, TraceError
from netbuf_gym.scenarios import Scenario
from netbuf_gym.simulation.runner import simulate
from netbuf_gym.utils.executors import LOCAL
from netbuf_gym.validation.cells import DISTRIBUTION, Cell, Setting
from netbuf_gym.validation.judging import choose_judging

START_SPREAD_S = 0.005
"""Maximum lateness of a process's start."""


def build_world(cell: Cell, seed: int | None = None) -> Scenario:
    """Return the world of a cell that is judged.

    Args:
        cell: The cell.
        seed: The reference's, for cells that name a list of flows.

    Raises:
        ReferenceDataError: The cell's values, or the rate schedule or list of flows it names, make no valid world; names the
            file and the line.
    """
    try:
        return cell.setting.family.make_scenario(cell, seed)
    except (ScenarioError, TraceError) as error:
        raise ReferenceDataError(str(error), cell.file, cell.line) from None


def list_seeds(setting: Setting, seeds: int) -> list[int]:
    """Return 1 to `seeds` where chance decides, else a single seed.

    Chance decides by random loss, PIE, RED, jitter, random datagrams, BBR's probing phase, and the true start times of several
    senders' processes.
    """
    random = setting.by_chance or setting.cc == "bbr" or setting.family.has_uncertain_starts(setting)
    return list(range(1, seeds + 1)) if random else [1]


def run_seed(world: Scenario, setting: Setting, seed: int, look: Callable[[float], None] | None = None) -> dict[str, float]:
    """Return the compared quantities of one run; `look` is called regularly meanwhile and may end the run by raising."""
    if setting.family.has_uncertain_starts(setting):
        late_s = np.random.default_rng(seed).uniform(0, START_SPREAD_S, len(world.flows))
        world = replace(world, flows=tuple(replace(f, start_s=f.start_s + t) for f, t in zip(world.flows, late_s, strict=True)))
    result = simulate(world, seed, sample_interval_s=None, warmup_s=setting.warmup_s, progress=look or False)
    return setting.family.measure_quantities(result)


DISTRIBUTION_RUNS = 250
"""Runs for a distribution test: beside a single seed of the reference the least possible p, 2/251, is then below 0.01."""


def run_cells(cells: Sequence[Cell], seeds: int, jobs: int | None, progress: Callable[[int, int], None]) -> None:
    """Fill `our_seeds` and `ours` of every cell that is judged.

    Args:
        cells: Cells; those with a reason in `not_judged` are skipped.
        seeds: Number of seeds where chance decides, at least 2.
        jobs: Threads; None: one for each processor core.
        progress: Callback with the number of runs done and their total.

    Raises:
        ReferenceDataError: A cell's values, or the rate schedule it names, make no valid world.
        SimulatorFault: The simulator found its own state inconsistent.
    """
    judged = [cell for cell in cells if not cell.not_judged]
    tasks = [(i, seed) for i, cell in enumerate(judged) for seed in _choose_seeds(cell, seeds)]
    worlds: dict[tuple[int, int], Scenario] = {}
    for i, cell in enumerate(judged):
        common = None if cell.flow_files or cell.setting.family.has_seeded_worlds(cell.setting) else build_world(cell)
        worlds |= {(i, seed): common or build_world(cell, seed) for at, seed in tasks if at == i}
    results: dict[tuple[int, int], dict[str, float]] = {}
    stop = threading.Event()

    def look(share: float) -> None:
        if stop.is_set():
            raise CancelledError

    def run(task: tuple[int, int]) -> dict[str, float]:
        return run_seed(worlds[task], judged[task[0]].setting, task[1], look)

    for task, values in LOCAL.run(run, tasks, jobs or os.cpu_count() or 1, stop):
        results[task] = values
        progress(len(results), len(tasks))
    for cell in judged:
        cell.our_seeds, cell.ours = [], {}
    for i, seed in tasks:
        judged[i].our_seeds.append(seed)
        for quantity, value in results[i, seed].items():
            judged[i].ours.setdefault(quantity, []).append(value)


def _choose_seeds(cell: Cell, seeds: int) -> list[int]:
    """Return a cell's seeds: the reference's own if they name lists of flows, else as many as make a verdict possible.

    Against one seed of the reference a Kolmogorov-Smirnov test of 30 rejects nothing.
    """
    if cell.flow_files:
        return list(dict.fromkeys(cell.seeds))
    if choose_judging(cell) == DISTRIBUTION:
        seeds = max(seeds, DISTRIBUTION_RUNS)
    return list_seeds(cell.setting, seeds)
