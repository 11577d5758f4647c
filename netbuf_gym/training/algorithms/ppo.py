"""PPO for batched environments: stable-baselines3's algorithm without its per-world Python.

Stable-baselines3's on-policy loop iterates over every world's `done` and `info` each step, keeps the rollout in numpy arrays
that it transposes and converts for each minibatch, and reads half a dozen scalars back after each one. With a thousand
worlds in one native batch that costs more than the networks. `BatchPPO` keeps the rollout in preallocated torch tensors,
bootstraps all truncated worlds in one call, lets the core compute plain networks and their gradients
(`netbuf_gym.training.algorithms.networks`), and logs once per update. Everything else (policy, optimiser, schedules,
hyper-parameters, save format) is stable-baselines3's: `stable_baselines3.PPO.load` reads the files that it saves.

`KLPenaltyPPO` replaces the clipped surrogate by the penalised one of Schulman et al. (2017, arXiv:1707.06347, eq. 8):
`ratio * advantage - kl_coef * KL(old || new)`, with the coefficient fixed or adapted to a target.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch as th
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import FlattenExtractor, MlpExtractor
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.common.vec_env import VecEnv
from torch.nn import functional as F

from netbuf_gym import _core
from netbuf_gym.errors import NetbufError
from netbuf_gym.integrations.sb3 import VectorEnvAdapter
from netbuf_gym.training.algorithms.networks import PerceptronNetwork, add_sums, allot_gradients, has_hooks, to_array
from netbuf_gym.training.algorithms.privileged import PrivilegedCritic

OWN_AND_SB3 = ("netbuf_gym.", "stable_baselines3.", "sb3_contrib.")
"""Packages whose policies, extractors and losses the core's arithmetic is known to follow."""
Truncated = tuple[int, th.Tensor, th.Tensor]
"""Step of a rollout, worlds whose episodes were truncated at it, and their last observations."""


class DivergedError(NetbufError, ArithmeticError):
    """Training produced numbers that are not finite; the networks are unusable."""


class _CategoricalHead:
    """Policy head for discrete actions: the log-probabilities of all of them."""

    action_shape: tuple[int, ...] = ()
    action_type = th.int64

    def __init__(self, space: spaces.Discrete, device: th.device):
        self.size = int(space.n)

    def output(self, policy: Any, logits: th.Tensor) -> th.Tensor:
        """Return the log-probabilities, (batch, size), from the outputs of the policy's `action_net`."""
        return F.log_softmax(logits, dim=1)

    def sample(self, output: th.Tensor, noise: th.Tensor) -> th.Tensor:
        """Sample actions; `noise` is scratch memory of the output's shape."""
        # the first action up to which the probabilities' sum exceeds a uniform number
        passed = output.exp().cumsum(1) <= noise[:, :1].uniform_()
        return passed.sum(1).clamp_max_(self.size - 1)

    def greedy(self, output: th.Tensor) -> th.Tensor:
        """Return the likeliest actions, (batch,)."""
        return output.argmax(dim=1)

    def for_env(self, actions: th.Tensor) -> Any:
        """Convert actions for the environment."""
        return actions.cpu().numpy()

    def log_ratio(self, new: th.Tensor, old: th.Tensor, actions: th.Tensor) -> th.Tensor:
        """Return ln(new / old) of the actions' probabilities, (batch,)."""
        taken = actions.unsqueeze(1)
        return (new.gather(1, taken) - old.gather(1, taken)).squeeze(1)

    def kl(self, old: th.Tensor, new: th.Tensor) -> th.Tensor:
        """Return KL(old || new), summed over the batch."""
        return (old.exp() * (old - new)).sum()

    def entropy(self, output: th.Tensor) -> th.Tensor:
        """Return the entropy, summed over the batch."""
        return -(output.exp() * output).sum()

    def make_native_loss(self, policy: Any, decisions: Any, *settings: Any) -> Any:
        """Return the core's loss of a rollout's actions, policies and advantages, `(decisions, ...)` each."""
        return _core.categorical_loss(*decisions, *settings)


class _GaussianHead:
    """Policy head for a box: independent normal distributions, as means and logarithms of standard deviations.

    As in stable-baselines3 the deviations are parameters of their own, and actions are clipped to the box only for the
    environment; the policy is updated by the unclipped samples.
    """

    action_type = th.float32

    def __init__(self, space: spaces.Box, device: th.device):
        self.action_shape = space.shape
        self.dimensions = space.shape[0]
        self.size = 2 * self.dimensions
        self.low, self.high = th.as_tensor(space.low, device=device), th.as_tensor(space.high, device=device)

    def output(self, policy: Any, mean: th.Tensor) -> th.Tensor:
        """Return means and log deviations, (batch, size), from the outputs of the policy's `action_net`."""
        return th.cat((mean, policy.log_std.expand_as(mean)), dim=1)

    def sample(self, output: th.Tensor, noise: th.Tensor) -> th.Tensor:
        """Sample actions; `noise` is scratch memory of the output's shape."""
        mean, log_std = th.split(output, self.dimensions, dim=1)
        return mean + log_std.exp() * noise[:, : self.dimensions].normal_()

    def greedy(self, output: th.Tensor) -> th.Tensor:
        """Return the likeliest actions, (batch, dimensions)."""
        return output[:, : self.dimensions]

    def for_env(self, actions: th.Tensor) -> Any:
        """Convert actions for the environment."""
        return th.clamp(actions, self.low, self.high).cpu().numpy()

    def log_ratio(self, new: th.Tensor, old: th.Tensor, actions: th.Tensor) -> th.Tensor:
        """Return ln(new / old) of the actions' densities, (batch,)."""
        return self._log_density(new, actions) - self._log_density(old, actions)

    def _log_density(self, output: th.Tensor, actions: th.Tensor) -> th.Tensor:
        mean, log_std = th.split(output, self.dimensions, dim=1)
        return -(0.5 * ((actions - mean) * (-log_std).exp()).square() + log_std).sum(dim=1)  # up to a constant

    def kl(self, old: th.Tensor, new: th.Tensor) -> th.Tensor:
        """Return KL(old || new), summed over the batch."""
        old_mean, old_log_std = th.split(old, self.dimensions, dim=1)
        mean, log_std = th.split(new, self.dimensions, dim=1)
        spread = (2 * old_log_std).exp() + (old_mean - mean).square()
        return (log_std - old_log_std + 0.5 * spread * (-2 * log_std).exp() - 0.5).sum()

    def entropy(self, output: th.Tensor) -> th.Tensor:
        """Return the entropy, summed over the batch."""
        return (output[:, self.dimensions :] + 0.5 * math.log(2 * math.pi * math.e)).sum()

    def make_native_loss(self, policy: Any, decisions: Any, *settings: Any) -> Any:
        """Return the core's loss of a rollout's actions, policies and advantages, `(decisions, ...)` each."""
        log_std = policy.log_std
        gradient = to_array(log_std.grad) if log_std.requires_grad else None
        actions, old, advantages = decisions
        return _core.gaussian_loss(actions, old, advantages, to_array(log_std), gradient, *settings)


Head = _CategoricalHead | _GaussianHead


class Rollout:
    """Preallocated tensors of a rollout, (steps, worlds, ...), on the learner's device."""

    def __init__(self, n_steps: int, n_worlds: int, observation_size: int, head: Head, device: th.device):
        shape = (n_steps, n_worlds)
        self.observations = th.zeros(*shape, observation_size, device=device)
        self.actions = th.zeros(*shape, *head.action_shape, dtype=head.action_type, device=device)
        # outputs of the policy that collected the rollout
        self.policies = th.zeros(*shape, head.size, device=device)
        self.rewards = th.zeros(shape, device=device)
        self.values = th.zeros(shape, device=device)
        self.episode_starts = th.zeros(shape, device=device)
        self.advantages = th.zeros(shape, device=device)
        self.returns = th.zeros(shape, device=device)

    @property
    def shape(self) -> tuple[int, ...]:
        """(steps, worlds, observation size, size of the policy's output)."""
        return (*self.observations.shape, self.policies.shape[-1])

    def compute_advantages(self, last_values: th.Tensor, last_dones: th.Tensor, gamma: float, gae_lambda: float) -> None:
        """Compute advantages (generalised advantage estimation, Schulman et al. 2016) and returns, over all worlds at once."""
        advantage = th.zeros_like(last_values)
        next_values, next_alive = last_values, 1.0 - last_dones
        for step in range(self.rewards.shape[0] - 1, -1, -1):
            delta = self.rewards[step] + gamma * next_values * next_alive - self.values[step]
            advantage = delta + gamma * gae_lambda * next_alive * advantage
            self.advantages[step] = advantage
            next_values, next_alive = self.values[step], 1.0 - self.episode_starts[step]
        th.add(self.advantages, self.values, out=self.returns)


class BatchPPO(PPO):
    """Clipped PPO for a `VectorEnvAdapter` with flat observations and discrete actions, or a flat box of them.

    Takes stable_baselines3.PPO's arguments (`clip_range_vf`, `use_sde` and rollout buffer classes excepted) and

    Args:
        ent_coef_final: Entropy coefficient at the end of training, reached linearly; None keeps `ent_coef`.
        std_final: Standard deviation of a box's actions at the end of training, reached from the policy's initial one by
            equal factors; None: the deviations are learned. Where the best action depends finely on the observation,
            learned ones shrink too late.
        privileged_critic: Whether advantages are computed by the values of the policy's critic, corrected by another one that
            is told `Task.privileged`.

    Raises:
        ValueError: The environment, its spaces or an argument is not supported.
    """

    def __init__(
        self,
        policy: Any,
        env: Any,
        *args: Any,
        ent_coef_final: float | None = None,
        std_final: float | None = None,
        privileged_critic: bool = False,
        **kwargs: Any,
    ):
        self.ent_coef_final, self.std_final = ent_coef_final, std_final
        self.privileged_critic = privileged_critic
        self._told_critic: PrivilegedCritic | None = None
        self._rollout: Rollout | None = None
        self.seconds_in_env = 0.0
        optimizer = {"eps": 1e-5, "fused": True}  # fused: one kernel for all parameters
        kwargs["policy_kwargs"] = {"optimizer_kwargs": optimizer, **(kwargs.get("policy_kwargs") or {})}
        super().__init__(policy, env, *args, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        space = self.action_space
        head: Head | None = None
        if isinstance(space, spaces.Discrete):
            head = _CategoricalHead(space, self.device)
        elif isinstance(space, spaces.Box) and len(space.shape) == 1:
            head = _GaussianHead(space, self.device)
        if head is None or len(self.observation_space.shape or ()) != 1:
            raise ValueError(
                "BatchPPO handles flat observations and discrete actions or a flat box of them, "
                f"not {self.observation_space} and {space}"
            )
        self._head = head
        if self.use_sde or self.clip_range_vf is not None:
            raise ValueError("BatchPPO has neither use_sde nor clip_range_vf")
        if self.std_final is not None:
            if not isinstance(head, _GaussianHead) or not self.std_final > 0:
                raise ValueError(f"std_final = {self.std_final!r} must be positive, and is for actions in a box")
            self.policy.log_std.requires_grad_(False)

    def _excluded_save_params(self) -> list[str]:
        transient = [
            "_rollout",
            "_told_critic",
            "_head",
            "_last_obs",
            "_last_episode_starts",
            "ep_info_buffer",
            "seconds_in_env",
        ]
        return [*super()._excluded_save_params(), *transient]

    @property
    def _actor(self) -> PerceptronNetwork:
        """Network from the actor's features to what the policy's head is made of."""
        latent = self.policy.mlp_extractor
        plain = type(latent) is MlpExtractor and not has_hooks(latent)
        return PerceptronNetwork([latent.policy_net if plain else latent.forward_actor, self.policy.action_net])

    @property
    def _critic(self) -> PerceptronNetwork:
        """Network from the critic's features to values."""
        latent = self.policy.mlp_extractor
        plain = type(latent) is MlpExtractor and not has_hooks(latent)
        return PerceptronNetwork([latent.value_net if plain else latent.forward_critic, self.policy.value_net])

    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: RolloutBuffer, n_rollout_steps: int
    ) -> bool:
        """Fill the rollout tensors with `n_rollout_steps` steps of every world; return False if a callback stopped it."""
        if not isinstance(env, VectorEnvAdapter):
            raise ValueError(f"BatchPPO runs on a netbuf_gym VectorEnvAdapter, not on {type(env).__name__}")
        head, finished = self._head, cast(deque[dict[str, Any]], self.ep_info_buffer)
        shape = (n_rollout_steps, env.num_envs, math.prod(self.observation_space.shape or ()))
        if self._rollout is None or self._rollout.shape != (*shape, head.size):
            self._rollout = self._new_rollout(*shape)
        rollout, critic = self._rollout, self.get_told_critic()
        self.policy.set_training_mode(False)
        if self.std_final is not None:
            first, final = self.policy.log_std_init, math.log(self.std_final)
            self.policy.log_std.fill_(final + self._current_progress_remaining * (first - final))
        callback.on_rollout_start()
        device = self.device
        observations = th.as_tensor(self._last_obs)
        starts = self._last_episode_starts
        noise = th.empty(env.num_envs, head.size, device=device)
        truncated: list[Truncated] = []
        for step in range(n_rollout_steps):
            with th.inference_mode():
                rollout.observations[step] = observations
                rollout.episode_starts[step] = th.as_tensor(starts)
                if critic is not None:
                    critic.note(step, n_rollout_steps)
                output = self._compute_step_output(rollout, step)
                rollout.policies[step] = output
                actions = head.sample(output, noise)
                rollout.actions[step] = actions
                for_env = head.for_env(actions)
            started = time.perf_counter()
            batch = env.step_batch(for_env)
            new_obs = batch.observations  # name that stable-baselines3's callbacks use
            self.seconds_in_env += time.perf_counter() - started
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                self._last_obs, self._last_episode_starts = new_obs, batch.dones
                return False
            finished.extend(batch.episodes)
            rewards = th.as_tensor(batch.rewards, dtype=th.float32)
            rollout.rewards[step] = rewards
            if len(batch.truncated_worlds):
                last = th.as_tensor(batch.truncated_observations, dtype=th.float32, device=device)
                truncated.append((step, th.as_tensor(batch.truncated_worlds, device=device), last))
            observations, starts = th.as_tensor(new_obs), batch.dones
        with th.inference_mode():
            last_dones = th.as_tensor(starts, dtype=th.float32, device=device)
            last_values = self._fill_values_if_told(rollout, observations.to(device, th.float32), last_dones, truncated)
            rollout.compute_advantages(last_values, last_dones, self.gamma, self.gae_lambda)
        self._last_obs, self._last_episode_starts = new_obs, starts
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _new_rollout(self, n_steps: int, n_worlds: int, observation_size: int) -> Rollout:
        return Rollout(n_steps, n_worlds, observation_size, self._head, self.device)

    def _compute_step_output(self, rollout: Rollout, step: int) -> th.Tensor:
        """Return the policy's output for a step's observations, which are in the rollout, as are their episode starts."""
        return self._compute_policy_output(rollout.observations[step])

    def get_told_critic(self) -> PrivilegedCritic | None:
        """Return the critic that is told `Task.privileged`, made when it is first asked for; None if there is to be none."""
        if self.privileged_critic and self._told_critic is None:
            size = math.prod(self.observation_space.shape or ())
            self._told_critic = PrivilegedCritic(cast(VectorEnvAdapter, self.env), size, self.device)
        return self._told_critic

    def _fill_values_if_told(
        self, rollout: Rollout, last: th.Tensor, last_dones: th.Tensor, truncated: list[Truncated]
    ) -> th.Tensor:
        """Fill in the values of a rollout, corrected by the critic that is told more, where there is one; see `_fill_values`.

        Of the last observations of truncated episodes it knows what it was told an interval before.
        """
        of_last = self._fill_values(rollout, last, last_dones, truncated)
        if (critic := self._told_critic) is None:
            return of_last
        for step, worlds, observations in truncated:
            rollout.rewards[step, worlds] += self.gamma * critic.correct(observations, critic.told[step, worlds])
        critic.uncorrected = rollout.values.clone()
        rollout.values += critic.correct(rollout.observations, critic.told)
        return of_last + critic.correct(last, critic.read())

    def _fill_values(self, rollout: Rollout, last: th.Tensor, last_dones: th.Tensor, truncated: list[Truncated]) -> th.Tensor:
        """Fill in the values of a rollout, and add the bootstrapped value of truncated episodes to their last rewards.

        Args:
            rollout: Rollout to fill in.
            last: Observations after the last step.
            last_dones: (worlds,), 1 where they begin an episode.
            truncated: Truncated episodes.

        Returns:
            Values of the observations after the last step, (worlds,).
        """
        for step, worlds, observations in truncated:
            rollout.rewards[step, worlds] += self.gamma * self._compute_values(observations)
        rollout.values.copy_(self._compute_values(rollout.observations.flatten(0, 1)).view_as(rollout.values))
        return self._compute_values(last)

    def _compute_policy_output(self, observations: th.Tensor) -> th.Tensor:
        """Return the policy's output: (batch, actions) log-probabilities, or means and log deviations."""
        return self._head.output(self.policy, self._actor(self._extract_features(observations)))

    def _compute_values(self, observations: th.Tensor) -> th.Tensor:
        """Return state values, (batch,)."""
        return self._critic(self._extract_features(observations, critic=True)).squeeze(1)

    def make_memory(self, worlds: int) -> Any:
        """Return the networks' memory of so many worlds before an episode; None where they have none."""
        return None

    def evaluate_sequences(self, observations: th.Tensor, starts: th.Tensor, memory: Any) -> tuple[th.Tensor, th.Tensor, Any]:
        """Return the policy's output for observations of some steps, values, and the memory after them.

        Args:
            observations: (steps, worlds, size).
            starts: (steps, worlds), 1 where an episode starts, else 0.
            memory: Memory before the first step (`make_memory`), through which no gradients flow.

        Returns:
            Output (steps * worlds, ...), values (steps * worlds,), and the memory.
        """
        rows = observations.flatten(0, 1)
        return self._compute_policy_output(rows), self._compute_values(rows), None

    def _extract_features(self, observations: th.Tensor, critic: bool = False) -> th.Tensor:
        """Return the features, (..., features), of observations, (..., size), for the actor or the critic."""
        extractor = self.policy.vf_features_extractor if critic else self.policy.pi_features_extractor
        if type(extractor) is FlattenExtractor and self._extracts_plainly():  # observations are flat
            return observations
        features = cast(th.Tensor, self.policy.extract_features(observations.flatten(0, -2), extractor))
        return features.view(*observations.shape[:-1], -1)

    def _compute_policy_loss(self, ratio: th.Tensor, advantages: th.Tensor, kl: th.Tensor) -> th.Tensor:
        """Return the policy loss to minimise, summed over a batch: here the clipped surrogate."""
        clip_range = self._get_clip_range()
        clipped = ratio.clamp(1.0 - clip_range, 1.0 + clip_range)
        return -th.min(advantages * ratio, advantages * clipped).sum()

    def _get_clip_range(self) -> float:
        """Return the current clip range, which is a schedule once the model is set up."""
        return cast(Schedule, self.clip_range)(self._current_progress_remaining)

    def _after_update(self, kl: float) -> None:
        """Hook, called with the mean KL divergence of the update's last epoch."""

    def _get_entropy_coefficient(self) -> float:
        if self.ent_coef_final is None:
            return self.ent_coef
        return self.ent_coef_final + self._current_progress_remaining * (self.ent_coef - self.ent_coef_final)

    def train(self) -> None:
        """Update the policy by the rollout: `n_epochs` passes in minibatches of `batch_size`."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        rollout, optimizer = cast(Rollout, self._rollout), self.policy.optimizer
        entropy_coefficient = self._get_entropy_coefficient()
        update = self._make_native_update(rollout, entropy_coefficient) or _TorchUpdate(self, rollout, entropy_coefficient)
        sums = th.zeros(5, device=self.device)  # policy loss, value loss, entropy, KL, clipped samples of the last epoch
        stopped = False
        for _ in range(self.n_epochs):
            sums.zero_()
            n_used = 0
            for minibatch in update.iterate_minibatches():
                n_decisions, kl = update.compute_gradients(minibatch, sums)
                n_used += n_decisions
                if self.target_kl is not None and float(kl) > 1.5 * self.target_kl:
                    stopped = True
                    break
                update.clip_gradients(self.max_grad_norm)
                optimizer.step()
            self._n_updates += 1
            if stopped:
                break
        policy_loss, value_loss, entropy, kl, clipped = (sums / n_used).tolist()
        if not all(map(math.isfinite, (policy_loss, value_loss, entropy, kl))):
            raise DivergedError(
                f"training diverged in update {self._n_updates} (policy loss {policy_loss}, value loss {value_loss}): "
                "a smaller learning rate may help"
            )
        self._after_update(kl)
        if self._told_critic is not None:
            self._told_critic.fit(rollout.observations, rollout.returns, self.n_epochs, self.batch_size)
        self.logger.record("train/policy_gradient_loss", policy_loss)
        self.logger.record("train/value_loss", value_loss)
        self.logger.record("train/entropy_loss", -entropy)
        self.logger.record("train/approx_kl", kl)
        self.logger.record("train/clip_fraction", clipped)
        self.logger.record("train/explained_variance", _compute_explained_variance(rollout))
        self.logger.record("train/ent_coef", entropy_coefficient)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("time/env_seconds", self.seconds_in_env)

    def _make_native_update(self, rollout: Rollout, entropy_coefficient: float) -> NativeUpdate | None:
        """Return the update in the core, or None where it does not compute networks like these."""
        actor, critic = self._actor.make_native(), self._critic.make_native()
        if actor is None or critic is None or not self._learns_natively():
            return None
        return NativeUpdate(self, actor, critic, rollout, entropy_coefficient)

    def _learns_natively(self) -> bool:
        """Return whether all of the networks of the core's is learned, nothing else is, and by losses of this package."""
        policy, own = self.policy, {id(one) for network in (self._actor, self._critic) for one in network.list_parameters()}
        extractors = (policy.pi_features_extractor, policy.vf_features_extractor)
        losses = ("_compute_loss", "_compute_policy_loss", "_evaluate_minibatch", "_compute_policy_output", "_compute_values")
        return (
            self._extracts_plainly()
            and all(type(one).__module__.startswith(OWN_AND_SB3) for one in extractors)
            and not any(one.requires_grad for extractor in extractors for one in extractor.parameters())
            and all(one.requires_grad for one in policy.parameters() if id(one) in own)
            and all(getattr(type(self), name).__module__.startswith(OWN_AND_SB3) for name in losses)
        )

    def _extracts_plainly(self) -> bool:
        """Return whether the policy's features are what its extractors return."""
        return type(self.policy).extract_features.__module__.startswith(OWN_AND_SB3)

    def _get_kl_coefficient(self) -> float | None:
        """Return the coefficient of the KL divergence in the policy loss; None: the ratio is clipped instead."""
        return None

    def _gather_samples(self, rollout: Rollout) -> list[th.Tensor]:
        """Return the update's data: observations, actions, policies, advantages, returns; (decisions, ...) each."""
        learned = (rollout.observations, rollout.actions, rollout.policies, rollout.advantages, rollout.returns)
        return [tensor.flatten(0, 1) for tensor in learned]

    def _iterate_minibatches(self, samples: list[th.Tensor]) -> Iterator[list[th.Tensor]]:
        """Yield minibatches of the samples, in random order and in memory of their own."""
        for indices in self._draw_minibatches(len(samples[0])):
            yield [tensor.index_select(0, indices) for tensor in samples]

    def _draw_minibatches(self, count: int, decisions: int = 1) -> Sequence[th.Tensor]:
        """Return indices of the parts of a rollout, of some decisions each, in random order, for each minibatch."""
        return th.split(th.randperm(count, device=self.device), self.batch_size // decisions)

    def _evaluate_minibatch(self, minibatch: list[th.Tensor]) -> tuple[th.Tensor, th.Tensor]:
        """Return the current policy's output for a minibatch, (decisions, ...), and its values, (decisions,)."""
        return self._compute_policy_output(minibatch[0]), self._compute_values(minibatch[0])

    def _compute_loss(
        self, minibatch: list[th.Tensor], entropy_coefficient: float, sums: th.Tensor
    ) -> tuple[th.Tensor, th.Tensor]:
        """Return (mean loss, mean KL divergence) of a minibatch, whose losses are added to `sums`."""
        actions, old, advantages, returns = minibatch[1:5]
        new, values = self._evaluate_minibatch(minibatch)
        ratio = self._head.log_ratio(new, old, actions).exp()
        kl = self._head.kl(old, new)
        policy_loss = self._compute_policy_loss(ratio, advantages, kl)
        value_loss = F.mse_loss(values, returns, reduction="sum")
        entropy = self._head.entropy(new)
        loss = (policy_loss + self.vf_coef * value_loss - entropy_coefficient * entropy) / len(actions)
        with th.no_grad():
            clipped = ((ratio - 1.0).abs() > self._get_clip_range()).sum()
            sums += th.stack((policy_loss, value_loss, entropy, kl, clipped))
        return loss, kl.detach() / len(actions)


def _compute_explained_variance(rollout: Rollout) -> float:
    returns, values = rollout.returns, rollout.values
    return float(1.0 - th.var(returns - values) / th.var(returns).clamp_min(1e-12))


class _TorchUpdate:
    """An update whose gradients torch computes.

    Args:
        model: Learner.
        rollout: What it is to learn from.
        entropy_coefficient: Coefficient of the entropy in the loss.
    """

    def __init__(self, model: BatchPPO, rollout: Rollout, entropy_coefficient: float):
        self._model, self._entropy_coefficient = model, entropy_coefficient
        self._samples = model._gather_samples(rollout)
        self._parameters = [parameter for parameter in model.policy.parameters() if parameter.requires_grad]

    def iterate_minibatches(self) -> Iterator[list[th.Tensor]]:
        """Yield the minibatches of an epoch."""
        return self._model._iterate_minibatches(self._samples)

    def compute_gradients(self, minibatch: list[th.Tensor], sums: th.Tensor) -> tuple[int, th.Tensor]:
        """Set the parameters' gradients, and add to the losses' sums; returns decisions and their mean KL divergence."""
        n_decisions = len(minibatch[1])
        if self._model.normalize_advantage and n_decisions > 1:
            std, mean = th.std_mean(minibatch[3])
            minibatch[3].sub_(mean).div_(std + 1e-8)
        loss, kl = self._model._compute_loss(minibatch, self._entropy_coefficient, sums)
        self._model.policy.optimizer.zero_grad()
        th.autograd.backward(loss)
        return n_decisions, kl

    def clip_gradients(self, max_norm: float) -> None:
        """Shorten the vector of all gradients to a length, if it is longer."""
        th.nn.utils.clip_grad_norm_(self._parameters, max_norm)


class NativeUpdate:
    """An update whose gradients the core computes; minibatches are rows of the rollout. See `_TorchUpdate`.

    Args:
        model: Learner.
        actor: The core's network of its policy.
        critic: The core's network of its values.
        rollout: What it is to learn from.
        entropy_coefficient: Coefficient of the entropy in the loss.
    """

    def __init__(self, model: BatchPPO, actor: Any, critic: Any, rollout: Rollout, entropy_coefficient: float):
        self._model, self._networks = model, (actor, critic)
        self._every_gradient = allot_gradients([one for one in model.policy.parameters() if one.requires_grad])
        observations = rollout.observations.flatten(0, 1)
        with th.no_grad():  # of nothing that is learned
            features = [model._extract_features(observations, critic=critic) for critic in (False, True)]
        self._features = [to_array(one) for one in features]
        decisions = [to_array(one.flatten(0, 1)) for one in (rollout.actions, rollout.policies, rollout.advantages)]
        kl_coefficient = model._get_kl_coefficient()
        settings = (kl_coefficient is None, model._get_clip_range(), kl_coefficient or 0.0, entropy_coefficient)
        self._losses = (
            model._head.make_native_loss(model.policy, decisions, model.normalize_advantage, *settings),
            _core.value_loss(to_array(rollout.returns.flatten()), model.vf_coef),
        )
        self._gradients = (model._actor.list_gradients(), model._critic.list_gradients())

    def iterate_minibatches(self) -> Iterator[Any]:
        """Yield the minibatches of an epoch."""
        yield from self._model._draw_minibatches(len(self._features[0]))

    def compute_gradients(self, minibatch: Any, sums: th.Tensor) -> tuple[int, float]:
        """Set the parameters' gradients, and add to the losses' sums; returns decisions and their mean KL divergence."""
        found = [self._learn(critic, minibatch) for critic in (False, True)]
        add_sums(sums, *found)
        decisions = self._count_decisions(minibatch)
        return decisions, found[0][3] / decisions

    def clip_gradients(self, max_norm: float) -> None:
        """Shorten the vector of all gradients to a length, if it is longer."""
        self._every_gradient.mul_((max_norm / (self._every_gradient.norm() + 1e-6)).clamp_(max=1.0))

    def _count_decisions(self, minibatch: Any) -> int:
        return len(minibatch)

    def _learn(self, critic: bool, minibatch: Any) -> Sequence[float]:
        """Set the gradients of one of the networks; returns the losses' sums."""
        network, features, loss = self._networks[critic], self._features[critic], self._losses[critic]
        return network.learn(features, minibatch.numpy(), loss, *self._gradients[critic], th.get_num_threads())


class KLPenaltyPPO(BatchPPO):
    """PPO with a KL penalty in place of the clip (`clip_range` is only used to report the clip fraction).

    Args:
        kl_coef: Coefficient of KL(old || new) at the start.
        kl_target: Mean KL divergence of an update that the coefficient is adapted to: doubled if an update's last
            epoch ends above 1.5 times it, halved below it / 1.5 (Schulman et al. 2017, section 4). None: fixed.
    """

    def __init__(self, policy: Any, env: Any, *args: Any, kl_coef: float = 1.0, kl_target: float | None = 0.01, **kwargs: Any):
        if not kl_coef > 0 or (kl_target is not None and not kl_target > 0):
            raise ValueError(f"kl_coef and kl_target must be positive, not {kl_coef!r} and {kl_target!r}")
        self.kl_coef, self.kl_target = float(kl_coef), kl_target
        super().__init__(policy, env, *args, **kwargs)

    def _compute_policy_loss(self, ratio: th.Tensor, advantages: th.Tensor, kl: th.Tensor) -> th.Tensor:
        return -(ratio * advantages).sum() + self.kl_coef * kl

    def _get_kl_coefficient(self) -> float | None:
        return self.kl_coef

    def _after_update(self, kl: float) -> None:
        self.logger.record("train/kl_coef", self.kl_coef)
        if self.kl_target is None:
            return
        if kl > 1.5 * self.kl_target:
            self.kl_coef = min(self.kl_coef * 2.0, 1e4)
        elif kl < self.kl_target / 1.5:
            self.kl_coef = max(self.kl_coef / 2.0, 1e-4)
