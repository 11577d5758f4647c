"""Our recurrent PPO against sb3-contrib's: same rollout, same update, same files; states that follow the episodes."""

import numpy as np
import pytest
import sb3_contrib
import torch as th
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from stable_baselines3.common.logger import Logger

from netbuf_gym.errors import ConfigError
from netbuf_gym.integrations.sb3 import VectorEnvAdapter
from netbuf_gym.training import ranges
from netbuf_gym.training.algorithms.lstm import require_plain_lstm, unroll_lstm
from netbuf_gym.training.algorithms.ppo_lstm import BatchRecurrentPPO
from netbuf_gym.training.config import load
from tests.training.gym_worlds import WORLDS, Ends, cart_poles, pendulums

STEPS = 12
CRITICS = {
    "own": {},
    "shared": {"shared_lstm": True, "enable_critic_lstm": False},
    "none": {"enable_critic_lstm": False},
}


def make(kind=BatchRecurrentPPO, worlds=cart_poles, critic="own", layers=1, **kwargs):
    policy_kwargs = {"lstm_hidden_size": 8, "n_lstm_layers": layers, "net_arch": [16], **CRITICS[critic]}
    settings = {"n_steps": STEPS, "batch_size": STEPS * WORLDS, "n_epochs": 1, "seed": 3, "device": "cpu", "ent_coef": 0.02}
    model = kind("MlpLstmPolicy", worlds(), policy_kwargs=policy_kwargs, **{**settings, **kwargs})
    model.set_logger(Logger(None, []))
    return model


def collect(model, times=1):
    """The last of some rollouts."""
    _, callback = model._setup_learn(10_000, None, True, "", False)
    model.env = model.get_env()
    for _ in range(times):
        assert model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)
    return model._rollout


def stepwise(lstm, inputs, state, starts):
    """What `unroll` gives, by torch's own module."""
    outputs, hidden, cells = [], [], []
    for one, start in zip(inputs, starts, strict=True):
        keep = (1.0 - start).view(1, -1, 1)
        output, state = lstm(one.unsqueeze(0), (keep * state[0], keep * state[1]))
        outputs.append(output[0])
        hidden.append(state[0])
        cells.append(state[1])
    return th.stack(outputs), (th.stack(hidden), th.stack(cells))


@pytest.mark.parametrize("share_of_starts", [0.0, 0.3])
@pytest.mark.parametrize("layers", [1, 2])
def test_sequences_and_their_gradients_are_those_of_torchs_lstm(layers, share_of_starts):
    generator = th.Generator().manual_seed(1)
    lstm = th.nn.LSTM(5, 7, num_layers=layers)
    inputs = th.randn(9, 4, 5, generator=generator, requires_grad=True)
    state = (th.randn(layers, 4, 7, generator=generator), th.randn(layers, 4, 7, generator=generator))
    starts = (th.rand(9, 4, generator=generator) < share_of_starts).float()
    weights = th.randn(9, 4, 7, generator=generator)
    found = []
    for run in (unroll_lstm, stepwise):
        outputs, states = run(lstm, inputs, state, starts)
        gradients = th.autograd.grad((weights * outputs).sum(), [inputs, *lstm.parameters()])
        found.append([outputs, *states, *gradients])
    for ours, torchs in zip(*found, strict=True):
        th.testing.assert_close(ours, torchs, rtol=1e-4, atol=1e-5)


def test_a_state_does_not_outlive_its_episode():
    lstm = th.nn.LSTM(3, 4)
    inputs, starts = th.randn(6, 2, 3), th.zeros(6, 2)
    starts[3, 1] = 1
    outputs = [unroll_lstm(lstm, inputs, (th.full((1, 2, 4), value),) * 2, starts)[0] for value in (0.0, 5.0)]
    same = (outputs[0] == outputs[1]).all(dim=2)
    assert same[:, 1].tolist() == [False] * 3 + [True] * 3 and not same[:, 0].any()


@pytest.mark.parametrize("critic", CRITICS)
@pytest.mark.parametrize("worlds", [cart_poles, pendulums])
def test_one_update_equals_stock(worlds, critic, monkeypatch):
    layers = 2 if critic == "own" else 1
    ours = make(worlds=worlds, critic=critic, layers=layers)
    stock = make(sb3_contrib.RecurrentPPO, worlds, critic, layers)
    stock.policy.load_state_dict(ours.policy.state_dict())
    rollout = collect(ours, times=2)  # so that it begins within episodes
    buffer, memory = stock.rollout_buffer, (*rollout.actor, *rollout.critic)
    buffer.reset()
    for step in range(STEPS):
        observations, actions, starts = rollout.observations[step], rollout.actions[step], rollout.episode_starts[step]
        states = RNNStates(*((one[step], other[step]) for one, other in (memory[:2], memory[2:])))
        with th.no_grad():
            values, log_prob, _ = stock.policy.evaluate_actions(observations, actions, states, starts)
        th.testing.assert_close(values.flatten(), rollout.values[step], rtol=1e-4, atol=1e-5)
        taken, rewards = actions.reshape(WORLDS, -1).numpy(), rollout.rewards[step].numpy()
        buffer.add(observations.numpy(), taken, rewards, starts.numpy(), values, log_prob, lstm_states=states)
    states = (memory[2][STEPS], memory[3][STEPS])
    last_starts = th.as_tensor(ours._last_episode_starts, dtype=th.float32)
    with th.no_grad():
        last_values = stock.policy.predict_values(th.as_tensor(ours._last_obs), states, last_starts)
    buffer.compute_returns_and_advantage(last_values, ours._last_episode_starts)
    np.testing.assert_allclose(rollout.advantages.numpy(), buffer.advantages, rtol=1e-4, atol=1e-5)
    monkeypatch.setattr(np.random, "randint", lambda high: 0)  # where the stock buffer cuts a world's sequence in two
    before = [one.clone() for one in ours.policy.parameters()]
    ours.train()
    stock.train()
    moved = 0
    for own, other, first in zip(ours.policy.parameters(), stock.policy.parameters(), before, strict=True):
        th.testing.assert_close(own, other, rtol=1e-3, atol=2e-5)
        th.testing.assert_close(own.grad, other.grad, rtol=1e-3, atol=1e-5)
        moved += not th.equal(own, first)
    assert moved == len(before)


@pytest.mark.parametrize("critic", CRITICS)
def test_replaying_a_rollout_in_sequences_gives_what_was_collected(critic):
    model = make(critic=critic, sequence_steps=4, batch_size=8, n_steps=STEPS)
    rollout = collect(model, times=2)
    seen = 0
    for minibatch in model._iterate_minibatches(model._gather_samples(rollout)):
        assert minibatch[0].shape[:2] == (4, 2)
        policies, _ = model._evaluate_minibatch(minibatch)
        th.testing.assert_close(policies, minibatch[2], rtol=1e-4, atol=1e-6)
        seen += len(minibatch[1])
    assert seen == STEPS * WORLDS
    samples = model._gather_samples(rollout)
    _, values = model._evaluate_minibatch([samples[0], *(one.flatten(0, 1) for one in samples[1:5]), *samples[5:]])
    collected = samples[4] - samples[3]  # returns less advantages
    th.testing.assert_close(values, collected.flatten(), rtol=1e-3, atol=1e-5)


def test_truncated_episodes_are_bootstrapped_with_their_memory():
    model = make(worlds=lambda: VectorEnvAdapter(Ends()), n_steps=4, batch_size=12, gamma=0.5)
    rollout = collect(model)
    policy = model.policy
    seen = th.tensor([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]).unsqueeze(1)  # of the first episode, to its end
    with th.no_grad():
        latent, _ = policy.lstm_critic(seen)
        of_episode = policy.value_net(policy.mlp_extractor.forward_critic(latent[-1])).item()
    assert rollout.rewards[1, 0].item() == pytest.approx(0.5 * of_episode, rel=1e-4)
    assert rollout.rewards[3, 0].item() != rollout.rewards[1, 0].item()  # the second one began with another observation
    assert not rollout.rewards[[0, 2], 0].any() and not rollout.rewards[:, 1:].any()
    assert rollout.episode_starts[:, 0].tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("critic", CRITICS)
def test_stock_learner_loads_what_it_saves_and_predicts_alike(tmp_path, critic):
    model = make(critic=critic, ent_coef_final=0.0, layers=2)
    model.learn(200)
    model.save(tmp_path / "model.zip")
    loaded = sb3_contrib.RecurrentPPO.load(tmp_path / "model.zip", device="cpu")
    own = BatchRecurrentPPO.load(tmp_path / "model.zip", device="cpu")
    assert loaded.num_timesteps == model.num_timesteps
    generator = np.random.default_rng(0)
    memories = [None] * 3
    for _ in range(5):
        observations = generator.normal(size=(20, 4)).astype(np.float32)
        starts = generator.random(20) < 0.2
        decided = []
        for index, one in enumerate((model, loaded, own)):
            actions, memories[index] = one.predict(observations, memories[index], starts, deterministic=True)
            decided.append(actions)
        np.testing.assert_array_equal(decided[0], decided[1])
        np.testing.assert_array_equal(decided[0], decided[2])
        np.testing.assert_array_equal(memories[0], memories[1])
    again = loaded.policy.state_dict()
    assert all(th.equal(one, again[name]) for name, one in model.policy.state_dict().items())


def test_what_it_collects_is_what_the_saved_policy_would_do():
    model = make()
    rollout = collect(model, times=2)
    state = tuple(one[0].numpy() for one in rollout.actor)
    for step in range(STEPS):
        starts = rollout.episode_starts[step].numpy()
        likeliest, state = model.predict(rollout.observations[step].numpy(), state, starts, deterministic=True)
        np.testing.assert_array_equal(likeliest, rollout.policies[step].argmax(1).numpy())
        np.testing.assert_allclose(state[0], rollout.actor[0][step + 1].numpy(), rtol=1e-4, atol=1e-6)


def test_it_learns_what_only_memory_can_know():
    class Recall(VectorEnv):
        """The first observation names the action that each later one, which says nothing, is rewarded for."""

        metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        num_envs, length = 64, 4
        single_observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        single_action_space = spaces.Discrete(2)
        action_space = spaces.MultiDiscrete([2] * 64)

        def reset(self, *, seed=None, options=None):
            self.generator, self.now = np.random.default_rng(5), 0
            return self._show(), {}

        def _show(self):
            self.wanted = self.generator.integers(2, size=64)
            return np.stack((2 * self.wanted - 1, np.ones(64)), axis=1).astype(np.float32)

        def step(self, actions):
            rewards = (actions == self.wanted).astype(float)
            self.now = (self.now + 1) % self.length
            end = np.full(64, self.now == 0)
            blank = np.zeros((64, 2), np.float32)
            return self._show() if self.now == 0 else blank, rewards, end, ~end & end, {}

    model = make(worlds=lambda: VectorEnvAdapter(Recall()), n_steps=8, batch_size=256, n_epochs=4, learning_rate=1e-2)
    model.learn(64 * 8 * 15)
    assert np.mean([episode["r"] for episode in list(model.ep_info_buffer)[-64:]]) > 3.8  # 2.5 without memory


def test_same_seed_same_weights():
    def weights():
        return th.cat([p.flatten() for p in make(batch_size=24).learn(300).policy.parameters()])

    assert th.equal(weights(), weights())


def test_unusable_arguments_are_refused():
    with pytest.raises(ValueError, match=r"sequence_steps = 5 is no divisor of n_steps = 12"):
        make(sequence_steps=5)
    with pytest.raises(ValueError, match=r"batch_size = 8 is less than a sequence of 12"):
        make(batch_size=8)
    with pytest.raises(ValueError, match="clip_range_vf"):
        make(clip_range_vf=0.2)
    with pytest.raises(ValueError, match="MlpPolicy"):
        BatchRecurrentPPO("MlpPolicy", cart_poles())
    with pytest.raises(ValueError, match="dropout"):
        require_plain_lstm(th.nn.LSTM(3, 4, num_layers=2, dropout=0.1))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("algo.kwargs.sequence_steps=5", r"algo\.kwargs\.sequence_steps = 5; valid: a divisor of algo\.kwargs\.n_steps = 8"),
        ("algo.kwargs.sequence_steps=0", r"algo\.kwargs\.sequence_steps = 0"),
        ("algo.kwargs.batch_size=7", r"algo\.kwargs\.batch_size = 7; valid: 8 or more"),
    ],
)
def test_sequences_are_held_against_rollouts(override, message):
    config = load("train", ["algo=ppo_lstm", "algo.kwargs.n_steps=8", "algo.kwargs.batch_size=16", override])
    with pytest.raises(ConfigError, match=message):
        ranges.check_algo(config.algo)
        ranges.check_rollout(config.algo, 4)
