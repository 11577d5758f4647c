"""Teachers that a learner imitates: rules of the task, and trained agents, each with a memory of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm

from netbuf_gym.controllers import Decider, Policy
from netbuf_gym.errors import CheckpointError, ConfigError
from netbuf_gym.evaluation.rollout import get_controller
from netbuf_gym.tasks import Task
from netbuf_gym.tasks.schema import require_schema
from netbuf_gym.training.algorithms.ppo import BatchPPO
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent, make_rules
from netbuf_gym.training.models import get_worlds
from netbuf_gym.zoo import library


class Teaching(Protocol):
    """Decisions of a teacher about one episode after the other, with the memory of it."""

    def __call__(self, observations: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, th.Tensor]:
        """Return the teacher's actions, as the environment takes them, and what the learner is to learn of them.

        Args:
            observations: The learner's, `(worlds, size)`.
            starts: Whether an episode starts with these, bool `(worlds,)`.

        Returns:
            Actions `(worlds, ...)`; and the same as a tensor, or the log-probabilities of discrete actions, float32
            `(worlds, actions)`.
        """


class Teacher(Protocol):
    """Whoever is imitated."""

    def start(self, worlds: int) -> Teaching:
        """Return the decisions about new episodes in so many worlds."""


class RuleTeacher:
    """A rule of the task.

    Args:
        rule: Name of a controller.
        model: Learner.

    Raises:
        ConfigError: No such rule, one that decides nothing, or not by the environment's recipe and actions.
    """

    def __init__(self, rule: str, model: BatchPPO):
        native: Any = get_worlds(model).env.unwrapped
        self._rules, self._model, self._places = native.engine.task, model, range(native.worlds)
        controller = get_controller(rule, self._rules.name)
        if not isinstance(controller, Decider):
            raise ConfigError(f"imitate.rule = {rule!r} acts in the world and decides nothing; valid: a rule that decides")
        self._controller = controller
        self.start(0)  # refuses recipes and actions that are not its own

    def start(self, worlds: int) -> Teaching:
        return _PolicyTeaching(self._controller.start(self._rules, self._places), self._model)


class AgentTeacher:
    """A trained agent, which observes as much of the past as it did in training, however little the learner does.

    Of agents of our PPOs probabilities are taught, of others what they decide.

    Args:
        agent: File or run directory of a model, or an agent's name.
        model: Learner.

    Raises:
        CheckpointError: No such agent, or one of other rules than the learner's, but for a longer history.
    """

    def __init__(self, agent: str, model: BatchPPO):
        saved = checkpoint.read_model(library.find_agent_path(agent, "imitate.agent"))
        native: Any = get_worlds(model).env.unwrapped
        own: Task = native.engine.task
        schema = saved.env.get("schema")
        history = schema.get("history") if isinstance(schema, dict) else None
        if not isinstance(history, int) or history < own.history:
            said = f"imitate.agent = {agent}: observes {history} intervals, this environment {own.history}"
            raise CheckpointError(f"{said}; valid: as many or fewer here")
        require_schema(schema, {**native.engine.schema(), "history": history}, str(saved.path))
        self._agent, self._rules, self._learner = SavedAgent(saved), make_rules(saved), model
        self._model = self._agent.model(self._rules)
        self._width = own.width

    def start(self, worlds: int) -> Teaching:
        if isinstance(self._model, BatchPPO):
            own: Teaching = _NetworkTeaching(self._model, worlds)
        else:
            own = _PolicyTeaching(self._agent.start(self._rules, range(worlds)), self._learner)
        return _LongerHistory(own, worlds, self._rules.history, self._width)


def make_teacher(model: BaseAlgorithm, rule: str | None, agent: str | None) -> Teacher:
    """Return the teacher of a learner: the rule or the agent, one of which is given.

    Raises:
        ConfigError: The learner is none of our PPOs, or both are given; and as the teachers.
    """
    key, name = ("imitate.rule", rule) if agent is None else ("imitate.agent", agent)
    if not isinstance(model, BatchPPO) or not type(model).__module__.startswith("netbuf_gym."):
        valid = f"algo=ppo, ppo_kl or ppo_lstm, or {key}=null"
        raise ConfigError(f"{key} = {name!r} with {type(model).__name__}; valid: {valid}")
    if agent is None:
        return RuleTeacher(str(rule), model)
    if rule is not None:
        raise ConfigError(f"imitate.agent = {agent!r} beside imitate.rule = {rule!r}; valid: one of them")
    return AgentTeacher(agent, model)


class _PolicyTeaching:
    """What a controller decides."""

    def __init__(self, policy: Policy, learner: BatchPPO):
        self._policy, self._state, self._type = policy, None, learner._head.action_type

    def __call__(self, observations: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, th.Tensor]:
        decided, self._state = self._policy(observations, self._state, starts)
        return np.asarray(decided), th.as_tensor(np.array(decided)).to(self._type)


class _NetworkTeaching:
    """The output of an agent's networks: log-probabilities, or the means of actions in a box."""

    def __init__(self, model: BatchPPO, worlds: int):
        self._model, self._memory = model, model.make_memory(worlds)

    def __call__(self, observations: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, th.Tensor]:
        with th.no_grad():
            seen = th.as_tensor(observations).unsqueeze(0)
            first = th.as_tensor(starts, dtype=th.float32).unsqueeze(0)
            output, _, self._memory = self._model.evaluate_sequences(seen, first, self._memory)
            greedy = self._model._head.greedy(output)
            targets = output if greedy.dtype == th.int64 else greedy
            return self._model._head.for_env(greedy), targets


class _LongerHistory:
    """Teaching from observations of a longer history than the learner's."""

    def __init__(self, teaching: Teaching, worlds: int, history: int, width: int):
        self._teaching, self._seen = teaching, np.zeros((worlds, history, width), np.float32)

    def __call__(self, observations: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, th.Tensor]:
        latest = observations[:, None, -self._seen.shape[2] :]
        self._seen = np.where(starts[:, None, None], latest, np.concatenate((self._seen[:, 1:], latest), axis=1))
        return self._teaching(self._seen.reshape(len(observations), -1), starts)


def describe_teacher(rule: str | None, agent: str | None) -> str | None:
    """Return the name of the teacher; None without one."""
    return rule if agent is None else agent


__all__: Sequence[str] = ["AgentTeacher", "RuleTeacher", "Teacher", "Teaching", "describe_teacher", "make_teacher"]
