"""Schemes of buffer management: what a scenario's switches do, or what stands in their place."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from netbuf_gym.errors import ScenarioError, called
from netbuf_gym.scenarios.disciplines import DISCIPLINES, Discipline
from netbuf_gym.scenarios.scheme_catalogue import Scheme, register
from netbuf_gym.scenarios.switches import ABM, Admission, DynamicThresholds, StaticThresholds, Switch
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.utils import checks
from netbuf_gym.utils.sums import added

DT_ALPHAS = (0.03125, 0.015625)
"""Dynamic Thresholds' alphas when none are given: the best of 144 pairs in 1000 worlds of `rlbm/random`, seeds of training."""

FAVOURED = 8.0
"""The factor of queue 0 in the sophisticated static buffer and in ABM; all others have 1."""


def for_queues(alphas: object, queues: int) -> tuple[float, ...]:
    """Given alphas for a number of queues: the last one goes for all further queues."""
    alphas = checks.sequence("alphas", alphas, "numbers") if isinstance(alphas, Iterable) else (alphas,)
    return (*alphas, *(alphas[-1],) * (queues - len(alphas)))


def _thresholds(cls: Any, alphas: object, default: tuple[float, ...]) -> Callable[[Switch], Admission]:
    def admission(switch: Switch) -> Admission:
        n = switch.queues
        return cls(alphas=for_queues(default, n)[:n] if alphas is None else for_queues(alphas, n))

    return admission


def _naive(scenario: Scenario) -> Scenario:
    return scenario.with_admission(_thresholds(DynamicThresholds, None, (1.0,)))


def _sophisticated(scenario: Scenario) -> Scenario:
    return scenario.with_admission(_thresholds(DynamicThresholds, None, (FAVOURED, 1.0)))


def _dt(scenario: Scenario, alphas: object = None) -> Scenario:
    return scenario.with_admission(_thresholds(DynamicThresholds, alphas, DT_ALPHAS))


def _abm(scenario: Scenario, alphas: object = None) -> Scenario:
    return scenario.with_admission(_thresholds(ABM, alphas, (FAVOURED, 1.0)))


def _static_bdp(scenario: Scenario) -> Scenario:
    return _static(scenario, 1)


def _static_bdp_sqrt_n(scenario: Scenario, n: int | None = None) -> Scenario:
    if n is None:
        n = len(scenario.flows) + (len(scenario.traffic.senders) if scenario.traffic is not None else 0)
    return _static(scenario, checks.integer("n", n, 1, 10**9))


def _static(scenario: Scenario, n: int) -> Scenario:
    """RTT * C / sqrt(n) of the switch's buffer, split evenly between the queues of all ports; never more than there is.

    RTT is the first flow's propagation delay there and back, C the rate of the switch's ports together.
    """
    if not scenario.switches:
        raise ScenarioError(f"{called(scenario)} has no switch; valid: a scenario with one")
    switches = []
    for switch in scenario.switches:
        rate_mbps = added(scenario.links[port].mean_mbps(scenario.duration_s) for port in switch.ports)
        needed = rate_mbps * scenario.propagation_rtt_ms() * 1e3 / 8 / math.sqrt(n)
        capacity = int(needed if switch.in_bytes else needed / scenario.data_bytes)
        queues = switch.queues * len(switch.ports)
        least = queues * (scenario.data_bytes if switch.in_bytes else 1)
        share = min(max(capacity, least), switch.capacity) // queues
        if not share:
            raise ScenarioError(f"switch {switch.name!r} has a buffer of {switch.capacity}; valid: at least {queues}")
        switches.append(
            replace(switch.with_capacity(share * queues), admission=StaticThresholds(limits=(share,) * switch.queues))
        )
    return replace(scenario, switches=tuple(switches))


def _discipline(cls: type[Discipline]) -> Callable[..., Scenario]:
    def make(scenario: Scenario, **parameters: Any) -> Scenario:
        return scenario.with_discipline(cls(**parameters))

    own = inspect.signature(make)
    keep = [next(iter(own.parameters.values()))]
    make.__signature__ = own.replace(parameters=keep + list(inspect.signature(cls).parameters.values()))
    return make


for _scheme in (
    Scheme("naive", "limits of 1 times the free buffer for every queue (Dynamic Thresholds, alphas 1)", _naive),
    Scheme("sophisticated", "8 times the free buffer for queue 0, 1 times for the others", _sophisticated),
    Scheme("dt", "Dynamic Thresholds with tuned alphas, or alphas of your own", _dt),
    Scheme("abm", "active buffer management, alphas 8 for queue 0, 1 for the others", _abm),
    Scheme("static_bdp", "a buffer of RTT * C, split evenly between the queues", _static_bdp),
    Scheme("static_bdp_sqrt_n", "a buffer of RTT * C / sqrt(n), n senders, split evenly", _static_bdp_sqrt_n),
    *(
        Scheme(cls.kind, f"one queue, the same buffer: {cls.record.meaning}", _discipline(cls))
        for cls in DISCIPLINES.values()
        if not hasattr(cls, "rate_mbps")  # which has a rate of its own: it shapes what is sent, and manages no buffer
    ),
):
    register(_scheme)
