"""Named scenarios: TCP-PPCC's four, a fluctuating bottleneck, random dumbbells, and families of paths with their mixture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from netbuf_gym import traces
from netbuf_gym.errors import ScenarioError, ScenarioTypeError, shown
from netbuf_gym.scenarios.distributions import Mixture, RandomDumbbell
from netbuf_gym.scenarios.named import World, normalise_interval, resolve_senders
from netbuf_gym.scenarios.topologies import dumbbell
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.congestion_window.families import FAMILIES, MIXED_NETWORKS, SenderPaths
from netbuf_gym.utils import checks
from netbuf_gym.utils.suggestions import suggest_valid
from netbuf_gym.utils.sums import sequential_sum

PPCC = {1: (150_000, 0.0), 2: (150_000, 1e-4), 3: (150, 0.0), 4: (150, 1e-4)}
"""TCP-PPCC's Table II: queue limit in packets, random loss."""


def _make_ppcc_factory(number: int) -> Callable[..., World]:
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
            senders=resolve_senders(n, senders),
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
    """TCP-PPCC's fluctuating bottleneck as modelled here: 10 and 20 Mbit/s in turn, 10 s each, buffer and loss of no. 4."""
    half_period_s = checks.number("half_period_s", half_period_s, 0.001, 1e4)
    wave = traces.generate(
        "square", duration_s=2 * half_period_s, low_mbps=low_mbps, high_mbps=high_mbps, half_period_s=half_period_s
    )
    return dumbbell(
        trace=wave,
        rtt_ms=rtt_ms,
        buffer_packets=buffer_packets,
        loss=loss,
        senders=resolve_senders(n, senders),
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
        rate_mbps=normalise_interval(rate_mbps),
        rtt_ms=normalise_interval(rtt_ms),
        buffer_bdp=normalise_interval(buffer_bdp),
        loss_probability=loss_probability,
        loss=normalise_interval(loss),
        change_probability=change_probability,
        change_interval_s=normalise_interval(change_interval_s),
        change_factor=change_factor,
        senders=resolve_senders(n, senders),
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
    """One of TCP-PPCC's four scenarios, drawn with equal probability."""
    parts = tuple(
        _make_ppcc_factory(i)(
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


SHARES = {
    "fixed": 0.2,
    "steps": 0.1,
    "jitter": 0.15,
    "cellular": 0.15,
    "outages": 0.06,
    "loss": 0.06,
    "delays": 0.06,
    "reverse": 0.06,
    "rivals": 0.08,
    "agents": 0.08,
}
"""Shares of the families in `paths/training`."""
FAST, FAST_MBPS = ("fixed", "loss"), (100.0, 1000.0)
"""Families and rates of additional fast worlds; fast worlds are short, so that random draws give few seconds of them."""

_PATHS_ARGS = """

    Args:
        rate_mbps: rate of the bottleneck on the wire, 0.01 to 1e+04 Mbit/s
        rtt_ms: propagation there and back, above 0 to 1e+05 ms
        loss: probability that a data packet is lost after the bottleneck, in the worlds that lose any, above 0 to 0.999
        duration_s: length of the longest worlds, 1 to 1e+04 s
"""


def _make_family_factory(family: str) -> Callable[..., World]:
    def maker(
        *,
        n: Any = None,
        senders: Any = None,
        rate_mbps: Any = (0.5, 1000.0),
        rtt_ms: Any = (5.0, 400.0),
        buffer_bdp: Any = (0.25, 16.0),
        loss: Any = (1e-4, 2e-2),
        competitors: Any = None,
        networks: Any = MIXED_NETWORKS,
        leave_probability: Any = 0.3,
        mixed_probability: Any = 0.0,
        jitter_probability: Any = 0.0,
        rivals_probability: Any = 0.0,
        stagger_s: Any = (0.05, 4.0),
        duration_s: Any = 20.0,
        most_mbit: Any = 2000.0,
    ) -> SenderPaths:
        return SenderPaths(
            family=family,
            senders=resolve_senders(n, senders),
            rate_mbps=normalise_interval(rate_mbps),
            rtt_ms=normalise_interval(rtt_ms),
            buffer_bdp=normalise_interval(buffer_bdp),
            loss=normalise_interval(loss),
            competitors=competitors,
            networks=networks,
            leave_probability=leave_probability,
            mixed_probability=mixed_probability,
            jitter_probability=jitter_probability,
            rivals_probability=rivals_probability,
            stagger_s=stagger_s,
            duration_s=duration_s,
            most_mbit=most_mbit,
            name=f"paths/{family}",
        )

    maker.__doc__ = f"Random paths, 0.5..1000 Mbit/s, 5..400 ms, 0.25..16 BDP: {FAMILIES[family]}.{_PATHS_ARGS}"
    return maker


def paths_training(
    *,
    n: Any = None,
    senders: Any = None,
    shares: Any = None,
    rate_mbps: Any = (0.5, 1000.0),
    rtt_ms: Any = (5.0, 400.0),
    buffer_bdp: Any = (0.25, 16.0),
    loss: Any = (1e-4, 2e-2),
    competitors: Any = None,
    networks: Any = MIXED_NETWORKS,
    leave_probability: Any = 0.3,
    mixed_probability: Any = 0.2,
    jitter_probability: Any = 0.0,
    rivals_probability: Any = 0.0,
    stagger_s: Any = (0.05, 4.0),
    duration_s: Any = 20.0,
    most_mbit: Any = 2000.0,
    fast_share: Any = 0.0,
) -> Mixture:
    """Training distribution of senders: all families of paths, each with a share of the worlds."""
    chosen = SHARES if shares is None else shares
    if not isinstance(chosen, Mapping):
        raise ScenarioTypeError(f"shares = {shown(chosen)}; valid: a number for each family, e.g. {{fixed: 1, jitter: 2}}")
    for family in chosen:
        if family not in FAMILIES:
            raise ScenarioError(f"shares has no family {shown(family)}; {suggest_valid(str(family), FAMILIES)}")
    given = {family: checks.number(f"shares.{family}", share, 0, 1e9) for family, share in chosen.items()}
    drawn = {family: share for family, share in given.items() if share}
    if not drawn:
        raise ScenarioError("shares are all 0; valid: at least one above 0")
    fast_share = checks.number("fast_share", fast_share, 0, 0.9)
    common = {"n": n, "senders": senders, "rtt_ms": rtt_ms, "buffer_bdp": buffer_bdp, "loss": loss, "competitors": competitors}
    common |= {"networks": networks, "leave_probability": leave_probability, "duration_s": duration_s, "most_mbit": most_mbit}
    common |= {"jitter_probability": jitter_probability, "rivals_probability": rivals_probability, "stagger_s": stagger_s}
    parts = [
        _make_family_factory(family)(rate_mbps=rate_mbps, mixed_probability=mixed_probability, **common) for family in drawn
    ]
    weights = list(drawn.values())
    if fast_share:
        parts += [_make_family_factory(family)(rate_mbps=FAST_MBPS, mixed_probability=0.5, **common) for family in FAST]
        weights += [sequential_sum(weights) * fast_share / (1 - fast_share) / len(FAST)] * len(FAST)
    return Mixture(parts=parts, weights=tuple(weights), name="paths/training")


paths_training.__doc__ = f"{paths_training.__doc__}{_PATHS_ARGS}"

SCENARIOS: dict[str, Callable[..., World]] = {
    **{f"ppcc/{number}": _make_ppcc_factory(number) for number in PPCC},
    "ppcc/fluctuating": ppcc_fluctuating,
    "ppcc/random": ppcc_random,
    "ppcc/any": ppcc_any,
    **{f"paths/{family}": _make_family_factory(family) for family in FAMILIES},
    "paths/training": paths_training,
}
"""Factory of each named scenario."""
