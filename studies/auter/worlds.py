"""The worlds of the studies: the task's own, with a proxy that relays what it gets from a target near by.

What the paper leaves open and we chose: how long runs take, that every host starts with the paper's default settings, that
sweeps of bandwidth, loss and flow size are made without extra latency and with 40 ms, and that each seed's round trip is up to
5 % longer than the region's or the testbed's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Scenario
from netbuf_gym.tasks.host_buffers.random_paths import RELAY_BYTES, host_world, long_run, one_size
from netbuf_gym.tasks.host_buffers.scenarios import LOCAL_RTT_MS, MIXED_SIZES, REGIONS
from netbuf_gym.tasks.host_buffers.settings import DEFAULT, NAMED
from studies.auter import paper
from studies.auter.schemes import TASK

SPREAD = 0.05
"""Round trips are longer than the scenario's by up to this share of it."""
STREAM = 0x61757472
"""Keeps what is drawn from a seed here apart from what else is."""
MEMORY_BYTES = 96 * 2**20
"""What TCP may take of the proxy's memory: what Linux lets it have of 1 GB, as the paper's servers have."""
PAGES_LOAD = 0.1
"""Share of a region's rate that visits to pages make up."""
FILES_LOAD = 0.3
"""The same of files at the testbed."""

LATENCIES_MS = (0, 20, 40, 80, 100)
BANDWIDTHS_MBPS = (10, 20, 50, 100, 200)
LOSSES = (0.0, 0.0001, 0.001, 0.005, 0.01)
SIZES = {"10kB": 10_000, "100kB": 100_000, "1MB": 1_000_000, "10MB": 10_000_000, "100MB": 100_000_000}
MIXED = "mixed"
CONNECTIONS = (1, 10, 100, 300, 1000)
EXTRA_MS = (0, 40)
"""Latencies that are added to the testbed's where something else is swept."""

LIVE_MBPS = 100.0
"""What links of live worlds carry at most."""


class Path(NamedTuple):
    """A long path: Mbit/s, round trip, queue in bandwidth-delay products, lasting connections, random loss."""

    rate_mbps: float
    rtt_ms: float
    buffer_bdp: float
    connections: int
    loss: float

    @property
    def name(self) -> str:
        """Of its cell."""
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
"""From how many products on a queue is deep."""

REGION_S = {"es-ea": 600.0, "es-we": 120.0, "es-es": 60.0}
"""How long runs are: what is slow is cheap, and needs longer for as many pages."""
SWEEP_S, FILES_S, MEMORY_S, PATH_S = 60.0, 300.0, 60.0, 120.0


def world(scenario: Scenario, seed: int) -> rollout.World:
    """A world with an agent in the proxy's place, as an environment draws it."""
    return rollout.draw(TASK, scenario, [seed])[0]


def region(cell: str, seed: int, duration_s: float, live: bool = False) -> Scenario:
    """A region with short or long traffic; long where the cell does not say."""
    name = cell.removesuffix("-short").removesuffix("-long")
    own = {**REGIONS[name]}
    own["rtt_ms"] *= _longer(seed)
    if live:
        own["rate_mbps"] = min(own["rate_mbps"], LIVE_MBPS)
    kind: dict[str, Any] = {"traffic": "short", "load": PAGES_LOAD} if cell.endswith("-short") else {}
    return _made(f"auter/{name}", duration_s, live, **own, **kind)


def region_s(cell: str) -> float:
    """How long a run there takes."""
    return REGION_S[cell.removesuffix("-short").removesuffix("-long")]


def latency(cell: str, seed: int, duration_s: float, live: bool = False) -> Scenario:
    """A long connection over the testbed with extra latency."""
    return _local(float(cell.removesuffix("ms")), seed, duration_s, live)


def bandwidth(cell: str, seed: int, duration_s: float, live: bool = False) -> Scenario:
    """A long connection over the testbed at a rate."""
    rate, extra_ms = swept(cell)
    return _local(extra_ms, seed, duration_s, live, rate_mbps=float(rate.removesuffix("mbps")))


def loss(cell: str, seed: int, duration_s: float, live: bool = False) -> Scenario:
    """A long connection over the testbed with random loss."""
    share, extra_ms = swept(cell)
    return _local(extra_ms, seed, duration_s, live, loss=float(share.removesuffix("%")) / 100)


def path(cell: str, seed: int, duration_s: float, live: bool = False) -> Scenario:
    """A long path, the same on both plants: the proxy sends what it has, and begins as Linux comes."""
    own = next(one for one in PATHS if one.name == cell)._asdict()
    own["rtt_ms"] *= _longer(seed)
    return host_world(duration_s=duration_s, name="auter/path", settings=NAMED["autotuning"], **own)


def flow_size(cell: str, seed: int, duration_s: float, live: bool = False) -> Scenario:
    """Files of a size that arrive at random at the testbed."""
    size, extra_ms = swept(cell)
    sizes = one_size(SIZES[size]) if size in SIZES else MIXED_SIZES
    return _local(extra_ms, seed, duration_s, live, traffic="short", sizes=sizes, load=FILES_LOAD)


def memory(cell: str, seed: int, duration_s: float, live: bool = False) -> Scenario:
    """So many connections over 100 Mbit/s and 64 ms."""
    return _made("auter/connections", duration_s, live, connections=int(cell), rtt_ms=64.0 * _longer(seed), stagger_s=0.01)


def hours(cell: str, seed: int, duration_s: float, live: bool = False) -> Scenario:
    """A path that changes for so long, in a way of the seed's."""
    drawn = int(np.random.default_rng((seed, STREAM)).integers(2**62))
    own = long_run(drawn, hours=duration_s / 3600, rtt_ms=242.0, rate_mbps=4.0, loss=0.002)
    return _made("auter/hours", own.pop("duration_s"), live, buffer_packets=200, **own)


def cell_of(value: str, extra_ms: int) -> str:
    """What the column `cell` calls a point of a sweep."""
    return f"{value}+{extra_ms}ms"


def swept(cell: str) -> tuple[str, float]:
    """A point of a sweep: its value, and the extra latency."""
    value, _, extra = cell.partition("+")
    return value, float(extra.removesuffix("ms"))


def crossed(values: tuple[str, ...]) -> tuple[str, ...]:
    """The cells of a sweep of these values."""
    return tuple(cell_of(value, extra_ms) for extra_ms in EXTRA_MS for value in values)


def lasting_hours(hours_given: float | None, live: bool) -> float:
    """How many hours the long run takes."""
    return hours_given or (1 / 3 if live else float(paper.HOURS))


def _local(extra_ms: float, seed: int, duration_s: float, live: bool, **own: Any) -> Scenario:
    """The testbed: 100 Mbit/s, unless it is said otherwise."""
    return _made("auter/local", duration_s, live, rtt_ms=(LOCAL_RTT_MS + extra_ms) * _longer(seed), **own)


def _made(name: str, duration_s: float, live: bool, **own: Any) -> Scenario:
    """A world; live its memory is this machine's, and the proxy sends by itself: what it relays there is not told of it."""
    limits: dict[str, Any] = {} if live else {"relay_bytes": RELAY_BYTES, "memory_bytes": MEMORY_BYTES}
    return host_world(duration_s=duration_s, name=name, settings=DEFAULT, **limits, **own)


def _longer(seed: int) -> float:
    return float(np.random.default_rng((seed, STREAM)).uniform(1, 1 + SPREAD))
