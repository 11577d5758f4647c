"""What both Gymnasium classes share: worlds, one decision for all of their senders, and the ends of episodes.

The vector environment is a thin shell around an engine of many worlds, the scalar one around an engine of one world, so
that no rule is written twice. Rows are senders, world by world: row = world * agents + agent.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.utils import seeding

from netbuf_gym.arguments import choice, real, truth, whole
from netbuf_gym.errors import ConfigError
from netbuf_gym.plants.sim import SimPlant
from netbuf_gym.plants.telemetry import TELEMETRY
from netbuf_gym.plants.tracker import FIELD, RTT, THROUGHPUT, Tracker
from netbuf_gym.rewards import Reward, make_reward
from netbuf_gym.scenarios.types import AGENT, MSS_BYTES, Scenario
from netbuf_gym.tasks import TASKS
from netbuf_gym.tasks.history import History
from netbuf_gym.worlds import WorldSource, highest_window_packets

MAX_ROWS = 1 << 20
QUEUE = FIELD["queue_packets"]
MAX_SEED = 1 << 63


class Engine:
    """Steps `worlds` worlds of `senders` controlled senders; arguments as in `netbuf_gym.env.Env`.

    Attributes:
        rows: worlds * senders.
        rewards: float32 `(rows,)`, of the last decision; `terms` are its parts, `(number of terms, rows)`.
        ended: bool `(worlds,)`, whose duration (or number of steps) the last decision used up.
        scenarios: the scenario that each world runs.
    """

    def __init__(
        self,
        worlds: int,
        *,
        task: str = "congestion_window",
        scenario: str | dict[str, Any] = "ppcc/4",
        recipe: str = "default",
        history: int | None = None,
        reward: str | dict[str, Any] | None = None,
        interval_s: float = 0.1,
        per_ack: bool = False,
        senders: int = 1,
        plant: str = "sim",
        threads: int = 1,
        max_episode_steps: int | None = None,
        **unknown: Any,
    ):
        if unknown:
            valid = [name for name, kind in inspect.signature(Engine).parameters.items() if kind.kind is kind.KEYWORD_ONLY]
            raise ConfigError(f"there is no argument {next(iter(unknown))!r}; valid: {', '.join(valid)}")
        choice("plant", plant, ("sim",))
        self.agents = whole("senders", senders, 1, 1024)
        self.worlds = whole("worlds", worlds, 1, MAX_ROWS // self.agents)
        self.rows = self.worlds * self.agents
        self.task = TASKS[choice("task", task, TASKS)](recipe, history)
        self.interval_s = real("interval_s", interval_s, 0.001, 100.0)
        self.interval_ns = round(self.interval_s * 1e9)
        self.per_ack = truth("per_ack", per_ack)
        self.max_episode_steps = None if max_episode_steps is None else whole("max_episode_steps", max_episode_steps, 1, 2**62)
        self.source = WorldSource(scenario, self.agents)
        self.set_reward(make_reward(self.task.default_reward if reward is None else reward))
        self.plant = SimPlant(self.worlds, self.agents, whole("threads", threads, 1, 1024))

        self.tracker = Tracker(self.rows, self.interval_s)
        self.history = History(self.rows, self.task.history, self.task.width)
        self.scenarios: list[Scenario | None] = [None] * self.worlds
        self.rewards = np.zeros(self.rows, np.float32)
        self.ended = np.zeros(self.worlds, bool)
        self.steps = np.zeros(self.worlds, np.int64)
        self._end_ns = np.zeros(self.worlds, np.int64)
        self._features = np.zeros((self.task.width, self.rows), np.float32)
        self._telemetry = self.plant.telemetry.reshape(self.rows, -1)
        self._control = self.plant.control.reshape(self.rows)
        self._alive = self.plant.agent_mask.reshape(self.rows)

    def episode_steps(self) -> int | None:
        """Decisions in every episode, or None when that is not fixed beforehand."""
        duration_s = self.source.duration_s
        return None if self.per_ack or duration_s is None else steps_of(duration_s, self.interval_ns)

    def reset_world(self, world: int, rng: np.random.Generator) -> None:
        """Starts a world anew; its scenario, if not fixed, and its seed are drawn from `rng`."""
        scenario, seed = draw_episode(self.source, rng)
        self.plant.reset(world, scenario, seed)
        rows = slice(world * self.agents, (world + 1) * self.agents)
        if self.scenarios[world] is not scenario:
            self.scenarios[world] = scenario
            self._end_ns[world] = round(scenario.duration_s * 1e9)
        controlled = [i for i, flow in enumerate(scenario.flows) if flow.cc == AGENT]
        capacity_bps = scenario.capacity_mbps * 1e6
        self.tracker.reset(
            rows,
            capacity_bps=capacity_bps,
            share_bps=capacity_bps / len(scenario.flows),
            base_rtt_s=[scenario.base_rtt_ms(i) * 1e-3 for i in controlled],
            initial_window=[scenario.flows[i].initial_cwnd_packets * MSS_BYTES for i in controlled],
            highest_window=highest_window_packets(scenario) * MSS_BYTES,
            mss_bytes=MSS_BYTES,
        )
        self.steps[world] = 0
        self.ended[world] = False

    def start_history(self, worlds: Sequence[int] | np.ndarray) -> None:
        """Makes the observation of freshly reset worlds: their first feature vector, as often as the history is deep."""
        first = self.task.observe(self.tracker, self._features)
        for world in worlds:
            rows = slice(world * self.agents, (world + 1) * self.agents)
            self.history.fill(rows, first[:, rows])

    def decide(self, actions: np.ndarray) -> None:
        """Applies checked actions, `(rows,)`, runs all worlds to their next decision, and observes and rewards.

        Raises:
            SimulatorFault: the simulator found its own state inconsistent.
        """
        self.task.decode(actions, self.tracker, self._control)
        if self.per_ack:
            self.plant.advance_to_ack(self.interval_ns)
        else:
            self.plant.advance(self.interval_ns)
        self.tracker.update(self._telemetry)
        self.history.push(self.task.observe(self.tracker, self._features))
        self.reward(self.tracker, self.terms)
        np.multiply(self.terms, self._alive, out=self.terms)
        np.sum(self.terms, axis=0, out=self.rewards)
        self.steps += 1
        np.greater_equal(self.plant.time_ns, self._end_ns, out=self.ended)
        if self.max_episode_steps is not None:
            self.ended |= self.steps >= self.max_episode_steps

    def set_reward(self, reward: Reward) -> None:
        """Rewards decisions from now on by another rule."""
        self.reward = reward
        self.terms = np.zeros((len(reward.terms), self.rows), np.float32)

    def report(self, world: int) -> list[dict[str, Any]]:
        """What each agent of a world achieved in its episode so far (`netbuf_gym.plants.sim.episode_report`)."""
        return self.plant.report(world)

    def show(self, row: int) -> dict[str, float]:
        """One sender's state for pictures: time in s, window in segments, RTT in ms, throughput in Mbit/s, queue."""
        last, world = self.tracker.last[:, row], row // self.agents
        return {
            "time_s": float(self.plant.time_ns[world]) * 1e-9,
            "cwnd_packets": float(self.tracker.cwnd[row]) / MSS_BYTES,
            "rtt_ms": float(last[RTT]) * 1e3,
            "throughput_mbps": float(last[THROUGHPUT]) * 1e-6,
            "queue_packets": float(last[QUEUE]),
        }

    def schema(self) -> dict[str, Any]:
        """Everything a saved model must agree with, JSON-able: compare with `netbuf_gym.tasks.require_schema`."""
        return {
            "telemetry": TELEMETRY.to_dict(),
            **self.task.to_dict(),
            "interval_s": self.interval_s,
            "per_ack": self.per_ack,
        }


def generator_of(seed: int | None) -> np.random.Generator:
    """The generator that a single world draws its episodes from when it is seeded by itself (None: at random)."""
    return seeding.np_random(seed)[0].spawn(1)[0]


def draw_episode(source: WorldSource, rng: np.random.Generator) -> tuple[Scenario, int]:
    """The next episode of a world: its scenario, and the seed of its simulator."""
    scenario = source.draw(rng)
    return scenario, int(rng.integers(MAX_SEED))


def steps_of(duration_s: float, interval_ns: int) -> int:
    """Decisions until `duration_s` is reached: the last interval is a whole one."""
    return max(1, -(-round(duration_s * 1e9) // interval_ns))
