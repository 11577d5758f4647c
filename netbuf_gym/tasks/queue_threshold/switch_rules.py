"""Rules that limit a switch's queues: constant limits, or pulses that briefly cut the queue of short flows.

They decide in the agent's place from the observations of the recipe `default` alone: backlogs and flow starts, both
of which a switch can count; never completions. Limits are times, what the ports send in so many milliseconds, so that a rule
is the same at any rate and with any buffer. Default values are the results of our trials on `rlbm/*` at 10 Mbit/s.

All rules use `recipe="default"` and `actions="limits"`, 1 ms to 1 s: a queue is open at the widest of these limits and
closed at the narrowest. With several ports each has the limit, relative to what all ports send together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from netbuf_gym.controllers import Decider, Policy
from netbuf_gym.controllers.policies import constant_policy
from netbuf_gym.controllers.protocol import SHARED_ARGUMENTS
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.tasks.queue_threshold.actions import LIMIT_S, encode_limits
from netbuf_gym.tasks.queue_threshold.task import QueueThreshold
from netbuf_gym.utils.arguments import check_real, check_sequence
from netbuf_gym.utils.parameters import Tunable, TunableParameter

LIMIT_MS = (LIMIT_S[0] * 1e3, LIMIT_S[1] * 1e3)
"""The narrowest and the widest limit in ms."""

CLOSED, OPEN = encode_limits(np.array(LIMIT_S))


class LimitRule(Decider[QueueThreshold]):
    """Base class of rules that name limits in time, whatever actions the compared agent uses.

    Attributes:
        actions: Kind of actions that the rule decides with.
    """

    recipes: tuple[str, ...] = ("default",)
    actions = "limits"

    @property
    def env(self) -> dict[str, Any]:
        """Recipe `default` with the rule's actions."""
        return {"recipe": "default", "actions": self.actions}

    def match_arguments(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """See `Controller.match_arguments`: the rule's own recipe and actions, at the intervals and on the plant of `env`."""
        return {key: env[key] for key in SHARED_ARGUMENTS if key in env} | self.env

    def _require_actions(self, rules: QueueThreshold) -> None:
        self._require_recipe(rules)
        if rules.actions != self.actions:
            raise ConfigError(f'{self.name} with actions = {quote(rules.actions)}; valid: "{self.actions}"')


class Limits(LimitRule):
    """Constant limits in time: each queue may hold what the ports send in so many milliseconds.

    Args:
        limits_ms: One limit for each queue, 1 to 1000 ms, the last one applying to all further queues; or one for all.
        name: Name in tables; None: `limits:` and the limits, `limits:20:50`.

    Raises:
        ConfigError: A limit is out of range; on start, there are more limits than the switch has queues.
    """

    def __init__(self, limits_ms: float | Sequence[float] = 20.0, name: str | None = None):
        given = check_sequence("limits_ms", limits_ms, "numbers") if isinstance(limits_ms, Sequence) else (limits_ms,)
        self.limits_ms = tuple(check_real(f"limits_ms[{q}]", limit, *LIMIT_MS) for q, limit in enumerate(given))
        self.name = "limits:" + ":".join(f"{limit:g}" for limit in self.limits_ms) if name is None else name

    @classmethod
    def from_settings(cls, numbers: str) -> Limits:
        """Return the rule for numbers in ms separated by colons: `20`, or `20:50`.

        Raises:
            ConfigError: The text holds no numbers, or one out of range.
        """
        try:
            limits = [float(number) for number in numbers.split(":")]
        except ValueError:
            valid = "limits:MS, or limits:MS:MS with one for each queue, e.g. limits:20, limits:20:50"
            raise ConfigError(f"controller = {quote(f'limits:{numbers}')}; valid: {valid}") from None
        return cls(limits)

    def start(self, rules: QueueThreshold, seeds: Sequence[int]) -> Policy:
        self._require_actions(rules)
        if len(self.limits_ms) > rules.queues:
            raise ConfigError(f"limits_ms has {len(self.limits_ms)} values for {rules.queues} queues; valid: at most as many")
        limits = (*self.limits_ms, *(self.limits_ms[-1],) * (rules.queues - len(self.limits_ms)))
        return constant_policy(encode_limits(np.array(limits) * 1e-3), rules, len(seeds))


class Pulse(Tunable, LimitRule):
    """Queue 0 stays open; when it exceeds a target, its limit is the target for one decision, at most once in a while.

    The pulse makes the longest flows slow down, and lets bursts pass. All further queues have one constant limit; with a single
    queue there is only the pulse.

    Args:
        target_ms: Backlog of queue 0 above which it is cut, and its limit then, 1 to 1000 ms.
        every_ms: Least time from one cut to the next, 0 to 100,000 ms, in whole decisions rounded up; at least one of them.
        rest_ms: Limit of each further queue, 1 to 1000 ms.
        shut: Whether the further queues are closed while queue 0 is above its target, but for what the narrowest limit
            admits: one packet at 10 Mbit/s.

    Raises:
        ConfigError: An argument is out of range.
    """

    rule = "pulse"
    tunable: tuple[TunableParameter, ...] = (
        TunableParameter(name="target_ms", low=LIMIT_MS[0], high=LIMIT_MS[1]),
        TunableParameter(name="every_ms", low=0, high=100_000),
        TunableParameter(name="rest_ms", low=LIMIT_MS[0], high=LIMIT_MS[1]),
        TunableParameter(name="shut", kind="truth"),
    )
    target_ms: float
    every_ms: float
    rest_ms: float
    shut: bool

    def __init__(self, target_ms: float = 20.0, every_ms: float = 100.0, rest_ms: float = 50.0, shut: bool = False):
        self.set_parameters(target_ms=target_ms, every_ms=every_ms, rest_ms=rest_ms, shut=shut)
        self.name = self.rule + ("_shut" if self.shut else "")

    def start(self, rules: QueueThreshold, seeds: Sequence[int]) -> Policy:
        self._require_actions(rules)
        seen = [feature.name for feature in rules.features]
        backlog_column, started = seen.index("backlog_0"), seen.index("starts_0")
        longest_ms, most_started = (rules.features[k].high for k in (backlog_column, started))
        started_columns = slice(started, started + rules.queues)
        apart = max(1, math.ceil(self.every_ms * 1e-3 / rules.interval_s - 1e-6))
        cut, rest = encode_limits(np.array([self.target_ms, self.rest_ms]) * 1e-3)

        def policy(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
            now = observations[:, -rules.width :].astype(np.float64)
            rows = len(now)
            since, memory = (np.full(rows, apart), None) if state is None else state  # decisions since the last cut
            since = np.where(starts, apart, since)
            backlog_ms = np.expm1(now[:, backlog_column] * math.log1p(longest_ms * 1e3))
            started = np.expm1(now[:, started_columns] * math.log1p(most_started)).sum(axis=1)
            spared, memory = self._find_spared_rows(started, memory, starts, rules.interval_s)
            long = backlog_ms > self.target_ms
            cuts = long & ~spared & (since >= apart)
            actions = np.full((rows, rules.queues), rest, np.float32)
            if self.shut:
                actions[long] = CLOSED
            actions[:, 0] = np.where(cuts, cut, OPEN)
            return actions, (np.where(cuts, 1, since + 1), memory)

        return policy

    def _find_spared_rows(
        self, started: np.ndarray, memory: Any, starts: np.ndarray, interval_s: float
    ) -> tuple[np.ndarray, Any]:
        """Return the rows whose queue 0 must not be cut now, bool `(rows,)`, and the memory to pass to the next call.

        Args:
            started: Flows that started in the last interval, `(rows,)`.
            memory: The memory returned by the previous call; None at first.
            starts: Rows whose episode has just begun, bool `(rows,)`.
            interval_s: Time between decisions.
        """
        return np.zeros(len(started), bool), None


class PulseBurst(Pulse):
    """The pulse with a burst detector: while many flows have just started, queue 0 is left open.

    Args:
        target_ms, every_ms, rest_ms, shut: As for `Pulse`.
        flows: Number of flows starting within `within_ms` that make a burst, 1 to 100.
        within_ms: Window of the detector, 1 to 10,000 ms, in whole decisions rounded down; at least one of them.

    Raises:
        ConfigError: An argument is out of range.
    """

    rule = "pulse_burst"
    tunable = (
        *Pulse.tunable,
        TunableParameter(name="flows", kind="whole", low=1, high=100),
        TunableParameter(name="within_ms", low=1, high=10_000),
    )
    flows: int
    within_ms: float

    def __init__(
        self,
        target_ms: float = 20.0,
        every_ms: float = 100.0,
        rest_ms: float = 50.0,
        shut: bool = False,
        flows: int = 5,
        within_ms: float = 500.0,
    ):
        super().__init__(target_ms, every_ms, rest_ms, shut)
        self.set_parameters(flows=flows, within_ms=within_ms)

    def _find_spared_rows(
        self, started: np.ndarray, memory: Any, starts: np.ndarray, interval_s: float
    ) -> tuple[np.ndarray, Any]:
        """See `Pulse._find_spared_rows`; memory: flows started in the last intervals, `(rows, intervals)`, oldest first."""
        intervals = max(1, int(self.within_ms * 1e-3 / interval_s + 1e-6))
        before = np.zeros((len(started), intervals)) if memory is None else np.where(starts[:, None], 0, memory)
        lately = np.column_stack([before[:, 1:], np.rint(started)])
        return lately.sum(axis=1) >= self.flows, lately
