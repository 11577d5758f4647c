"""Controllers of the queue-threshold task that do not learn: buffer management schemes, and thresholds set by rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from netbuf_gym import scenarios
from netbuf_gym.controllers import Decider, InWorld, Named, Policy, RandomAction
from netbuf_gym.controllers.policies import constant_policy
from netbuf_gym.controllers.user_code import make_controller
from netbuf_gym.errors import ConfigError, ScenarioError, quote
from netbuf_gym.plants.counters import read_counters
from netbuf_gym.plants.simulator import LINK_SAMPLE, Simulator
from netbuf_gym.scenarios import AGENT, Scenario
from netbuf_gym.tasks.queue_threshold.brief_pulse import (
    BriefPulse,
    FastBriefPulse,
    FlowBriefPulse,
    SparingBriefPulse,
    StrictBriefPulse,
)
from netbuf_gym.tasks.queue_threshold.report import switch_report
from netbuf_gym.tasks.queue_threshold.switch_rules import Limits, Pulse, PulseBurst
from netbuf_gym.tasks.queue_threshold.task import QueueThreshold
from netbuf_gym.utils.arguments import check_choice, check_real, check_sequence
from netbuf_gym.utils.parameters import TunableParameter
from netbuf_gym.utils.suggestions import suggest_valid

ALPHA_TOLERANCE = 1e-3
"""Relative tolerance between the alpha requested and the alpha of the nearest action: actions are rounded."""


def scheme_names() -> tuple[str, ...]:
    """Return the names of the schemes that need no agent."""
    return tuple(name for name in scenarios.SCHEMES if name != AGENT)


class BufferScheme(InWorld):
    """One of `netbuf_gym.scenarios.SCHEMES` instead of an agent: another buffer admission, or an AQM with the buffer's size.

    A scheme acts on every packet.

    Args:
        name: Name of the scheme, e.g. `"naive"`, `"sophisticated"`, `"dt"`, `"abm"`, `"static_bdp"`, `"codel"`.
        parameters: Parameters of the scheme, see `netbuf_gym.scenarios.SCHEMES[name].parameters`.
    """

    def __init__(self, name: str, **parameters: Any):
        self.name = self.scheme = check_choice("scheme", name, scheme_names())
        for parameter in parameters:
            if parameter not in scenarios.SCHEMES[name].parameters:
                known = scenarios.SCHEMES[name].parameters
                raise ConfigError(f"scheme {name} has no parameter {parameter!r}; {suggest_valid(parameter, known)}")
        self.settings = parameters
        self._tuned: dict[str, Any] = {}

    @property
    def parameters(self) -> tuple[TunableParameter, ...]:
        """See `Controller.parameters`: those that the scheme declares."""
        own = scenarios.SCHEMES[self.scheme].tunable
        return tuple(replace(one, default=(self.settings | self._tuned).get(one.name, one.default)) for one in own)

    def with_parameters(self, values: Mapping[str, Any]) -> BufferScheme:
        tuned = self._tuned | dict(values)
        made = BufferScheme(self.scheme, **(self.settings | scenarios.SCHEMES[self.scheme].encode_settings(tuned)))
        made._tuned = tuned
        return made

    def place(self, scenario: Scenario) -> Scenario:
        """Return the same world under this scheme.

        Raises:
            ConfigError: A parameter is out of range.
        """
        try:
            return scenario.with_scheme({"name": self.scheme, **self.settings})
        except ScenarioError as error:
            raise ConfigError(str(error)) from None

    def report(self, scenario: Scenario, world: Simulator) -> list[dict[str, Any]]:
        """See `netbuf_gym.tasks.queue_threshold.report.switch_report`."""
        own = scenario.switches[0]
        return [switch_report(world.scenario, read_counters(world), own.queues, own)]

    def make_watcher(self, scenario: Scenario, world: Simulator) -> Callable[[], dict[str, float]]:
        """Return a function that shows queue lengths and drops.

        Where an AQM replaces the switch, its ports are added up as one.
        """
        ports, before, sent, then_s = [int(port) for port in scenario.switches[0].ports], 0.0, 0.0, 0.0
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


class FixedThresholds(Decider[QueueThreshold]):
    """Constant alphas; (1, 1) is RLBM's naive buffer and (8, 1) its sophisticated one.

    Args:
        alphas: One alpha for each queue, within what the recipe's actions can express.
    """

    name = "fixed"

    def __init__(self, alphas: Sequence[float] = (1.0, 1.0)):
        given = check_sequence("alphas", alphas, "numbers")
        self.alphas = tuple(check_real(f"alphas[{q}]", alpha, 0, 1e6, low_open=True) for q, alpha in enumerate(given))

    def start(self, rules: QueueThreshold, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`.

        Raises:
            ConfigError: No action expresses these alphas; the message names the nearest.
        """
        action = rules.encode(self.alphas)
        nearest = rules.decode_alphas(rules.check_actions(np.array([action]), 1))[0]
        if not np.allclose(nearest, self.alphas, rtol=ALPHA_TOLERANCE, atol=0):
            said = f"alphas = {quote(list(self.alphas))} cannot be expressed in recipe {rules.recipe!r}"
            raise ConfigError(f"{said}; nearest: {quote(nearest.tolist())}")
        return constant_policy(action, rules, len(seeds))


BRIEF_PULSES = (BriefPulse, StrictBriefPulse, SparingBriefPulse, FlowBriefPulse)

CONTROLLERS = Named(
    scheme_names,
    BufferScheme,
    {
        "random": RandomAction,
        "limits": lambda: Limits(name="limits"),
        "pulse": Pulse,
        "pulse_burst": PulseBurst,
        "brief_pulse-10ms": FastBriefPulse,
        **{rule.name: rule for rule in BRIEF_PULSES},
    },
    {"limits": Limits.from_settings},
    own=make_controller,
)
"""Every scheme, the rules that decide as agents do, parametrised ones such as `limits:20` (`Limits.from_settings`), and
random actions.

RLBM as published may have learned nothing (its updates came less often than its runs ended), so every table has the row of
the random controller. Under the default recipe its alphas are log-uniform from 2^-8 to 2^3.
"""
