"""A controller that did not learn, such as a rule, with the interface of a trained agent."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import gymnasium as gym
import numpy as np

from netbuf_gym import tasks
from netbuf_gym.controllers import Controller, InWorld, Policy
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.scenarios.sources import WorldSource
from netbuf_gym.tasks import Task
from netbuf_gym.utils.arguments import check_integer
from netbuf_gym.zoo.predictions import check_episode_start, check_observations

COMPARED = ("recipe", "interval_s", "observation space", "action space", "features")
"""What an environment's rules must have in common with those that the controller was started by."""


@dataclass
class _Run:
    """Policy of one agent in one episode, and its state."""

    policy: Policy
    state: Any = None


class ControllerAgent:
    """A rule, constant or setting that decides, with `predict` and `make_env` as a trained agent (`zoo.agent.Agent`) has them.

    Attributes:
        name: Name of the controller.
        task: Name of its task.
        controller: The controller, which `netbuf_gym.evaluation.rollout.evaluate` plays in any world.
        env_id: Gymnasium id of its environment.
        env_kwargs: Arguments of the environment that it needs, recipe and actions among them.
        observation_space, action_space: Spaces of a single agent.

    Args:
        controller: The controller.
        task: Name of its task.
        arguments: Further arguments of the environment, such as `interval_s`, or a `scenario` of more queues.

    Raises:
        ConfigError: An unknown task; a controller that acts in the world and decides nothing, or does not fit the environment.
        ScenarioError: The scenario is invalid.
    """

    def __init__(self, controller: Controller, task: str, **arguments: Any):
        if isinstance(controller, InWorld):
            raise ConfigError(f"{controller.name} acts in the world and decides nothing; valid: a controller that decides")
        owners = [name for name in tasks.names() if controller.name in tasks.get(name).controllers]
        if owners and task not in owners:
            raise ConfigError(f"task = {quote(task)} is not that of {controller.name}; valid: {', '.join(owners)}")
        self.controller, self.name, self.task = controller, controller.name, task
        self._seeds = count()  # of episodes, for controllers that draw
        self.env_id = tasks.get(task).ids[0]
        self.env_kwargs: dict[str, Any] = controller.merge_arguments(arguments)
        env: Any = gym.make(self.env_id, **self.env_kwargs)
        with closing(env):
            self._rules: Task = env.unwrapped.engine.task
            self._compared = _describe_rules(env)
        self.observation_space, self.action_space = self._rules.observation_space, self._rules.action_space
        self._start()

    def __repr__(self) -> str:
        """Return name, environment and recipe."""
        return f"<ControllerAgent {self.name!r}: {self.env_id}, recipe {self._rules.recipe}>"

    def _start(self) -> _Run:
        """Return a run of one agent in an episode that begins."""
        policy = self.controller.start(self._rules, [next(self._seeds)])
        assert policy is not None, self.name
        return _Run(policy)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[np.ndarray, Any]:
        """Return actions for observations, as a trained agent's `predict` does.

        Args:
            observation: One observation of `observation_space`, or several with one more axis in front.
            state: State that the last call returned, which is used up by this call; None at the first call.
            episode_start: One bool per observation, true where an episode has just begun, in which it starts anew.
            deterministic: Accepted for agents' sake; a controller decides in one way.

        Returns:
            The action, or one for each observation; and the state for the next call.

        Raises:
            ConfigError: Observations of another shape, or not finite; a state, or an `episode_start`, of other observations.
        """
        values, single = check_observations(observation, self.observation_space.shape)
        rows = len(values)
        begins = check_episode_start(episode_start, rows)
        runs = self._continue_runs(state, rows, np.zeros(rows, bool) if begins is None else begins)
        actions = np.zeros((rows, *(self.action_space.shape or ())), self.action_space.dtype)
        for row, (run, begun) in enumerate(runs):
            decided, run.state = run.policy(values[row : row + 1], run.state, np.array([begun]))
            actions[row] = np.asarray(decided)[0]
        return actions[0] if single else actions, tuple(run for run, _ in runs)

    def _continue_runs(self, state: Any, rows: int, begins: np.ndarray) -> list[tuple[_Run, bool]]:
        """Return each observation's run, and whether it begins now."""
        if state is None:
            return [(self._start(), True) for _ in range(rows)]
        if not isinstance(state, tuple) or len(state) != rows or not all(isinstance(run, _Run) for run in state):
            raise ConfigError(f"state = {quote(state)} is not that of {rows} observations; valid: what the last call returned")
        return [(self._start(), True) if new else (run, False) for run, new in zip(state, begins.tolist(), strict=True)]

    def make_env(self, **overrides: Any) -> gym.Env:
        """Make the environment of one world in which the controller decides.

        Worlds are the controller's own: a rule that starts from certain buffers, or has a congestion control of its own, finds
        them in place. Such worlds are not part of `env.spec`.

        Args:
            overrides: Further arguments of `gym.make`: `scenario`, `reward`, `render_mode`, ...

        Raises:
            ConfigError: An override that the environment refuses, or that changes what the controller observes or decides.
            ScenarioError: The scenario is invalid.
        """
        return self._fit(gym.make(self.env_id, **self._merge(overrides)))

    def make_vec(self, n: int = 1, **overrides: Any) -> gym.vector.VectorEnv:
        """Make the vector environment of `n` rows, as `make_env`; one world per row, unless `agents` sets several."""
        n = check_integer("n", n, 1, 1 << 20)
        return self._fit(gym.make_vec(self.env_id, num_envs=n, **self._merge(overrides)))

    def _merge(self, overrides: dict[str, Any]) -> dict[str, Any]:
        merged = self.controller.merge_arguments({**self.env_kwargs, **overrides})
        for key, value in overrides.items():
            own = merged.get(key, value)
            if own is not value and own != value:
                raise ConfigError(f"{key} = {quote(value)}; valid for {self.name}: {quote(own)}, which it sets itself")
        return merged

    def _fit(self, env: Any) -> Any:
        """Return an environment with the controller's own worlds; close it, and raise ConfigError, if its rules differ."""
        found, own = _describe_rules(env), self._compared
        for key in COMPARED:
            if found[key] != own[key]:
                env.close()
                said = f"{self.name} was made for {key} = {quote(own[key])}, this environment has {quote(found[key])}"
                raise ConfigError(f"{said}; valid: the same, or ControllerAgent(controller, {self.task!r}, ...) for the other")
        if type(self.controller).place is not Controller.place:
            engine = env.unwrapped.engine
            engine.source = WorldSource(engine.source.world, partial(_place, self.controller, engine.task))
        return env


def _describe_rules(env: Any) -> dict[str, Any]:
    engine = env.unwrapped.engine
    spaces = {"observation space": str(engine.task.observation_space), "action space": str(engine.task.action_space)}
    return {**engine.task.to_dict(), "interval_s": engine.interval_s, **spaces}


def _place(controller: Controller, rules: Task, world: Any) -> Any:
    """Return a world with agents in their places, as the controller plays in it."""
    return rules.control(controller.place(rules.control(world)))
