"""The scalar environment, and the checkers over the registry."""

import json
import math

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_env_sb3

import netbuf_gym
from netbuf_gym.envs.env import Env
from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.scenarios import Flow, Link, Scenario
from netbuf_gym.tasks.congestion_window.telemetry import TELEMETRY
from netbuf_gym.tasks.congestion_window.tracker import FIELD
from netbuf_gym.wrappers import DurationLimit
from tests.helpers.release_cases import for_release

pytestmark = pytest.mark.filterwarnings("error")
ID = "netbuf/CongestionWindow-v0"
IDS = sorted(name for name in gym.registry if name.startswith("netbuf/"))
SHORT = {"name": "ppcc/4", "duration_s": 2.0}
VARIANTS = {
    ID: [{}, {"recipe": "ppcc"}, {"recipe": "bare"}, {"per_ack": True}, {"scenario": "ppcc/random", "history": 1}],
    "netbuf/QueueThreshold-v0": [
        {},
        {"recipe": "thesis-text"},
        {"actions": "grid"},
        {"recipe": "thesis-code"},
        {"recipe": "thesis-text", "actions": "grid", "betas": [1, 1]},
        {"scenario": "rlbm/random", "history": 1},
    ],
    "netbuf/ReceiverWindow-v0": [
        {},
        {"recipe": "nuwa"},
        {"acts_on": "window_and_target", "actions": "continuous"},
        {"acts_on": "target_and_k", "drain": False, "sender": "cubic"},
        {"scenario": "ppcc/random", "history": 1},
    ],
    "netbuf/HostBuffers-v0": [
        {},
        {"recipe": "auter"},
        {"recipe": "auter", "actions": "flat"},
        {"recipe": "direct", "history": 1},
        {"acts_on": "tcp", "actions": "multi", "scenario": "ppcc/2"},
    ],
}
"""What the checkers run over, for every id of the registry."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kwargs"), [(name, one) for name in IDS for one in VARIANTS[name]])
def test_gymnasiums_checker_has_nothing_to_say(name, kwargs):
    check_env(gym.make(name, **kwargs).unwrapped)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kwargs"), [(name, one) for name in IDS for one in VARIANTS[name][:3]])
@pytest.mark.parametrize("render_mode", ["rgb_array", *for_release("ansi", None)])
def test_stable_baselines3s_checker_has_nothing_to_say(name, kwargs, render_mode):
    check_env_sb3(gym.make(name, render_mode=render_mode, **kwargs).unwrapped, warn=True, skip_render_check=False)


def test_time_limit_is_outside_and_set_by_the_scenario():
    assert gym.make(ID).spec.max_episode_steps == 1000
    assert gym.make(ID, interval_s=0.25).spec.max_episode_steps == 400
    assert gym.make(ID, scenario=SHORT, interval_s=0.3).spec.max_episode_steps == 7  # the last interval is a whole one
    assert isinstance(gym.make(ID, per_ack=True, disable_env_checker=True).env, DurationLimit)
    env = Env(scenario=SHORT)
    env.reset(seed=0)
    assert not any(env.step(5)[3] for _ in range(25))


@pytest.mark.parametrize("per_ack", [False, True])
def test_an_episode_ends_at_its_duration_with_a_report(per_ack):
    env = gym.make(ID, scenario=SHORT, per_ack=per_ack)
    env.reset(seed=3)
    truncated, steps = False, 0
    while not truncated:
        observation, reward, terminated, truncated, info = env.step(6)
        assert env.observation_space.contains(observation) and math.isfinite(reward) and not terminated
        assert sum(info["reward_terms"].values()) == pytest.approx(reward, abs=1e-6)
        assert ("utility" in info) == truncated
        steps += 1
    assert steps == 20 if not per_ack else steps > 200
    assert info["duration_s"] == pytest.approx(2.0, abs=0.11)
    stats = env.unwrapped.engine.plant._batch.flow_stats(0)[0]
    assert info["goodput_mbps"] == pytest.approx(stats["delivered_bytes"] * 8e-6 / info["duration_s"])
    assert info["mean_rtt_ms"] == pytest.approx(stats["rtt_sum_s"] / stats["rtt_count"] * 1e3)
    x, y = info["goodput_mbps"] / 10, info["mean_rtt_ms"] / info["base_rtt_ms"]
    assert info["utility"] == pytest.approx(0.5 * math.log(x) - 0.5 * math.log(y))
    delay_ms = info["mean_rtt_ms"] - stats["rtt_min_s"] * 1e3
    assert info["Mt"] == pytest.approx(math.log10(delay_ms) - math.log10(info["goodput_mbps"]))
    assert info["scenario"] == "ppcc/4" and 0 <= info["loss_rate"] < 1 and info["queue_delay_mean_ms"] >= 0


@pytest.mark.slow
@pytest.mark.parametrize("ramp", [0, 3, 4, 7])
def test_the_reward_integrates_to_the_utility(ramp):
    """Held at 10, 27, 38 and 105 segments: far below the pipe, just below it, and well into the queue."""
    env = gym.make(ID, scenario="ppcc/3")
    env.reset(seed=1)
    total, truncated, steps = 0.0, False, 0
    while not truncated:
        hold = 4 if steps % 5 == 0 else 5  # 0.98 * 1.005^4 is nearly 1
        _, reward, _, truncated, info = env.step(9 if steps < ramp else hold)
        total += reward
        steps += 1
    assert total / info["duration_s"] == pytest.approx(info["utility"], abs=0.01)


def test_the_window_is_the_agents_within_its_clamps():
    env = gym.make(ID, scenario={"name": "ppcc/3", "duration_s": 20}, clamp="path", slow_start=False).unwrapped
    env.reset(seed=0)
    assert env.engine.tracker.cwnd[0] == 10 * 1448
    seen = []
    for action in [10] * 30 + [0] * 30:
        env.step(action)
        seen.append(env.telemetry["cwnd_bytes"])
    assert seen[0] == 10 * 1448  # there was no ACK to decide by
    assert 10 * 1448 < seen[1] < 20 * 1448 and (np.diff(seen[:30]) <= seen[:29]).all()  # by what was acknowledged
    assert max(seen) == pytest.approx(2 * (40 + 150) * 1448, rel=1e-3)
    assert seen[-1] == 2 * 1448
    env.step(5)
    assert env.telemetry["cwnd_bytes"] == pytest.approx(1.005 * 2 * 1448, abs=1)


def test_same_seed_same_episode_and_a_bare_reset_goes_on():
    def episode(env, **kwargs):
        observation, _ = env.reset(**kwargs)
        rng = np.random.default_rng(0)
        return np.concatenate([observation, *(env.step(int(rng.integers(3, 9)))[0] for _ in range(150))])

    lossy = {"name": "ppcc/random", "loss": 0.01, "loss_probability": 1, "rate_mbps": 10}
    a, b = Env(scenario=lossy), Env(scenario=lossy)
    first, second = episode(a, seed=5), episode(a)
    assert not np.array_equal(first, second)
    assert np.array_equal(first, episode(b, seed=5)) and np.array_equal(second, episode(b))
    assert np.array_equal(first, episode(a, seed=5)) and not np.array_equal(first, episode(a, seed=6))


def test_telemetry_by_name():
    env = Env(scenario=SHORT)
    env.reset(seed=0)
    assert all(math.isnan(value) for value in env.telemetry.values())
    env.step(5)
    assert tuple(env.telemetry) == TELEMETRY.names and env.telemetry["elapsed_s"] == pytest.approx(0.1)
    assert env.telemetry["mss_bytes"] == 1448


@pytest.fixture
def gappy(tmp_path):
    """A trace with 700 ms without a delivery in each second, and 3 s of silence once."""
    path = tmp_path / "gaps.trace"
    times = [s * 1000 + ms for s in range(10) if s not in (4, 5, 6) for ms in range(300)]
    path.write_text("\n".join(map(str, times)) + "\n")
    return {"name": f"trace:{path}", "duration_s": 30.0}


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["default", "ppcc", "bare"])
@pytest.mark.parametrize("per_ack", [False, True])
def test_gaps_in_a_trace_neither_end_nor_freeze_an_episode(gappy, recipe, per_ack):
    env = gym.make(ID, scenario=gappy, recipe=recipe, per_ack=per_ack)
    env.reset(seed=1)
    rng = np.random.default_rng(2)
    time_s, truncated, empty, acked_late = 0.0, False, 0, False
    with np.errstate(all="raise", under="ignore"):
        while not truncated:
            observation, reward, terminated, truncated, _ = env.step(int(rng.integers(2, 8)))
            assert not terminated and math.isfinite(reward)
            assert np.isfinite(observation).all() and env.observation_space.contains(observation)
            telemetry = env.unwrapped.engine.tracker.now[:, 0]
            assert 0 <= telemetry[FIELD["elapsed_s"]] <= 0.1 + 1e-6
            time_s += float(telemetry[FIELD["elapsed_s"]])
            empty += math.isnan(telemetry[FIELD["rtt_mean_s"]])
            acked_late |= time_s > 20 and telemetry[FIELD["acks"]] > 0
    assert time_s == pytest.approx(30, abs=0.2) and empty > 50 and acked_late


def test_a_time_out_sets_one_segment_until_the_next_decision(gappy):
    env = Env(scenario=gappy)
    env.reset(seed=0)
    found = decided = 0
    for _ in range(100):
        before = dict(env.telemetry)
        env.step(10)
        segments = env.telemetry["cwnd_bytes"] / 1448
        if env.telemetry["timeouts"] > 0:
            assert segments == 1
            found += 1
        elif before["cwnd_bytes"] == 1448 and before["acks"] == 0:
            assert segments == 1  # nothing is decided in silence
        elif before["cwnd_bytes"] == 1448:
            assert 2 <= segments <= max(2, 1 + before["segments_acked_sum"])  # what ACKs confirm
            decided += 1
    assert found >= 1 and decided >= 1


def test_the_spec_is_json_and_makes_the_same_environment():
    made = gym.make(ID, scenario={"name": "ppcc/2", "rate_mbps": 20}, reward={"name": "log_utility", "floor": 0.1})
    spec = gym.envs.registration.EnvSpec.from_json(made.spec.to_json())
    again = gym.make(spec)
    assert again.unwrapped.schema() == made.unwrapped.schema()
    assert again.unwrapped.engine.reward == made.unwrapped.engine.reward
    assert json.loads(json.dumps(made.unwrapped.schema())) == made.unwrapped.schema()


def test_a_scenario_may_be_given_as_a_dict_of_its_own():
    world = netbuf_gym.scenarios.dumbbell(rate_mbps=5, rtt_ms=20, buffer_packets=20, senders=["cubic", "bbr"], duration_s=3)
    env = Env(scenario=json.loads(json.dumps(world.to_dict())))
    env.reset(seed=0)
    assert [flow.cc for flow in env.engine.scenarios[0].flows] == ["agent", "bbr"]
    assert env.engine.tracker.share_bps[0] == 2.5e6


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"scenario": "ppcc/9"}, "ppcc/9"),
        ({"scenario": 7}, "scenario"),
        ({"scenario": {}}, "scenario"),
        ({"scenario": {"name": "ppcc/1", "speed": 3}}, "speed"),
        ({"scenario": {"name": "ppcc/1", "rate_mbps": -1}}, "rate_mbps"),
        ({"scenario": {"name": "ppcc/1", "rate_mbps": float("nan")}}, "rate_mbps"),
        ({"recipe": "paper"}, "recipe"),
        ({"per_ack": 1}, "per_ack"),
        ({"senders": 2}, "senders = 2"),
        ({"agents": 2}, "agents = 2"),
        ({"plant": "mars"}, "plant"),
        ({"reward": "most"}, "reward"),
        ({"render_mode": "human"}, "render_mode"),
        ({"task": "other"}, "task"),
        ({"intervall_s": 1}, "intervall_s"),
    ],
)
def test_bad_arguments_are_refused_by_name(kwargs, message):
    with pytest.raises((ConfigError, ScenarioError), match=message):
        Env(**kwargs)


@pytest.mark.parametrize("name", ["agents", "senders"])
def test_rows_that_fill_no_world_name_the_argument_that_was_given(name):
    with pytest.raises(ConfigError, match=f"no multiple of {name} = 2"):
        gym.make_vec(ID, num_envs=3, **{name: 2})


@pytest.mark.parametrize("action", [12, -1, 2.0, float("nan"), [1, 2], "up", None])
def test_bad_actions_are_refused(action):
    env = Env(scenario=SHORT)
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="action"):
        env.step(action)


def test_order_is_enforced_and_options_are_checked():
    env = Env(scenario=SHORT)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)
    with pytest.raises(ConfigError, match="speed"):
        env.reset(options={"speed": 1})


@pytest.mark.parametrize("limit", [{"queue_packets": 100}, {"queue_bytes": 75_200}])
def test_windows_are_in_segments_of_the_scenarios_own_size(limit):
    """700 bytes, 752 on the wire: 10 segments are 7000 bytes, and the keep action keeps them; 100 packets fit the queue."""
    links = [Link(name="bottleneck", rate_mbps=10, delay_ms=24, **limit), Link(name="return", delay_ms=24)]
    flow = Flow(cc="agent", path=(0,), return_path=(1,))
    world = Scenario(links=links, flows=[flow], duration_s=5, mss_bytes=700)
    env = Env(scenario=world.to_dict(), recipe="ppcc")
    env.reset(seed=1)
    assert env.engine.show(0)["cwnd_packets"] == 10
    for _ in range(10):
        env.step(env.engine.task.keep_action)
        assert env.telemetry["cwnd_bytes"] == 7000 and env.engine.show(0)["cwnd_packets"] == 10
    for _ in range(30):
        env.step(10)
    bdp = 10e6 * 0.048 / 8 / 752
    assert env.telemetry["cwnd_bytes"] <= 2 * (bdp + 100) * 700 * (1 + 1e-6)
    assert env.engine.tracker.highest_window[0] == pytest.approx(2 * (bdp + 100) * 700)
    assert env.engine.tracker.lowest_window[0] == 1400


def test_a_world_without_a_finite_rate_has_nothing_to_control():
    links = [Link(name="bottleneck", delay_ms=5), Link(name="return", delay_ms=5)]
    world = Scenario(links=links, flows=[Flow(cc="agent", path=(0,), return_path=(1,))], duration_s=5, name="free")
    with pytest.raises(ConfigError, match="'free' has no link of finite rate"):
        Env(scenario=world.to_dict())
