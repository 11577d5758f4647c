"""Named scenarios: TCP-PPCC's four, a fluctuating bottleneck, random dumbbells, and families of paths with their mixture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from netbuf_gym import traces
from netbuf_gym.errors import ScenarioError, ScenarioTypeError, quote
from netbuf_gym.scenarios.distributions import Mixture, RandomDumbbell
from netbuf_gym.scenarios.factories import derive_factory
from netbuf_gym.scenarios.named import World, resolve_senders
from netbuf_gym.scenarios.topologies import dumbbell
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.congestion_window.families import FAMILIES, SenderPaths
from netbuf_gym.utils import checks
from netbuf_gym.utils.suggestions import suggest_valid
from netbuf_gym.utils.sums import sequential_sum

PPCC = {1: (150_000, 0.0), 2: (150_000, 1e-4), 3: (150, 0.0), 4: (150, 1e-4)}
"""TCP-PPCC's Table II: queue limit in packets, random loss."""


_DUMBBELL = ("rate_mbps", "rtt_ms", "duration_s", "stagger_s", "stack")


def _make_ppcc_factory(number: int) -> Callable[..., World]:
    buffer, loss = PPCC[number]
    summary = f"TCP-PPCC's scenario {number}: 10 Mbit/s, 48 ms, {buffer} packets of buffer, random loss {loss:g}, 100 s."
    path = {"buffer_packets": buffer, "loss": loss, "name": f"ppcc/{number}"}
    return derive_factory(dumbbell, summary, only=_DUMBBELL, fixed=path, resolve=resolve_senders)


def ppcc_fluctuating(*, low_mbps: float = 10.0, high_mbps: float = 20.0, half_period_s: float = 10.0, **world: Any) -> Scenario:
    """Return the fluctuating dumbbell: two rates in turn, each for `half_period_s` seconds, 0.001 to 1e4."""
    half_period_s = checks.number("half_period_s", half_period_s, 0.001, 1e4)
    wave = traces.generate(
        "square", duration_s=2 * half_period_s, low_mbps=low_mbps, high_mbps=high_mbps, half_period_s=half_period_s
    )
    return dumbbell(trace=wave, name="ppcc/fluctuating", **world)


def ppcc_any(**world: Any) -> Mixture:
    """Return the mixture of TCP-PPCC's four scenarios."""
    parts = [dumbbell(buffer_packets=buffer, loss=loss, name=f"ppcc/{i}", **world) for i, (buffer, loss) in PPCC.items()]
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

_RANDOM_ARGS = """

    Args:
        rtt_ms: propagation there and back, above 0 to 1e+05 ms
        loss: probability that a data packet is lost after the bottleneck, in the worlds that lose any, above 0 to 0.999
"""
_PATHS_ARGS = """

    Args:
        rate_mbps: rate of the bottleneck on the wire, 0.01 to 1e+04 Mbit/s
        rtt_ms: propagation there and back, above 0 to 1e+05 ms
        loss: probability that a data packet is lost after the bottleneck, in the worlds that lose any, above 0 to 0.999
        duration_s: length of the longest worlds, 1 to 1e+04 s
"""


def _make_family_factory(family: str) -> Callable[..., World]:
    summary = f"Random paths, 0.5..1000 Mbit/s, 5..400 ms, 0.25..16 BDP: {FAMILIES[family]}.{_PATHS_ARGS}"
    fixed = {"family": family, "name": f"paths/{family}"}
    return derive_factory(SenderPaths, summary, fixed=fixed, resolve=resolve_senders, mixed_probability=0.0)


def paths_training(*, shares: Mapping[str, float] | None = None, fast_share: float = 0.0, **paths: Any) -> Mixture:
    """Return the training distribution of senders.

    Args:
        shares: Shares of the worlds by family, 0 or more, not all 0; families left out are not drawn. None: `SHARES`.
        fast_share: Share of additional worlds of `FAST_MBPS`, 0 to 0.9.
        paths: Fields of `SenderPaths` that all families have.
    """
    chosen = SHARES if shares is None else shares
    if not isinstance(chosen, Mapping):
        raise ScenarioTypeError(f"shares = {quote(chosen)}; valid: a number for each family, e.g. {{fixed: 1, jitter: 2}}")
    for family in chosen:
        if family not in FAMILIES:
            raise ScenarioError(f"shares has no family {quote(family)}; {suggest_valid(str(family), FAMILIES)}")
    given = {family: checks.number(f"shares.{family}", share, 0, 1e9) for family, share in chosen.items()}
    drawn = {family: share for family, share in given.items() if share}
    if not drawn:
        raise ScenarioError("shares are all 0; valid: at least one above 0")
    fast_share = checks.number("fast_share", fast_share, 0, 0.9)
    parts = [SenderPaths(family=family, name=f"paths/{family}", **paths) for family in drawn]
    weights = list(drawn.values())
    if fast_share:
        fast = {**paths, "rate_mbps": FAST_MBPS, "mixed_probability": 0.5}
        parts += [SenderPaths(family=family, name=f"paths/{family}", **fast) for family in FAST]
        weights += [sequential_sum(weights) * fast_share / (1 - fast_share) / len(FAST)] * len(FAST)
    return Mixture(parts=parts, weights=tuple(weights), name="paths/training")


SCENARIOS: dict[str, Callable[..., World]] = {
    **{f"ppcc/{number}": _make_ppcc_factory(number) for number in PPCC},
    "ppcc/fluctuating": derive_factory(
        ppcc_fluctuating,
        "TCP-PPCC's fluctuating bottleneck as modelled here: 10 and 20 Mbit/s in turn, 10 s each, buffer and loss of no. 4.",
        like=dumbbell,
        only=("rtt_ms", "buffer_packets", "loss", "duration_s", "stagger_s", "stack"),
        resolve=resolve_senders,
        loss=1e-4,
    ),
    "ppcc/random": derive_factory(
        RandomDumbbell,
        "Random dumbbells: 1..100 Mbit/s, 5..200 ms, buffer 0.25..8 BDP; half lossless, the others lose 1e-5..1e-2."
        + _RANDOM_ARGS,
        without=("min_buffer_packets",),
        fixed={"name": "ppcc/random"},
        resolve=resolve_senders,
    ),
    "ppcc/any": derive_factory(
        ppcc_any,
        "One of TCP-PPCC's four scenarios, drawn with equal probability.",
        like=dumbbell,
        only=_DUMBBELL,
        resolve=resolve_senders,
    ),
    **{f"paths/{family}": _make_family_factory(family) for family in FAMILIES},
    "paths/training": derive_factory(
        paths_training,
        f"Training distribution of senders: all families of paths, each with a share of the worlds.{_PATHS_ARGS}",
        like=SenderPaths,
        without=("family", "name"),
        resolve=resolve_senders,
    ),
}
"""Factory of each named scenario."""
