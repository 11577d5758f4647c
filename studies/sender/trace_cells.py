"""The measured traces: which there are, by family, and the windows of them that are worlds.

LTE and 3G: Mahimahi's recordings (Winstein, Sivaraman and Balakrishnan, 2013; Netravali et al., 2015) and DeepCC's LTE in New
York (Abbasloo, Yen and Chao, 2019), whole milliseconds. 5G: downloads in University College Cork's data set (Raca et al.,
2020), a second each. The traces themselves are not part of the project.

A download's second of less than 0.3 Mbit/s says that nothing was asked for or nothing came, and not what the link would have
carried; as a rate of 1 kbit/s it would keep a packet for seconds. So 5G is run twice, as it is written and (`5gz`) with these
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
from netbuf_gym.traces.windows import cut, window_starts

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
"""By family, as they are called where they come from. Of 5G none that the package's generator of 5G was calibrated on."""
SAID = {LTE: "LTE", UMTS: "3G", NR: "5G", NR_ZEROED: "5G, below 0.3 Mbit/s an outage"}
BUFFERS = ("1", "4", "250p")
"""In bandwidth-delay products of a window's mean rate, and one in packets."""
CELLS = tuple(f"{family}_{name}_{buffer}" for family, names in FILES.items() for name in names for buffer in BUFFERS)


def parts_of(cell: str) -> tuple[str, str, str]:
    """The family, file and buffer of a cell."""
    family, _, rest = cell.partition("_")
    name, _, buffer = rest.rpartition("_")
    return family, name, buffer


def cells_of(family: str) -> tuple[str, ...]:
    """Those of a family."""
    return tuple(cell for cell in CELLS if parts_of(cell)[0] == family)


def require(folder: str) -> None:
    """Raises ConfigError for a folder that lacks a trace, TraceError for one that cannot be read or carries nothing."""
    found = _paths(folder)
    missing = [name for names in FILES.values() for name in names if name not in found]
    if missing:
        raise ConfigError(f"traces = {folder!r} lacks {missing[0]}; valid: a folder with all traces, at any depth")


def sha256(folder: str) -> str:
    """Of all traces; "" without a folder."""
    if not folder:
        return ""
    found, digest = _paths(folder), hashlib.sha256()
    for name in dict.fromkeys(name for names in FILES.values() for name in names):
        digest.update(hashlib.sha256(found[name].read_bytes()).digest())
    return digest.hexdigest()


def window(folder: str, cell: str, number: int, duration_s: float) -> Trace:
    """The window of a cell's trace that this run has: one after the other, and again from the first.

    Args:
        number: Of the run, 0 or more.
        duration_s: Of the window.

    Raises:
        TraceError: The trace cannot be read.
        ConfigError: It carries nothing.
    """
    family, name, _ = parts_of(cell)
    path = _paths(folder)[name]
    trace, starts_s = _read(str(path), os.stat(path).st_mtime_ns, duration_s)
    part = cut(trace, starts_s[number % len(starts_s)], duration_s) if starts_s else None
    if part is None:
        raise ConfigError(f"traces = {folder!r}: {name} is an outage throughout; valid: a trace with 0.3 Mbit/s")
    return zeroed(part) if family == NR_ZEROED else part


def zeroed(trace: Trace) -> Trace:
    """The same with rates that say nothing as outages."""
    if not isinstance(trace, RateTrace):
        return trace
    rate_mbps = np.where(trace.rate_mbps < OUTAGE_MBPS, 0.0, trace.rate_mbps)
    return RateTrace(trace.time_s, rate_mbps, trace.period_s, trace.name)


@lru_cache(maxsize=64)
def _read(path: str, changed_ns: int, duration_s: float) -> tuple[Trace, tuple[float, ...]]:
    """A trace and where its windows begin; changed_ns: of the file, so that one that is written anew is read anew."""
    trace = traces.read(path)
    return trace, tuple(window_starts(trace, duration_s))


@lru_cache(maxsize=8)
def _paths(folder: str) -> dict[str, Path]:
    """The files anywhere below a folder, by name."""
    return {path.name: path for path in sorted(Path(folder).rglob("*")) if path.is_file()}
