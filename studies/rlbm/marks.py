"""Marks in place of drops: the same contenders where congested queues drop packets, at either end, and where they mark.

    python -m studies.rlbm.marks [worlds=200] [contenders=naive,brief_pulse,...] [threads=N] [output=FILE]

Worlds are those of `rlbm/random` with senders that speak ECN (RFC 3168), under seeds from 2000000 on, which neither training
nor choosing has seen. Rules decide every 10 ms, an agent at the interval that it was trained for. What meets a queue that may
not grow is dropped on arrival (`tail`), or the oldest packet is (`head`), or it is stored and marked (`mark`), up to the end of
the buffer; SYNs do not speak ECN, and are dropped. A figure is the geometric mean over worlds of the 99th percentile of the
slowdown of priority 0; its ratio to the same contender's with drops at the tail has a 95 % interval, paired by world. Drops
are means over worlds.

Writes a table (FILE, by default studies/rlbm/marks.csv) and prints it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import scripts, stats, tasks
from netbuf_gym.arguments import whole
from netbuf_gym.contenders import Contender
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.files import write_atomic
from netbuf_gym.progress import say
from netbuf_gym.rollout import contender_of, evaluate
from netbuf_gym.tables import csv_table
from netbuf_gym.tasks.pages import markdown_table
from netbuf_gym.tasks.queue_threshold import QueueThreshold
from netbuf_gym.version import __version__
from studies.rlbm.families import agent_of

PLACES: dict[str, dict[str, str]] = {
    "tail": {"drop": "tail"},
    "head": {"drop": "head"},
    "mark": {"congested": "mark"},
}
"""What becomes of packets of a queue that may not grow, as the scenario says it."""

CONTENDERS = ("naive", "limits:20", "brief_pulse", f"{QueueThreshold.name}/ppo", f"{QueueThreshold.name}/ppo-10ms")
INTERVAL_S = 0.01
FIRST_SEED = 2_000_000
MEANS = ("goodput_mbps", "drops")
TABLE = Path(__file__).resolve().parent / "marks.csv"
COLUMNS = (
    *("contender", "place", "slowdown_p99_p0", "over_tail", "over_tail_low", "over_tail_high", "goodput_over_tail"),
    *("drops", "worlds"),
)


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns 0.

    Raises:
        ConfigError: an argument that is unknown or out of range.
        CheckpointError: an agent that cannot be read, or is of another task.
        OSError: the table cannot be written.
    """
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    known = {"worlds": "200", "contenders": ",".join(CONTENDERS), "threads": str(len(os.sched_getaffinity(0)))}
    given = scripts.given(argv, known | {"output": str(TABLE)})
    worlds, threads = (whole(name, scripts.number(given[name]), low, 100_000) for name, low in (("worlds", 2), ("threads", 1)))
    names = given["contenders"].split(",")
    if len(set(names)) < len(names):
        raise ConfigError(f"contenders = {shown(given['contenders'])} has one of them twice; valid: each once")
    contenders = {name: _contender(name) for name in names}
    output = scripts.to_write("output", given["output"])

    rows: list[dict[str, Any]] = []
    for name, contender in contenders.items():
        played = {}
        for place, asked in PLACES.items():
            say(f"{name}: {place}")
            spec, seeds = {"name": "rlbm/random", "ecn": True, **asked}, range(FIRST_SEED, FIRST_SEED + worlds)
            played[place] = evaluate(contender, QueueThreshold.name, spec, seeds, threads=threads, interval_s=INTERVAL_S)
        rows += [{"contender": name, "place": place, **_row(played[place], played["tail"])} for place in PLACES]
    command = f"python -m studies.rlbm.marks worlds={worlds} contenders={given['contenders']}"
    write_atomic(output, csv_table(COLUMNS, rows, f"netbuf-gym {__version__}: {command}"))
    header = ("contender", "place", "slowdown", "over drops at the tail", "goodput", "drops")
    print(markdown_table(header, [_line(row) for row in rows]))
    return 0


def _contender(name: str) -> Contender:
    known = name in tasks.get(QueueThreshold.name).contenders
    return contender_of(name, QueueThreshold.name) if known else agent_of("contenders", name)


def _row(own: Sequence[dict[str, Any]], tail: Sequence[dict[str, Any]]) -> dict[str, float]:
    logs = [np.log([one["slowdown_p99_p0"] for one in reports]) for reports in (own, tail)]
    there = np.isfinite(logs[0]) & np.isfinite(logs[1])
    ratio = map(float, np.exp(stats.mean_interval((logs[0] - logs[1])[there])))
    delivered, drops = ([float(np.mean([one[key] for one in reports])) for reports in (own, tail)] for key in MEANS)
    values = (float(np.exp(logs[0][there].mean())), *ratio, delivered[0] / delivered[1], drops[0], int(there.sum()))
    return dict(zip(COLUMNS[2:], values, strict=True))


def _line(row: dict[str, Any]) -> list[str]:
    ratio = f"{row['over_tail']:.3f} [{row['over_tail_low']:.3f}, {row['over_tail_high']:.3f}]"
    own = [row["contender"], row["place"], f"{row['slowdown_p99_p0']:.3f}", ratio]
    return [*own, f"{100 * (row['goodput_over_tail'] - 1):+.2f} %", f"{row['drops']:,.0f}"]


if __name__ == "__main__":
    scripts.run("marks", main)
