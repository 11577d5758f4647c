"""The congestion-window task: a sender decides, interval by interval, how much it may have in flight.

Rules only, batch first (leading axis = senders). The docstring of `CongestionWindow` is the environment's reference page.
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from netbuf_gym.arguments import truth
from netbuf_gym.errors import ConfigError
from netbuf_gym.plants.sim import SimPlant
from netbuf_gym.plants.telemetry import TELEMETRY
from netbuf_gym.plants.tracker import (
    CWND,
    FIELD,
    IN_FLIGHT,
    MSS,
    PACKETS_LOST,
    RTT,
    RTT_MIN,
    SEGMENTS_ACKED,
    THROUGHPUT,
    TIMEOUTS,
    Tracker,
)
from netbuf_gym.rewards import REWARDS
from netbuf_gym.scenarios.types import AGENT, DATA_BYTES, MSS_BYTES, Scenario
from netbuf_gym.tasks.task import Feature, Panel, Task

UNLIMITED_BUFFER_PACKETS = 150_000
"""What an unlimited queue counts as where a window must have an upper bound: the deepest buffer of TCP-PPCC."""

PPCC_STEPS = np.array([-200, -100, -50, -20, 0, 5, 10, 100, 200, 500, 600], np.float64)
"""The paper's actions a: cwnd <- cwnd + a * MSS^2 / cwnd."""

FACTORS = np.array([0.5, 0.7, 0.85, 0.94, 0.98, 1.005, 1.02, 1.06, 1.18, 1.4, 2.0], np.float64)
"""The default recipe's actions: cwnd <- cwnd * factor. None is 1: at a window that fits the path and at one that is too
small for it a sender sees the same empty queue, and one that stands still never learns which it has."""


PPCC_FEATURES = (
    Feature("ssthresh_bytes", 0, 1e6, "slow-start threshold as last set; the upper end while infinite"),
    Feature("cwnd_bytes", 0, 1e6, "congestion window"),
    Feature("mss_bytes", 0, 1500, "segment size"),
    Feature("bytes_in_flight_sum", 0, 5e7, "bytes in flight, summed over the ACKs of the interval"),
    Feature("bytes_in_flight_mean", 0, 1e6, "bytes in flight, mean over the ACKs"),
    Feature("segments_acked_sum", 0, 250, "segments acknowledged"),
    Feature("segments_acked_mean", 0, 10, "segments acknowledged per ACK"),
    Feature("rtt_mean_s", 0, 0.5, "mean RTT"),
    Feature("rtt_min_ever_s", 0, 0.5, "least RTT of the connection"),
    Feature("send_interval_mean_s", 0, 0.1, "mean send gap of consecutively acknowledged packets"),
    Feature("receive_interval_mean_s", 0, 0.1, "mean gap between ACKs"),
    Feature("throughput_bps", 0, 20e6, "throughput"),
)
"""The paper's Table I in order; the ranges of its Eq. 8 are stated nowhere and are ours."""

DEFAULT_FEATURES = (
    Feature("queueing", 1, 16, "sqrt of log(RTT / least RTT so far)"),
    Feature("standing_queue", 1, 16, "sqrt of log(least RTT of the interval / least RTT so far)"),
    Feature("rate", 0, 1, "delivery rate / highest one lately"),
    Feature("window_in_bdp", 1 / 2, 2, "log of window / (highest delivery rate lately * least RTT so far)"),
    Feature("window_use", 1 / 2, 2, "log of delivery rate * RTT / window"),
    Feature("rtt_change", 1 / 2, 2, "log of RTT / RTT one interval earlier"),
    Feature("rate_change", 1 / 2, 2, "log of delivery rate / the one of an interval earlier"),
    Feature("window_change", 1 / 2, 2, "log of window / window one interval earlier"),
    Feature("rtt_in_intervals", 1 / 64, 64, "log of RTT / decision interval"),
    Feature("window_size", 1, 65536, "log of the window in segments"),
    Feature("segments_acked", 0, 4095, "log of 1 + segments acknowledged"),
    Feature("segments_queued", 0, 63, "log of 1 + window in segments * (1 - least RTT so far / RTT), as Vegas counts them"),
    Feature("loss", 0, 1, "sqrt of lost / (lost + acknowledged) packets"),
    Feature("in_flight", 0, 2, "bytes in flight / window"),
    Feature("timeouts", 0, 1, "whether a retransmission time-out fired"),
    Feature("age", 0, 1, "seconds since the last ACK"),
)
"""Ratios only: the same policy reads 1 Mbit/s and 100 Mbit/s, 5 ms and 200 ms alike."""

RECIPES = ("default", "ppcc")

_PPCC_ROWS = np.array([FIELD[feature.name] for feature in PPCC_FEATURES])
_PPCC_LOW = np.array([[feature.low] for feature in PPCC_FEATURES], np.float32)
_PPCC_SCALE = np.array([[1 / (feature.high - feature.low)] for feature in PPCC_FEATURES], np.float32)


def decode_ppcc(
    action: np.ndarray, cwnd: np.ndarray, mss: np.ndarray, low: np.ndarray, high: np.ndarray, out: np.ndarray
) -> np.ndarray:
    """The paper's Eq. 1 in bytes, clamped: all arguments `(rows,)`, `action` indices into `PPCC_STEPS`."""
    np.take(PPCC_STEPS, action, out=out, mode="clip")
    out *= mss
    out *= mss
    out /= cwnd
    out += cwnd
    return np.clip(out, low, high, out=out)


def decode_default(
    action: np.ndarray, cwnd: np.ndarray, mss: np.ndarray, low: np.ndarray, high: np.ndarray, out: np.ndarray
) -> np.ndarray:
    """Multiplies the window in bytes, clamped: all arguments `(rows,)`, `action` indices into `FACTORS`."""
    np.take(FACTORS, action, out=out, mode="clip")
    out *= cwnd
    return np.clip(out, low, high, out=out)


def observe_ppcc(tracker: Tracker, out: np.ndarray) -> np.ndarray:
    """The 12 features, each clipped to its range and scaled to [0, 1], into `out` of shape `(12, rows)`.

    A field without a measurement keeps its last value; before the first it is 0 (the slow-start threshold: 1).
    """
    np.take(tracker.last, _PPCC_ROWS, axis=0, out=out, mode="clip")
    out -= _PPCC_LOW
    out *= _PPCC_SCALE
    return np.clip(out, 0, 1, out=out)


_LOG_HIGH = (16, 16, 2, 2, 2, 2, 2, 64, 65536, 4096, 64)
_LOG_SCALE = np.array([[1 / np.log(high)] for high in _LOG_HIGH], np.float32)


def observe_default(tracker: Tracker, out: np.ndarray) -> np.ndarray:
    """The features of `DEFAULT_FEATURES`, each clipped to [-1, 1], into `out` of shape `(16, rows)`.

    A field without a measurement keeps its last value, and `age` says for how long; before the first round trip all
    RTT ratios are 1, so that their logarithms are 0.
    """
    last, one = tracker.last, np.float32(1)
    rtt, rate, cwnd, mss = last[RTT], tracker.rate, last[CWND], last[MSS]
    logs = np.empty((11, tracker.rows), np.float32)
    queueing, standing, in_bdp, use, rtt_change, rate_change, window_change, rtt_in, size, acked, queued = logs

    least = np.ones(tracker.rows, np.float32)
    np.copyto(least, tracker.least_rtt, where=tracker.rtt_known)
    np.divide(rtt, least, out=queueing)
    np.divide(last[RTT_MIN], least, out=standing)
    np.maximum(logs[:2], one, out=logs[:2])

    pipe = tracker.peak_rate * least
    pipe *= np.float32(1 / 8)
    np.maximum(pipe, mss, out=pipe)
    np.divide(cwnd, pipe, out=in_bdp)
    np.multiply(rate, rtt, out=use)
    use *= np.float32(1 / 8)
    use /= cwnd

    rtt_change.fill(1)
    np.divide(rtt, tracker.previous_rtt, out=rtt_change, where=tracker.previous_rtt_known)
    packet = mss * np.float32(8 / tracker.interval_s)
    np.maximum(rate, packet, out=rate_change)
    rate_change /= np.maximum(tracker.previous_rate, packet)
    np.divide(cwnd, tracker.previous_cwnd, out=window_change)
    np.multiply(rtt, np.float32(1 / tracker.interval_s), out=rtt_in)
    np.divide(cwnd, mss, out=size)
    np.add(last[SEGMENTS_ACKED], one, out=acked)
    np.divide(one, queueing, out=queued)
    np.subtract(one, queued, out=queued)
    queued *= size
    queued += one

    np.maximum(logs, np.float32(1e-6), out=logs)
    np.log(logs, out=logs)
    logs *= _LOG_SCALE
    in_bdp *= tracker.rtt_known
    rtt_in *= tracker.rtt_known

    np.sqrt(logs[:2], out=out[:2])
    np.divide(rate, np.maximum(tracker.peak_rate, one), out=out[2])
    out[2] *= np.float32(2)
    out[2] -= one
    out[3:12] = logs[2:]
    lost = last[PACKETS_LOST]
    np.add(lost, last[SEGMENTS_ACKED], out=out[12])
    np.maximum(out[12], one, out=out[12])
    np.divide(lost, out[12], out=out[12])
    np.sqrt(out[12], out=out[12])
    np.divide(last[IN_FLIGHT], cwnd, out=out[13])
    out[13] -= one
    out[14] = last[TIMEOUTS]
    out[15] = tracker.age_s
    return np.clip(out, -1, 1, out=out)


class CongestionWindow(Task):
    """
    ## Description

    `netbuf/CongestionWindow-v0`: a TCP sender learns congestion control. It shares a bottleneck with a buffer, perhaps
    with other senders, and decides every 100 ms (or on every ACK) how many bytes it may have in flight. Too few, and
    the link idles; too many, and packets wait in the buffer and are dropped. The world is a packet-level simulation
    with real TCP machinery: SACK recovery retransmits without cutting the window, a time-out sets it to one segment
    until the next decision. The sender has no slow start of its own: the window is the agent's from the first decision.

    The task and its recipe `"ppcc"` come from TCP-PPCC (Li et al., "Online-Learning Proximal Policy for Congestion
    Control"); the recipe `"default"` is ours and made to carry over from 1 to 100 Mbit/s and from 5 to 200 ms.

    ## Action Space

    `Discrete(11)`. With MSS = 1448 bytes, always clamped to [2 MSS, 2 (bandwidth-delay product + buffer)]:

    | Recipe  | Window                          | Values                                                            |
    |---------|---------------------------------|-------------------------------------------------------------------|
    | default | cwnd <- cwnd * f                | f in 0.5, 0.7, 0.85, 0.94, 0.98, 1.005, 1.02, 1.06, 1.18, 1.4, 2   |
    | ppcc    | cwnd <- cwnd + a * MSS^2 / cwnd | a in -200, -100, -50, -20, 0, 5, 10, 100, 200, 500, 600            |

    cwnd is the window in force: the agent's last one, or what a time-out left of it.

    ## Observation Space

    `Box` of `history` feature vectors, flattened, oldest first. After a reset all of them are the first one.

    Recipe default, 16 features in [-1, 1], all of them ratios or counts of segments. Logarithms are scaled so that the
    bounds mean the range given. `rate` is what was acknowledged between the last ACK before the interval and the last
    one in it; `peak` the highest rate lately (forgotten with a time constant of 10 s); `least RTT` that of any data
    packet so far:

    | Num | Feature          | Meaning                                              | -1 or 0  | 1       |
    |-----|------------------|------------------------------------------------------|----------|---------|
    | 0   | queueing         | sqrt log (mean RTT / least RTT)                      | 0: 1     | 16      |
    | 1   | standing_queue   | sqrt log (interval's least RTT / least RTT)          | 0: 1     | 16      |
    | 2   | rate             | rate / peak                                          | 0        | 1       |
    | 3   | window_in_bdp    | log (window / (peak * least RTT))                    | 1/2      | 2       |
    | 4   | window_use       | log (rate * RTT / window)                            | 1/2      | 2       |
    | 5   | rtt_change       | log (RTT / RTT an interval earlier)                  | 1/2      | 2       |
    | 6   | rate_change      | log (rate / rate an interval earlier)                | 1/2      | 2       |
    | 7   | window_change    | log (window / window an interval earlier)            | 1/2      | 2       |
    | 8   | rtt_in_intervals | log (RTT / decision interval)                        | 1/64     | 64      |
    | 9   | window_size      | log (window in segments)                             | 0: 1     | 65536   |
    | 10  | segments_acked   | log (1 + segments acknowledged)                      | 0: 0     | 4095    |
    | 11  | segments_queued  | log (1 + window in segments * (1 - least RTT / RTT)) | 0: 0     | 63      |
    | 12  | loss             | sqrt (lost / (lost + acknowledged))                  | 0: 0     | 1       |
    | 13  | in_flight        | bytes in flight / window                             | 0        | 2       |
    | 14  | timeouts         | whether a time-out fired                             | 0: none  | 1       |
    | 15  | age              | seconds since the last ACK                           | 0: 0     | 1       |

    Recipe ppcc, the paper's 12 features in its order, each scaled from a fixed range to [0, 1] (the paper states no
    ranges; these are ours):

    | Num | Feature                 | 0 | 1           | Num | Feature                 | 0 | 1          |
    |-----|-------------------------|---|-------------|-----|-------------------------|---|------------|
    | 0   | ssthresh                | 0 | 1 MB        | 6   | segments acked, mean    | 0 | 10         |
    | 1   | cwnd                    | 0 | 1 MB        | 7   | RTT, mean               | 0 | 0.5 s      |
    | 2   | segment size            | 0 | 1500 B      | 8   | RTT, least ever         | 0 | 0.5 s      |
    | 3   | bytes in flight, sum    | 0 | 50 MB       | 9   | send interval, mean     | 0 | 0.1 s      |
    | 4   | bytes in flight, mean   | 0 | 1 MB        | 10  | receive interval, mean  | 0 | 0.1 s      |
    | 5   | segments acked, sum     | 0 | 250         | 11  | throughput              | 0 | 20 Mbit/s  |

    Observations are never NaN and never leave the space. What an interval did not measure (no ACK arrived: start-up, a
    gap in a trace) keeps its last measured value, and before the first is 0 (RTT ratios: 1; ssthresh: infinite, so 1).
    Counts and throughput of such an interval are 0, which was measured. Nothing a real sender cannot know is observed.

    ## Rewards

    A sum of named terms, which `info["reward_terms"]` shows. x is throughput over the fair share of the bottleneck (the
    capacity when alone), y is RTT over base RTT:

    * default: `log_utility`, 0.5 ln(max(x, 0.05)) - 0.5 ln(y) times the length of the interval in seconds. The sum over
      an episode, divided by its duration, tracks the utility that the report gives. Normalised by what the world
      offers, so that worlds are comparable; observations are not.
    * ppcc: `utility_sign`, +1, 0 or -1 as U = 0.5 ln(throughput) - 0.5 ln(RTT) rose, stayed or fell.

    Others: `reward="linear_utility"`, `"alpha_fair"`, `"power"`, or a dict with parameters, see `netbuf_gym.rewards`.

    ## Starting State

    An empty network at time 0, before the handshake; window 10 segments. A random scenario is drawn anew each episode.

    ## Episode End

    1. Termination: never.
    2. Truncation: when the scenario's duration is over (100 s for `ppcc/*`: 1000 decisions), rounded up to whole
       intervals. `gym.make` adds the `TimeLimit`; the class alone goes on for ever.

    The last step's `info` reports the whole episode, start-up included, from the simulator's counters: `goodput_mbps`,
    `mean_rtt_ms`, `base_rtt_ms`, `queue_delay_mean_ms` (sojourn at the bottleneck), `loss_rate`,
    `utility` = 0.5 ln(goodput / fair share) - 0.5 ln(mean RTT / base RTT), `Mt` = log10 of mean queueing (ms) - log10 of
    goodput (Mbit/s), `timeouts`, `duration_s`, `scenario`.

    ## Arguments

    | Parameter     | Type                | Default               | Description                                            |
    |---------------|---------------------|-----------------------|--------------------------------------------------------|
    | `scenario`    | **str**, **dict**   | `"ppcc/4"`            | a name (`netbuf_gym.scenarios.names()`, `trace:PATH`), |
    |               |                     |                       | a dict of `name` and its arguments, or a scenario's    |
    |               |                     |                       | `to_dict()`                                            |
    | `recipe`      | **str**             | `"default"`           | `"default"` or `"ppcc"`                                |
    | `history`     | **int**             | `4`                   | feature vectors in an observation, 1 to 64             |
    | `reward`      | **str**, **dict**   | the recipe's          | see Rewards                                            |
    | `interval_s`  | **float**           | `0.1`                 | time between decisions, 0.001 to 100 s                 |
    | `per_ack`     | **bool**            | `False`               | decide on every ACK, at the latest after `interval_s`  |
    | `senders`     | **int**             | `1`                   | controlled senders in a world; the scalar environment  |
    |               |                     |                       | takes 1, see `VectorEnv` and `netbuf_gym.multiagent`   |
    | `plant`       | **str**             | `"sim"`               | what is controlled: the simulator                      |
    | `render_mode` | **str**             | `None`                | `"ansi"` or `"rgb_array"`                              |

    `gym.make_vec(id, num_envs=1024, threads=1, ...)` steps many worlds at once (`netbuf_gym.vector.VectorEnv`).

    ```python
    >>> import gymnasium as gym, netbuf_gym
    >>> env = gym.make("netbuf/CongestionWindow-v0", scenario={"name": "ppcc/2", "rate_mbps": 20})
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(10)

    ```

    ## Version History

    * v0: Initial version.
    """

    name: ClassVar[str] = "congestion_window"
    recipes: ClassVar[tuple[str, ...]] = RECIPES
    default_history: ClassVar[dict[str, int]] = {"default": 4, "ppcc": 4}
    default_scenario: ClassVar[str] = "ppcc/4"
    options: ClassVar[tuple[str, ...]] = ("per_ack",)
    rewards: ClassVar[dict[str, type]] = REWARDS
    panels: tuple[Panel, ...] = (
        Panel("cwnd_packets", "CWND PACKETS", (31, 119, 180)),
        Panel("rtt_ms", "RTT MS", (214, 39, 40)),
        Panel("throughput_mbps", "MBIT/S", (44, 160, 44)),
    )
    telemetry = TELEMETRY

    def __init__(self, recipe: str = "default", history: int | None = None, agents: int = 1, *, per_ack: bool = False):
        super().__init__(recipe, history, agents)
        self.per_ack = truth("per_ack", per_ack)
        self.fixed_steps = not self.per_ack
        if recipe == "ppcc":
            self.features, self.levels, low = PPCC_FEATURES, PPCC_STEPS, 0.0
            self._observe, self._decode, self.default_reward = observe_ppcc, decode_ppcc, "utility_sign"
        else:
            self.features, self.levels, low = DEFAULT_FEATURES, FACTORS, -1.0
            self._observe, self._decode, self.default_reward = observe_default, decode_default, "log_utility"
        self.action_space = gym.spaces.Discrete(len(self.levels))
        self.observation_space = gym.spaces.Box(low, 1.0, (self.history * self.width,), np.float32)
        self.keep_action = int(np.argmin(np.abs(self.levels - (0 if recipe == "ppcc" else 1))))
        """The action that leaves the window as it is, or most nearly so."""

    def control(self, scenario: Scenario) -> Scenario:
        """The world with its first `agents` flows controlled, unless as many flows are agents already."""
        if scenario.agents == self.agents:
            return scenario
        if scenario.agents or len(scenario.flows) < self.agents:
            raise ConfigError(
                f"senders = {self.agents}, but scenario {scenario.name!r} has {len(scenario.flows)} flows, "
                f"{scenario.agents} of them agents; valid: as many as its agents, or at most its flows if none is"
            )
        return scenario.with_agents(self.agents)

    def make_plant(self, worlds: int, threads: int) -> SimPlant:
        """Senders in simulated worlds."""
        return SimPlant(worlds, self.agents, threads)

    def make_tracker(self, rows: int, interval_s: float) -> Tracker:
        """What is remembered of each sender."""
        return Tracker(rows, interval_s)

    def start(self, tracker: Tracker, rows: slice, scenario: Scenario) -> None:
        """See `Task.start`."""
        controlled = [i for i, flow in enumerate(scenario.flows) if flow.cc == AGENT]
        capacity_bps = scenario.capacity_mbps * 1e6
        tracker.reset(
            rows,
            capacity_bps=capacity_bps,
            share_bps=capacity_bps / len(scenario.flows),
            base_rtt_s=[scenario.base_rtt_ms(i) * 1e-3 for i in controlled],
            initial_window=[scenario.flows[i].initial_cwnd_packets * MSS_BYTES for i in controlled],
            highest_window=highest_window_packets(scenario) * MSS_BYTES,
            mss_bytes=MSS_BYTES,
        )

    def advance(self, plant: SimPlant, interval_ns: int, end_ns: np.ndarray) -> None:
        """An interval further, or to the next ACK."""
        if self.per_ack:
            plant.advance_to_ack(interval_ns)
        else:
            plant.advance(interval_ns)

    def decode(self, action: np.ndarray, tracker: Tracker, out: np.ndarray) -> np.ndarray:
        """Windows in bytes for checked actions, both `(rows,)`, clamped to the tracker's bounds, into `out`."""
        low, high = tracker.lowest_window, tracker.highest_window
        return self._decode(action, tracker.cwnd, tracker.last[MSS], low, high, out)

    def observe(self, tracker: Tracker, out: np.ndarray) -> np.ndarray:
        """The feature vectors of the interval just ended, `(width, rows)`, into `out`: finite and within the space."""
        return self._observe(tracker, out)

    def show(self, tracker: Tracker, row: int) -> dict[str, float]:
        """Window in segments, RTT in ms, throughput in Mbit/s, queue in packets."""
        last = tracker.last[:, row]
        return {
            "cwnd_packets": float(tracker.cwnd[row]) / MSS_BYTES,
            "rtt_ms": float(last[RTT]) * 1e3,
            "throughput_mbps": float(last[THROUGHPUT]) * 1e-6,
            "queue_packets": float(last[FIELD["queue_packets"]]),
        }

    def line(self, state: dict[str, float]) -> str:
        """See `Task.line`."""
        return (
            f"t {state['time_s']:8.2f} s   cwnd {state['cwnd_packets']:8.1f} packets   RTT {state['rtt_ms']:8.2f} ms   "
            f"throughput {state['throughput_mbps']:8.3f} Mbit/s   queue {state['queue_packets']:6.0f} packets"
        )

    def to_dict(self) -> dict[str, Any]:
        """What a saved model must agree with, actions and the times of decisions included."""
        return {**super().to_dict(), "actions": self.levels.tolist(), "per_ack": self.per_ack}


def highest_window_packets(scenario: Scenario) -> float:
    """The clamp of an agent's window: twice what path and buffer hold."""
    link = scenario.links[scenario.bottleneck]
    limits = [UNLIMITED_BUFFER_PACKETS]
    if link.queue_packets is not None:
        limits.append(link.queue_packets)
    if link.queue_bytes is not None:
        limits.append(link.queue_bytes / DATA_BYTES[scenario.stack])
    return 2 * (scenario.bdp_packets + min(limits))
