"""Search the best constant settings, so that agents are compared with good ones.

    python -m studies.auter.tune_constant [seeds=5] [jobs=N]

Every setting of the task's grid (ring x TCP maximum x cap of explicit buffers, 5 x 5 x 3) plays in every cell of the studies
`regions`, `paths` and the four sweeps, under the training seeds 0, 1, ...; where connections request no buffers of their own
the cap has no effect, and its three values share one run. The rows of the search are kept, and the best setting of each cell,
which `constants.get_best_setting` takes from them, is printed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from netbuf_gym.tasks.host_buffers.baselines import Setting
from netbuf_gym.tasks.host_buffers.settings import GRID
from netbuf_gym.utils import scripts
from netbuf_gym.utils.arguments import check_integer
from netbuf_gym.utils.executors import LOCAL
from netbuf_gym.utils.overrides import read_overrides
from netbuf_gym.utils.progress import ProgressBar
from netbuf_gym.utils.tables import text_table
from studies.auter import constants
from studies.auter.auter_schemes import CONSTANT
from studies.auter.auter_settings import PATHS, REGIONS, SWEEPS, Settings
from studies.auter.studies import ALL
from studies.common import kept

STUDIES = (REGIONS, *SWEEPS, PATHS)
MEASURED = constants.COLUMNS[-3:]


def main(argv: Sequence[str]) -> int:
    """Run the command and return 0.

    Raises:
        ConfigError: An argument is unknown or out of range.
        OSError: The rows cannot be written.
    """
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    defaults = {"seeds": 5, "jobs": len(os.sched_getaffinity(0))}
    given = defaults | read_overrides(argv, defaults)
    seeds, jobs = (check_integer(name, given[name], 1, 100_000) for name in defaults)
    with ProgressBar("tune_constant") as bar:
        rows = search_constants(range(seeds), jobs, bar)
    command = f"python -m studies.auter.tune_constant seeds={seeds}"
    header = {"command": command, "seeds": f"0 to {seeds - 1}"}
    path = kept.write_rows(constants.CHECKOUT, "auter", constants.SECTION, header, kept.format_rows(constants.COLUMNS, rows))
    shown = [[study, cell, constants.find_best_name(rows, study, cell)] for study, cell in list_cells()]
    print(text_table(("study", "cell", "best"), [*shown, ["all", "", constants.find_best_name(rows)]]))
    print(f"written to {path}")
    return 0


def list_cells() -> list[tuple[str, str]]:
    """Return the searched cells as `(study, cell)`."""
    return [(study, cell) for study in STUDIES for cell in ALL[study].own_cells]


def search_constants(
    seeds: Sequence[int],
    jobs: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
    where: Sequence[tuple[str, str]] | None = None,
) -> list[dict[str, Any]]:
    """Return a row of `constants.COLUMNS` for each setting of the grid in each cell of `where` (None: `list_cells()`)."""
    settings = Settings(seeds=len(seeds))
    where = list_cells() if where is None else where
    tasks = []
    for study, cell in where:
        capped = _requests_buffers(ALL[study].make_world(settings, cell, 0).scenario)
        names = {one if capped else (one.ring_packets, one.rmem_max_bytes): one for one in GRID.values()}
        tasks += [(study, cell, capped, one) for one in names.values()]
    found: dict[tuple, list[float]] = {}

    def play(task: tuple) -> list[float]:
        study, cell, _, one = task
        rows = ALL[study].play(Setting(one, CONSTANT), settings, cell, seeds)
        return [float(np.mean([row[name] for row in rows])) for name in MEASURED]

    for (study, cell, capped, one), means in LOCAL.run(play, tasks, jobs):
        found[study, cell, one.ring_packets, one.rmem_max_bytes, one.socket_bytes if capped else None] = means
        progress(len(found), len(tasks))
    rows = []
    for study, cell in where:
        for one in GRID.values():
            key = (study, cell, one.ring_packets, one.rmem_max_bytes)
            means = found.get((*key, one.socket_bytes)) or found[(*key, None)]
            values = (study, cell, one.ring_packets, one.rmem_max_bytes, one.socket_bytes, *means)
            rows.append(dict(zip(constants.COLUMNS, values, strict=True)))
    return rows


def _requests_buffers(scenario: Any) -> bool:
    """Return whether any connection requests buffers of its own."""
    ends = (*scenario.flows, *(() if scenario.traffic is None else scenario.traffic.senders))
    return any(end.sndbuf_bytes is not None or end.rcvbuf_bytes is not None for end in ends)


if __name__ == "__main__":
    scripts.run("tune_constant", main)
