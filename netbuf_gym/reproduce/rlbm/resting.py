"""What each setting of the rule `brief_pulse` is worth where decisions are 100 ms apart.

    python -m netbuf_gym.reproduce.rlbm.resting [worlds=100] [threads=N] [output=FILE]

The agent of 100 ms begins with `RESTING`. Beside it stand the rule's own settings, `RESTING` with one thing undone at a
time, and with drops at the tail limited too, in the worlds of all `families` on seeds of validation, with drops at the
tail and at the head. A figure is the ratio of the 99th percentile of the slowdown of priority 0 to that of the rule's own
settings, geometric means with 95 % intervals, paired by world: over all families, each of which counts alike, on
`rlbm/random`, and in incast.

Writes a table (FILE, by default netbuf_gym/reproduce/rlbm/resting.csv) and prints it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import scripts
from netbuf_gym.arguments import whole
from netbuf_gym.files import write_atomic
from netbuf_gym.progress import say
from netbuf_gym.reproduce.rlbm.families_table import Found, Measured, together
from netbuf_gym.reproduce.rlbm.tune_limits import FAMILIES
from netbuf_gym.rollout import evaluate
from netbuf_gym.scenarios.switches import DROPS
from netbuf_gym.tables import csv_table
from netbuf_gym.tasks.pages import markdown_table
from netbuf_gym.tasks.queue_threshold import BriefPulse, QueueThreshold
from netbuf_gym.version import __version__

RESTING: dict[str, Any] = {"tail_ms": 17, "head_ms": 10, "bursts": 1, "head_rest_ms": 20, "many": 4, "shut_flows": 1}
"""Found by trials in worlds of training."""

OWN, ALL = "the rule's own settings", "all of it"
SETTINGS: dict[str, dict[str, Any]] = {
    OWN: {},
    ALL: RESTING,
    "queue 0 rests open": RESTING | {"head_rest_ms": 1000},
    "bursts are not remembered": RESTING | {"many": 100},
    "long flows go on beside short ones": RESTING | {"shut_flows": None},
    "own targets": RESTING | {"tail_ms": 20, "head_ms": 15, "bursts": 0},
    "limited at the tail, too": RESTING | {"tail_rest_ms": 50},
}

TABLE = Path(__file__).resolve().parent / "resting.csv"
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
    given = scripts.given(argv, {"worlds": "100", "threads": str(len(os.sched_getaffinity(0))), "output": str(TABLE)})
    worlds, threads = (whole(name, scripts.number(given[name]), low, 100_000) for name, low in (("worlds", 2), ("threads", 1)))
    output = scripts.to_write("output", given["output"])

    seeds = range(FIRST_SEED, FIRST_SEED + worlds)
    found: Found = {}
    for drop in DROPS:
        for name, settings in SETTINGS.items():
            say(f"{drop}: {name}")
            for family, spec in FAMILIES.items():
                reports = evaluate(BriefPulse(**settings), QueueThreshold.name, {**spec, "drop": drop}, seeds, threads=threads)
                figures = (np.array([one[key] for one in reports], float) for key in ("slowdown_p99_p0", "goodput_mbps"))
                found[drop, family, name] = Measured(*figures)
    rows = [_row(found, drop, name) for drop in DROPS for name in SETTINGS]
    command = f"python -m netbuf_gym.reproduce.rlbm.resting worlds={worlds}"
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
