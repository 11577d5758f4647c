"""Recurrent PPO for batched environments: sb3-contrib's algorithm over sequences of many worlds at once.

Sb3-contrib's `RecurrentPPO` iterates over every world's `done` and `info` each step, cuts its rollout into episodes that it
pads to the longest, and goes through the LSTM step by step. `BatchRecurrentPPO` is `BatchPPO` with memory: rollouts are
(steps, worlds) tensors, sequences lie side by side in them, minibatches consist of whole sequences, and states are reset
where episodes start within one (`netbuf_gym.training.algorithms.lstm`). Policy, hyper-parameters and save format are
sb3-contrib's: `sb3_contrib.RecurrentPPO.load` reads the files that it saves.

Gradients go back through a sequence and no further (truncated backpropagation through time); a sequence begins with the
policy's state there when the rollout was collected, as in sb3-contrib, through all epochs of an update.

With `guess_coef` the first units of the actor's memory also learn to predict the labels of `Task.hidden`, which no agent
observes: an auxiliary task (Jaderberg et al., "Reinforcement learning with unsupervised auxiliary tasks", ICLR 2017). A late
reward that depends on a hidden condition says little about what to remember; the labels say it at every decision. They are
used in training only: the policy's observations are unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, cast

import numpy as np
import torch as th
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from sb3_contrib.ppo_recurrent.policies import MlpLstmPolicy
from stable_baselines3.common.policies import BasePolicy
from torch.nn import functional as F

from netbuf_gym.envs.engine import Engine
from netbuf_gym.integrations.sb3 import VectorEnvAdapter
from netbuf_gym.training.algorithms.lstm import State, require_plain_lstm, unroll_lstm
from netbuf_gym.training.algorithms.networks import list_lstm_parameters, make_native_lstm, to_array
from netbuf_gym.training.algorithms.ppo import BatchPPO, Head, NativeUpdate, Rollout, Truncated


class HiddenConditions:
    """Hidden conditions of the worlds, updated as their scenarios change.

    Args:
        worlds: Worlds of the learner.

    Attributes:
        names: Names of the hidden conditions.
    """

    def __init__(self, worlds: VectorEnvAdapter):
        native: Any = worlds.env.unwrapped
        self._engine: Engine = native.engine
        self.names = self._engine.task.hidden
        self._scenarios: list[Any] = [None] * self._engine.worlds
        self._spans = np.full((self._engine.worlds, self._engine.agents, len(self.names), 1, 2), np.inf)

    def read_labels(self) -> np.ndarray:
        """Return whether each condition is present now, float32 `(rows, names)`, 0 or 1."""
        for world, scenario in enumerate(self._engine.scenarios):
            if scenario is not self._scenarios[world]:
                self._scenarios[world] = scenario
                self._update_spans(world, self._engine.task.hidden_spans(scenario))
        time_s = (self._engine.time_ns * 1e-9)[:, None, None, None]
        there = (self._spans[..., 0] <= time_s) & (time_s < self._spans[..., 1])
        return there.any(-1).reshape(-1, len(self.names)).astype(np.float32)

    def _update_spans(self, world: int, present: Any) -> None:
        most = max((len(spans) for agent in present for spans in agent), default=0)
        if most > self._spans.shape[3]:
            more = np.full((*self._spans.shape[:3], most - self._spans.shape[3], 2), np.inf)
            self._spans = np.concatenate((self._spans, more), axis=3)
        self._spans[world] = np.inf
        for agent, of_agent in enumerate(present):
            for name, spans in enumerate(of_agent):
                if spans:
                    self._spans[world, agent, name, : len(spans)] = spans


LARGEST_ODDS = 6.0
"""Maximum logarithm of the odds of a guess: certainty beyond one in 400 is not expressed."""


class RecurrentRollout(Rollout):
    """A rollout with the states of actor and critic before each step and after the last.

    Hidden and cell states each are (steps + 1, layers, worlds, width), before the reset at episode starts. The hidden
    conditions, `hidden`, are (steps, worlds, names), 0 or 1.
    """

    def __init__(
        self,
        n_steps: int,
        n_worlds: int,
        observation_size: int,
        head: Head,
        device: th.device,
        lstm: th.nn.LSTM,
        n_hidden: int = 0,
    ):
        super().__init__(n_steps, n_worlds, observation_size, head, device)
        shape = (n_steps + 1, lstm.num_layers, n_worlds, lstm.hidden_size)
        self.actor: State = (th.zeros(shape, device=device), th.zeros(shape, device=device))
        self.critic: State = (th.zeros(shape, device=device), th.zeros(shape, device=device))
        self.hidden = th.zeros(n_steps, n_worlds, n_hidden, device=device)


class BatchRecurrentPPO(BatchPPO):
    """Clipped PPO with an LSTM policy for a `VectorEnvAdapter` with flat observations and discrete actions, or a flat box.

    The policy is sb3-contrib's `MlpLstmPolicy`: by `policy_kwargs` the critic has an LSTM of its own (the default), the actor's
    without gradients into it (`shared_lstm=True`, `enable_critic_lstm=False`), or none (`enable_critic_lstm=False`).

    Takes `BatchPPO`'s arguments and

    Args:
        sequence_steps: Decisions that gradients go back through, a divisor of `n_steps`; None: the whole rollout of a world.
            A minibatch consists of `batch_size // sequence_steps` sequences.
        guess_coef: Weight of the cross-entropy of the memory's guesses of `Task.hidden`, a mean over names and decisions; 0:
            no guesses.

    Raises:
        ValueError: The environment, its spaces, the policy or an argument is not supported.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MlpLstmPolicy": MlpLstmPolicy}

    def __init__(
        self,
        policy: Any,
        env: Any,
        *args: Any,
        n_steps: int = 128,
        batch_size: int = 128,
        sequence_steps: int | None = None,
        guess_coef: float = 0.0,
        **kwargs: Any,
    ):
        self.sequence_steps, self.guess_coef = sequence_steps, guess_coef
        self._hidden: HiddenConditions | None = None
        super().__init__(policy, env, *args, n_steps=n_steps, batch_size=batch_size, **kwargs)

    def _setup_model(self) -> None:
        steps = self._sequence_steps()
        if not 1 <= steps <= self.n_steps or self.n_steps % steps:
            raise ValueError(f"sequence_steps = {steps!r} is no divisor of n_steps = {self.n_steps}")
        if self.batch_size < steps:
            raise ValueError(f"batch_size = {self.batch_size!r} is less than a sequence of {steps} decisions")
        super()._setup_model()
        if not isinstance(self.policy, RecurrentActorCriticPolicy):
            raise ValueError(f"policy must be MlpLstmPolicy, not {type(self.policy).__name__}")
        require_plain_lstm(self.policy.lstm_actor)
        self._last_lstm_states = self.make_memory(self.n_envs)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_last_lstm_states", "_hidden"]

    def make_memory(self, worlds: int) -> tuple[State, State]:
        """Return the states of actor and critic at the start of an episode."""
        layers, _, width = self._networks.lstm_hidden_state_shape
        actor, critic, *cells = th.zeros(4, layers, worlds, width, device=self.device).unbind()
        return (actor, cells[0]), (critic, cells[1])

    def evaluate_sequences(self, observations: th.Tensor, starts: th.Tensor, memory: Any) -> tuple[th.Tensor, th.Tensor, Any]:
        """See `BatchPPO.evaluate_sequences`."""
        latent, of_critic, *after = self._run_memories(observations, starts, *memory)
        actor, critic = ((hidden[-1], cells[-1]) for hidden, cells in after)
        return (
            self._compute_actor_output(latent.flatten(0, 1)),
            self._compute_critic_values(of_critic.flatten(0, 1)),
            (actor, critic),
        )

    def _run_memories(
        self, observations: th.Tensor, starts: th.Tensor, actor: State, critic: State
    ) -> tuple[th.Tensor, th.Tensor, State, State]:
        """Return the inputs of the actor's and the critic's networks, (steps, worlds, width), and the states after each step.

        A memory that both share is run once, and its states are the actor's.
        """
        latent, after = unroll_lstm(self._networks.lstm_actor, self._extract_features(observations), actor, starts)
        if self._networks.shared_lstm:
            return latent, latent.detach(), after, after
        of_critic, critic_after = self._run_critic_memory(self._extract_features(observations, critic=True), critic, starts)
        return latent, of_critic, after, critic_after

    def _sequence_steps(self) -> int:
        return self.n_steps if self.sequence_steps is None else self.sequence_steps

    @property
    def _networks(self) -> RecurrentActorCriticPolicy:
        return cast(RecurrentActorCriticPolicy, self.policy)

    def _new_rollout(self, n_steps: int, n_worlds: int, observation_size: int) -> RecurrentRollout:
        lstm, names = self._networks.lstm_actor, self._make_hidden_conditions().names if self.guess_coef else ()
        return RecurrentRollout(n_steps, n_worlds, observation_size, self._head, self.device, lstm, len(names))

    def _make_hidden_conditions(self) -> HiddenConditions:
        """Return the hidden conditions of the learner's worlds."""
        return HiddenConditions(cast(VectorEnvAdapter, self.env))

    def _compute_step_output(self, rollout: Rollout, step: int) -> th.Tensor:
        memory = cast(RecurrentRollout, rollout).actor
        if step == 0:
            _store_state(memory, 0, self._last_lstm_states[0])
            self._hidden = self._make_hidden_conditions() if self.guess_coef else None
        if self._hidden is not None:
            cast(RecurrentRollout, rollout).hidden[step] = th.as_tensor(self._hidden.read_labels())
        observations, starts = rollout.observations[step : step + 1], rollout.episode_starts[step : step + 1]
        state = (memory[0][step], memory[1][step])
        after = (memory[0][step + 1 : step + 2], memory[1][step + 1 : step + 2])
        outputs, _ = unroll_lstm(self._networks.lstm_actor, self._extract_features(observations), state, starts, after)
        for own, one in zip(self._last_lstm_states[0], after, strict=True):
            own.copy_(one[0])
        return self._compute_actor_output(outputs[0])

    def _fill_values(self, rollout: Rollout, last: th.Tensor, last_dones: th.Tensor, truncated: list[Truncated]) -> th.Tensor:
        """Run the critic through the whole rollout at once; see `BatchPPO._fill_values`."""
        memory = cast(RecurrentRollout, rollout).critic
        _store_state(memory, 0, self._last_lstm_states[1])
        features = self._extract_features(rollout.observations, critic=True)
        after = (memory[0][1:], memory[1][1:])
        latent, _ = self._run_critic_memory(features, self._last_lstm_states[1], rollout.episode_starts, after)
        for own, one in zip(self._last_lstm_states[1], after, strict=True):
            own.copy_(one[-1])
        rollout.values.copy_(self._compute_critic_values(latent.flatten(0, 1)).view_as(rollout.values))
        for step, worlds, observations in truncated:
            state = (memory[0][step + 1][:, worlds], memory[1][step + 1][:, worlds])
            features = self._extract_features(observations.unsqueeze(0), critic=True)
            latent, _ = self._run_critic_memory(features, state, th.zeros(1, len(worlds), device=self.device))
            rollout.rewards[step, worlds] += self.gamma * self._compute_critic_values(latent[0])
        features = self._extract_features(last.unsqueeze(0), critic=True)
        latent, _ = self._run_critic_memory(features, self._last_lstm_states[1], last_dones.unsqueeze(0))
        return self._compute_critic_values(latent[0])

    def _run_critic_memory(
        self, features: th.Tensor, state: State, starts: th.Tensor, into: State | None = None
    ) -> tuple[th.Tensor, State]:
        """Return the input of the critic's value network, (steps, worlds, width), and the states after each step, in `into`."""
        policy = self._networks
        lstm = policy.lstm_actor if policy.shared_lstm else policy.lstm_critic
        if lstm is not None:
            return unroll_lstm(lstm, features, state, starts, into)
        kept = (len(features), *state[0].shape)
        states = into or (features.new_empty(kept), features.new_empty(kept))
        for own, one in zip(states, state, strict=True):
            own.copy_(one.expand(kept))
        return cast(th.nn.Linear, policy.critic)(features), states

    def _compute_actor_output(self, latent: th.Tensor) -> th.Tensor:
        """Return the policy's output for the actor's memory, (batch, width)."""
        return self._head.output(self.policy, self._actor(latent))

    def _compute_critic_values(self, latent: th.Tensor) -> th.Tensor:
        """Return state values, (batch,), for the critic's memory, (batch, width)."""
        return self._critic(latent).squeeze(1)

    def _gather_samples(self, rollout: Rollout) -> list[th.Tensor]:
        """Return `BatchPPO`'s data, but as (decisions of a sequence, sequences, ...) each; then starts and initial states.

        With `guess_coef` the labels of the hidden conditions follow.
        """
        rollout, length = cast(RecurrentRollout, rollout), self._sequence_steps()
        learned = (rollout.observations, rollout.actions, rollout.policies, rollout.advantages, rollout.returns)
        samples = [_arrange_sequences(one, length) for one in (*learned, rollout.episode_starts)]
        for memory in (*rollout.actor, *rollout.critic):
            samples.append(memory[:-1:length].transpose(0, 1).flatten(1, 2))  # (layers, sequences, width)
        return [*samples, _arrange_sequences(rollout.hidden, length)] if self.guess_coef else samples

    def _iterate_minibatches(self, samples: list[th.Tensor]) -> Iterator[list[th.Tensor]]:
        """Yield sequences in random order; actions, policies, advantages and returns are (decisions, ...)."""
        for indices in self._draw_minibatches(samples[0].shape[1], self._sequence_steps()):
            picked = [tensor.index_select(1, indices) for tensor in samples]
            yield [picked[0], *(tensor.flatten(0, 1) for tensor in picked[1:5]), *picked[5:]]

    def _evaluate_minibatch(self, minibatch: list[th.Tensor]) -> tuple[th.Tensor, th.Tensor]:
        states = (minibatch[6], minibatch[7]), (minibatch[8], minibatch[9])
        latent, of_critic, *_ = self._run_memories(minibatch[0], minibatch[5], *states)
        if self.guess_coef:
            self._guess_loss = F.binary_cross_entropy_with_logits(
                compute_guess_logits(latent, minibatch[10].shape[2]), minibatch[10]
            )
        return self._compute_actor_output(latent.flatten(0, 1)), self._compute_critic_values(of_critic.flatten(0, 1))

    def _make_native_update(self, rollout: Rollout, entropy_coefficient: float) -> NativeUpdate | None:
        policy = self._networks
        lstms = [one for one in (policy.lstm_actor, policy.lstm_critic) if one is not None]
        natives = [make_native_lstm(one) for one in lstms if one.num_layers == 1]
        actor, critic = self._actor.make_native(), self._critic.make_native()
        plain = None not in (*natives, actor, critic) and self._learns_natively()
        learned = all(one.requires_grad for lstm in lstms for one in lstm.parameters())
        if len(natives) < 2 or policy.shared_lstm or self.guess_coef or not plain or not learned:
            return None
        return RecurrentUpdate(self, natives, actor, critic, cast(RecurrentRollout, rollout), entropy_coefficient)

    def _compute_loss(
        self, minibatch: list[th.Tensor], entropy_coefficient: float, sums: th.Tensor
    ) -> tuple[th.Tensor, th.Tensor]:
        loss, kl = super()._compute_loss(minibatch, entropy_coefficient, sums)
        return (loss + self.guess_coef * self._guess_loss, kl) if self.guess_coef else (loss, kl)

    def train(self) -> None:
        """See `BatchPPO.train`."""
        super().train()
        if self.guess_coef:
            self.logger.record("train/guess_loss", self._guess_loss.item())


class RecurrentUpdate(NativeUpdate):
    """An update whose gradients the core computes, those of memory included. Minibatches are indices of sequences."""

    def __init__(
        self, model: BatchRecurrentPPO, lstms: list[Any], actor: Any, critic: Any, rollout: RecurrentRollout, entropy: float
    ):
        super().__init__(model, actor, critic, rollout, entropy)
        self._lstms, self._length = lstms, model._sequence_steps()
        self._starts = rollout.episode_starts.flatten() if th.count_nonzero(rollout.episode_starts) else None
        self._memories = [
            [one[: -1 : self._length, 0].flatten(0, 1) for one in memory] for memory in (rollout.actor, rollout.critic)
        ]
        worlds = rollout.episode_starts.shape[1]
        parts = th.arange(rollout.episode_starts.numel()).view(-1, self._length, worlds)
        self._rows = parts.transpose(0, 1).flatten(1, 2)  # (decisions of a sequence, sequences)
        policy = model._networks
        modules = [cast(th.nn.LSTM, one) for one in (policy.lstm_actor, policy.lstm_critic)]
        self._of_lstms = [
            [to_array(cast(th.Tensor, one.grad)) for one in list_lstm_parameters(module, 0)] for module in modules
        ]

    def iterate_minibatches(self) -> Iterator[Any]:
        """Yield the minibatches of an epoch."""
        yield from self._model._draw_minibatches(self._rows.shape[1], self._length)

    def _count_decisions(self, minibatch: Any) -> int:
        return len(minibatch) * self._length

    def _learn(self, critic: bool, minibatch: Any) -> Sequence[float]:
        rows = self._rows.index_select(1, minibatch)
        state = [one.index_select(0, minibatch).numpy() for one in self._memories[critic]]
        starts = None if self._starts is None else self._starts[rows].numpy()
        *gradients, other_bias = self._of_lstms[critic]
        found = self._lstms[critic].learn(
            self._networks[critic],
            self._features[critic],
            rows.numpy(),
            *state,
            starts,
            self._losses[critic],
            *gradients,
            *self._gradients[critic],
            th.get_num_threads(),
        )
        np.copyto(other_bias, gradients[2])  # both biases are added to the same gates
        return found


def compute_guess_logits(latent: th.Tensor, names: int) -> th.Tensor:
    """Return the log odds of hidden conditions, (..., names), for an actor's memory, (..., width), of units in -1 to 1."""
    return LARGEST_ODDS * latent[..., :names]


def _store_state(memory: State, step: int, state: State) -> None:
    for own, one in zip(memory, state, strict=True):
        own[step] = one


def _arrange_sequences(tensor: th.Tensor, length: int) -> th.Tensor:
    """Rearrange (steps, worlds, ...) into sequences of a length, (length, steps / length * worlds, ...)."""
    return tensor.view(-1, length, *tensor.shape[1:]).transpose(0, 1).flatten(1, 2)
