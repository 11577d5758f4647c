"""Trials of controllers among strangers: `python -m studies.sender.strangers_quick CONTROLLER...`, half a minute each.

Plays some cells of the study `strangers` for 20 s each, all at once, and prints a line a row. A controller is a model's file,
an agent's name (`netbuf-gym list agents`), or a congestion control or rule (`netbuf-gym list controllers`). CUBIC and BBR are
played besides, since rows are judged against them.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from netbuf_gym.controllers import Controller
from netbuf_gym.evaluation import rollout
from netbuf_gym.leaderboard.controllers import resolve_task_controller
from netbuf_gym.training.schema import FIRST_EVALUATION_SEED
from netbuf_gym.utils import checks, scripts
from netbuf_gym.utils.tables import text_table
from studies.sender import sender_measures as measures
from studies.sender import sender_worlds as worlds
from studies.sender import strangers
from studies.sender.sender_schemes import TASK

Found = dict[str, dict[str, float]]
"""Measures of cells."""
BESIDE = ("cubic", "bbr")
"""Controllers that the others are judged beside."""
LASTS_S, LEAST_S = 20.0, 1.0
MOST_TIMES = 100
PER_ROW = {"jitter": 18, "reordering": 9, "jitter8": 9, "correlated": 9, "walk": 9, "shared": 50, "crowd": 6, "fades": 3}
USUAL_PER_ROW = 12
"""Cells of a row that are played."""


def choose_cells(row: strangers.Row, number: int) -> list[str]:
    """Return some of a row's cells, spread over all."""
    cells = row.list_cells()
    order = np.random.default_rng(len(cells)).permutation(len(cells))[:number]
    return [cells[at] for at in sorted(order)]


def play(controller: Controller, cells: Sequence[str], seed: int, duration_s: float) -> Found:
    """Play a controller in the worlds of cells and return their measures."""
    found: Found = {}
    made = {cell: strangers.make_world(cell, seed, duration_s) for cell in cells}
    for group in _group(cells, lambda cell: (made[cell].agents, made[cell].scenario.duration_s)):
        of = [made[cell] for cell in group]
        drawn = [worlds.draw_world(one, seed) for one in of]
        logs = [_HalfLog(one) for one in of]

        def keep(view: rollout.View, group: Sequence[str] = group, logs: Sequence[_HalfLog] = logs) -> None:
            log = logs[view.index]
            row = measures.measure_run(view)
            found[group[view.index]] = row | log.measure(view, row["rtt_ms"])

        watch = {index: log.sample for index, log in enumerate(logs)}
        rollout.play(controller, drawn, keep, task=TASK, watch=watch, agents=of[0].agents)
    return found


def _group(cells: Sequence[str], key: Callable[[str], object]) -> list[list[str]]:
    groups: dict[object, list[str]] = {}
    for cell in cells:
        groups.setdefault(key(cell), []).append(cell)
    return list(groups.values())


class _HalfLog:
    """Deliveries of a world's flows after the first quarter of its run.

    Args:
        made: The world.
    """

    def __init__(self, made: worlds.StudyWorld):
        self._made, self._begins_ns = made, strangers.FROM * made.scenario.duration_s * 1e9
        self._at_s, self._before = math.nan, np.zeros(len(made.scenario.flows))

    def sample(self, view: rollout.View) -> None:
        """Note what has arrived, once."""
        if self._at_s == self._at_s:
            return
        world = view.simulated
        if world.now_ns >= self._begins_ns:
            self._at_s, self._before = world.now_ns * 1e-9, np.array(world.flow_arrivals())

    def measure(self, view: rollout.View, rtt_ms: float) -> dict[str, float]:
        """Return the measures of a world that has run to its end, with this mean round trip."""
        world = view.simulated
        lasts_s = world.now_ns * 1e-9 - self._at_s
        rates = ((np.array(world.flow_arrivals()) - self._before) * 8e-6 / lasts_s).tolist()
        return strangers.measure_deliveries(self._made, rates, rtt_ms)


def summarise(found: Found, cubic: Found, bbr: Found) -> list[list[str]]:
    """Return a line for each row that was played: name, number of worlds, figures, target."""
    lines = []
    for row in strangers.ROWS.values():
        cells = [cell for cell in found if cell.startswith(f"{row.name}:")]
        if cells:
            own, beside, other = (_Figures(one, cells) for one in (found, cubic, bbr))
            said = "; ".join(_SAYING[name](own, beside, other) for name in row.measures)
            lines.append([row.name, f"{len(cells)}", said, row.target])
    return lines


class _Figures:
    """Measures of some cells, by name.

    Args:
        found: Measures.
        cells: Names of the cells.
    """

    def __init__(self, found: Found, cells: Sequence[str]):
        self._found, self._cells = found, cells

    def __getitem__(self, name: str) -> np.ndarray:
        return np.array([self._found[cell].get(name, math.nan) for cell in self._cells])

    def name_least(self, name: str) -> str:
        """Return the place of the cell with the least value."""
        return self._cells[int(np.nanargmin(self[name]))].partition(":")[2]

    def list_starved(self) -> np.ndarray:
        """Return of each cell whether a rival is starved."""
        return self["rivals_least"] < strangers.NEVER_BELOW


def _say_use(own: _Figures, cubic: _Figures, bbr: _Figures) -> str:
    over = own["use"] / bbr["use"]
    least = f"least {own['use'].min():.2f} at {own.name_least('use')}"
    of_cubic = own["use"].mean() / cubic["use"].mean()
    return (
        f"use {own['use'].mean():.2f}, {least}; of BBR's {over.mean():.2f}, least {over.min():.2f}; of CUBIC's {of_cubic:.2f}"
    )


def _say_kept(own: _Figures, cubic: _Figures, bbr: _Figures) -> str:
    worst = f"{own['rivals_keep'].min():.2f} at {own.name_least('rivals_keep')}"
    return f"rivals keep {own['rivals_keep'].mean():.2f} of fair, {worst} (beside CUBIC {cubic['rivals_keep'].mean():.2f})"


def _say_least_kept(own: _Figures, cubic: _Figures, bbr: _Figures) -> str:
    least = f"least {own['rivals_least'].min():.2f} at {own.name_least('rivals_least')}"
    starved, anyway = own.list_starved(), cubic.list_starved()
    said = f"{starved.sum()} starved, {(starved & ~anyway).sum()} of them not beside CUBIC"
    return f"{least} (beside CUBIC {cubic['rivals_least'].min():.2f}); {said}"


_SAYING: dict[str, Callable[[_Figures, _Figures, _Figures], str]] = {
    "use": _say_use,
    "rivals_keep": _say_kept,
    "rivals_least": _say_least_kept,
    "ratio": lambda own, *_: (
        f"short/long {_geometric(own['ratio']):.2f} ({own['ratio'].min():.2f} to {own['ratio'].max():.2f})"
    ),
    "share": lambda own, *_: f"share {own['share'].mean():.2f} ({own['share'].min():.2f} to {own['share'].max():.2f})",
    "jain": lambda own, cubic, _: (
        f"Jain {own['jain'].mean():.2f}, least {own['jain'].min():.2f} (CUBIC {cubic['jain'].mean():.2f})"
    ),
    "loss": lambda own, cubic, _: f"loss {100 * own['loss'].mean():.1f} % (CUBIC {100 * cubic['loss'].mean():.1f} %)",
    "standing_ms": lambda own, *_: f"standing {own['standing_ms'].mean():.1f} ms",
    "utility": lambda own, cubic, _: f"utility {own['utility'].mean():.3f} (CUBIC {cubic['utility'].mean():.3f})",
}
"""Figures of each measure in words, beside CUBIC's and BBR's in the same worlds."""


def _geometric(values: np.ndarray) -> float:
    return float(np.exp(np.log(np.maximum(values, 1e-9)).mean()))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m studies.sender.strangers_quick", description=__doc__)
    parser.add_argument("controller", nargs="+", help="a model's file, an agent's name, or a controller")
    parser.add_argument("--rows", default=",".join(strangers.ROWS), help="rows to play, with commas between")
    parser.add_argument("--seed", type=int, default=FIRST_EVALUATION_SEED, help="seed of the worlds")
    parser.add_argument("--duration", type=float, default=LASTS_S, help="longest run in seconds")
    parser.add_argument("--times", type=int, default=1, help="how many times as many cells")
    given = parser.parse_args(argv)
    unknown = [name for name in given.rows.split(",") if name not in strangers.ROWS]
    if unknown:
        parser.error(f"--rows has {unknown[0]!r}; valid: {', '.join(strangers.ROWS)}")
    times = checks.integer("--times", given.times, 1, MOST_TIMES)
    seed = checks.integer("--seed", given.seed, 0, 2**63 - 1)
    duration_s = checks.number("--duration", given.duration, LEAST_S, strangers.LASTS_S)
    cells = [
        cell
        for name in given.rows.split(",")
        for cell in choose_cells(strangers.ROWS[name], times * PER_ROW.get(name, USUAL_PER_ROW))
    ]
    words = dict.fromkeys((*BESIDE, *given.controller))
    controllers = {word: resolve_task_controller(word, TASK, "the study of strangers") for word in words}
    known: dict[str, Found] = {}
    took_s: dict[str, float] = {}
    for word, controller in controllers.items():
        begun = time.perf_counter()
        known[word] = play(controller, cells, seed, duration_s)
        took_s[word] = time.perf_counter() - begun
        for one in [one for one in took_s if one in given.controller and len(known) >= len(BESIDE)]:
            print(f"\n{one}: {len(cells)} worlds in {took_s.pop(one):.0f} s")
            print(text_table(["row", "worlds", "figures", "target"], summarise(known[one], *(known[cc] for cc in BESIDE))))
    return 0


if __name__ == "__main__":
    scripts.run("strangers_quick", main)
