"""The receiver-window task: a receiver decides, interval by interval, how much the sender may have in flight.

Rules only, batch first (leading axis = receivers). The docstring of `ReceiverWindow` is the environment's reference page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from netbuf_gym.errors import ConfigError, ScenarioError, describe_scenario
from netbuf_gym.scenarios.catalogue import resolve_target_ms as target_ms_of
from netbuf_gym.scenarios.types import AGENT, Scenario
from netbuf_gym.tasks.features import Feature
from netbuf_gym.tasks.flows import describe_paths, require_capacity
from netbuf_gym.tasks.receiver_window.actions import FACTORS, NUWA_FACTORS, decode_default, decode_nuwa, make_factor_actions
from netbuf_gym.tasks.receiver_window.observations import (
    DEFAULT_FEATURES,
    MEMORY_FEATURES,
    NUWA_FEATURES,
    observe_default,
    observe_memory,
    observe_nuwa,
)
from netbuf_gym.tasks.receiver_window.report import episode_reports
from netbuf_gym.tasks.receiver_window.telemetry import RECEIVER
from netbuf_gym.tasks.receiver_window.tracker import DELAY, FIELD, K_RANGE, MSS, TARGET_RANGE_S, Tracker
from netbuf_gym.tasks.task import Panel, Task
from netbuf_gym.utils.arguments import as_argument_check, check_boolean, check_choice, check_real

check_target_ms = as_argument_check(target_ms_of)

NO_DRAIN = {"drain_interval_s": 0.0}
"""Parameters of Nuwa's rule that disable its drains."""

DRAIN_PARAMETERS = {"window": NO_DRAIN, "bdp": {"drain_hold_ms": 50.0}}
"""Drain parameters of Nuwa's rule by `acts_on`, where they differ from the rule's defaults.

A window of measured products leaves no standing queue: a drain lasts little more than a round trip, since its waiting time is
lost throughput.
"""

PAPER_PARAMETERS = {**NO_DRAIN, "decrease": 0.0, "keep": 1.0}
"""Parameters of Nuwa's rule with which it follows the paper exactly."""


class ReceiverWindow(Task[Tracker]):
    """
    ## Description

    `netbuf/ReceiverWindow-v0`: a TCP receiver learns to steer the sender by the window that it advertises. The receiver knows
    the arrivals and their times, the time stamps, and its own buffer; not the network, and not the sender. Every 100 ms it
    decides on its window: in multiples of the measured product of rate and round trip, or by factors; or on the gain and the
    target delay of Nuwa's rule, which moves the window on every ACK:
    w <- w + tanh((target - queueing delay) / rho) k / w, in segments. If the window is too small, the link idles; if it is too
    large, packets wait in the bottleneck's queue and are dropped. The world is a packet-level simulation with real TCP
    machinery. The sender is Nuwa's (CUBIC's slow start, then a congestion window that never binds) or an unchanged one, which
    sends the smaller of its own window and the receiver's.

    The task and its recipe `"nuwa"` come from Nuwa-RL (Jiang, Gong and Jin, "Combining Heuristic and Reinforcement Learning to
    Achieve the Low-latency and High-throughput Receiver-side Congestion Control"); the recipe `"default"` is ours and designed
    to carry over from 1 to 300 Mbit/s and from 5 to 200 ms.

    ## Action Space

    Recipe nuwa: `Discrete(5)`, k <- k * f, f in 0.25, 1, 1.05, 1.25, 2.85, within 1 and 9; k is 2 at first.

    Recipe default, by `acts_on`; with `actions="continuous"` a `Box` from -1 to 1 with a number a for each multiplied quantity,
    which gives the factor 2^a:

    | `acts_on`             | Space          | What is multiplied, and by which factors                                    |
    |-----------------------|----------------|-----------------------------------------------------------------------------|
    | `"bdp"`               | `Discrete(12)` | rate times round trip: 0.4, 0.6, 0.75, 0.87, 0.95, 1, 1.05, 1.13, 1.25,     |
    |                       |                | 1.5, 2, 2.8; see below                                                      |
    | `"window"`            | `Discrete(11)` | window: 0.5, 0.7, 0.85, 0.94, 0.98, 1.005, 1.02, 1.06, 1.18, 1.4, 2; k is 0 |
    | `"k"`                 | `Discrete(5)`  | k: 0.5, 0.8, 1, 1.25, 2                                                     |
    | `"target"`            | `Discrete(5)`  | target delay: 0.5, 0.8, 1, 1.25, 2                                          |
    | `"target_and_k"`      | `Discrete(25)` | target delay and k, each by these five: 5 i + j                             |
    | `"window_and_target"` | `Discrete(21)` | window: 0.5, 0.8, 0.95, 1, 1.05, 1.25, 2; target: 0.8, 1, 1.25: 3 i + j     |

    With `"bdp"` the window follows the receiver's measurements from one packet to the next: the chosen multiple of the product
    of the highest recent receive rate (over 30 ms, of the last 230 ms; silence does not count) and the longest recent round
    trip (of half a second, or two round trips) less the queueing delay towards the receiver, plus k segments. Queueing by
    others on the way back is thereby part of the round trip, queueing by this flow towards the receiver is not.

    k stays within 0.25 and 16, the target delay within 2 ms and 1 s, the window above 2 segments. The rules use only what a
    receiver can know:

    * Nothing changes before the first packet, nor after an interval in which none arrived.
    * A window grows by at most what arrived in the interval.
    * The window's cap is measured: the larger of twice what the highest recent rate fills in the least round trip, and of one
      and a half of what the recent rate fills in the last one; plus 10 segments. Before the first round trip it is the window.
    * `drain`: the least delay of the last 10 s is taken for that of an empty queue, and would rise with a queue that never
      empties. With `acts_on="window"`, when no queueing delay close to the least one was seen for 8 s (within 5 % of the least
      round trip, or 2 ms), the window is halved for two round trips (2 to 4 intervals) and then restored. Otherwise the
      window is emptied on the packet, which takes less time (Nuwa's rule, parameters `drain_*` of receiver control `nuwa`);
      with `"bdp"` not after slow start, and for 50 ms and a round trip.

    ## Observation Space

    `Box` of `history` feature vectors, flattened, oldest first. After a reset all of them are the first one.

    Recipe default, 26 features in [-1, 1], all of them ratios or counts of segments. A value from Low to High is mapped onto
    the numbers before the colons, on the scale that its meaning names. Queueing delay is one way, by time stamps, less the
    recent minimum; the highest recent rate decays with a time constant of 10 s in which data arrive:

    {features of default}

    Recipe nuwa, the paper's 4 features in its order, each scaled from a fixed range to [0, 1] (the paper states neither ranges
    nor scales; these are ours):

    {features of nuwa}

    Recipe memory, whose actions and rules are the default's, 30 features in [-1, 1]: the 26 above, and of a minute

    {features of memory}

    Observations are never NaN and never leave the space. A value that an interval did not measure (no packet arrived: start-up,
    an outage) keeps its last measured value, and before the first is 0 (ratios to a round trip: 1). Nothing is observed that a
    receiver cannot know.

    ## Rewards

    The reward is a sum of named terms, shown in `info["reward_terms"]`; x is goodput over the fair share, y is 1 + queueing
    delay / base RTT, X and Y their means so far, l lost over sent packets:

    * default: `running_utility`, 0.5 x/X - 0.5 x/X (y/Y - 1) - 0.3 l times the length of the interval in seconds: the tangent
      of log-utility at the means so far.
    * memory: `floored_utility`, `alpha_fair` plus 2 (x - 0.9) times that length while X is below 0.9.
    * nuwa: `alpha_fair`, 0.4 U(x) - 0.4 U(d) - 0.2 U(l) times that length, U(z) = z^0.4 / 0.4, d = queueing delay / 500 ms,
      all within 0 and 1.

    Others: `reward="log_utility"`, `"linear_utility"`, `"power"`, `"range_normalized"`, a dict with parameters, or a function
    or object of your own, see `netbuf_gym.rewards`. Rewards use the world's own figures, which observations do not.

    ## Starting State

    An empty network at time 0, before the handshake. A random scenario is drawn anew each episode.

    ## Episode End

    {episode end} `nuwa/*` last 80 s, 800 decisions.

    The last step's `info` reports the whole episode, start-up included: `utility` (Nuwa's, mean over the intervals; x is of the
    mean capacity), `goodput_mbps`, `data_mb`, `share` of the capacity, `queue_delay_mean_ms` and `queue_delay_p95_ms` at the
    bottleneck, `loss_rate`, `mean_rtt_ms`, `base_rtt_ms`, `jain` (of the world's agents), `timeouts`, `duration_s`, `scenario`.

    ## Arguments

    | Parameter     | Type                | Default               | Description                                            |
    |---------------|---------------------|-----------------------|--------------------------------------------------------|
    | `acts_on`     | **str**             | `"bdp"`               | see Action Space; recipe nuwa: `"k"`                   |
    | `actions`     | **str**             | `"factors"`           | `"factors"` or `"continuous"`; recipe nuwa: the former |
    | `k`           | **float**           | `2`                   | gain of Nuwa's rule at first; `acts_on="window"`: 0;   |
    |               |                     |                       | `acts_on="bdp"`: segments on top of the product        |
    | `target_ms`   | **float**, **str**  | `75`                  | target delay of Nuwa's rule at first, 2 to 1000 ms, or |
    |               |                     |                       | "interactive" (25), "video" (75), "bulk" (150), at     |
    |               |                     |                       | half of which slow start ends; `acts_on="bdp"`: 25     |
    | `drain`       | **bool**            | `True`                | see Action Space; recipe nuwa: `False`                 |
    | `sender`      | **str**, **dict**   | `None`                | congestion control of the agents' senders; None: as    |
    |               |                     |                       | the scenario has them                                  |
    {common arguments}

    ```python
    >>> import gymnasium as gym, netbuf_gym
    >>> env = gym.make("netbuf/ReceiverWindow-v0", scenario={"name": "nuwa/4g", "rtt_ms": 40})
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(10)

    ```
    """

    name: ClassVar[str] = "receiver_window"
    recipes: ClassVar[tuple[str, ...]] = ("default", "nuwa", "memory")
    default_history: ClassVar[dict[str, int]] = {"default": 4, "nuwa": 4, "memory": 4}
    recipe_features: ClassVar[dict[str, tuple[Feature, ...]]] = {
        "default": DEFAULT_FEATURES,
        "nuwa": NUWA_FEATURES,
        "memory": MEMORY_FEATURES,
    }
    recipe_rewards: ClassVar[dict[str, str]] = {
        "default": "running_utility",
        "nuwa": "alpha_fair",
        "memory": "floored_utility",
    }
    default_scenario: ClassVar[str] = "nuwa/any"
    options: ClassVar[tuple[str, ...]] = ("acts_on", "actions", "k", "target_ms", "drain", "sender")
    kind = RECEIVER
    panels = (
        Panel("window_packets", "WINDOW PACKETS", (31, 119, 180), title="receive window (packets)"),
        Panel("queue_delay_ms", "QUEUEING MS", (214, 39, 40), title="one-way queueing delay (ms)"),
        Panel("throughput_mbps", "MBIT/S", (44, 160, 44), title="throughput (Mbit/s)"),
    )

    def __init__(
        self,
        recipe: str = "default",
        history: int | None = None,
        agents: int = 1,
        *,
        acts_on: str | None = None,
        actions: str = "factors",
        k: float = 2.0,
        target_ms: float | str | None = None,
        drain: bool | None = None,
        sender: Any = None,
    ):
        super().__init__(recipe, history, agents)
        nuwa = recipe == "nuwa"
        acts_on = ("k" if nuwa else "bdp") if acts_on is None else check_choice("acts_on", acts_on, FACTORS)
        actions = check_choice("actions", actions, ("factors", "continuous"))
        drain = not nuwa if drain is None else check_boolean("drain", drain)
        if nuwa and (acts_on, actions, drain) != ("k", "factors", False):
            given = f"acts_on = {acts_on!r}, actions = {actions!r}, drain = {drain}"
            raise ConfigError(f'{given} with recipe "nuwa"; valid: acts_on "k", actions "factors", drain False')
        self.acts_on, self.actions, self.drain, self.sender = acts_on, actions, drain, sender
        own = PAPER_PARAMETERS if nuwa else DRAIN_PARAMETERS.get(acts_on, {}) if drain else NO_DRAIN
        self._receiver = {"name": AGENT, **own}
        target_ms = (25.0 if acts_on == "bdp" else 75.0) if target_ms is None else check_target_ms("target_ms", target_ms)
        self.k = check_real("k", k, *((1, 9) if nuwa else K_RANGE))
        self.target_s = check_real("target_ms", target_ms, TARGET_RANGE_S[0] * 1e3, TARGET_RANGE_S[1] * 1e3) * 1e-3
        self.action_mapping = make_factor_actions({"k": NUWA_FACTORS} if nuwa else FACTORS[acts_on], actions == "continuous")
        self.action_space = self.action_mapping.space
        self.keep_action = self.action_mapping.neutral_action
        """The action that leaves things as they are, or most nearly so."""

    @property
    def moves_between_decisions(self) -> bool:
        """Whether the window moves between decisions: by Nuwa's rule, or with measured products."""
        return self.acts_on != "window"

    def control(self, scenario: Scenario) -> Scenario:
        """Return the world with the first `agents` flows' receivers controlled, unless agents already control as many."""
        if not isinstance(scenario, Scenario):
            raise ConfigError(f"{describe_scenario(scenario)} is no netbuf_gym.scenarios.Scenario; valid: one")
        controlled = self.choose_agents(scenario, scenario.agent_receivers, len(scenario.flows), "flows")
        own = {"receiver": self._receiver} | ({} if self.sender is None else {"cc": self.sender})
        scenario = _change_flows(scenario, controlled, own)
        for flow in controlled:
            if scenario.flows[flow].cc == AGENT:
                at = f"{describe_scenario(scenario)} has an agent for the sender of flows[{flow}]"
                raise ConfigError(f"{at}; valid: a congestion control")
        return require_capacity(scenario, controlled)

    def make_tracker(self, rows: int, interval_s: float) -> Tracker:
        """Return the memory of each receiver's telemetry."""
        return Tracker(rows, interval_s, self.drain and not self.moves_between_decisions, self.recipe == "memory")

    def start(self, tracker: Tracker, rows: slice, scenario: Scenario) -> None:
        controlled = scenario.agent_receivers
        paths = [scenario.measure_path(i) for i in controlled]
        path = {
            **describe_paths(paths, rows),
            "share_bps": [fair_share_mbps(scenario, i) * 1e6 for i in controlled],
        }
        tracker.reset(
            rows,
            **path,
            start_s=[scenario.flows[i].start_s for i in controlled],
            mss_bytes=np.array([one.mss_bytes for one in paths]),
            k=self.k if self.moves_between_decisions else 0.0,
            target_s=self.target_s,
        )

    def decode(self, action: np.ndarray, tracker: Tracker, out: np.ndarray) -> np.ndarray:
        """Write gain, target delay in s, window in bytes and in products (NaN: unchanged) of actions to `out`, `(rows, 4)`."""
        factors = self.action_mapping.decode(action)
        if self.recipe == "nuwa":
            return decode_nuwa(factors, tracker, out)
        return decode_default(factors, tracker, out, self.moves_between_decisions)

    def observe(self, tracker: Tracker, out: np.ndarray) -> np.ndarray:
        """Write the feature vectors of the interval just ended, `(width, rows)`, to `out`: finite and within the space."""
        observe = {"default": observe_default, "nuwa": observe_nuwa, "memory": observe_memory}[self.recipe]
        return observe(tracker, out)

    def report_input(self, tracker: Tracker, rows: slice, counters: list[Any]) -> list[Any]:
        """See `Task.report_input`: each agent's counters and, as `achieved`, the results of its intervals."""
        each = range(rows.start, rows.stop)
        return [{**own, "achieved": tracker.meter.summarize(row)} for row, own in zip(each, counters, strict=True)]

    def report(self, scenario: Scenario, counters: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """See `netbuf_gym.tasks.receiver_window.report.episode_reports`."""
        return episode_reports(scenario, scenario.agent_receivers, counters)

    def show(self, tracker: Tracker, row: int) -> dict[str, float]:
        """Return window and queue in packets, measured queueing delay in ms, throughput in Mbit/s, k and target in ms."""
        last = tracker.last[:, row]
        return {
            "window_packets": float(tracker.window[row]) / float(last[MSS]),
            "queue_delay_ms": float(last[DELAY]) * 1e3,
            "throughput_mbps": float(tracker.rate[row]) * 1e-6,
            "queue_packets": float(last[FIELD["queue_packets"]]),
            "k": float(last[FIELD["k"]]),
            "target_ms": float(tracker.target_s[row]) * 1e3,
        }

    def format_state(self, state: dict[str, float]) -> str:
        return (
            f"t {state['time_s']:8.2f} s   window {state['window_packets']:8.1f} packets   "
            f"queueing {state['queue_delay_ms']:8.2f} ms   throughput {state['throughput_mbps']:8.3f} Mbit/s   "
            f"queue {state['queue_packets']:6.0f} packets"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that a saved model must agree with, actions and their starting values included."""
        levels = None if self.action_mapping.levels is None else self.action_mapping.levels.tolist()
        return {
            **super().to_dict(),
            "actions": {"kind": self.actions, "names": list(self.action_mapping.names), "levels": levels},
            "acts_on": self.acts_on,
            "drain": self.drain,
            "k": self.k if self.moves_between_decisions else 0.0,
            "target_s": self.target_s,
        }


def fair_share_mbps(scenario: Scenario, flow: int) -> float:
    """Return the least even share of a link on a flow's path between the flows that cross it within the scenario's duration."""
    shares = []
    for index, link in zip(scenario.flows[flow].path, scenario.links_of(flow), strict=True):
        users = sum(index in one.path and one.start_s < scenario.duration_s for one in scenario.flows)
        shares.append(link.mean_mbps(scenario.duration_s) / max(users, 1))
    return min(shares)


def _change_flows(scenario: Scenario, which: Sequence[int], changes: dict[str, Any]) -> Scenario:
    """Return the world with fields of some flows changed, or the same object if nothing changes.

    Raises:
        ConfigError: A value is invalid.
    """
    try:
        flows = tuple(replace(one, **changes) if i in which else one for i, one in enumerate(scenario.flows))
        return scenario if flows == tuple(scenario.flows) else replace(scenario, flows=flows)
    except ScenarioError as error:
        raise ConfigError(str(error)) from None
