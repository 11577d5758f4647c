"""Several agents in one world, as a PettingZoo `ParallelEnv`.

The other view of the same world is `gym.make_vec(id, num_envs=worlds * N, agents=N)`: every agent a row of a vector
environment, all controlled by one shared policy.

Needs PettingZoo: `pip install netbuf-gym[multiagent]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding

from netbuf_gym.envs.engine import Engine, check_info, check_options, pop_agents
from netbuf_gym.envs.rendering import Recorder
from netbuf_gym.errors import ConfigError, MissingExtraError
from netbuf_gym.utils.arguments import check_choice
from netbuf_gym.utils.thread_guard import CopiedUntilStarted, exclusive_method

try:
    from pettingzoo import ParallelEnv as _ParallelEnv
except ImportError:
    raise MissingExtraError("netbuf_gym.envs.parallel_env", "multiagent", "pettingzoo") from None


class ParallelEnv(CopiedUntilStarted, _ParallelEnv):  # type: ignore[misc]  # PettingZoo has no types
    """Agents of one task that decide at the same times, named by their kind: `sender_0`, `sender_1`, ...

    Observations, actions and rewards are those of the task, each agent's own. All agents end together, by truncation when
    the scenario's duration is over or the world has failed (`infos[agent]["failure"]`), by termination when the task ends;
    the last `infos` hold each agent's report.

    Args:
        agents: Number of agents, 1 to 1024, default 2; tasks may have a name of their own for this argument, e.g. `senders`.
        render_mode: `"ansi"` (a line for each agent) or None.
        info: Entries of every step's `infos`, `"reward_terms"`, `"telemetry"` or both in a list: dicts of numbers by term or
            field, each agent's own, NaN where nothing was measured. Telemetry is in a reset's `infos`, too.
        kwargs: The task's arguments, and `task`, its name; None: the first that was registered.

    Raises:
        ConfigError: An argument is out of range.
    """

    metadata: dict[str, Any] = {"name": "netbuf_v0", "render_modes": ["ansi"], "is_parallelizable": True}

    def __init__(
        self,
        agents: int | None = None,
        *,
        render_mode: str | None = None,
        info: str | Sequence[str] = (),
        **kwargs: Any,
    ):
        if render_mode is not None:
            check_choice("render_mode", render_mode, self.metadata["render_modes"])
        self.render_mode, self._info_names = render_mode, check_info(info)
        if agents is not None:
            kwargs["agents"] = agents
        self._arguments = {"render_mode": render_mode, "info": info, **kwargs}
        self.engine = Engine(1, agents=pop_agents(kwargs, 2)[1], **kwargs)
        task = self.engine.task
        self.metadata = {**self.metadata, "name": f"netbuf_{task.name}_v0"}
        self.possible_agents = [f"{task.kind.name}_{i}" for i in range(self.engine.agents)]
        self.agents: list[str] = []
        self.observation_spaces = dict.fromkeys(self.possible_agents, task.observation_space)
        self.action_spaces = dict.fromkeys(self.possible_agents, task.action_space)
        self._np_random: np.random.Generator | None = None
        self._generator: np.random.Generator | None = None  # of the episodes

    @property
    def np_random(self) -> np.random.Generator:
        """Generator that the episodes' own one is spawned from; wrappers draw from it. Seeded by `reset(seed=...)`."""
        if self._np_random is None:
            self._np_random, _ = seeding.np_random()
        return self._np_random

    @np_random.setter
    def np_random(self, generator: np.random.Generator) -> None:
        self._np_random = generator

    def observation_space(self, agent: str) -> gym.Space:
        """Return the space of any agent's observations: the same object each time, for each agent."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space:
        """Return the space of any agent's actions."""
        return self.action_spaces[agent]

    def schema(self) -> dict[str, Any]:
        """Return the settings that a saved model must agree with; compare with `netbuf_gym.tasks.require_schema`."""
        return self.engine.schema()

    @exclusive_method
    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
        """Start a new episode; without a seed the last generator continues.

        What options hold is ignored, since PettingZoo's checker passes its own.

        Raises:
            ConfigError: Options that are no dict.
        """
        check_options(options, options if isinstance(options, dict) else ())
        if seed is not None:
            self._np_random, _ = seeding.np_random(seed)
        if seed is not None or self._generator is None:
            self._generator = self.np_random.spawn(1)[0]
        self.engine.reset_world(0, self._generator)
        self.engine.start_history([0])
        self.agents = list(self.possible_agents)
        return self._observations(), self._requested_infos([name for name in self._info_names if name == "telemetry"])

    @exclusive_method
    def step(self, actions: dict[str, Any]) -> tuple[dict, dict, dict, dict, dict]:
        """Make one decision for every agent.

        Args:
            actions: An action for each of `agents`.

        Returns:
            observations, rewards, terminations, truncations, infos: dicts by agent.

        Raises:
            ConfigError: An action is missing, of an unknown agent, or out of range.
            SimulatorFault, PlantFault: The plant cannot go on; it is closed.
        """
        if not self.agents:
            raise gym.error.ResetNeeded("reset() must come before step()")
        if set(actions) != set(self.agents):
            odd = sorted(set(actions) ^ set(self.agents))
            raise ConfigError(f"actions are missing or superfluous for {', '.join(odd)}; valid: {', '.join(self.agents)}")
        engine = self.engine
        engine.decide(engine.task.check_actions([actions[agent] for agent in self.agents], engine.rows))
        agents, over = self.agents, bool(engine.ended[0])
        terminated, truncated = bool(engine.terminated[0]), bool(engine.truncated[0])
        infos = self._requested_infos(self._info_names)
        if over:
            why = {"failure": engine.failures[0]} if engine.failures else {}
            for agent, report in zip(agents, engine.report(0), strict=True):
                infos[agent] |= {**report, **why}
        observations = self._observations()
        rewards = dict(zip(agents, engine.rewards.tolist(), strict=True))
        if over:
            self.agents = []
        return observations, rewards, dict.fromkeys(agents, terminated), dict.fromkeys(agents, truncated), infos

    def render(self) -> str | None:
        """Return a line of text for each agent."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode; valid: ansi")
            return None
        lines = []
        for row in range(self.engine.rows):
            recorder = Recorder(self.engine.task)
            recorder.add(self.engine.show(row))
            lines.append(f"{self.possible_agents[row]}  {recorder.ansi()}")
        return "".join(lines)

    def close(self) -> None:
        """Close the plant; calling this again, or after an error, has no effect."""
        self.engine.close()

    def _requested_infos(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        for name in names:
            values = self.engine.step_info(name)
            for row, agent in enumerate(self.agents):
                infos[agent][name] = {key: float(column[row]) for key, column in values.items()}
        return infos

    def _observations(self) -> dict[str, np.ndarray]:
        return dict(zip(self.possible_agents, self.engine.history.read_rows(slice(None)), strict=True))


def parallel_env(**kwargs: Any) -> ParallelEnv:
    """Return a `ParallelEnv`, under PettingZoo's usual name for the constructor."""
    return ParallelEnv(**kwargs)
