"""Measured traces by family, and the windows of traces that serve as worlds.

LTE and 3G: Mahimahi's recordings (Winstein, Sivaraman and Balakrishnan, 2013; Netravali et al., 2015) and DeepCC's LTE in New
York (Abbasloo, Yen and Chao, 2019), whole milliseconds. 5G: downloads in University College Cork's data set (Raca et al.,
2020), a second each. The traces themselves are not part of the project.

A second of a download below 0.3 Mbit/s means that nothing was requested or nothing arrived, not what the link would have
carried; as a rate of 1 kbit/s it would hold a packet for seconds. So 5G is run twice, as recorded and (`5gz`) with these
seconds as outages.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path

import numpy as np

from netbuf_gym import traces
from netbuf_gym.errors import ConfigError
from netbuf_gym.traces.calibration import OUTAGE_MBPS
from netbuf_gym.traces.types import RateTrace, Trace
from netbuf_gym.traces.windows import cut_window, find_window_starts

LTE, UMTS, NR, NR_ZEROED = "lte", "3g", "5g", "5gz"
_NR = (
    "Driving_B_2020.01.16_12.10.03.txt",
    "Driving_B_2020.02.13_13.03.24.txt",
    "Driving_B_2020.02.13_15.02.01.txt",
    "Driving_B_2020.02.27_17.30.15.txt",
    "Driving_B_2020.02.27_20.35.57.txt",
    "Static_B_2020.01.16_10.43.34.txt",
    "Static_B_2020.02.13_13.57.29.txt",
    "Static_B_2020.02.27_18.39.27.txt",
)
FILES: dict[str, tuple[str, ...]] = {
    LTE: (
        "ATT-LTE-driving-2016.down",
        "ATT-LTE-driving.down",
        "TMobile-LTE-short.down",
        "TMobile-LTE-short.up",
        "Verizon-LTE-short.down",
        "Verizon-LTE-short.up",
        "trace-1552767958-taxi1",
        "trace-1552768760-taxi3",
        "trace-1552925703-home1-static",
        "trace-1553114405-bus",
        "trace-1553199718-ts-walking",
        "trace-1553201037-ts-walking",
        "trace-1553201711-ts-walking",
        "trace-1553204803-ts-walking",
    ),
    UMTS: ("TMobile-UMTS-driving.down", "TMobile-UMTS-driving.up", "Verizon-EVDO-driving.down"),
    NR: _NR,
    NR_ZEROED: _NR,
}
"""File names by family, as in their sources. The package's generator of 5G was calibrated on none of the 5G files."""
SAID = {LTE: "LTE", UMTS: "3G", NR: "5G", NR_ZEROED: "5G, below 0.3 Mbit/s an outage"}
BUFFERS = ("1", "4", "250p")
"""Buffers in bandwidth-delay products of a window's mean rate, and one in packets."""
CELLS = tuple(f"{family}_{name}_{buffer}" for family, names in FILES.items() for name in names for buffer in BUFFERS)


def split_cell(cell: str) -> tuple[str, str, str]:
    """Split the name of a cell into family, file and buffer."""
    family, _, rest = cell.partition("_")
    name, _, buffer = rest.rpartition("_")
    return family, name, buffer


def list_cells(family: str) -> tuple[str, ...]:
    """Return the cells of a family."""
    return tuple(cell for cell in CELLS if split_cell(cell)[0] == family)


def require_traces(folder: str) -> None:
    """Raise ConfigError unless a folder holds all traces, at any depth."""
    found = _find_files(folder)
    missing = [name for names in FILES.values() for name in names if name not in found]
    if missing:
        raise ConfigError(f"traces = {folder!r} lacks {missing[0]}; valid: a folder with all traces, at any depth")


def compute_sha256(folder: str) -> str:
    """Compute the SHA-256 digest of all traces; "" without a folder."""
    if not folder:
        return ""
    found, digest = _find_files(folder), hashlib.sha256()
    for name in dict.fromkeys(name for names in FILES.values() for name in names):
        digest.update(hashlib.sha256(found[name].read_bytes()).digest())
    return digest.hexdigest()


def read_window(folder: str, cell: str, number: int, duration_s: float) -> Trace:
    """Return the window of a cell's trace for a run: one after the other, and again from the first.

    Args:
        folder: Folder with the traces, at any depth.
        cell: Name of the cell.
        number: Number of the run, 0 or more.
        duration_s: Duration of the window.

    Raises:
        TraceError: The trace cannot be read.
        ConfigError: The trace carries nothing.
    """
    family, name, _ = split_cell(cell)
    path = _find_files(folder)[name]
    trace, starts_s = _read_trace(str(path), os.stat(path).st_mtime_ns, duration_s)
    part = cut_window(trace, starts_s[number % len(starts_s)], duration_s) if starts_s else None
    if part is None:
        raise ConfigError(f"traces = {folder!r}: {name} is an outage throughout; valid: a trace with 0.3 Mbit/s")
    return mark_outages(part) if family == NR_ZEROED else part


def mark_outages(trace: Trace) -> Trace:
    """Return the trace with rates below `OUTAGE_MBPS` as outages."""
    if not isinstance(trace, RateTrace):
        return trace
    rate_mbps = np.where(trace.rate_mbps < OUTAGE_MBPS, 0.0, trace.rate_mbps)
    return RateTrace(trace.time_s, rate_mbps, trace.period_s, trace.name)


@lru_cache(maxsize=64)
def _read_trace(path: str, changed_ns: int, duration_s: float) -> tuple[Trace, tuple[float, ...]]:
    """Read a trace and the starts of its windows; `changed_ns`, the file's time of change, has a new file read anew."""
    trace = traces.read(path)
    return trace, tuple(find_window_starts(trace, duration_s))


@lru_cache(maxsize=8)
def _find_files(folder: str) -> dict[str, Path]:
    """Return the files at any depth below a folder, by name."""
    return {path.name: path for path in sorted(Path(folder).rglob("*")) if path.is_file()}
