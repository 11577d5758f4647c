"""Distributions over scenarios, from which training samples its worlds."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, quote
from netbuf_gym.scenarios.catalogue import CongestionControl, parse_senders
from netbuf_gym.scenarios.fields import Rule, check_fields, choice, integer, number, rule, text
from netbuf_gym.scenarios.limits import MAX_COUNT, compute_bdp_packets
from netbuf_gym.scenarios.topologies import dumbbell, exchange_bottleneck
from netbuf_gym.scenarios.types import MAX_DELAY_MS, MAX_DURATION_S, MAX_RATE_MBPS, STACKS, Scenario
from netbuf_gym.traces.types import MIN_RATE_MBPS, RateTrace
from netbuf_gym.utils import checks

SHARE = number(0, 1)
"""Metadata of a field with a share of the worlds."""
SENDERS = rule(lambda label, value: parse_senders(value, label))
"""Metadata of a field with congestion controls, one for each flow."""


def interval(high: float, low: float | None = None) -> dict[str, Rule]:
    """Return the metadata of a field with a range to sample from, within [low, high]; a `low` of None: above 0."""
    return rule(lambda label, value: check_interval(label, value, high, low))


class Distribution(ABC):
    """Base of distributions over scenarios.

    All sampled scenarios have the same number of flows, `flows`. `name` is a label.
    """

    name: str = ""

    @property
    @abstractmethod
    def flows(self) -> int:
        """Number of flows of every sampled scenario."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> Scenario:
        """Sample one scenario; the same generator state gives the same scenario."""


@dataclass(frozen=True, kw_only=True)
class RandomDumbbell(Distribution):
    """Dumbbells of random rate, RTT, buffer and loss.

    Args:
        rate_mbps: Range of the bottleneck's rate, log-uniform, within [1e-6, 1e6].
        rtt_ms: Range of the propagation RTT, log-uniform, within (0, 1e5].
        buffer_bdp: Range of the buffer in bandwidth-delay products, log-uniform, within (0, 1e4]; never less than
            `min_buffer_packets`.
        loss_probability: Share of the worlds with random packet loss, 0 to 1.
        loss: Range of the loss rate of these worlds, log-uniform, within (0, 1).
        change_probability: Share of the worlds whose rate changes at random moments, 0 to 1.
        change_interval_s: Range of the time between two changes, log-uniform, within [0.01, 1e6].
        change_factor: Largest factor by which a change multiplies or divides the rate, log-uniform, 1 to 1e6; the rate
            stays within `rate_mbps`.
        senders: One congestion control for each flow, as in `Flow`.
        duration_s, stagger_s, stack: As in `dumbbell`.
        min_buffer_packets: Least buffer, 1 or more.
    """

    rate_mbps: tuple[float, float] = field(default=(1.0, 100.0), metadata=interval(MAX_RATE_MBPS, low=MIN_RATE_MBPS))
    rtt_ms: tuple[float, float] = field(default=(5.0, 200.0), metadata=interval(MAX_DELAY_MS))
    buffer_bdp: tuple[float, float] = field(default=(0.25, 8.0), metadata=interval(1e4))
    loss_probability: float = field(default=0.5, metadata=SHARE)
    loss: tuple[float, float] = field(default=(1e-5, 1e-2), metadata=interval(0.999))
    change_probability: float = field(default=0.0, metadata=SHARE)
    change_interval_s: tuple[float, float] = field(default=(2.0, 20.0), metadata=interval(MAX_DURATION_S, low=0.01))
    change_factor: float = field(default=4.0, metadata=number(1, 1e6))
    senders: Sequence[str | CongestionControl] = field(default=("cubic",), metadata=SENDERS)
    duration_s: float = 100.0
    stagger_s: float = 0.1
    stack: str = field(default="linux", metadata=choice(STACKS))
    min_buffer_packets: int = field(default=2, metadata=integer(1, MAX_COUNT))
    name: str = field(default="random", metadata=text())

    def __post_init__(self) -> None:
        check_fields(self)
        self.sample(np.random.default_rng(0))  # checks the remaining fields

    @cached_property
    def _example(self) -> Scenario:
        """A world that samples copy."""
        same = {name: getattr(self, name) for name in ("senders", "duration_s", "stagger_s", "stack", "name")}
        return dumbbell(rtt_ms=self.rtt_ms[1], **same)

    @property
    def flows(self) -> int:
        return len(self.senders)

    def sample(self, rng: np.random.Generator) -> Scenario:
        u = rng.random(5).tolist()
        rate = log_uniform(u[0], self.rate_mbps)
        rtt = log_uniform(u[1], self.rtt_ms)
        bdp = compute_bdp_packets(rate, rtt, self.stack)
        buffer = max(self.min_buffer_packets, round(log_uniform(u[2], self.buffer_bdp) * bdp))
        changes = self.change_probability > 0 and rng.random() < self.change_probability
        return exchange_bottleneck(
            self._example,
            rate_mbps=None if changes else rate,
            trace=self._sample_rate_trace(rate, rng) if changes else None,
            rtt_ms=rtt,
            buffer_packets=buffer,
            loss=log_uniform(u[4], self.loss) if u[3] < self.loss_probability else 0.0,
        )

    def _sample_rate_trace(self, rate: float, rng: np.random.Generator) -> RateTrace:
        """Return a trace that starts at `rate` and changes until the world ends."""
        time_s, rate_mbps = [0.0], [rate]
        while True:
            u = rng.random(2)
            then_s = time_s[-1] + log_uniform(u[0], self.change_interval_s)
            if then_s >= self.duration_s:
                return RateTrace(np.array(time_s), np.array(rate_mbps))
            factor = log_uniform(u[1], (1 / self.change_factor, self.change_factor))
            time_s.append(then_s)
            rate_mbps.append(min(max(rate_mbps[-1] * factor, self.rate_mbps[0]), self.rate_mbps[1]))


@dataclass(frozen=True, kw_only=True)
class ChangedDistribution(Distribution):
    """The scenarios of another distribution, with some fields changed.

    Args:
        parent: The other distribution.
        changes: Fields of `Scenario` with their values.
    """

    parent: Distribution
    changes: tuple[tuple[str, Any], ...]
    name: str = ""

    def __post_init__(self) -> None:
        self.sample(np.random.default_rng(0))

    @property
    def flows(self) -> int:
        return self.parent.flows

    def sample(self, rng: np.random.Generator) -> Scenario:
        return replace(self.parent.sample(rng), **dict(self.changes))


@dataclass(frozen=True, kw_only=True)
class Mixture(Distribution):
    """Weighted mixture of scenarios and distributions.

    Args:
        parts: At least one `Scenario` or `Distribution`, all with the same number of flows.
        weights: One for each part, 0 or more, not all 0; None: equal.
    """

    parts: Sequence[Scenario | Distribution]
    weights: Sequence[float] | None = None
    name: str = "mixture"

    def __post_init__(self) -> None:
        put = object.__setattr__
        parts = checks.sequence("parts", self.parts, "scenarios or distributions")
        for i, part in enumerate(parts):
            if not isinstance(part, (Scenario, Distribution)):
                raise ScenarioTypeError(f"parts[{i}] = {quote(part)} is not a Scenario or Distribution")
        counts = [flows_of(part) for part in parts]
        if len(set(counts)) > 1:
            raise ScenarioError(f"parts have {counts} flows; valid: the same number in all of them")
        put(self, "parts", parts)
        if self.weights is not None:
            weights = checks.sequence("weights", self.weights, "weights")
            if len(weights) != len(parts):
                raise ScenarioError(f"weights has {len(weights)} values for {len(parts)} parts; valid: as many")
            weights = tuple(checks.number(f"weights[{i}]", w, 0, 1e9) for i, w in enumerate(weights))
            if not sum(weights):
                raise ScenarioError("weights are all 0; valid: at least one above 0")
            put(self, "weights", weights)

    @property
    def flows(self) -> int:
        return flows_of(self.parts[0])

    def sample(self, rng: np.random.Generator) -> Scenario:
        weights = self.weights or (1.0,) * len(self.parts)
        edges = np.cumsum(weights) / math.fsum(weights)
        part = self.parts[min(int(np.searchsorted(edges, rng.random(), side="right")), len(self.parts) - 1)]
        return part if isinstance(part, Scenario) else part.sample(rng)


def flows_of(world: Scenario | Distribution) -> int:
    """Return the number of flows of a scenario, or of every scenario of a distribution.

    Raises:
        ScenarioTypeError: Neither a scenario nor a distribution.
    """
    if not isinstance(world, (Scenario, Distribution)):
        raise ScenarioTypeError(f"world = {quote(world)} is not a Scenario or Distribution")
    return len(world.flows) if isinstance(world, Scenario) else world.flows


def check_interval(field: str, value: object, high: float, low: float | None = None) -> tuple[float, float]:
    """Check a range to sample from and return its ends.

    Args:
        field: Field name for error messages.
        value: A number, or two numbers in ascending order, `low` to `high`.
        high: Largest valid number.
        low: Least valid number; None: any above 0.

    Raises:
        ScenarioError: No such range; names the field.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = (value, value)
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise ScenarioTypeError(f"{field} = {quote(value)}; valid: a number, or two, the lowest and the highest")
    low_end = checks.number(f"{field}[0]", value[0], 0 if low is None else low, high, low_open=low is None)
    return low_end, checks.number(f"{field}[1]", value[1], low_end, high)


def log_uniform(u: float, interval: tuple[float, float]) -> float:
    """Interpolate a range logarithmically: the low end at u = 0, the high end at u = 1."""
    low, high = interval
    return low if low == high else low * (high / low) ** float(u)
