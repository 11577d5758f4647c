"""Runs ns-3 over the cells of its new mechanisms and writes them as CSV: `python cells.py PROGRAM OUT [JOBS]`.

PROGRAM is `mechanisms` as README.md builds it. The cells are told from nothing but this file.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

COMMAND = "# tools/ns3/cells.py mechanisms tests/data/ns3_mechanisms.csv: ns-3.44 (wheel ns3==3.44.post0)"
WIRE_BYTES = 1502
PATHS = ((5, 200, 1), (10, 40, 0.5), (10, 60, 10), (20, 100, 2), (50, 20, 4), (100, 10, 4), (100, 120, 0.25))
"""Mbit/s, ms there and back, buffer in BDP."""
SPANS_S = {5: 24, 10: 15, 20: 10, 50: 6, 100: 5}
FEW = (PATHS[0], PATHS[1], PATHS[3])
SCHEMES = ("NewReno", "Cubic")
SEEDS = range(1, 31)  # where lots are drawn


def packets(rate: float, rtt_ms: float, share: float) -> int:
    """A buffer of so many BDP."""
    return max(4, round(share * rate * 1e3 * rtt_ms / 8 / WIRE_BYTES))


def path(rate: float, rtt_ms: float, share: float) -> dict:
    """The options of a path; faster ones are run for a shorter time."""
    span_s = SPANS_S[rate]
    return {"rate": rate, "rtt": rtt_ms, "buffer": packets(rate, rtt_ms, share), "T": span_s, "warm": span_s / 4}


def delays() -> Iterator[dict]:
    """One flow; the delay rises, falls, or changes every few seconds."""
    for one in PATHS:
        world, rtt_ms = path(*one), one[1]
        half = world["T"] / 2
        for cc in SCHEMES:
            yield {**world, "cc": cc, "label": "delay_up", "steps": f"{half:g}:{rtt_ms + 50:g}"}
            yield {**world, "cc": cc, "label": "delay_down", "steps": f"{half:g}:{max(6, 0.4 * rtt_ms):g}"}
        shares = (1.3, 0.8, 1.1, 1)
        satellites = ";".join(f"{2 * k}:{rtt_ms * shares[k % 4]:g}" for k in range(1, world["T"] // 2))
        yield {**world, "cc": "LinuxReno", "label": "delay_leo", "steps": satellites}


def jitters() -> Iterator[dict]:
    """One flow whose packets are late by chance, with and without overtaking."""
    for one in FEW:
        for cc in SCHEMES:
            for most_ms, reorder in ((1, 1), (10, 1), (10, 0)):
                label = "jitter_reorder" if reorder else "jitter_in_order"
                for seed in SEEDS:
                    yield {**path(*one), "cc": cc, "label": label, "jitter": most_ms, "reorder": reorder, "seed": seed}


def datagrams() -> Iterator[dict]:
    """A flow or two beside datagrams: constant rate, fixed periods, exponential ones; and datagrams among its ACKs."""
    for i, one in enumerate(PATHS):
        world, rate = path(*one), one[0]
        sources = ({"udp": round(0.31 * rate, 3)}, {"udp": round(0.77 * rate, 3), "udpBytes": 530, "udpStart": 1})
        for k, cc in enumerate(SCHEMES):
            yield {**world, "cc": cc, "label": "udp_constant", **sources[(i + k) % 2], "N": 1 + i % 2}
            yield {**world, "cc": cc, "label": "udp_on_off", "udp": round(0.83 * rate, 3), "udpOn": 0.7, "udpOff": 1.1}
        back = {"udpBack": 1, "backBuffer": world["buffer"], "backRate": rate / 4}
        source = {"udp": round(0.22 * rate, 3), "udpOn": 0.3, "udpOff": 0.4}
        yield {**world, "cc": "NewReno", "label": "udp_back", **source, **back}
    for cc in SCHEMES:
        for seed in SEEDS:
            source = {"udp": 6, "udpOn": 0.2, "udpOff": 0.3, "udpRandom": 1, "seed": seed}
            yield {**path(*PATHS[1]), "cc": cc, "label": "udp_random", **source}


def reverse() -> Iterator[dict]:
    """Flows both ways: data and ACKs share both queues; of one rate, or the way back 8 times slower."""
    for one in PATHS[:3]:
        world, rate = path(*one), one[0]
        for cc, flows, slower in (("NewReno", 1, 1), ("Cubic", 2, 1), ("Cubic", 1, 8)):
            back = {"backRate": rate / slower, "backBuffer": packets(rate / slower, one[1], one[2])}
            label = "reverse" if slower == 1 else "reverse_slow"
            yield {**world, "cc": cc, "label": label, "N": flows, "back": flows, **back}


def main(program: str, out: str, jobs: int) -> None:
    def run(options: dict) -> str:
        arguments = [f"--{name}={value}" for name, value in options.items()]
        return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout.strip()

    cells = [*delays(), *jitters(), *datagrams(), *reverse()]
    with ThreadPoolExecutor(jobs) as pool:
        rows = []
        for i, row in enumerate(pool.map(run, cells), 1):
            rows.append(row)
            print(f"\r{i} of {len(cells)}", end="", file=sys.stderr, flush=True)
    header = run({"header": 1})
    text = "\n".join([COMMAND, header, *rows, ""])
    temporary = Path(f"{out}.part")
    temporary.write_text(text)
    temporary.replace(out)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1)
