"""Schemes of buffer management by name: what a scenario's switches do, or what stands in their place."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from netbuf_gym import checks
from netbuf_gym.errors import ScenarioError, ScenarioTypeError, shown
from netbuf_gym.scenarios.disciplines import PIE, RED, CoDel, Discipline, DropTail, FqCoDel
from netbuf_gym.scenarios.switches import (
    ABM,
    Admission,
    AgentThresholds,
    DynamicThresholds,
    StaticThresholds,
    Switch,
)
from netbuf_gym.scenarios.types import Scenario

DT_ALPHAS = (0.03125, 0.015625)
"""Dynamic Thresholds' alphas when none are given: tuned on training seeds by `python -m netbuf_gym.reproduce.tune_dt`."""

FAVOURED = 8.0
"""The factor of queue 0 in the sophisticated static buffer and in ABM; all others have 1."""


@dataclass(frozen=True)
class Scheme:
    """A way of managing the buffer.

    Attributes:
        name: What `Scenario.with_scheme` knows it by.
        description: One line.
        make: (scenario, **parameters) -> scenario.
    """

    name: str
    description: str
    make: Callable[..., Scenario]

    @property
    def parameters(self) -> list[str]:
        """The parameters that may stand beside its name."""
        return list(inspect.signature(self.make).parameters)[1:]


def apply(scenario: Scenario, scheme: str | dict | Admission | Discipline) -> Scenario:
    """`Scenario.with_scheme`."""
    if isinstance(scheme, Admission):
        return _admit(scenario, lambda switch: scheme)
    if isinstance(scheme, Discipline):
        return _in_place_of_switches(scenario, scheme)
    if isinstance(scheme, str):
        scheme = {"name": scheme}
    if not isinstance(scheme, dict) or not isinstance(scheme.get("name"), str):
        valid = "a name, a dict of name and parameters, an admission or a queue discipline"
        raise ScenarioTypeError(f"scheme = {shown(scheme)}; valid: {valid}")
    parameters = {key: value for key, value in scheme.items() if key != "name"}
    name = checks.choice("scheme", scheme["name"], SCHEMES)
    known = SCHEMES[name].parameters
    for parameter in parameters:
        if parameter not in known:
            raise ScenarioError(f"scheme {name} has no parameter {parameter!r}; valid: {', '.join(known) or 'none'}")
    return SCHEMES[name].make(scenario, **parameters)


def _admit(scenario: Scenario, admission: Callable[[Switch], Admission]) -> Scenario:
    if not scenario.switches:
        raise ScenarioError(f"scenario {scenario.name!r} has no switch; valid: a scenario with one, or a queue discipline")
    return replace(scenario, switches=tuple(replace(switch, admission=admission(switch)) for switch in scenario.switches))


def _in_place_of_switches(scenario: Scenario, discipline: Discipline) -> Scenario:
    """One queue with a discipline at each port, the buffer split between a switch's ports; the bottleneck's queue where
    there is no switch."""
    links = list(scenario.links)
    if not scenario.switches:
        at = scenario.bottleneck
        links[at] = replace(links[at], discipline=discipline)
    for switch in scenario.switches:
        share = max(1, switch.capacity // len(switch.ports))
        limit = {"queue_bytes": share} if switch.in_bytes else {"queue_packets": share}
        for port in switch.ports:
            links[port] = replace(links[port], **limit, discipline=discipline)
    return replace(scenario, links=tuple(links), switches=())


def _for_queues(alphas: object, queues: int) -> tuple[float, ...]:
    """Given alphas for a number of queues: the last one goes for all further queues."""
    alphas = checks.sequence("alphas", alphas, "numbers") if isinstance(alphas, Iterable) else (alphas,)
    return (*alphas, *(alphas[-1],) * (queues - len(alphas)))


def _thresholds(cls: type[Admission], alphas: object, default: tuple[float, ...]) -> Callable[[Switch], Admission]:
    def admission(switch: Switch) -> Admission:
        n = switch.queues
        return cls(alphas=_for_queues(default, n)[:n] if alphas is None else _for_queues(alphas, n))

    return admission


def _naive(scenario: Scenario) -> Scenario:
    return _admit(scenario, _thresholds(DynamicThresholds, None, (1.0,)))


def _sophisticated(scenario: Scenario) -> Scenario:
    return _admit(scenario, _thresholds(DynamicThresholds, None, (FAVOURED, 1.0)))


def _dt(scenario: Scenario, alphas=None) -> Scenario:
    return _admit(scenario, _thresholds(DynamicThresholds, alphas, DT_ALPHAS))


def _abm(scenario: Scenario, alphas=None) -> Scenario:
    return _admit(scenario, _thresholds(ABM, alphas, (FAVOURED, 1.0)))


def _agent(scenario: Scenario, betas=None, alphas=None) -> Scenario:
    def admission(switch: Switch) -> AgentThresholds:
        return AgentThresholds(
            betas=_for_queues((1.0,) if betas is None else betas, switch.queues),
            alphas=None if alphas is None else _for_queues(alphas, switch.queues),
        )

    return _admit(scenario, admission)


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
        raise ScenarioError(f"scenario {scenario.name!r} has no switch; valid: a scenario with one")
    switches = []
    for switch in scenario.switches:
        rate_mbps = sum(scenario.links[port].mean_mbps(scenario.duration_s) for port in switch.ports)
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
    def make(scenario: Scenario, **parameters) -> Scenario:
        return _in_place_of_switches(scenario, cls(**parameters))

    own = inspect.signature(make)
    keep = [next(iter(own.parameters.values()))]
    make.__signature__ = own.replace(parameters=keep + list(inspect.signature(cls).parameters.values()))
    return make


SCHEMES: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        Scheme("naive", "limits of 1 times the free buffer for every queue (Dynamic Thresholds, alphas 1)", _naive),
        Scheme("sophisticated", "8 times the free buffer for queue 0, 1 times for the others", _sophisticated),
        Scheme("dt", "Dynamic Thresholds with tuned alphas, or alphas of your own", _dt),
        Scheme("abm", "active buffer management, alphas 8 for queue 0, 1 for the others", _abm),
        Scheme("static_bdp", "a buffer of RTT * C, split evenly between the queues", _static_bdp),
        Scheme("static_bdp_sqrt_n", "a buffer of RTT * C / sqrt(n), n senders, split evenly", _static_bdp_sqrt_n),
        Scheme("droptail", "one queue with the same buffer, without priorities", _discipline(DropTail)),
        Scheme("red", "random early detection on one queue with the same buffer", _discipline(RED)),
        Scheme("codel", "CoDel on one queue with the same buffer", _discipline(CoDel)),
        Scheme("fq_codel", "FQ-CoDel with the same buffer", _discipline(FqCoDel)),
        Scheme("pie", "PIE on one queue with the same buffer", _discipline(PIE)),
        Scheme("agent", "limits set by an environment: alpha times beta times the free buffer", _agent),
    )
}
"""Every scheme by its name."""
