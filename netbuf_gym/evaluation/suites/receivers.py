"""Worlds of the receiver-window suite: generated access networks as in Nuwa, and paths that agents were not trained on."""

from __future__ import annotations

from typing import Any

from netbuf_gym.errors import ScenarioError
from netbuf_gym.evaluation.suites.sampling import Between, Family, GeneratedWorld, OneOf, Seed
from netbuf_gym.scenarios.impairments import DelaySchedule
from netbuf_gym.scenarios.limits import compute_bdp_packets
from netbuf_gym.scenarios.senders import Sender
from netbuf_gym.scenarios.traffic import FlowList, Traffic
from netbuf_gym.tasks.congestion_window.paths import GeneratedTrace
from netbuf_gym.tasks.receiver_window.random_paths import LEAST_MBPS, receiver_world
from netbuf_gym.traces.types import RateTrace

DURATION_S = 60.0
LEAST_PACKETS = 20


def make_world(
    *,
    rtt_ms: float,
    buffer_bdp: float,
    network: str | None = None,
    trace_seed: int = 0,
    mean_mbps: float | None = None,
    rate_mbps: float | None = None,
    gone_at: float | None = None,
    gone_s: float = 0.0,
    later: float | None = None,
    later_at: float = 0.5,
    rival: str | None = None,
    rival_at: float = 0.0,
    return_mbps: float | None = None,
    **more: Any,
) -> GeneratedWorld:
    """Return a world.

    Args:
        rtt_ms: Round-trip propagation.
        buffer_bdp: Queue of the bottleneck, in products of its mean rate and `rtt_ms`; 20 packets or more.
        network, trace_seed, mean_mbps: Arguments of the trace generator, if the bottleneck has a trace.
        rate_mbps: Rate of the bottleneck, if it has no trace.
        gone_at, gone_s: Start, as a share of the world's duration, and length of an outage of a bottleneck without a trace.
        later, later_at: Factor of the one-way propagation, and when it begins, as a share of the world's duration.
        rival, rival_at: Congestion control of another flow, which lasts for 0.4 of the world, and when it starts.
        return_mbps: Rate of the return path, if a CUBIC flow uses it.
        more: Further arguments of `receiver_world`.
    """
    trace: Any = None
    if network is not None:
        trace = GeneratedTrace(network, DURATION_S, trace_seed, {} if mean_mbps is None else {"mean_mbps": mean_mbps}).trace()
        if trace.mean_mbps(DURATION_S) < 6 * LEAST_MBPS:
            raise ScenarioError(f"trace_seed = {trace_seed} gives a trace that hardly carries anything; valid: another one")
    elif gone_at is not None and rate_mbps is not None:
        at_s = gone_at * DURATION_S
        trace = RateTrace([0.0, at_s, at_s + gone_s], [rate_mbps, 0.0, rate_mbps])
    mean = float(trace.mean_mbps(DURATION_S) if trace is not None else rate_mbps or 0)
    delay = None if later is None else DelaySchedule([0.0, later_at * DURATION_S], [rtt_ms / 2, rtt_ms / 2 * later])
    back_packets = None if return_mbps is None else max(LEAST_PACKETS, round(return_mbps * rtt_ms * 1e3 / 8 / 1500))
    scenario = receiver_world(
        trace=trace,
        rate_mbps=rate_mbps if trace is None else None,
        rtt_ms=rtt_ms,
        buffer_packets=max(LEAST_PACKETS, round(buffer_bdp * compute_bdp_packets(mean, rtt_ms))),
        delay=delay,
        traffic=_make_traffic(mean, rival, rival_at, return_mbps),
        return_mbps=return_mbps,
        return_packets=back_packets,
        duration_s=DURATION_S,
        **more,
    )
    return GeneratedWorld(scenario, () if network is None else ((network, mean),))


def _make_traffic(mean_mbps: float, rival: str | None, rival_at: float, return_mbps: float | None) -> Traffic | None:
    """Return a rival with half of the bottleneck's capacity to send while it lasts, and a lasting flow on the return path."""
    senders, start_s, size_bytes = [], [], []
    if rival is not None:
        senders.append(Sender(cc=rival, path=(0,), return_path=(1,)))
        start_s.append(rival_at * DURATION_S)
        size_bytes.append(max(1500, int(mean_mbps * 0.4 * DURATION_S * 1e6 / 8 / 2)))
    if return_mbps is not None:
        senders.append(Sender(cc="cubic", path=(1,), return_path=(0,)))
        start_s.append(1.0)
        size_bytes.append(max(1500, int(return_mbps * DURATION_S * 1e6 / 8)))
    if not senders:
        return None
    flows = FlowList(start_s=start_s, sender=range(len(senders)), size_bytes=size_bytes, priority=[0] * len(senders))
    return Traffic(senders=senders, arrivals=[flows])


def _make_network_family(name: str) -> Family:
    arguments = {
        "network": name,
        "trace_seed": Seed(),
        "rtt_ms": Between(20.0, 80.0),
        "buffer_bdp": Between(1.0, 4.0),
        "clock_offset_ms": Between(-50.0, 50.0, evenly=True),
        "clock_drift_ppm": Between(-50.0, 50.0, evenly=True),
        "timestamp_resolution_us": OneOf((1000, 1)),
    }
    return Family(f"generated {name} paths, 20 to 80 ms, buffers of 1 to 4 BDP: what agents are trained on", arguments)


_ANY = _make_network_family("4g").with_overrides("", network=OneOf(("wired", "wifi", "4g", "5g")))
_FIXED = _ANY.with_overrides("one rate throughout, 1 to 200 Mbit/s", network=None, trace_seed=0, rate_mbps=Between(1.0, 200.0))
FAMILIES = {
    **{name: _make_network_family(name) for name in ("wired", "wifi", "4g", "5g")},
    "fixed": _FIXED,
    "outages": _FIXED.with_overrides(
        "a path that carries nothing for 0.3 to 8 s, the queue held or dropped",
        rate_mbps=Between(1.0, 100.0),
        gone_at=Between(0.1, 0.7, evenly=True),
        gone_s=Between(0.3, 8.0),
        on_outage=OneOf(("hold", "drop")),
    ),
    "far": _ANY.with_overrides("all networks, 160 to 400 ms", rtt_ms=Between(160.0, 400.0)),
    "shallow": _ANY.with_overrides("all networks, buffers of 0.1 to 0.5 BDP", buffer_bdp=Between(0.1, 0.5)),
    "deep": _ANY.with_overrides("all networks, buffers of 8 to 32 BDP", buffer_bdp=Between(8.0, 32.0)),
    "loss": _ANY.with_overrides("all networks, random loss of 0.01 to 2 %", loss=Between(1e-4, 2e-2)),
    "delays": _ANY.with_overrides(
        "all networks, propagation that is multiplied by 0.3 to 3 once",
        later=Between(0.3, 3.0),
        later_at=Between(0.2, 0.8, evenly=True),
    ),
    "rivals": _ANY.with_overrides(
        "all networks, a flow of CUBIC, BBR or NewReno beside for a while",
        rival=OneOf(("cubic", "bbr", "newreno")),
        rival_at=Between(0.1, 0.5, evenly=True),
    ),
    "reverse": _ANY.with_overrides(
        "all networks, a CUBIC flow on a way back of 1 to 20 Mbit/s", return_mbps=Between(1.0, 20.0)
    ),
}
