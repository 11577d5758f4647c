"""Environments whose decisions take time, whose windows are paced, and whose actions are continuous."""

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym.envs.env import Env
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.tasks.congestion_window import FACTORS, CongestionWindow
from netbuf_gym.tasks.congestion_window.task import LARGEST_FACTOR, RECIPE_DEFAULTS

ID = "netbuf/CongestionWindow-v0"
RANDOM = {"name": "ppcc/random", "duration_s": 3.0}
LATE = {"latency_s": [0.0, 0.02], "jitter_s": (0.0, 0.03)}


def bits(kwargs, seed=4, rows=4, threads=1, steps=40):
    """Of everything that a vector environment returns."""
    env = VectorEnv(rows, scenario=RANDOM, threads=threads, **kwargs)
    seen = [env.reset(seed=seed)[0]]
    rng = np.random.default_rng(1)
    for _ in range(steps):
        discrete = isinstance(env.single_action_space, gym.spaces.Discrete)
        actions = rng.integers(2, 10, rows) if discrete else rng.uniform(-1.5, 1.5, (rows, 1)).astype(np.float32)
        observations, rewards, *_ = env.step(actions)
        seen += [observations, rewards]
    env.close()
    return b"".join(one.tobytes() for one in seen)


@pytest.mark.parametrize("kwargs", [LATE, {**LATE, "actions": "continuous", "senders": 2}])
def test_same_seed_same_bits_on_any_number_of_threads(kwargs):
    one = bits(kwargs)
    assert one == bits(kwargs) == bits(kwargs, threads=2)
    assert one != bits(kwargs, seed=5) and one != bits({**kwargs, "jitter_s": 0}) and one != bits({**kwargs, "latency_s": 0})


def test_a_number_is_a_range_of_no_width():
    assert bits({"latency_s": 0.02, "jitter_s": 0.01}) == bits({"latency_s": [0.02, 0.02], "jitter_s": (0.01, 0.01)})
    assert bits({"latency_s": 0, "jitter_s": [0, 0]}) == bits({})
    task = CongestionWindow(latency_s=0.02, jitter_s=[0, 0.01])
    assert task.latency_s == (0.02, 0.02) and task.jitter_s == (0, 0.01)
    assert task.kind.parameters["latency_high_s"] == 0.02 and task.kind.parameters["jitter_high_s"] == 0.01


def sent(latency_s, steps, **kwargs):
    """Packets sent by the end of each interval; the window doubles with every decision."""
    env = Env(scenario={"name": "dumbbell", "rate_mbps": 100, "rtt_ms": 10, "duration_s": 5}, latency_s=latency_s, **kwargs)
    env.reset(seed=1)
    packets, window = [], []
    for _ in range(steps):
        env.step(FACTORS.tolist().index(2.0))
        packets.append(env.telemetry["packets_sent"])
        window.append(env.telemetry["cwnd_bytes"])
    return np.array(packets), window


def test_the_window_of_the_interval_before_holds_until_the_decision_is_in_force():
    """Of an interval in which a window doubles, half is at the old one: three quarters of the packets."""
    free = {"clamp": "none", "paced": False, "slow_start": False}
    at_once, half, whole = (sent(latency_s, 5, **free) for latency_s in (0.0, 0.05, 0.1))
    assert at_once[1] == half[1] == whole[1]  # in force by the interval's end at the latest
    np.testing.assert_allclose(half[0][2:4] / at_once[0][2:4], 0.75, atol=0.06)
    np.testing.assert_allclose(whole[0][2:4] / at_once[0][2:4], 0.5, atol=0.06)


def test_pacing_is_the_recipes_own_and_may_be_turned_off():
    assert RECIPE_DEFAULTS["default"]["paced"] and not RECIPE_DEFAULTS["ppcc"]["paced"]
    assert bits({}) == bits({"paced": True}) != bits({"paced": False})
    assert bits({"recipe": "ppcc"}) == bits({"recipe": "ppcc", "paced": False}) != bits({"recipe": "ppcc", "paced": True})


def test_a_doubled_window_overruns_a_small_queue_unless_it_is_paced():
    def drops(paced):
        world = {"name": "dumbbell", "rate_mbps": 100, "rtt_ms": 40, "buffer_packets": 30, "duration_s": 5}
        env = Env(scenario=world, paced=paced, clamp="none", actions="continuous", slow_start=False)
        env.reset(seed=1)
        for k in range(20):
            env.step([1.0 if k < 5 else 0.0])  # 160 segments; paced, twice as many in 40 ms are 96 Mbit/s
        return env.report()["loss_rate"]

    assert drops(True) == 0 < drops(False)


def test_continuous_actions_are_factors():
    flat, smooth = CongestionWindow(), CongestionWindow(actions="continuous")
    assert flat.action_space == gym.spaces.Discrete(len(FACTORS))
    assert smooth.action_space == gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    assert smooth.keep_action.tolist() == [0]
    with pytest.raises(ConfigError, match=r'actions = "discrete" .* has none that keeps .* 0\.98, 1\.005.*; valid: "con'):
        _ = flat.keep_action
    changes = np.log([0.4, 0.5, 1.0, 1.2, 2.0, 9.0])
    assert FACTORS[flat.nearest_actions(changes)].tolist() == [0.5, 0.5, 1.005, 1.18, 2.0, 4.0]
    np.testing.assert_allclose(
        LARGEST_FACTOR ** smooth.nearest_actions(changes)[:, 0], [0.5, 0.5, 1.0, 1.2, 2.0, 2.0], rtol=1e-6
    )
    assert smooth.to_dict()["actions"] == {"factor": LARGEST_FACTOR} and flat.to_dict()["actions"] == FACTORS.tolist()


def test_rules_and_chance_play_with_either_kind_of_actions():
    short = {"name": "ppcc/4", "duration_s": 5.0}
    for name in ("random", "queue_target"):
        played = [rollout.evaluate(name, "congestion_window", short, [1], actions=kind) for kind in ("discrete", "continuous")]
        discrete, continuous = played
        assert discrete != continuous and continuous[0]["goodput_mbps"] > 0
    assert continuous[0]["utility"] > -0.3


@pytest.mark.parametrize("action", [[np.nan], [[0.0]], 0.5, ["a"], [0.1, 0.2]])
def test_bad_continuous_actions_are_refused(action):
    env = Env(scenario=RANDOM, actions="continuous")
    env.reset(seed=1)
    with pytest.raises(ConfigError):
        env.step(action)
    env.step([0.5])


def test_what_a_model_must_agree_with():
    """How senders are clamped, drained and paced is theirs; how long decisions take is the world's."""
    said = CongestionWindow().to_dict()
    assert all(said[name] == RECIPE_DEFAULTS["default"][name] for name in ("clamp", "drain", "paced"))
    assert CongestionWindow(latency_s=0.05, jitter_s=0.01).to_dict() == said
    for change in ({"clamp": "path"}, {"drain": False}, {"paced": False}, {"actions": "continuous"}):
        assert CongestionWindow(**change).to_dict() != said
    paper = CongestionWindow("ppcc").to_dict()
    assert not {"clamp", "drain", "paced"} & set(paper)
    assert CongestionWindow("ppcc", paced=True).to_dict() == {**paper, "paced": True}


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"latency_s": -1}, r"latency_s = -1.*valid.* 0 .*100"),
        ({"latency_s": "soon"}, "latency_s = 'soon'.*valid"),
        ({"latency_s": None}, "latency_s = None.*valid"),
        ({"latency_s": float("nan")}, "latency_s = nan.*valid"),
        ({"latency_s": [0.01]}, r"latency_s = \[0.01\]; valid: a number of seconds, or a lower and an upper bound"),
        ({"latency_s": [0, 0.01, 0.02]}, r"latency_s = \[0, 0.01, 0.02\]; valid"),
        ({"latency_s": [0.02, 0.01]}, r"latency_s = \[0.02, 0.01\]; valid: the lower bound first"),
        ({"jitter_s": [0, "much"]}, r"jitter_s\[1\] = 'much'.*valid"),
        ({"jitter_s": 1000}, "jitter_s = 1000.*valid"),
        ({"jitter_s": True}, "jitter_s = True.*valid"),
        ({"latency_s": 0.2}, "latency_s and jitter_s are up to 0.2 together; valid: together at most interval_s = 0.1"),
        ({"latency_s": 0.06, "jitter_s": [0, 0.05]}, "up to 0.11 together; valid: together at most interval_s = 0.1"),
        ({"latency_s": 0.01, "per_ack": True}, "latency_s = 0.01, jitter_s = 0.0 with per_ack = True; valid: 0"),
        ({"paced": "yes"}, "paced = 'yes'.*valid"),
        ({"drain": 1}, "drain = 1.*valid"),
        ({"clamp": "paths"}, "clamp.*'paths'.*measured"),
        ({"actions": "box"}, "actions.*'box'.*continuous"),
        ({"recipe": "ppcc", "clamp": "measured"}, "clamp = 'measured' with recipe \"ppcc\"; valid: 'path', 'none'"),
        ({"recipe": "ppcc", "actions": "continuous"}, "actions = 'continuous' with recipe \"ppcc\"; valid: 'discrete'"),
        ({"recipe": "ppcc", "drain": True}, 'drain = True with recipe "ppcc"; valid: False'),
    ],
)
def test_bad_arguments_are_refused_by_name(kwargs, message):
    for make in (Env, lambda **kwargs: VectorEnv(2, **kwargs)):
        with pytest.raises(ConfigError, match=message):
            make(scenario=RANDOM, **kwargs)


def test_decisions_may_take_the_whole_interval():
    env = gym.make(ID, scenario=RANDOM, latency_s=0.05, jitter_s=0.05)
    env.reset(seed=1)
    env.step(9)
