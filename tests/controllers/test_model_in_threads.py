"""A model that plays in several threads: every world gets its own decisions, whatever number of threads."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from netbuf_gym.controllers import Model
from netbuf_gym.evaluation import rollout


class Scratch:
    """Decides as learners do: by way of what it keeps in itself."""

    def predict(self, observations, state=None, episode_start=None, deterministic=False):
        self.observations = observations
        time.sleep(0.0005)  # another thread's turn
        if state is None:
            state = np.zeros(len(self.observations))
        self.actions = (np.abs(self.observations).sum(axis=1) * 1000).astype(int) % 10
        time.sleep(0.0005)
        return self.actions, (state + 1,)[0]


def reports(model, threads, together):
    def play(seed):
        return rollout.evaluate(Model(model), "congestion_window", "ppcc/random", seeds=[seed], max_episode_steps=20)

    if not together:
        return [play(seed) for seed in range(6)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(play, range(6)))


@pytest.mark.slow
@pytest.mark.parametrize("threads", [2, 6])
def test_a_model_with_scratch_memory(threads):
    assert repr(reports(Scratch(), threads, True)) == repr(reports(Scratch(), threads, False))


def test_models_that_are_neither_hashable_nor_referenced():
    class Slotted:
        __slots__ = ("inner",)
        __hash__ = None

        def predict(self, *arguments, **named):
            return self.inner.predict(*arguments, **named)

    model = Slotted()
    model.inner = Scratch()
    assert repr(reports(model, 3, True)) == repr(reports(Scratch(), 3, False))


@pytest.mark.slow
def test_a_learner_of_stable_baselines3():
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    import gymnasium as gym

    from netbuf_gym import tasks
    from netbuf_gym.integrations.sb3 import VectorEnvAdapter

    env = VectorEnvAdapter(gym.make_vec("netbuf/QueueThreshold-v0", num_envs=1))
    model = stable_baselines3.PPO("MlpPolicy", env, seed=1, n_steps=2, batch_size=2)
    env.close()
    rules = tasks.get("queue_threshold").rules
    controller = Model(model)
    observations = np.random.default_rng(1).uniform(-1, 1, (8, 3, *model.observation_space.shape)).astype(np.float32)
    alone = [model.predict(one, deterministic=True)[0] for one in observations]
    wrong = []

    def play(index):
        policy = controller.start(rules, [index])
        for _ in range(300):
            actions, _ = policy(observations[index], None, np.ones(3, bool))
            if not np.array_equal(actions, alone[index]):
                wrong.append(index)

    threads = [threading.Thread(target=play, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
