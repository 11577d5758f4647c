"""Running statistics within a policy: as the wrapper has them, moved by training alone, and whole wherever the policy goes."""

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from sb3_contrib import RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback

from netbuf_gym.errors import CheckpointError, ConfigError
from netbuf_gym.integrations.normalizing import RUNNING, SEEN, NormalizingExtractor, UpdateStatistics, find_extractors
from netbuf_gym.integrations.sb3 import VectorEnvAdapter
from netbuf_gym.wrappers import VectorNormalizeObservation
from netbuf_gym.wrappers.normalize import RunningMoments

BOX = gym.spaces.Box(-1, 1, (3,), np.float32)
POLICY = {"features_extractor_class": NormalizingExtractor, "features_extractor_kwargs": {"clip": 4.0}}
LEARNERS = {
    "ppo": (PPO, "MlpPolicy", {"n_steps": 8, "batch_size": 16}),
    "a2c": (A2C, "MlpPolicy", {"n_steps": 8}),
    "dqn": (DQN, "MlpPolicy", {"learning_starts": 16, "buffer_size": 500, "target_update_interval": 100, "batch_size": 8}),
    "ppo_lstm": (RecurrentPPO, "MlpLstmPolicy", {"n_steps": 8, "batch_size": 16}),
}


def worlds():
    return VectorEnvAdapter(gym.make_vec("netbuf/CongestionWindow-v0", num_envs=4, scenario="ppcc/4"))


def learner(name):
    kind, policy, kwargs = LEARNERS[name]
    return kind(policy, worlds(), policy_kwargs=POLICY, seed=1, device="cpu", **kwargs)


class Watch(BaseCallback):
    """What was seen, and the statistics in use when each rollout began and at each of its steps."""

    def __init__(self):
        super().__init__()
        self.seen, self.at_start, self.at_step = [], [], []

    def _in_use(self):
        return find_extractors(self.model.policy)[0].moments().to_dict()

    def _on_rollout_start(self):
        self.at_start.append((len(self.seen), self._in_use()))

    def _on_step(self):
        self.seen.append(np.array(self.locals["new_obs"]))
        self.at_step.append(self._in_use())
        return True


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_training_moves_them_between_an_update_and_the_next_rollout(name):
    model, watch = learner(name), Watch()
    model.learn(128, callback=[UpdateStatistics(), watch])
    counted = RunningMoments(watch.seen[0].shape[1])
    begun = 0
    for steps, in_use in watch.at_start:
        for batch in watch.seen[begun:steps]:
            counted.update(batch)
        begun = steps
        assert in_use == counted.to_dict()
        assert all(one == in_use for one in watch.at_step[steps : steps + 1])
    assert len(watch.at_start) > 2 and watch.at_step[-1]["count"] == watch.at_start[-1][1]["count"] < len(watch.seen) * 4
    after = find_extractors(model.policy)[0].moments().to_dict()
    assert after == watch.at_start[-1][1]  # the last update's own
    model.predict(watch.seen[0])
    assert find_extractors(model.policy)[0].moments().to_dict() == after


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_they_are_in_the_file_of_the_learner(name, tmp_path):
    model = learner(name)
    model.learn(128, callback=UpdateStatistics())
    model.save(tmp_path / "model")
    again = LEARNERS[name][0].load(tmp_path / "model", device="cpu")
    mine, its = (find_extractors(one.policy)[0] for one in (model, again))
    assert its.moments().to_dict() == mine.moments().to_dict() and its.clip == 4.0 and mine.moments().count > 30
    observations = np.random.default_rng(0).uniform(-1, 1, (50, *model.observation_space.shape)).astype(np.float32)
    np.testing.assert_array_equal(*(one.predict(observations, deterministic=True)[0] for one in (model, again)))


@pytest.mark.slow
def test_a_target_network_has_those_of_its_weights():
    model = learner("dqn")
    model.learn(128, callback=UpdateStatistics())
    own, target = (one.features_extractor for one in (model.policy.q_net, model.policy.q_net_target))
    assert find_extractors(model.policy) == [own]
    assert 1 < target.moments().count < own.moments().count
    model.target_update_interval = 1
    model._on_step()
    assert target.moments().to_dict() == own.moments().to_dict()


def test_it_gives_what_the_wrapper_gives():
    worlds = gym.make_vec("netbuf/CongestionWindow-v0", num_envs=16, scenario="ppcc/random")
    wrapped = VectorNormalizeObservation(worlds, clip=3)
    wrapped.reset(seed=1)
    for _ in range(20):
        wrapped.step(wrapped.action_space.sample())
    raw = wrapped.env.reset(seed=2)[0]
    extractor = NormalizingExtractor(wrapped.env.single_observation_space, clip=3)
    np.testing.assert_array_equal(extractor(th.as_tensor(raw)), raw)  # before anything was seen
    state = {f"{SEEN}_{name}": th.as_tensor(value, dtype=th.float64) for name, value in wrapped.moments.to_dict().items()}
    extractor.load_state_dict(extractor.state_dict() | state)
    assert extractor.moments(SEEN).to_dict() == wrapped.moments.to_dict()
    extractor.use_counted()
    normal = wrapped.moments.normalize(raw, 3)
    np.testing.assert_allclose(extractor(th.as_tensor(raw)), normal, atol=2e-3)  # of components that never changed
    assert np.abs(normal).max() == 3 and extractor(th.as_tensor(raw)).dtype == th.float32


def test_several_batches_are_counted_at_once():
    one, other = NormalizingExtractor(BOX), NormalizingExtractor(BOX)
    batches = np.random.default_rng(0).uniform(-1, 1, (4, 5, 3)).astype(np.float32)
    one.count_observations(th.as_tensor(batches))
    for batch in batches:
        other.count_observations(batch)
    for key, value in one.moments(SEEN).to_dict().items():
        np.testing.assert_allclose(other.moments(SEEN).to_dict()[key], value)
    assert one.moments(RUNNING).to_dict() == RunningMoments(3).to_dict()


@pytest.mark.parametrize(
    ("name", "value"),
    [("running_variance", -1.0), ("seen_variance", -1.0), ("running_count", 0.0), ("running_mean", np.nan)],
)
def test_a_damaged_state_is_refused(name, value):
    extractor = NormalizingExtractor(BOX)
    state = extractor.state_dict()
    state[name] = th.full_like(state[name], value)
    with pytest.raises(CheckpointError, match="the saved normalisation holds values that are not finite, or a negative"):
        extractor.load_state_dict(state)


def test_bad_arguments_are_refused():
    with pytest.raises(ConfigError, match=r"clip = 0\.0 is out of range"):
        NormalizingExtractor(BOX, clip=0)
    for space in (gym.spaces.Discrete(3), gym.spaces.Box(0, 1, (2, 2))):
        with pytest.raises(ConfigError, match="valid for normalisation: a flat Box"):
            NormalizingExtractor(space)
