"""A trained agent as an object that decides and makes the environment of its training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from netbuf_gym import tasks
from netbuf_gym.controllers import lock_of
from netbuf_gym.errors import CheckpointError, ConfigError, quote
from netbuf_gym.integrations.normalizing import find_extractors
from netbuf_gym.training.algorithms.greedy import make_greedy_policy
from netbuf_gym.training.checkpoints import checkpoint, versions
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent, make_rules, select_own_kwargs
from netbuf_gym.training.config import to_plain
from netbuf_gym.utils.arguments import check_integer
from netbuf_gym.zoo import library
from netbuf_gym.zoo.predictions import check_episode_start, check_observations


class Agent:
    """A trained agent, as `netbuf_gym.zoo.load` returns it.

    Attributes:
        name: Name or path that the agent was loaded by.
        path: Model file.
        config: Resolved configuration of the training.
        metrics: Measurements of the zoo; empty for an agent that is not from the zoo.
        card: Model card, Markdown; "" for an agent that is not from the zoo.
        versions: Versions that the agent was made with (`netbuf_gym.training.checkpoints.versions.resolve_versions`).
        observation_space, action_space: Spaces of a single agent.
        controller: Controller that `netbuf_gym.evaluation.rollout.evaluate` compares with baselines, under the agent's name in
            the zoo or else that of the algorithm.

    Args:
        given: Name (`netbuf_gym.zoo.names()`), model file, or run directory.

    Raises:
        CheckpointError: No such agent, a damaged one, or one that does not fit the environment as it is now.
        ConfigError, ScenarioError: The environment cannot be made.
    """

    def __init__(self, given: str | Path):
        self._saved = checkpoint.read_model(library.find_agent_path(given))
        self.name, self.path = str(given), self._saved.path
        if tasks.find_task(self._saved.env["id"]) is None:
            raise CheckpointError(f"{self.path}: environment {self._saved.env['id']!r} is none of netbuf-gym's")
        self.config: dict[str, Any] = to_plain(self._saved.config)
        self.metrics, self.card = library.read_metrics(self.path.parent), library.read_card(self.path.parent)
        self.versions = versions.resolve_versions(self.path, self._saved.versions, self._saved.config.seed)
        self.controller = SavedAgent(self._saved, self.name if self.name in library.names() else None)
        rules = make_rules(self._saved)
        self._model = self.controller.model(rules)
        self._greedy, self._lock = make_greedy_policy(self._model), lock_of(self._model)
        self.observation_space, self.action_space = rules.observation_space, rules.action_space

    def __repr__(self) -> str:
        """Return name, algorithm, environment, recipe, training scenario and number of steps."""
        saved, schema = self._saved, self._saved.env.get("schema") or {}
        on = saved.env["kwargs"].get("scenario")
        on = on.get("name") if isinstance(on, dict) else on
        steps = f"{saved.progress['timesteps']:,} steps"
        what = f"{saved.config.algo.name}, {saved.env['id']}, recipe {schema.get('recipe')}"
        return f"<Agent {self.name!r}: {what}, trained on {on or 'a scenario of its own'} for {steps}>"

    @property
    def env_id(self) -> str:
        """Gymnasium id of the agent's environment."""
        return self._saved.env["id"]

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """Arguments that the environment was made with, scenario and reward among them."""
        return dict(self._saved.env["kwargs"])

    @property
    def normalization(self) -> dict[str, Any] | None:
        """Statistics by which the agent's networks normalise observations; None if observations enter as they are.

        JSON-able: `count` of observations seen in training, `mean` and `variance` of each component, and the network's `clip`.
        `wrappers.NormalizeObservation` continues from these statistics by `moments.load`.
        """
        found = find_extractors(self._model.policy)
        return {**found[0].moments().to_dict(), "clip": found[0].clip} if found else None

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[np.ndarray, Any]:
        """Return actions for observations, as stable-baselines3's `predict` does. Threads may call it at once.

        Args:
            observation: One observation of `observation_space`, or several with one more axis in front.
            state: State that the last call returned; None at the first call. Agents without memory return None.
            episode_start: One bool per observation, true where an episode has just begun, so that its memory is cleared.
            deterministic: Whether to take the likeliest action rather than one drawn by torch's generator.

        Returns:
            The action, or one for each observation; and the state for the next call.

        Raises:
            ConfigError: Observations of another shape, or not finite; a state, or an `episode_start`, of other observations.
        """
        values, single = check_observations(observation, self.observation_space.shape)
        count = len(values)
        episode_start = check_episode_start(episode_start, count)
        state = self._check_state(state, count)
        if not count:
            return np.zeros((0, *(self.action_space.shape or ())), self.action_space.dtype), state
        if deterministic and self._greedy is not None:
            starts = np.zeros(count, bool) if episode_start is None else episode_start
            actions, state = self._greedy(values.reshape(count, -1), state, starts)
            return actions.squeeze(axis=0) if single else actions, state
        with self._lock:
            given = values[0] if single else values
            return self._model.predict(given, state=state, episode_start=episode_start, deterministic=deterministic)

    def _check_state(self, state: Any, count: int) -> Any:
        """Return the checked memory for `count` observations; None for an agent without memory, or at the first call."""
        one = getattr(self._model.policy, "lstm_hidden_state_shape", None)  # layers, 1, width
        if one is None or state is None:
            return None
        wanted = (one[0], count, one[2])
        if not isinstance(state, (tuple, list)) or [np.shape(part) for part in state] != [wanted, wanted]:
            raise ConfigError(f"state = {quote(state)} is not that of {count} observations; valid: what the last call returned")
        return tuple(state)

    def make_env(self, **overrides: Any) -> gym.Env:
        """Make the agent's environment of one world, with the arguments of its training; decisions take no time.

        Args:
            overrides: Arguments of `gym.make` that replace those of training: `scenario`, `reward`, `render_mode`, ...

        Raises:
            CheckpointError: With these overrides the agent would observe or decide something else.
            ConfigError, ScenarioError: An override that the environment refuses.
        """
        return self._require_fit(gym.make(self.env_id, **{**select_own_kwargs(self._saved), **overrides}))

    def make_vec(self, n: int = 1, **overrides: Any) -> gym.vector.VectorEnv:
        """Make the agent's vector environment of `n` rows, as `make_env`; one world per row, unless `agents` sets several."""
        n = check_integer("n", n, 1, 1 << 20)
        return self._require_fit(gym.make_vec(self.env_id, num_envs=n, **{**select_own_kwargs(self._saved), **overrides}))

    def _require_fit(self, env: Any) -> Any:
        try:
            checkpoint.require_same_rules(self._saved, env.unwrapped.engine.task)
        except CheckpointError:
            env.close()
            raise
        return env
