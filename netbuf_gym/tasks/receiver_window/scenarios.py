"""Nuwa's scenarios by name: the four networks, all of them, worlds for training, fairness, and trace files."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from netbuf_gym import traces
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


def _make_paths_scenario(name: str, networks: tuple[str, ...], summary: str, **own: Any) -> Callable[..., World]:
    """Return a maker of worlds over some networks; `own`: defaults that differ from the common ones."""
    defaults = {
        "n": None,
        "senders": None,
        "receiver": DEFAULT_RECEIVER,
        "rtt_ms": (20.0, 80.0),
        "buffer_bdp": (1.0, 4.0),
        "buffer_packets": None,
        "mean_mbps": None,
        "spread": 1.0,
        "outages": 1.0,
        "unchanged_probability": 0.0,
        "clock_offset_ms": 50.0,
        "clock_drift_ppm": 50.0,
        "timestamp_us": (1000, 1),
        "competitor_probability": 0.0,
        "competitors": ("cubic", "bbr", "newreno"),
        "reverse_probability": 0.0,
        "loss_probability": 0.0,
        "loss": (1e-5, 1e-2),
        "step_probability": 0.0,
        "step_ms": (5.0, 80.0),
        "drop_probability": 0.0,
        "seconds_probability": 0.0,
        "duration_s": 80.0,
        "stagger_s": 0.1,
        **own,
    }

    def maker(**given: Any) -> ReceiverPaths:
        chosen = {**defaults, **given}
        senders = _resolve_senders(chosen.pop("n"), chosen.pop("senders"))
        generated = {key: chosen.pop(key) for key in ("mean_mbps", "spread", "outages")}
        lists = {key: tuple(value) for key, value in chosen.items() if isinstance(value, list)}
        return ReceiverPaths(networks=networks, arguments=generated, senders=senders, name=name, **{**chosen, **lists})

    maker.__doc__ = summary + _ARGS
    maker.__signature__ = inspect.Signature(
        [inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=value) for key, value in defaults.items()]
    )
    return maker


def nuwa_fairness(
    *,
    n: Any = None,
    senders: Any = None,
    receiver: Any = DEFAULT_RECEIVER,
    rate_mbps: Any = 10.0,
    rtt_ms: Any = 40.0,
    buffer_packets: Any = 100,
    duration_s: Any = 80.0,
    stagger_s: Any = 10.0,
) -> Scenario:
    """Nuwa's fairness test: two receiver-driven flows and two of CUBIC, one more every 10 s, over 10 Mbit/s.

    Args:
        n: number of receiver-driven flows, without any other, 1 to 10000; null: two, and two of CUBIC
    """
    if n is None and senders is None:
        senders = (RECEIVER_DRIVEN, RECEIVER_DRIVEN, "cubic", "cubic")
    chosen = _resolve_senders(n, senders)
    return receiver_world(
        rate_mbps=checks.number("rate_mbps", rate_mbps, 1e-6, 1e6),
        rtt_ms=rtt_ms,
        buffer_packets=buffer_packets,
        senders=chosen,
        receivers=assign_receivers(chosen, receiver),
        duration_s=duration_s,
        stagger_s=stagger_s,
        name="nuwa/fairness",
    )


def nuwa_trace(
    *,
    path: Any = None,
    network: Any = "4g",
    trace_seed: Any = 1,
    n: Any = None,
    senders: Any = None,
    receiver: Any = DEFAULT_RECEIVER,
    rtt_ms: Any = 40.0,
    buffer_packets: Any = 250,
    loss: Any = 0.0,
    duration_s: Any = 80.0,
    stagger_s: Any = 0.1,
    loop: Any = True,
    clock_offset_ms: Any = 0.0,
    clock_drift_ppm: Any = 0.0,
    timestamp_us: Any = 1000,
) -> Scenario:
    """A receiver behind a link that follows a trace file, or one trace of a generator: 40 ms, 250 packets of buffer, 80 s.

    Args:
        trace_seed: seed of the generated trace, without a path, 0 to 2**63 - 1
        clock_offset_ms: lead of the receiver's clock over the sender's, -1e+09 to 1e+09 ms
        clock_drift_ppm: gain of the receiver's clock, -1e+05 to 1e+05 parts in a million
        duration_s: length of the world, and of its generated trace, 0.001 to 1e+04 s
    """
    chosen = _resolve_senders(n, senders)
    trace_seed = checks.integer("trace_seed", trace_seed, 0, 2**63 - 1)
    network = checks.choice("network", network, tuple(traces.GENERATORS))
    duration_s = checks.number("duration_s", duration_s, 0.001, 1e4)  # a trace of 1e5 s takes seconds and gigabytes to draw
    if path is None:
        capacity = traces.generate(network, duration_s=duration_s, seed=trace_seed)
    else:
        capacity = traces.read(path, loop=checks.boolean("loop", loop))
    return receiver_world(
        trace=capacity,
        rtt_ms=rtt_ms,
        buffer_packets=buffer_packets,
        loss=loss,
        senders=chosen,
        receivers=assign_receivers(chosen, receiver),
        duration_s=duration_s,
        stagger_s=stagger_s,
        clock_offset_ms=clock_offset_ms,
        clock_drift_ppm=clock_drift_ppm,
        timestamp_resolution_us=timestamp_us,
        name="nuwa/trace",
    )


def nuwa_trace_windows(
    *,
    path: Any = None,
    network: Any = None,
    part: Any = "evaluation",
    n: Any = None,
    senders: Any = None,
    receiver: Any = DEFAULT_RECEIVER,
    rtt_ms: Any = 40.0,
    buffer_bdp: Any = (1.0, 4.0),
    buffer_packets: Any = None,
    loss: Any = 0.0,
    on_outage: Any = "hold",
    clock_offset_ms: Any = 50.0,
    clock_drift_ppm: Any = 50.0,
    timestamp_us: Any = (1000, 1),
    duration_s: Any = 60.0,
    stagger_s: Any = 0.1,
) -> World:
    """A folder of trace files: each seed another file, another window of 60 s without an outage throughout, another buffer.

    Args:
        rtt_ms: propagation there and back, or several of which each is as likely, above 0 to 1e+05 ms
        buffer_packets: queue limit of the bottleneck instead of buffer_bdp, 1 or more; null: by buffer_bdp
        duration_s: length of a window and of its world, 1 to 1e+04 s
    """
    duration_s = checks.number("duration_s", duration_s, 1, 1e4)
    if path is None:
        return ReceiverPaths(
            networks=("4g" if network is None else network,),
            senders=_resolve_senders(n, senders),
            receiver=receiver,
            rtt_ms=(min(rtt_ms), max(rtt_ms)) if isinstance(rtt_ms, (list, tuple)) else rtt_ms,
            buffer_bdp=(min(buffer_bdp), max(buffer_bdp)) if isinstance(buffer_bdp, (list, tuple)) else buffer_bdp,
            buffer_packets=buffer_packets,
            clock_offset_ms=clock_offset_ms,
            clock_drift_ppm=clock_drift_ppm,
            timestamp_us=timestamp_us,
            loss_probability=float(loss != 0),
            loss=loss or (1e-5, 1e-2),
            duration_s=duration_s,
            stagger_s=stagger_s,
            name="nuwa/traces",
        )
    return TraceWindows(
        path=path,
        network=network,
        part=part,
        rtt_ms=rtt_ms,
        buffer_bdp=buffer_bdp,
        buffer_packets=buffer_packets,
        senders=_resolve_senders(n, senders),
        receiver=receiver,
        loss=loss,
        on_outage=on_outage,
        clock_offset_ms=clock_offset_ms,
        clock_drift_ppm=clock_drift_ppm,
        timestamp_us=timestamp_us,
        duration_s=duration_s,
        stagger_s=stagger_s,
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
    **{f"nuwa/{network}": _make_paths_scenario(f"nuwa/{network}", (network,), _SUMMARIES[network]) for network in NETWORKS},
    "nuwa/any": _make_paths_scenario(
        "nuwa/any", NETWORKS, "Paths over wired, Wi-Fi, 4G or 5G to a receiver, each as likely, 80 s."
    ),
    "nuwa/training": _make_paths_scenario(
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
    "nuwa/fairness": nuwa_fairness,
    "nuwa/trace": nuwa_trace,
    "nuwa/traces": nuwa_trace_windows,
}
"""Makers of worlds by scenario name."""
