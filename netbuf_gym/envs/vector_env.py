"""The native vector environment: many worlds stepped by one call of the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from netbuf_gym.envs.engine import (
    MAX_SEED,
    Engine,
    check_info,
    check_options,
    make_generator,
    pop_agents,
)
from netbuf_gym.envs.registration import TaskIdCheck
from netbuf_gym.envs.rendering import Recorder, frames_per_second
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.utils.arguments import check_boolean, check_choice, check_integer
from netbuf_gym.utils.thread_guard import CopiedUntilStarted, exclusive_method


class VectorEnv(CopiedUntilStarted, TaskIdCheck, gym.vector.VectorEnv):
    """Many agents as the rows of one vector environment, for all tasks.

    `gym.make_vec(id, num_envs=1024, threads=1, ...)` makes one. With `agents = N` every world has N controlled agents, and
    the rows are these agents, world by world (row = world * N + agent): one policy shared by all. A world resets as a unit.

    Worlds end by truncation when their scenario's duration is over (the last interval is a whole one), after
    `max_episode_steps` decisions, or when they fail, which is possible with some plants: the report's `failure` is the reason.
    Worlds terminate when their task ends for good. How ended worlds go on is `autoreset_mode`, as in Gymnasium:

    * `"SameStep"`: they are reset in the same step. The observation returned is the new episode's first,
      `info["final_obs"]` holds the old episode's last and `info["final_info"]` its report.
    * `"NextStep"`: the step returns the old episode's last observation, with its report in `info`. The next one ignores their
      actions and returns the new episode's first observation, reward 0 and neither end. Most of Gymnasium's vector wrappers
      need this mode or the next.
    * `"Disabled"`: likewise, and `reset(options={"reset_mask": ...})` must come before the next step.

    Entries of `info` have a mask under `_` and their name; without requested ones it is empty as long as no episode ends.
    A world that does not start again has failed: the next step truncates it with the reason, and no report, and tries again.
    `reset()` itself raises.

    Every world draws its scenarios and seeds from a generator of its own, spawned from `np_random`; the results depend
    on the seed alone, not on `threads`. `reset()` without a seed continues with these generators.

    Args:
        num_envs: Number of rows; a multiple of `agents`.
        agents: Agents in each world; tasks may have a name of their own for this argument, e.g. `senders`.
        threads: Threads that step the worlds.
        copy: Return new arrays each step. If False, observations alternate between two buffers, and one stays valid
            until the step after the next.
        max_episode_steps: End episodes after this many decisions, if the scenario has not ended before.
        render_mode: `"ansi"` or `"rgb_array"`: `render()` then returns one picture for each row; or None.
        info: Further entries of every step's `info`, `"reward_terms"`, `"telemetry"` or both in a list: dicts of arrays
            `(num_envs,)` by term or field, with masks under `_` and their names. They describe the decision just made, even in
            rows whose episode it ended; for these rows `final_info` also has them. Telemetry, which a reset's `info` has too,
            is NaN where nothing was measured.
        autoreset_mode: A `gymnasium.vector.AutoresetMode`, its value, or its name (`"NEXT_STEP"`).
        kwargs: Arguments as for the scalar environment, see `netbuf_gym.tasks`.

    Raises:
        ConfigError: An argument is out of range; the message names the argument, its value and the valid ones.
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 10, "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(
        self,
        num_envs: int = 1,
        *,
        threads: int = 1,
        copy: bool = True,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        info: str | Sequence[str] = (),
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        **kwargs: Any,
    ):
        modes = {name: mode.value for name, mode in AutoresetMode.__members__.items()}
        mode = autoreset_mode.value if isinstance(autoreset_mode, AutoresetMode) else autoreset_mode
        mode = modes[mode] if isinstance(mode, str) and mode in modes else mode
        self.autoreset_mode = AutoresetMode(check_choice("autoreset_mode", mode, list(modes.values())))
        self._arguments = {
            "num_envs": num_envs,
            "threads": threads,
            "copy": copy,
            "max_episode_steps": max_episode_steps,
            "render_mode": render_mode,
            "info": info,
            "autoreset_mode": mode,
            **kwargs,
        }
        if render_mode is not None:
            check_choice("render_mode", render_mode, self.metadata["render_modes"])
        name, agents = pop_agents(kwargs)
        num_envs = check_integer("num_envs", num_envs, 1, 1 << 20)
        if num_envs % agents:
            raise ConfigError(f"num_envs = {num_envs} is no multiple of {name} = {agents}, and a world has that many rows")
        self.copy = check_boolean("copy", copy)
        self._info_names = check_info(info)
        self.engine = Engine(num_envs // agents, agents=agents, threads=threads, max_episode_steps=max_episode_steps, **kwargs)
        self.num_envs = num_envs
        self.single_observation_space = self.engine.task.observation_space
        self.single_action_space = self.engine.task.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._buffers = np.zeros((2, num_envs, *self.engine.task.observation_space.shape), np.float32)
        self._buffer = 0
        self.render_mode = render_mode
        self._recorders = [Recorder(self.engine.task) for _ in range(num_envs if render_mode is not None else 0)]
        fps = frames_per_second(self.engine.interval_s, self.engine.task.fixed_steps)
        self.metadata = {**self.metadata, "render_fps": fps, "autoreset_mode": self.autoreset_mode}
        self._generators: Any = None  # a list, once there is a seed
        self._started = False
        self._over = np.zeros(self.engine.worlds, bool)
        """Worlds that have ended and were not reset."""

    @property
    def worlds(self) -> int:
        """Number of worlds, `num_envs / agents`."""
        return self.engine.worlds

    def generators(self, seed: int | Sequence[int] | None = None) -> list[np.random.Generator]:
        """Return the generators of the worlds' episodes: seeded as by `reset(seed=seed)`, or as they are."""
        self._seed_generators(seed, np.arange(self.worlds))
        return self._generators

    @exclusive_method
    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start new episodes.

        Args:
            seed: An int seeds all worlds; a sequence of ints, one for each world, gives world i the episodes of the
                scalar environment reset with `seed[i]`; None continues with the generators as they are.
            options: `{"reset_mask": bool array (num_envs,)}` resets (and seeds) the worlds of the marked rows only.

        Returns:
            observations `(num_envs, ...)`, and a dict: `plant`, a description of each live world's platform, and on request
            `telemetry`.

        Raises:
            ConfigError: An option is unknown, or a mask has a wrong shape or type, is empty, or splits a world.
            PlantFault: A world does not start.
        """
        worlds = self._masked_worlds(options)
        self._seed_generators(seed, worlds)
        for world in worlds.tolist():
            self.engine.reset_world(world, self._generators[world])
        self._begin_episodes(worlds)
        self._started, self.closed = True, False
        info = self._describe_platforms(worlds)
        if "telemetry" in self._info_names:
            rows = np.zeros((self.worlds, self.engine.agents), bool)
            rows[worlds] = True
            info |= self._requested_info(rows.ravel(), ["telemetry"])
        return self.engine.history.read(self._next_buffer()), info

    @exclusive_method
    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Make one decision for every agent.

        Args:
            actions: Actions `(num_envs, ...)` of the action space.

        Returns:
            observations `(num_envs, ...)` float32, rewards float32, terminated bool, truncated bool, info.

        Raises:
            ConfigError: Actions have a wrong shape or type, are NaN, or (discrete ones) are out of range.
            SimulatorFault, PlantFault: The plant cannot go on; it is closed.
            gymnasium.error.ResetNeeded: The call comes before the first reset of all worlds, or with autoreset disabled
                before that of a world that has ended.
            BusyError: Another thread is in `step` or `reset`.
        """
        if not self._started:
            raise gym.error.ResetNeeded("reset() must come before step()")
        engine = self.engine
        waiting = np.flatnonzero(self._over)
        if waiting.size and self.autoreset_mode == AutoresetMode.DISABLED:
            raise gym.error.ResetNeeded(
                f"worlds {waiting.tolist()} have ended: reset(options=...) of them must come before step()"
            )
        engine.decide(engine.task.check_actions(actions, self.num_envs))
        for row, recorder in enumerate(self._recorders):
            recorder.add(engine.show(row))
        rewards, info = engine.rewards.copy(), {}
        decided = np.repeat(~self._over, engine.agents)
        if waiting.size:  # the plant runs all worlds; how these went on counts for nothing
            self._restart_worlds(waiting)
            rewards[~decided] = 0
        terminated, truncated = engine.terminated.repeat(engine.agents), engine.truncated.repeat(engine.agents)
        if self._info_names:
            info = self._requested_info(decided, self._info_names)
        self._over[:] = engine.ended
        if np.count_nonzero(engine.ended):
            worlds, rows = np.flatnonzero(engine.ended), engine.ended.repeat(engine.agents)
            if self.autoreset_mode == AutoresetMode.SAME_STEP:
                info |= self._final_info(worlds, rows)
                self._restart_worlds(worlds)
                self._over[:] = False
            else:
                info |= self._reports(worlds, rows)
        return engine.history.read(self._next_buffer()), rewards, terminated, truncated, info

    def render(self) -> tuple[str | np.ndarray, ...] | None:
        """Return a picture of each row's episode so far, drawn as by the scalar environment."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode; valid: ansi, rgb_array")
            return None
        return tuple(one.ansi() if self.render_mode == "ansi" else one.rgb_array() for one in self._recorders)

    def close_extras(self, **kwargs: Any) -> None:
        """Close the plant, if there is one yet; called once, by `close`."""
        if "engine" in vars(self):
            self.engine.close()

    def _restart_worlds(self, worlds: np.ndarray) -> None:
        for world in worlds.tolist():
            self.engine.restart_world(world, self._generators[world])
        self._begin_episodes(worlds)

    def _begin_episodes(self, worlds: np.ndarray) -> None:
        """Begin the history and clear the pictures of worlds that were reset."""
        self.engine.start_history(worlds)
        self._over[worlds] = False
        agents = self.engine.agents
        for recorder in (one for world in worlds.tolist() for one in self._recorders[world * agents : (world + 1) * agents]):
            recorder.start()

    def _next_buffer(self) -> np.ndarray:
        if self.copy:
            return np.empty(self._buffers.shape[1:], np.float32)
        self._buffer ^= 1
        return self._buffers[self._buffer]

    def _requested_info(self, rows: np.ndarray, names: Sequence[str]) -> dict[str, Any]:
        """Return these entries of the last decision in these rows, with masks as in Gymnasium's vector environments."""
        info: dict[str, Any] = {}
        for name in names:
            values = self.engine.step_info(name)
            info[name], info[f"_{name}"] = values | {f"_{key}": rows.copy() for key in values}, rows.copy()
        return info

    def _describe_platforms(self, worlds: np.ndarray) -> dict[str, Any]:
        """Return descriptions of the platforms of worlds just reset, with a mask; empty if there are none."""
        platforms = {world: about for world in worlds.tolist() if (about := self.engine.plant.about(world))}
        if not platforms:
            return {}
        rows = np.arange(self.num_envs) // self.engine.agents
        known = np.array([row in platforms for row in rows.tolist()])
        return {"plant": np.array([dict(platforms.get(row, {})) for row in rows.tolist()], object), "_plant": known}

    def _final_info(self, worlds: np.ndarray, rows: np.ndarray) -> dict[str, Any]:
        """Return last observations and reports of ended worlds, with masks as in Gymnasium's vector environments."""
        indices = np.flatnonzero(rows)
        final_obs = np.full(self.num_envs, None, dtype=object)
        for row, observation in zip(indices, self.engine.history.read_rows(indices), strict=True):
            final_obs[row] = observation
        final_info = self._requested_info(rows, self._info_names) | self._reports(worlds, rows)
        return {"final_obs": final_obs, "_final_obs": rows.copy(), "final_info": final_info, "_final_info": rows.copy()}

    def _reports(self, worlds: np.ndarray, rows: np.ndarray) -> dict[str, Any]:
        """Return reports of ended worlds, a column an entry, with masks as in Gymnasium's vector environments."""
        indices = np.flatnonzero(rows)
        failures = self.engine.failures
        reports = []
        for world in worlds.tolist():
            why = {"failure": failures[world]} if world in failures else {}
            reports += [{**report, **why} for report in self.engine.report(world)]
        columns: dict[str, Any] = {}
        for key in dict.fromkeys(key for report in reports for key in report):
            has = [key in report for report in reports]
            at = indices if all(has) else indices[has]
            values = [report[key] for report in reports if key in report]
            if all(isinstance(value, (bool, int, float, np.number)) for value in values):
                numbers = np.array(values)
                column = np.zeros(self.num_envs, numbers.dtype)
                column[at] = numbers
            else:
                column = np.full(self.num_envs, None, object)
                for row, value in zip(at.tolist(), values, strict=True):
                    column[row] = value
            mask = np.zeros(self.num_envs, bool)
            mask[at] = True
            columns[key], columns[f"_{key}"] = column, mask
        return columns

    def _masked_worlds(self, options: dict[str, Any] | None) -> np.ndarray:
        mask = check_options(options, ["reset_mask"]).get("reset_mask")
        if mask is None:
            return np.arange(self.worlds)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            shape = f"{mask.dtype} {mask.shape}" if isinstance(mask, np.ndarray) else quote(mask)
            raise ConfigError(f"reset_mask = {shape}; valid: a bool array of shape ({self.num_envs},)")
        by_world = mask.reshape(self.worlds, -1)
        if not mask.any():
            raise ConfigError("reset_mask is False everywhere; valid: at least one True")
        if (by_world.any(axis=1) != by_world.all(axis=1)).any():
            world = int(np.flatnonzero(by_world.any(axis=1) != by_world.all(axis=1))[0])
            raise ConfigError(f"reset_mask splits world {world}; valid: all {self.engine.agents} agents of a world or none")
        if (not self._started or self.engine.closed) and not mask.all():
            raise gym.error.ResetNeeded("the first reset() must be of all worlds")
        return np.flatnonzero(by_world[:, 0])

    def _seed_generators(self, seed: int | Sequence[int] | None, worlds: np.ndarray) -> None:
        if seed is None and self._generators is not None:
            return
        if seed is None or isinstance(seed, (int, np.integer)):
            super().reset(seed=None if seed is None else int(seed))
            streams = self.np_random.spawn(self.worlds)
        else:
            if not isinstance(seed, (Sequence, np.ndarray)) or isinstance(seed, str):
                raise ConfigError(f"seed = {quote(seed)}; valid: an integer, or one for each of {self.worlds} worlds")
            if len(seed) != self.worlds:
                raise ConfigError(f"seed has {len(seed)} values; valid: one, or one for each of {self.worlds} worlds")
            streams = [make_generator(check_integer(f"seed[{k}]", one, 0, MAX_SEED - 1)) for k, one in enumerate(seed)]
        if self._generators is None:
            self._generators = streams
        for world in worlds:
            self._generators[world] = streams[world]
