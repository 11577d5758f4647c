"""Runs ns-3 over cells of Wi-Fi and writes them as CSV: `python wifi.py PROGRAM OUT`.

PROGRAM is `wifi` as README.md builds it. The cells are told from nothing but this file.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

COMMAND = "# tools/ns3/wifi.py wifi tests/data/ns3_wifi.csv: ns-3.44 (wheel ns3==3.44.post0)"
STANDARDS = {"a": ("OfdmRate54Mbps", 20, 80), "n": ("HtMcs7", 20, 80), "ac": ("VhtMcs9", 80, 500), "ax": ("HeMcs11", 80, 700)}
"""Mode, MHz, Mbit/s of datagrams that saturate."""
SPAN = {"T": 6, "warm": 2}


def saturated() -> Iterator[dict]:
    """Datagrams to one station, by the size of aggregates; then beside stations that send up."""
    for standard, packets in (("a", (1,)), ("n", (1, 2, 8, 42)), ("ac", (16, 64)), ("ax", (64, 256))):
        for count in packets:
            yield {"label": "udp", **of(standard), "packets": count, **SPAN, "T": 4}
    for stations in (1, 4, 9):
        for count in (1, 16):
            for seed in (1, 2, 3):
                yield {"label": "stations", **of("n"), "packets": count, "stations": stations, "seed": seed, **SPAN}


def tcp() -> Iterator[dict]:
    """One TCP flow down, whose ACKs share the channel."""
    for cc in ("Cubic", "LinuxReno"):
        for count in (1, 8, 42):
            yield {"label": "tcp", **of("n"), "packets": count, "cc": cc, **SPAN}


def of(standard: str) -> dict:
    """The options of a standard."""
    mode, width, load = STANDARDS[standard]
    return {"standard": f"802.11{standard}", "mode": mode, "width": width, "load": load}


def main(program: str, out: str) -> None:
    """Run all cells, one after the other."""
    rows = [subprocess.run([program, "--header"], check=True, capture_output=True, text=True).stdout]
    for cell in (*saturated(), *tcp()):
        command = [program, *(f"--{name}={value}" for name, value in cell.items())]
        rows.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(rows[-1], end="", flush=True)
    Path(out).write_text(COMMAND + "\n" + "".join(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
