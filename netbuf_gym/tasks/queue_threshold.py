"""The queue-threshold task: a shared-buffer switch decides, interval by interval, how long its queues may grow.

Rules only, batch first (leading axis = switches). The docstring of `QueueThreshold` is the environment's reference page.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from netbuf_gym.arguments import choice, real, sequence
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.plants.sim import SimPlant
from netbuf_gym.plants.switch_telemetry import switch_telemetry
from netbuf_gym.plants.switch_tracker import SwitchTracker
from netbuf_gym.rewards import SWITCH_REWARDS
from netbuf_gym.scenarios.switches import AgentThresholds
from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.tasks.task import Feature, Panel, Task, action_array

LOG2_ALPHA = (-8.0, 3.0)
"""Recipe default: the range of log2(alpha) that actions -1 to 1 stand for."""

CODE_EXPONENT = (-3.0, 3.0)
"""Recipe thesis-code: the range of the exponent a in 2^a. The code's own is a Gaussian's, unbounded."""

LIMIT_S = (1e-3, 1.0)
"""With `actions="limits"`: the range of limits in seconds that actions -1 to 1 stand for, log-scaled."""

MAX_ALPHA = 1e3
"""What alpha is at most where a limit is more than the free buffer can hold."""

OCTAVE_STEPS = 1024
"""log2(alpha) is rounded to steps of 1/1024, so that alpha = 1 and alpha = 8 are exactly reached from float32 actions."""

LEAST_ALPHA = 1e-3
"""Recipe thesis-text: alpha lies in (0, 1], so that the lowest action stands for this."""

GRIDS: dict[str, tuple[float, ...]] = {
    "default": (2.0**-8, 2.0**-4, 0.25, 0.5, 1.0, 2.0, 8.0),
    "thesis-text": tuple(k / 8 for k in range(1, 9)),
    "thesis-code": tuple(2.0**k for k in range(-3, 4)),
}
"""The alphas that a queue can have with `actions="grid"`."""

MAX_GRID = 4096

BLUE, LILAC, RED = (31, 119, 180), (200, 160, 220), (214, 39, 40)

RECIPES = ("default", "thesis-text", "thesis-code")

SHARED_FEATURES = (
    Feature("buffer_time", 1e-3, 10, "log of the time in s that the ports take to send a full buffer"),
    Feature("occupancy", 0, 1, "buffer in use / buffer"),
    Feature("utilisation", 0, 1, "bytes sent / bytes that the ports can send"),
    Feature("flows_open", 0, 1000, "log of 1 + flows started and not completed"),
    Feature("flows_started", 0, 100, "log of 1 + flows started"),
)
QUEUE_FEATURES = (
    Feature("alpha", 2**-8, 2**3, "log of alpha in force"),
    Feature("limit", 0, 10, "log of 1 + time in ms that the ports take to send as much as the threshold; the range in s"),
    Feature("level", 2**-8, 2**3, "log of the alpha whose threshold is the queue as it is"),
    Feature("peak", 0, 1, "sqrt of longest queue in the interval / buffer"),
    Feature("backlog", 0, 10, "log of 1 + time in ms that the ports take to send the queue; the range in s"),
    Feature("delay", 0, 10, "log of 1 + mean time in ms in the queue; the range in s"),
    Feature("arrivals", 0, 16, "log of 1 + packets arrived / packets that the ports can send"),
    Feature("load", 0, 2, "the same ratio, not its log, over the last seconds"),
    Feature("drained", 0, 1, "bytes sent / bytes that the ports can send"),
    Feature("drops", 0, 1, "sqrt of packets dropped / packets arrived"),
    Feature("flows_completed", 0, 100, "log of 1 + flows completed"),
    Feature("worst_slowdown", 1, 1000, "log of the largest FCT / ideal FCT of the last interval with a completion"),
    Feature("slowdown", 1, 1000, "log of FCT / ideal FCT, its mean over the last flows completed"),
    Feature("age", 0, 10, "seconds since a flow completed"),
)
"""Ratios and times: the same policy reads 10 and 100 Mbit/s, buffers of 200 and of 2000 packets alike."""

THESIS_SHARED = (
    Feature("remaining", 0, 1, "free buffer / buffer"),
    Feature("flows_completed", 0, 50, "flows completed since the interval began"),
    Feature("packets_dropped", 0, 1000, "packets dropped since the interval began"),
)
THESIS_QUEUE = (
    Feature("beta", 0, 1, "the queue's fixed weight"),
    Feature("drain_rate", 0, 1, "bytes sent since the interval began / bytes that the ports can send in that time"),
)
"""RLBM's Table 2; the ranges are ours."""


def _log1p_scaled(values: np.ndarray, high: float) -> np.ndarray:
    """log(1 + values), 1 at `high`."""
    return np.log1p(values) * np.float32(1 / math.log1p(high))


def _log_scaled(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """The logarithm, -1 at `low` and 1 at `high`."""
    span = math.log(high / low)
    return np.log(np.maximum(values, np.float32(low / 2))) * np.float32(2 / span) - np.float32(2 * math.log(low) / span + 1)


def observe_thesis(tracker: SwitchTracker, out: np.ndarray) -> np.ndarray:
    """RLBM's state into `out`, `(3 + 2 * queues, rows)`, each scaled from its range to [0, 1].

    It is as it was when a flow last completed: counts and drain rates cover the time from the start of that interval to
    that moment. Before the first completion the buffer is empty and everything else 0.
    """
    queues = tracker.queues
    time_s = np.maximum(tracker.at_elapsed_s, np.float32(1e-9))
    out[0] = tracker.at_free_fraction
    np.multiply(tracker.at_flows_completed, np.float32(1 / THESIS_SHARED[1].high), out=out[1])
    np.multiply(tracker.at_packets_dropped, np.float32(1 / THESIS_SHARED[2].high), out=out[2])
    out[3 : 3 + queues] = tracker.betas
    out[3 + queues :] = tracker.at_drained_bytes * np.float32(8) / (tracker.capacity_bps * time_s)
    return np.clip(out, 0, 1, out=out)


def observe_default(tracker: SwitchTracker, out: np.ndarray) -> np.ndarray:
    """`SHARED_FEATURES` and, feature by feature for all queues, `QUEUE_FEATURES` into `out`, clipped to [-1, 1]."""
    queue, queues, one, two = tracker.queue, tracker.queues, np.float32(1), np.float32(2)
    can_send = tracker.capacity_bps * np.maximum(tracker.elapsed_s, np.float32(1e-9)) * np.float32(1 / 8)  # bytes
    bytes_per_unit = tracker.service_s * tracker.capacity_bps / (8 * tracker.packet_units)
    shared, own = out[: len(SHARED_FEATURES)], out[len(SHARED_FEATURES) :].reshape(-1, queues, tracker.rows)

    drained = queue.drained_bytes / can_send
    buffer_s = tracker.capacity * bytes_per_unit * np.float32(8) / tracker.capacity_bps
    shared[0] = _log_scaled(buffer_s, 1e-3, 10)
    shared[1] = one - two * tracker.free_fraction
    shared[2] = two * drained.sum(axis=0) - one
    shared[3] = _log1p_scaled(np.maximum(tracker.flows_open, 0), 1000)
    shared[4] = _log1p_scaled(tracker.flows_started, 100)

    threshold = np.minimum(queue.alpha * tracker.betas * tracker.free_fraction, tracker.cap_share)  # shares of the buffer
    threshold *= tracker.ports
    packets = np.maximum(tracker.capacity / tracker.packet_units, one)
    own[0] = _log_scaled(queue.alpha, 2.0 ** LOG2_ALPHA[0], 2.0 ** LOG2_ALPHA[1])
    own[1] = _log1p_scaled(np.minimum(threshold, one) * buffer_s * np.float32(1e3), 1e4)
    level = tracker.share_of_buffer / np.maximum(tracker.ports * tracker.betas * tracker.free_fraction, np.float32(1e-6))
    own[2] = _log_scaled(level, 2.0 ** LOG2_ALPHA[0], 2.0 ** LOG2_ALPHA[1])
    np.sqrt(queue.queue_packets_max / packets, out=own[3])
    own[4] = _log1p_scaled(queue.queue_bytes * np.float32(8e3) / tracker.capacity_bps, 1e4)
    own[5] = _log1p_scaled(queue.queue_delay_mean_s * np.float32(1e3), 1e4)
    own[6] = _log1p_scaled(queue.arrivals * tracker.service_s / np.maximum(tracker.elapsed_s, np.float32(1e-9)), 16)
    np.subtract(tracker.load, one, out=own[7])
    np.subtract(two * drained, one, out=own[8])
    np.sqrt(queue.drops / np.maximum(queue.arrivals, one), out=own[9])
    own[10] = _log1p_scaled(queue.flows_completed, 100)
    own[11] = np.log(np.maximum(queue.worst_ratio, one)) * np.float32(1 / math.log(1000))
    own[12] = tracker.slowdown_level * np.float32(1 / math.log(1000))
    own[13] = tracker.age_s * np.float32(1 / 10)
    return np.clip(out, -1, 1, out=out)


def alphas_default(action: np.ndarray) -> np.ndarray:
    """2^-8 to 2^3, equal steps of actions from -1 to 1 being equal factors."""
    return _power_of_two(action, *LOG2_ALPHA)


def alphas_thesis_text(action: np.ndarray) -> np.ndarray:
    """0.001 to 1, linearly."""
    return np.maximum((np.clip(action, -1.0, 1.0) + 1) / 2, LEAST_ALPHA)


def alphas_thesis_code(action: np.ndarray) -> np.ndarray:
    """2^a, a linearly from -3 to 3."""
    return _power_of_two(action, *CODE_EXPONENT)


def alphas_of_limits(action: np.ndarray, tracker: SwitchTracker) -> np.ndarray:
    """The alphas with which queues are limited, as the buffer is now, to what the ports send in 1 ms to 1 s."""
    low, high = LIMIT_S
    limit_s = low * (high / low) ** ((np.clip(action, -1.0, 1.0) + 1) / 2)
    free_s = (tracker.betas * (tracker.free * tracker.service_s / tracker.packet_units)).T
    return np.minimum(limit_s / np.maximum(free_s, 1e-9), MAX_ALPHA)


def _power_of_two(action: np.ndarray, low: float, high: float) -> np.ndarray:
    exponent = low + (high - low) * (np.clip(action, -1.0, 1.0) + 1) / 2
    return np.exp2(np.round(exponent * OCTAVE_STEPS) / OCTAVE_STEPS)


class QueueThreshold(Task):
    """
    ## Description

    `netbuf/QueueThreshold-v0`: a switch learns to share its buffer. Ten senders reach one receiver through a port of
    10 Mbit/s; flows come and go, short ones (below 2 MB, priority 0) and long ones (priority 1), each priority in a queue
    of its own, and both queues share one buffer. Every 100 ms the agent says how long each queue may grow: a packet is
    admitted to queue q while

        length of q < alpha_q * beta_q * (buffer - occupancy)

    and the buffer has room. Too little, and bursts are lost and links idle; too much, and one priority starves the other
    and packets wait. Alphas are the agent's, betas fixed. The world is a packet-level simulation with real TCP; the
    traffic under one seed is the same whatever the agent does.

    The task and its recipes `"thesis-text"` and `"thesis-code"` come from RLBM ("Reinforcement Learning for Buffer
    Management", as described and as its program has it); the recipe `"default"` is ours and made to carry over between
    rates and buffer sizes. Alphas of (1, 1) are the thesis' naive buffer and (8, 1) its sophisticated one; both are exactly
    reachable (`netbuf_gym.baselines.FixedThresholds`).

    ## Action Space

    `Box(-1, 1, (queues,))`, or with `actions="grid"` `Discrete` over all combinations of a few alphas, for DQN:

    | Recipe      | alpha of an action a in -1 to 1               | Alphas of the grid                | Actions of two queues |
    |-------------|-----------------------------------------------|-----------------------------------|-----------------------|
    | default     | 2^-8 to 2^3, log-scaled; 5/11 is 1            | 2^-8, 2^-4, 1/4, 1/2, 1, 2, 8     | 49                    |
    | thesis-text | 0.001 to 1, linear: (a + 1) / 2               | 1/8, 2/8, ... 1                   | 64                    |
    | thesis-code | 2^-3 to 2^3, log-scaled; 0 is 1               | 1/8, 1/4, 1/2, 1, 2, 4, 8         | 49                    |

    With `actions="limits"` (recipe default) an action names limits, not alphas: what the ports send in 1 ms to 1 s,
    log-scaled, from which alpha follows by the buffer that is free at that moment; until the next decision it stands.

    Exponents are rounded to steps of 1/1024. Components outside [-1, 1], infinite ones included, are clipped; NaN or a
    wrong shape raises `ConfigError`, as does an integer that a grid does not have. Queue 0 varies slowest in a grid's
    numbers. The thesis' text gives alpha in (0, 1], its code an unbounded exponent: least alpha and range are ours.

    ## Observation Space

    `Box` of `history` feature vectors, flattened, oldest first. After a reset all of them are the first one.

    Recipe default, 5 + 14 * queues features in [-1, 1], feature by feature with the queues' values side by side
    (`alpha_0, alpha_1, limit_0, ...`). `rate` is that of the switch's ports, `can send` the rate times the interval. Several
    ports are added up: a queue is its number's at all of them, its threshold as often one port's; a cap of the scenario on
    queues (`queue_cap`) is a threshold's upper bound:

    | Num   | Feature         | Meaning                                                     | -1 or 0  | 1       |
    |-------|-----------------|-------------------------------------------------------------|----------|---------|
    | 0     | buffer_time     | log (buffer / rate)                                         | -1: 1 ms | 10 s    |
    | 1     | occupancy       | share of the buffer in use                                  | -1: 0    | 1       |
    | 2     | utilisation     | bytes sent / can send                                       | -1: 0    | 1       |
    | 3     | flows_open      | log (1 + flows started and not completed)                   | 0: 0     | 1000    |
    | 4     | flows_started   | log (1 + flows started)                                     | 0: 0     | 100     |
    | 5-6   | alpha           | log (alpha in force)                                        | -1: 2^-8 | 8       |
    | 7-8   | limit           | log (1 + threshold, at most the buffer, / rate in ms)       | 0: 0     | 10 s    |
    | 9-10  | level           | log (alpha whose threshold is the queue as it is)           | -1: 2^-8 | 8       |
    | 11-12 | peak            | sqrt (longest queue in the interval / buffer)               | 0: 0     | 1       |
    | 13-14 | backlog         | log (1 + queue / rate in ms)                                | 0: 0     | 10 s    |
    | 15-16 | delay           | log (1 + mean time in the queue in ms)                      | 0: 0     | 10 s    |
    | 17-18 | arrivals        | log (1 + packets arrived / can send)                        | 0: 0     | 16      |
    | 19-20 | load            | the same ratio, over the last 5 s or so                     | -1: 0    | 2       |
    | 21-22 | drained         | bytes sent / can send                                       | -1: 0    | 1       |
    | 23-24 | drops           | sqrt (packets dropped / arrived)                            | 0: 0     | 1       |
    | 25-26 | flows_completed | log (1 + flows completed)                                   | 0: 0     | 100     |
    | 27-28 | worst_slowdown  | log (largest FCT / ideal FCT of flows completed)            | 0: 1     | 1000    |
    | 29-30 | slowdown        | log (FCT / ideal FCT), mean over the last 10 flows or so    | 0: 1     | 1000    |
    | 31-32 | age             | seconds since a flow of this priority completed             | 0: 0     | 10      |

    What an interval did not measure (no packet left the queue, no flow completed) keeps its last measured value; before
    the first it is 0. That a switch learns of completions is the paper's assumption.

    Recipes thesis-*, the paper's five state variables in [0, 1] (ranges and order are ours), as they were when a flow last
    completed; counts and rates cover the time from the start of that interval to that moment:

    | Num | Feature         | 0 | 1    | Num | Feature                                | 0 | 1 |
    |-----|-----------------|---|------|-----|----------------------------------------|---|---|
    | 0   | remaining       | 0 | 1    | 3-4 | beta                                   | 0 | 1 |
    | 1   | flows_completed | 0 | 50   | 5-6 | drain_rate, as a share of the ports'   | 0 | 1 |
    | 2   | packets_dropped | 0 | 1000 |     |                                        |   |   |

    ## Rewards

    A sum of named terms, which `info["reward_terms"]` shows; S is FCT / ideal FCT, the ideal being propagation there and
    back and the flow's bytes at the slowest link's rate:

    * default: `switch_utility`: throughput (bits delivered / capacity) - slowdown (sum over flows completed of ln S,
      priority 1 weighing a tenth) - buffer (0.1 * occupancy * seconds) - loss, delay and burst (weights 0). An integral over
      time and events. All weights, by priority and queue too, are parameters.
    * thesis-text: `thesis_text`, -ln(WFS) + ln(1 + packets received / s), WFS the worst FCT - ideal FCT in seconds.
    * thesis-code: `thesis_code`, -log2(worst S) + log2(1 + Gbit/s).

    Others: a name, or a dict with parameters, see `netbuf_gym.rewards.switch`.

    ## Starting State

    An empty network at time 0; alphas as the scenario has them, (1, 1). A random scenario is drawn anew each episode.

    ## Episode End

    1. Termination: never.
    2. Truncation: when the scenario's duration is over (60 s for `rlbm/*`: 600 decisions), rounded up to whole intervals.
       `gym.make` adds the time limit; the class alone goes on for ever.

    With the recipe thesis-code a decision lasts whole intervals until the worst slowdown has changed, so that an episode
    has as many decisions as that happened.

    The last step's `info` reports the whole episode, start-up included: `goodput_mbps`, `flows_started`,
    `flows_completed`, `fct_mean_s`, `slowdown_p99`, `slowdown_mean`, `slowdown_max` (ratios), `difference_p99_s`,
    `difference_max_s`, `drops`, `occupancy_mean`, `occupancy_p99`, `queue_mean_packets`, `probe_delay_mean_ms` (a ping of
    priority 0 once a second, one way), `duration_s`, `scenario`; and by priority `fct_mean_s_p0`, `slowdown_p99_p0`,
    `slowdown_mean_p0`, `queue_mean_packets_0` and so on (`netbuf_gym.plants.switch_report.switch_report`). Percentiles are
    nearest rank; NaN where no flow completed.

    ## Arguments

    | Parameter     | Type                | Default               | Description                                            |
    |---------------|---------------------|-----------------------|--------------------------------------------------------|
    | `scenario`    | **str**, **dict**   | `"rlbm/default"`      | a name (`netbuf_gym.scenarios.names()`), a dict of     |
    |               |                     |                       | `name` and its arguments, or a scenario's `to_dict()`; |
    |               |                     |                       | with one switch, whose admission becomes the agent's   |
    | `recipe`      | **str**             | `"default"`           | `"default"`, `"thesis-text"` or `"thesis-code"`        |
    | `actions`     | **str**             | `"continuous"`        | `"continuous"`, `"limits"` or `"grid"`                 |
    | `betas`       | **list** of float   | the recipe's          | a fixed factor above 0 to 1 for each queue; default:   |
    |               |                     |                       | the scenario's, or all 1; thesis-*: 1, then 0.5        |
    |               |                     |                       | ("no beta" is `[1, 1]`)                                |
    | `history`     | **int**             | `4`, thesis-*: `1`    | feature vectors in an observation, 1 to 64             |
    | `reward`      | **str**, **dict**   | the recipe's          | see Rewards                                            |
    | `interval_s`  | **float**           | `0.1`                 | time between decisions, 0.001 to 100 s                 |
    | `plant`       | **str**             | `"sim"`               | what is controlled: the simulator                      |
    | `render_mode` | **str**             | `None`                | `"ansi"` or `"rgb_array"`                              |

    `gym.make_vec(id, num_envs=1024, threads=1, ...)` steps many worlds at once (`netbuf_gym.vector.VectorEnv`).

    ```python
    >>> import gymnasium as gym, netbuf_gym
    >>> env = gym.make("netbuf/QueueThreshold-v0", scenario={"name": "rlbm/default", "load": 0.8, "queue_packets": 200})
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step([1.0, 5 / 11])

    ```

    ## Version History

    * v0: Initial version.
    """

    name: ClassVar[str] = "queue_threshold"
    recipes: ClassVar[tuple[str, ...]] = RECIPES
    default_history: ClassVar[dict[str, int]] = {"default": 4, "thesis-text": 1, "thesis-code": 1}
    default_scenario: ClassVar[str] = "rlbm/default"
    options: ClassVar[tuple[str, ...]] = ("actions", "betas")
    rewards: ClassVar[dict[str, type]] = SWITCH_REWARDS

    def __init__(
        self,
        recipe: str = "default",
        history: int | None = None,
        agents: int = 1,
        *,
        actions: str = "continuous",
        betas: Any = None,
        queues: int = 2,
    ):
        super().__init__(recipe, history, agents)
        if self.agents != 1:
            raise ConfigError(f"senders = {self.agents}; valid for {self.name}: 1, the switch")
        self.queues = queues
        self.actions = choice("actions", actions, ("continuous", "limits", "grid"))
        if self.actions == "limits" and recipe != "default":
            raise ConfigError(f'actions = "limits" with recipe {recipe!r}; valid: recipe "default"')
        self.betas = self._betas(betas)
        self.telemetry = switch_telemetry(queues)
        of_queues = [
            Panel(f"queue_packets_{q}", f"QUEUE {q} PACKETS", BLUE, f"threshold_packets_{q}", "LIMIT", LILAC)
            for q in range(min(queues, 4))  # a picture has its limits
        ]
        self.panels = (*of_queues, Panel("drops", "DROPS", RED))
        self.fixed_steps = recipe != "thesis-code"
        self.default_reward = {"default": "switch_utility"}.get(recipe, recipe.replace("-", "_"))
        shared, own, self._observe, low = {
            "default": (SHARED_FEATURES, QUEUE_FEATURES, observe_default, -1.0),
        }.get(recipe, (THESIS_SHARED, THESIS_QUEUE, observe_thesis, 0.0))
        numbered = (replace(feature, name=f"{feature.name}_{q}") for feature in own for q in range(queues))
        self.features = (*shared, *numbered)
        self.observation_space = gym.spaces.Box(low, 1.0, (self.history * self.width,), np.float32)
        self._alphas = {
            "default": alphas_default,
            "thesis-text": alphas_thesis_text,
            "thesis-code": alphas_thesis_code,
        }[recipe]
        self.grid: np.ndarray | None = None
        """With `actions="grid"` float64 (actions, queues), the alphas of each action; else None."""
        if self.actions == "grid":
            levels = GRIDS[recipe]
            if len(levels) ** queues > MAX_GRID:
                raise ConfigError(f'actions = "grid" has {len(levels)}^{queues} actions; valid: at most {MAX_GRID}')
            self.grid = np.array(list(itertools.product(levels, repeat=queues)))
            self.action_space = gym.spaces.Discrete(len(self.grid))
        else:
            self.action_space = gym.spaces.Box(-1.0, 1.0, (queues,), np.float32)

    def _betas(self, betas: Any) -> tuple[float, ...] | None:
        """One beta a queue; None: as the scenario has them."""
        if betas is None:
            return None if self.recipe == "default" else (1.0,) + (0.5,) * (self.queues - 1)
        values = sequence("betas", betas, "numbers")
        if len(values) != self.queues:
            raise ConfigError(f"betas has {len(values)} values for {self.queues} queues; valid: as many")
        return tuple(real(f"betas[{q}]", value, 0, 1, low_open=True) for q, value in enumerate(values))

    @classmethod
    def fitted(cls, world: Scenario) -> dict[str, Any]:
        """The number of queues."""
        return {"queues": _only_switch(world).queues}

    def control(self, scenario: Scenario) -> Scenario:
        """The world with its switch's thresholds in the agent's hands."""
        switch = _only_switch(scenario)
        if switch.queues != self.queues:
            raise ConfigError(
                f"scenario {scenario.name!r} has a switch of {switch.queues} queues; valid: {self.queues}, as in the others"
            )
        own = switch.admission if isinstance(switch.admission, AgentThresholds) else None
        if own is not None and self.betas in (None, own.betas):
            return scenario
        betas = self.betas or (1.0,) * self.queues
        admission = AgentThresholds(betas=betas, alphas=own.alphas if own is not None else (1.0,) * self.queues)
        return replace(scenario, switches=(replace(switch, admission=admission),))

    def make_plant(self, worlds: int, threads: int) -> SimPlant:
        """Switches in simulated worlds."""
        return SimPlant(worlds, 1, threads, kind="switch", queues=self.queues)

    def make_tracker(self, rows: int, interval_s: float) -> SwitchTracker:
        """What is remembered of each switch."""
        return SwitchTracker(rows, self.queues)

    def start(self, tracker: SwitchTracker, rows: slice, scenario: Scenario) -> None:
        """See `Task.start`."""
        switch = scenario.switches[0]
        tracker.reset(
            rows,
            capacity_bps=sum(scenario.links[port].mean_mbps(scenario.duration_s) for port in switch.ports) * 1e6,
            capacity=switch.capacity,
            in_bytes=switch.in_bytes,
            packet_bytes=scenario.data_bytes,
            alphas=switch.admission.alphas,
            betas=switch.admission.betas,
            ports=len(switch.ports),
            queue_cap=switch.queue_cap,
        )

    def advance(self, plant: SimPlant, interval_ns: int, end_ns: np.ndarray) -> None:
        """An interval further; thesis-code: whole intervals until the worst slowdown has changed, or the world ends."""
        if self.fixed_steps:
            plant.advance(interval_ns)
        else:
            plant.advance_to_change(interval_ns, np.maximum(-(-(end_ns - plant.time_ns) // interval_ns), 1))

    def check_actions(self, action: Any, rows: int) -> np.ndarray:
        """`action` as an array: continuous ones `(rows, queues)` float64, within [-1, 1] or not; else see `Task`.

        Raises:
            ConfigError: wrong shape or type, NaN; a grid's action that it does not have.
        """
        if self.grid is not None:
            return super().check_actions(action, rows)
        array = action_array(action)
        if array.shape != (rows, self.queues):
            raise ConfigError(
                f"actions have shape {array.shape}; valid: ({rows}, {self.queues}), one number for each queue of each switch"
            )
        if array.dtype.kind not in "fiu":
            raise ConfigError(f"actions have type {array.dtype} ({shown(array.ravel()[0])}); valid: numbers")
        if np.isnan(array).any():
            raise ConfigError("actions hold NaN; valid: -1 to 1, and what lies outside is clipped")
        return array.astype(np.float64)

    def decode(self, action: np.ndarray, tracker: SwitchTracker, out: np.ndarray) -> np.ndarray:
        """Alphas `(rows, queues)` for checked actions, into `out`."""
        if self.grid is not None:
            out[...] = self.grid[action]
        elif self.actions == "limits":
            out[...] = alphas_of_limits(action, tracker)
        else:
            out[...] = self._alphas(action)
        return out

    def encode(self, alphas: Any) -> np.ndarray:
        """The action of one switch that comes closest to these alphas: a float32 array `(queues,)`, or a grid's integer.

        Raises:
            ConfigError: not one number above 0 for each queue.
        """
        values = sequence("alphas", alphas, "numbers")
        if len(values) != self.queues:
            raise ConfigError(f"alphas has {len(values)} values for {self.queues} queues; valid: as many")
        wanted = np.array([real(f"alphas[{q}]", value, 0, 1e6, low_open=True) for q, value in enumerate(values)])
        if self.actions == "limits":
            raise ConfigError('actions = "limits" name times, not alphas; valid: "continuous" or "grid"')
        if self.grid is not None:
            return np.int64(np.abs(np.log(self.grid) - np.log(wanted)).sum(axis=1).argmin())
        if self.recipe == "thesis-text":
            action = 2 * wanted - 1
        else:
            low, high = LOG2_ALPHA if self.recipe == "default" else CODE_EXPONENT
            action = 2 * (np.log2(wanted) - low) / (high - low) - 1
        return np.clip(action, -1, 1).astype(np.float32)

    def observe(self, tracker: SwitchTracker, out: np.ndarray) -> np.ndarray:
        """The feature vectors of the interval just ended, `(width, rows)`, into `out`: finite and within the space."""
        return self._observe(tracker, out)

    def show(self, tracker: SwitchTracker, row: int) -> dict[str, float]:
        """Packets in all queues and in each, each one's threshold in packets and alpha, and drops; sums over ports."""
        unit = float(tracker.packet_units[row])
        queued, drops = float(tracker.queue.queue_packets[:, row].sum()), float(tracker.packets_dropped[row])
        state = {"queue_packets": queued, "drops": drops}
        for q in range(self.queues):
            alpha = float(tracker.queue.alpha[q, row])
            state[f"queue_packets_{q}"] = float(tracker.queue.queue_packets[q, row])
            state[f"alpha_{q}"] = alpha
            capacity = float(tracker.capacity[row])
            limit = alpha * float(tracker.betas[q, row]) * float(tracker.free[row])
            limit = min(limit, float(tracker.cap_share[row]) * capacity) * float(tracker.ports[row])
            state[f"threshold_packets_{q}"] = min(limit, capacity) / unit
        return state

    def line(self, state: dict[str, float]) -> str:
        """See `Task.line`."""
        queues = "   ".join(
            f"queue {q} {state[f'queue_packets_{q}']:6.0f} of {state[f'threshold_packets_{q}']:7.1f}"
            for q in range(self.queues)
        )
        return f"t {state['time_s']:8.2f} s   {queues} packets   drops {state['drops']:6.0f}"

    def to_dict(self) -> dict[str, Any]:
        """What a saved model must agree with, actions, queues and betas included."""
        ranges = {"default": LOG2_ALPHA, "thesis-text": (LEAST_ALPHA, 1.0), "thesis-code": CODE_EXPONENT}
        levels = (GRIDS if self.grid is not None else ranges)[self.recipe]
        if self.actions == "limits":
            levels = LIMIT_S
        return {
            **super().to_dict(),
            "actions": {"kind": self.actions, "levels": list(levels)},
            "queues": self.queues,
            "betas": None if self.betas is None else list(self.betas),
        }


def _only_switch(scenario: Scenario) -> Any:
    if len(scenario.switches) != 1:
        valid = "a scenario with one, e.g. rlbm/default"
        raise ConfigError(f"scenario {scenario.name!r} has {len(scenario.switches)} switches; valid: {valid}")
    return scenario.switches[0]
