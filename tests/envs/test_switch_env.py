"""The queue-threshold environment on its simulator: scalar, vector, and whatever actions it is given."""

import json
import math
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym
from netbuf_gym.envs.env import Env
from netbuf_gym.envs.rendering import CHART_PANEL
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.scenarios import Flow, Link, RateTrace, Scenario, SizeDistribution, StrictPriority, Switch, shared_buffer
from netbuf_gym.wrappers import LogUtilityReward

pytestmark = pytest.mark.filterwarnings("error")
ID = "netbuf/QueueThreshold-v0"
SHORT = {"name": "rlbm/cubic-100-0.8", "duration_s": 6.0}
RANDOM = {"name": "rlbm/random", "duration_s": 4.0, "load": [0.5, 3.0], "queue_packets": [20, 100]}
BURSTS = {"name": "rlbm/incast", "duration_s": 5.0}
RECIPES = [
    *({}, {"recipe": "thesis-text"}, {"recipe": "thesis-code"}, {"actions": "grid"}),
    *({"actions": "changes", "drop": "agent"}, {"actions": "pulse_grid", "drop": "agent"}),
]


@pytest.mark.slow
@pytest.mark.parametrize("kwargs", RECIPES)
@pytest.mark.parametrize("scenario", [RANDOM, BURSTS, {"name": "rlbm/thesis-code", "duration_s": 3.0}])
def test_fuzzed_actions_conserve_packets_and_never_overfill_the_buffer(kwargs, scenario):
    """Thresholds anywhere, another at each step: packets are delivered, dropped or in the buffer, and nothing is made up."""
    env = Env(task="queue_threshold", scenario=scenario, **kwargs)
    rng = np.random.default_rng(7)
    for seed in range(3):
        env.reset(seed=seed)
        core, before = env.engine.plant._batch, None
        for _ in range(60):
            if isinstance(env.action_space, gym.spaces.Discrete):
                action = rng.integers(env.action_space.n)
            else:
                numbers = rng.choice([-np.inf, -1e30, -1, -0.3, 0, 5 / 11, 1, 7.0, np.inf], env.action_space.shape)
                action = numbers.astype(rng.choice(["f4", "f8"]))
            observation, reward, terminated, truncated, info = env.step(action)
            assert env.observation_space.contains(observation) and math.isfinite(reward) and not (terminated or truncated)
            assert sum(info["reward_terms"].values()) == pytest.approx(reward, abs=1e-5)
            stats, sample = core.switch_stats(0)[0], np.array(core.switch_sample(0))[0]
            for q, queue in enumerate(stats["queues"]):
                assert queue["arrivals"] == queue["drops"] + queue["departures"] + queue["packets"] and queue["packets"] >= 0
                assert sample[q, 0] == queue["packets"]
            switch = env.engine.scenarios[0].switches[0]
            used = sample[:, 1].sum() if switch.in_bytes else sample[:, 0].sum()
            assert 0 <= used <= switch.capacity and stats["occupancy_max"] <= 1
            assert env.telemetry["free"] == switch.capacity - used
            counted = [sum(queue[name] for queue in stats["queues"]) for name in ("arrivals", "drops")]
            if before is not None:
                told = [sum(env.telemetry[f"{name}_{q}"] for q in (0, 1)) for name in ("arrivals", "drops")]
                assert told == [now - then for now, then in zip(counted, before, strict=True)]
            before = counted
            traffic = core.traffic_stats(0)
            assert traffic["flows_completed"] <= traffic["flows_connected"] <= traffic["flows_started"]
            lost = traffic["queue_drops"] + traffic["random_losses"]
            assert traffic["packets_sent"] == traffic["packets_received"] + lost + traffic["packets_in_network"]


@pytest.mark.parametrize("queues_in", ["packets", "bytes"])
def test_a_threshold_of_almost_nothing_drops_almost_everything(queues_in):
    size = {"buffer_packets": 500} if queues_in == "packets" else {"buffer_bytes": 750_000}
    flows = SizeDistribution(name="one", size_bytes=(50_000, 50_001), cumulative=(0, 1))
    world = shared_buffer(arrivals=netbuf_gym.scenarios.PoissonArrivals(flows_per_s=200, sizes=flows), duration_s=3, **size)
    env = Env(task="queue_threshold", scenario=json.loads(json.dumps(world.to_dict())))
    shares = {}
    for level in (-1.0, 1.0):
        env.reset(seed=0)
        for _ in range(30):
            env.step(np.full(2, level))
        report = env.report()
        shares[level] = report["occupancy_p99"], report["drops"]
    assert shares[-1.0][0] <= 0.01 and shares[1.0][0] > 0.8 and shares[-1.0][1] > 0


def test_alphas_are_in_force_from_the_step_they_are_given_in():
    env = Env(task="queue_threshold", scenario=SHORT)
    observation, _ = env.reset(seed=0)
    column = [feature.name for feature in env.engine.task.features].index("alpha_0")
    assert observation[column] == pytest.approx(5 / 11)  # the world's own, 1
    env.step([1.0, -1.0])
    assert (env.telemetry["alpha_0"], env.telemetry["alpha_1"]) == (8.0, 2.0**-8)
    assert env.engine.task.show(env.engine.tracker, 0)["alpha_1"] == 2.0**-8


def test_flows_are_seen_to_start_and_to_end_and_the_least_queue_is_below_the_longest():
    """An open buffer loses no SYN: as many pass as flows start. Of each that completes the last segment has passed."""
    env = Env(task="queue_threshold", scenario={"name": "rlbm/default", "queue_packets": 5000, "load": 0.9}, interval_s=0.05)
    env.reset(seed=1)
    told = ("flows_started", "flows_completed")  # of the whole switch
    seen = dict.fromkeys((*told, "syns", "flows_opened", "flows_closed"), 0.0)
    for _ in range(300):
        env.step(np.ones(2))
        for name in seen:
            seen[name] += sum(env.telemetry[one] for one in ([name] if name in told else [f"{name}_0", f"{name}_1"]))
        for q in (0, 1):
            now, least = env.telemetry[f"queue_bytes_{q}"], env.telemetry[f"queue_bytes_min_{q}"]
            assert 0 <= least <= now <= 1540 * env.telemetry[f"queue_packets_max_{q}"]
    assert seen["flows_started"] >= seen["syns"] >= seen["flows_opened"] >= seen["flows_started"] - 1
    assert seen["flows_closed"] >= seen["flows_completed"] > 1


@pytest.mark.parametrize("actions", ["limits", "changes", "limit_grid", "pulse_grid"])
def test_an_agent_can_change_the_drop_place(actions):
    env = Env(task="queue_threshold", scenario={**SHORT, "name": "rlbm/default"}, actions=actions, drop="agent")
    env.reset(seed=1)
    places = []
    for head in (0, 0, 1, 1, 0):
        env.step(head if isinstance(env.action_space, gym.spaces.Discrete) else [1, 1, 2 * head - 1])
        places.append(env.telemetry["drop_head"])
    assert places == [0, 0, 1, 1, 0]


def test_a_pulse_drops_less_than_a_limit_that_stands():
    """Of a queue that is kept full for two seconds: a cut of 3 ms is a packet or two each time, one of 100 ms many."""
    drops = {}
    for name, number in (("pulse", 6 * 8 + 4), ("open", 4 * 8 + 4), ("standing", 1 * 8 + 4)):
        env = Env(task="queue_threshold", scenario={"name": "rlbm/default", "load": 0.95}, actions="pulse_grid", history=1)
        env.reset(seed=2)
        drops[name] = 0.0
        for _ in range(200):
            env.step(number)
            drops[name] += env.telemetry["drops_0"]
    assert drops["open"] < drops["pulse"] < drops["standing"]


def test_an_episode_ends_at_its_duration_with_a_report_of_the_cores_counters():
    env = gym.make(ID, scenario=SHORT)
    assert env.spec.max_episode_steps == 60
    env.reset(seed=3)
    truncated, steps = False, 0
    while not truncated:
        *_, truncated, info = env.step(np.array([1, 5 / 11], np.float32))
        assert ("slowdown_p99" in info) == truncated
        steps += 1
    core, world = env.unwrapped.engine.plant._batch, env.unwrapped.engine.scenarios[0]
    flows = core.completions(0)
    ratio = flows[:, 2] / [world.ideal_s(int(f[4]), f[3], f[1]) for f in flows]
    assert steps == 60 and info["duration_s"] == 6 and info["flows_completed"] == len(flows) > 2
    own = np.sort(ratio[flows[:, 5] == 0])
    assert info["slowdown_p99_p0"] == pytest.approx(own[math.ceil(0.99 * len(own)) - 1])
    assert info["slowdown_mean_p0"] == pytest.approx(own.mean()) and info["slowdown_max"] == pytest.approx(ratio.max())
    logs = np.log(own).mean()
    assert info["slowdown_log_mean_p0"] == pytest.approx(logs)
    assert info["fct_utility"] == pytest.approx(math.log(info["goodput_mbps"] / 10) - logs)
    assert info["fct_mean_s"] == flows[:, 2].mean()
    assert info["goodput_mbps"] == pytest.approx(core.traffic_stats(0)["delivered_bytes"] * 8e-6 / 6)
    assert info["scenario"] == "rlbm/cubic-100-0.8" and info["probe_delay_mean_ms"] > 10


def test_a_bottleneck_that_rests_all_episode_long_has_a_report_without_a_utility():
    world = netbuf_gym.scenarios.get("rlbm/cubic-100-0.8", duration_s=0.2)
    resting = RateTrace(time_s=[0.0, 0.3], rate_mbps=[0.0, 10.0], period_s=1.0)
    links = [replace(world.links[0], rate_mbps=None, trace=resting), *world.links[1:]]
    switches = [replace(world.switches[0], ports=(0, 1))]  # where no port carries anything, it is refused
    env = gym.make(ID, scenario=replace(world, links=links, switches=switches), interval_s=0.1)
    env.reset(seed=1)
    env.step(env.action_space.sample())
    *_, truncated, info = env.step(env.action_space.sample())
    assert truncated and info["goodput_mbps"] == 0 and math.isnan(info["fct_utility"])


def test_a_decision_as_coded_lasts_until_the_worst_slowdown_changes():
    env = gym.make(ID, scenario=SHORT, recipe="thesis-code")
    assert "DurationLimit" in str(env) and env.spec.max_episode_steps is None
    env.reset(seed=1)
    worst, truncated, time_s, steps = None, False, 0.0, 0
    while not truncated:
        *_, truncated, info = env.step(np.zeros(2, np.float32))
        telemetry = env.unwrapped.telemetry
        assert telemetry["elapsed_s"] / 0.1 == pytest.approx(round(telemetry["elapsed_s"] / 0.1))
        time_s += telemetry["elapsed_s"]
        assert truncated or (telemetry["flows_completed"] > 0 and telemetry["worst_ratio"] != worst)
        worst, steps = telemetry["worst_ratio"], steps + 1
    assert time_s == pytest.approx(6) and info["duration_s"] == 6 and steps < 60


def test_worlds_that_started_at_different_times_still_end_at_their_own():
    env = VectorEnv(3, task="queue_threshold", scenario=SHORT, recipe="thesis-code")
    env.reset(seed=2)
    env.step(np.zeros((3, 2)))
    env.reset(options={"reset_mask": np.array([False, True, False])})
    ended = np.zeros(3, bool)
    while not ended.all():
        *_, truncated, info = env.step(np.zeros((3, 2)))
        assert (info["final_info"]["duration_s"][truncated] == 6).all() if info else not truncated.any()
        ended |= truncated


def test_strict_priority_and_many_queues():
    sizes = netbuf_gym.scenarios.WEB_SEARCH
    world = shared_buffer(
        arrivals=netbuf_gym.scenarios.PoissonArrivals.for_load(0.9, 10, sizes),
        buffer_packets=300,
        queues=3,
        priority_below=(100_000, 1_000_000),
        scheduler=StrictPriority(),
        duration_s=20,
    )
    env = gym.make(ID, scenario=json.loads(json.dumps(world.to_dict())))
    assert env.action_space.shape == (3,)
    env.reset(seed=0)
    truncated = False
    while not truncated:
        observation, _, _, truncated, info = env.step(env.action_space.sample())
        assert env.observation_space.contains(observation)
    assert {"slowdown_p99_p2", "queue_mean_packets_2"} <= set(info)


def two_ports(**switch):
    links = (
        Link(name="left", rate_mbps=4, delay_ms=10),
        Link(name="right", rate_mbps=6, delay_ms=10),
        Link(name="back", delay_ms=10),
    )
    flows = tuple(Flow(cc="cubic", path=(port,), return_path=("back",)) for port in ("left", "right"))
    made = Switch(**{"ports": ("left", "right"), "queues": 1, "buffer_packets": 100} | switch)
    return Scenario(links=links, flows=flows, switches=(made,), duration_s=20)


def test_several_ports_are_added_up():
    env = Env(task="queue_threshold", scenario=json.loads(json.dumps(two_ports().to_dict())))
    env.reset(seed=0)
    tracker = env.engine.tracker
    assert tracker.capacity_bps[0] == 10e6 and tracker.ports[0] == 2
    longest = 0
    for _ in range(100):
        env.step(np.array([(np.log2(0.5) + 8) * 2 / 11 - 1]))  # alpha 1/2
        shown = env.engine.show(0)
        assert shown["threshold_packets_0"] == min(100, 2 * 0.5 * env.telemetry["free"])
        longest = max(longest, shown["queue_packets_0"])
    assert 45 <= longest <= 50  # each port's queue is as long as half of what is then free


def test_a_cap_on_queues_is_seen_and_shown():
    plain, capped = (
        Env(
            task="queue_threshold",
            scenario={**SHORT, "per_queue_cap": cap},
            reward={"name": "switch_utility", "burst_weight": 1},
        )
        for cap in (False, True)
    )
    names = [feature.name for feature in plain.engine.task.features]
    limit, burst = names.index("limit_0"), plain.engine.reward.terms.index("burst")
    for env, expected in ((plain, 200.0), (capped, 100.0)):  # two queues of 100
        env.reset(seed=1)
        env.step([1.0, 1.0])
        shown, seen = env.engine.show(0), env.engine.task.observe(env.engine.tracker, np.empty((len(names), 1), np.float32))
        assert shown["threshold_packets_0"] == pytest.approx(expected, abs=20 if env is plain else 0)
        ms = expected * env.engine.scenarios[0].data_bytes * 8 / 10e6 * 1e3
        assert seen[limit, 0] == pytest.approx(np.log(1 + ms) / np.log(10001), abs=0.03 if env is plain else 1e-5)
        assert env.engine.terms[burst, 0] <= 0
    held = np.array([[100.0], [0.0]])
    for env, refused in ((plain, 0.0), (capped, 1.0)):  # a full queue has no room for a burst
        tracker = env.engine.tracker
        tracker.share_of_buffer[:] = held / tracker.capacity
        tracker.free_fraction[:], tracker.queue.alpha[:] = 0.5, 8.0
        env.engine.reward(tracker, env.engine.terms)
        assert env.engine.terms[burst, 0] == pytest.approx(-refused * tracker.elapsed_s[0])


def test_a_shown_threshold_has_its_beta():
    env = Env(task="queue_threshold", scenario=SHORT, betas=[1, 0.25])
    env.reset(seed=0)
    env.step([-0.5, -0.5])
    shown = env.engine.show(0)
    assert shown["threshold_packets_1"] == pytest.approx(shown["threshold_packets_0"] / 4) and shown["threshold_packets_1"] > 0


def test_queue_0_varies_slowest_in_a_grids_numbers():
    env = Env(task="queue_threshold", scenario=SHORT, actions="grid")
    env.reset(seed=0)
    env.step(1)
    assert (env.telemetry["alpha_0"], env.telemetry["alpha_1"]) == (2.0**-8, 2.0**-4)
    env.step(48)
    assert (env.telemetry["alpha_0"], env.telemetry["alpha_1"]) == (8.0, 8.0)


@pytest.mark.parametrize("actions", ["continuous", "grid"])
def test_one_switch_takes_one_action(actions):
    env = Env(task="queue_threshold", scenario=SHORT, actions=actions)
    env.reset(seed=0)
    for bad in ([3], [[0.0, 0.0]], np.zeros((1, 2)), np.zeros(3)):
        with pytest.raises(ConfigError, match=r"action has shape \([\d, ]+\); valid: \((2,)?\), "):
            env.step(bad)
    assert env.telemetry["elapsed_s"] != env.telemetry["elapsed_s"]  # nothing was run


@pytest.mark.parametrize("seed", [1.5, "12", [1, 2.5], [1], [[1, 2], [3, 4]], np.array([1.0, 0.5]), [-1, 2], {1, 2}])
def test_seeds_that_are_none_are_refused(seed):
    with pytest.raises(ConfigError, match="seed"):
        VectorEnv(2, task="queue_threshold", scenario=SHORT).reset(seed=seed)


def test_seeds_in_an_array_are_seeds():
    env = VectorEnv(2, task="queue_threshold", scenario=RANDOM)
    assert np.array_equal(env.reset(seed=np.array([3, 4]))[0], env.reset(seed=[3, 4])[0])
    assert env.engine.seeds[0] != env.engine.seeds[1]


@pytest.mark.parametrize("render_mode", ["ansi", "rgb_array"])
def test_rendering(render_mode):
    env = gym.make(ID, render_mode=render_mode, scenario={"name": "rlbm/thesis-text", "duration_s": 10})
    env.reset(seed=0)
    before = env.render()
    for _ in range(50):
        env.step(np.array([0.3, -0.2], np.float32))
    after = env.render()
    if render_mode == "ansi":
        assert "nothing" in before and "queue 1" in after and "drops" in after and after.endswith("\n")
    else:
        assert after.dtype == np.uint8 and after.ndim == 3 and after.shape[2] == 3
        panels = env.unwrapped.engine.task.panels
        assert [one.limit_key for one in panels] == ["threshold_packets_0", "threshold_packets_1", None]
        for at, one in enumerate(panels[:2]):  # a queue and its limit are in one panel
            panel = after[at * CHART_PANEL : (at + 1) * CHART_PANEL]
            assert all((panel == color).all(axis=2).any() for color in (one.color, one.limit_color))
        assert not np.array_equal(before, after)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"per_ack": True}, "per_ack"),
        ({"reward": "log_utility"}, "reward"),
    ],
)
def test_bad_arguments_are_refused_by_name(kwargs, message):
    with pytest.raises((ConfigError, ScenarioError), match=message):
        Env(task="queue_threshold", **kwargs)


def test_a_sender_is_no_switch():
    with pytest.raises(ConfigError, match="betas"):
        Env(betas=[1, 1])
    with pytest.raises(ConfigError, match="senders"):
        VectorEnv(4, senders=2, task="queue_threshold")
    with pytest.raises(ConfigError, match="log_utility"):
        LogUtilityReward(Env(task="queue_threshold"))


@pytest.mark.parametrize("bad", [[np.nan, 0], [0.0], [[0.0, 1.0], [0.0, 1.0]], 0.5, "up", None, [True, False]])
def test_bad_actions_are_refused_and_harm_nothing(bad):
    env, other = (Env(task="queue_threshold", scenario=SHORT) for _ in range(2))
    env.reset(seed=0), other.reset(seed=0)
    with pytest.raises(ConfigError, match="action"):
        env.step(bad)
    assert np.array_equal(env.step([0.1, 0.2])[0], other.step(np.array([0.1, 0.2]))[0])


def test_a_switch_of_long_flows_alone_has_no_completions_to_speak_of():
    links = (Link(name="bottleneck", rate_mbps=10, delay_ms=10), Link(name="back", delay_ms=10))
    flows = tuple(Flow(cc=cc, path=("bottleneck",), return_path=("back",)) for cc in ("cubic", "newreno"))
    world = Scenario(links=links, flows=flows, switches=(Switch(buffer_packets=100),), duration_s=5)
    for recipe in ("default", "thesis-text"):
        env = gym.make(ID, scenario=json.loads(json.dumps(world.to_dict())), recipe=recipe)
        env.reset(seed=0)
        truncated = False
        while not truncated:
            observation, reward, _, truncated, info = env.step(env.action_space.sample())
            assert env.observation_space.contains(observation) and math.isfinite(reward)
        assert 5 < info["goodput_mbps"] < 10 and info["flows_completed"] == 0
        assert math.isnan(info["slowdown_p99"]) and math.isnan(info["probe_delay_mean_ms"])
