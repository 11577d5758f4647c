"""What plays the queue-threshold task without learning: ways of managing a switch's buffer, and thresholds by rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from netbuf_gym.controllers import Decider, InWorld, Named, Policy, RandomAction
from netbuf_gym.controllers.policies import constant
from netbuf_gym.controllers.user_code import decider
from netbuf_gym.errors import ConfigError, ScenarioError, shown
from netbuf_gym.plants.counters import counters_of
from netbuf_gym.plants.simulator import LINK_SAMPLE, Simulator
from netbuf_gym.scenarios import AGENT, SCHEMES, Scenario
from netbuf_gym.tasks.queue_threshold.brief_pulse import BriefPulse
from netbuf_gym.tasks.queue_threshold.report import switch_report
from netbuf_gym.tasks.queue_threshold.switch_rules import Limits, Pulse, PulseBurst
from netbuf_gym.tasks.queue_threshold.task import QueueThreshold
from netbuf_gym.utils.arguments import choice, real, sequence
from netbuf_gym.utils.suggestions import instead

REACHED = 1e-3
"""By how much of itself an alpha may differ from the one asked for: actions are rounded."""


def names() -> tuple[str, ...]:
    """The schemes that need no agent."""
    return tuple(name for name in SCHEMES if name != AGENT)


class BufferScheme(InWorld):
    """One of `netbuf_gym.scenarios.SCHEMES` instead of an agent: another admission to the buffer, or an AQM of its size.

    It acts on every packet.

    Args:
        name: e.g. `"naive"`, `"sophisticated"`, `"dt"`, `"abm"`, `"static_bdp"`, `"codel"`.
        parameters: of the scheme, see `netbuf_gym.scenarios.SCHEMES[name].parameters`.
    """

    def __init__(self, name: str, **parameters: Any):
        self.name = choice("scheme", name, names())
        for parameter in parameters:
            if parameter not in SCHEMES[name].parameters:
                known = SCHEMES[name].parameters
                raise ConfigError(f"scheme {name} has no parameter {parameter!r}; {instead(parameter, known)}")
        self.parameters = parameters

    def place(self, scenario: Scenario) -> Scenario:
        """The same world under this scheme; ConfigError for a parameter out of range."""
        try:
            return scenario.with_scheme({"name": self.name, **self.parameters})
        except ScenarioError as error:
            raise ConfigError(str(error)) from None

    def report(self, scenario: Scenario, world: Simulator) -> list[dict[str, Any]]:
        """See `netbuf_gym.tasks.queue_threshold.report.switch_report`."""
        own = scenario.switches[0]
        return [switch_report(world.scenario, counters_of(world), own.queues, own)]

    def watcher(self, scenario: Scenario, world: Simulator) -> Callable[[], dict[str, float]]:
        """Lengths of queues and drops. Where an AQM stands in the switch's place its ports are added up as one."""
        ports, before, sent, then_s = list(scenario.switches[0].ports), 0.0, 0.0, 0.0
        length_column, drop_column, sent_column = map(LINK_SAMPLE.index, ("queue_packets", "queue_drops", "bytes_sent"))

        def show() -> dict[str, float]:
            nonlocal before, sent, then_s
            sent_before, before_s = sent, then_s
            sent, then_s = world.link_sample()[ports, sent_column].sum(), world.now_ns * 1e-9
            if world.scenario.switches:
                sample = world.switch_sample()[0, : world.scenario.switches[0].queues]
                lengths, dropped = sample[:, 0], sample[:, 3].sum()
                state = {f"queue_packets_{queue}": length for queue, length in enumerate(lengths)}
            else:
                sample = world.link_sample()[ports]
                lengths, dropped, state = sample[:, length_column], sample[:, drop_column].sum(), {}
            state |= {"queue_packets": lengths.sum(), "drops": dropped - before}
            state["throughput_mbps"] = (sent - sent_before) * 8e-6 / (then_s - before_s) if then_s > before_s else math.nan
            before = dropped
            return state

        return show


class FixedThresholds(Decider):
    """The same alphas always; (1, 1) is RLBM's naive buffer and (8, 1) its sophisticated one.

    Args:
        alphas: one for each queue, within what the recipe's actions can say.
    """

    name = "fixed"

    def __init__(self, alphas: Sequence[float] = (1.0, 1.0)):
        given = sequence("alphas", alphas, "numbers")
        self.alphas = tuple(real(f"alphas[{q}]", alpha, 0, 1e6, low_open=True) for q, alpha in enumerate(given))

    def start(self, rules: QueueThreshold, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`.

        Raises:
            ConfigError: alphas that no action stands for; the message names the nearest.
        """
        action = rules.encode(self.alphas)
        nearest = rules.decode(rules.check_actions(action[None], 1), None, np.empty((1, rules.queues)))[0]
        if not np.allclose(nearest, self.alphas, rtol=REACHED, atol=0):
            said = f"alphas = {shown(list(self.alphas))} cannot be said in recipe {rules.recipe!r}"
            raise ConfigError(f"{said}; nearest: {shown(nearest.tolist())}")
        return constant(action, rules, len(seeds))


class Often(Decider):
    """A rule that decides at intervals of its own, where others are judged at the task's.

    Args:
        rule: it.
        interval_s: between its decisions.
    """

    def __init__(self, rule: Decider, interval_s: float):
        self.rule, self.interval_s = rule, interval_s
        self.name, self.recipes = f"{rule.name}-{interval_s * 1e3:g}ms", rule.recipes

    def playing(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """See `Controller.playing`."""
        return {**self.rule.playing(env), "interval_s": self.interval_s}

    def beside(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """See `Controller.beside`."""
        return {**self.rule.beside(env), "interval_s": self.interval_s}

    @property
    def env(self) -> dict[str, Any]:
        """See `Controller.env`."""
        return {**self.rule.env, "interval_s": self.interval_s}

    def start(self, rules: QueueThreshold, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`."""
        return self.rule.start(rules, seeds)


CONTROLLERS = Named(
    names,
    BufferScheme,
    {
        "random": RandomAction,
        "limits": lambda: Limits(name="limits"),
        "pulse": Pulse,
        "pulse_burst": PulseBurst,
        "brief_pulse": BriefPulse,
        "brief_pulse-10ms": lambda: Often(BriefPulse(), 0.01),
    },
    {"limits": Limits.of, "brief_pulse": BriefPulse.of},
    own=decider,
)
"""Every scheme, rules that decide as agents do, `limits:20` and the like (`Limits.of`, `BriefPulse.of`), and chance.

RLBM as published may have learned nothing (its updates came less often than its runs ended), so that every table holds the
row of chance. Under the default recipe its alphas are log-uniform from 2^-8 to 2^3.
"""
