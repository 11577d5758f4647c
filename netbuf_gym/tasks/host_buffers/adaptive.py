"""Rule for hosts that choose their congestion control: Vegas alone, CUBIC beside rivals, BBR under losses without a queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from netbuf_gym.controllers import Decider, Policy
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.scenarios import Scenario
from netbuf_gym.tasks.host_buffers.actions import FACTORS
from netbuf_gym.tasks.host_buffers.hosts import apply_settings, change_hosts, find_agent_hosts
from netbuf_gym.tasks.host_buffers.observations import CONTROL_FEATURES
from netbuf_gym.tasks.host_buffers.settings import CHOICES, NAMED, Settings
from netbuf_gym.tasks.host_buffers.task import HostBuffers
from netbuf_gym.tasks.host_buffers.tracker import DELAY_WEIGHT
from netbuf_gym.utils.arguments import check_integer, check_real

_COLUMN = {feature.name: column for column, feature in enumerate(CONTROL_FEATURES)}
_CUBIC, _BBR, _VEGAS = (1 + CHOICES.index(name) for name in ("cubic", "bbr", "vegas"))
_KEEP, _ANEW = 0, 1 + len(CHOICES)
_FACTORS = sorted((*FACTORS["tcp"], 1.0))
_SAME, _LARGER = _FACTORS.index(1.0), _FACTORS.index(4.0)


class AdaptiveControl(Decider[HostBuffers]):
    """Rule that chooses a host's congestion control, and lets buffers grow where they bind.

    Vegas is what connections have as long as nothing speaks against it. What does is tried for some decisions, and kept if it
    is worth more by what the host itself measures, ln(rate) - 0.2 latency / least round trip:

    * Losses beside a queue, which Vegas does not make: others fill the path. CUBIC.
    * Losses without a queue: they are the path's. BBR.

    Where it is not, or when it has been kept for some time, Vegas is tried again; what was tried in vain waits twice as long
    each time. From CUBIC the way to Vegas leads by BBR, which drains the queue: Vegas takes what stands as it begins for the
    path's delay. Where Vegas grows, a packet a round trip, while little waits and no buffer binds, the path carries more: a
    slow start. A TCP maximum that binds while little waits is multiplied by 4. Estimates are those of intervals that no buffer
    bound (recipe `control`).

    Args:
        loss: Share of packets sent again from which on losses count, 0 to 0.25.
        share: Share of the unbound rate below which, beside a queue, others fill the path, 0 to 1.
        inflation: Latency over the least round trip up to which there is no queue, 1 to 8.
        gain: Logarithm of what the rate grows by from which on there is a slow start, 0 to 10.
        idle_packets: Packets of a connection that wait below which the path carries more, 0 to 100.
        margin: What a control that is tried must be worth more, 0 to 10.
        trial: Decisions for which a control is tried, 2 to 1000.
        stay: Decisions after which Vegas is tried again, 1 to 1000.
        patience: Decisions before another control is tried again, 1 to 1000; it doubles up to 64.
        first: Initial settings of the host, by default Linux's own.
    """

    name = "adaptive"
    recipes = ("control",)

    def __init__(
        self,
        loss: float = 0.0001,
        share: float = 0.7,
        inflation: float = 1.1,
        gain: float = 0.05,
        idle_packets: float = 1.5,
        margin: float = 0.05,
        trial: int = 4,
        stay: int = 20,
        patience: int = 2,
        first: Settings = NAMED["autotuning"],
    ):
        self.loss = check_real("loss", loss, 0, 0.25)
        self.share = check_real("share", share, 0, 1)
        self.inflation = check_real("inflation", inflation, 1, 8)
        self.gain = check_real("gain", gain, 0, 10)
        self.idle_packets = check_real("idle_packets", idle_packets, 0, 100)
        self.margin = check_real("margin", margin, 0, 10)
        self.trial = check_integer("trial", trial, 2, 1000)
        self.stay = check_integer("stay", stay, 1, 1000)
        self.patience = check_integer("patience", patience, 1, 1000)
        self.first = first

    @property
    def env(self) -> dict[str, Any]:
        """See `Controller.env`."""
        return {"recipe": "control", "actions": "multi"}

    def place(self, scenario: Scenario) -> Scenario:
        """Return the same world with the initial settings of this rule."""
        return change_hosts(scenario, find_agent_hosts(scenario), lambda host: apply_settings(host, self.first))

    def start(self, rules: HostBuffers, seeds: Sequence[int]) -> Policy:
        self._require_recipe(rules)
        for name, given, valid in (
            ("actions", rules.actions, "multi"),
            ("acts_on", rules.acts_on, ("tcp",)),
            ("controls", rules.controls, CHOICES),
        ):
            if given != valid:
                raise ConfigError(f"{name} = {quote(given)} with the controller {self.name}; valid: {quote(valid)}")
        return _Run(self, len(seeds) * rules.agents, rules.width)


class _Run:
    """Memory of the rule in worlds that are played together; a `Policy`."""

    def __init__(self, rule: AdaptiveControl, rows: int, width: int):
        self.rule, self.width = rule, width
        self.mode, self.before = np.zeros((2, rows), np.int64)  # the control, and the one that a trial is compared with
        self.since = np.zeros(rows, np.int64)  # decisions since the control was chosen
        self.trying = np.zeros(rows, bool)
        self.worth, self.reference, self.lost = np.zeros((3, rows))  # means of late, and of the control before the trial
        self.hold, self.doubt = np.zeros((2, rows), np.int64)  # decisions until another is tried; how many the next time
        self.stays = np.zeros(rows, np.int64)  # decisions until Vegas is tried again
        self.via = np.zeros(rows, bool)  # BBR drains the queue, for Vegas to come
        self.since_start = np.zeros(rows, np.int64)  # decisions since the last slow start
        self.at_start = np.zeros(rows)  # what the control was worth soon after
        self.scale = np.zeros(rows)  # logarithm of what the TCP maxima were multiplied by

    def _begin(self, where: np.ndarray, actions: np.ndarray) -> None:
        """Forget everything about some rows, whose worlds begin, and choose Vegas."""
        for memory in (self.since, self.trying, self.worth, self.reference, self.lost):
            memory[where] = 0
        for memory in (self.via, self.since_start, self.at_start, self.scale):
            memory[where] = 0
        self.mode[where] = self.before[where] = _VEGAS
        self.hold[where] = self.doubt[where] = self.rule.patience
        self.stays[where] = self.rule.stay
        actions[where] = _SAME, _VEGAS

    def __call__(self, observations: np.ndarray, state: Any, starts: np.ndarray) -> tuple[np.ndarray, Any]:
        now = observations[:, -self.width :].astype(np.float64)
        rule, rows = self.rule, len(now)
        actions = np.zeros((rows, 2), np.int64)
        actions[:, 0] = _SAME
        if state is None:
            self._begin(np.ones(rows, bool), actions)
            return actions, True
        inflation = _read(now, "rtt_inflation")
        bound, quiet = now[:, _COLUMN["bound"]] > 0.5, inflation <= rule.inflation
        self._measure(now, inflation)

        drained = self.via & (self.since >= 2)
        self.via[drained] = False
        self._choose(drained, np.full(rows, _VEGAS), actions)

        over = self.trying & ~self.via & (self.since >= rule.trial)
        fails = over & (self.worth <= self.reference + rule.margin)
        self.trying[over] = False
        self.hold[over] = self.stays[over]
        back = fails & (self.before == _VEGAS)
        self.hold[back] = self.doubt[back] = np.minimum(2 * self.doubt[back], 64)
        stays = fails & (self.before != _VEGAS)
        self.stays[stays] = np.minimum(2 * self.stays[stays], 8 * rule.stay)
        self._choose(fails, self.before.copy(), actions)

        self.hold -= 1
        free = ~self.trying & ~self.via & ~over & (self.hold <= 0) & (self.since >= 3)
        vegas = self.mode == _VEGAS
        less = (_read(now, "rate_in_unbound") < rule.share) & ~quiet
        other = np.where(vegas, np.where(quiet, _BBR, _CUBIC), _VEGAS)
        tries = free & (~vegas | (self.lost > rule.loss) | less)
        self.reference[tries] = self.worth[tries]
        self.before[tries] = self.mode[tries]
        self.trying |= tries
        self._choose(tries, other, actions)

        busy = now[:, _COLUMN["busy"]] > 0.2  # the connections of a relay that receive count, too
        self.since_start += 1
        told = self.since_start == 2
        self.at_start[told] = self.worth[told]
        few = quiet | (_read(now, "own_queue") - 1 < rule.idle_packets)
        gains = self.worth - self.at_start > rule.gain
        idle = (self.mode == _VEGAS) & ~self.trying & busy & ~bound & few & gains & (self.since_start > 2)
        actions[idle, 1] = _ANEW
        self.since[idle] = self.since_start[idle] = 0
        grows = bound & (inflation <= 1.5)
        actions[grows, 0] = _LARGER
        self.scale[grows] += np.log(4.0)
        self._begin(np.asarray(starts, bool), actions)
        return actions, True

    def _measure(self, now: np.ndarray, inflation: np.ndarray) -> None:
        """Update means of late with an interval's; the first after a choice is still of what was before."""
        self.since += 1
        worth = self.scale - np.log(_read(now, "buffer_in_use")) - DELAY_WEIGHT * (inflation - 1)
        loss = now[:, _COLUMN["loss"]] ** 2 / 4
        self.worth = np.where(self.since <= 2, worth, 0.6 * self.worth + 0.4 * worth)
        self.lost = np.where(self.since < 2, self.lost, 0.7 * self.lost + 0.3 * loss)

    def _choose(self, where: np.ndarray, mode: np.ndarray, actions: np.ndarray) -> None:
        """Choose controls in some rows; Vegas after CUBIC by way of BBR, which drains the queue."""
        drains = where & (mode == _VEGAS) & (self.mode == _CUBIC)
        self.via |= drains
        self.mode[where] = actions[where, 1] = np.where(drains, _BBR, mode)[where]
        self.since[where] = 0
        self.lost[where] = 0


def _read(now: np.ndarray, name: str) -> np.ndarray:
    """Return what a logarithmic feature stands for, `(rows,)`."""
    feature = CONTROL_FEATURES[_COLUMN[name]]
    share = (now[:, _COLUMN[name]] - feature.floor) / (1 - feature.floor)
    return feature.low * (feature.high / feature.low) ** share
