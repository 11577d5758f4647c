"""TCP-PPCC's scenarios by name: its four, a fluctuating bottleneck, and random ones to train in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from netbuf_gym import checks, traces
from netbuf_gym.scenarios.distributions import Mixture, RandomDumbbell
from netbuf_gym.scenarios.named import World, interval_of, senders_of
from netbuf_gym.scenarios.topologies import dumbbell
from netbuf_gym.scenarios.types import Scenario

PPCC = {1: (150_000, 0.0), 2: (150_000, 1e-4), 3: (150, 0.0), 4: (150, 1e-4)}
"""TCP-PPCC's Table II: queue limit in packets, random loss."""


def _ppcc(number: int) -> Callable[..., World]:
    buffer, loss = PPCC[number]

    def maker(
        *,
        n: Any = None,
        senders: Any = None,
        rate_mbps: Any = 10.0,
        rtt_ms: Any = 48.0,
        duration_s: Any = 100.0,
        stagger_s: Any = 0.1,
        stack: Any = "linux",
    ) -> Scenario:
        return dumbbell(
            rate_mbps=rate_mbps,
            rtt_ms=rtt_ms,
            buffer_packets=buffer,
            loss=loss,
            senders=senders_of(n, senders),
            duration_s=duration_s,
            stagger_s=stagger_s,
            stack=stack,
            name=f"ppcc/{number}",
        )

    maker.__doc__ = f"TCP-PPCC's scenario {number}: 10 Mbit/s, 48 ms, {buffer} packets of buffer, random loss {loss:g}, 100 s."
    return maker


def ppcc_fluctuating(
    *,
    n: Any = None,
    senders: Any = None,
    low_mbps: Any = 10.0,
    high_mbps: Any = 20.0,
    half_period_s: Any = 10.0,
    rtt_ms: Any = 48.0,
    buffer_packets: Any = 150,
    loss: Any = 1e-4,
    duration_s: Any = 100.0,
    stagger_s: Any = 0.1,
    stack: Any = "linux",
) -> Scenario:
    """TCP-PPCC's fluctuating bottleneck, as ours: 10 and 20 Mbit/s in turn, 10 s each, scenario 4's buffer and loss."""
    half_period_s = checks.number("half_period_s", half_period_s, 0.001, 1e4)
    wave = traces.generate(
        "square", duration_s=2 * half_period_s, low_mbps=low_mbps, high_mbps=high_mbps, half_period_s=half_period_s
    )
    return dumbbell(
        trace=wave,
        rtt_ms=rtt_ms,
        buffer_packets=buffer_packets,
        loss=loss,
        senders=senders_of(n, senders),
        duration_s=duration_s,
        stagger_s=stagger_s,
        stack=stack,
        name="ppcc/fluctuating",
    )


def ppcc_random(
    *,
    n: Any = None,
    senders: Any = None,
    rate_mbps: Any = (1.0, 100.0),
    rtt_ms: Any = (5.0, 200.0),
    buffer_bdp: Any = (0.25, 8.0),
    loss_probability: Any = 0.5,
    loss: Any = (1e-5, 1e-2),
    change_probability: Any = 0.0,
    change_interval_s: Any = (2.0, 20.0),
    change_factor: Any = 4.0,
    duration_s: Any = 100.0,
    stagger_s: Any = 0.1,
    stack: Any = "linux",
) -> RandomDumbbell:
    """Random dumbbells: 1..100 Mbit/s, 5..200 ms, buffer 0.25..8 BDP; half lossless, the others lose 1e-5..1e-2.

    Args:
        rtt_ms: propagation there and back, above 0 to 1e+05 ms
        loss: probability that a data packet is lost after the bottleneck, in the worlds that lose any, above 0 to 0.999
    """
    return RandomDumbbell(
        rate_mbps=interval_of(rate_mbps),
        rtt_ms=interval_of(rtt_ms),
        buffer_bdp=interval_of(buffer_bdp),
        loss_probability=loss_probability,
        loss=interval_of(loss),
        change_probability=change_probability,
        change_interval_s=interval_of(change_interval_s),
        change_factor=change_factor,
        senders=senders_of(n, senders),
        duration_s=duration_s,
        stagger_s=stagger_s,
        stack=stack,
        name="ppcc/random",
    )


def ppcc_any(
    *,
    n: Any = None,
    senders: Any = None,
    rate_mbps: Any = 10.0,
    rtt_ms: Any = 48.0,
    duration_s: Any = 100.0,
    stagger_s: Any = 0.1,
    stack: Any = "linux",
) -> Mixture:
    """One of TCP-PPCC's four scenarios at random, each as likely."""
    parts = tuple(
        _ppcc(i)(
            n=n,
            senders=senders,
            rate_mbps=rate_mbps,
            rtt_ms=rtt_ms,
            duration_s=duration_s,
            stagger_s=stagger_s,
            stack=stack,
        )
        for i in PPCC
    )
    return Mixture(parts=parts, name="ppcc/any")


SCENARIOS: dict[str, Callable[..., World]] = {
    **{f"ppcc/{number}": _ppcc(number) for number in PPCC},
    "ppcc/fluctuating": ppcc_fluctuating,
    "ppcc/random": ppcc_random,
    "ppcc/any": ppcc_any,
}
"""What makes the world of each name."""
