"""A trained agent as an object: it decides, and makes the environment that it was trained in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from netbuf_gym import tasks
from netbuf_gym.controllers import lock_of
from netbuf_gym.errors import CheckpointError, ConfigError, shown
from netbuf_gym.integrations.normalizing import extractors
from netbuf_gym.training.algorithms.greedy import greedy
from netbuf_gym.training.checkpoints import checkpoint, versions
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent, own_kwargs, rules_of
from netbuf_gym.training.config import plain
from netbuf_gym.utils.arguments import whole
from netbuf_gym.zoo import library


class Agent:
    """A trained agent, as `netbuf_gym.zoo.load` gives it.

    Attributes:
        name: as it was asked for.
        path: its file.
        config: the resolved configuration of its training.
        metrics: what the zoo measured of it; empty for an agent that is not from the zoo.
        card: its card, Markdown; "" likewise.
        versions: what it was made with (`netbuf_gym.training.checkpoints.versions.of`).
        observation_space, action_space: of a single agent.
        controller: what `netbuf_gym.evaluation.rollout.evaluate` sets beside baselines, under its name in the zoo or else its
            algorithm's.

    Args:
        given: a name (`netbuf_gym.zoo.names()`), a model file, or a run directory.

    Raises:
        CheckpointError: there is none, it is damaged, or it does not fit the environment as it is now.
        ConfigError, ScenarioError: its environment cannot be made.
    """

    def __init__(self, given: str | Path):
        self._saved = checkpoint.read(library.path_of(given))
        self.name, self.path = str(given), self._saved.path
        if tasks.task_of(self._saved.env["id"]) is None:
            raise CheckpointError(f"{self.path}: environment {self._saved.env['id']!r} is none of netbuf-gym's")
        self.config: dict[str, Any] = plain(self._saved.config)
        self.metrics, self.card = library.metrics_of(self.path.parent), library.card_of(self.path.parent)
        self.versions = versions.of(self.path, self._saved.versions, self._saved.config.seed)
        self.controller = SavedAgent(self._saved, self.name if self.name in library.names() else None)
        rules = rules_of(self._saved)
        self._model = self.controller.model(rules)
        self._greedy, self._lock = greedy(self._model), lock_of(self._model)
        self.observation_space, self.action_space = rules.observation_space, rules.action_space

    def __repr__(self) -> str:
        """Its name, what it learned with and on, for how long."""
        saved, schema = self._saved, self._saved.env.get("schema") or {}
        on = saved.env["kwargs"].get("scenario")
        on = on.get("name") if isinstance(on, dict) else on
        steps = f"{saved.progress['timesteps']:,} steps"
        what = f"{saved.config.algo.name}, {saved.env['id']}, recipe {schema.get('recipe')}"
        return f"<Agent {self.name!r}: {what}, trained on {on or 'a scenario of its own'} for {steps}>"

    @property
    def env_id(self) -> str:
        """Its environment's id."""
        return self._saved.env["id"]

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """The arguments that its environment was made with, scenario and reward among them."""
        return dict(self._saved.env["kwargs"])

    @property
    def normalization(self) -> dict[str, Any] | None:
        """The statistics by which its networks normalise observations; None: they take them as they are.

        JSON-able: `count` of what training saw until then, `mean` and `variance` of each component, and the `clip` that its
        network has. `wrappers.NormalizeObservation` goes on from it, by `moments.load`.
        """
        found = extractors(self._model.policy)
        return {**found[0].moments().to_dict(), "clip": found[0].clip} if found else None

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[np.ndarray, Any]:
        """Decides, as stable-baselines3's `predict` does. Threads take turns.

        Args:
            observation: one, of `observation_space`, or several, with one more axis in front.
            state: what the last call returned; None at the first. Agents without memory return None.
            episode_start: bool, one for each observation: whose episode has just begun, so that its memory is cleared.
            deterministic: the likeliest action; else one drawn by torch's generator.

        Returns:
            the action, or one for each observation; and the state for the next call.

        Raises:
            ConfigError: observations of another shape, or not finite; a state, or an `episode_start`, of other observations.
        """
        shape = self.observation_space.shape
        try:
            values = np.asarray(observation, np.float32)
        except (TypeError, ValueError):
            raise ConfigError(f"observation is no array of numbers; valid: shape {shape}, or (n, {_inner(shape)})") from None
        if values.shape != shape and values.shape[1:] != shape:
            raise ConfigError(f"observation has shape {values.shape}; valid: {shape}, or (n, {_inner(shape)})")
        if not np.isfinite(values).all():
            raise ConfigError("observation holds NaN or infinity; valid: finite numbers")
        count = 1 if values.shape == shape else len(values)
        if episode_start is not None:
            episode_start = np.atleast_1d(np.asarray(episode_start, bool))
            if episode_start.shape != (count,):
                raise ConfigError(f"episode_start has shape {episode_start.shape}; valid: ({count},), one for each observation")
        state = self._memory(state, count)
        if not count:
            return np.zeros((0, *(self.action_space.shape or ())), self.action_space.dtype), state
        if deterministic and self._greedy is not None:
            starts = np.zeros(count, bool) if episode_start is None else episode_start
            actions, state = self._greedy(values.reshape(count, -1), state, starts)
            return actions.squeeze(axis=0) if values.shape == shape else actions, state
        with self._lock:
            return self._model.predict(values, state=state, episode_start=episode_start, deterministic=deterministic)

    def _memory(self, state: Any, count: int) -> Any:
        """What an agent with memory is told to remember of so many observations; None for one without."""
        one = getattr(self._model.policy, "lstm_hidden_state_shape", None)  # layers, 1, width
        if one is None or state is None:
            return None
        wanted = (one[0], count, one[2])
        if not isinstance(state, (tuple, list)) or [np.shape(part) for part in state] != [wanted, wanted]:
            raise ConfigError(f"state = {shown(state)} is not that of {count} observations; valid: what the last call returned")
        return tuple(state)

    def make_env(self, **overrides: Any) -> gym.Env:
        """Its environment, of one world, with the arguments that it was trained with; its decisions take no time.

        Args:
            overrides: arguments of `gym.make` in the place of those: `scenario`, `reward`, `render_mode`, ...

        Raises:
            CheckpointError: with these overrides the agent sees or decides something else.
            ConfigError, ScenarioError: an override that the environment refuses.
        """
        return self._fitting(gym.make(self.env_id, **{**own_kwargs(self._saved), **overrides}))

    def make_vec(self, n: int = 1, **overrides: Any) -> gym.vector.VectorEnv:
        """Its vector environment of `n` rows, as `make_env`; a world each, unless `agents` says that worlds have several."""
        n = whole("n", n, 1, 1 << 20)
        return self._fitting(gym.make_vec(self.env_id, num_envs=n, **{**own_kwargs(self._saved), **overrides}))

    def _fitting(self, env: Any) -> Any:
        try:
            checkpoint.require_same_rules(self._saved, env.unwrapped.engine.task)
        except CheckpointError:
            env.close()
            raise
        return env


def _inner(shape: tuple[int, ...]) -> str:
    return ", ".join(map(str, shape))
