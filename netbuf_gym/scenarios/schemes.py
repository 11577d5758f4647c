"""Buffer management schemes: admission rules for a scenario's switches, or queue disciplines instead of switches."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from netbuf_gym.errors import ScenarioError, describe_scenario
from netbuf_gym.scenarios.disciplines import DISCIPLINES, Discipline
from netbuf_gym.scenarios.fields import get_indices
from netbuf_gym.scenarios.scheme_catalogue import SCHEMES, Scheme, register
from netbuf_gym.scenarios.switches import ABM, Admission, AgentThresholds, DynamicThresholds, StaticThresholds, Switch
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.utils import checks
from netbuf_gym.utils.parameters import TunableParameter
from netbuf_gym.utils.sums import sequential_sum

__all__ = ["DT_ALPHAS", "SCHEMES", "Scheme", "extend_alphas", "register", "register_scheme"]

register_scheme = register
"""Register a `Scheme` for `Scenario.with_scheme`; see `netbuf_gym.scenarios.scheme_catalogue.register`."""

DT_ALPHAS = (0.03125, 0.015625)
"""Default alphas of Dynamic Thresholds: the best of 144 pairs in 1000 worlds of `rlbm/random`, training seeds."""

FAVOURED = 8.0
"""Alpha of queue 0 in the sophisticated static buffer and in ABM; the other queues have 1."""


def extend_alphas(alphas: object, queues: int) -> tuple[float, ...]:
    """Extend alphas to a number of queues by repeating the last one."""
    alphas = checks.sequence("alphas", alphas, "numbers") if isinstance(alphas, Iterable) else (alphas,)
    return (*alphas, *(alphas[-1],) * (queues - len(alphas)))


def _make_admission_rule(cls: Any, alphas: object, default: tuple[float, ...]) -> Callable[[Switch], Admission]:
    def admission(switch: Switch) -> Admission:
        n = switch.queues
        return cls(alphas=extend_alphas(default, n)[:n] if alphas is None else extend_alphas(alphas, n))

    return admission


def _apply_naive(scenario: Scenario) -> Scenario:
    return scenario.with_admission(_make_admission_rule(DynamicThresholds, None, (1.0,)))


def _apply_sophisticated(scenario: Scenario) -> Scenario:
    return scenario.with_admission(_make_admission_rule(DynamicThresholds, None, (FAVOURED, 1.0)))


def _apply_dt(scenario: Scenario, alphas: object = None) -> Scenario:
    return scenario.with_admission(_make_admission_rule(DynamicThresholds, alphas, DT_ALPHAS))


def _apply_abm(scenario: Scenario, alphas: object = None) -> Scenario:
    return scenario.with_admission(_make_admission_rule(ABM, alphas, (FAVOURED, 1.0)))


def _apply_static_bdp(scenario: Scenario) -> Scenario:
    return _limit_buffers(scenario, 1)


def _apply_static_bdp_sqrt_n(scenario: Scenario, n: int | None = None) -> Scenario:
    if n is None:
        n = len(scenario.flows) + (len(scenario.traffic.senders) if scenario.traffic is not None else 0)
    return _limit_buffers(scenario, checks.integer("n", n, 1, 10**9))


def _limit_buffers(scenario: Scenario, n: int) -> Scenario:
    """Limit each switch's buffer to RTT * C / sqrt(n), split evenly between the queues of all ports.

    RTT is the first flow's round-trip propagation delay, C the total rate of the switch's ports. The limit never exceeds the
    switch's buffer.
    """
    if not scenario.switches:
        raise ScenarioError(f"{describe_scenario(scenario)} has no switch; valid: a scenario with one")
    switches = []
    for switch in scenario.switches:
        rate_mbps = sequential_sum(scenario.links[port].mean_mbps(scenario.duration_s) for port in get_indices(switch.ports))
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


def _control_by_agent(scenario: Scenario, betas: object = None, alphas: object = None) -> Scenario:
    def admission(switch: Switch) -> AgentThresholds:
        return AgentThresholds(
            betas=extend_alphas((1.0,) if betas is None else betas, switch.queues),
            alphas=None if alphas is None else extend_alphas(alphas, switch.queues),
        )

    return scenario.with_admission(admission)


def _make_discipline_scheme(cls: type[Discipline]) -> Callable[..., Scenario]:
    def make(scenario: Scenario, **parameters: Any) -> Scenario:
        return scenario.with_discipline(cls(**parameters))

    own = inspect.signature(make)
    keep = [next(iter(own.parameters.values()))]
    make.__signature__ = own.replace(parameters=keep + list(inspect.signature(cls).parameters.values()))  # type: ignore[attr-defined]
    return make


def _list_alphas(*defaults: float) -> tuple[TunableParameter, ...]:
    """Return the alphas of queue 0 and of all others as parameters, in the range that RLBM's agents have."""
    own: dict[str, Any] = {"low": 1e-6, "high": 1e6, "searched": (2.0**-8, 2.0**3)}
    return tuple(TunableParameter(name=f"alpha_{queue}", default=alpha, **own) for queue, alpha in enumerate(defaults))


def _encode_alphas(values: Mapping[str, float]) -> dict[str, Any]:
    return {"alphas": list(values.values())}


for _scheme in (
    Scheme("naive", "limits of 1 times the free buffer for every queue (Dynamic Thresholds, alphas 1)", _apply_naive),
    Scheme("sophisticated", "8 times the free buffer for queue 0, 1 times for the others", _apply_sophisticated),
    Scheme(
        "dt", "Dynamic Thresholds with tuned alphas, or alphas of your own", _apply_dt, _list_alphas(*DT_ALPHAS), _encode_alphas
    ),
    Scheme(
        *("abm", "active buffer management, alphas 8 for queue 0, 1 for the others", _apply_abm),
        *(_list_alphas(FAVOURED, 1.0), _encode_alphas),
    ),
    Scheme("static_bdp", "a buffer of RTT * C, split evenly between the queues", _apply_static_bdp),
    Scheme("static_bdp_sqrt_n", "a buffer of RTT * C / sqrt(n), n senders, split evenly", _apply_static_bdp_sqrt_n),
    *(
        Scheme(
            cls.kind,
            f"one queue, the same buffer: {cls.record.meaning}",
            _make_discipline_scheme(cls),
            cls.record.list_tunable(),
        )
        for cls in DISCIPLINES.values()
        if cls.manages_buffer
    ),
    Scheme("agent", "limits set by an environment: alpha times beta times the free buffer", _control_by_agent),
):
    register(_scheme)
