"""The core's networks against torch's: outputs, gradients and losses, of policies with and without memory."""

import itertools

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import MlpExtractor
from torch.nn.utils import spectral_norm

from netbuf_gym import _core
from netbuf_gym.integrations.normalizing import NormalizingExtractor
from netbuf_gym.training.algorithms import ppo
from netbuf_gym.training.algorithms.lstm import unroll_lstm
from netbuf_gym.training.algorithms.networks import PerceptronNetwork
from netbuf_gym.training.algorithms.ppo import BatchPPO, KLPenaltyPPO
from netbuf_gym.training.algorithms.ppo_lstm import BatchRecurrentPPO
from tests.training.gym_worlds import cart_poles, pendulums

WORLDS, STEPS = 70, 8
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def make(kind, worlds, **kwargs):
    policy_kwargs = {"net_arch": [20, 32], **kwargs.pop("policy_kwargs", {})}
    policy = kwargs.pop("policy", "MlpPolicy")
    if kind is BatchRecurrentPPO:
        policy, policy_kwargs["lstm_hidden_size"] = "MlpLstmPolicy", 16
    settings = {"n_steps": STEPS, "batch_size": 400, "n_epochs": 2, "seed": 3, "device": "cpu", "ent_coef": 0.02}
    model = kind(policy, worlds(WORLDS), policy_kwargs=policy_kwargs, **{**settings, **kwargs})
    model.set_logger(Logger(None, []))
    return model


def collect(model):
    """A rollout that begins within episodes, of a policy that another one then learns from."""
    _, callback = model._setup_learn(10_000, None, True, "", False)
    model.env = model.get_env()
    for _ in range(2):
        assert model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)
    generator = th.Generator().manual_seed(5)
    with th.no_grad():
        for one in model.policy.parameters():
            one += 0.05 * th.randn(one.shape, generator=generator)
    return model._rollout


@pytest.mark.parametrize("activation", [th.nn.Tanh, th.nn.ReLU])
@pytest.mark.parametrize("widths", [(108, 12), (7, 64, 1), (108, 64, 64, 12), (3, 40, 17, 5)])
def test_outputs_are_torchs(widths, activation):
    th.manual_seed(1)
    modules = []
    for inputs, outputs in itertools.pairwise(widths):
        modules += [th.nn.Linear(inputs, outputs), activation()]
    network, inputs = PerceptronNetwork([th.nn.Sequential(*modules[:-2]), modules[-2]]), 3 * th.randn(301, widths[0])
    expected = network(inputs)
    assert expected.requires_grad and network.make_native() is not None
    with th.inference_mode():
        th.testing.assert_close(network(inputs), expected.detach(), rtol=1e-5, atol=1e-5)


def test_activations_are_exact_at_all_sizes():
    values = th.cat((th.logspace(-20, 4, 4001), -th.logspace(-20, 4, 4001), th.tensor([0.0, float("nan"), float("inf")])))
    identity = th.nn.Linear(1, 1)
    with th.no_grad():
        identity.weight.fill_(1), identity.bias.zero_()
        found = PerceptronNetwork([identity, th.nn.Tanh(), identity])(values[:, None])[:, 0]
    th.testing.assert_close(found, th.tanh(values), rtol=4e-7, atol=0, equal_nan=True)


@pytest.mark.parametrize("share_of_starts", [0.0, 0.3])
@pytest.mark.parametrize("layers", [1, 2])
def test_sequences_are_torchs(layers, share_of_starts):
    generator = th.Generator().manual_seed(1)
    lstm, inputs = th.nn.LSTM(5, 32, num_layers=layers), th.randn(9, 37, 5, generator=generator)
    state = (th.randn(layers, 37, 32, generator=generator), th.randn(layers, 37, 32, generator=generator))
    starts = (th.rand(9, 37, generator=generator) < share_of_starts).float()
    expected, memories = unroll_lstm(lstm, inputs, state, starts)
    assert expected.requires_grad
    with th.inference_mode():
        found, own = unroll_lstm(lstm, inputs, state, starts)
    for ours, torchs in zip((found, *own), (expected.detach(), *memories), strict=True):
        th.testing.assert_close(ours, torchs, rtol=1e-5, atol=1e-6)


CASES = [
    (BatchPPO, cart_poles, {}),
    (BatchPPO, cart_poles, {"policy_kwargs": {"net_arch": {"pi": [16], "vf": []}, "activation_fn": th.nn.ReLU}}),
    (BatchPPO, cart_poles, {"policy_kwargs": {"features_extractor_class": NormalizingExtractor}, "normalize_advantage": False}),
    (BatchPPO, pendulums, {"clip_range": 0.02}),
    (BatchPPO, pendulums, {"std_final": 0.1}),
    (KLPenaltyPPO, cart_poles, {}),
    (KLPenaltyPPO, pendulums, {"kl_coef": 3.0}),
    (BatchRecurrentPPO, cart_poles, {}),
    (BatchRecurrentPPO, cart_poles, {"sequence_steps": 4}),
    (BatchRecurrentPPO, pendulums, {"policy_kwargs": {"net_arch": []}}),
]


@pytest.mark.parametrize(("kind", "worlds", "settings"), CASES)
def test_gradients_and_losses_are_torchs(kind, worlds, settings):
    model = make(kind, worlds, **settings)
    rollout = collect(model)
    found = []
    for make_update in (lambda *_: ppo._TorchUpdate(model, rollout, 0.02), model._make_native_update):
        th.manual_seed(2)
        model.policy.optimizer.zero_grad()
        update, sums = make_update(rollout, 0.02), th.zeros(5)
        for minibatch in update.iterate_minibatches():
            decisions, kl = update.compute_gradients(minibatch, sums)
        parameters = [one for one in model.policy.parameters() if one.grad is not None]
        gradients = [one.grad.clone() for one in parameters]
        update.clip_gradients(0.05)
        assert th.cat([one.grad.flatten() for one in parameters]).norm().item() == pytest.approx(0.05, rel=1e-3)
        found.append([th.tensor(float(kl)), th.tensor(decisions), sums, *gradients])
    assert sum(bool(one.abs().max() > 1e-4) for one in found[0][3:]) > 4
    for torchs, ours in zip(*found, strict=True):
        th.testing.assert_close(ours, torchs, **CLOSE)


@pytest.mark.parametrize("kind", [BatchPPO, BatchRecurrentPPO])
def test_threads_do_not_matter(kind):
    found = []
    before = th.get_num_threads()
    for threads in (1, 3):
        th.set_num_threads(threads)
        try:
            model = make(kind, cart_poles, batch_size=560)
            rollout = collect(model)
            update = model._make_native_update(rollout, 0.0)
            update.compute_gradients(next(iter(update.iterate_minibatches())), th.zeros(5))
            found.append([one.grad.clone() for one in model.policy.parameters()])
        finally:
            th.set_num_threads(before)
    assert all(th.equal(one, other) for one, other in zip(*found, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [BatchPPO, BatchRecurrentPPO])
def test_trainings_come_as_far_as_with_torch(kind, monkeypatch):
    def train(seed):
        policy, policy_kwargs = "MlpPolicy", {}
        if kind is BatchRecurrentPPO:
            policy, policy_kwargs = "MlpLstmPolicy", {"lstm_hidden_size": 16, "net_arch": [32]}
        settings = {"n_steps": 32, "batch_size": 256, "n_epochs": 6, "learning_rate": 2e-3, "policy_kwargs": policy_kwargs}
        model = kind(policy, cart_poles(32, 200), seed=seed, device="cpu", **settings).learn(32 * 32 * 25)
        return np.mean([episode["r"] for episode in list(model.ep_info_buffer)[-30:]])

    ours = np.mean([train(seed) for seed in (1, 2, 3)])
    monkeypatch.setattr(kind, "_make_native_update", lambda *_: None)
    assert ours > 60 and ours == pytest.approx(np.mean([train(seed) for seed in (1, 2, 3)]), rel=0.3)


def test_actions_are_drawn_by_their_probabilities():
    head = make(BatchPPO, cart_poles)._head
    head.size = 5
    probabilities = th.tensor([0.5, 0.0, 0.02, 0.38, 0.1])
    th.manual_seed(4)
    drawn = head.sample(probabilities.log().expand(200_000, 5), th.empty(200_000, 5))
    shares = th.bincount(drawn, minlength=5) / 200_000
    th.testing.assert_close(shares, probabilities, rtol=0, atol=0.005)
    assert shares[1] == 0


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (BatchPPO, {"policy_kwargs": {"activation_fn": th.nn.ELU}}),
        (BatchRecurrentPPO, {"policy_kwargs": {"n_lstm_layers": 2}}),
        (BatchRecurrentPPO, {"policy_kwargs": {"shared_lstm": True, "enable_critic_lstm": False}}),
        (BatchRecurrentPPO, {"policy_kwargs": {"enable_critic_lstm": False}}),
    ],
)
def test_other_networks_are_left_to_torch(kind, settings):
    model = make(kind, cart_poles, **settings)
    assert model._make_native_update(collect(model), 0.0) is None
    model.train()


class ShiftedExtractor(MlpExtractor):
    """Latent features that are moved by something that is no module."""

    def forward_actor(self, features):
        return super().forward_actor(features) + 1


class ShiftedPolicy(ActorCriticPolicy):
    """A policy with an extractor of its own."""

    def _build_mlp_extractor(self):
        self.mlp_extractor = ShiftedExtractor(self.features_dim, self.net_arch, self.activation_fn, self.device)


class OwnLoss(BatchPPO):
    """A learner with a policy loss of its own."""

    def _compute_policy_loss(self, ratio, advantages, kl):
        return super()._compute_policy_loss(ratio, advantages, kl)


def freeze(model):
    model.policy.mlp_extractor.policy_net.requires_grad_(False)


def normalize_weights(model):
    spectral_norm(model.policy.action_net)


def watch(model):
    model.policy.action_net.register_forward_hook(lambda module, inputs, output: output * 2)


@pytest.mark.parametrize("change", [freeze, normalize_weights, watch, ShiftedPolicy, OwnLoss])
def test_what_a_user_changes_of_networks_or_losses_is_kept_to(change):
    kind = change if change is OwnLoss else BatchPPO
    model = make(kind, cart_poles, policy=ShiftedPolicy if change is ShiftedPolicy else "MlpPolicy")
    rollout = collect(model)
    model.train()  # gradients are there
    if change in (freeze, normalize_weights, watch):
        change(model)
    observations = th.randn(40, rollout.observations.shape[-1])
    with th.no_grad():
        model.policy.set_training_mode(False)
        expected = model.policy.get_distribution(observations).distribution.logits
        th.testing.assert_close(model._compute_policy_output(observations), expected, rtol=1e-5, atol=1e-5)
    frozen = [one.clone() for one in model.policy.mlp_extractor.policy_net.parameters()]
    assert model._make_native_update(rollout, 0.0) is None
    model.train()
    same = [th.equal(*pair) for pair in zip(frozen, model.policy.mlp_extractor.policy_net.parameters(), strict=True)]
    assert all(same) if change is freeze else not any(same)


def test_another_head_is_taken():
    model = make(BatchPPO, cart_poles)
    model.policy.action_net = th.nn.Linear(*reversed(model.policy.action_net.weight.shape))
    observations = th.randn(7, model.observation_space.shape[0])
    with th.no_grad():
        expected = model.policy.get_distribution(observations).distribution.logits
        th.testing.assert_close(model._compute_policy_output(observations), expected, rtol=1e-5, atol=1e-5)


def test_numbers_that_are_not_finite_are_told():
    model = make(BatchPPO, cart_poles)
    rollout = collect(model)
    rollout.returns[3, 4] = float("nan")
    with pytest.raises(ppo.DivergedError):
        model.train()


def test_arrays_that_do_not_fit_are_refused():
    weight, bias = np.zeros((4, 3), np.float32), np.zeros(4, np.float32)
    with pytest.raises(ValueError, match="activation = 'elu'; valid: tanh, relu"):
        _core.Perceptron([weight], [bias], "elu")
    with pytest.raises(ValueError, match="biases must have shape"):
        _core.Perceptron([weight], [bias[:3]], "tanh")
    network, out = _core.Perceptron([weight], [bias], "tanh"), np.zeros((2, 4), np.float32)
    with pytest.raises(ValueError, match="inputs must have shape"):
        network.forward(np.zeros((2, 4), np.float32), out, 1)
    with pytest.raises(ValueError, match="width a multiple of 16"):
        _core.Lstm(np.zeros((32, 3), np.float32), np.zeros((32, 8), np.float32), *[np.zeros(32, np.float32)] * 2)
    loss = _core.value_loss(np.zeros(5, np.float32), 0.5)
    inputs, gradients = np.zeros((5, 3), np.float32), ([np.zeros_like(weight[:1])], [np.zeros_like(bias[:1])])
    value = _core.Perceptron([weight[:1]], [bias[:1]], "tanh")
    assert value.learn(inputs, np.array([4, 0]), loss, *gradients, 1) == (0, 0, 0, 0, 0)
    with pytest.raises(IndexError, match=r"rows\[1\] = 5; valid: 0 or more, below 5"):
        value.learn(inputs, np.array([0, 5]), loss, *gradients, 1)
    with pytest.raises(ValueError, match="outputs that the loss is of"):
        network.learn(inputs, np.array([0]), loss, [np.zeros_like(weight)], [np.zeros_like(bias)], 1)
    with pytest.raises(IndexError, match=r"actions\[0\] = 2"):
        probabilities = np.zeros((1, 2), np.float32), np.zeros(1, np.float32)
        _core.categorical_loss(np.array([2]), *probabilities, True, True, 0.2, 0.0, 0.0)
