"""Runs ns-3 over the cells of explicit congestion notification and LEDBAT and writes them as CSV: `python marks.py PROGRAM OUT
[JOBS]`.

PROGRAM is `marks` as README.md builds it. The cells are told from nothing but this file.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

COMMAND = "# tools/ns3/marks.py marks tests/data/ns3_marks.csv: ns-3.44 (wheel ns3==3.44.post0)"


def dctcp() -> Iterator[dict]:
    """Flows alike at a queue that marks from one length on."""
    for rate, rtt, mark, span_s in ((10, 20, 10, 20), (50, 10, 20, 8), (100, 6, 30, 5), (100, 10, 65, 5)):
        for flows in (1, 2, 4):
            world = {"rate": rate, "rtt": rtt, "mark": mark, "buffer": 500, "T": span_s, "warm": span_s / 4}
            yield {"label": "dctcp", "cc": "Dctcp", "N": flows, "qdisc": "Step", "ecn": 1, **world}


def classic() -> Iterator[dict]:
    """RFC 3168 at CoDel and at a queue that marks from one length on."""
    for rate, rtt, span_s in ((10, 40, 40), (20, 80, 40), (50, 20, 15)):
        for cc in ("LinuxReno", "Cubic"):
            world = {"cc": cc, "rate": rate, "rtt": rtt, "buffer": 1000, "ecn": 1, "T": span_s, "warm": span_s / 4}
            for flows in (1, 4):
                yield {"label": "codel_marks", "N": flows, "qdisc": "CoDel", **world}
                yield {"label": "step_marks", "N": flows, "qdisc": "Step", "mark": max(10, round(rate * rtt / 24)), **world}


def ledbat() -> Iterator[dict]:
    """LEDBAT alone, and two of them, in a queue that holds more than its target."""
    for flows in (1, 2):
        yield {"label": "ledbat", "cc": "Ledbat", "N": flows, "rate": 10, "rtt": 40, "buffer": 208, "T": 60, "warm": 30}


def main(program: str, out: str, jobs: int) -> None:
    def run(options: dict) -> str:
        arguments = [f"--{name}={value}" for name, value in options.items()]
        return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout.strip()

    with ThreadPoolExecutor(jobs) as pool:
        rows = list(pool.map(run, [*dctcp(), *classic(), *ledbat()]))
    temporary = Path(f"{out}.part")
    temporary.write_text("\n".join([COMMAND, run({"header": 1}), *rows, ""]))
    temporary.replace(out)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1)
