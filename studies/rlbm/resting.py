"""What each setting of the rule `brief_pulse` is worth that the package's agents begin with.

    python -m studies.rlbm.resting [interval_s=0.1|0.01] [worlds=100] [threads=N] [output=FILE]

The agent that decides every 100 ms begins with `RESTING`, that of 10 ms with `SPARING`. Beside it stand the rule's own
settings and `SETTINGS`, most of them with one thing undone at a time, in the worlds of all `families` on seeds of validation,
with drops at the tail and at the head. A figure is the ratio of the 99th percentile of the slowdown of priority 0 to that of
the rule's own settings, geometric means with 95 % intervals, paired by world: over all families, each of which counts alike,
on `rlbm/random`, and in incast.

Writes a table (FILE, by default resting.csv or sparing.csv in studies/rlbm) and prints it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import scripts
from netbuf_gym.arguments import choice, whole
from netbuf_gym.files import write_atomic
from netbuf_gym.progress import say
from netbuf_gym.rollout import evaluate
from netbuf_gym.scenarios.switches import DROPS
from netbuf_gym.tables import csv_table
from netbuf_gym.tasks.pages import markdown_table
from netbuf_gym.tasks.queue_threshold import BriefPulse, QueueThreshold
from netbuf_gym.version import __version__
from studies.rlbm.families_table import Found, Measured, together
from studies.rlbm.tune_limits import FAMILIES

RESTING: dict[str, Any] = {"tail_ms": 17, "head_ms": 10, "bursts": 1, "head_rest_ms": 20, "many": 4, "shut_flows": 1}
SPARING: dict[str, Any] = {"tail_ms": 18, "head_ms": 11.4, "shut_ms": 3, "bursts": 1, "bursts_from": 5, "shut_flows": 2}
"""Found by trials in worlds of training."""

OWN, ALL = "the rule's own settings", "all of it"
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "0.1": {
        OWN: {},
        ALL: RESTING,
        "queue 0 rests open": RESTING | {"head_rest_ms": 1000},
        "bursts are not remembered": RESTING | {"many": 100},
        "long flows go on beside short ones": RESTING | {"shut_flows": None},
        "own targets": RESTING | {"tail_ms": 20, "head_ms": 15, "bursts": 0},
        "limited at the tail, too": RESTING | {"tail_rest_ms": 50},
    },
    "0.01": {
        OWN: {},
        ALL: SPARING,
        "targets grow with every start": SPARING | {"bursts_from": 0},
        "targets do not grow": SPARING | {"bursts": 0},
        "long flows go on beside short ones": SPARING | {"shut_flows": None, "shut_ms": 5},
        "own targets": SPARING | {"tail_ms": 20, "head_ms": 15},
    },
}
"""By the time between decisions in s."""

HERE = Path(__file__).resolve().parent
TABLES = {"0.1": "resting.csv", "0.01": "sparing.csv"}
FIRST_SEED = 900_000
SHOWN = ("random", "incast")
COLUMNS = ("drop", "settings", *(f"{what}{end}" for what in ("all", *SHOWN) for end in ("", "_low", "_high")), "goodput")


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns 0.

    Raises:
        ConfigError: an argument that is unknown or out of range.
        OSError: the table cannot be written.
    """
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    known = {"interval_s": "0.1", "worlds": "100", "threads": str(len(os.sched_getaffinity(0))), "output": ""}
    given = scripts.given(argv, known)
    apart = choice("interval_s", given["interval_s"], SETTINGS)
    interval_s, settings = float(apart), SETTINGS[apart]
    worlds, threads = (whole(name, scripts.number(given[name]), low, 100_000) for name, low in (("worlds", 2), ("threads", 1)))
    output = scripts.to_write("output", given["output"] or str(HERE / TABLES[apart]))

    seeds = range(FIRST_SEED, FIRST_SEED + worlds)
    found: Found = {}
    for drop in DROPS:
        for name, values in settings.items():
            say(f"{drop}: {name}")
            for family, spec in FAMILIES.items():
                world, rule = {**spec, "drop": drop}, BriefPulse(**values)
                reports = evaluate(rule, QueueThreshold.name, world, seeds, threads=threads, interval_s=interval_s)
                figures = (np.array([one[key] for one in reports], float) for key in ("slowdown_p99_p0", "goodput_mbps"))
                found[drop, family, name] = Measured(*figures)
    rows = [_row(found, drop, name) for drop in DROPS for name in settings]
    words = f"worlds={worlds}" if apart == known["interval_s"] else f"interval_s={apart} worlds={worlds}"
    command = f"python -m studies.rlbm.resting {words}"
    write_atomic(output, csv_table(COLUMNS, rows, f"netbuf-gym {__version__}: {command}"))
    print(markdown_table(("drop", "settings", "all families", *SHOWN, "goodput"), [_line(row) for row in rows]))
    return 0


def _row(found: Found, drop: str, name: str) -> dict[str, Any]:
    """Of `COLUMNS`; goodput is all families' over that of the rule's own settings."""
    beside = (found[drop, family, name].over(found[drop, family, OWN]) for family in SHOWN)
    ratios = [value for interval in (together(found, drop, name, OWN), *beside) for value in interval]
    goodput = np.mean([found[drop, family, name].goodput_over(found[drop, family, OWN]).mean for family in FAMILIES])
    return dict(zip(COLUMNS, (drop, name, *ratios, float(goodput)), strict=True))


def _line(row: dict[str, Any]) -> list[str]:
    ratios = (f"{row[one]:.3f} [{row[f'{one}_low']:.3f}, {row[f'{one}_high']:.3f}]" for one in ("all", *SHOWN))
    return [row["drop"], row["settings"], *ratios, f"{100 * (row['goodput'] - 1):+.2f} %"]


if __name__ == "__main__":
    scripts.run("resting", main)
