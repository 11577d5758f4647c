"""Seeded generators of time-varying capacity, for training, tests and examples.

This module has simple generators; `networks` has those of whole networks (wired, wifi, 4g, 5g).

Each generator is a function of keyword arguments with defaults; `generate(name, ...)` calls one by name.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from netbuf_gym.errors import ScenarioError, quote
from netbuf_gym.traces import networks
from netbuf_gym.traces.types import (
    MAX_OPPORTUNITIES,
    MAX_RATE_MBPS,
    MAX_STEPS,
    MIN_RATE_MBPS,
    OPPORTUNITY_BYTES,
    DeliveryTrace,
    RateTrace,
    Trace,
)
from netbuf_gym.utils import checks
from netbuf_gym.utils.docstrings import find_range, parse_arguments
from netbuf_gym.utils.suggestions import suggest_valid


def constant(rng: np.random.Generator, duration_s: float, *, rate_mbps: float = 12.0) -> RateTrace:
    """Constant rate."""
    return RateTrace([0.0], [_check_rate("rate_mbps", rate_mbps)], duration_s)


def square(
    rng: np.random.Generator,
    duration_s: float,
    *,
    low_mbps: float = 10.0,
    high_mbps: float = 20.0,
    half_period_s: float = 10.0,
) -> RateTrace:
    """Square wave between two rates, the low one first, each for `half_period_s`."""
    half_period_s = checks.number("half_period_s", half_period_s, 0.001, 1e6)
    time_s = _make_step_times(duration_s, half_period_s)
    rates = np.array([checks.number("low_mbps", low_mbps, 0, MAX_RATE_MBPS), _check_rate("high_mbps", high_mbps)])
    return RateTrace(time_s, rates[np.arange(len(time_s)) % 2], duration_s)


def walk(
    rng: np.random.Generator,
    duration_s: float,
    *,
    start_mbps: float = 12.0,
    low_mbps: float = 2.0,
    high_mbps: float = 40.0,
    sigma: float = 0.1,
    step_s: float = 0.1,
) -> RateTrace:
    """Random walk of log(rate), reflected at both ends: a slowly varying cellular link."""
    time_s = _make_step_times(duration_s, step_s)
    return RateTrace(time_s, _generate_walk(rng, len(time_s), start_mbps, low_mbps, high_mbps, sigma), duration_s)


def lte(
    rng: np.random.Generator,
    duration_s: float,
    *,
    start_mbps: float = 12.0,
    low_mbps: float = 1.0,
    high_mbps: float = 40.0,
    sigma: float = 0.15,
    outages_per_minute: float = 6.0,
    outage_min_s: float = 0.1,
    outage_max_s: float = 0.8,
    step_s: float = 0.05,
) -> RateTrace:
    """Random walk with outages: gaps of `outage_min_s` to `outage_max_s` without a delivery; `4g` is calibrated."""
    time_s = _make_step_times(duration_s, step_s)
    rate = _generate_walk(rng, len(time_s), start_mbps, low_mbps, high_mbps, sigma)
    per_step = checks.number("outages_per_minute", outages_per_minute, 0, 600) * step_s / 60
    return RateTrace(time_s, _add_dips(rng, rate, per_step, outage_min_s, outage_max_s, step_s, 0.0, 0.0), duration_s)


def mmwave(
    rng: np.random.Generator,
    duration_s: float,
    *,
    start_mbps: float = 200.0,
    low_mbps: float = 60.0,
    high_mbps: float = 400.0,
    sigma: float = 0.08,
    blockages_per_minute: float = 12.0,
    blockage_min_s: float = 0.3,
    blockage_max_s: float = 2.0,
    blocked_low_mbps: float = 20.0,
    blocked_high_mbps: float = 40.0,
    step_s: float = 0.1,
) -> RateTrace:
    """Fast random walk with abrupt blockages to a tenth of the rate, as in millimetre-wave links; `5g` is calibrated."""
    time_s = _make_step_times(duration_s, step_s)
    rate = _generate_walk(rng, len(time_s), start_mbps, low_mbps, high_mbps, sigma)
    low, high = _check_rate("blocked_low_mbps", blocked_low_mbps), _check_rate("blocked_high_mbps", blocked_high_mbps)
    per_step = checks.number("blockages_per_minute", blockages_per_minute, 0, 600) * step_s / 60
    return RateTrace(time_s, _add_dips(rng, rate, per_step, blockage_min_s, blockage_max_s, step_s, low, high), duration_s)


def poisson(rng: np.random.Generator, duration_s: float, *, rate_mbps: float = 2.64) -> DeliveryTrace:
    """Poisson process of delivery opportunities with a given mean rate, to the millisecond (as on Pantheon's paths)."""
    per_ms = _check_rate("rate_mbps", rate_mbps) * 1e3 / (OPPORTUNITY_BYTES * 8)
    slots = max(1, round(duration_s * 1e3))
    if per_ms * slots > MAX_OPPORTUNITIES:
        raise ScenarioError(
            f"rate_mbps = {rate_mbps:g} makes {per_ms * slots:.4g} opportunities in {duration_s:g} s;"
            f" valid: at most {MAX_OPPORTUNITIES}"
        )
    count = rng.poisson(per_ms, slots)
    time_ms = np.repeat(np.arange(1, len(count) + 1), count)
    if not len(time_ms):
        raise ScenarioError(f"rate_mbps = {rate_mbps:g} delivers nothing in {duration_s:g} s; valid: at least one packet")
    return DeliveryTrace(time_ms)


def jittered(
    rng: np.random.Generator,
    duration_s: float,
    *,
    mean_mbps: float = 12.0,
    sigma: float = 0.05,
    range_factor: float = 3.0,
    on_ms: float = 20.0,
    off_ms: float = 10.0,
    off_share: float = 0.1,
) -> DeliveryTrace:
    """Service that jitters within a round trip: Poisson deliveries at a randomly walking rate, alternately on and off.

    The logarithm of the rate is a reflected random walk in steps of 10 ms. A Markov process switches the rate between on (mean
    `on_ms`) and off (mean `off_ms`, with the share `off_share` of the rate), both exponential. Deliveries are Poisson, to the
    millisecond. The rate is scaled so that the expected mean over the trace is `mean_mbps`.

    Args:
        mean_mbps: 0.01 to 10000, mean rate, off periods included
    """
    mean_mbps = checks.number("mean_mbps", mean_mbps, 0.01, 1e4)
    factor = checks.number("range_factor", range_factor, 1.01, 100)
    on_ms, off_ms = checks.number("on_ms", on_ms, 1, 1e4), checks.number("off_ms", off_ms, 0, 1e4)
    off_share = checks.number("off_share", off_share, 0, 1)
    slots = max(1, round(duration_s * 1e3))
    expected = mean_mbps * 1e3 / (OPPORTUNITY_BYTES * 8) * slots
    if expected > MAX_OPPORTUNITIES:
        raise ScenarioError(f"mean_mbps = {mean_mbps:g} makes {expected:.4g} opportunities; valid: at most {MAX_OPPORTUNITIES}")
    level = np.repeat(_generate_walk(rng, -(-slots // 10), 1.0, 1 / factor, factor, sigma), 10)[:slots]
    if off_ms:
        cycles = max(4, math.ceil(2 * slots / (on_ms + off_ms)))
        starts_off = rng.random() < off_ms / (on_ms + off_ms)
        lengths = rng.exponential(np.tile([off_ms, on_ms] if starts_off else [on_ms, off_ms], cycles))
        periods = np.searchsorted(np.cumsum(lengths), np.arange(slots), side="right")
        level *= np.where((periods + starts_off) % 2, off_share, 1.0)
    count = rng.poisson(level * (expected / level.sum()) if level.any() else level)
    count[-1] = max(count[-1], 1)  # a Mahimahi file repeats after its last opportunity
    return DeliveryTrace(np.repeat(np.arange(1, slots + 1), count))


GENERATORS: dict[str, Callable[..., Trace]] = {
    **{f.__name__: f for f in (constant, square, walk, lte, mmwave, poisson, jittered)},
    **networks.GENERATORS,
}


def generate(kind: str, /, *, duration_s: float = 60.0, seed: int = 1, **parameters: Any) -> Trace:
    """Generate a trace by the name of its generator; the same arguments give the same trace.

    Args:
        kind: Key of `GENERATORS`.
        duration_s: Length, 0.001 to 1e5 seconds, after which the trace repeats.
        seed: Seed, 0 or more.
        parameters: Keyword arguments of the generator.

    Raises:
        ScenarioError: An unknown kind or parameter, or a value out of range.
    """
    generator = GENERATORS[checks.choice("kind", kind, GENERATORS)]
    check_parameters(kind, parameters)
    duration_s = checks.number("duration_s", duration_s, 0.001, 1e5)
    rng = np.random.default_rng(checks.integer("seed", seed, 0, 2**63 - 1))
    trace = generator(rng, duration_s, **parameters)
    object.__setattr__(trace, "name", f"{kind}-{seed}")  # not shared yet
    return trace


def check_parameters(kind: str, names: Iterable[object]) -> None:
    """Raise ScenarioError unless all names are parameters of a generator."""
    known = list_parameters(kind)
    for name in names:
        if name not in known:
            raise ScenarioError(f"{kind} has no parameter {quote(name)}; {suggest_valid(str(name), known)}")


def list_parameters(kind: str) -> dict[str, object]:
    """Return the keyword arguments of a generator with their defaults."""
    signature = inspect.signature(GENERATORS[kind])
    return {p.name: p.default for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY}


def describe_parameters(kind: str) -> dict[str, tuple[str, str]]:
    """Return range and meaning of a generator's arguments, from its docstring or else from `GLOSSARY`."""
    said = {key: (find_range(text), text) for key, text in parse_arguments(GENERATORS[kind]).items()}
    return {key: said.get(key) or GLOSSARY.get(key) or ("", "") for key in list_parameters(kind)}


_RATES, _DIP = f"{MIN_RATE_MBPS:g} to {MAX_RATE_MBPS:g}", "0.001 to 1e+04"
GLOSSARY = {
    "rate_mbps": (_RATES, "mean rate"),
    "mean_mbps": ("0.01 or more; null: drawn", "mean rate of the path"),
    "spread": ("0 to 3", "deviation of paths from the network's mean path, relative to that of measured ones"),
    "outages": ("0 to 100", "frequency of outages, relative to the measured one; 0: neither outages nor handovers' gaps"),
    "form": ("deliveries, rates", "delivery opportunities in bursts, or a rate in steps"),
    "start_mbps": ("low_mbps to high_mbps", "rate at the start"),
    "low_mbps": (_RATES, "the lowest rate"),
    "high_mbps": (_RATES, "the highest rate"),
    "half_period_s": ("0.001 to 1e+06", "duration of each rate"),
    "range_factor": ("1.01 to 100", "largest ratio of the rate to its middle, upwards and downwards"),
    "on_ms": ("1 to 10000", "mean length of periods at the full rate"),
    "off_ms": ("0 to 10000", "mean length of periods at the reduced rate; 0: none"),
    "off_share": ("0 to 1", "share of the rate that is left in periods at the reduced rate"),
    "sigma": ("0 to 10", "standard deviation of a step of the logarithm of the rate"),
    "step_s": ("0.001 to 1e+05", "length of a step"),
    "outages_per_minute": ("0 to 600", "frequency of outages"),
    "outage_min_s": (_DIP, "the shortest outage"),
    "outage_max_s": (_DIP, "the longest outage"),
    "blockages_per_minute": ("0 to 600", "frequency of blockages"),
    "blockage_min_s": (_DIP, "the shortest blockage"),
    "blockage_max_s": (_DIP, "the longest blockage"),
    "blocked_low_mbps": (_RATES, "the lowest rate during a blockage"),
    "blocked_high_mbps": (_RATES, "the highest rate during a blockage"),
}
"""Range and meaning of generators' arguments by name."""


def _check_rate(field: str, value: float) -> float:
    return checks.number(field, value, MIN_RATE_MBPS, MAX_RATE_MBPS)


def _make_step_times(duration_s: float, step_s: float) -> np.ndarray:
    step_s = checks.number("step_s", step_s, 0.001, 1e5)
    count = max(1, math.ceil(duration_s / step_s - 1e-9))
    if count > MAX_STEPS:
        raise ScenarioError(f"step_s = {step_s:g} makes {count} steps of {duration_s:g} s; valid: at most {MAX_STEPS}")
    return np.round(np.arange(count) * step_s, 9)


def _generate_walk(
    rng: np.random.Generator, count: int, start_mbps: float, low_mbps: float, high_mbps: float, sigma: float
) -> np.ndarray:
    low, high = _check_rate("low_mbps", low_mbps), _check_rate("high_mbps", high_mbps)
    if low >= high:
        raise ScenarioError(f"low_mbps = {low:g} is not below high_mbps = {high:g}")
    start = checks.number("start_mbps", start_mbps, low, high)
    steps = rng.normal(0, checks.number("sigma", sigma, 0, 10), count)
    span = math.log(high / low)
    free = math.log(start / low) + np.cumsum(steps)  # unfolded, then reflected at both ends
    folded = np.abs(np.mod(free + span, 2 * span) - span)
    return low * np.exp(folded)


def _add_dips(
    rng: np.random.Generator,
    rate: np.ndarray,
    per_step: float,
    min_s: float,
    max_s: float,
    step_s: float,
    low: float,
    high: float,
) -> np.ndarray:
    """Return `rate` with dips of `min_s` to `max_s` seconds to a rate drawn from low..high, with probability `per_step`."""
    min_s = checks.number("shortest dip", min_s, 0.001, 1e4)
    max_s = checks.number("longest dip", max_s, min_s, 1e4)
    rate = rate.copy()
    i = 0
    while i < len(rate):
        if i and rng.random() < per_step:
            length = max(1, round(rng.uniform(min_s, max_s) / step_s))
            rate[i : i + length] = rng.uniform(low, high)
            i += length
        i += 1
    return rate
