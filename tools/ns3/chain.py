"""Runs ns-3 over chains of links and writes the cells as CSV: `python chain.py PROGRAM OUT [JOBS]`.

PROGRAM is `chain` as README.md builds it. The cells are told from nothing but this file.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

COMMAND = "# tools/ns3/chain.py chain tests/data/ns3_chains.csv: ns-3.44 (wheel ns3==3.44.post0)"
SLOW_STEPS = "0:80;2:160;4:40;6:200;8:90;10:300;12:60"
"""A cell of a mobile network: s:Mbit/s."""


def make_fast_steps(count: int = 100) -> str:
    """Return a rate every 100 ms, 20 to 290 Mbit/s, by a linear congruence."""
    state, steps = 7, []
    for i in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        steps.append(f"{i / 10:g}:{20 + state // 65536 % 28 * 10}")
    return ";".join(steps)


def chains() -> Iterator[dict]:
    """Long flows and others over each link, of equal and of unequal rates."""
    for stagger in (0, 0.1):
        yield {"label": "hops", "rates": "10;10;10", "stagger": stagger}
    for cc in ("NewReno", "LinuxReno"):
        yield {"label": "hops", "rates": "10;10;10", "stagger": 0.1, "cc": cc}
    yield {"label": "hops", "rates": "10;10;10;10", "stagger": 0.1}
    yield {"label": "hops", "rates": "10;10;10;10", "stagger": 0.1, "cc": "NewReno"}
    yield {"label": "hops", "rates": "5;5;5", "buffer": 20}
    yield {"label": "hops", "rates": "20;20", "buffer": 70, "rtt": 34, "stagger": 0.3}
    yield {"label": "hops", "rates": "10;10;10", "accessMs": 0, "stagger": 0.1}
    yield {"label": "hops", "rates": "10;10.1;10", "stagger": 0.1}


def schedules() -> Iterator[dict]:
    """A rate that changes while packets are sent."""
    one = {"label": "schedule", "rates": "80", "cross": 0, "rtt": 40}
    for cc in ("Cubic", "NewReno", "LinuxReno"):
        yield {**one, "cc": cc, "buffer": 300, "steps": SLOW_STEPS, "T": 16, "warm": 4}
        yield {**one, "cc": cc, "buffer": 120, "steps": make_fast_steps(), "T": 10, "warm": 2}


def controls() -> Iterator[dict]:
    """BBR and Vegas, which have rules of their own in ns-3."""
    one = {"cross": 0, "T": 20, "warm": 5}
    for buffer in (15, 60, 300):
        yield {**one, "label": "bbr", "cc": "Bbr", "rates": "20", "rtt": 40, "buffer": buffer, "T": 9}
        yield {**one, "label": "bbr", "cc": "Bbr", "rates": "20", "rtt": 40, "buffer": buffer, "T": 30}
    yield {**one, "label": "bbr", "cc": "Bbr", "rates": "10", "rtt": 80, "buffer": 40}
    yield {**one, "label": "bbr", "cc": "Bbr", "rates": "10", "rtt": 40, "buffer": 80, "flows": 2, "stagger": 1}
    for flows, rate, rtt, buffer in ((1, 10, 40, 60), (2, 10, 40, 60), (2, 10, 40, 8), (3, 20, 60, 100)):
        yield {**one, "label": "vegas", "cc": "Vegas", "flows": flows, "rates": str(rate), "rtt": rtt, "buffer": buffer,
               "stagger": 0.1}  # fmt: skip


def main() -> None:
    """Run all cells and write them."""
    program, out = sys.argv[1:3]
    jobs = int(sys.argv[3]) if len(sys.argv) > 3 else 1

    def run(options: dict) -> str:
        command = [program, *(f"--{name}={value}" for name, value in options.items())]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    with ThreadPoolExecutor(jobs) as pool:
        rows = list(pool.map(run, [*chains(), *schedules(), *controls()]))
    Path(out).write_text("".join([COMMAND, "\n", run({"header": 1}), *rows]))


if __name__ == "__main__":
    main()
