"""Worlds of the host-buffers suite: proxies on random paths as in training, and on other paths."""

from __future__ import annotations

from typing import Any

from netbuf_gym.evaluation.suites.sampling import Between, Family, GeneratedWorld, OneOf
from netbuf_gym.scenarios.impairments import DelaySchedule
from netbuf_gym.tasks.host_buffers.random_paths import LEAST_NIC_MBPS, NIC_MBPS, RELAY_BYTES, make_host_world
from netbuf_gym.tasks.host_buffers.settings import NAMED, constant_settings
from netbuf_gym.traces.types import RateTrace

DURATION_S = 120.0


def make_world(
    *,
    rate_mbps: float,
    rtt_ms: float,
    changes_at: float | None = None,
    rate_factor: float = 1.0,
    delay_factor: float = 1.0,
    gone_s: float | None = None,
    jitter: float = 0.0,
    starts_with_bytes: int | None = None,
    relays: bool = False,
    ring: bool = False,
    **more: Any,
) -> GeneratedWorld:
    """Return a world.

    Args:
        rate_mbps, rtt_ms: Rate of the bottleneck, and round-trip propagation.
        changes_at: When the path changes, as a share of the world's duration.
        rate_factor, delay_factor: Factors of the rate and the one-way propagation at that time.
        gone_s: How long the path then carries nothing, before the new rate.
        jitter: Mean of each packet's exponential delay, in round trips.
        starts_with_bytes: Initial TCP maxima of the host; None: Linux's own.
        relays: Whether the host relays data that it receives from near by.
        ring: Whether its device is no faster than the path, 10 Mbit/s at least.
        more: Further arguments of `make_host_world`.
    """
    trace, delay, settings = None, None, NAMED["autotuning"]
    if changes_at is not None:
        at_s = changes_at * DURATION_S
        if gone_s is not None:
            trace = RateTrace([0.0, at_s, at_s + gone_s], [rate_mbps, 0.0, rate_mbps * rate_factor])
        elif rate_factor != 1:
            trace = RateTrace([0.0, at_s], [rate_mbps, rate_mbps * rate_factor])
        if delay_factor != 1:
            delay = DelaySchedule([0.0, at_s], [rtt_ms / 2, rtt_ms / 2 * delay_factor])
    if starts_with_bytes is not None:
        settings = constant_settings(settings.ring_packets, starts_with_bytes, settings.socket_bytes)
    scenario = make_host_world(
        rate_mbps=rate_mbps if trace is None else None,
        trace=trace,
        rtt_ms=rtt_ms,
        delay=delay,
        jitter_ms=jitter * rtt_ms,
        settings=settings,
        relay_bytes=RELAY_BYTES if relays else None,
        nic_mbps=max(rate_mbps, LEAST_NIC_MBPS) if ring else NIC_MBPS,
        duration_s=DURATION_S,
        **more,
    )
    return GeneratedWorld(scenario)


_LONG = Family(
    "one to eight lasting connections, 1 to 100 Mbit/s, 5 to 300 ms, buffers of 0.5 to 8 BDP: what agents are trained on",
    {
        "rate_mbps": Between(1.0, 100.0),
        "rtt_ms": Between(5.0, 300.0),
        "buffer_bdp": Between(0.5, 8.0),
        "connections": Between(1, 8, whole=True),
    },
)
_LOAD = Between(0.1, 0.7, evenly=True)
_AT = Between(0.2, 0.7, evenly=True)
FAMILIES = {
    "long": _LONG,
    "short": _LONG.with_overrides("web pages alone, loads of 0.1 to 0.7", traffic="short", load=_LOAD, connections=1),
    "mixed": _LONG.with_overrides("both", traffic="mixed", load=Between(0.1, 0.5, evenly=True)),
    "relay": _LONG.with_overrides("relaying what comes from near by", relays=True, traffic=OneOf(("long", "mixed")), load=0.3),
    "loss": _LONG.with_overrides("random loss of 0.01 to 5 %", loss=Between(1e-4, 5e-2)),
    "jitter": _LONG.with_overrides("jitter of 0.5 to 10 % of the round trip", jitter=Between(0.005, 0.1)),
    "steps": _LONG.with_overrides(
        "a rate that is multiplied by 0.25 to 4 once", changes_at=_AT, rate_factor=Between(0.25, 4.0)
    ),
    "delays": _LONG.with_overrides(
        "propagation that is multiplied by 0.3 to 3 once", changes_at=_AT, delay_factor=Between(0.3, 3.0)
    ),
    "outages": _LONG.with_overrides("a path that carries nothing for 0.5 to 10 s", changes_at=_AT, gone_s=Between(0.5, 10.0)),
    "starts": _LONG.with_overrides(
        "TCP maxima that start at 32 KiB to 64 MiB", starts_with_bytes=Between(32_768, 67_108_864, whole=True)
    ),
    "fast": _LONG.with_overrides("200 to 900 Mbit/s, 2 to 30 ms", rate_mbps=Between(200.0, 900.0), rtt_ms=Between(2.0, 30.0)),
    "far": _LONG.with_overrides("300 to 600 ms", rtt_ms=Between(300.0, 600.0), rate_mbps=Between(1.0, 50.0)),
    "deep": _LONG.with_overrides("buffers of 8 to 64 BDP", buffer_bdp=Between(8.0, 64.0), rate_mbps=Between(1.0, 50.0)),
    "ring": _LONG.with_overrides("a device that is no faster than the path, so that packets wait in the ring", ring=True),
    "many": _LONG.with_overrides(
        "16 to 64 connections that share the path", connections=Between(16, 64, whole=True), rate_mbps=Between(10.0, 100.0)
    ),
}
