"""Auter's scenarios by name: three regions, the local testbed, many connections, a long run, and random paths.

The paper measures latency, bandwidth and throughput of its regions; queues, loss and jitter are ours, chosen so that one CUBIC
connection without buffer limits reaches about what the paper's best settings reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from netbuf_gym.errors import ScenarioError, quote
from netbuf_gym.scenarios.factories import derive_factory
from netbuf_gym.scenarios.named import World
from netbuf_gym.scenarios.sizes import SizeDistribution
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.host_buffers.random_paths import HostPaths, draw_long_run, make_host_world, single_size
from netbuf_gym.utils import checks

LOCAL_RTT_MS = 4.0
"""Base RTT of the local testbed without added latency: derived from ES & ES's 3.44 ms with one hop more."""

REGIONS: dict[str, dict[str, Any]] = {
    "es-es": {"rate_mbps": 1000.0, "rtt_ms": 2.8, "buffer_bdp": 2.0, "loss": 0.0, "jitter_ms": 0.0},
    "es-we": {"rate_mbps": 1000.0, "rtt_ms": 63.0, "buffer_bdp": 1.0, "loss": 1e-5, "jitter_ms": 0.3},
    "es-ea": {"rate_mbps": 1.0, "rtt_ms": 242.0, "buffer_bdp": 2.0, "loss": 0.05, "jitter_ms": 4.0},
}
"""Tables III and IV: round trips, and 1 Gbit/s or, for the server in East Asia, 1 Mbit/s."""

MIXED_SIZES = SizeDistribution(
    name="10 kB to 100 MB",
    size_bytes=(10e3, 10e3, 100e3, 100e3, 1e6, 1e6, 10e6, 10e6, 100e6, 100e6),
    cumulative=(0.0, 0.2, 0.2, 0.4, 0.4, 0.6, 0.6, 0.8, 0.8, 1.0),
)
"""The five sizes of the paper's Fig. 7, with equal probability."""


_WORLD = (
    *("rate_mbps", "rtt_ms", "buffer_bdp", "buffer_packets", "loss", "jitter_ms", "traffic", "connections", "load", "cc"),
    *("explicit_bytes", "relay_bytes", "duration_s", "settings", "memory_bytes"),
)
"""Arguments of `make_host_world` that the regions have."""


def _make_region_factory(name: str, summary: str) -> Callable[..., World]:
    fixed = {"name": f"auter/{name}"}
    return derive_factory(make_host_world, summary, only=_WORLD, fixed=fixed, load=0.1, **REGIONS[name])


def local_testbed(
    *, extra_ms: float = 40.0, size_bytes: int | str | None = None, traffic: str = "long", **world: Any
) -> Scenario:
    """Return a world of the local testbed.

    Args:
        extra_ms: Latency beside the testbed's own, 0 to 1e5 ms.
        size_bytes: Size of files that arrive in place of pages, 1 to 2**40, or "mixed"; None: pages.
        traffic: As in `make_host_world`; with files "long" is "short".
        world: Further arguments of `make_host_world`.
    """
    sizes = None
    if size_bytes is not None:
        if isinstance(size_bytes, str) and size_bytes != "mixed":
            raise ScenarioError(f"size_bytes = {quote(size_bytes)}; valid: 1 to 2**40, mixed, or null")
        sizes = MIXED_SIZES if size_bytes == "mixed" else single_size(checks.integer("size_bytes", size_bytes, 1, 2**40))
        traffic = "short" if traffic == "long" else traffic
    rtt_ms = LOCAL_RTT_MS + checks.number("extra_ms", extra_ms, 0, 1e5)
    return make_host_world(rtt_ms=rtt_ms, sizes=sizes, traffic=traffic, name="auter/local", **world)


def changing_path(
    *,
    hours: float = 31.0,
    rate_mbps: float = 4.0,
    rtt_ms: float = 242.0,
    loss: float = 0.002,
    world_seed: int = 1,
    **world: Any,
) -> Scenario:
    """Return a world of a path that changes for `hours` (above 0 to 200), drawn from `world_seed`.

    Args:
        rate_mbps, loss: Rate (0.001 to 1e5 Mbit/s) and loss (0 to 0.1) at night, before random changes.
        rtt_ms: Propagation there and back, 0 to 1e5 ms, before changes.
        world: Further arguments of `make_host_world`.
    """
    path = draw_long_run(
        checks.integer("world_seed", world_seed, 0, 2**63 - 1),
        hours=checks.number("hours", hours, 0, 200, low_open=True),
        rtt_ms=checks.number("rtt_ms", rtt_ms, 0, 1e5),
        rate_mbps=checks.number("rate_mbps", rate_mbps, 1e-3, 1e5),
        loss=checks.number("loss", loss, 0, 0.1),
    )
    return make_host_world(**path, **world, name="auter/hours")


_LOCAL_ARGS = """

    Args:
        size_bytes: size of files that arrive at random in place of pages, 1 to 2**40; mixed: 10 kB to 100 MB; null: pages
"""
_HOURS_ARGS = """

    Args:
        rate_mbps: rate of the path at night, before random changes, 0.001 to 1e+05 Mbit/s
        loss: probability that a data packet is lost at night, before random changes, 0 to 0.1
"""
_PATHS_ARGS = """

    Args:
        rtt_ms: propagation there and back, above 0 to 1e+05 ms
        loss: probability that a data packet is lost, in the worlds that lose any, above 0 to 0.999
        change_probability: share of the worlds whose rate or round trip changes once, 0 to 1
        change_factor: what that multiplies or divides by at most, 1 to 1000
"""


def _make_paths_factory(name: str, summary: str, **own: Any) -> Callable[..., World]:
    """Return a factory of random worlds; `own` replaces defaults of `HostPaths`."""
    return derive_factory(HostPaths, summary + _PATHS_ARGS, fixed={"name": name}, **own)


SCENARIOS: dict[str, Callable[..., World]] = {
    "auter/es-es": _make_region_factory(
        "es-es", "A client near the proxy, both in the East: 1 Gbit/s, 2.8 ms (Tables III and IV)."
    ),
    "auter/es-we": _make_region_factory("es-we", "A client in the East, the proxy in the West: 1 Gbit/s, 63 ms, 0.001 % loss."),
    "auter/es-ea": _make_region_factory("es-ea", "A client in the East, the proxy in East Asia: 1 Mbit/s, 242 ms, 5 % loss."),
    "auter/local": derive_factory(
        local_testbed,
        "Auter's local testbed: 4 ms plus an added delay, 100 Mbit/s, a queue of 1 BDP; the basis of the paper's sweeps."
        + _LOCAL_ARGS,
        like=make_host_world,
        only=[name for name in _WORLD if name != "rtt_ms"],
        load=0.3,
    ),
    "auter/connections": derive_factory(
        make_host_world,
        "Many connections that share 100 Mbit/s at 64 ms, for the memory that they occupy on the host (the paper's Fig. 9).",
        only=("rate_mbps", "rtt_ms", "buffer_bdp", "connections", "stagger_s", "cc", "duration_s", "settings", "memory_bytes"),
        fixed={"name": "auter/connections"},
        connections=1000,
        rtt_ms=64.0,
        stagger_s=0.01,
        duration_s=60.0,
    ),
    "auter/hours": derive_factory(
        changing_path,
        "Path whose rate, latency and loss change over 31 hours with the time of day, at random, and with its route (Fig. 8)."
        + _HOURS_ARGS,
        like=make_host_world,
        only=("buffer_packets", "connections", "cc", "settings"),
        buffer_packets=200,
    ),
    "auter/any": _make_paths_factory(
        "auter/any",
        "A proxy on a random path: 1 to 50 Mbit/s, 5 to 300 ms, long, short or mixed traffic, own or relayed; 300 s.",
        relay_probability=0.25,
    ),
    "auter/training": _make_paths_factory(
        "auter/training",
        "What hosts are trained on: random paths that change, and TCP maxima that start at random; 90 s.",
        rate_mbps=(1.0, 100.0),
        rtt_ms=(2.5, 300.0),
        buffer_bdp=(0.3, 12.0),
        traffic=("long", "long", "long", "mixed", "short"),
        change_probability=0.25,
        start_probability=0.5,
        explicit_probability=0.1,
        relay_probability=0.4,
        polls_probability=0.5,
        slow_nic_probability=0.15,
        duration_s=90.0,
    ),
    "auter/rises": _make_paths_factory(
        "auter/rises",
        "A proxy on a path whose rate rises 4 to 12 times: 2 to 40 Mbit/s before, 10 to 300 ms; 120 s.",
        rate_mbps=(2.0, 40.0),
        rtt_ms=(10.0, 300.0),
        traffic=("long",),
        rise_probability=1.0,
        duration_s=120.0,
    ),
    "auter/rivals": _make_paths_factory(
        "auter/rivals",
        "A proxy beside one to three CUBIC connections of others: 2 to 100 Mbit/s, 5 to 300 ms; 120 s.",
        rate_mbps=(2.0, 100.0),
        traffic=("long", "long", "mixed"),
        rival_probability=1.0,
        rivals=(1, 3),
        duration_s=120.0,
    ),
    "auter/fast": _make_paths_factory(
        "auter/fast",
        "A proxy on a fast path: 100 Mbit/s to 1 Gbit/s, 5 to 150 ms, one to 500 connections; 60 s.",
        rate_mbps=(100.0, 1000.0),
        rtt_ms=(5.0, 150.0),
        buffer_bdp=(0.3, 4.0),
        loss=(1e-7, 1e-4),
        traffic=("long",),
        connections=(1, 500),
        nic_mbps=None,
        duration_s=60.0,
    ),
    "auter/proxies": _make_paths_factory(
        "auter/proxies",
        "What hosts that choose their congestion control are trained on: 1 to 500 Mbit/s, rises, rivals; 90 s.",
        rate_mbps=(1.0, 500.0),
        rtt_ms=(2.5, 300.0),
        buffer_bdp=(0.3, 12.0),
        traffic=("long", "long", "long", "mixed", "short"),
        connections=(1, 100),
        change_probability=0.15,
        start_probability=0.3,
        relay_probability=0.3,
        polls_probability=0.5,
        slow_nic_probability=0.1,
        rise_probability=0.25,
        rival_probability=0.25,
        rivals=(1, 3),
        duration_s=90.0,
    ),
}
"""Factory of each named scenario."""
