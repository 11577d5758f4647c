"""Why marks cost goodput where drops do not: a queue that has grown past its limit is answered twice.

    python -m studies.rlbm.marks_twice [worlds=100] [threads=N] [output=FILE]

A marked packet stays in the queue: the first packets that its sender sends after giving way find the queue as long
as before, and are marked too. They are of the next window, and so are answered anew (RFC 3168, 6.1.2: once a window of
data): Linux' `tcp_fastretrans_alert` leaves the state CWR and enters it again at the same ACK, as ns-3's
`TcpSocketBase::ReceivedAck` does. A row is a congestion control that keeps a share of its window each time it gives
way: its own, and the square root of that, so that two answers come to one.

* One flow without end through a switch whose queue is limited to 20 ms, with drops and with marks: its least window
  over its greatest, and its goodput, after the start.
* Worlds of `rlbm/random` with this control alone, under the rule `limits:20` every 10 ms: mean goodput with drops at
  the tail and with marks, on seeds of `python -m studies.rlbm.marks`.

Writes a table (FILE, by default studies/rlbm/marks_twice.csv) and prints it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import scripts
from netbuf_gym.arguments import whole
from netbuf_gym.files import write_atomic
from netbuf_gym.progress import say
from netbuf_gym.rollout import contender_of, evaluate
from netbuf_gym.scenarios import Flow, Link, Scenario, Switch
from netbuf_gym.scenarios.catalogue import CONGESTION_CONTROLS
from netbuf_gym.scenarios.switches import StaticThresholds
from netbuf_gym.simulation import simulate
from netbuf_gym.tables import csv_table
from netbuf_gym.tasks.pages import markdown_table
from netbuf_gym.tasks.queue_threshold import QueueThreshold
from netbuf_gym.version import __version__
from studies.rlbm.marks import FIRST_SEED, INTERVAL_S, PLACES

CONTROLS = ("cubic", "newreno")
DROPS, MARKS = "tail", "mark"
"""Of `PLACES`."""
RATE_MBPS, DELAY_MS, LIMIT_PACKETS = 10.0, 10.0, 17
"""The switch of `rlbm/default`, and 20 ms of full packets."""
DURATION_S, WARM_S, SAMPLE_S = 120.0, 20.0, 0.01
TABLE = Path(__file__).resolve().parent / "marks_twice.csv"
COLUMNS = (
    *("cc", "keeps", "window_drop", "window_mark", "alone_drop_mbps", "alone_mark_mbps"),
    *("goodput_drop_mbps", "goodput_mark_mbps", "worlds"),
)


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns 0.

    Raises:
        ConfigError: an argument that is unknown or out of range.
        OSError: the table cannot be written.
    """
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    known = {"worlds": "100", "threads": str(len(os.sched_getaffinity(0))), "output": str(TABLE)}
    given = scripts.given(argv, known)
    worlds, threads = (whole(name, scripts.number(given[name]), 1, 100_000) for name in ("worlds", "threads"))
    output = scripts.to_write("output", given["output"])

    rows: list[dict[str, Any]] = []
    for name in CONTROLS:
        for keeps in (_share(name), math.sqrt(_share(name))):
            say(f"{name} keeps {keeps:.3g}")
            cc = {"name": name, "beta": keeps}
            windows, alone = zip(*(lone_flow(cc, place) for place in (DROPS, MARKS)), strict=True)
            goodput = [_goodput_mbps(cc, place, worlds, threads) for place in (DROPS, MARKS)]
            rows.append(dict(zip(COLUMNS, (name, keeps, *windows, *alone, *goodput, worlds), strict=True)))
    command = f"python -m studies.rlbm.marks_twice worlds={worlds}"
    write_atomic(output, csv_table(COLUMNS, rows, f"netbuf-gym {__version__}: {command}"))
    header = ("senders", "keep", "window: drops", "marks", "one flow: drops", "marks", "worlds: marks over drops")
    print(markdown_table(header, [_line(row) for row in rows]))
    return 0


def lone_flow(cc: str | dict[str, Any], place: str) -> tuple[float, float]:
    """One flow without end through a limited queue, with drops or marks: its least window over its greatest, and its
    goodput in Mbit/s, both after `WARM_S`."""
    links = (Link(name="port", rate_mbps=RATE_MBPS, delay_ms=DELAY_MS), Link(name="back", delay_ms=DELAY_MS))
    limit = StaticThresholds(limits=(LIMIT_PACKETS,))
    switch = Switch(ports=("port",), queues=1, buffer_packets=1000, admission=limit, **PLACES[place])
    flow = Flow(cc=cc, path=("port",), return_path=("back",), ecn=True)
    world = Scenario(links=links, flows=(flow,), switches=(switch,), duration_s=DURATION_S)
    result = simulate(world, warmup_s=WARM_S, sample_interval_s=SAMPLE_S)
    window = result.series["cwnd_packets"][result.series["time_s"] > WARM_S, 0]
    return float(window.min() / window.max()), result.flows[0].goodput_mbps


def _share(name: str) -> float:
    """What a control keeps of its window."""
    return next(float(one.default) for one in CONGESTION_CONTROLS[name].parameters if one.name == "beta")


def _goodput_mbps(cc: dict[str, Any], place: str, worlds: int, threads: int) -> float:
    """The mean over worlds."""
    spec = {"name": "rlbm/random", "ecn": True, "cc": [cc], **PLACES[place]}
    seeds = range(FIRST_SEED, FIRST_SEED + worlds)
    rule = contender_of("limits:20", QueueThreshold.name)
    reports = evaluate(rule, QueueThreshold.name, spec, seeds, threads=threads, interval_s=INTERVAL_S)
    return float(np.mean([one["goodput_mbps"] for one in reports]))


def _line(row: dict[str, Any]) -> list[str]:
    alone = [f"{row[f'alone_{what}_mbps']:.2f}" for what in ("drop", "mark")]
    windows = [f"{row[f'window_{what}']:.2f}" for what in ("drop", "mark")]
    over = row["goodput_mark_mbps"] / row["goodput_drop_mbps"] - 1
    return [row["cc"], f"{row['keeps']:.2f}", *windows, *alone, f"{100 * over:+.2f} %"]


if __name__ == "__main__":
    scripts.run("marks_twice", main)
