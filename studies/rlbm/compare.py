"""The learned thresholds beside every other scheme over the default distribution, on seeds that no agent was trained on.

    python -m studies.rlbm.compare [agent=queue_threshold/ppo] [seeds=20] [jobs=N] [output=DIR] [schemes=[...]]
        [loads=[...]] [sizes=[...]] [ccs=[...]] [first_seed=1000000] [duration_s=60] [interval_s=0.1]

Under each seed every scheme runs all congestion controls x sizes x loads of the default traffic. What is compared is the
99th percentile of the slowdown (flow completion time / ideal) of priority 0: of all the flows of a seed, whatever cell
they ran in, then averaged over the seeds with a 95 % t interval; differences are paired by seed. A cell's percentile (by
size and load) is of the flows of all its seeds. Throughput is that of all cells together.

Writes a table a scheme into DIR (runs/studies/rlbm/compare), so that an interrupted command goes on with the scheme that it
was at, keeps the rows of all as the study's section `compare`, and prints that.
"""

from __future__ import annotations

import csv
import itertools
import json
import shlex
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation.rollout import View
from netbuf_gym.utils import scripts
from netbuf_gym.utils.executors import LOCAL
from netbuf_gym.utils.files import write_atomic
from netbuf_gym.utils.overrides import select_overrides
from netbuf_gym.utils.progress import ProgressBar
from netbuf_gym.utils.statistics import compute_percentiles
from netbuf_gym.version import __version__
from studies.common import agents, kept
from studies.rlbm.comparison import COLUMNS, format_comparison
from studies.rlbm.controllers import make_controller, play
from studies.rlbm.rlbm_experiment import RLBM
from studies.rlbm.rlbm_measures import get_completed_flows
from studies.rlbm.rlbm_sections import COMPARE
from studies.rlbm.rlbm_settings import LEARNED, NAMES, RANDOM_NO_BETA, Settings

CHECKOUT = Path(__file__).resolve().parents[2]
SCHEMES = (LEARNED, *(name for name in NAMES if name not in (LEARNED, RANDOM_NO_BETA)))
OUTPUT = "runs/studies/rlbm/compare"
BAD_TAIL = 0.99


@dataclass(frozen=True)
class Outcome:
    """Outcome of one run: slowdowns of the completed flows of priority 0, and bytes delivered."""

    slowdowns: np.ndarray
    delivered_bytes: float


Key = tuple[str, int, float, int]
"""Key of a run: congestion control, size, load, seed."""


def make_rows(settings: Settings, scheme: str, outcomes: dict[Key, Outcome]) -> list[dict[str, Any]]:
    """Return a scheme's rows: each seed over all cells, each cell over all seeds, each size and load over all seeds and ccs."""
    cells = list(itertools.product(settings.ccs, settings.sizes, settings.loads))
    seeds = settings.list_seeds()

    def row(own: Sequence[Key], run_mean: float | None = None, **where: Any) -> dict[str, Any]:
        flows = np.concatenate([outcomes[key].slowdowns for key in own])
        rate = sum(outcomes[key].delivered_bytes for key in own) * 8e-6 / (settings.duration_s * len(own))
        bad = float(compute_percentiles(flows, (BAD_TAIL,))[0])
        return {"scheme": scheme, **where, **dict(zip(COLUMNS[-4:], (len(flows), bad, run_mean, rate), strict=True))}

    rows = []
    for seed in seeds:
        own = [(*cell, seed) for cell in cells]
        each = [float(compute_percentiles(outcomes[key].slowdowns, (BAD_TAIL,))[0]) for key in own]
        finite = [value for value in each if np.isfinite(value)]
        rows.append(row(own, float(np.mean(finite)) if finite else float("nan"), seed=seed))
    rows += [row([(*cell, seed) for seed in seeds], **dict[str, Any](zip(COLUMNS[1:4], cell, strict=True))) for cell in cells]
    for size, load in itertools.product(settings.sizes, settings.loads):
        rows.append(row([(cc, size, load, seed) for cc in settings.ccs for seed in seeds], size=size, load=load))
    return rows


def play_scheme(settings: Settings, scheme: str, jobs: int, progress: Callable[[int], None] = lambda done: None) -> dict:
    """Run a scheme in all cells under all seeds, in threads, and return the outcomes by `Key`.

    Args:
        progress: Callback that receives the number of finished runs.

    Raises:
        CheckpointError: The agent cannot be read or does not fit.
        SimulatorFault: The simulator found its own state inconsistent.
    """
    controller, stop = make_controller(scheme, settings), threading.Event()

    def work(task: tuple[str, int]) -> dict[Key, Outcome]:
        cc, size = task
        found: dict[Key, Outcome] = {}
        cells = [(load, settings.scenario(cc, size, load), seed) for load in settings.loads for seed in settings.list_seeds()]

        def keep(view: View, occupancy: np.ndarray | None) -> None:
            load, _, seed = cells[view.index]
            flows = get_completed_flows(view)
            own = flows["slowdown"][flows["priority"] == 0]
            found[cc, size, load, seed] = Outcome(own, view.simulated.traffic_stats()["delivered_bytes"])

        play(controller, [cell[1:] for cell in cells], keep, settings.interval_s, stop)
        return found

    outcomes: dict[Key, Outcome] = {}
    for _, found in LOCAL.run(work, itertools.product(settings.ccs, settings.sizes), jobs, stop):
        outcomes |= found
        progress(len(outcomes))
    return outcomes


def _report_progress(progress: Callable[[int, int], None], before: int, total: int, done: int) -> None:
    progress(before + done, total)


def compare_schemes(settings: Settings, folder: Path, jobs: int, progress: Callable[[int, int], None]) -> list[dict[str, Any]]:
    """Return the rows of all schemes; read the rows of schemes that an earlier call has finished.

    Args:
        folder: Folder with a table per scheme, emptied first if its tables are of other settings, agent or version.
    """
    identity = json.dumps({"version": __version__, "agent": agents.compute_agent_digest(settings), **settings.to_dict()})
    made_of = folder / "settings.json"
    if not made_of.is_file() or made_of.read_text(encoding="utf-8") != identity:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_atomic(made_of, identity)
    each = len(settings.ccs) * len(settings.sizes) * len(settings.loads) * settings.seeds
    rows: list[dict[str, Any]] = []
    for number, scheme in enumerate(settings.schemes):
        path = folder / f"{scheme}.csv"
        if not path.is_file():
            report = partial(_report_progress, progress, number * each, each * len(settings.schemes))
            outcomes = play_scheme(settings, scheme, jobs, report)
            write_atomic(path, kept.format_rows(COLUMNS, make_rows(settings, scheme, outcomes)))
        rows += csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    return rows


def main(argv: Sequence[str]) -> int:
    """Run the command and return 0.

    Raises:
        ConfigError: An argument that is unknown or out of range.
        OSError: The results cannot be written.
    """
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    for argument in select_overrides(argv, ("traffic", "figures", "intervals", "executor"))[0]:
        raise ConfigError(f"argument {argument!r} is the campaign's, not the comparison's")
    defaults = {"traffic": "default", "intervals": "[]", "schemes": f"[{','.join(SCHEMES)}]", "seeds": "20", "output": OUTPUT}
    order = RLBM.parse([*(f"{key}={value}" for key, value in defaults.items() if not select_overrides(argv, [key])[0]), *argv])
    keep_comparison(order.settings, order.output, order.jobs, argv, CHECKOUT)
    found = kept.read_rows(CHECKOUT, RLBM.name, COMPARE)
    assert found is not None
    print(f"{format_comparison(found)}\n{found.path}")
    return 0


def keep_comparison(settings: Settings, folder: Path, jobs: int, argv: Sequence[str], root: Path) -> Path:
    """Run the schemes that a folder lacks, keep the rows of all schemes, delete the folder and return the rows' path."""
    with ProgressBar("compare") as bar:
        rows = compare_schemes(settings, folder, jobs, bar)
    said = select_overrides(argv, ("output", "jobs"))[1]
    header = {
        "command": shlex.join(["python", "-m", "studies.rlbm.compare", *said]),
        "agents": {"agent": agents.compute_agent_digest(settings)[:16]},
        "settings": {key: value for key, value in settings.to_dict().items() if key != "agent"},
    }
    path = kept.write_rows(root, RLBM.name, COMPARE, header, kept.format_rows(COLUMNS, rows))
    shutil.rmtree(folder)
    return path


if __name__ == "__main__":
    scripts.run("compare", main)
