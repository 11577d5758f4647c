"""The scalar environment of all tasks: an engine of one world in Gymnasium's `Env` interface."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from netbuf_gym.arguments import choice
from netbuf_gym.engine import Engine
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.plants.telemetry import TELEMETRY
from netbuf_gym.rendering import Recorder
from netbuf_gym.wrappers.duration import DurationLimit


class Env(gym.Env[np.ndarray, np.int64]):
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

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 10}

    def __init__(self, *, render_mode: str | None = None, **kwargs: Any):
        if render_mode is not None:
            choice("render_mode", render_mode, self.metadata["render_modes"])
        if kwargs.get("senders", 1) != 1:
            raise ConfigError(
                f"senders = {shown(kwargs['senders'])}; valid here: 1 (for more: gym.make_vec, or netbuf_gym.multiagent)"
            )
        self.render_mode = render_mode
        self.engine = Engine(1, **kwargs)
        self.observation_space = self.engine.task.observation_space
        self.action_space = self.engine.task.action_space
        self._generator: np.random.Generator | None = None
        self._recorder = Recorder()

    @property
    def out_of_time(self) -> bool:
        """Whether the scenario's duration is over."""
        return bool(self.engine.ended[0])

    @property
    def telemetry(self) -> dict[str, float]:
        """What the last interval measured, by name and in SI units; NaN where it measured nothing."""
        return dict(zip(TELEMETRY.names, self.engine.tracker.now[:, 0].tolist(), strict=True))

    def schema(self) -> dict[str, Any]:
        """What a saved model must agree with; compare with `netbuf_gym.tasks.require_schema`."""
        return self.engine.schema()

    def report(self) -> dict[str, Any]:
        """The episode so far, as the last step's `info` gives it."""
        return self.engine.report(0)[0]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts a new episode; see Gymnasium. There are no options. `info["scenario"]` names the world drawn."""
        super().reset(seed=seed)
        if options:
            raise ConfigError(f"options has no key {shown(next(iter(options)))}; valid: none")
        if seed is not None or self._generator is None:
            self._generator = self.np_random.spawn(1)[0]
        self.engine.reset_world(0, self._generator)
        self.engine.start_history([0])
        self._recorder.start()
        return self._observation(), {"scenario": self.engine.scenarios[0].name}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """One decision; see Gymnasium.

        Raises:
            ConfigError: an action of wrong shape or type, NaN, or out of range.
            SimulatorFault: the simulator found its own state inconsistent.
            gymnasium.error.ResetNeeded: before the first reset.
        """
        if self._generator is None:
            raise gym.error.ResetNeeded("reset() must come before step()")
        engine = self.engine
        engine.decide(engine.task.check_actions(np.atleast_1d(action), 1))
        if self.render_mode is not None:
            self._recorder.add(engine.show(0))
        info: dict[str, Any] = {"reward_terms": dict(zip(engine.reward.terms, engine.terms[:, 0].tolist(), strict=True))}
        if self.out_of_time:
            info.update(self.report())
        return self._observation(), float(engine.rewards[0]), False, False, info

    def render(self) -> str | np.ndarray | None:
        """The episode so far: a line of text, or window, RTT and throughput as strip charts."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode; valid: ansi, rgb_array")
            return None
        return self._recorder.ansi() if self.render_mode == "ansi" else self._recorder.rgb_array()

    def _observation(self) -> np.ndarray:
        return self.engine.history.read_rows(slice(None))[0]


def make(**kwargs: Any) -> gym.Env:
    """The entry point of the registry: an `Env` within the time limit that its scenario sets."""
    env = Env(**kwargs)
    steps = env.engine.episode_steps()
    return DurationLimit(env) if steps is None else gym.wrappers.TimeLimit(env, steps)


make.metadata = Env.metadata
