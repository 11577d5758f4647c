"""What each part of the rule `brief_pulse` does to which senders: its cuts of queue 0, and the closing of the further queues.

    python -m studies.rlbm.parts [worlds=100] [cc=cubic,bbr] [interval_s=0.01] [output=FILE]

Worlds are those of `rlbm/random` with one congestion control, on seeds of validation, with drops at the tail and at the head.
A figure is the geometric mean over worlds of the 99th percentile of the slowdown of priority 0; its ratio to the naive buffer's
has a 95 % interval, paired by world. Drops and ping (one way) are means over worlds.

Writes a table (FILE, by default studies/rlbm/parts.csv) and prints it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import scripts, stats
from netbuf_gym.arguments import choice, real, whole
from netbuf_gym.contenders import Contender
from netbuf_gym.files import write_atomic
from netbuf_gym.progress import say
from netbuf_gym.rollout import evaluate
from netbuf_gym.scenarios.catalogue import sender_controls
from netbuf_gym.scenarios.switches import DROPS
from netbuf_gym.tables import csv_table
from netbuf_gym.tasks.congestion_window.families import NO_RIVAL
from netbuf_gym.tasks.pages import markdown_table
from netbuf_gym.tasks.queue_threshold import BriefPulse, QueueThreshold
from netbuf_gym.version import __version__
from studies.common.settings import unique

TABLE = Path(__file__).resolve().parent / "parts.csv"
FIRST_SEED = 900_000
NEVER_MS = 1000.0
"""A target so high that no queue is cut."""
COLUMNS = ("drop", "cc", "contender", "slowdown_p99_p0", "over_naive", "over_naive_low", "over_naive_high", "drops", "ping_ms")


def contenders() -> dict[str, str | Contender]:
    """The naive buffer, the rule, and each of its parts alone."""
    return {
        "naive": "naive",
        "brief_pulse": BriefPulse(),
        "cuts alone": BriefPulse(shut_ms=None),
        "closing alone": BriefPulse(tail_ms=NEVER_MS, head_ms=NEVER_MS),
    }


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns 0.

    Raises:
        ConfigError: an argument that is unknown or out of range.
        OSError: the table cannot be written.
    """
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    known = {"worlds": "100", "cc": "cubic,bbr", "interval_s": "0.01", "output": str(TABLE)}
    given = scripts.given(argv, known)
    worlds = whole("worlds", scripts.number(given["worlds"]), 2, 100_000)
    interval_s = real("interval_s", scripts.number(given["interval_s"]), 1e-3, 10)
    valid = [name for name in sender_controls("linux") if name not in NO_RIVAL]
    ccs = unique("cc", [choice("cc", name, valid) for name in given["cc"].split(",")])
    output = scripts.to_write("output", given["output"])

    rows: list[dict[str, Any]] = []
    for drop in DROPS:
        for cc in ccs:
            naive = None
            for name, contender in contenders().items():
                say(f"{drop} {cc}: {name}")
                spec, seeds = {"name": "rlbm/random", "cc": [cc], "drop": drop}, range(FIRST_SEED, FIRST_SEED + worlds)
                reports = evaluate(contender, QueueThreshold.name, spec, seeds, interval_s=interval_s)
                own = np.log([one["slowdown_p99_p0"] for one in reports])
                naive = own if naive is None else naive
                there = np.isfinite(own) & np.isfinite(naive)
                means = [float(np.mean([one[key] for one in reports])) for key in ("drops", "probe_delay_mean_ms")]
                ratio = np.exp(stats.mean_interval((own - naive)[there]))
                values = (drop, cc, name, float(np.exp(own[there].mean())), *map(float, ratio), *means)
                rows.append(dict(zip(COLUMNS, values, strict=True)))
    command = f"python -m studies.rlbm.parts worlds={worlds} cc={','.join(ccs)} interval_s={interval_s:g}"
    write_atomic(output, csv_table(COLUMNS, rows, f"netbuf-gym {__version__}: {command}"))
    header = ("drop", "senders", "contender", "slowdown", "over naive", "drops", "ping (ms)")
    print(markdown_table(header, [_line(row) for row in rows]))
    return 0


def _line(row: dict[str, Any]) -> list[str]:
    ratio = f"{row['over_naive']:.3f} [{row['over_naive_low']:.3f}, {row['over_naive_high']:.3f}]"
    own = [row["drop"], row["cc"], row["contender"], f"{row['slowdown_p99_p0']:.3f}"]
    return [*own, ratio, f"{row['drops']:,.0f}", f"{row['ping_ms']:.2f}"]


if __name__ == "__main__":
    scripts.run("parts", main)
