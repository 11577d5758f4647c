"""Rules by which a switch can limit its queues: always alike, or by pulses that cut the short flows' queue now and then.

They decide in the agent's place, by the observations of the recipe `default` and nothing else: backlogs and flow starts, both
of which a switch can count; never completions. Limits are times, what the ports send in so many milliseconds, so that a rule
is the same at any rate and with any buffer. Their numbers are findings of our trial on `rlbm/*` at 10 Mbit/s.

All of them play with `recipe="default"` and `actions="limits"`, 1 ms to 1 s: a queue is open at the widest of these limits and
closed at the narrowest. Of several ports each has the limit, of what all of them send together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from netbuf_gym.controllers import Decider, Policy
from netbuf_gym.controllers.policies import constant
from netbuf_gym.controllers.protocol import SHARED
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.tasks.queue_threshold.actions import LIMIT_S, action_of_limits
from netbuf_gym.tasks.queue_threshold.task import QueueThreshold
from netbuf_gym.utils.arguments import real, sequence, truth, whole

LIMIT_MS = (LIMIT_S[0] * 1e3, LIMIT_S[1] * 1e3)
"""The narrowest and the widest limit."""

CLOSED, OPEN = action_of_limits(np.array(LIMIT_S))


class LimitRule(Decider):
    """A rule that names limits in time, whatever the agent beside it names."""

    recipes = ("default",)

    @property
    def env(self) -> dict[str, Any]:
        """Recipe `default` with limits for actions."""
        return {"recipe": "default", "actions": "limits"}

    def beside(self, env: Mapping[str, Any]) -> dict[str, Any]:
        """See `Controller.beside`: its own recipe and actions, at the other's intervals and on the same plant."""
        return {key: env[key] for key in SHARED if key in env} | self.env

    def _require_limits(self, rules: QueueThreshold) -> None:
        self._require_recipe(rules)
        if rules.actions != "limits":
            raise ConfigError(f'{self.name} names limits in time; actions = {shown(rules.actions)}; valid: "limits"')


class Limits(LimitRule):
    """The same limits always, in time: of each queue what the ports send in so many milliseconds.

    Args:
        limits_ms: one for each queue, 1 to 1000 ms, the last one going for all further queues; or one for all.
        name: how tables call it; None: `limits:` and the limits, `limits:20:50`.

    Raises:
        ConfigError: a limit out of range; when it starts, more limits than the switch has queues.
    """

    def __init__(self, limits_ms: float | Sequence[float] = 20.0, name: str | None = None):
        given = sequence("limits_ms", limits_ms, "numbers") if isinstance(limits_ms, Sequence) else (limits_ms,)
        self.limits_ms = tuple(real(f"limits_ms[{q}]", limit, *LIMIT_MS) for q, limit in enumerate(given))
        self.name = "limits:" + ":".join(f"{limit:g}" for limit in self.limits_ms) if name is None else name

    @classmethod
    def of(cls, numbers: str) -> Limits:
        """The rule of numbers with colons between them, in ms: `20`, or `20:50`.

        Raises:
            ConfigError: no numbers, or one out of range.
        """
        try:
            limits = [float(number) for number in numbers.split(":")]
        except ValueError:
            valid = "limits:MS, or limits:MS:MS with one for each queue, e.g. limits:20, limits:20:50"
            raise ConfigError(f"controller = {shown(f'limits:{numbers}')}; valid: {valid}") from None
        return cls(limits)

    def start(self, rules: QueueThreshold, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`."""
        self._require_limits(rules)
        if len(self.limits_ms) > rules.queues:
            raise ConfigError(f"limits_ms has {len(self.limits_ms)} values for {rules.queues} queues; valid: at most as many")
        limits = (*self.limits_ms, *(self.limits_ms[-1],) * (rules.queues - len(self.limits_ms)))
        return constant(action_of_limits(np.array(limits) * 1e-3), rules, len(seeds))


class Pulse(LimitRule):
    """Queue 0 is open; where it exceeds a target, its limit is the target for one decision, once in a while.

    So its longest flows are told to slow down, and bursts pass. All further queues have one constant limit; with a single queue
    there is the pulse alone.

    Args:
        target_ms: backlog of queue 0 above which it is cut, and its limit then, 1 to 1000 ms.
        every_ms: least time from one cut to the next, 0 to 100,000 ms, in whole decisions rounded up; at least one of them.
        rest_ms: limit of each further queue, 1 to 1000 ms.
        shut: whether the further queues are closed while queue 0 is above its target, but for what the narrowest limit lets
            in: one packet at 10 Mbit/s.

    Raises:
        ConfigError: an argument out of range.
    """

    rule = "pulse"

    def __init__(self, target_ms: float = 20.0, every_ms: float = 100.0, rest_ms: float = 50.0, shut: bool = False):
        self.target_ms = real("target_ms", target_ms, *LIMIT_MS)
        self.every_ms = real("every_ms", every_ms, 0, 100_000)
        self.rest_ms = real("rest_ms", rest_ms, *LIMIT_MS)
        self.shut = truth("shut", shut)
        self.name = self.rule + ("_shut" if self.shut else "")

    def start(self, rules: QueueThreshold, seeds: Sequence[int]) -> Policy:
        """See `Controller.start`."""
        self._require_limits(rules)
        seen = [feature.name for feature in rules.features]
        backlog_column, started = seen.index("backlog_0"), seen.index("starts_0")
        longest_ms, most_started = (rules.features[k].high for k in (backlog_column, started))
        started_columns = slice(started, started + rules.queues)
        apart = max(1, math.ceil(self.every_ms * 1e-3 / rules.interval_s - 1e-6))
        cut, rest = action_of_limits(np.array([self.target_ms, self.rest_ms]) * 1e-3)

        def policy(observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
            now = observations[:, -rules.width :].astype(np.float64)
            rows = len(now)
            since, memory = (np.full(rows, apart), None) if state is None else state  # decisions since the last cut
            since = np.where(starts, apart, since)
            backlog_ms = np.expm1(now[:, backlog_column] * math.log1p(longest_ms * 1e3))
            started = np.expm1(now[:, started_columns] * math.log1p(most_started)).sum(axis=1)
            spared, memory = self._spared(started, memory, starts, rules.interval_s)
            long = backlog_ms > self.target_ms
            cuts = long & ~spared & (since >= apart)
            actions = np.full((rows, rules.queues), rest, np.float32)
            if self.shut:
                actions[long] = CLOSED
            actions[:, 0] = np.where(cuts, cut, OPEN)
            return actions, (np.where(cuts, 1, since + 1), memory)

        return policy

    def _spared(self, started: np.ndarray, memory: Any, starts: np.ndarray, interval_s: float) -> tuple[np.ndarray, Any]:
        """Whose queue 0 is not to be cut now, bool `(rows,)`, by the flows that started in the last interval; and a memory."""
        return np.zeros(len(started), bool), None


class PulseBurst(Pulse):
    """The pulse with a detector of bursts: while many flows have just started, queue 0 is left open.

    Args:
        target_ms, every_ms, rest_ms, shut: as for `Pulse`.
        flows: that start within `within_ms` and make a burst, 1 to 100.
        within_ms: 1 to 10,000 ms, in whole decisions rounded down; at least one of them.

    Raises:
        ConfigError: an argument out of range.
    """

    rule = "pulse_burst"

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
        self.flows = whole("flows", flows, 1, 100)
        self.within_ms = real("within_ms", within_ms, 1, 10_000)

    def _spared(self, started: np.ndarray, memory: Any, starts: np.ndarray, interval_s: float) -> tuple[np.ndarray, Any]:
        """See `Pulse._spared`; memory: flows started in each of the last intervals, `(rows, intervals)`, oldest first."""
        intervals = max(1, int(self.within_ms * 1e-3 / interval_s + 1e-6))
        before = np.zeros((len(started), intervals)) if memory is None else np.where(starts[:, None], 0, memory)
        lately = np.column_stack([before[:, 1:], np.rint(started)])
        return lately.sum(axis=1) >= self.flows, lately
