"""Imitation of a rule at the start of a training, before the learner continues by itself.

The rule is queried at every observation. In the first round it plays, in every further one the learner does, greedily, so that
the learner knows what to do in states that it reaches by itself (DAgger; Ross, Gordon and Bagnell, 2011); each round learns
from all observations so far. The value function learns the discounted returns, or 0 if the learner is rewarded with its
advantage over its twins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch as th
from omegaconf import DictConfig
from stable_baselines3.common.base_class import BaseAlgorithm
from torch.nn import functional as F

from netbuf_gym.controllers import Decider
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation.rollout import get_controller
from netbuf_gym.integrations.normalizing import normalize_by_observations
from netbuf_gym.training.algorithms.ppo import BatchPPO, KLPenaltyPPO
from netbuf_gym.training.models import get_worlds
from netbuf_gym.utils.progress import ProgressBar

BATCH = 2048
LEARNING_RATE = 2e-3


def check_imitation(model: BaseAlgorithm, rule: str) -> Decider:
    """Return the controller of a rule that a learner is to imitate.

    Raises:
        ConfigError: Not one of our PPOs on MLPs, no such rule, or one that decides nothing.
    """
    if type(model) not in (BatchPPO, KLPenaltyPPO):
        valid = "algo=ppo or ppo_kl, or imitate.rule=null"
        raise ConfigError(f"imitate.rule = {rule!r} with {type(model).__name__}; valid: {valid}")
    native: Any = get_worlds(model).env.unwrapped
    rules = native.engine.task
    controller = get_controller(rule, rules.name)
    if not isinstance(controller, Decider):
        raise ConfigError(f"imitate.rule = {rule!r} acts in the world and decides nothing; valid: a rule that decides")
    controller.start(rules, range(native.worlds))  # refuses recipes and actions that are not its own
    return controller


def imitate_rule(
    model: BaseAlgorithm,
    rule: str,
    steps: int,
    rounds: int,
    epochs: int,
    spread: float = 0.0,
    report: Callable[[float, str], None] = lambda done, text: None,
) -> dict[str, float]:
    """Fit an untrained learner to the decisions of a rule, in the worlds that it is to learn in.

    Their next `reset` begins new episodes; seeding them is left to the learner.

    Args:
        model: Untrained learner.
        rule: Controller of the task, which decides as agents do.
        steps: Decisions of every world in a round.
        rounds: Number of rounds; the rule plays the first one.
        epochs: Passes over all observations so far, after each round.
        spread: For discrete actions, the probability that is shared out evenly among all of them, 0 to 0.5, so that the learner
            still tries other actions than the rule's: a deterministic one has nothing to compare.
        report: Called now and then with the number of rounds that are over, and what is being done.

    Returns:
        `agreement`: the share of decisions that are the rule's, for discrete actions; `error`: the mean squared error, for
        a box.

    Raises:
        ConfigError: As `check_imitation`, or a rule that does not decide by the environment's recipe and actions.
    """
    controller = check_imitation(model, rule)
    assert isinstance(model, BatchPPO)
    worlds = get_worlds(model)
    native: Any = worlds.env.unwrapped
    rules = native.engine.task
    width = math.prod(model.observation_space.shape or ())
    kept: list[tuple[th.Tensor, ...]] = []
    twins, worlds.twins = worlds.twins, 1  # twins would decide alike, and observe the same
    optimizer = th.optim.Adam(model.policy.parameters(), lr=LEARNING_RATE)
    found: dict[str, float] = {}
    for part in range(rounds):
        who = "the learner plays" if part else "the rule plays"

        def report_play(share: float, part: int = part, who: str = who) -> None:
            report(part + 0.5 * share, f"round {part + 1} of {rounds}: {who}")

        def report_fit(share: float, part: int = part) -> None:
            report(part + 0.5 + 0.5 * share, f"round {part + 1} of {rounds}: the learner learns")

        pieces = _collect_decisions(model, controller.start(rules, range(native.worlds)), steps, part > 0, width, report_play)
        if twins > 1:
            pieces = (*pieces[:2], th.zeros_like(pieces[2]))  # expected advantage over twins
        kept.append(pieces)
        normalize_by_observations(model.policy, pieces[0])
        observations, actions, returns = (th.cat(parts) for parts in zip(*kept, strict=True))
        found = fit_policy(model, optimizer, observations, actions, returns, epochs, spread, report_fit)
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
    """Fit the policy to actions and the value function to returns, `(decisions, ...)` each; see `imitate_rule`.

    `report` is called with the share of the passes that is done.
    """
    for epoch in range(epochs):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * (1 - epoch / epochs)
        batches = th.split(th.randperm(len(observations)), BATCH)
        for number, rows in enumerate(batches):
            report((epoch + number / len(batches)) / epochs)
            optimizer.zero_grad()
            loss = _compute_policy_loss(model, observations[rows], actions[rows], spread) + 0.5 * F.mse_loss(
                model._compute_values(observations[rows]), returns[rows]
            )
            th.autograd.backward(loss)
            th.nn.utils.clip_grad_norm_(model.policy.parameters(), model.max_grad_norm)
            optimizer.step()
    return measure_agreement(model, observations, actions)


def measure_agreement(model: BatchPPO, observations: th.Tensor, actions: th.Tensor) -> dict[str, float]:
    """Return how near greedy decisions come to these actions; see `imitate_rule`."""
    with th.inference_mode():
        output = model._compute_policy_output(observations)
        if actions.dtype == th.int64:
            return {"agreement": float((output.argmax(dim=1) == actions).float().mean())}
        return {"error": float(F.mse_loss(output[:, : actions.shape[1]], actions))}


def imitate_from_config(config: DictConfig, model: BaseAlgorithm, tell: Callable[[str], None], progress: bool = False) -> None:
    """Imitate the configured rule, if any; the worlds' first episodes are then those that the seed draws.

    Args:
        config: Part `imitate` of a configuration.
        model: Untrained learner.
        tell: Called with a line before, and with one after.
        progress: Whether progress is shown.
    """
    if config.rule is None:
        return
    worlds = get_worlds(model)
    tell(
        f"imitating {config.rule} first: {config.rounds} rounds of {config.steps} decisions in {worlds.num_envs} worlds, "
        f"and {config.epochs} passes over them"
    )
    with ProgressBar("imitating", shown=progress) as bar:
        settings = (config.rule, config.steps, config.rounds, config.epochs, config.spread)
        found = imitate_rule(model, *settings, report=lambda done, text: bar(done, float(config.rounds), text))
    worlds.seed(model.seed)
    tell(f"imitated {config.rule}: " + ", ".join(f"{name} {value:.4f}" for name, value in found.items()))


def _collect_decisions(
    model: BatchPPO, policy: Any, steps: int, own: bool, width: int, report: Callable[[float], None]
) -> tuple[th.Tensor, ...]:
    """Return observations, the rule's decisions there, and discounted returns, `(steps * worlds, ...)` each."""
    worlds = get_worlds(model)
    n = worlds.num_envs
    observations = np.asarray(worlds.reset())
    seen, rewards = th.zeros(steps, n, width), th.zeros(steps, n)
    decided: list[th.Tensor] = []
    state, starts = None, np.ones(n, bool)
    ends = th.zeros(steps, n)
    for step in range(steps):
        report(step / steps)
        seen[step] = th.as_tensor(observations)
        wanted, state = policy(observations, state, starts)
        decided.append(th.as_tensor(np.array(wanted)).to(model._head.action_type))
        for_env = np.asarray(wanted)
        if own:
            for_env = np.asarray(model.policy.predict(observations, deterministic=True)[0])
        batch = worlds.step_batch(for_env)
        rewards[step] = th.as_tensor(batch.rewards, dtype=th.float32)
        ends[step] = th.as_tensor(batch.dones, dtype=th.float32)
        observations, starts = np.asarray(batch.observations), batch.dones
    after = rewards.mean() / max(1.0 - model.gamma, 1.0 / steps)  # estimate of later rewards from the mean so far
    total, returns = th.full((n,), float(after)), th.zeros(steps, n)
    for step in range(steps - 1, -1, -1):
        total = rewards[step] + model.gamma * th.where(ends[step] > 0, after, total)
        returns[step] = total
    return tuple(one.to(model.device) for one in (seen.flatten(0, 1), th.cat(decided), returns.flatten(0, 1)))


def _compute_policy_loss(model: BatchPPO, observations: th.Tensor, actions: th.Tensor, spread: float) -> th.Tensor:
    output = model._compute_policy_output(observations)
    if actions.dtype == th.int64:
        return (1 - spread) * F.nll_loss(output, actions) - spread * output.mean()
    return F.mse_loss(output[:, : actions.shape[1]], actions)
