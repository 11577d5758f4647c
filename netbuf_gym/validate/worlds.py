"""From a cell to the scenario that repeats it, and to the numbers that are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from netbuf_gym.errors import ReferenceDataError, ScenarioError, TraceError
from netbuf_gym.scenarios import Scenario
from netbuf_gym.simulation import simulate
from netbuf_gym.validate.cells import Cell, Setting

START_SPREAD_S = 0.005
"""How far the start of a process is from the time at which it was asked for, at most."""


def scenario(cell: Cell, seed: int | None = None) -> Scenario:
    """The world of a cell that is judged.

    Args:
        cell: The cell.
        seed: The reference's, where it names a list of flows.

    Raises:
        ReferenceDataError: Its values, or the rate schedule or the list of flows it names, make no world; names the file and
            the line.
    """
    try:
        return cell.setting.family.scenario(cell, seed)
    except (ScenarioError, TraceError) as error:
        raise ReferenceDataError(str(error), cell.file, cell.line) from None


def seeds_to_run(setting: Setting, seeds: int) -> list[int]:
    """1 to `seeds` where chance decides (random loss, PIE, RED, jitter, random datagrams, BBR's probing phase, when the
    processes of several senders really started); one run where it does not."""
    random = setting.by_chance or setting.cc == "bbr" or setting.family.uncertain_starts(setting)
    return list(range(1, seeds + 1)) if random else [1]


def run(world: Scenario, setting: Setting, seed: int, look: Callable[[float], None] | None = None) -> dict[str, float]:
    """The compared quantities of one run, during which `look` is called now and then and may end it by raising."""
    if setting.family.uncertain_starts(setting):
        late_s = np.random.default_rng(seed).uniform(0, START_SPREAD_S, len(world.flows))
        world = replace(world, flows=tuple(replace(f, start_s=f.start_s + t) for f, t in zip(world.flows, late_s, strict=True)))
    result = simulate(world, seed, sample_interval_s=None, warmup_s=setting.warmup_s, progress=look or False)
    return setting.family.compared(result)
