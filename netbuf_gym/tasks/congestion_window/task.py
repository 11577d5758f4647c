"""The congestion-window task: a sender decides at intervals how much data it may have in flight.

Rules only, batch first (leading axis = senders). The docstring of `CongestionWindow` is the environment's reference page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.plants.plant import EVENT, INTERVAL
from netbuf_gym.scenarios.types import AGENT, PathFigures, Scenario
from netbuf_gym.tasks.actions import LARGEST_FACTOR
from netbuf_gym.tasks.congestion_window.evidence_tracker import EvidenceTracker
from netbuf_gym.tasks.congestion_window.hidden_traffic import HIDDEN_KINDS, find_hidden_spans
from netbuf_gym.tasks.congestion_window.observations import (
    DEFAULT_FEATURES,
    PPCC_FEATURES,
    ROBUST_FEATURES,
    observe_default,
    observe_ppcc,
    observe_robust,
)
from netbuf_gym.tasks.congestion_window.path_tracker import DRAIN_AFTER_S, SEEN_WITHIN, PathTracker
from netbuf_gym.tasks.congestion_window.report import episode_report
from netbuf_gym.tasks.congestion_window.telemetry import FINEST_SEGMENTS, SENDER, sender
from netbuf_gym.tasks.congestion_window.tracker import FIELD, MSS, RTT, THROUGHPUT, Tracker
from netbuf_gym.tasks.features import Feature
from netbuf_gym.tasks.flows import describe_paths, require_capacity
from netbuf_gym.tasks.task import Panel, Spans, Task
from netbuf_gym.utils.arguments import check_boolean, check_choice, check_real

UNLIMITED_BUFFER_PACKETS = 150_000
"""Size of an unlimited queue where a window needs an upper bound: the deepest buffer of TCP-PPCC."""

PPCC_STEPS = np.array([-200, -100, -50, -20, 0, 5, 10, 100, 200, 500, 600], np.float64)
"""The paper's actions a: cwnd <- cwnd + a * MSS^2 / cwnd."""

FACTORS = np.array([0.5, 0.7, 0.85, 0.94, 0.98, 1.005, 1.02, 1.06, 1.18, 1.4, 2.0, 4.0], np.float64)
"""Actions of the default recipe: cwnd <- cwnd * factor. None is 1: a sender sees the same empty queue at a window that fits the
path and at one that is too small, and a sender whose window stands still never learns which it has."""

MAX_FACTORS, FACTOR_RANGE = 64, (0.01, 100.0)
"""Largest number and range of factors given to an environment."""

LEAST_WINDOW_SEGMENTS = 2.0
"""Lowest window in segments."""

MAX_WINDOW_BYTES = 2.0**40
"""Largest window in bytes."""

MAX_BARE_SEGMENTS = 65_536
"""Largest window of the recipe `bare` in segments, the largest that is observed: a sender that doubles its window in each of a
hundred intervals would otherwise put more into a world than a machine holds."""
DISCRETE, CONTINUOUS = "discrete", "continuous"
MEASURED, PATH, NO_CLAMP = "measured", "path", "none"
CLAMPS = (MEASURED, PATH, NO_CLAMP)
"""Upper bounds on a window: measured; the capacity of the path, which no real sender knows; none."""
RECIPE_DEFAULTS: dict[str, dict[str, Any]] = {
    "default": {"clamp": MEASURED, "actions": DISCRETE, "drain": True, "paced": True, "slow_start": True, "growth_loss": 1.0},
    "ppcc": {"clamp": PATH, "actions": DISCRETE, "drain": False, "paced": False, "slow_start": False, "growth_loss": 1.0},
    "bare": {"clamp": NO_CLAMP, "actions": DISCRETE, "drain": False, "paced": False, "slow_start": False, "growth_loss": 1.0},
    "robust": {"clamp": MEASURED, "actions": DISCRETE, "drain": True, "paced": True, "slow_start": True, "growth_loss": 1.0},
}
"""Default arguments of each recipe."""

FIXED = {
    "ppcc": (("actions", "drain", "slow_start", "growth_loss"), "as it was published"),
    "bare": (("clamp", "drain", "slow_start", "growth_loss"), "since the window is the agent's alone"),
}
"""By recipe, the arguments that are its own, and why."""


class CongestionWindow(Task[Tracker]):
    """
    ## Description

    `netbuf/CongestionWindow-v0`: a TCP sender learns congestion control. It shares a bottleneck with a buffer, possibly
    with other senders, and decides every 100 ms (or on every ACK) how many bytes it may have in flight. Too few, and
    the link idles; too many, and packets wait in the buffer and are dropped. The world is a packet-level simulation
    with real TCP machinery: SACK recovery retransmits without cutting the window, a time-out sets it to one segment
    until the next decision.

    The task and its recipe `"ppcc"` come from TCP-PPCC (Li et al., "Online-Learning Proximal Policy for Congestion
    Control"); the recipe `"default"` is ours and designed to carry over from 0.5 to 1000 Mbit/s and from 5 to 400 ms. Under it
    a slow start, drains and limits by what was measured do part of the work. The recipe `"bare"` has the same observations and
    actions and none of these, for those who study control itself. The recipe `"robust"` is the default one for paths with
    jitter, losses and rivals of many kinds: it judges by mean round trips, and observes more.

    All observations and actions of the recipes default, bare and robust are available to a real sender: its ACKs, its clock,
    its counters.

    ## Action Space

    `Discrete(12)`, recipe ppcc `Discrete(11)`; in the recipes default, bare and robust also `Box(-1, 1, (1,))` for factors of
    1/2 to 2 (`actions="continuous"`, 2 to the power of the action; 0 keeps the window, which none of the discrete factors
    does), or `Discrete(n)` for n custom factors (`actions=[0.5, ..., 2]`).
    With the scenario's MSS, 1448 bytes by default, and at least 2 MSS (recipe robust: 1/16 MSS):

    | Recipe  | Window                          | Values                                                             |
    |---------|---------------------------------|--------------------------------------------------------------------|
    | default | cwnd <- cwnd * f                | f in 0.5, 0.7, 0.85, 0.94, 0.98, 1.005, 1.02, 1.06, 1.18, 1.4, 2, 4 |
    | bare    | cwnd <- cwnd * f                | the same                                                           |
    | robust  | cwnd <- cwnd * f                | the same                                                           |
    | ppcc    | cwnd <- cwnd + a * MSS^2 / cwnd | a in -200, -100, -50, -20, 0, 5, 10, 100, 200, 500, 600             |

    cwnd is the window in force: the agent's last one, or the window that a time-out left. Under the default recipe

    * a connection begins with a slow start: the window grows by what is acknowledged until more than 2 % and at least 8
      packets of a round are lost (as in draft-ietf-ccwg-bbr), or eight round trips in a row are longer than the least so
      far by an eighth, 4 to 16 ms (as in RFC 9406), or the mean RTT of an interval by a quarter, or the window has not grown
      for a round trip though ACKs come (a plant without slow starts, a sender with little to send). From then on, and not
      before, the window is the agent's (`slow_start`);
    * nothing is decided after an interval in which no ACK came: the window stays as it is;
    * a window grows by at most what was acknowledged in the interval;
    * a window reduced by a time-out grows by what is acknowledged towards the earlier window, and the factor applies to that;
    * after three consecutive round trips, of at least 8 segments each, in which more than a tenth of what was sent was lost,
      the window is for a round trip at most what arrived of it: senders that together exceed what a path and its queue hold
      lose the excess in each;
    * after two consecutive round trips, of at least 64 segments each, in which more than `growth_loss` was lost, the window
      grows no faster than in congestion avoidance (RFC 5681, Eq. 3), until a round trip loses less;
    * it is at most max(2 peak rate * least RTT, 1.5 latest rate * latest RTT) + 10 MSS, all of them measured (`clamp`);
    * the least RTT is kept as long as it is seen, within 2 % (`seen_within`). After 8 s of intervals with ACKs in which it was
      not seen (`drain_after_s`), the queue is drained for two round trips (at least 2 intervals, less if it is seen): the
      window is half of the earlier one, and at most three quarters of mean rate lately * least RTT, but at least 4 segments if
      it was as large. Then the least RTT found is adopted, and the window is restored (`drain`);
    * packets are paced at 1.2 windows in the least RTT of the connection, which no drain replaces (`paced`).

    Under `bare` each decision from the first ACK on, after an interval without ACKs too, is the window from then on, of 2 to
    65,536 segments; until that ACK it is the initial window. What is left of TCP is what keeps a connection alive: lost
    segments are sent again, and a time-out leaves a window of one segment until the next decision, which multiplies that.

    The recipe `robust` has the rules of the default one but for these:

    * the least RTT is the least of the intervals' mean RTTs, in drains, too: where delays jitter, the least RTT of a packet is
      an extreme that never comes back. It is at most that of a packet and three times what means exceed the least RTTs of their
      intervals by: a queue that stands since the start would else be seen for ever;
    * losses are heavy from 2 % on, in one round trip of at least 16 segments. The window is then at most 0.9 of what arrived
      of it, but at least 0.7 of itself in the first of several such round trips; and for 3 s it grows no faster than in
      congestion avoidance, unless more than 0.3 was lost at once or there was a time-out, as in outages. Without a memory of
      losses windows grow back at once: sixteen senders on a slow link lost 9 % of their packets so, behind a policer 8 %;
    * where packets are paced, a window may be as small as 1/16 MSS. Less than 2 MSS are kept by the pace alone: a window leaves
      in each smoothed RTT, one packet in flight at most (above 1 MSS two), so that many senders of a slow path need not
      overflow it. The window at a packet's departure decides when the next one may leave; without ACKs it stays. An ACK lets
      it grow by a segment at most, as ever, and so at once by any factor. A time-out leaves at most 1 MSS, and a drain may
      halve any window.

    Under `ppcc` the window is clamped to 2 (bandwidth-delay product + buffer), which no real sender knows (`clamp="path"`).

    ## Observation Space

    `Box` of `history` feature vectors, flattened, oldest first. After a reset all of them equal the first one.

    Recipes default and bare, 27 features in [-1, 1], all of them ratios or counts of segments. A value from Low to High is
    mapped onto the numbers before the colons, on the scale that its meaning names. Delivery rate is what was acknowledged
    between the last ACK before the interval and the last one in it; the highest one lately is forgotten with a time constant of
    10 s; the least RTT is that of any data packet, until a drain finds another (none does under bare, where `draining` and
    `least_rtt_unseen` are 0); the decision interval is the nominal one, `interval_s`. "Lately" refers to time constants of 1 s
    (rates, least RTT) and 2 s (losses, changes of the rate), "for long" to 10 s:

    {features of default}

    Recipe robust, 47 features in [-1, 1]: those of the default one in their order, with the least of the intervals' mean RTTs
    as least RTT, and then what tells queues from jitter, and overflow from policers and random loss. Regressions forget
    intervals with a time constant of 2 s. A response is 1 in full, on the RTT where the queue is the sender's own, on the rate
    where there is none, and goes to 0 where segments in flight change by less than 2 %:

    {features of robust}

    Recipe ppcc, the paper's 12 features in its order, each scaled from a fixed range to [0, 1] (the paper states no
    ranges; these are ours):

    {features of ppcc}

    Observations are never NaN and never leave the space. A quantity not measured in an interval (no ACK arrived: start-up, a
    gap in a trace) keeps its last measured value, and before the first is 0 (RTT ratios: 1; ssthresh: infinite, so 1).
    Counts and throughput of such an interval are measured as 0. Only what a real sender can know is observed.

    ## Rewards

    A sum of named terms, given in `info["reward_terms"]`. x is throughput over the fair share (the least
    even share of a link on the sender's own path; the bottleneck's capacity when alone), y is RTT over base RTT:

    * default, bare and robust: `log_utility`, 0.5 ln(max(x, 0.05)) - 0.5 ln(y) times the length of the interval in seconds. The
      sum over an episode, divided by its duration, tracks the utility of the report. Rewards are normalised by what the world
      offers, so that worlds are comparable; observations are not.
    * ppcc: `utility_sign`, +1, 0 or -1 as U = 0.5 ln(throughput) - 0.5 ln(RTT) rose, stayed or fell.

    Others: `reward="running_utility"` (with which the package's agent was trained: the report's utility, linearised at the
    means so far, less losses), `"considerate_utility"` (the same, which can also count what rivals lack), `"linear_utility"`,
    `"alpha_fair"`, `"power"`, `"range_normalized"`, a dict with parameters, or a custom function or object, see
    `netbuf_gym.rewards`.

    ## Starting State

    An empty network at time 0, before the handshake; window 10 segments. A new random scenario is drawn for each episode.

    ## Episode End

    {episode end} `ppcc/*` last 100 s, 1000 decisions.

    The last step's `info` reports the whole episode, start-up included, from the simulator's counters: `goodput_mbps`,
    `mean_rtt_ms`, `base_rtt_ms`, `queue_delay_mean_ms` (sojourn at the slowest link of the
    sender's path), `loss_rate`,
    `utility` = 0.5 ln(goodput / fair share) - 0.5 ln(mean RTT / base RTT), `Mt` = log10 of mean queueing (ms) - log10 of
    goodput (Mbit/s), `timeouts`, `duration_s`, `scenario`.

    ## Arguments

    | Parameter     | Type                | Default               | Description                                            |
    |---------------|---------------------|-----------------------|--------------------------------------------------------|
    | `per_ack`     | **bool**            | `False`               | decide on every ACK, at the latest after `interval_s`  |
    | `actions`     | **str**, **list**   | `"discrete"`          | or `"continuous"`, or factors that rise, as many as    |
    |               |                     |                       | actions: shorter intervals call for finer ones;        |
    |               |                     |                       | recipes default, bare and robust                       |
    | `clamp`       | **str**             | the recipe's          | what bounds windows: `"measured"` (default), `"path"`  |
    |               |                     |                       | (ppcc), `"none"` (bare)                                |
    | `drain`       | **bool**            | the recipe's          | whether a least RTT that is not seen is looked for     |
    | `drain_after_s` | **float**         | `8.0`                 | after how long, 1 to 1000 s                            |
    | `seen_within` | **float**           | `0.02`                | by what share of it an RTT may be longer than the      |
    |               |                     |                       | least one and count as that, 0 to 1                    |
    | `growth_loss` | **float**           | `1.0`                 | share of lost segments above which windows grow        |
    |               |                     |                       | slowly, 0.01 to 1 (none is); recipes default, robust   |
    | `paced`       | **bool**            | the recipe's          | whether packets are paced; stack linux                 |
    | `slow_start`  | **bool**            | the recipe's          | whether a connection begins with a slow start          |
    | `latency_s`   | **float**, **list** | `0.0`                 | what decisions take to be in force, or a range of it,  |
    |               |                     |                       | from which each sender of a world has its own          |
    | `jitter_s`    | **float**, **list** | `0.0`                 | what a decision may take beyond that, or a range of    |
    |               |                     |                       | it; together at most `interval_s`                      |
    {common arguments}

    ```python
    >>> import gymnasium as gym, netbuf_gym
    >>> env = gym.make("netbuf/CongestionWindow-v0", scenario={"name": "ppcc/2", "rate_mbps": 20})
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(10)

    ```
    """

    name: ClassVar[str] = "congestion_window"
    recipes: ClassVar[tuple[str, ...]] = ("default", "ppcc", "bare", "robust")
    default_history: ClassVar[dict[str, int]] = {"default": 4, "ppcc": 4, "bare": 4, "robust": 4}
    recipe_features: ClassVar[dict[str, tuple[Feature, ...]]] = {
        "default": DEFAULT_FEATURES,
        "ppcc": PPCC_FEATURES,
        "bare": DEFAULT_FEATURES,
        "robust": ROBUST_FEATURES,
    }
    recipe_rewards: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("default", "bare", "robust"), "log_utility"),
        "ppcc": "utility_sign",
    }
    widened_recipes: ClassVar[dict[str, str]] = {"robust": "default"}
    default_scenario: ClassVar[str] = "ppcc/4"
    options: ClassVar[tuple[str, ...]] = (
        *("per_ack", "actions", "clamp", "drain", "drain_after_s", "seen_within", "growth_loss", "paced", "slow_start"),
        *("latency_s", "jitter_s"),
    )
    agents_argument: ClassVar[str] = "senders"
    hidden: ClassVar[tuple[str, ...]] = HIDDEN_KINDS
    privileged: ClassVar[tuple[tuple[str, float, float], ...]] = (
        *(("capacity_bps", 1e5, 1e9), ("share_bps", 1e5, 1e9), ("base_rtt_s", 1e-3, 1.0), ("random_loss", 1e-4, 0.1)),
        *(("throughput_ratio", 0.01, 4.0), ("rtt_ratio", 1.0, 16.0), ("loss_ratio", 1e-3, 1.0), ("rival_share", 0.01, 4.0)),
        *(("queue_delay_mean_s", 1e-4, 1.0), ("queue_packets", 1.0, 1e4), ("lived_s", 0.1, 100.0)),
        *(("mean_throughput_ratio", 0.01, 4.0), ("mean_rtt_ratio", 1.0, 16.0)),
    )
    kind = SENDER
    panels = (
        Panel("cwnd_packets", "CWND PACKETS", (31, 119, 180), title="congestion window (packets)"),
        Panel("rtt_ms", "RTT MS", (214, 39, 40), title="round-trip time (ms)"),
        Panel("throughput_mbps", "MBIT/S", (44, 160, 44), title="throughput (Mbit/s)"),
    )

    def __init__(
        self,
        recipe: str = "default",
        history: int | None = None,
        agents: int = 1,
        *,
        per_ack: bool = False,
        actions: str | Sequence[float] | None = None,
        clamp: str | None = None,
        drain: bool | None = None,
        drain_after_s: float | None = None,
        seen_within: float | None = None,
        growth_loss: float | None = None,
        paced: bool | None = None,
        slow_start: bool | None = None,
        latency_s: Any = 0.0,
        jitter_s: Any = 0.0,
    ):
        super().__init__(recipe, history, agents)
        own = RECIPE_DEFAULTS[recipe]
        self.per_ack = check_boolean("per_ack", per_ack)
        given = own["actions"] if actions is None else actions
        factors = FACTORS if isinstance(given, str) else parse_factors(given)
        self.actions = check_choice("actions", given, (DISCRETE, CONTINUOUS)) if isinstance(given, str) else DISCRETE
        self.clamp = own["clamp"] if clamp is None else check_choice("clamp", clamp, CLAMPS)
        self.drain = own["drain"] if drain is None else check_boolean("drain", drain)
        self.drain_after_s, self.seen_within = self._check_drain(drain_after_s, seen_within)
        self.growth_loss = own["growth_loss"] if growth_loss is None else check_real("growth_loss", growth_loss, 0.01, 1)
        self.paced = own["paced"] if paced is None else check_boolean("paced", paced)
        self.slow_start = own["slow_start"] if slow_start is None else check_boolean("slow_start", slow_start)
        self.latency_s, self.jitter_s = _parse_range("latency_s", latency_s), _parse_range("jitter_s", jitter_s)
        if self.per_ack and (self.latency_s[1] or self.jitter_s[1]):
            given = f"latency_s = {quote(latency_s)}, jitter_s = {quote(jitter_s)}"
            raise ConfigError(f"{given} with per_ack = True; valid: 0, since a later ACK's decision would overtake this one's")
        self.fine = recipe == "robust" and self.paced
        self.kind = sender(self.paced, self.slow_start, self.latency_s, self.jitter_s, self.fine)
        self.until = EVENT if self.per_ack else INTERVAL
        fixed, why = FIXED.get(recipe, ((), ""))
        for name in fixed:
            if getattr(self, name) != own[name] or (name == "actions" and factors is not FACTORS):
                given = f"{name} = {quote(actions) if name == 'actions' else repr(getattr(self, name))}"
                raise ConfigError(f'{given} with recipe "{recipe}"; valid: {own[name]!r}, {why}')
        if recipe == "ppcc" and self.clamp == MEASURED:
            raise ConfigError(f'clamp = {self.clamp!r} with recipe "ppcc"; valid: {PATH!r}, {NO_CLAMP!r}')
        self.levels = PPCC_STEPS if recipe == "ppcc" else factors
        self.action_space = gym.spaces.Discrete(len(self.levels))
        if self.actions == CONTINUOUS:
            self.action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def _check_drain(self, after_s: Any, within: Any) -> tuple[float, float]:
        """Return validated drain conditions or their defaults; raise ConfigError if any is set while `drain` is false."""
        for name, value in (("drain_after_s", after_s), ("seen_within", within)):
            if value is not None and not self.drain:
                raise ConfigError(f"{name} = {quote(value)} with drain = False; valid: None, since nothing is drained")
        after_s = DRAIN_AFTER_S if after_s is None else check_real("drain_after_s", after_s, 1, 1000)
        return after_s, SEEN_WITHIN if within is None else check_real("seen_within", within, 0, 1)

    @property
    def keep_action(self) -> np.ndarray | int:
        """The action that leaves the window as it is.

        Raises:
            ConfigError: No action does, as among the discrete ones of recipes `default`, `bare` and `robust`.
        """
        if self.recipe == "ppcc":
            return int(np.flatnonzero(self.levels == 0)[0])
        if self.actions == DISCRETE and 1 in self.levels:
            return int(np.flatnonzero(self.levels == 1)[0])
        if self.actions == DISCRETE:
            factors = ", ".join(f"{factor:g}" for factor in self.levels)
            said = f'actions = "{DISCRETE}" of recipe "{self.recipe}" has none that keeps a window, only the factors {factors}'
            raise ConfigError(f'{said}; valid: "{CONTINUOUS}", or recipe "ppcc"')
        return self.nearest_actions(np.zeros(1))[0]

    def nearest_actions(self, changes: np.ndarray) -> np.ndarray:
        """Return the actions, `(rows, ...)`, whose changes of the log window are nearest to the given ones, `(rows,)`.

        For all recipes but `ppcc`.
        """
        if self.actions == CONTINUOUS:
            return np.clip(changes / np.log(LARGEST_FACTOR), -1, 1).astype(np.float32)[:, None]
        return np.abs(changes[:, None] - np.log(self.levels)).argmin(axis=1)

    def control(self, scenario: Scenario) -> Scenario:
        """Return the world with its first `agents` flows controlled, unless as many flows are agents already."""
        found = agent_flows(scenario)
        controlled = self.choose_agents(scenario, found, len(scenario.flows), "flows")
        if len(found) != self.agents:
            scenario = scenario.with_agents(self.agents)
        return require_capacity(scenario, controlled)

    def make_tracker(self, rows: int, interval_s: float) -> Tracker:
        """Return the tracker of the senders' telemetry.

        Raises:
            ConfigError: Decisions can take longer than the interval between them.
        """
        longest_s = self.latency_s[1] + self.jitter_s[1]
        if longest_s > interval_s:
            valid = f"together at most interval_s = {interval_s:g}"
            raise ConfigError(f"latency_s and jitter_s are up to {longest_s:g} together; valid: {valid}")
        if self.recipe == "ppcc":
            return Tracker(rows, interval_s)
        names = ("drain", "slow_start", "drain_after_s", "seen_within", "growth_loss")
        own = {name: getattr(self, name) for name in names}
        if self.recipe != "robust":
            return PathTracker(rows, interval_s, **own)
        return EvidenceTracker(rows, interval_s, FINEST_SEGMENTS if self.fine else EvidenceTracker.lowest_segments, **own)

    def start(self, tracker: Tracker, rows: slice, scenario: Scenario) -> None:
        controlled = agent_flows(scenario)
        paths = [scenario.measure_path(i) for i in controlled]
        windows = [scenario.flows[i].initial_cwnd_packets for i in controlled]
        tracker.reset(
            rows,
            initial_window=[window * path.mss_bytes for window, path in zip(windows, paths, strict=True)],
            highest_window=[highest_window_packets(scenario, path) * path.mss_bytes for path in paths],
            mss_bytes=[path.mss_bytes for path in paths],
            **describe_paths(paths, rows),
        )
        tracker.surroundings.start(rows, scenario)

    def hidden_spans(self, scenario: Scenario) -> list[tuple[Spans, ...]]:
        """See `Task.hidden_spans` and `find_hidden_spans`."""
        return [find_hidden_spans(scenario, flow) for flow in agent_flows(scenario)]

    def decode(self, action: np.ndarray, tracker: Tracker, out: np.ndarray) -> np.ndarray:
        """Write windows in bytes for checked actions, `(rows,)`, into `out`, `(rows, 1)`; see `PathTracker.decide`.

        NaN, the window as it is, where nothing is decided.
        """
        low, high = tracker.lowest_window, tracker.highest_window
        if not isinstance(tracker, PathTracker):
            tracker.arithmetic.step(action, PPCC_STEPS, low, high if self.clamp == PATH else None, MAX_WINDOW_BYTES, out)
            return out
        factors = LARGEST_FACTOR ** action[:, 0] if self.actions == CONTINUOUS else self.levels.take(action, mode="clip")
        if self.recipe == "bare":
            np.clip(tracker.cwnd * factors, low, MAX_BARE_SEGMENTS * np.asarray(tracker.last[MSS], np.float64), out=out[:, 0])
            out[~tracker.acknowledged] = np.nan
            return out
        cap = tracker.compute_window_cap() if self.clamp == MEASURED else high if self.clamp == PATH else None
        tracker.decide(factors, cap, out[:, 0])
        return out

    def observe(self, tracker: Tracker, out: np.ndarray) -> np.ndarray:
        """Write the last interval's feature vectors, finite and in the space, into `out`, `(width, rows)`; return `out`."""
        if isinstance(tracker, EvidenceTracker):
            return observe_robust(tracker, out)
        return observe_default(tracker, out) if isinstance(tracker, PathTracker) else observe_ppcc(tracker, out)

    def report(self, scenario: Scenario, counters: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """See `netbuf_gym.tasks.congestion_window.report.episode_report`."""
        return [episode_report(scenario, flow, own) for flow, own in zip(agent_flows(scenario), counters, strict=True)]

    def show(self, tracker: Tracker, row: int) -> dict[str, float]:
        """Return window in segments, RTT in ms, throughput in Mbit/s, queue in packets."""
        last = tracker.last[:, row]
        return {
            "cwnd_packets": float(tracker.cwnd[row]) / float(last[MSS]),
            "rtt_ms": float(last[RTT]) * 1e3,
            "throughput_mbps": float(last[THROUGHPUT]) * 1e-6,
            "queue_packets": float(last[FIELD["queue_packets"]]),
        }

    def format_state(self, state: dict[str, float]) -> str:
        return (
            f"t {state['time_s']:8.2f} s   cwnd {state['cwnd_packets']:8.1f} packets   RTT {state['rtt_ms']:8.2f} ms   "
            f"throughput {state['throughput_mbps']:8.3f} Mbit/s   queue {state['queue_packets']:6.0f} packets"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what a saved model must agree with, including actions and decision times, but not decision delays."""
        actions: Any = self.levels.tolist() if self.actions == DISCRETE else {"factor": LARGEST_FACTOR}
        said = {**super().to_dict(), "actions": actions, "per_ack": self.per_ack}
        published = RECIPE_DEFAULTS["ppcc"]
        said |= {
            name: getattr(self, name)
            for name in ("clamp", "drain", "paced", "slow_start")
            if self.recipe != "ppcc" or getattr(self, name) != published[name]
        }
        usual = {"drain_after_s": DRAIN_AFTER_S, "seen_within": SEEN_WITHIN, "growth_loss": 1.0}  # omitted, as in old models
        return said | {name: getattr(self, name) for name, value in usual.items() if getattr(self, name) != value}


def parse_factors(given: Any) -> np.ndarray:
    """Return factors of the window, one for each action, float64.

    Raises:
        ConfigError: The factors are not 2 to `MAX_FACTORS` rising numbers, the least below 1 and the largest above.
    """
    valid = f'"{DISCRETE}", "{CONTINUOUS}" or 2 to {MAX_FACTORS} rising factors, the least below 1, the largest above'
    if not isinstance(given, (list, tuple)) or not 2 <= len(given) <= MAX_FACTORS:
        raise ConfigError(f"actions = {quote(given)}; valid: {valid}")
    factors = [check_real(f"actions[{i}]", value, *FACTOR_RANGE) for i, value in enumerate(given)]
    if sorted(set(factors)) != factors or not factors[0] < 1 < factors[-1]:
        raise ConfigError(f"actions = {quote(given)}; valid: {valid}")
    return np.array(factors, np.float64)


def _parse_range(name: str, given: Any) -> tuple[float, float]:
    """Return a duration in seconds, or the range that it is drawn from, as a range."""
    if not isinstance(given, (list, tuple)):
        value = check_real(name, given, 0, 100)
        return value, value
    if len(given) != 2:
        raise ConfigError(f"{name} = {quote(given)}; valid: a number of seconds, or a lower and an upper bound")
    low, high = (check_real(f"{name}[{i}]", value, 0, 100) for i, value in enumerate(given))
    if low > high:
        raise ConfigError(f"{name} = {quote(given)}; valid: the lower bound first")
    return low, high


def agent_flows(scenario: Scenario) -> list[int]:
    """Return the indices of the flows whose sender an agent controls."""
    return [i for i, flow in enumerate(scenario.flows) if flow.cc == AGENT]


def highest_window_packets(scenario: Scenario, path: PathFigures) -> float:
    """Return the clamp of an agent's window: twice what its path and the buffer of its slowest link hold, at least two."""
    link, data_bytes = scenario.links[path.tightest], scenario.data_bytes
    limits: list[float] = [UNLIMITED_BUFFER_PACKETS]
    if link.queue_packets is not None:
        limits.append(link.queue_packets)
    if link.queue_bytes is not None:
        limits.append(link.queue_bytes / data_bytes)
    bdp_packets = path.capacity_mbps * 1e3 * path.propagation_rtt_ms / 8 / data_bytes
    return max(2 * (bdp_packets + min(limits)), LEAST_WINDOW_SEGMENTS)
