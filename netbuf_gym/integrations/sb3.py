"""Gymnasium vector environments for stable-baselines3.

Stable-baselines3 has a vector interface of its own (`VecEnv`: lists of dictionaries, `terminal_observation`) and does not
accept a Gymnasium `VectorEnv`. `VectorEnvAdapter` passes the arrays on without copying them and adds the
entries that stable-baselines3 expects, episode statistics (as `VecMonitor`) included.

    env = VectorEnvAdapter(gym.make_vec("netbuf/CongestionWindow-v0", num_envs=64, scenario="ppcc/4"))
    model = stable_baselines3.PPO("MlpPolicy", env)

Needs stable-baselines3 (`pip install netbuf-gym[train]`); nothing else in the package imports this module.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from threading import get_ident
from typing import Any, NamedTuple, cast

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.env_util import is_wrapped
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from netbuf_gym.errors import BusyError, ConfigError
from netbuf_gym.utils.thread_guard import Turn, Uncopyable

ONE_THREAD = "valid: one thread at a time, so an environment for each thread, or a threading.Lock around its calls"
FIRST_EVALUATION_SEED = 1_000_000
"""First seed of evaluations; the training seeds of twins are drawn below it."""


class BatchStep(NamedTuple):
    """One step of all worlds, as arrays.

    Attributes:
        observations: (worlds, ...) after the step; of the next episode's start where one ended.
        rewards: (worlds,).
        dones: (worlds,) bool, terminated or truncated.
        truncated_worlds: Indices of the worlds that were truncated and not terminated.
        truncated_observations: (len(truncated_worlds), ...) last observations of these worlds.
        episodes: `{"r": return, "l": steps, "t": seconds since the adapter was made}` and the `info_keywords` of each
            episode that ended.
        terminated, truncated: (worlds,) bool.
        info: The vector environment's own info.
    """

    observations: np.ndarray
    rewards: np.ndarray
    dones: np.ndarray
    truncated_worlds: np.ndarray
    truncated_observations: np.ndarray
    episodes: list[dict[str, Any]]
    terminated: np.ndarray
    truncated: np.ndarray
    info: dict[str, Any]


class VectorEnvAdapter(Uncopyable, VecEnv):
    """A Gymnasium `VectorEnv` as a stable-baselines3 `VecEnv`.

    Observations are the environment's own arrays; they are copied only where the environment reuses the same memory
    each step, which would overwrite arrays that the learner still holds. An ended episode's info carries
    `terminal_observation`, `TimeLimit.truncated` (truncated and not terminated), `episode` (`r`, `l`, `t` as `VecMonitor`'s)
    and the environment's `final_info`. Statistics cover whole episodes: those running when the adapter is reset are dropped.

    Args:
        env: Vector environment with autoreset mode SAME_STEP.
        step_infos: Also return the info of worlds whose episode goes on, one dictionary per world. Costs Python time
            in proportion to the worlds, so off by default.
        info_keywords: Entries of `final_info` to copy into an episode's statistics, where present.
        stagger_steps: Spread the worlds' episode starts evenly over this many steps, so that a learner's short rollouts
            do not all show the same part of an episode. `reset` then makes that many steps with random actions, and
            resets the worlds one group after the other (option `reset_mask`). 0: all start together.
        twins: Number of adjacent worlds with the same episodes. The learner's reward is then a world's reward less the mean
            over its twins, interval by interval; statistics keep the original rewards. Where paths and traffic vary much,
            they cause most of a reward's variance, independently of the agent: an
            input-dependent baseline (Mao et al., "Variance reduction for reinforcement learning in input-driven
            environments", ICLR 2019). Episodes must be of equal length: a step raises ConfigError where they are not. 1: no
            twins.

    Raises:
        TypeError: `env` is not a vector environment.
        ValueError: The autoreset mode is not SAME_STEP, `stagger_steps` is negative, or the worlds are not divisible into
            `twins`.
    """

    def __init__(
        self,
        env: gym.vector.VectorEnv,
        step_infos: bool = False,
        info_keywords: Sequence[str] = (),
        stagger_steps: int = 0,
        twins: int = 1,
    ):
        if not isinstance(env, gym.vector.VectorEnv):
            raise TypeError(f"env must be a gymnasium.vector.VectorEnv, not {type(env).__name__}")
        mode = env.metadata.get("autoreset_mode")
        if mode != AutoresetMode.SAME_STEP:
            raise ValueError(f"env.metadata['autoreset_mode'] must be AutoresetMode.SAME_STEP, not {mode}")
        if stagger_steps < 0:
            raise ValueError(f"stagger_steps = {stagger_steps!r} is out of range; valid: 0 or more")
        worlds = getattr(env.unwrapped, "worlds", env.num_envs)  # several agents of a world have rows of their own
        if not 1 <= twins <= worlds or worlds % twins:
            raise ValueError(f"twins = {twins!r} does not divide {worlds} worlds; valid: a divisor of them")
        self.env = env
        self.twins = twins
        self._agents = env.num_envs // worlds
        self.step_infos = step_infos
        self.info_keywords = tuple(info_keywords)
        self.stagger_steps = stagger_steps
        self._seed: int | None = None
        self._actions: Any = None
        self._sender = 0  # the thread that sent the actions
        self._turn = Turn()
        self._latest = np.empty(0)  # the environment's latest observations, kept so that their memory is not reused
        self._returns = np.zeros(env.num_envs)
        self._lengths = np.zeros(env.num_envs, dtype=np.int64)
        self._started = time.time()
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seed the next `reset`; None draws a seed. The vector environment derives each world's seed from this one."""
        seeds = super().seed(seed)
        self._seed = seeds[0]
        return seeds

    def reset(self) -> np.ndarray:
        """Return the first observations, (worlds, ...). Reseeds only after `seed`."""
        with self._turn:
            return self._reset()

    def _reset(self) -> np.ndarray:
        options = self._options[0]
        if any(other != options for other in self._options):
            raise ValueError("options must be the same for all worlds of a batch")
        observations, self.reset_info = self.env.reset(seed=self._world_seeds(), options=options or None)
        if self._seed is not None:
            self.env.action_space.seed(self._seed)
        self._seed = None
        self._reset_seeds()
        self._reset_options()
        self._returns[:] = 0.0
        self._lengths[:] = 0
        self.reset_infos = [{} for _ in range(self.num_envs)]
        if self.stagger_steps:
            observations = self._stagger_starts(observations)
        return self._copy_if_reused(observations)

    def _world_seeds(self) -> Any:
        """Return the seed, or seeds, for the vector environment: one for each world where worlds have twins."""
        if self.twins == 1 or (self._seed is None and len(self._latest)):
            return self._seed
        groups = self.num_envs // self._agents // self.twins
        seeds = np.random.default_rng(self._seed).integers(FIRST_EVALUATION_SEED, size=groups)
        return np.repeat(seeds, self.twins).tolist()

    def _stagger_starts(self, observations: np.ndarray) -> np.ndarray:
        """Take random steps, after each of which the next group of worlds starts anew."""
        together = self._agents * self.twins
        start_after = np.arange(self.num_envs) // together * together * self.stagger_steps // self.num_envs
        for step in range(self.stagger_steps):
            observations, rewards, terminated, truncated, _ = self.env.step(self.env.action_space.sample())
            self._returns += rewards
            self._lengths += 1
            group = start_after == step
            begun = group | terminated | truncated
            self._returns[begun], self._lengths[begun] = 0.0, 0
            if group.any():
                observations, _ = self.env.reset(options={"reset_mask": group})
        return observations

    def step_batch(self, actions: np.ndarray) -> BatchStep:
        """Step in arrays, without a list over worlds: used by batched learners in place of `step`."""
        with self._turn:
            return self._step_batch(actions)

    def _step_batch(self, actions: np.ndarray) -> BatchStep:
        observations, rewards, terminated, truncated, info = self.env.step(actions)
        self._returns += rewards
        self._lengths += 1
        dones = terminated | truncated
        if self.twins > 1:
            self._require_equal_lengths(dones)
        done_worlds = np.flatnonzero(dones)
        episodes: list[dict[str, Any]] = []
        cut_short = np.empty(0, dtype=np.intp)
        final = np.empty((0, *(self.observation_space.shape or ())), dtype=self.observation_space.dtype)
        if len(done_worlds):
            elapsed = round(time.time() - self._started, 6)
            columns = {
                "r": self._returns[done_worlds].tolist(),
                "l": self._lengths[done_worlds].tolist(),
                "t": [elapsed] * len(done_worlds),
            }
            reports = info.get("final_info", {})
            columns |= {key: reports[key][done_worlds].tolist() for key in self.info_keywords if key in reports}
            episodes = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
            self._returns[done_worlds] = 0.0
            self._lengths[done_worlds] = 0
            cut_short = np.flatnonzero(truncated & ~terminated)
            if len(cut_short):
                final = _stack_rows(info["final_obs"], cut_short)
        if self.twins > 1:
            rewards = self._subtract_twin_mean(rewards)
        return BatchStep(
            self._copy_if_reused(observations), rewards, dones, cut_short, final, episodes, terminated, truncated, info
        )

    def _require_equal_lengths(self, dones: np.ndarray) -> None:
        """Raise ConfigError where twins end apart, since they would then be compared on different paths."""
        groups = dones.reshape(-1, self.twins * self._agents)
        if (groups != groups[:, :1]).any():
            valid = "1, or episodes of one length"
            raise ConfigError(f"twins = {self.twins}: episodes of the same paths end apart; valid: {valid}")

    def _subtract_twin_mean(self, rewards: np.ndarray) -> np.ndarray:
        """Return each world's reward less the mean over its twins, itself included, (worlds,)."""
        groups = rewards.reshape(-1, self.twins, self._agents)
        return (groups - groups.mean(axis=1, keepdims=True)).reshape(-1)

    def statistics(self) -> dict[str, np.ndarray]:
        """Return the returns and lengths so far of the episodes in progress, (worlds,) each."""
        return {"returns": self._returns.copy(), "lengths": self._lengths.copy()}

    def set_statistics(self, statistics: dict[str, np.ndarray]) -> None:
        """Restore counts that `statistics` returned."""
        self._returns[:], self._lengths[:] = statistics["returns"], statistics["lengths"]

    def step_async(self, actions: np.ndarray) -> None:
        """Store the actions, (worlds, ...).

        Raises:
            BusyError: Another thread's actions wait for its `step_wait`.
        """
        if self._actions is not None and self._sender != get_ident():
            raise BusyError(f"a step of another thread has not come to its end; {ONE_THREAD}")
        self._actions, self._sender = actions, get_ident()

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Return (observations, rewards float32, dones, infos) of the step."""
        if self._sender != get_ident():
            raise BusyError(f"the actions are another thread's; {ONE_THREAD}")
        try:
            batch = self.step_batch(self._actions)
        finally:
            self._actions = None
        infos: list[dict[str, Any]]
        if self.step_infos:
            infos = [_world_info(batch.info, world) for world in range(self.num_envs)]
        else:
            infos = [{} for _ in range(self.num_envs)]
        for episode, world in zip(batch.episodes, np.flatnonzero(batch.dones).tolist(), strict=True):
            infos[world].update(_world_info(batch.info.get("final_info", {}), world))
            infos[world]["terminal_observation"] = np.array(batch.info["final_obs"][world])
            infos[world]["TimeLimit.truncated"] = bool(batch.truncated[world] and not batch.terminated[world])
            infos[world]["episode"] = episode
        return batch.observations, batch.rewards.astype(np.float32), batch.dones, infos

    def _copy_if_reused(self, observations: np.ndarray) -> np.ndarray:
        """Return the observations, copied if they share memory with the previous ones."""
        reused = observations.__array_interface__["data"] == self._latest.__array_interface__["data"]
        self._latest = observations
        return observations.copy() if reused else observations

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    @property
    def _gymnasium_env(self) -> Any:
        """Gymnasium's own vector environment, which holds an object for each world."""
        return self.env.unwrapped

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return the attribute, once for each index: the worlds of a native batch share one object."""
        if hasattr(self.env.unwrapped, "envs"):  # gymnasium's SyncVectorEnv: an object per world
            values = self._gymnasium_env.get_attr(attr_name)
            return [values[index] for index in self._get_indices(indices)]
        return [_find_attribute(self.env, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set the attribute; for all worlds, since those of a native batch share one object."""
        if indices is not None and len(set(self._get_indices(indices))) != self.num_envs:
            raise ValueError("indices must be None: the worlds of a batch share their attributes")
        if hasattr(self.env.unwrapped, "envs"):
            self._gymnasium_env.set_attr(attr_name, value)
        else:
            setattr(self.env.unwrapped, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any) -> list[Any]:
        """Call the method: of each world where the environment has an object per world, else once, of the batch."""
        wanted = list(self._get_indices(indices))
        if hasattr(self.env.unwrapped, "envs"):
            results = self._gymnasium_env.call(method_name, *method_args, **method_kwargs)
            return [results[index] for index in wanted]
        return [_find_attribute(self.env, method_name)(*method_args, **method_kwargs)] * len(wanted)

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper], indices: VecEnvIndices = None) -> list[bool]:
        """Return True for `Monitor`, whose part the adapter plays; else whether each world is wrapped in the class."""
        if issubclass(wrapper_class, Monitor):
            return [True for _ in self._get_indices(indices)]
        worlds = getattr(self.env.unwrapped, "envs", None)
        if worlds is None:
            return [False for _ in self._get_indices(indices)]
        return [is_wrapped(worlds[index], wrapper_class) for index in self._get_indices(indices)]

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Return the environment's frames, one for each world that it renders."""
        frames = self.env.render()
        return [] if frames is None else list(cast(Any, frames))


def _stack_rows(values: Any, worlds: np.ndarray) -> np.ndarray:
    """Return rows of an array over worlds, which may be one of objects (Gymnasium's own vector environments)."""
    picked = values[worlds]
    return np.stack(picked) if picked.dtype == object else picked


def _world_info(info: dict[str, Any], world: int) -> dict[str, Any]:
    """Return one world's part of a vector info: entries whose mask `_key` is absent or true."""
    picked = {}
    for key, value in info.items():
        if key.startswith("_") or key in ("final_obs", "final_info"):
            continue
        if f"_{key}" in info and not info[f"_{key}"][world]:
            continue
        if isinstance(value, dict):
            picked[key] = _world_info(value, world)
        elif isinstance(value, Iterable) and not isinstance(value, str):
            picked[key] = cast(Any, value)[world]
        else:
            picked[key] = value
    return picked


def _find_attribute(env: Any, name: str) -> Any:
    """Return an attribute of the outermost layer that has it."""
    layer = env
    while not hasattr(layer, name):
        inner = getattr(layer, "env", None)
        if inner is None:
            raise AttributeError(f"{type(env.unwrapped).__name__} has no attribute {name!r}")
        layer = inner
    return getattr(layer, name)
