"""The starting rule for agents: pulses so short that a few packets are dropped, with a target for each drop place.

With decisions every 100 ms a pulse of the rule `pulse` lasts 100 ms, and everything that arrives meanwhile is dropped, short
flows included. This rule cuts queue 0 for only 1 to 10 ms of a decision (`actions="pulse_grid"`); the switch ends the pulse by
itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from netbuf_gym.controllers import Policy
from netbuf_gym.scenarios.switches import DROPS, VICTIMS
from netbuf_gym.tasks.queue_threshold.actions import LEVERS, PULSE_LEVELS_S, SCHEDULERS
from netbuf_gym.tasks.queue_threshold.switch_rules import LimitRule
from netbuf_gym.tasks.queue_threshold.task import QueueThreshold
from netbuf_gym.utils.parameters import Tunable, TunableParameter

LEVELS = list(PULSE_LEVELS_S)
CLOSED, OPEN = LEVELS.index((0.001, 0)), LEVELS.index((1.0, 0))
LIMITS = [(limit_s, level) for level, (limit_s, time_s) in enumerate(LEVELS) if not time_s]
PULSES = [(time_s, level) for level, (_, time_s) in enumerate(LEVELS) if time_s]
"""Pairs of pulse duration in seconds and number of the level, shortest first."""

CHOSEN = {"scheduler": SCHEDULERS.index("strict_priority"), "victims": VICTIMS.index("large"), "drop": DROPS.index("head")}
"""Levels of the choices that actions make beside the limits, where they do."""


class BriefPulse(Tunable, LimitRule):
    """Queue 0 stays open; when it exceeds a target it is cut for a few packets' time, at most once in a while.

    The pulse is the shortest one among the actions in which the ports send the requested number of packets. All further queues
    are limited to 20 ms, and closed, but for a packet or so, while queue 0 is not almost empty. Where the drop place is part of
    the action, packets are dropped at the head; where scheduler and victims are, strict priority and large slots are chosen.

    Args:
        tail_ms, head_ms: Backlog of queue 0 above which it is cut, with drops at the tail and at the head, 1 to 1000 ms.
        every_ms: Least time from one cut to the next decision that cuts, 0 to 10,000 ms.
        packets: Packets that the ports send during a pulse, 0.1 to 100.
        shut_ms: Backlog of queue 0 above which the further queues are closed, 0 to 1000 ms; None: never.
        bursts: Exponent by which queue 0 may be longer while flows start, 0 to 4: the target is multiplied by (1 + flows that
            started in the last third of a second, with exponential decay) to this power. A pulse that drops SYNs costs their
            flows a second.
        bursts_from: Flows that start within a third of a second, 0 to 100: `bursts` applies where the switch has seen as many
            or more in the last ten seconds, with exponential decay; 0: always.
        tail_rest_ms, head_rest_ms: Limit of queue 0 while it is not cut, by drop place, 1 to 1000 ms, rounded on a log scale to
            the nearest one among the actions (1, 10, 20, 50 and 1000 ms, which is open). Where decisions are rare, this limit
            handles what arrives before the next one.
        many: Flows that start within a third of a second, 0 to 100: where the switch has seen as many or more in the last
            ten seconds, with exponential decay, queue 0 rests open, since a burst that finds it limited loses its SYNs.
        shut_flows: Flows of queue 0 in progress, counted by the switch from their first and last packets, from which on the
            further queues are closed, 0 to 100; None: never.
        others_ms: Limit of the further queues while they are not closed, 1 to 1000 ms, rounded as `tail_rest_ms` is.

    Raises:
        ConfigError: An argument is out of range.
    """

    name = "brief_pulse"
    recipes: tuple[str, ...] = ("default", LEVERS)
    actions = "pulse_grid"
    tunable = (
        TunableParameter(name="tail_ms", low=1, high=1000),
        TunableParameter(name="head_ms", low=1, high=1000),
        TunableParameter(name="every_ms", low=0, high=10_000),
        TunableParameter(name="packets", low=0.1, high=100),
        TunableParameter(name="shut_ms", low=0, high=1000, optional=True, searched=(0.5, 50)),
        TunableParameter(name="bursts", low=0, high=4),
        TunableParameter(name="bursts_from", low=0, high=100, searched=(0, 20)),
        TunableParameter(name="tail_rest_ms", low=1, high=1000, searched=(5, 1000)),
        TunableParameter(name="head_rest_ms", low=1, high=1000, searched=(5, 1000)),
        TunableParameter(name="many", low=0, high=100, searched=(0, 20)),
        TunableParameter(name="shut_flows", low=0, high=100, optional=True, searched=(5, 100)),
        TunableParameter(name="others_ms", low=1, high=1000),
    )
    tail_ms: float
    head_ms: float
    every_ms: float
    packets: float
    shut_ms: float | None
    bursts: float
    bursts_from: float
    tail_rest_ms: float
    head_rest_ms: float
    many: float
    shut_flows: float | None
    others_ms: float

    def __init__(
        self,
        tail_ms: float = 20.0,
        head_ms: float = 15.0,
        every_ms: float = 100.0,
        packets: float = 2.0,
        shut_ms: float | None = 5.0,
        bursts: float = 0.0,
        bursts_from: float = 0.0,
        tail_rest_ms: float = 1000.0,
        head_rest_ms: float = 1000.0,
        many: float = 3.0,
        shut_flows: float | None = None,
        others_ms: float = 20.0,
    ):
        self.set_parameters(tail_ms=tail_ms, head_ms=head_ms, every_ms=every_ms, packets=packets, shut_ms=shut_ms)
        self.set_parameters(bursts=bursts, bursts_from=bursts_from, many=many, shut_flows=shut_flows)
        self.set_parameters(tail_rest_ms=tail_rest_ms, head_rest_ms=head_rest_ms, others_ms=others_ms)

    def start(self, rules: QueueThreshold, seeds: Sequence[int]) -> Policy:
        self._require_actions(rules)
        column = {feature.name: place for place, feature in enumerate(rules.features)}
        backlog, cut, head, packet = (column[name] for name in ("backlog_0", "cut_0", "drop_head", "packet_time"))
        started, most, seen = (column[name] for name in ("starts_lately_0", "starts_most_0", "flows_seen_0"))
        longest_ms, most_started = rules.features[backlog].high * 1e3, rules.features[started].high
        most_seen = rules.features[seen].high
        many, bursty = (math.log1p(count) / math.log1p(rules.features[most].high) for count in (self.many, self.bursts_from))
        tail_rest, head_rest, others = map(_find_nearest_level, (self.tail_rest_ms, self.head_rest_ms, self.others_ms))
        shortest_s, range_s = rules.features[packet].low, rules.features[packet].high / rules.features[packet].low
        weights = len(LEVELS) ** np.arange(rules.queues)[::-1]
        apart_ms = max(self.every_ms - 1.0, 0.0)  # times are observed with an error

        def policy(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
            now = observations[:, -rules.width :].astype(np.float64)
            backlog_ms, since_ms = (np.expm1(now[:, one] * math.log1p(longest_ms)) for one in (backlog, cut))
            at_head = (now[:, head] > 0.5) | rules.places_drops
            target_ms = np.where(at_head, self.head_ms, self.tail_ms)
            if self.bursts:
                longer = np.exp(self.bursts * math.log1p(most_started) * now[:, started])
                target_ms *= np.where(now[:, most] >= bursty, longer, 1.0)
            long = backlog_ms > target_ms
            needed_s = self.packets * shortest_s * range_s ** ((now[:, packet] + 1) / 2)
            pulse = np.full(len(now), PULSES[-1][1])
            for time_s, level in PULSES[-2::-1]:
                pulse[needed_s <= time_s * 1.001] = level
            levels = np.full((len(now), rules.queues), others)
            if self.shut_ms is not None:
                levels[backlog_ms > self.shut_ms] = CLOSED
            if self.shut_flows is not None:
                levels[np.expm1(now[:, seen] * math.log1p(most_seen)) >= self.shut_flows - 0.01] = CLOSED
            rest = np.where(now[:, most] >= many, OPEN, np.where(at_head, head_rest, tail_rest))
            levels[:, 0] = np.where(long & (since_ms >= apart_ms), pulse, rest)
            return rules.number_action(levels @ weights, **CHOSEN), None

        return policy


class StrictBriefPulse(BriefPulse):
    """The rule at a switch whose ports send queue 0 first; settings are those of `BriefPulse`, by name."""

    name = "brief_pulse-strict"
    recipes = (LEVERS,)
    levers: ClassVar[dict[str, Any]] = {"scheduler": "strict_priority", "victims": "any", "flow_slots": 0}
    """Arguments of the recipe levers."""
    settings: ClassVar[dict[str, Any]] = {"shut_ms": None, "others_ms": 50}
    """Settings that differ from `BriefPulse`'s: the further queues cannot hold up queue 0."""

    def __init__(self, **settings: Any):
        super().__init__(**{**self.settings, **settings})

    @property
    def env(self) -> dict[str, Any]:
        """See `LimitRule.env`; with recipe levers and the rule's own."""
        return {**super().env, "recipe": LEVERS, **self.levers}

    def merge_arguments(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """See `Controller.merge_arguments`; the levers stay the rule's own."""
        return {**super().merge_arguments(env), **self.env}


class SparingBriefPulse(StrictBriefPulse):
    """The rule at a switch that sends queue 0 first, each queue first in, first out, and spares small slots of a flow table.

    Such a table is a counter for each slot.
    """

    name = "brief_pulse-sparing"
    levers: ClassVar[dict[str, Any]] = {
        "scheduler": "strict_priority",
        "victims": "large",
        "flow_slots": 256,
        "flow_service": "fifo",
    }


class FlowBriefPulse(SparingBriefPulse):
    """The rule at a switch that sends queue 0 first, slots of a flow table in turn, and drops of large slots only."""

    name = "brief_pulse-flows"
    levers: ClassVar[dict[str, Any]] = {**SparingBriefPulse.levers, "flow_service": "drr"}


class FastBriefPulse(BriefPulse):
    """The rule deciding every 10 ms, where other controllers are judged at the task's interval."""

    name = "brief_pulse-10ms"

    @property
    def env(self) -> dict[str, Any]:
        """See `LimitRule.env`; with the rule's own interval."""
        return {**super().env, "interval_s": 0.01}

    def merge_arguments(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """See `Controller.merge_arguments`; the interval stays the rule's own."""
        return {**self.env, **env, "interval_s": 0.01}


def _find_nearest_level(limit_ms: float) -> int:
    """Return the number of the level without a pulse whose limit is nearest on a log scale."""
    return min(LIMITS, key=lambda one: abs(math.log(one[0] * 1e3 / limit_ms)))[1]
