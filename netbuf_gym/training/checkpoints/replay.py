"""Restoration of running worlds by replay, from the beginnings of their episodes and the actions since.

A simulated world has no state that could be written to a file, but it is deterministic: its scenario and seed are drawn
from a generator of its own, and after that only its agents' actions matter. `EpisodeRecorder` keeps, for every world, the
generator's state before the running episode was drawn, and the actions since; `replay` draws the same episodes again and
plays the same actions, all worlds in one batch, so that a long episode takes about as long as it took at first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import gymnasium as gym
import numpy as np

from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.scenarios.sources import WorldSource

MAX_BYTES = 1 << 29
"""Maximum size of the recorded actions in bytes; beyond it recording stops, and restored worlds start new episodes."""
_FIRST_STEPS = 256


@dataclass(frozen=True)
class RunningEpisodes:
    """The running episodes of all worlds.

    Attributes:
        draws: (worlds, 6) uint64, the generator of each world before its episode was drawn.
        lengths: (worlds,) int64, decisions since then.
        actions: (sum of lengths, agents, ...): actions of the running worlds, step by step.
        stages: (worlds,) int64, stage of the curriculum; None without one.
    """

    draws: np.ndarray
    lengths: np.ndarray
    actions: np.ndarray
    stages: np.ndarray | None = None


class EpisodeRecorder(gym.vector.VectorWrapper):
    """Records what `replay` needs of a `netbuf_gym.envs.vector_env.VectorEnv`; costs a copy of the actions per step.

    Args:
        env: Worlds.
        stages: World sources of the stages of a curriculum; empty: no curriculum.

    Attributes:
        recording: False if worlds cannot be replayed (their plant runs in real time), or would take too much memory.
    """

    def __init__(self, env: gym.vector.VectorEnv, stages: Sequence[WorldSource] = ()):
        super().__init__(env)
        self.native = cast(VectorEnv, env.unwrapped)
        space = env.single_action_space
        self._agents, self._worlds = self.native.engine.agents, self.native.worlds
        self.recording = self.native.engine.plant.virtual_time
        self._actions = np.zeros((_FIRST_STEPS, env.num_envs, *(space.shape or ())), _choose_dtype(space))
        self._step = self._oldest = 0
        self._began = np.zeros(self._worlds, np.int64)  # step at which each world's episode began
        self._draws, self._next_draws = np.zeros((2, self._worlds, 6), np.uint64)
        self._sources, self._stages = stages, np.zeros(self._worlds, np.int64)
        self.stage = 0
        if stages:
            self.set_stage(0)

    def set_stage(self, stage: int) -> None:
        """Set the stage of the curriculum of all worlds that begin from now on."""
        self.stage = stage
        self.native.engine.source = self._sources[stage]

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """See the environment's."""
        if not self.recording:
            return self.env.reset(seed=seed, options=options)
        mask = (options or {}).get("reset_mask")
        worlds = np.arange(self._worlds) if mask is None else np.flatnonzero(mask[:: self._agents])
        if seed is not None or not self._step:
            generators = self.native.generators(seed)
            self._next_draws[worlds] = [_pack_generator(generators[world]) for world in worlds]
        result = self.env.reset(options=options)
        self._begin(worlds)
        return result

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """See the environment's."""
        if not self.recording:
            return self.env.step(actions)
        if self._step - self._oldest >= len(self._actions):
            self._make_room()
        self._actions[self._step % len(self._actions)] = actions
        self._step += 1
        result = self.env.step(actions)
        ended = result[2] | result[3]
        if np.count_nonzero(ended):
            self._begin(np.flatnonzero(ended[:: self._agents]))
        return result

    def _begin(self, worlds: np.ndarray) -> None:
        generators = self.native.generators()
        for world in worlds.tolist():
            self._draws[world] = self._next_draws[world]
            self._next_draws[world] = _pack_generator(generators[world])
            self._began[world] = self._step
            self._stages[world] = self.stage

    def _make_room(self) -> None:
        """Drop the actions of episodes that are over, or else double the memory."""
        self._oldest = int(self._began.min())
        kept = np.arange(self._oldest, self._step)
        if 2 * len(kept) <= len(self._actions):
            return
        if 2 * self._actions.nbytes > MAX_BYTES:
            self.recording, self._actions = False, self._actions[:0]
            return
        room = np.zeros((2 * len(self._actions), *self._actions.shape[1:]), self._actions.dtype)
        room[kept % len(room)] = self._actions[kept % len(self._actions)]
        self._actions = room

    def get_running_episodes(self) -> RunningEpisodes | None:
        """Return the running episodes; None if they are not recorded."""
        if not self.recording:
            return None
        steps = np.arange(int(self._began.min()), self._step)
        taken = self._actions[steps % len(self._actions)]
        taken = taken.reshape(len(steps), self._worlds, self._agents, *taken.shape[2:])
        running = steps[:, None] >= self._began
        stages = self._stages.copy() if self._sources else None
        return RunningEpisodes(self._draws.copy(), self._step - self._began, taken[running], stages)

    def replay(self, episodes: RunningEpisodes) -> np.ndarray:
        """Replay episodes up to their lengths, and return the observations, `(rows, ...)`, at their ends.

        Raises:
            ValueError: The episodes have another number of worlds, or other actions or stages.
        """
        lengths, longest = episodes.lengths, int(episodes.lengths.max())
        shape = (int(lengths.sum()), self._agents, *self._actions.shape[2:])
        if episodes.draws.shape != self._draws.shape or lengths.shape != self._began.shape or lengths.min() < 0:
            raise ValueError(f"episodes of {len(lengths)} worlds, not of {self._worlds}")
        if episodes.actions.shape != shape or episodes.actions.dtype != self._actions.dtype:
            raise ValueError(f"actions of shape {episodes.actions.shape}, not {shape}")
        stages = np.zeros(self._worlds, np.int64) if episodes.stages is None else episodes.stages
        if stages.shape != lengths.shape or stages.min() < 0 or stages.max() >= max(len(self._sources), 1):
            raise ValueError(f"worlds of stages that a curriculum of {len(self._sources)} does not have")
        observations, _ = self.reset(seed=0)  # so that worlds exist whose episodes begin later
        batch = self._make_filler(episodes)
        position = 0
        for step in range(longest + 1):
            starting = lengths == longest - step
            if starting.any():
                for world in np.flatnonzero(starting).tolist():
                    _unpack_generator(self.native.generators()[world], episodes.draws[world])
                    self._next_draws[world] = episodes.draws[world]
                for stage in np.unique(stages[starting]).tolist():
                    if self._sources:
                        self.set_stage(stage)
                    of_stage = starting & (stages == stage)
                    observations, _ = self.reset(options={"reset_mask": of_stage.repeat(self._agents)})
            if step < longest:
                running = lengths >= longest - step
                count = int(running.sum())
                batch[running] = episodes.actions[position : position + count]
                position += count
                actions = batch.reshape(self.num_envs, *batch.shape[2:])
                observations, *_ = self.step(actions if actions.dtype.kind == "f" else actions.astype(np.int64))
        return observations

    def _make_filler(self, episodes: RunningEpisodes) -> np.ndarray:
        """Return actions for worlds whose episode has not begun: those steps are discarded."""
        filler = np.zeros((self._worlds, self._agents, *self._actions.shape[2:]), self._actions.dtype)
        if len(episodes.actions):
            filler[:] = episodes.actions[0]
        return filler


def _choose_dtype(space: gym.Space) -> np.dtype:
    """Return the smallest type that holds a space's actions."""
    if isinstance(space, gym.spaces.Discrete):
        return np.promote_types(np.min_scalar_type(int(space.start)), np.min_scalar_type(int(space.start + space.n - 1)))
    return np.dtype(space.dtype)


def _pack_generator(generator: np.random.Generator) -> list[int]:
    """Return a generator's state (PCG64, as Gymnasium's) as six numbers below 2**64."""
    state = generator.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise TypeError(f"a generator of kind {state['bit_generator']}, not PCG64")
    words = [part for key in ("state", "inc") for part in divmod(state["state"][key], 1 << 64)]
    return [*words, state["has_uint32"], state["uinteger"]]


def _unpack_generator(generator: np.random.Generator, words: np.ndarray) -> None:
    high, low, inc_high, inc_low, has_uint32, uinteger = map(int, words)
    generator.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": high << 64 | low, "inc": inc_high << 64 | inc_low},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
