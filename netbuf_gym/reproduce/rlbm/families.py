"""Agents of the switch, rules, the best constant limits and what bounds them, family by family, in the same worlds.

    python -m netbuf_gym.reproduce.rlbm.families [worlds=600] [families=A,B] [drops=tail,head] [slow=AGENT] [fast=AGENT]
        [rules=true|false] [threads=N] [duration_s=60] [output=FILE] [figure=FILE]

Worlds are those of the seeds 2000000, 2000001, ..., which neither training nor choosing has seen. `slow` decides every 100 ms
and `fast` every 10 ms, each a model's file or the name of an agent (queue_threshold/ppo and queue_threshold/ppo-10ms; an empty
value: none). Beside them stand the naive buffer, the constant limits that `tune_limits` found best for the family and the drop
place, FQ-CoDel, which has a queue for each flow and drops as it does, and, but for `rules=false`, the rules `brief_pulse` at
both intervals, that of 10 ms with the settings that `tune_pulse` found as well, and `pulse` every 10 ms.

A figure is the geometric mean over worlds of the 99th percentile of the slowdown of priority 0; its ratios to the naive
buffer, to the best constant and to FQ-CoDel have 95 % intervals, paired by world. Goodput is over the naive buffer's. Below the
table stand the agents' geometric means over all its families, each of which counts alike (their intervals are over worlds), and
where an agent is worse than the naive buffer by more than 3 %.

Writes a table (FILE, by default netbuf_gym/reproduce/rlbm/families.csv), a row as soon as it is known; another run with as many
worlds takes it up from there: take out the rows of an agent that has changed. `figure` draws what the table has.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import scripts, stats, tasks
from netbuf_gym.arguments import choice, real, whole
from netbuf_gym.contenders import Contender
from netbuf_gym.errors import ConfigError, needing, shown
from netbuf_gym.files import write_atomic
from netbuf_gym.progress import say
from netbuf_gym.reproduce.rlbm import tune_pulse
from netbuf_gym.reproduce.rlbm.tune_limits import FAMILIES, LEAST_GOODPUT, best, table_rows
from netbuf_gym.rollout import evaluate
from netbuf_gym.scenarios.switches import DROPS
from netbuf_gym.tables import csv_table, read_table
from netbuf_gym.tasks.pages import markdown_table
from netbuf_gym.tasks.queue_threshold import BriefPulse, Limits, Pulse, QueueThreshold
from netbuf_gym.version import __version__

FIRST_SEED = 2_000_000
TABLE = Path(__file__).resolve().parent / "families.csv"
RIVALS = ("naive", "constant", "fq_codel")
"""Whom ratios are over."""
RATIOS = tuple(f"over_{rival}{end}" for rival in RIVALS for end in ("", "_low", "_high"))
MEASURED = ("slowdown_p99_p0", *RATIOS, "goodput_over_naive", "worlds")
COLUMNS = ("drop", "family", "contender", *MEASURED)
NAIVE, CONSTANT, FAIR, SLOW, FAST = "naive", "best constant", "fq_codel", "agent, 100 ms", "agent, 10 ms"
SEARCHED = "searched pulse, 10 ms"
"""The rule `brief_pulse` with the settings that `tune_pulse` has found."""
WORSE = 1.03
"""A ratio to the naive buffer above which an agent is worse."""
INTERVALS_S = {
    SLOW: 0.1,
    FAST: 0.01,
    "brief_pulse, 100 ms": 0.1,
    "brief_pulse, 10 ms": 0.01,
    SEARCHED: 0.01,
    "pulse, 10 ms": 0.01,
    CONSTANT: 0.1,
    FAIR: 0.1,
}
"""Of what is set beside the naive buffer, in the order of the table."""
TICKS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.2, 1.5, 2, 3)
"""Where the plot's axis has numbers."""


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns 0.

    Raises:
        ConfigError: an argument that is unknown or out of range; a table of another version, or of other worlds.
        CheckpointError: an agent that cannot be read, or does not fit.
        OSError: a file cannot be written.
    """
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    words = {"worlds": "600", "threads": str(len(os.sched_getaffinity(0))), "duration_s": "60", "figure": ""}
    words |= {"output": str(TABLE), "slow": f"{QueueThreshold.name}/ppo", "fast": f"{QueueThreshold.name}/ppo-10ms"}
    words |= {"families": ",".join(FAMILIES), "drops": ",".join(DROPS), "rules": "true"}
    given = scripts.given(argv, words)
    worlds, threads = (whole(name, scripts.number(given[name]), low, 100_000) for name, low in (("worlds", 2), ("threads", 1)))
    duration_s = real("duration_s", scripts.number(given["duration_s"]), 1, 3600)
    families = [choice("families", name, FAMILIES) for name in given["families"].split(",")]
    drops = [choice("drops", name, DROPS) for name in given["drops"].split(",")]
    beside = INTERVALS_S if choice("rules", given["rules"], ("true", "false")) == "true" else (CONSTANT, FAIR)
    agents = {who: agent_of(key, given[key]) for who, key in ((SLOW, "slow"), (FAST, "fast")) if given[key]}
    if given["figure"]:
        _require_drawable(Path(given["figure"]))

    output = Path(given["output"])
    command = f"python -m netbuf_gym.reproduce.rlbm.families worlds={worlds} duration_s={duration_s:g}"
    comment = f"netbuf-gym {__version__}: {command}"
    found = read(output, comment)
    write_atomic(output, csv_table(COLUMNS, found.values(), comment))  # refuses what could not be written before the work
    for drop in drops:
        for family in families:
            known: dict[str, tuple[np.ndarray, float]] = {}
            for who in (NAIVE, CONSTANT, *INTERVALS_S):
                wanted = who in agents if who in (SLOW, FAST) else who == NAIVE or who in beside
                if not wanted or (drop, family, who) in found:
                    continue
                for needed in dict.fromkeys((NAIVE, CONSTANT, FAIR, who)):
                    if needed not in known:
                        say(f"{drop} {family}: {needed}")
                        spec = {**FAMILIES[family], "drop": drop, "duration_s": duration_s}
                        known[needed] = _measure(needed, agents, drop, family, spec, worlds, threads)
                row = _row(known[who], known[NAIVE], known[CONSTANT], known[FAIR])
                found[drop, family, who] = {"drop": drop, "family": family, "contender": who, **row}
                write_atomic(output, csv_table(COLUMNS, _in_order(found), comment))
    rows = [row for row in _in_order(found) if row["drop"] in drops and row["family"] in families]
    header = ("drop", "family", "contender", "slowdown", "over naive", "over constant", "over FQ-CoDel", "goodput")
    print(markdown_table(header, [_line(row) for row in rows]))
    print(*summary(rows), sep="\n")
    if given["figure"]:
        draw(rows, Path(given["figure"]))
    return 0


def read(path: Path, comment: str) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The rows of a table that another run has left, by drop place, family and contender; none where there is no file.

    Raises:
        ConfigError: as `read_table`.
    """
    words = {"drop": DROPS, "family": FAMILIES, "contender": (NAIVE, CONSTANT, *INTERVALS_S)}
    kinds = {**dict.fromkeys(COLUMNS, float), **words, "worlds": int}
    return {(row["drop"], row["family"], row["contender"]): row for row in read_table(path, comment, kinds)}


def summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Markdown: what each agent's ratios are over all families of a drop place together, and where it is worse than naive."""
    lines = []
    for drop, who in ((drop, who) for drop in DROPS for who in (SLOW, FAST)):
        own = [row for row in rows if (row["drop"], row["contender"]) == (drop, who)]
        if len(own) > 1:
            ratios = ", ".join(f"over {rival.replace('_', '-')} {_together(own, rival)}" for rival in RIVALS)
            lines.append(f"* {who}, drops at the {drop}, {len(own)} families: {ratios}")
    worse = [row for row in rows if row["contender"] in (SLOW, FAST) and row["over_naive"] > WORSE]
    named = [f"{row['contender']}, {row['family']}, {row['drop']} ({_ratio(row, 'naive')})" for row in worse]
    lines.append(f"* Worse than the naive buffer by more than {100 * (WORSE - 1):.0f} %: {'; '.join(named) or 'nowhere'}")
    return ["", *lines]


def _together(rows: Sequence[dict[str, Any]], rival: str) -> str:
    """The geometric mean of families' ratios; its interval is that of a sum of independent means."""
    ends = np.log([[row[f"over_{rival}{end}"] for end in ("", "_low", "_high")] for row in rows])
    half = math.sqrt(((ends[:, 2] - ends[:, 1]) ** 2).sum()) / 2 / len(rows)
    mean = ends[:, 0].mean()
    return _interval(np.exp([mean, mean - half, mean + half]))


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """A picture of the ratios to the naive buffer with their intervals: a panel for each drop place, a group for each family.

    Raises:
        OSError: it cannot be written.
    """
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    from netbuf_gym.plots import COLOURS, figure_of, write

    drops, families = (list(dict.fromkeys(row[key] for row in rows)) for key in ("drop", "family"))
    figure = figure_of(10, 4 * len(drops))
    axes = figure.subplots(len(drops), 1, squeeze=False, sharex=True)
    for axis, drop in zip(axes[:, 0], drops, strict=True):
        for place, who in enumerate(INTERVALS_S):
            own = [row for row in rows if row["drop"] == drop and row["contender"] == who]
            if own:
                at = [families.index(row["family"]) + 0.11 * (place - 3) for row in own]
                middle = np.array([row["over_naive"] for row in own])
                ends = np.abs(np.array([[row["over_naive_low"], row["over_naive_high"]] for row in own]).T - middle)
                axis.errorbar(at, middle, ends, fmt="o", color=COLOURS[place], label=who, markersize=4)
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_yscale("log")
        ratios = [row[end] for row in rows for end in ("over_naive_low", "over_naive_high")]
        axis.set_yticks([tick for tick in TICKS if 0.9 * min(ratios) < tick < 1.1 * max(ratios)])
        axis.yaxis.set_major_formatter(ScalarFormatter())
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set_ylabel(f"p99 slowdown, priority 0,\nover the naive buffer's; drops at the {drop}")
        axis.set_xticks(range(len(families)), [name.replace("_", " ") for name in families])
    axes[0, 0].legend(ncols=4, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1.01))  # above what it names
    write(figure, path)


def _require_drawable(path: Path) -> None:
    """Before the work, as what would be written after it."""
    from netbuf_gym import plots

    plots.format_of(path)
    plots.require()
    if not os.access(path.parent, os.W_OK):
        raise ConfigError(f"figure = {shown(str(path))}: its folder cannot be written; valid: a file in one that can")


def agent_of(key: str, name: str) -> Contender:
    """An agent of the task by its name or file, as the argument `key` gives it.

    Raises:
        ConfigError: there is none, or it is of another task.
        CheckpointError: it cannot be read.
    """
    with needing("a trained agent", "train"):
        import torch

        from netbuf_gym.zoo import checkpoint, library
        from netbuf_gym.zoo.saved import SavedAgent
    torch.set_num_threads(1)
    saved = checkpoint.read(library.path_of(name, key))
    if (task := tasks.task_of(saved.env["id"])) != QueueThreshold.name:
        raise ConfigError(f"{key} = {shown(name)} is an agent of {task}; valid: one of {QueueThreshold.name}")
    return SavedAgent(saved)


def _contender(who: str, agents: dict[str, Contender], drop: str, family: str) -> str | Contender:
    if who in agents:
        return agents[who]
    if who == CONSTANT:
        row = best(table_rows(), drop, family, LEAST_GOODPUT)
        return Limits([row["limit_0_ms"], row["limit_1_ms"]])
    if who == SEARCHED:
        return BriefPulse(**tune_pulse.best())
    if who.startswith("brief_pulse"):
        return BriefPulse()
    return Pulse() if who.startswith("pulse") else who


def _measure(
    who: str, agents: dict[str, Contender], drop: str, family: str, spec: dict[str, Any], worlds: int, threads: int
) -> tuple[np.ndarray, float]:
    """The slowdowns of all worlds, NaN where no flow of priority 0 completed, and the mean goodput."""
    contender, seeds = _contender(who, agents, drop, family), range(FIRST_SEED, FIRST_SEED + worlds)
    interval_s = INTERVALS_S.get(who, 0.1)
    reports = evaluate(contender, QueueThreshold.name, spec, seeds, threads=threads, interval_s=interval_s)
    return np.array([one["slowdown_p99_p0"] for one in reports]), float(np.mean([one["goodput_mbps"] for one in reports]))


Known = tuple[np.ndarray, float]


def _row(own: Known, *rivals: Known) -> dict[str, float]:
    """What is measured of one, over each of `RIVALS`."""
    there = np.logical_and.reduce([np.isfinite(one[0]) for one in (own, *rivals)])
    logs = [np.log(one[0][there]) for one in (own, *rivals)]
    values = [math.exp(logs[0].mean())]
    for other in logs[1:]:
        values += np.exp(stats.mean_interval(logs[0] - other)).tolist()
    return dict(zip(MEASURED, (*values, own[1] / rivals[0][1], int(there.sum())), strict=True))


def _in_order(found: dict[tuple[str, str, str], dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows as the table has them, whenever they were measured."""
    order = (DROPS, tuple(FAMILIES), (NAIVE, CONSTANT, *INTERVALS_S))
    keys = sorted(found, key=lambda key: [names.index(one) for names, one in zip(order, key, strict=True)])
    return [found[key] for key in keys]


def _line(row: dict[str, Any]) -> list[str]:
    goodput = f"{100 * (row['goodput_over_naive'] - 1):+.2f} %"
    own = [row["drop"], row["family"], row["contender"], f"{row['slowdown_p99_p0']:.3f}"]
    return [*own, *(_ratio(row, rival) for rival in RIVALS), goodput]


def _ratio(row: dict[str, Any], rival: str) -> str:
    return _interval(row[f"over_{rival}{end}"] for end in ("", "_low", "_high"))


def _interval(ends: Iterable[float]) -> str:
    mean, low, high = ends
    return "-" if math.isnan(mean) else f"{mean:.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    scripts.run("families", main)
