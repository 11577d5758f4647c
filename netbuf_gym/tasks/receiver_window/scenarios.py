"""Nuwa's scenarios by name: the four networks, all of them, worlds for training, fairness, and trace files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from netbuf_gym import traces
from netbuf_gym.scenarios.factories import derive_factory
from netbuf_gym.scenarios.named import World, resolve_senders
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.receiver_window.random_paths import (
    DEFAULT_RECEIVER,
    NETWORKS,
    RECEIVER_DRIVEN,
    ReceiverPaths,
    assign_receivers,
    check_senders,
    receiver_world,
)
from netbuf_gym.tasks.receiver_window.trace_paths import TraceWindows
from netbuf_gym.utils import checks

_ARGS = """

    Args:
        rtt_ms: propagation there and back, above 0 to 1e+05 ms
        buffer_packets: queue limit of the bottleneck instead of buffer_bdp, 1 or more; null: by that
        step_probability: share of the worlds whose route changes once, 0 to 1
        step_ms: how much longer or shorter it becomes, drawn from this range, above 0 to 1e+05 ms
        drop_probability: share of the worlds whose queue is dropped at outages, 0 to 1
        seconds_probability: share of the worlds whose path is even within seconds, as measured by the second, 0 to 1
        loss: probability that a data packet is lost after the bottleneck, in the worlds that lose any, above 0 to 0.999
        duration_s: length of the world, and of its trace, 0.001 to 1e+04 s
"""
_FAIRNESS_ARGS = """

    Args:
        n: number of receiver-driven flows, without any other, 1 to 10000; null: two, and two of CUBIC
"""
_TRACE_ARGS = """

    Args:
        trace_seed: seed of the generated trace, without a path, 0 to 2**63 - 1
        clock_offset_ms: lead of the receiver's clock over the sender's, -1e+09 to 1e+09 ms
        clock_drift_ppm: gain of the receiver's clock, -1e+05 to 1e+05 parts in a million
        duration_s: length of the world, and of its generated trace, 0.001 to 1e+04 s
"""
_WINDOWS_ARGS = """

    Args:
        rtt_ms: propagation there and back, or several of which each is as likely, above 0 to 1e+05 ms
        buffer_packets: queue limit of the bottleneck instead of buffer_bdp, 1 or more; null: by buffer_bdp
        duration_s: length of a window and of its world, 1 to 1e+04 s
"""


def _make_paths_factory(name: str, networks: tuple[str, ...], summary: str, **own: Any) -> Callable[..., World]:
    """Return a factory of worlds over some networks; `own` replaces defaults of `ReceiverPaths`."""

    def make(*, mean_mbps: float | None = None, spread: float = 1.0, outages: float = 1.0, **paths: Any) -> ReceiverPaths:
        generated = {"mean_mbps": mean_mbps, "spread": spread, "outages": outages}
        return ReceiverPaths(networks=networks, arguments=generated, **paths)

    return derive_factory(
        make,
        summary + _ARGS,
        like=ReceiverPaths,
        without=("networks", "arguments", "reverse_mbps", "min_buffer_packets"),
        fixed={"name": name},
        resolve=_resolve_senders,
        **own,
    )


def nuwa_fairness(
    *,
    n: int | None = None,
    senders: Any = None,
    receiver: Any = DEFAULT_RECEIVER,
    rate_mbps: float = 10.0,
    **world: Any,
) -> Scenario:
    """Return flows that start one after the other over one link.

    Args:
        n, senders: Congestion controls of the flows, by number or by name; neither: two receiver-driven ones, two of CUBIC.
        receiver: Receiver control of the receiver-driven flows.
        rate_mbps: Rate of the bottleneck, 1e-6 to 1e6 Mbit/s.
        world: Further arguments of `receiver_world`.
    """
    if n is None and senders is None:
        senders = (RECEIVER_DRIVEN, RECEIVER_DRIVEN, "cubic", "cubic")
    chosen = _resolve_senders(n, senders)
    rate_mbps = checks.number("rate_mbps", rate_mbps, 1e-6, 1e6)
    return receiver_world(
        rate_mbps=rate_mbps, senders=chosen, receivers=assign_receivers(chosen, receiver), name="nuwa/fairness", **world
    )


def nuwa_trace(
    *,
    path: str | None = None,
    network: str = "4g",
    trace_seed: int = 1,
    loop: bool = True,
    senders: Any,
    receiver: Any = DEFAULT_RECEIVER,
    timestamp_us: int = 1000,
    duration_s: float = 80.0,
    **world: Any,
) -> Scenario:
    """Return flows behind a link that follows a trace.

    Args:
        path, loop: Trace file, and whether it starts again at its end; None: a generated trace.
        network, trace_seed: Generator of the trace (`netbuf_gym.traces.GENERATORS`) and its seed, 0 to 2**63 - 1.
        senders: Congestion controls of the flows.
        receiver: Receiver control of the receiver-driven flows.
        timestamp_us: Resolution of time stamps, 1 or 1000.
        duration_s: Length of the world, and of its generated trace, 0.001 to 1e4 seconds.
        world: Further arguments of `receiver_world`.
    """
    trace_seed = checks.integer("trace_seed", trace_seed, 0, 2**63 - 1)
    network = checks.choice("network", network, tuple(traces.GENERATORS))
    duration_s = checks.number("duration_s", duration_s, 0.001, 1e4)  # a trace of 1e5 s takes seconds and gigabytes to draw
    if path is None:
        capacity = traces.generate(network, duration_s=duration_s, seed=trace_seed)
    else:
        capacity = traces.read(path, loop=checks.boolean("loop", loop))
    return receiver_world(
        trace=capacity,
        senders=senders,
        receivers=assign_receivers(senders, receiver),
        duration_s=duration_s,
        timestamp_resolution_us=timestamp_us,
        name="nuwa/trace",
        **world,
    )


def nuwa_trace_windows(
    *,
    path: Any = None,
    network: str | None = None,
    part: str = "evaluation",
    rtt_ms: Any = 40.0,
    buffer_bdp: Any = (1.0, 4.0),
    loss: float = 0.0,
    on_outage: str = "hold",
    duration_s: float = 60.0,
    **paths: Any,
) -> World:
    """Return worlds over windows of trace files, or without a path of traces over a generated network, "4g" by default.

    Args:
        path, network, part, rtt_ms, buffer_bdp, loss, on_outage, duration_s: As in `TraceWindows`.
        paths: Further fields of `TraceWindows`, which `ReceiverPaths` has too.
    """
    duration_s = checks.number("duration_s", duration_s, 1, 1e4)
    if path is not None:
        files = {"path": path, "network": network, "part": part, "loss": loss, "on_outage": on_outage}
        return TraceWindows(rtt_ms=rtt_ms, buffer_bdp=buffer_bdp, duration_s=duration_s, **files, **paths)
    return ReceiverPaths(
        networks=("4g" if network is None else network,),
        rtt_ms=(min(rtt_ms), max(rtt_ms)) if isinstance(rtt_ms, (list, tuple)) else rtt_ms,
        buffer_bdp=(min(buffer_bdp), max(buffer_bdp)) if isinstance(buffer_bdp, (list, tuple)) else buffer_bdp,
        loss_probability=float(loss != 0),
        loss=loss or (1e-5, 1e-2),
        duration_s=duration_s,
        name="nuwa/traces",
        **paths,
    )


def _resolve_senders(n: Any, senders: Any) -> tuple[Any, ...]:
    """Return the congestion controls of the flows: `n` receiver-driven ones, unless `senders` gives others."""
    return check_senders(
        resolve_senders(n, senders) if senders is not None else resolve_senders(1 if n is None else n, RECEIVER_DRIVEN)
    )


_SUMMARIES = {
    "wired": "Paths over fixed access lines to a receiver, generated: 20 to 80 ms, buffers of 1 to 4 BDP, 80 s.",
    "wifi": "Paths over Wi-Fi to a receiver, generated: 20 to 80 ms, buffers of 1 to 4 BDP, 80 s.",
    "4g": "Paths over LTE to a receiver, generated: 20 to 80 ms, buffers of 1 to 4 BDP, 80 s.",
    "5g": "Paths over 5G to a receiver, generated: 20 to 80 ms, buffers of 1 to 4 BDP, 80 s.",
}

SCENARIOS: dict[str, Callable[..., World]] = {
    **{f"nuwa/{network}": _make_paths_factory(f"nuwa/{network}", (network,), _SUMMARIES[network]) for network in NETWORKS},
    "nuwa/any": _make_paths_factory(
        "nuwa/any", NETWORKS, "Paths over wired, Wi-Fi, 4G or 5G to a receiver, each as likely, 80 s."
    ),
    "nuwa/training": _make_paths_factory(
        "nuwa/training",
        ("wired", "wifi", "4g", "4g", "5g", "5g"),
        "What receivers are trained on: the four networks, wider apart, 4G and 5G twice as likely, and changing.",
        rtt_ms=(10.0, 160.0),
        buffer_bdp=(0.5, 8.0),
        spread=1.25,
        unchanged_probability=0.1,
        competitor_probability=0.08,
        reverse_probability=0.1,
        loss_probability=0.1,
        step_probability=0.1,
        drop_probability=0.2,
        seconds_probability=0.25,
        duration_s=40.0,
    ),
    "nuwa/fairness": derive_factory(
        nuwa_fairness,
        "Nuwa's fairness test: two receiver-driven flows and two of CUBIC, one more every 10 s, over 10 Mbit/s."
        + _FAIRNESS_ARGS,
        like=receiver_world,
        only=("rtt_ms", "buffer_packets", "duration_s", "stagger_s"),
        buffer_packets=100,
        stagger_s=10.0,
    ),
    "nuwa/trace": derive_factory(
        nuwa_trace,
        "A receiver behind a link that follows a trace file, or one trace of a generator: 40 ms, 250 packets of buffer, 80 s."
        + _TRACE_ARGS,
        like=receiver_world,
        only=("rtt_ms", "buffer_packets", "loss", "stagger_s", "clock_offset_ms", "clock_drift_ppm"),
        resolve=_resolve_senders,
    ),
    "nuwa/traces": derive_factory(
        nuwa_trace_windows,
        "A folder of trace files: each seed another file, another window of 60 s without an outage throughout, another buffer."
        + _WINDOWS_ARGS,
        like=TraceWindows,
        without=("name",),
        resolve=_resolve_senders,
    ),
}
"""Makers of worlds by scenario name."""
