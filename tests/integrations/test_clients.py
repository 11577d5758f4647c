"""Other projects' programs on the environments, by their ids: TorchRL, SuperSuit, and PPO in one file as CleanRL writes it."""

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym  # noqa: F401  # registers the ids
from netbuf_gym.errors import ConfigError

IDS = [f"netbuf/{name}-v0" for name in ("CongestionWindow", "QueueThreshold", "ReceiverWindow", "HostBuffers")]


def make_parallel(**kwargs):
    return pytest.importorskip("netbuf_gym.envs.parallel_env").ParallelEnv(agents=2, max_episode_steps=6, **kwargs)


def test_an_unknown_argument_is_a_type_error_as_for_any_function():
    for make in (gym.make, lambda id, **kwargs: gym.make_vec(id, num_envs=2, **kwargs)):
        for id in IDS:
            with pytest.raises(TypeError, match="unexpected keyword argument 'frameskip'") as refused:
                make(id, frameskip=2)
            assert isinstance(refused.value, ConfigError)


@pytest.mark.parametrize("id", IDS)
def test_torchrl_makes_and_rolls_out(id):
    envs = pytest.importorskip("torchrl.envs")
    env = envs.GymEnv(id, max_episode_steps=5)
    envs.check_env_specs(env)
    rollout = env.rollout(8)
    assert rollout["next", "truncated"].flatten().tolist() == [False] * 4 + [True]
    assert rollout["observation"].shape[1:] == gym.make(id).observation_space.shape


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
@pytest.mark.parametrize("id", IDS)
def test_torchrl_takes_many_worlds(id, mode):
    envs = pytest.importorskip("torchrl.envs")
    env = envs.GymWrapper(gym.make_vec(id, num_envs=3, autoreset_mode=mode, max_episode_steps=4))
    envs.check_env_specs(env)
    rollout = env.rollout(10, break_when_any_done=False)
    assert rollout["next", "done"].squeeze(-1).tolist() == [[k % 4 == 3 for k in range(10)]] * 3
    assert np.isfinite(rollout["next", "observation"].numpy()).all()


def test_supersuit_stacks_worlds_of_several_agents():
    supersuit = pytest.importorskip("supersuit")
    env = supersuit.pettingzoo_env_to_vec_env_v1(make_parallel())
    rows = supersuit.concat_vec_envs_v1(env, 3, num_cpus=0, base_class="gymnasium")
    observations, _ = rows.reset(seed=1)
    assert observations.shape[0] == 6
    for _ in range(8):
        observations, rewards, *_ = rows.step(np.full((6, *rows.action_space.shape), 3))
        assert np.isfinite(observations).all() and rewards.shape == (6,)


def test_supersuit_skips_and_stacks_frames():
    supersuit = pytest.importorskip("supersuit")
    env = supersuit.frame_stack_v1(supersuit.frame_skip_v0(make_parallel(), (2, 3)), 2)
    env.reset(seed=1)
    steps = 0
    while env.agents:
        _, _, _, truncated, _ = env.step(dict.fromkeys(env.agents, 3))
        steps += 1
    assert 2 <= steps <= 3 and all(truncated.values())


@pytest.mark.parametrize("id", IDS)
def test_supersuit_makes_vectors_of_a_scalar_environment(id):
    supersuit = pytest.importorskip("supersuit")
    rows = supersuit.gym_vec_env_v0(gym.make(id, max_episode_steps=3), 2)
    rows.reset(seed=1)
    ends = [rows.step(rows.action_space.sample())[3].tolist() for _ in range(7)]
    assert ends[:3] == [[False] * 2, [False] * 2, [True] * 2] and sum(map(all, ends)) == 2


@pytest.mark.parametrize("id", IDS)
def test_ppo_in_one_file_trains_by_id(id):
    """The loop of single-file PPO: copies of an id side by side, statistics by Gymnasium's wrappers, a small network."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)

    def make_env():
        env = gym.wrappers.RecordEpisodeStatistics(gym.make(id, max_episode_steps=8))
        return gym.wrappers.FlattenObservation(env)

    envs = gym.vector.SyncVectorEnv([make_env] * 2)
    space = envs.single_action_space
    discrete = isinstance(space, gym.spaces.Discrete)
    width = space.n if discrete else int(np.prod(space.nvec if hasattr(space, "nvec") else space.shape))
    actor = torch.nn.Linear(envs.single_observation_space.shape[0], width)
    optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
    observation, _ = envs.reset(seed=1)
    returns = []
    for _ in range(20):
        logits = actor(torch.as_tensor(observation, dtype=torch.float32))
        if discrete:
            chosen = torch.distributions.Categorical(logits=logits)
            action = chosen.sample()
            played, log_probability = action.numpy(), chosen.log_prob(action)
        else:
            played, log_probability = envs.action_space.sample(), logits.mean(1)
        observation, reward, _, _, info = envs.step(played)
        loss = -(log_probability * torch.as_tensor(reward, dtype=torch.float32)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if "episode" in info:
            returns += info["episode"]["r"][info["_episode"]].tolist()
    assert len(returns) == 4 and np.isfinite(returns).all()
    assert all(torch.isfinite(parameter).all() for parameter in actor.parameters())
