"""The native vector environment: equal to the scalar one, independent of threads, resets within the step."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import netbuf_gym  # noqa: F401
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import ConfigError

pytestmark = pytest.mark.filterwarnings("error")
ID = "netbuf/CongestionWindow-v0"
RANDOM = {"name": "ppcc/random", "duration_s": 4.0}
SHORT = {"name": "ppcc/4", "duration_s": 1.0}


def sender_actions(seed, steps, rows):
    return np.random.default_rng(seed).integers(2, 9, (steps, rows))


def actions(env, seed, steps):
    """Actions that move windows little, of a grid, or in a box and a little beyond."""
    rows, space = env.num_envs, env.single_action_space
    if env.unwrapped.engine.task.name == "congestion_window" and isinstance(space, gym.spaces.Discrete):
        return sender_actions(seed, steps, rows)
    rng = np.random.default_rng(seed)
    if isinstance(space, gym.spaces.Discrete):
        return rng.integers(space.n, size=(steps, rows))
    return rng.uniform(-1.1, 1.1, (steps, rows, *space.shape)).astype(np.float32)


def play(env, steps, seed, reset_seed):
    """Everything that an environment returns over some steps, in bytes."""
    observations, info = env.reset(seed=reset_seed)
    assert info == {}
    seen = [observations]
    for chosen in actions(env, seed, steps):
        observations, rewards, terminated, truncated, info = env.step(chosen)
        seen += [observations, rewards, terminated, truncated]
        if info:
            final = info["final_info"]
            seen += [final[key] for key in final if key != "scenario"]
            seen += [observation for observation in info["final_obs"] if observation is not None]
    return b"".join(one.tobytes() for one in seen)


SENDERS = [
    *({}, {"recipe": "ppcc"}, {"per_ack": True}, {"history": 1, "interval_s": 0.037}),
    *({"latency_s": [0.0, 0.02], "jitter_s": (0.0, 0.03)}, {"actions": "continuous", "jitter_s": 0.05}),
    *({"recipe": "ppcc", "latency_s": 0.03, "paced": True}, {"recipe": "bare"}),
]
SWITCHES = [
    *({}, {"recipe": "thesis-text"}, {"recipe": "thesis-code"}, {"actions": "grid"}),
    *({"actions": "changes", "drop": "agent"}, {"actions": "pulse_grid", "drop": "agent"}),
]
BUFFERS = {"name": "rlbm/random", "duration_s": 4.0, "load": [0.5, 3.0], "queue_packets": [20, 100]}
PLAYED = [
    *((ID, scenario, kwargs) for scenario in (RANDOM, {"name": "ppcc/2", "duration_s": 4.0}) for kwargs in SENDERS),
    *(
        ("netbuf/QueueThreshold-v0", scenario, kwargs)
        for scenario in (BUFFERS, {"name": "rlbm/incast", "duration_s": 5.0})
        for kwargs in (*SWITCHES, {"history": 1, "interval_s": 0.037})
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "scenario", "kwargs"), PLAYED)
def test_vector_equals_scalar_step_by_step(name, scenario, kwargs):
    seeds, ended = [11, 12, 13], 0
    vector = gym.make_vec(name, num_envs=3, scenario=scenario, **kwargs)
    scalars = [gym.make(name, scenario=scenario, **kwargs) for _ in seeds]
    rows, _ = vector.reset(seed=seeds)
    for row, scalar, seed in zip(rows, scalars, seeds, strict=True):
        assert np.array_equal(row, scalar.reset(seed=seed)[0])
    for chosen in actions(vector, 1, 150):
        rows, rewards, terminated, truncated, info = vector.step(chosen)
        for i, scalar in enumerate(scalars):
            observation, reward, one_terminated, one_truncated, one_info = scalar.step(chosen[i])
            assert reward == rewards[i] and (one_terminated, one_truncated) == (terminated[i], truncated[i])
            if one_truncated:
                ended += 1
                assert np.array_equal(observation, info["final_obs"][i])
                for key in one_info.keys() - {"reward_terms"}:
                    np.testing.assert_equal(info["final_info"][key][i], one_info[key])
                observation, _ = scalar.reset()
            assert np.array_equal(observation, rows[i])
    assert ended or kwargs.get("per_ack")


def test_one_row_equals_the_scalar_with_the_same_seed():
    vector, scalar = gym.make_vec(ID, num_envs=1, scenario=RANDOM), gym.make(ID, scenario=RANDOM)
    assert np.array_equal(vector.reset(seed=9)[0][0], scalar.reset(seed=9)[0])
    for chosen in sender_actions(3, 30, 1):
        assert np.array_equal(vector.step(chosen)[0][0], scalar.step(chosen[0])[0])


@pytest.mark.parametrize(
    ("task", "scenario", "kwargs"),
    [
        *(("congestion_window", RANDOM, kwargs) for kwargs in ({}, {"per_ack": True}, {"senders": 2})),
        *(pytest.param("queue_threshold", BUFFERS, kwargs, marks=pytest.mark.slow) for kwargs in SWITCHES),
    ],
)
def test_same_seed_same_bits_on_any_number_of_threads(task, scenario, kwargs):
    def bits(threads, seed):
        return play(VectorEnv(14, task=task, scenario=scenario, threads=threads, **kwargs), 60, 1, seed)

    assert len({bits(threads, 4) for threads in (1, 2, 4, 4)}) == 1 and bits(1, 5) != bits(1, 4)


def test_a_bare_reset_never_reseeds():
    env = VectorEnv(3, scenario=RANDOM)
    env.reset(seed=1)
    generators = [generator.bit_generator.state for generator in env._generators]
    first = [scenario.capacity_mbps for scenario in env.engine.scenarios]
    env.reset()
    second = [scenario.capacity_mbps for scenario in env.engine.scenarios]
    assert first != second and [g.bit_generator.state for g in env._generators] != generators
    again = VectorEnv(3, scenario=RANDOM)
    again.reset(seed=1)
    again.reset()
    assert [scenario.capacity_mbps for scenario in again.engine.scenarios] == second
    assert len(set(first)) == 3


def test_unseeded_environments_differ():
    a, b = VectorEnv(2, scenario=RANDOM), VectorEnv(2, scenario=RANDOM)
    a.reset(), b.reset()
    assert a.engine.scenarios[0].capacity_mbps != b.engine.scenarios[0].capacity_mbps


def test_autoreset_in_the_same_step():
    env = gym.make_vec(ID, num_envs=4, scenario=SHORT)
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    first, _ = env.reset(seed=2)
    for _ in range(9):
        _, _, terminated, truncated, info = env.step(np.full(4, 6))
        assert info == {} and not terminated.any() and not truncated.any()
    observations, rewards, terminated, truncated, info = env.step(np.full(4, 6))
    assert truncated.all() and not terminated.any() and np.isfinite(rewards).all()
    assert np.array_equal(observations, first)  # a reset observation of this scenario is always the same
    assert set(info) == {"final_obs", "_final_obs", "final_info", "_final_info"}
    assert info["_final_obs"].all() and info["_final_info"].all()
    for row in range(4):
        assert info["final_obs"][row].shape == env.single_observation_space.shape
        assert not np.array_equal(info["final_obs"][row], observations[row])
    assert info["final_info"]["_utility"].all() and np.isfinite(info["final_info"]["utility"]).all()
    assert info["final_info"]["scenario"].tolist() == ["ppcc/4"] * 4
    assert env.step(np.full(4, 6))[4] == {}


def test_worlds_end_at_their_own_times():
    env = gym.make_vec(ID, num_envs=3, scenario=SHORT)
    env.reset(seed=2)
    for _ in range(4):
        env.step(np.full(3, 5))
    env.reset(options={"reset_mask": np.array([False, True, False])})
    ends = []
    for step in range(12):
        _, _, _, truncated, info = env.step(np.full(3, 5))
        ends.append(truncated.tolist())
        if step == 5:
            assert info["_final_obs"].tolist() == [True, False, True] and info["final_obs"][1] is None
            assert info["final_info"]["_goodput_mbps"].tolist() == [True, False, True]
            assert info["final_info"]["goodput_mbps"][1] == 0
    assert [i for i, row in enumerate(ends) if row[0]] == [5] and [i for i, row in enumerate(ends) if row[1]] == [9]


def test_a_masked_reset_touches_only_its_worlds():
    env, untouched = (VectorEnv(4, scenario=RANDOM) for _ in range(2))
    env.reset(seed=3), untouched.reset(seed=3)
    for chosen in sender_actions(0, 7, 4):
        env.step(chosen), untouched.step(chosen)
    mask = np.array([True, False, False, True])
    scenarios = list(env.engine.scenarios)
    env.reset(seed=77, options={"reset_mask": mask})
    assert [a is b for a, b in zip(scenarios, env.engine.scenarios, strict=True)] == [False, True, True, False]
    for chosen in sender_actions(1, 60, 4):  # beyond the episode's end: generators of the others were not reseeded either
        ours, theirs = env.step(chosen), untouched.step(chosen)
        for a, b in zip(ours[:4], theirs[:4], strict=True):
            assert np.array_equal(a[~mask], b[~mask])
    fresh = VectorEnv(4, scenario=RANDOM)
    fresh.reset(seed=77)
    assert fresh.engine.scenarios[0].capacity_mbps == VectorEnvSeeded(77).capacity_mbps


def VectorEnvSeeded(seed):
    """The first world's scenario when everything is seeded."""
    env = VectorEnv(4, scenario=RANDOM)
    env.reset(seed=1)
    env.reset(seed=seed, options={"reset_mask": np.array([True, False, False, False])})
    return env.engine.scenarios[0]


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones(3, bool), "shape"),
        (np.ones(4, int), "bool"),
        ([True] * 4, "bool"),
        (np.zeros(4, bool), "at least one"),
        (np.array([True, False, True, True]), "splits world 0"),
    ],
)
def test_bad_masks_are_refused(mask, message):
    env = VectorEnv(4, senders=2, scenario=SHORT)
    env.reset(seed=0)
    with pytest.raises(ConfigError, match=message):
        env.reset(options={"reset_mask": mask})


def test_unknown_options_and_partial_first_resets_are_refused():
    env = VectorEnv(2, scenario=SHORT)
    with pytest.raises(ConfigError, match="mask"):
        env.reset(options={"mask": 1})
    with pytest.raises(gym.error.ResetNeeded):
        env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(gym.error.ResetNeeded):
        env.step(np.zeros(2, int))
    with pytest.raises(ConfigError, match="seed"):
        env.reset(seed=[1, 2, 3])


def test_senders_of_a_world_are_neighbouring_rows():
    env = gym.make_vec(ID, num_envs=6, senders=3, scenario={"name": "ppcc/3", "duration_s": 3.0})
    observations, _ = env.reset(seed=0)
    assert observations.shape == (6, *env.single_observation_space.shape) and env.unwrapped.worlds == 2
    chosen = np.array([9, 5, 0, 9, 5, 0])  # grow, keep, shrink
    for _ in range(30):
        observations, _, _, truncated, info = env.step(chosen)
    assert truncated.all()
    goodput = info["final_info"]["goodput_mbps"]
    assert np.array_equal(goodput[:3], goodput[3:]) and goodput[0] > goodput[1] > goodput[2]
    assert np.allclose(env.unwrapped.engine.tracker.share_bps, 10e6 / 3)


def test_observations_are_fresh_or_alternate():
    for copy in (True, False):
        env = VectorEnv(2, scenario=SHORT, copy=copy)
        a, _ = env.reset(seed=0)
        kept = a.copy()
        b = env.step(np.full(2, 6))[0]
        assert np.array_equal(a, kept) and not np.shares_memory(a, b)
        c = env.step(np.full(2, 6))[0]
        assert np.shares_memory(a, c) is not copy


def test_max_episode_steps():
    env = gym.make_vec(ID, num_envs=2, scenario=SHORT, max_episode_steps=4)
    env.reset(seed=0)
    ends = [env.step(np.full(2, 5))[3].all() for _ in range(8)]
    assert ends == [False, False, False, True] * 2


def test_spaces_and_types():
    env = gym.make_vec(ID, num_envs=3, scenario=SHORT)
    observations, _ = env.reset(seed=0)
    assert observations in env.observation_space and observations.dtype == np.float32
    _, rewards, terminated, truncated, _ = env.step(env.action_space.sample())
    assert rewards.dtype == np.float32 and terminated.dtype == truncated.dtype == np.bool_
    assert rewards.shape == terminated.shape == truncated.shape == (3,)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"num_envs": 0}, "num_envs"),
        ({"num_envs": 3, "senders": 2}, "multiple"),
        ({"num_envs": 2, "render_mode": "human"}, "render_mode"),
        ({"num_envs": 2, "copy": 1}, "copy"),
        ({"num_envs": 4, "senders": 4, "scenario": {"name": "ppcc/1", "n": 2}}, "senders"),
        ({"num_envs": 2, "speed": 1}, "speed"),
    ],
)
def test_bad_arguments_are_refused_by_name(kwargs, message):
    with pytest.raises(ConfigError, match=message):
        VectorEnv(**kwargs)


@pytest.mark.parametrize("bad", [np.zeros(3, int), np.array([0.0, np.nan]), np.array([0, 12]), np.array([[0], [1]])])
def test_bad_actions_are_refused_and_harm_nothing(bad):
    env = VectorEnv(2, scenario=SHORT)
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="action"):
        env.step(bad)
    other = VectorEnv(2, scenario=SHORT)
    other.reset(seed=0)
    assert np.array_equal(env.step(np.array([5, 6]))[0], other.step(np.array([5, 6]))[0])


def test_synchronous_vectors_of_gymnasium_work_too():
    env = gym.make_vec(ID, num_envs=2, vectorization_mode="sync", scenario=SHORT)
    env.reset(seed=0)
    for _ in range(25):
        observations = env.step(np.array([5, 6]))[0]
    assert observations in env.observation_space
    env.close()
