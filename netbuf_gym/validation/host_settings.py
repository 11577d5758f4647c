"""Validation against a kernel: effects of host buffer settings on a flow's throughput and round-trip time.

One bulk flow from one host to another over 50 Mbit/s, in the simulator and on a live plant, for every latency, maximum of
`tcp_rmem` and `tcp_wmem`, and congestion control. No constant of the simulator is fitted to the results.
"""

from __future__ import annotations

import itertools
import math
import os
import platform
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from netbuf_gym import plants
from netbuf_gym.errors import ConfigError
from netbuf_gym.scenarios import Flow, Host, Link, Scenario
from netbuf_gym.utils.executors import LOCAL
from netbuf_gym.utils.tables import format_number, format_percent, markdown_table, text_table
from netbuf_gym.validation.cells import match_pattern

SCHEMA = "netbuf-gym/settings/1"
RATE_MBPS = 50.0
LATENCIES_MS = (0.0, 20.0, 40.0, 80.0, 100.0)
MAXIMA_BYTES = (212992, 1 << 20, 4 << 20, 64 << 20)
CONTROLS = ("cubic", "bbr")
LEAST_QUEUE_PACKETS = 20
DURATION_S, WARMUP_S = 20.0, 5.0
"""Duration, and the initial part that is not measured: slow start and the growth of buffers."""
THROUGHPUT = {"cubic": 0.10, "bbr": 0.20}
"""Relative tolerance of the simulated throughput by congestion control."""
RTT_SHARE, RTT_MS = 0.20, 5.0
"""Tolerances of the mean round-trip time, as a share and in ms; the larger of the two holds."""
LIVE_JOBS = 2
"""Number of concurrent live worlds by default."""
HEADER = ("control", "maximum", "latency", "live Mbit/s", "simulated", "error", "live RTT ms", "simulated", "verdict")


@dataclass(frozen=True)
class Cell:
    """One setting. `latency_ms`: round-trip propagation; `maximum_bytes`: of `tcp_rmem` and `tcp_wmem`, at both ends."""

    cc: str
    maximum_bytes: int
    latency_ms: float

    @property
    def id(self) -> str:
        """Name of the setting for `--only`."""
        return f"settings/{self.cc}/{_format_size(self.maximum_bytes)}/{self.latency_ms:g}"

    def make_scenario(self) -> Scenario:
        """Return the world, with a queue of one bandwidth-delay product, at least 20 packets."""
        queue = max(LEAST_QUEUE_PACKETS, round(RATE_MBPS * 1e3 * self.latency_ms / 8 / 1500))
        rmem, wmem = (4096, 131072, self.maximum_bytes), (4096, 16384, self.maximum_bytes)
        return Scenario(
            name=self.id,
            links=[
                Link(name="bottleneck", rate_mbps=RATE_MBPS, delay_ms=self.latency_ms / 2, queue_packets=queue),
                Link(name="back", delay_ms=self.latency_ms / 2),
            ],
            hosts=[Host(name=name, tcp_rmem=rmem, tcp_wmem=wmem) for name in ("server", "client")],
            flows=[Flow(cc=self.cc, path=[0], return_path=[1], sender_host="server", receiver_host="client")],
            duration_s=DURATION_S,
        )


@dataclass(frozen=True)
class Measurement:
    """Measurements of a flow: payload delivered, and the mean of the round-trip samples."""

    throughput_mbps: float
    rtt_ms: float


@dataclass(frozen=True)
class CellComparison:
    """Measurements of a cell on both plants."""

    cell: Cell
    live: Measurement
    simulated: Measurement

    @property
    def error(self) -> float:
        """Relative error of the simulated throughput; NaN where nothing was delivered live."""
        if not self.live.throughput_mbps:
            return math.nan
        return self.simulated.throughput_mbps / self.live.throughput_mbps - 1

    @property
    def within(self) -> bool:
        """True if throughput and round-trip time are within tolerance."""
        allowed_ms = max(RTT_MS, RTT_SHARE * self.live.rtt_ms)
        return abs(self.error) <= THROUGHPUT[self.cell.cc] and abs(self.simulated.rtt_ms - self.live.rtt_ms) <= allowed_ms


@dataclass(frozen=True)
class SettingsReport:
    """Measurements of all cells, with plant, kernel and date of the live ones."""

    cells: tuple[CellComparison, ...]
    plant: str
    kernel: str
    date: str

    @property
    def within(self) -> bool:
        """True if every cell is within tolerance."""
        return all(one.within for one in self.cells)

    def rows(self) -> list[list[str]]:
        """Return one row per cell, with the columns of `HEADER`."""
        return [
            [
                one.cell.cc,
                _format_size(one.cell.maximum_bytes),
                f"{one.cell.latency_ms:g} ms",
                format_number(one.live.throughput_mbps),
                format_number(one.simulated.throughput_mbps),
                format_percent(one.error),
                format_number(one.live.rtt_ms),
                format_number(one.simulated.rtt_ms),
                "within" if one.within else "OUT",
            ]
            for one in self.cells
        ]

    def _summary(self) -> str:
        within = sum(one.within for one in self.cells)
        return f"{within} of {len(self.cells)} settings within tolerance; kernel {self.kernel}, {self.date}"

    def text(self) -> str:
        """Return the report for the terminal."""
        return f"{text_table(HEADER, self.rows())}\n\n{self._summary()}"

    def markdown(self) -> str:
        """Return the report as Markdown."""
        return f"{self._summary()}\n\n{markdown_table(HEADER, self.rows())}\n"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form, which `read_recorded` reads."""
        return {
            "schema": SCHEMA,
            "plant": self.plant,
            "kernel": self.kernel,
            "date": self.date,
            "within": self.within,
            "cells": [
                {**asdict(one.cell), "live": asdict(one.live), "simulated": asdict(one.simulated), "within": one.within}
                for one in self.cells
            ],
        }


def read_recorded(data: Mapping[str, Any]) -> list[tuple[Cell, Measurement]]:
    """Return the cells and their live measurements from a report made by `SettingsReport.to_dict`.

    Raises:
        ConfigError: The data has another schema.
    """
    if data.get("schema") != SCHEMA:
        raise ConfigError(f"schema = {data.get('schema')!r}; valid: {SCHEMA!r}")
    return [(Cell(one["cc"], one["maximum_bytes"], one["latency_ms"]), Measurement(**one["live"])) for one in data["cells"]]


def measure(plant: str, cell: Cell, look: Callable[[], object] | None = None) -> Measurement:
    """Run a cell on a plant; `look` is called regularly meanwhile, and may end the run by raising an exception.

    Raises:
        ConfigError, PlantFault: As in `netbuf_gym.plants.make_lone_world`.
    """
    with closing(plants.make_lone_world(plant, cell.make_scenario(), 1)) as world:
        if look is not None:
            world.between = look
        world.run(round(WARMUP_S * 1e9))
        before, begun_ns = dict(world.flow_stats()[0]), world.now_ns
        world.run(round(DURATION_S * 1e9))
        after, ended_ns = world.flow_stats()[0], world.now_ns
    gained = {key: after[key] - before[key] for key in ("delivered_bytes", "rtt_sum_s", "rtt_count")}
    mean_s = gained["rtt_sum_s"] / gained["rtt_count"] if gained["rtt_count"] else float("nan")
    return Measurement(gained["delivered_bytes"] * 8e3 / (ended_ns - begun_ns), mean_s * 1e3)


def select_cells(only: str | None = None) -> list[Cell]:
    """Return all settings, or those whose id contains or matches `only`.

    Raises:
        ConfigError: No setting matches.
    """
    every = [Cell(*one) for one in itertools.product(CONTROLS, MAXIMA_BYTES, LATENCIES_MS)]
    chosen = [one for one in every if only is None or match_pattern(one.id, only)]
    if not chosen:
        raise ConfigError(f"only = {only!r} matches no setting; valid: part of an id, as {every[0].id}")
    return chosen


def compare(
    against: str = "linux",
    only: str | None = None,
    jobs: int | None = None,
    watch: Callable[[str], object] = lambda line: None,
) -> SettingsReport:
    """Run settings on a live plant and then, so that live worlds are not disturbed, in the simulator.

    Args:
        against: Name of the live plant.
        only: Pattern of the settings to run (`select_cells`).
        jobs: Concurrent worlds; None: 2 live ones, and one simulated per core. More live worlds than the machine can carry
            disturb each other.
        watch: Callback with a line for every cell that is done on a plant.

    Raises:
        ConfigError, PlantFault: As in `measure`; the remaining runs are then ended, as on an interruption.
    """
    chosen = select_cells(only)
    live = _measure_all(against, chosen, jobs or LIVE_JOBS, watch)
    simulated = _measure_all("sim", chosen, jobs or os.cpu_count() or 1, watch)
    compared = tuple(map(CellComparison, chosen, live, simulated))
    return SettingsReport(compared, against, platform.release(), time.strftime("%Y-%m-%d"))


def _measure_all(plant: str, chosen: Sequence[Cell], jobs: int, watch: Callable[[str], object]) -> list[Measurement]:
    """Return the measurements of cells on a plant, running `jobs` at a time."""
    stop = threading.Event()

    def look() -> None:
        if stop.is_set():
            raise CancelledError

    def measure_cell(cell: Cell) -> Measurement:
        measured = measure(plant, cell, look)
        watch(f"{cell.id} on {plant}: {measured.throughput_mbps:.2f} Mbit/s, {measured.rtt_ms:.1f} ms")
        return measured

    measured = dict(LOCAL.run(measure_cell, chosen, jobs, stop))
    return [measured[cell] for cell in chosen]


def _format_size(size_bytes: int) -> str:
    mebibytes = size_bytes / (1 << 20)
    return f"{mebibytes:g} MiB" if mebibytes >= 1 else f"{size_bytes / 1024:g} KiB"
