"""Auter's scenarios by name: three regions, the local testbed, many connections, a long run, and random paths.

The paper measures latency, bandwidth and throughput of its regions; queues, loss and jitter are ours, chosen so that one CUBIC
connection without buffer limits reaches about what the paper's best settings reach.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from netbuf_gym.errors import ScenarioError, shown
from netbuf_gym.scenarios.named import World
from netbuf_gym.scenarios.sizes import SizeDistribution
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.host_buffers.random_paths import HostPaths, draw_long_run, make_host_world, single_size
from netbuf_gym.tasks.host_buffers.settings import NAMED, Settings
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


def get_settings(settings: Any) -> Settings:
    """Return the settings of a name; raise ScenarioError for an unknown one."""
    return NAMED[checks.choice("settings", settings, NAMED)]


def _make_region_factory(name: str, summary: str) -> Callable[..., World]:
    defaults: dict[str, Any] = {
        **REGIONS[name],
        "buffer_packets": None,
        "traffic": "long",
        "connections": 1,
        "load": 0.1,
        "cc": "cubic",
        "explicit_bytes": None,
        "relay_bytes": None,
        "settings": "autotuning",
        "memory_bytes": None,
        "duration_s": 300.0,
    }

    def maker(**given: Any) -> Scenario:
        chosen = {**defaults, **given}
        return make_host_world(**{**chosen, "settings": get_settings(chosen["settings"])}, name=f"auter/{name}")

    maker.__doc__ = summary
    maker.__signature__ = inspect.Signature(
        [inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=value) for key, value in defaults.items()]
    )
    return maker


def local_testbed(
    *,
    extra_ms: Any = 40.0,
    rate_mbps: Any = 100.0,
    loss: Any = 0.0,
    size_bytes: Any = None,
    buffer_bdp: Any = 1.0,
    buffer_packets: Any = None,
    jitter_ms: Any = 0.0,
    traffic: Any = "long",
    connections: Any = 1,
    load: Any = 0.3,
    cc: Any = "cubic",
    explicit_bytes: Any = None,
    relay_bytes: Any = None,
    settings: Any = "autotuning",
    memory_bytes: Any = None,
    duration_s: Any = 300.0,
) -> Scenario:
    """Auter's local testbed: 4 ms plus an added delay, 100 Mbit/s, a queue of 1 BDP; the basis of the paper's sweeps.

    Args:
        size_bytes: size of files that arrive at random in place of pages, 1 to 2**40; mixed: 10 kB to 100 MB; null: pages
    """
    sizes = None
    if size_bytes is not None:
        if isinstance(size_bytes, str) and size_bytes != "mixed":
            raise ScenarioError(f"size_bytes = {shown(size_bytes)}; valid: 1 to 2**40, mixed, or null")
        sizes = MIXED_SIZES if size_bytes == "mixed" else single_size(checks.integer("size_bytes", size_bytes, 1, 2**40))
        traffic = "short" if traffic == "long" else traffic
    return make_host_world(
        rate_mbps=rate_mbps,
        rtt_ms=LOCAL_RTT_MS + checks.number("extra_ms", extra_ms, 0, 1e5),
        loss=loss,
        sizes=sizes,
        buffer_bdp=buffer_bdp,
        buffer_packets=buffer_packets,
        jitter_ms=jitter_ms,
        traffic=traffic,
        connections=connections,
        load=load,
        cc=cc,
        explicit_bytes=explicit_bytes,
        relay_bytes=relay_bytes,
        settings=get_settings(settings),
        memory_bytes=memory_bytes,
        duration_s=duration_s,
        name="auter/local",
    )


def many_connections(
    *,
    connections: Any = 1000,
    rate_mbps: Any = 100.0,
    rtt_ms: Any = 64.0,
    buffer_bdp: Any = 1.0,
    cc: Any = "cubic",
    settings: Any = "autotuning",
    memory_bytes: Any = None,
    stagger_s: Any = 0.01,
    duration_s: Any = 60.0,
) -> Scenario:
    """Many connections that share 100 Mbit/s at 64 ms, for the memory that they occupy on the host (the paper's Fig. 9)."""
    return make_host_world(
        connections=connections,
        rate_mbps=rate_mbps,
        rtt_ms=rtt_ms,
        buffer_bdp=buffer_bdp,
        cc=cc,
        settings=get_settings(settings),
        memory_bytes=memory_bytes,
        stagger_s=stagger_s,
        duration_s=duration_s,
        name="auter/connections",
    )


def changing_path(
    *,
    hours: Any = 31.0,
    rate_mbps: Any = 4.0,
    rtt_ms: Any = 242.0,
    loss: Any = 0.002,
    buffer_packets: Any = 200,
    world_seed: Any = 1,
    connections: Any = 1,
    cc: Any = "cubic",
    settings: Any = "autotuning",
) -> Scenario:
    """Path whose rate, latency and loss change over 31 hours with the time of day, at random, and with its route (Fig. 8).

    Args:
        rate_mbps: rate of the path at night, before random changes, 0.001 to 1e+05 Mbit/s
        loss: probability that a data packet is lost at night, before random changes, 0 to 0.1
    """
    path = draw_long_run(
        checks.integer("world_seed", world_seed, 0, 2**63 - 1),
        hours=checks.number("hours", hours, 0, 200, low_open=True),
        rtt_ms=checks.number("rtt_ms", rtt_ms, 0, 1e5),
        rate_mbps=checks.number("rate_mbps", rate_mbps, 1e-3, 1e5),
        loss=checks.number("loss", loss, 0, 0.1),
    )
    own = {"buffer_packets": buffer_packets, "connections": connections, "cc": cc, "settings": get_settings(settings)}
    return make_host_world(**path, **own, name="auter/hours")


_PATHS = """

    Args:
        rtt_ms: propagation there and back, above 0 to 1e+05 ms
        loss: probability that a data packet is lost, in the worlds that lose any, above 0 to 0.999
        change_probability: share of the worlds whose rate or round trip changes once, 0 to 1
        change_factor: what that multiplies or divides by at most, 1 to 1000
"""


def _make_paths_factory(name: str, summary: str, **own: Any) -> Callable[..., World]:
    """Return a factory of random worlds; `own` replaces defaults of `HostPaths`."""
    defaults = {key: own.get(key, one.default) for key, one in inspect.signature(HostPaths).parameters.items() if key != "name"}

    def maker(**given: Any) -> HostPaths:
        chosen = {**defaults, **given}
        lists = {key: tuple(value) for key, value in chosen.items() if isinstance(value, list)}
        return HostPaths(**{**chosen, **lists}, name=name)

    maker.__doc__ = summary + _PATHS
    maker.__signature__ = inspect.Signature(
        [inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=value) for key, value in defaults.items()]
    )
    return maker


SCENARIOS: dict[str, Callable[..., World]] = {
    "auter/es-es": _make_region_factory(
        "es-es", "A client near the proxy, both in the East: 1 Gbit/s, 2.8 ms (Tables III and IV)."
    ),
    "auter/es-we": _make_region_factory("es-we", "A client in the East, the proxy in the West: 1 Gbit/s, 63 ms, 0.001 % loss."),
    "auter/es-ea": _make_region_factory("es-ea", "A client in the East, the proxy in East Asia: 1 Mbit/s, 242 ms, 5 % loss."),
    "auter/local": local_testbed,
    "auter/connections": many_connections,
    "auter/hours": changing_path,
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
}
"""Factory of each named scenario."""
