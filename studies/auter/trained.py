"""Evaluate every seed of a training campaign on long paths, beside settings and the kernel's autotuning.

    python -m studies.auter.trained [runs=runs/campaign/host_buffers/host_buffers] [seeds=3] [jobs=N]

`runs` is a folder with a run directory for each training seed, as written by
`python -m netbuf_gym.training.campaign experiment=host_buffers`; `seeds` is the number of worlds of each cell of the study
`paths`, from the first evaluation seed on. The section `trained` of the study keeps a row for each agent or rival in each cell;
its table is printed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.controllers import Controller
from netbuf_gym.errors import ConfigError, require_extra
from netbuf_gym.utils import scripts
from netbuf_gym.utils.arguments import check_integer, check_text
from netbuf_gym.utils.executors import LOCAL
from netbuf_gym.utils.overrides import read_overrides
from netbuf_gym.utils.progress import ProgressBar
from studies.auter import paper
from studies.auter.auter_schemes import CONSTANT, KERNEL, LEARNED, make_controller
from studies.auter.auter_settings import PATHS, Settings
from studies.auter.long_paths import MEASURED, Means, build_seeds_table
from studies.auter.studies import ALL
from studies.common import agents, kept

CHECKOUT = Path(__file__).resolve().parents[2]
SECTION = "trained"
RUNS = "runs/campaign/host_buffers/host_buffers"
RIVALS = (paper.DEFAULT, KERNEL, CONSTANT, paper.MAX)
COLUMNS = ("who", "cell", *MEASURED)
AGENT = "seed "
"""Prefix of agents' names, followed by the training seed."""


def main(argv: Sequence[str]) -> int:
    """Run the command and return 0.

    Raises:
        ConfigError: An argument is unknown or out of range, or the folder has no trained agents.
        OSError: The rows cannot be written.
    """
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    defaults = {"runs": RUNS, "seeds": 3, "jobs": len(os.sched_getaffinity(0))}
    given = defaults | read_overrides(argv, defaults)
    seeds, jobs = (check_integer(key, given[key], 1, 1000) for key in ("seeds", "jobs"))
    settings = Settings(studies=(PATHS,), seeds=seeds)
    models = find_models(Path(check_text("runs", given["runs"])))
    playing: dict[str, Controller | None] = {f"{AGENT}{seed}": _agent(path) for seed, path in models.items()}
    with ProgressBar("trained") as bar:
        rows = play_all(playing | dict.fromkeys(RIVALS), settings, jobs, bar)
    command = "python -m studies.auter.trained" + (f" seeds={seeds}" if seeds != 3 else "")
    kept.write_rows(CHECKOUT, "auter", SECTION, {"command": command, "worlds": seeds}, kept.format_rows(COLUMNS, rows))
    found = kept.read_rows(CHECKOUT, "auter", SECTION)
    assert found is not None
    print(f"{format_section(found)}\n{found.path}")
    return 0


def find_models(folder: Path) -> dict[int, Path]:
    """Return the model files of the trained agents in a campaign's folder, by training seed.

    Raises:
        ConfigError: The folder has no trained agents.
        MissingExtraError: The extra `train` is not installed.
    """
    with require_extra("a trained agent", "train"):
        from netbuf_gym.training import selection
    runs = [path.parent for path in folder.glob("seed*/model.zip") if path.parent.name[4:].isdecimal()]
    found = {int(run.name[4:]): selection.find_kept_model(run) for run in runs}
    if not found:
        raise ConfigError(f"runs = {str(folder)!r}: holds no seed*/model.zip; valid: the runs of a training campaign")
    return dict(sorted(found.items()))


def _agent(path: Path) -> Controller:
    settings = Settings(studies=(PATHS,), schemes=(LEARNED,), agent=str(path))
    return agents.load_agent(settings, ALL[PATHS].make_example(settings), "agent", LEARNED)


def play_all(playing: dict[str, Controller | None], settings: Settings, jobs: int, progress: Any) -> list[dict[str, Any]]:
    """Return a row of means for each controller in each cell; a name with None stands for the scheme of that name."""
    tasks = [(who, cell) for who in playing for cell in ALL[PATHS].cells(settings)]

    def one(task: tuple[str, str]) -> list[float]:
        who, cell = task
        controller = playing[who] or make_controller(who, PATHS, cell)
        found = ALL[PATHS].play(controller, settings, cell, settings.list_seeds())
        return [float(np.mean([row[name] for row in found])) for name in MEASURED]

    found: dict[tuple[str, str], list[float]] = {}
    for task, means in LOCAL.run(one, tasks, jobs):
        found[task] = means
        progress(len(found), len(tasks))
    return [dict(zip(COLUMNS, (*task, *found[task]), strict=True)) for task in tasks]


def format_section(rows: kept.KeptRows) -> str:
    """Return the Markdown of the section's rows."""
    means: dict[str, Means] = {}
    for row in rows.records:
        cell = {name: float(row[name]) for name in MEASURED}
        means[row["who"]] = {**means.get(row["who"], {}), row["cell"]: cell}
    trained = {int(who.removeprefix(AGENT)): own for who, own in means.items() if who.startswith(AGENT)}
    rivals = {who: own for who, own in means.items() if not who.startswith(AGENT)}
    header = rows.header
    said = f"netbuf-gym {header['version']}: {header['command']}; means over {header['worlds']} worlds of each cell"
    return f"`{said}`\n\n{build_seeds_table(trained, rivals)}"


if __name__ == "__main__":
    scripts.run("trained", main)
