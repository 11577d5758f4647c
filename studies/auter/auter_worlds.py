"""Worlds of the studies: the task's worlds, with a proxy that relays from a nearby target.

The paper leaves some choices open. Ours: the durations of runs; every host starts with the paper's default settings; sweeps of
bandwidth, loss and flow size run both without extra latency and with 40 ms; each seed's round trip is up to 5 % longer than the
region's or the testbed's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Scenario
from netbuf_gym.tasks.host_buffers.random_paths import RELAY_BYTES, draw_long_run, make_host_world, single_size
from netbuf_gym.tasks.host_buffers.scenarios import LOCAL_RTT_MS, MIXED_SIZES, REGIONS
from netbuf_gym.tasks.host_buffers.settings import DEFAULT, NAMED
from studies.auter import paper
from studies.auter.auter_schemes import TASK

SPREAD = 0.05
"""Largest share by which a seed's round trip exceeds the scenario's."""
STREAM = 0x61757472
"""Tag that separates the random draws of this module from other draws of the same seed."""
MEMORY_BYTES = 96 * 2**20
"""Limit of TCP's memory at the proxy in bytes: what Linux allows of 1 GB, the memory of the paper's servers."""
PAGES_LOAD = 0.1
"""Load of page visits, as a share of a region's rate."""
FILES_LOAD = 0.3
"""Load of files at the testbed, as a share of the rate."""

LATENCIES_MS = (0, 20, 40, 80, 100)
BANDWIDTHS_MBPS = (10, 20, 50, 100, 200)
LOSSES = (0.0, 0.0001, 0.001, 0.005, 0.01)
SIZES = {"10kB": 10_000, "100kB": 100_000, "1MB": 1_000_000, "10MB": 10_000_000, "100MB": 100_000_000}
MIXED = "mixed"
CONNECTIONS = (1, 10, 100, 300, 1000)
EXTRA_MS = (0, 40)
"""Latencies added to the testbed's in sweeps of other quantities, in ms."""

LIVE_MBPS = 100.0
"""Highest rate of links in live worlds, in Mbit/s."""


class Path(NamedTuple):
    """Long path: Mbit/s, round trip in ms, queue in bandwidth-delay products, long-lived connections, share of random loss."""

    rate_mbps: float
    rtt_ms: float
    buffer_bdp: float
    connections: int
    loss: float

    @property
    def name(self) -> str:
        """Name of the path's cell."""
        lossy = f"-{100 * self.loss:g}%" if self.loss else ""
        return f"{self.rate_mbps:g}mbps-{self.rtt_ms:g}ms-{self.buffer_bdp:g}bdp-x{self.connections}{lossy}"


LIVE_PATHS = tuple(
    Path(*path)
    for path in (
        (1, 242, 2, 1, 0.05), (2, 240, 4, 1, 0), (5, 104, 2, 4, 1e-3), (10, 200, 1, 1, 0),
        (20, 44, 8, 1, 0), (20, 104, 4, 4, 0), (20, 64, 1, 1, 1e-3), (50, 64, 8, 4, 0),
        (50, 104, 2, 1, 1e-4), (100, 44, 4, 1, 0), (100, 64, 1, 1, 1e-5), (100, 104, 0.5, 1, 0),
    )
)  # fmt: skip
PATHS = LIVE_PATHS + tuple(
    Path(*path)
    for path in (
        (5, 150, 8, 1, 0), (10, 44, 2, 1, 0), (10, 104, 8, 4, 0), (20, 104, 0.5, 4, 0),
        (20, 200, 2, 1, 1e-4), (50, 44, 1, 1, 0), (50, 64, 8, 1, 0), (50, 150, 1, 4, 0),
        (100, 64, 8, 4, 0), (100, 200, 1, 1, 0), (200, 44, 2, 1, 0), (200, 64, 4, 4, 1e-5),
    )
)  # fmt: skip
"""Long paths like those of Table IV: round trips of 40 ms and more, from the loss of ES to EA to 200 Mbit/s."""
DEEP_BDP = 4
"""Bandwidth-delay products from which on a queue counts as deep."""

REGION_S = {"es-ea": 600.0, "es-we": 120.0, "es-es": 60.0}
"""Duration of runs in each region, in s. Slow regions are cheap to simulate and need longer for as many pages."""
SWEEP_S, FILES_S, MEMORY_S, PATH_S = 60.0, 300.0, 60.0, 120.0


def draw_world(scenario: Scenario, seed: int) -> rollout.World:
    """Return the world that an environment draws from a scenario, with the agent at the proxy."""
    return rollout.draw_worlds(TASK, scenario, [seed])[0]


def make_region_scenario(cell: str, seed: int, duration_s: float, live: bool = False) -> Scenario:
    """Return a region's scenario with short or long traffic; long if the cell names neither."""
    name = cell.removesuffix("-short").removesuffix("-long")
    own = {**REGIONS[name]}
    own["rtt_ms"] *= _draw_rtt_factor(seed)
    if live:
        own["rate_mbps"] = min(own["rate_mbps"], LIVE_MBPS)
    kind: dict[str, Any] = {"traffic": "short", "load": PAGES_LOAD} if cell.endswith("-short") else {}
    return _make_scenario(f"auter/{name}", duration_s, live, **own, **kind)


def get_region_duration_s(cell: str) -> float:
    """Return the duration of a run in a region's cell in s."""
    return REGION_S[cell.removesuffix("-short").removesuffix("-long")]


def make_latency_scenario(cell: str, seed: int, duration_s: float, live: bool = False) -> Scenario:
    """Return the scenario of a long connection over the testbed with extra latency."""
    return _make_testbed_scenario(float(cell.removesuffix("ms")), seed, duration_s, live)


def make_bandwidth_scenario(cell: str, seed: int, duration_s: float, live: bool = False) -> Scenario:
    """Return the scenario of a long connection over the testbed at the cell's rate."""
    rate, extra_ms = parse_cell(cell)
    return _make_testbed_scenario(extra_ms, seed, duration_s, live, rate_mbps=float(rate.removesuffix("mbps")))


def make_loss_scenario(cell: str, seed: int, duration_s: float, live: bool = False) -> Scenario:
    """Return the scenario of a long connection over the testbed with random loss."""
    share, extra_ms = parse_cell(cell)
    return _make_testbed_scenario(extra_ms, seed, duration_s, live, loss=float(share.removesuffix("%")) / 100)


def make_path_scenario(cell: str, seed: int, duration_s: float, live: bool = False) -> Scenario:
    """Return the scenario of a long path, the same on both plants.

    The proxy sends its own data and starts with Linux's own settings.
    """
    own = next(one for one in PATHS if one.name == cell)._asdict()
    own["rtt_ms"] *= _draw_rtt_factor(seed)
    return make_host_world(duration_s=duration_s, name="auter/path", settings=NAMED["autotuning"], **own)


def make_flow_size_scenario(cell: str, seed: int, duration_s: float, live: bool = False) -> Scenario:
    """Return the scenario of randomly arriving files of one size, or of mixed sizes, at the testbed."""
    size, extra_ms = parse_cell(cell)
    sizes = single_size(SIZES[size]) if size in SIZES else MIXED_SIZES
    return _make_testbed_scenario(extra_ms, seed, duration_s, live, traffic="short", sizes=sizes, load=FILES_LOAD)


def make_memory_scenario(cell: str, seed: int, duration_s: float, live: bool = False) -> Scenario:
    """Return the scenario of the cell's number of connections over 100 Mbit/s and 64 ms."""
    return _make_scenario(
        "auter/connections", duration_s, live, connections=int(cell), rtt_ms=64.0 * _draw_rtt_factor(seed), stagger_s=0.01
    )


def make_long_run_scenario(cell: str, seed: int, duration_s: float, live: bool = False) -> Scenario:
    """Return the scenario of a path that changes throughout the run, as the seed decides."""
    drawn = int(np.random.default_rng((seed, STREAM)).integers(2**62))
    own = draw_long_run(drawn, hours=duration_s / 3600, rtt_ms=242.0, rate_mbps=4.0, loss=0.002)
    return _make_scenario("auter/hours", own.pop("duration_s"), live, buffer_packets=200, **own)


def format_cell(value: str, extra_ms: int) -> str:
    """Return the name of a sweep's point in the column `cell`."""
    return f"{value}+{extra_ms}ms"


def parse_cell(cell: str) -> tuple[str, float]:
    """Return the value and the extra latency in ms of a sweep's cell."""
    value, _, extra = cell.partition("+")
    return value, float(extra.removesuffix("ms"))


def cross_cells(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the cells of a sweep of these values, one for each of `EXTRA_MS`."""
    return tuple(format_cell(value, extra_ms) for extra_ms in EXTRA_MS for value in values)


def resolve_hours(hours_given: float | None, live: bool) -> float:
    """Return the duration of the long run in hours: the given one, or 31 simulated, or 1/3 live."""
    return hours_given or (1 / 3 if live else float(paper.HOURS))


def _make_testbed_scenario(extra_ms: float, seed: int, duration_s: float, live: bool, **own: Any) -> Scenario:
    """Return a scenario of the testbed: 100 Mbit/s, unless `own` sets the rate."""
    return _make_scenario("auter/local", duration_s, live, rtt_ms=(LOCAL_RTT_MS + extra_ms) * _draw_rtt_factor(seed), **own)


def _make_scenario(name: str, duration_s: float, live: bool, **own: Any) -> Scenario:
    """Return a scenario; live worlds use this machine's memory, and their proxy sends its own data instead of relaying."""
    limits: dict[str, Any] = {} if live else {"relay_bytes": RELAY_BYTES, "memory_bytes": MEMORY_BYTES}
    return make_host_world(duration_s=duration_s, name=name, settings=DEFAULT, **limits, **own)


def _draw_rtt_factor(seed: int) -> float:
    return float(np.random.default_rng((seed, STREAM)).uniform(1, 1 + SPREAD))
