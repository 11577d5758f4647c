"""Trace generators of whole networks: wired, Wi-Fi, 4G and 5G, with a separate path for each trace.

A seed draws a path (mean rate, variability, time scales, bursts, outages) from a population, then the events on the path:

* The logarithm of the rate is modulated by Gauss-Markov processes of several time scales, the slowest of which jumps at
  handovers (a Markov jump process), and is skewed by Tukey's g with the path's own parameter.
* Outages begin at a rate that depends on the level (links fail where they fade), with lengths from a bounded Pareto
  distribution of 0.1 to 10 s; a handover interrupts service for tens of milliseconds.
* Within an RTT, delivery opportunities come in bursts: a millisecond has none or several, as schedulers grant them.

`networks.json` has the populations: 4G and 5G as `netbuf_gym.traces.calibration` fits them, wired and Wi-Fi from literature
(docs/networks.md).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import _core
from netbuf_gym.errors import ScenarioError
from netbuf_gym.traces.types import MAX_OPPORTUNITIES, MAX_STEPS, OPPORTUNITY_BYTES, DeliveryTrace, RateTrace, Trace
from netbuf_gym.utils import checks

POPULATIONS = Path(__file__).with_name("networks.json")
PACKETS_PER_MBPS_MS = 1e3 / (OPPORTUNITY_BYTES * 8)
"""Delivery opportunities per millisecond at 1 Mbit/s."""
LONGEST_OUTAGE_S = 10.0
MOST_SD = 2.5
"""Largest deviation of a trait from its population's mean, in standard deviations (times `spread`)."""
FLOOR = 1e-9
LEAST_MBPS = 1e-3
"""Rate below which a step has no capacity."""
BUSIEST = 0.95
"""Highest probability that a millisecond has any packet; beyond this, bursts grow."""
HIGHEST_LOG = 3.5
"""Highest logarithm of the rate over its median: 33 times."""
FORMS = ("deliveries", "rates")

TRAITS = (
    "log_mean",
    "log_sigma",
    "skew",
    "log_fast",
    "log_mid",
    "log_slow",
    "log_burst",
    "burst_sigma",
    "burst_power",
    "log_outages",
    "log_outage_shape",
    "fade",
    "log_jitter",
)
"""Traits in which the paths of a network differ, each on an unbounded scale; a `log_` trait is a natural logarithm.

log_mean: of the mean rate outside outages, Mbit/s. log_sigma: of the standard deviation of the logarithm of the rate. skew:
Tukey's g. log_fast, log_mid, log_slow: of the variances at the first three time scales, relative to that of the handovers.
log_burst: of the mean number of packets beyond one in a busy millisecond. burst_sigma: standard deviation of the logarithm of
that number. burst_power: exponent of that number's growth with the rate. log_outages: of the outages a minute.
log_outage_shape: of the Pareto distribution's index. fade: decrease of the logarithm of the outages' rate with the standardised
level. log_jitter: of the variance of a step's rate, for a path given by rates, over that of the bursts.
"""


@dataclass(frozen=True)
class Population:
    """Population of a network's paths: a normal distribution over `TRAITS`, and constants that all paths share.

    Args:
        mean, sd: Mean and standard deviation of each trait. Shape (traits,).
        correlation: Correlations of the traits. Shape (traits, traits).
        scales_s: Time scales of the modulation, the last one the mean time between handovers. Shape (4,).
        smooth: Whether the fastest modulation is smooth (a Gauss-Markov process of the second order).
        shortest_outage_s: Lower end of the distribution of outage lengths.
        most_mbps: Highest rate of the network.
        handover_s: Range of a handover's interruption.
        step_s: Length of the steps of a trace.
        hold_s: Time for which a level holds: shorter variations were not measured, and are left to bursts, outages and
            handovers.
    """

    mean: np.ndarray
    sd: np.ndarray
    correlation: np.ndarray
    scales_s: np.ndarray
    smooth: bool
    shortest_outage_s: float
    most_mbps: float
    handover_s: tuple[float, float]
    step_s: float
    hold_s: float

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Population:
        """Build a population from a record of `networks.json`; missing traits have mean and deviation 0."""
        traits = data["traits"]
        mean, sd = (np.array([traits.get(name, {}).get(key, 0.0) for name in TRAITS]) for key in ("mean", "sd"))
        correlation = np.eye(len(TRAITS))
        for pair, value in data.get("correlations", {}).items():
            i, j = (TRAITS.index(name) for name in pair.split(","))
            correlation[i, j] = correlation[j, i] = value
        return cls(
            mean=mean,
            sd=sd,
            correlation=correlation,
            scales_s=np.array(data["scales_s"], float),
            smooth=data.get("smooth", False),
            shortest_outage_s=data["shortest_outage_s"],
            most_mbps=data["most_mbps"],
            handover_s=(data["handover_s"][0], data["handover_s"][1]),
            step_s=data["step_s"],
            hold_s=data["hold_s"],
        )

    @cached_property
    def _correlation_root(self) -> np.ndarray:
        return np.linalg.cholesky(self.correlation + 1e-9 * np.eye(len(TRAITS)))

    def draw(self, rng: np.random.Generator, spread: float = 1.0) -> np.ndarray:
        """Draw the traits of one path, with `spread` times the population's standard deviation."""
        normal = self._correlation_root @ rng.standard_normal(len(TRAITS))
        return self.mean + spread * self.sd * np.clip(normal, -MOST_SD, MOST_SD)


@cache
def load_population(network: str) -> Population:
    """Return the population of a network's paths, from `networks.json`."""
    return Population.from_dict(json.loads(POPULATIONS.read_text())[network])


@dataclass(frozen=True)
class Modulation:
    """A path's capacity, step by step: rates and outages.

    Attributes:
        rate_mbps: Mbit/s outside outages. Shape (steps,).
        off: Whether a step is in an outage or a handover's interruption. Shape (steps,).
        step_s: Length of a step, seconds.
    """

    rate_mbps: np.ndarray
    off: np.ndarray
    step_s: float


def modulate(
    rng: np.random.Generator, paths: Population, traits: np.ndarray, duration_s: float, step_s: float, outages: float = 1.0
) -> Modulation:
    """Generate the rate of a path with these traits; `outages` scales the frequency of outages, and 0 removes handovers' gaps
    too."""
    path = dict(zip(TRAITS, traits.tolist(), strict=True))
    count = max(1, round(duration_s / step_s))
    each = max(1, round(paths.hold_s / step_s))
    levels, hold_s = -(-count // each), each * step_s
    variances = np.exp([path["log_fast"], path["log_mid"], path["log_slow"], 0.0])
    variances /= variances.sum()
    level = np.zeros(levels)
    for i, (share, scale_s) in enumerate(zip(variances[:3].tolist(), paths.scales_s[:3].tolist(), strict=True)):
        level += np.sqrt(share) * _generate_gauss_markov(rng, levels, hold_s / scale_s, smooth=paths.smooth and i == 0)
    handovers = rng.random(levels) < -np.expm1(-hold_s / paths.scales_s[3])
    handovers[0] = False
    visit = np.cumsum(handovers)
    level += np.sqrt(variances[3]) * rng.standard_normal(int(visit[-1]) + 1)[visit]
    np.clip(level, -3.0, 3.0, out=level)

    sigma, skew = min(np.exp(path["log_sigma"]), 2.0), float(np.clip(path["skew"], -0.8, 0.8))
    rate = np.exp(_bend_level(level, sigma, skew))
    rate *= np.exp(path["log_mean"]) / _compute_mean(sigma, skew)
    np.clip(rate, FLOOR, paths.most_mbps, out=rate)

    fade = path["fade"]
    chance = outages * np.exp(path["log_outages"] - fade * level - fade**2 / 2) * step_s / 60
    if each > 1:
        rate, chance = np.repeat(rate, each)[:count], np.repeat(chance, each)[:count]
    begins = np.flatnonzero(rng.random(count) < np.minimum(chance, 0.5))
    lengths_s = _draw_bounded_pareto(rng, len(begins), paths.shortest_outage_s, max(0.2, np.exp(path["log_outage_shape"])))
    jumps = np.flatnonzero(handovers) * each if outages else np.zeros(0, np.int64)
    begins = np.concatenate([begins, jumps])
    lengths_s = np.concatenate([lengths_s, rng.uniform(*paths.handover_s, len(jumps))])
    return Modulation(rate, _mark_covered_steps(rng, begins, lengths_s / step_s, count), step_s)


def generate_deliveries(rng: np.random.Generator, path: Modulation, traits: np.ndarray) -> DeliveryTrace:
    """Generate the delivery opportunities of a path, in bursts, to the millisecond.

    Raises:
        ScenarioError: More than `MAX_OPPORTUNITIES` opportunities.
    """
    each = round(path.step_s * 1e3)
    busy, more, sigma = _compute_bursts(path, traits)
    expected = float(np.sum(busy * (1 + more))) * each
    if expected > MAX_OPPORTUNITIES:
        raise ScenarioError(f"mean_mbps makes {expected:.4g} opportunities; valid: at most {MAX_OPPORTUNITIES}")
    at = np.flatnonzero(rng.random(len(busy) * each, dtype=np.float32).reshape(-1, each) < busy.astype(np.float32)[:, None])
    sizes = more.astype(np.float32)[at // each]
    sizes *= np.exp(np.float32(sigma) * rng.standard_normal(len(at), dtype=np.float32) - np.float32(sigma**2 / 2))
    sizes += rng.random(len(at), dtype=np.float32)
    packets = sizes.astype(np.int32) + 1
    end_ms = len(busy) * each  # a Mahimahi file repeats after its last opportunity
    return DeliveryTrace(np.repeat(np.append(at + 1.0, end_ms), np.append(packets, 1)))


def generate_rates(rng: np.random.Generator, path: Modulation, traits: np.ndarray) -> RateTrace:
    """Generate the rate steps of a path, with the mean and variance of the bursts' deliveries in a step; 0 in outages.

    Raises:
        ScenarioError: A trace that is a single outage.
    """
    busy, more, sigma = _compute_bursts(path, traits)
    squares = (1 + more) ** 2 + more**2 * np.expm1(sigma**2) + 0.15  # mean square of a burst, rounding included
    mean = busy * (1 + more)
    jitter = float(np.exp(traits[TRAITS.index("log_jitter")]))
    variance = jitter * (busy * squares - mean**2)
    shape = np.maximum(mean**2 * round(path.step_s * 1e3) / np.maximum(variance, 1e-12), 1e-3)
    rate = np.where(path.off, 0.0, path.rate_mbps * rng.standard_gamma(shape) / shape)
    rate[rate < LEAST_MBPS] = 0.0
    if not rate.any():
        raise ScenarioError("duration_s: an outage throughout; valid: a longer one")
    return RateTrace(np.arange(len(rate)) * path.step_s, rate, len(rate) * path.step_s)


def _compute_bursts(path: Modulation, traits: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return for each step the probability that a millisecond has a burst and the mean number of packets beyond the first, and
    the standard deviation of the logarithm of that number."""
    own = dict(zip(TRAITS, traits.tolist(), strict=True))
    per_ms = path.rate_mbps * PACKETS_PER_MBPS_MS
    usual = np.exp(own["log_mean"]) * PACKETS_PER_MBPS_MS
    more = np.exp(own["log_burst"]) * (per_ms / usual) ** own["burst_power"]
    more = np.maximum(more, per_ms / BUSIEST - 1.0)
    return np.where(path.off, 0.0, per_ms / (1.0 + more)), more, abs(own["burst_sigma"])


def _make_generator(network: str, form: str, most_mbps: int, mean: str, meaning: str) -> Callable[..., Trace]:
    """Return the generator of a network's traces.

    Args:
        form: Default form.
        most_mbps, mean, meaning: Greatest mean rate, its meaning, and the description, for the docstring.
    """
    default = form

    def generate(
        rng: np.random.Generator,
        duration_s: float,
        *,
        mean_mbps: float | None = None,
        spread: float = 1.0,
        outages: float = 1.0,
        form: str = default,
        step_s: float | None = None,
    ) -> Trace:
        return _generate_network_trace(network, rng, duration_s, mean_mbps, spread, outages, form, step_s)

    generate.__doc__ = f"""{meaning}

    Args:
        mean_mbps: 0.01 to {most_mbps}, {mean}; None: drawn from the network's paths
        step_s: 0.001 to 1, length of a step; None: the network's own
    """
    return generate


_MEAN = "mean rate outside outages"
GENERATORS = {
    "wired": _make_generator(
        *("wired", "rates", 2000, _MEAN),
        "Path over fixed access lines: nearly constant, with other subscribers' load and rare losses of the line.",
    ),
    "wifi": _make_generator(
        *("wifi", "deliveries", 600, _MEAN),
        "Path over 802.11: rate adaptation and contention, frames aggregated into bursts, interference and roaming.",
    ),
    "4g": _make_generator(
        *("4g", "deliveries", 150, _MEAN),
        "Path over LTE: calibrated from 10 ms on, with bursts of delivery opportunities, outages and handovers.",
    ),
    "5g": _make_generator(
        *("5g", "rates", 600, "mean of the rate's process, before outages"),
        """Path over 5G with fallback to LTE: calibrated from 1 s on, below 1 s scheduler jitter, outages and handovers.

    `mean_mbps` is the mean of the rate's process, before outages, handovers' gaps and the cap at 600 Mbit/s. Levels last for a
    minute, and traces are not scaled to the mean: over 20 traces of 5000 s at 20 Mbit/s the mean is 1.02 times `mean_mbps`
    without outages (0.82 to 1.42 times) and 0.79 times with outages; at 300 Mbit/s, where peaks are cut, 0.79 and 0.62 times. A
    trace of 80 s has between a seventh and two and a half times of `mean_mbps`.""",
    ),
}
"""Generators of networks' traces by name."""


def _generate_network_trace(
    network: str,
    rng: np.random.Generator,
    duration_s: float,
    mean_mbps: float | None,
    spread: float,
    outages: float,
    form: str,
    step_s: float | None,
) -> Trace:
    paths = load_population(network)
    checks.choice("form", form, FORMS)
    traits = paths.draw(rng, checks.number("spread", spread, 0, 3))
    if mean_mbps is not None:
        traits[0] = np.log(checks.number("mean_mbps", mean_mbps, 0.01, paths.most_mbps))
    step_s = paths.step_s if step_s is None else checks.number("step_s", step_s, 0.001, 1)
    if duration_s / step_s > MAX_STEPS:
        raise ScenarioError(f"step_s = {step_s:g} makes {duration_s / step_s:.4g} steps; valid: at most {MAX_STEPS}")
    if form == "deliveries" and abs(step_s * 1e3 - round(step_s * 1e3)) > 1e-9:
        raise ScenarioError(f"step_s = {step_s:g}; valid for deliveries: whole milliseconds")
    path = modulate(rng, paths, traits, duration_s, step_s, checks.number("outages", outages, 0, 100))
    return generate_deliveries(rng, path, traits) if form == "deliveries" else generate_rates(rng, path, traits)


def _bend_level(level: np.ndarray, sigma: float, skew: float) -> np.ndarray:
    """Compute the logarithm of the rate relative to its median at standardised levels: Tukey's g, bounded above."""
    bent = level if abs(skew) < 1e-3 else np.expm1(skew * level) / skew
    return np.minimum(sigma * bent, HIGHEST_LOG)


@cache
def _compute_nodes() -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    return np.clip(nodes, -3, 3), weights / weights.sum()


def _compute_mean(sigma: float, skew: float) -> float:
    """Compute the mean of the rate relative to its median, for a standard normal level."""
    nodes, weights = _compute_nodes()
    return float(weights @ np.exp(_bend_level(nodes, sigma, skew)))


def _generate_gauss_markov(rng: np.random.Generator, count: int, steps: float, smooth: bool = False) -> np.ndarray:
    """Generate a stationary Gauss-Markov process of variance 1 with a time scale of `1 / steps` values; `smooth`: of the second
    order, one such process driving another."""
    keep = np.exp(-steps)
    if smooth:
        early = math.ceil(8 / steps)  # values until the initial state has decayed
        noise = rng.standard_normal(early + count) * np.sqrt((1 - keep**2) ** 3 / (1 + keep**2))
        _core.filter_recursively(noise, -2 * keep, keep**2)
        return noise[early:]
    noise = rng.standard_normal(count)
    noise[1:] *= np.sqrt(1 - keep**2)
    _core.filter_recursively(noise, -keep)
    return noise


def _draw_bounded_pareto(rng: np.random.Generator, count: int, low: float, shape: float) -> np.ndarray:
    """Draw outage lengths from a Pareto distribution bounded to `low` to `LONGEST_OUTAGE_S`, seconds."""
    tail = (low / LONGEST_OUTAGE_S) ** shape
    return low * (1 - rng.random(count) * (1 - tail)) ** (-1 / shape)


def _mark_covered_steps(rng: np.random.Generator, begins: np.ndarray, lengths: np.ndarray, count: int) -> np.ndarray:
    """Return a mask of the steps in intervals that begin at `begins` and last `lengths` steps, randomly rounded."""
    edges = np.zeros(count + 1, np.int64)
    whole = (lengths + rng.random(len(lengths))).astype(np.int64)
    np.add.at(edges, begins, 1)
    np.add.at(edges, np.minimum(begins + whole, count), -1)
    return np.cumsum(edges[:-1]) > 0
