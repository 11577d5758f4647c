"""Our PPO against stable-baselines3's: same rollout, same update, same files."""

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3
import torch as th
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv

from netbuf_gym.integrations.sb3 import VectorEnvAdapter
from netbuf_gym.training import learning
from netbuf_gym.training.algorithms.ppo import BatchPPO, KLPenaltyPPO
from tests.training.gym_worlds import WORLDS, Ends, cart_poles, pendulums

STEPS = 12


def make(kind, worlds=cart_poles, **kwargs):
    settings = {"n_steps": STEPS, "batch_size": STEPS * WORLDS, "n_epochs": 1, "seed": 3, "device": "cpu", "ent_coef": 0.02}
    model = kind("MlpPolicy", worlds(), **{**settings, **kwargs})
    model.set_logger(Logger(None, []))
    return model


def collect(model):
    _, callback = model._setup_learn(10_000, None, True, "", False)
    model.env = model.get_env()
    assert model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)
    return model._rollout


@pytest.mark.parametrize("worlds", [cart_poles, pendulums])
def test_one_update_equals_stock(worlds):
    ours, stock = make(BatchPPO, worlds), make(stable_baselines3.PPO, worlds)
    stock.policy.load_state_dict(ours.policy.state_dict())
    rollout = collect(ours)
    buffer = stock.rollout_buffer
    buffer.reset()
    for step in range(STEPS):
        taken = rollout.actions[step]
        with th.no_grad():
            _, log_prob, _ = stock.policy.evaluate_actions(rollout.observations[step], taken)
        buffer.add(
            rollout.observations[step].numpy(),
            taken.reshape(WORLDS, -1).numpy(),
            rollout.rewards[step].numpy(),
            rollout.episode_starts[step].numpy(),
            rollout.values[step],
            log_prob,
        )
    last_values = ours._compute_values(th.as_tensor(ours._last_obs)).detach()
    buffer.compute_returns_and_advantage(last_values, ours._last_episode_starts)
    np.testing.assert_allclose(rollout.advantages.numpy(), buffer.advantages, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(rollout.returns.numpy(), buffer.returns, rtol=1e-4, atol=1e-5)
    ours.train()
    stock.train()
    for a, b in zip(ours.policy.parameters(), stock.policy.parameters(), strict=True):
        th.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


def test_truncated_episodes_are_bootstrapped_and_terminated_ones_are_not():
    model = BatchPPO("MlpPolicy", VectorEnvAdapter(Ends()), n_steps=4, batch_size=12, seed=0, device="cpu", gamma=0.5)
    rollout = collect(model)
    expected = 0.5 * model._compute_values(th.full((1, 2), 2.0)).item()
    np.testing.assert_allclose(rollout.rewards[:, 0], [0, expected, 0, expected], rtol=1e-6)
    assert not rollout.rewards[:, 1:].any()
    assert rollout.episode_starts[:, 0].tolist() == [1, 0, 1, 0]
    assert rollout.episode_starts[:, 2].tolist() == [1, 0, 0, 0]


def test_actions_follow_the_policy():
    model = make(BatchPPO, n_steps=400, batch_size=2400)
    with th.no_grad():
        model.policy.action_net.weight.zero_()
        model.policy.action_net.bias.copy_(th.tensor([0.0, 1.0]))
    actions = collect(model).actions.float()
    assert actions.mean().item() == pytest.approx(np.e / (1 + np.e), abs=0.03)


@pytest.mark.parametrize("worlds", [cart_poles, pendulums])
def test_stock_ppo_loads_what_it_saves(tmp_path, worlds):
    model = make(BatchPPO, worlds, ent_coef_final=0.0)
    model.learn(200)
    model.save(tmp_path / "model.zip")
    loaded = stable_baselines3.PPO.load(tmp_path / "model.zip", device="cpu")
    observations = np.random.default_rng(0).normal(size=(20, *model.observation_space.shape)).astype(np.float32)
    assert loaded.num_timesteps == model.num_timesteps
    np.testing.assert_array_equal(
        loaded.predict(observations, deterministic=True)[0], model.predict(observations, deterministic=True)[0]
    )


def test_box_actions_follow_the_policy_and_are_clipped_for_the_environment():
    model = make(BatchPPO, pendulums, n_steps=400, batch_size=2400)
    with th.no_grad():
        model.policy.action_net.weight.zero_()
        model.policy.action_net.bias.fill_(1.5)
        model.policy.log_std.fill_(0.0)
    given, step = [], model.env.step_batch
    model.env.step_batch = lambda actions: given.append(actions) or step(actions)
    actions = collect(model).actions
    assert actions.mean().item() == pytest.approx(1.5, abs=0.08) and actions.std().item() == pytest.approx(1.0, abs=0.06)
    assert actions.max() > 2 and np.max(given) == 2.0
    np.testing.assert_array_equal(np.stack(given), np.clip(actions.numpy(), -2, 2))


def test_divergence_and_entropy_of_box_policies():
    head = BatchPPO("MlpPolicy", pendulums(), n_steps=2, batch_size=12, device="cpu")._head
    old, new = th.tensor([[0.3, -0.2], [1.0, 0.5]]), th.tensor([[0.1, 0.1], [0.5, 0.4]])
    a, b = (th.distributions.Normal(one[:, 0], one[:, 1].exp()) for one in (old, new))
    th.testing.assert_close(head.kl(old, new), th.distributions.kl_divergence(a, b).sum())
    th.testing.assert_close(head.entropy(new), b.entropy().sum())
    taken = th.tensor([[0.7], [-0.4]])
    th.testing.assert_close(head.log_ratio(new, old, taken), (b.log_prob(taken[:, 0]) - a.log_prob(taken[:, 0])))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [BatchPPO, KLPenaltyPPO])
def test_learns_cart_pole(kind):
    env = cart_poles(worlds=16, limit=200)
    model = kind("MlpPolicy", env, n_steps=32, batch_size=128, n_epochs=6, learning_rate=2e-3, seed=1, device="cpu")
    model.learn(32 * 16 * 40)
    assert np.mean([episode["r"] for episode in list(model.ep_info_buffer)[-20:]]) > 100


def test_same_seed_same_weights():
    def weights():
        model = make(BatchPPO).learn(300)
        return th.cat([p.flatten() for p in model.policy.parameters()])

    assert th.equal(weights(), weights())


def test_kl_coefficient_is_adapted():
    model = make(KLPenaltyPPO, kl_coef=1.0, kl_target=0.01)
    for kl, expected in ((0.02, 2.0), (0.014, 2.0), (0.001, 1.0), (0.0067, 1.0), (0.0066, 0.5)):
        model._after_update(kl)
        assert model.kl_coef == expected
    fixed = make(KLPenaltyPPO, kl_coef=3.0, kl_target=None)
    fixed._after_update(1.0)
    assert fixed.kl_coef == 3.0


def test_a_heavy_kl_penalty_holds_the_policy():
    moved = {}
    for coefficient in (1e-3, 1e3):
        model = make(KLPenaltyPPO, kl_coef=coefficient, kl_target=None, n_epochs=20, ent_coef=0.0, learning_rate=1e-3)
        rollout = collect(model)
        model.train()
        after = model._compute_policy_output(rollout.observations.flatten(0, 1))
        before = rollout.policies.flatten(0, 1)
        moved[coefficient] = (before.exp() * (before - after)).sum(1).mean().item()
    assert moved[1e3] < 0.1 * moved[1e-3]


def test_early_stop_by_kl():
    assert make(BatchPPO, n_epochs=10, target_kl=1e-9, learning_rate=1e-2).learn(70)._n_updates < 10


def test_schedules_follow_the_time_used():
    model = make(BatchPPO, ent_coef_final=0.0)
    model._update_current_progress_remaining(10, 100)
    assert model._get_entropy_coefficient() == pytest.approx(0.9 * 0.02)
    learning._make_schedules_follow_time(model, SimpleNamespace(time_used=lambda: 0.75))
    model._update_current_progress_remaining(10, 100)
    assert model._get_entropy_coefficient() == pytest.approx(0.25 * 0.02)


def test_deviations_of_a_box_follow_their_schedule_and_are_not_learned(tmp_path):
    model = make(BatchPPO, pendulums, std_final=0.1, policy_kwargs={"log_std_init": 0.0})
    model.learn(STEPS * WORLDS * 4)  # the last rollout begins with a quarter left
    assert model.policy.log_std.exp().tolist() == pytest.approx([0.1**0.75])
    model.save(tmp_path / "model.zip")
    loaded = stable_baselines3.PPO.load(tmp_path / "model.zip", device="cpu")
    assert loaded.policy.log_std.exp().tolist() == pytest.approx([0.1**0.75])


def test_unusable_arguments_are_refused():
    for worlds, std_final in ((cart_poles, 0.1), (pendulums, 0.0)):
        with pytest.raises(ValueError, match="std_final"):
            make(BatchPPO, worlds, std_final=std_final)
    with pytest.raises(ValueError, match="flat observations"):
        frozen_lake = [lambda: gym.make("FrozenLake-v1")] * 2
        BatchPPO("MlpPolicy", VectorEnvAdapter(SyncVectorEnv(frozen_lake, autoreset_mode=AutoresetMode.SAME_STEP)))
    with pytest.raises(ValueError, match="clip_range_vf"):
        make(BatchPPO, clip_range_vf=0.2)
    with pytest.raises(ValueError, match="kl_target"):
        make(KLPenaltyPPO, kl_target=-1.0)
    plain = DummyVecEnv([lambda: gym.make("CartPole-v1")])
    with pytest.raises(ValueError, match="VectorEnvAdapter"):
        BatchPPO("MlpPolicy", plain, n_steps=8, batch_size=8, device="cpu").learn(8)
