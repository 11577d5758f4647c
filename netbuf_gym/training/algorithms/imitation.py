"""Imitation of a rule or an agent at the start of a training, before the learner continues by itself.

The teacher is queried at every observation. In the first round it plays, in every further one the learner does, greedily, so
that the learner knows what to do in states that it reaches by itself (DAgger; Ross, Gordon and Bagnell, 2011); each round
learns from all observations so far. Of a rule it learns the actions; of an agent with discrete actions its probabilities, which
say more of what it would have done otherwise (Rusu et al., "Policy Distillation", ICLR 2016). The value function learns the
discounted returns, or 0 if the learner is rewarded with its advantage over its twins.

A learner with a memory goes through whole episodes, `CHUNK` decisions between two steps of its optimiser, through which
gradients go back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch as th
from omegaconf import DictConfig
from stable_baselines3.common.base_class import BaseAlgorithm
from torch.nn import functional as F

from netbuf_gym.integrations.normalizing import normalize_by_observations
from netbuf_gym.training.algorithms.ppo import BatchPPO
from netbuf_gym.training.algorithms.teachers import Teaching, describe_teacher, make_teacher
from netbuf_gym.training.models import get_worlds
from netbuf_gym.utils.progress import ProgressBar

BATCH = 2048
LEARNING_RATE = 2e-3
CHUNK = 32


class Decisions(NamedTuple):
    """A round: observations, what the teacher decided, discounted returns, starts of episodes; (steps, worlds, ...) each."""

    observations: th.Tensor
    targets: th.Tensor
    returns: th.Tensor
    starts: th.Tensor

    def flatten(self) -> tuple[th.Tensor, ...]:
        """Return them, but for the starts, as (steps * worlds, ...)."""
        return tuple(one.flatten(0, 1) for one in self[:3])


def imitate_teacher(
    model: BaseAlgorithm,
    rule: str | None,
    steps: int,
    rounds: int,
    epochs: int,
    spread: float = 0.0,
    report: Callable[[float, str], None] = lambda done, text: None,
    agent: str | None = None,
) -> dict[str, float]:
    """Fit an untrained learner to the decisions of a rule or an agent, in the worlds that it is to learn in.

    Their next `reset` begins new episodes; seeding them is left to the learner.

    Args:
        model: Untrained learner.
        rule: Controller of the task, which decides as agents do; None: `agent` teaches.
        steps: Decisions of every world in a round.
        rounds: Number of rounds; the teacher plays the first one.
        epochs: Passes over all observations so far, after each round.
        spread: For discrete actions, the probability that is shared out evenly among all of them, 0 to 0.5, so that the learner
            still tries other actions than the teacher's: a deterministic one has nothing to compare.
        report: Called now and then with the number of rounds that are over, and what is being done.
        agent: File or run directory of a trained agent, or its name.

    Returns:
        `agreement`: the share of decisions that are the teacher's, for discrete actions; `error`: the mean squared error, for
        a box.

    Raises:
        ConfigError, CheckpointError: As `make_teacher`.
    """
    teacher, who_teaches = make_teacher(model, rule, agent), "the rule" if agent is None else "the agent"
    assert isinstance(model, BatchPPO)
    worlds = get_worlds(model)
    kept: list[Decisions] = []
    twins, worlds.twins = worlds.twins, 1  # twins would decide alike, and observe the same
    optimizer = th.optim.Adam(model.policy.parameters(), lr=LEARNING_RATE)
    found: dict[str, float] = {}
    for part in range(rounds):
        who = "the learner plays" if part else f"{who_teaches} plays"

        def report_play(share: float, part: int = part, who: str = who) -> None:
            report(part + 0.5 * share, f"round {part + 1} of {rounds}: {who}")

        def report_fit(share: float, part: int = part) -> None:
            report(part + 0.5 + 0.5 * share, f"round {part + 1} of {rounds}: the learner learns")

        decided = _collect_decisions(model, teacher.start(worlds.num_envs), steps, part > 0, report_play)
        if twins > 1:
            decided = decided._replace(returns=th.zeros_like(decided.returns))  # expected advantage over twins
        kept.append(decided)
        normalize_by_observations(model.policy, decided.observations.flatten(0, 1))
        if model.make_memory(1) is None:
            observations, targets, returns = (th.cat(parts) for parts in zip(*(one.flatten() for one in kept), strict=True))
            found = fit_policy(model, optimizer, observations, targets, returns, epochs, spread, report_fit)
        else:
            found = _fit_memory(model, optimizer, kept, epochs, spread, report_fit)
    worlds.twins = twins
    return found


def fit_policy(
    model: BatchPPO,
    optimizer: th.optim.Optimizer,
    observations: th.Tensor,
    actions: th.Tensor,
    returns: th.Tensor,
    epochs: int,
    spread: float = 0.0,
    report: Callable[[float], None] = lambda share: None,
) -> dict[str, float]:
    """Fit the policy to actions and the value function to returns, `(decisions, ...)` each; see `imitate_teacher`.

    `report` is called with the share of the passes that is done.
    """
    for epoch in range(epochs):
        _set_learning_rate(optimizer, 1 - epoch / epochs)
        batches = th.split(th.randperm(len(observations)), BATCH)
        for number, rows in enumerate(batches):
            report((epoch + number / len(batches)) / epochs)
            output, values = model._compute_policy_output(observations[rows]), model._compute_values(observations[rows])
            _learn(model, optimizer, output, values, actions[rows], returns[rows], spread)
    return measure_agreement(model, observations, actions)


def _fit_memory(
    model: BatchPPO,
    optimizer: th.optim.Optimizer,
    kept: Sequence[Decisions],
    epochs: int,
    spread: float,
    report: Callable[[float], None],
) -> dict[str, float]:
    """Fit a learner with a memory to rounds; see `fit_policy`. What is measured is its agreement in the last one."""
    for epoch in range(epochs):
        _set_learning_rate(optimizer, 1 - epoch / epochs)
        parts = [(one, rows) for one in kept for rows in th.split(th.randperm(one.starts.shape[1]), max(BATCH // CHUNK, 1))]
        for number, at in enumerate(th.randperm(len(parts)).tolist()):
            report((epoch + number / len(parts)) / epochs)
            one, rows = parts[at]
            memory = model.make_memory(len(rows))
            own = [tensor[:, rows] for tensor in one]
            for observations, targets, returns, starts in zip(*(th.split(tensor, CHUNK) for tensor in own), strict=True):
                output, values, memory = model.evaluate_sequences(observations, starts, memory)
                _learn(model, optimizer, output, values, targets.flatten(0, 1), returns.flatten(), spread)
    last = kept[-1]
    with th.no_grad():
        output, *_ = model.evaluate_sequences(last.observations, last.starts, model.make_memory(last.starts.shape[1]))
    return _compare(output, last.targets.flatten(0, 1))


def _set_learning_rate(optimizer: th.optim.Optimizer, share: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = LEARNING_RATE * share


def _learn(
    model: BatchPPO,
    optimizer: th.optim.Optimizer,
    output: th.Tensor,
    values: th.Tensor,
    targets: th.Tensor,
    returns: th.Tensor,
    spread: float,
) -> None:
    """Make a step of the optimiser towards these targets and returns."""
    optimizer.zero_grad()
    loss = _compute_policy_loss(output, targets, spread) + 0.5 * F.mse_loss(values, returns)
    th.autograd.backward(loss)
    th.nn.utils.clip_grad_norm_(model.policy.parameters(), model.max_grad_norm)
    optimizer.step()


def measure_agreement(model: BatchPPO, observations: th.Tensor, actions: th.Tensor) -> dict[str, float]:
    """Return how near greedy decisions come to these actions; see `imitate_teacher`."""
    with th.inference_mode():
        return _compare(model._compute_policy_output(observations), actions)


def _compare(output: th.Tensor, targets: th.Tensor) -> dict[str, float]:
    if _are_likelihoods(output, targets):
        targets = targets.argmax(dim=1)
    if targets.dtype == th.int64:
        return {"agreement": float((output.argmax(dim=1) == targets).float().mean())}
    return {"error": float(F.mse_loss(output[:, : targets.shape[1]], targets))}


def _are_likelihoods(output: th.Tensor, targets: th.Tensor) -> bool:
    """Return whether targets are log-probabilities; the output for a box is twice as wide as its actions."""
    return targets.dtype != th.int64 and targets.shape == output.shape


def imitate_from_config(config: DictConfig, model: BaseAlgorithm, tell: Callable[[str], None], progress: bool = False) -> None:
    """Imitate the configured teacher, if any; the worlds' first episodes are then those that the seed draws.

    Args:
        config: Part `imitate` of a configuration.
        model: Untrained learner.
        tell: Called with a line before, and with one after.
        progress: Whether progress is shown.
    """
    name = describe_teacher(config.rule, config.agent)
    if name is None:
        return
    worlds = get_worlds(model)
    tell(
        f"imitating {name} first: {config.rounds} rounds of {config.steps} decisions in {worlds.num_envs} worlds, "
        f"and {config.epochs} passes over them"
    )
    with ProgressBar("imitating", shown=progress) as bar:
        settings = (config.rule, config.steps, config.rounds, config.epochs, config.spread)
        found = imitate_teacher(
            model, *settings, report=lambda done, text: bar(done, float(config.rounds), text), agent=config.agent
        )
    worlds.seed(model.seed)
    tell(f"imitated {name}: " + ", ".join(f"{name} {value:.4f}" for name, value in found.items()))


def _collect_decisions(
    model: BatchPPO, teaching: Teaching, steps: int, own: bool, report: Callable[[float], None]
) -> Decisions:
    """Return a round, in which the learner plays if it is its `own`, and the teacher otherwise."""
    worlds = get_worlds(model)
    n, width = worlds.num_envs, math.prod(model.observation_space.shape or ())
    observations = np.asarray(worlds.reset())
    seen, rewards, begun, ends = th.zeros(steps, n, width), *th.zeros(3, steps, n)
    decided: list[th.Tensor] = []
    state: Any = None
    starts = np.ones(n, bool)
    for step in range(steps):
        report(step / steps)
        seen[step], begun[step] = th.as_tensor(observations), th.as_tensor(starts)
        for_env, wanted = teaching(observations, starts)
        decided.append(wanted)
        if own:
            for_env, state = model.policy.predict(observations, state, starts, deterministic=True)
        batch = worlds.step_batch(np.asarray(for_env))
        rewards[step] = th.as_tensor(batch.rewards, dtype=th.float32)
        ends[step] = th.as_tensor(batch.dones, dtype=th.float32)
        observations, starts = np.asarray(batch.observations), batch.dones
    after = rewards.mean() / max(1.0 - model.gamma, 1.0 / steps)  # estimate of later rewards from the mean so far
    total, returns = th.full((n,), float(after)), th.zeros(steps, n)
    for step in range(steps - 1, -1, -1):
        total = rewards[step] + model.gamma * th.where(ends[step] > 0, after, total)
        returns[step] = total
    return Decisions(*(one.to(model.device) for one in (seen, th.stack(decided), returns, begun)))


def _compute_policy_loss(output: th.Tensor, targets: th.Tensor, spread: float) -> th.Tensor:
    if targets.dtype == th.int64:
        return (1 - spread) * F.nll_loss(output, targets) - spread * output.mean()
    if _are_likelihoods(output, targets):
        return -(1 - spread) * (targets.exp() * output).sum(dim=1).mean() - spread * output.mean()
    return F.mse_loss(output[:, : targets.shape[1]], targets)
