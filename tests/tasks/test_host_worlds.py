"""The worlds of the host-buffers task: what they are made of, how they are drawn, and what agents have a place in."""

import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from netbuf_gym import scenarios, simulate, tasks
from netbuf_gym.envs.env import Env
from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Flow, Host, Link, Scenario
from netbuf_gym.tasks.host_buffers import SCENARIOS, HostBuffers, HostPaths, make_host_world
from netbuf_gym.tasks.host_buffers.hosts import compute_offer, find_agent_hosts, initial_settings
from netbuf_gym.tasks.host_buffers.random_paths import WEB_OBJECTS, draw_long_run
from netbuf_gym.tasks.host_buffers.scenarios import MIXED_SIZES

SMALL = {"name": "auter/local", "rate_mbps": 5, "duration_s": 12}


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_world_is_described_and_goes_to_json_and_back(name):
    world = scenarios.get(name)
    world = world.sample(np.random.default_rng(1)) if isinstance(world, HostPaths) else world
    assert Scenario.from_dict(json.loads(json.dumps(world.to_dict()))) == world
    assert scenarios.describe(name)
    for argument, entry in scenarios.glossary_of(name).items():
        assert entry.meaning, (name, argument)


def test_the_host_sends_over_its_ring():
    world = make_host_world(rate_mbps=10, rtt_ms=40, loss=0.01, jitter_ms=1, connections=3, agent=True)
    proxy = world.hosts[0]
    assert world.links[proxy.device[0]].name == "nic" and find_agent_hosts(world) == [0]
    assert len(world.flows) == 3 and {flow.sender_host for flow in world.flows} == {"proxy"}
    capacity, share, base = compute_offer(world, proxy)
    assert capacity == 10e6 and share == capacity / 3
    assert base == pytest.approx(0.04 + 1514 * 8 / 10e6 + 1514 * 8 / 1e9, rel=1e-2)
    assert initial_settings(world, proxy)[:6] == [256, 212_992, 131_072, 6_291_456, 16_384, 4_194_304]


@pytest.mark.parametrize(("traffic", "flows", "arrives"), [("long", 2, False), ("short", 0, True), ("mixed", 2, True)])
def test_kinds_of_traffic(traffic, flows, arrives):
    world = make_host_world(traffic=traffic, connections=2, load=0.2, rate_mbps=20)
    assert len(world.flows) == flows and (world.traffic is not None) == arrives
    if arrives:
        assert world.traffic.arrivals[0].offered_mbps == pytest.approx(4)
        assert world.traffic.arrivals[0].sizes == WEB_OBJECTS


def test_files_of_a_size():
    sizes = scenarios.get("auter/local", size_bytes=10_000).traffic.arrivals[0].sizes
    assert sizes.mean_bytes == 10_000
    assert scenarios.get("auter/local", size_bytes="mixed").traffic.arrivals[0].sizes == MIXED_SIZES
    assert MIXED_SIZES.mean_bytes == pytest.approx(0.2 * 111.11e6, rel=1e-9)
    drawn = set(MIXED_SIZES.sample(np.random.default_rng(1), 500).tolist())
    assert drawn == {10**4, 10**5, 10**6, 10**7, 10**8}


def test_paths_are_drawn_within_their_ranges_and_again_alike():
    paths = scenarios.get("auter/training", explicit_probability=0.5, change_probability=0.5)
    kinds = set()
    for seed in range(60):
        world = paths.sample(np.random.default_rng(seed))
        assert world == paths.sample(np.random.default_rng(seed))
        link = world.links[1]
        assert 1 <= link.mean_mbps(1.0) <= 100 and 0 <= link.least_delay_ms <= 298 and link.queue_packets >= 20
        assert len(world.flows) <= 8
        kinds.add((bool(world.flows), world.traffic is not None))
        HostBuffers().control(world)
    assert kinds == {(True, False), (False, True), (True, True)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate_mbps": (0, 5)}, r"rate_mbps\[0\] = 0"),
        ({"rtt_ms": "long"}, "rtt_ms = 'long'"),
        ({"connections": (4, 2)}, r"connections\[1\] = 2"),
        ({"traffic": ()}, "traffic is empty"),
        ({"traffic": ("web",)}, r"traffic\[0\] = 'web'"),
        ({"ccs": ("cubik",)}, "cubik"),
        ({"start_bytes": (100, 1e6)}, r"start_bytes\[0\] = 100"),
        ({"loss_probability": 2}, "loss_probability = 2"),
        ({"change_factor": 0.5}, "change_factor = 0.5"),
        ({"duration_s": 0}, "duration_s = 0"),
    ],
)
def test_bad_ranges_are_named(arguments, message):
    with pytest.raises(ScenarioError, match=message):
        HostPaths(**arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("auter/local", {"extra_ms": -1}, "extra_ms = -1"),
        ("auter/local", {"size_bytes": "big"}, "size_bytes = 'big'"),
        ("auter/local", {"size_bytes": 0}, "size_bytes = 0"),
        ("auter/es-we", {"traffic": "medium"}, "traffic = 'medium'"),
        ("auter/es-we", {"settings": "tune-3"}, "settings = 'tune-3'"),
        ("auter/connections", {"connections": 0}, "connections = 0"),
        ("auter/hours", {"hours": 0}, "hours = 0"),
        ("auter/hours", {"loss": 0.5}, "loss = 0.5"),
    ],
)
def test_bad_arguments_of_worlds_are_named(name, arguments, message):
    with pytest.raises(ScenarioError, match=message):
        scenarios.get(name, **arguments)


def test_a_long_run_changes_within_bounds():
    path = draw_long_run(3, hours=31, rtt_ms=242, rate_mbps=4, loss=0.002)
    rates, losses = path["trace"].rate_mbps, path["loss"].loss
    assert len(rates) == 124 and path["duration_s"] == 111_600
    assert 0.4 < rates.min() < rates.max() < 8 and rates.max() > 1.5 * rates.min()
    assert 0 <= losses.min() < losses.max() < 0.05
    assert len(set(path["delay"].delay_ms.round(3))) > 3
    assert scenarios.get("auter/hours") == scenarios.get("auter/hours") != scenarios.get("auter/hours", world_seed=2)


def test_a_world_without_hosts_is_given_one():
    world = HostBuffers().control(scenarios.get("ppcc/4"))
    assert [host.name for host in world.hosts] == ["host"] and find_agent_hosts(world) == [0]
    assert {flow.sender_host for flow in world.flows} == {"host"}
    assert np.isnan(initial_settings(world, world.hosts[0])[0])
    assert HostBuffers().control(world) == world


def test_the_papers_recipe_starts_with_its_default():
    task = HostBuffers("auter")
    world = task.control(scenarios.get("auter/local"))
    assert initial_settings(world, world.hosts[0])[:6] == [256, 212_992, 65_536, 212_992, 65_536, 212_992]
    assert task.control(world) is world
    own = task.control(scenarios.get("auter/local").__class__.from_dict({**world.to_dict()}))
    assert own == world


def flows(cc="cubic", **links):
    link = Link(name="bottleneck", **{"rate_mbps": 10, "delay_ms": 5, **links})
    return [link], [Flow(cc=cc, path=(0,), return_path=(0,), sender_host="a")]


def test_worlds_without_a_place_are_refused():
    links, some = flows(rate_mbps=None)
    with pytest.raises(ConfigError, match="nothing limits what host 'a' sends"):
        HostBuffers().control(Scenario(links=links, flows=some, hosts=[Host(name="a")], duration_s=1))
    links, some = flows()
    with pytest.raises(ConfigError, match="the scenario has 1 hosts, 0 of them an agent's, and agents = 2"):
        HostBuffers(agents=2).control(Scenario(links=links, flows=some, hosts=[Host(name="a")], duration_s=1))


@pytest.mark.parametrize("recipe", ["default", "auter", "direct", "control"])
def test_the_checker_has_nothing_to_say(recipe, recwarn):
    env = gym.make("netbuf/HostBuffers-v0", recipe=recipe, scenario=SMALL, disable_env_checker=True)
    check_env(env.unwrapped, skip_render_check=True)
    assert not [str(one.message) for one in recwarn if "Env" in str(one.message) or "observation" in str(one.message)]


def test_an_episode_reports_what_was_carried():
    env = gym.make("netbuf/HostBuffers-v0", scenario={**SMALL, "duration_s": 30})
    env.reset(seed=1)
    for _ in range(10):
        *_, truncated, info = env.step(0)
    assert truncated
    assert 4 < info["throughput_mbps"] < 5 and 0.8 < info["share"] <= 1 and info["rtt_ratio"] > 1
    assert info["memory_mb"] > info["tcp_memory_mb"] > 0 and info["interrupted_s"] == 0
    assert info["duration_s"] == pytest.approx(30)
    assert env.unwrapped.engine.interval_s == 3


def test_a_larger_ring_interrupts():
    env = Env(task="host_buffers", scenario=SMALL, acts_on="ring", info="telemetry")
    env.reset(seed=1)
    env.step(0)
    *_, info = env.step(2)
    assert info["telemetry"]["ring_packets"] == 512 and info["telemetry"]["interrupted_s"] == pytest.approx(2.1)


def test_buffers_limit_long_paths_in_the_world():
    reports = {
        name: rollout.evaluate(name, task="host_buffers", scenario={"name": "auter/local", "duration_s": 30}, seeds=[1])[0]
        for name in ("default", "max", "autotuning")
    }
    assert reports["default"]["throughput_mbps"] < 0.5 * reports["autotuning"]["throughput_mbps"]
    assert reports["max"]["memory_mb"] > 10 * reports["autotuning"]["memory_mb"]


def test_worlds_run_without_an_agent():
    result = simulate(scenarios.get("auter/local", rate_mbps=5, duration_s=5, settings="max"), seed=1)
    assert result.flows[0].goodput_mbps > 3


def test_a_relay_has_two_legs():
    world = make_host_world(rate_mbps=5, rtt_ms=40, relay_bytes=65_536, connections=2, traffic="mixed", load=0.1, duration_s=12)
    capacity, share, base = compute_offer(world, world.hosts[0])
    assert capacity == 5e6 and share == 2.5e6 and base == pytest.approx(0.042, rel=0.05)  # of its own leg
    report = rollout.evaluate("autotuning", task="host_buffers", scenario=world, seeds=[1])[0]
    assert 3.5 < report["throughput_mbps"] <= 5 and report["flows_completed"] > 0
    placed = tasks.get("host_buffers").controllers["bbr"]().place(HostBuffers().control(world))
    assert str(placed.traffic.senders[0].relay.cc) == "bbr" and str(placed.traffic.senders[0].cc) == "cubic"
