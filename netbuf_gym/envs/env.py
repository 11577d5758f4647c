"""The scalar environment of all tasks: an engine of one world in Gymnasium's `Env` interface."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from netbuf_gym.envs.engine import Engine, check_info, check_options, pop_agents
from netbuf_gym.envs.registration import TaskIdCheck
from netbuf_gym.envs.rendering import Recorder, frames_per_second
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.utils.arguments import check_choice
from netbuf_gym.utils.thread_guard import CopiedUntilStarted, exclusive_method


class Env(CopiedUntilStarted, TaskIdCheck, gym.Env):
    """One world of any task.

    The task defines control, observations, rewards and most arguments: the class docstrings of tasks are the
    reference pages of the environments `netbuf/CongestionWindow-v0`, `netbuf/HostBuffers-v0`, `netbuf/QueueThreshold-v0` and
    `netbuf/ReceiverWindow-v0` (`netbuf_gym.envs.registration.environment_table`).

    Args:
        task: Name of the task; None: the first that was registered.
        max_episode_steps: Truncate after this many decisions, with the report, as the vector environment does; None: never.
        render_mode: `"ansi"` or `"rgb_array"`, or None.
        info: Further entries of every `info`: `"telemetry"`, the values of the property `telemetry`. The terms of the reward,
            `info["reward_terms"]`, are in that of every step.
        kwargs: The task's arguments.

    Raises:
        ConfigError: An argument is out of range; the message names the argument, its value and the valid ones.
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 10}

    def __init__(self, *, render_mode: str | None = None, info: str | Sequence[str] = (), **kwargs: Any):
        if render_mode is not None:
            check_choice("render_mode", render_mode, self.metadata["render_modes"])
        self._arguments = {"render_mode": render_mode, "info": info, **kwargs}
        name, agents = pop_agents(kwargs)
        if agents != 1:
            raise ConfigError(
                f"{name} = {quote(agents)}; valid here: 1 (for more: gym.make_vec, or netbuf_gym.envs.parallel_env)"
            )
        self.render_mode = render_mode
        self._reports_telemetry = "telemetry" in check_info(info)
        self.engine = Engine(1, **kwargs)
        self.observation_space = self.engine.task.observation_space
        self.action_space = self.engine.task.action_space
        self._generator: np.random.Generator | None = None
        self._recorder = Recorder(self.engine.task)
        fps = frames_per_second(self.engine.interval_s, self.engine.task.fixed_steps)
        self.metadata = {**self.metadata, "render_fps": fps}

    @property
    def out_of_time(self) -> bool:
        """Whether the scenario's duration is over, `max_episode_steps` decisions were made, or the world has failed."""
        return bool(self.engine.truncated[0])

    @property
    def telemetry(self) -> dict[str, float]:
        """Measurements of the last interval, by name and in SI units; NaN where nothing was measured."""
        return dict(zip(self.engine.task.telemetry.names, self.engine.tracker.now[:, 0].tolist(), strict=True))

    def report(self) -> dict[str, Any]:
        """Return the report on the episode so far, as in the last step's `info`."""
        return self.engine.report(0)[0]

    @exclusive_method
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Start a new episode; see Gymnasium. There are no options.

        `info["scenario"]` names the world drawn, `info["plant"]` describes the platform of a live one, and on request
        `info["telemetry"]` is what was measured before the first decision.
        """
        super().reset(seed=seed)
        check_options(options)
        if seed is not None or self._generator is None:
            self._generator = self.np_random.spawn(1)[0]
        self.engine.reset_world(0, self._generator)
        self.engine.start_history([0])
        self._recorder.start()
        info: dict[str, Any] = {"scenario": self.engine.scenarios[0].name}
        if about := self.engine.plant.about(0):
            info["plant"] = dict(about)
        if self._reports_telemetry:
            info["telemetry"] = self.telemetry
        return self._observation(), info

    @exclusive_method
    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Make one decision; see Gymnasium. A world that fails is truncated, with the reason in `info["failure"]`.

        Raises:
            ConfigError: The action has a wrong shape or type, is NaN, or (a discrete one) is out of range.
            SimulatorFault, PlantFault: The plant cannot go on; it is closed.
            gymnasium.error.ResetNeeded: The call comes before the first reset, or after the world has failed.
            BusyError: Another thread is in `step` or `reset`.
        """
        if self._generator is None:
            raise gym.error.ResetNeeded("reset() must come before step()")
        engine = self.engine
        if engine.failures:
            raise gym.error.ResetNeeded(f"the world has failed ({engine.failures[0]}): reset() must come before step()")
        engine.decide(engine.task.check_actions(engine.task.check_single_action(action), 1))
        if self.render_mode is not None:
            self._recorder.add(engine.show(0))
        info: dict[str, Any] = {"reward_terms": dict(zip(engine.reward.terms, engine.terms[:, 0].tolist(), strict=True))}
        if self._reports_telemetry:
            info["telemetry"] = self.telemetry
        if engine.ended[0]:
            info.update(self.report())
        if engine.failures:
            info["failure"] = engine.failures[0]
        truncated = self.out_of_time and (engine.max_episode_steps is not None or bool(engine.failures))
        return self._observation(), float(engine.rewards[0]), bool(engine.terminated[0]), truncated, info

    def render(self) -> str | np.ndarray | None:
        """Draw the episode so far: a line of text, or charts of the task's panels over the last decisions.

        Charts are drawn by Matplotlib where it is installed, else by numpy, and all have one shape. A video of them at
        `metadata["render_fps"]` runs as fast as the world did.
        """
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode; valid: ansi, rgb_array")
            return None
        return self._recorder.ansi() if self.render_mode == "ansi" else self._recorder.rgb_array()

    def close(self) -> None:
        """Close the plant; calling this again, or after an error, has no effect."""
        self.engine.close()

    def _observation(self) -> np.ndarray:
        out = np.empty((1, *self.engine.task.observation_space.shape), np.float32)
        return self.engine.history.read(out)[0]


def make(**kwargs: Any) -> gym.Env:
    """Return an `Env` within the time limit that its scenario sets: the entry point of the registry."""
    env = Env(**{"max_episode_steps": find_step_limit(), **kwargs})
    steps = env.engine.episode_steps()
    if steps is not None:
        return gym.wrappers.TimeLimit(env, steps)
    from netbuf_gym.wrappers.duration import DurationLimit

    return DurationLimit(env)


def find_step_limit() -> int | None:
    """Return the `max_episode_steps` of the `gym.make` that is making an environment; None: it has none.

    Gymnasium does not pass the argument on, and its `TimeLimit` truncates around an environment that does not know that this
    step is its last, and would not report. It is therefore read from the frame of `gym.make`: a wrapper in the spec
    (`additional_wrappers`), the only public place around `TimeLimit`, makes `gym.make_vec` refuse the native environment.
    """
    frame = inspect.currentframe()
    while frame is not None and frame.f_code is not gym.make.__code__:
        frame = frame.f_back
    made = {} if frame is None else frame.f_locals
    limit = made.get("max_episode_steps")
    if limit is None:
        limit = getattr(made.get("env_spec"), "max_episode_steps", None)
    return limit if isinstance(limit, int) and limit > 0 else None


make.metadata = Env.metadata  # type: ignore[attr-defined]
