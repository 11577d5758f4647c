import dataclasses
import json
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym import scenarios, traces
from netbuf_gym.errors import ConfigError, ScenarioError, TraceError
from netbuf_gym.scenarios import Distribution, Scenario, named


@pytest.mark.parametrize("name", scenarios.names())
def test_every_name_gives_a_world_that_describes_itself(name):
    world = scenarios.get(name)
    assert isinstance(world, (Scenario, Distribution))
    assert world.name == name
    assert len(scenarios.describe(name)) > 20
    if name.startswith("rlbm/"):  # finite flows from senders
        assert scenarios.flows_of(world) == 0
        drawn = world if isinstance(world, Scenario) else world.sample(np.random.default_rng(0))
        assert len(drawn.traffic.senders) == 10 and drawn.name == name
    elif name == "switch/families":  # worlds are called by their family
        drawn = world.sample(np.random.default_rng(0))
        assert scenarios.flows_of(world) == 0 and drawn.traffic.senders and drawn.name.startswith("switch/")
    elif name.startswith("auter/"):  # what is sent is the host's: relayed, or from it
        drawn = world if isinstance(world, Scenario) else world.sample(np.random.default_rng(0))
        assert [host.name for host in drawn.hosts if host.agent or host.name == "proxy"] == ["proxy"] and drawn.name == name
    else:
        assert "n" in scenarios.parameters_of(name) and "senders" in scenarios.parameters_of(name)
        crossing = 3 if name == "parking_lot" else 0
        assert scenarios.flows_of(scenarios.get(name, n=4)) == 4 + crossing


def test_ppcc_is_the_papers_table():
    table = {i: (s.buffer_packets, s.links[s.bottleneck].loss) for i in (1, 2, 3, 4) for s in [scenarios.get(f"ppcc/{i}")]}
    assert table == {1: (150000, 0), 2: (150000, 1e-4), 3: (150, 0), 4: (150, 1e-4)}
    scenario = scenarios.get("ppcc/1")
    assert (scenario.capacity_mbps, scenario.propagation_rtt_ms(), scenario.duration_s) == (10, 48, 100)
    assert scenarios.get("ppcc/2", rate_mbps=20).capacity_mbps == 20
    assert scenarios.get("ppcc/2", stack="ns3").stack == "ns3"


def test_fluctuating_has_both_rates():
    scenario = scenarios.get("ppcc/fluctuating")
    rates = scenario.links[scenario.bottleneck].trace.rate_at_mbps(np.arange(0.5, 100, 1))
    assert sorted(set(rates.tolist())) == [10, 20] and scenario.capacity_mbps == pytest.approx(15)


def test_pantheon_paths():
    scenario = scenarios.get("pantheon/2")
    assert scenario.propagation_rtt_ms() == 176 and scenario.buffer_packets == 130
    assert scenario.capacity_mbps == pytest.approx(2.64, rel=0.05)


def test_senders_and_n():
    assert [f.cc for f in scenarios.get("ppcc/1", n=2).flows] == ["cubic", "cubic"]
    assert [f.cc for f in scenarios.get("ppcc/1", senders=["bbr", "vegas"]).flows] == ["bbr", "vegas"]
    assert [f.cc for f in scenarios.get("ppcc/1", n=2, senders="bbr").flows] == ["bbr", "bbr"]
    with pytest.raises(ScenarioError, match="n = 3 with 2 senders"):
        scenarios.get("ppcc/1", n=3, senders=["bbr", "vegas"])


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        ("ppcc/9", {}, "scenario = 'ppcc/9' is unknown; .*valid: .*ppcc/1.*trace:PATH, file:PATH, rlbm/CC-SIZE-LOAD"),
        ("rlbm/cubic-500", {}, "scenario = 'rlbm/cubic-500' is unknown"),
        ("rlbm/tahoe-500-0.5", {}, "sender.cc = 'tahoe' is unknown"),
        ("rlbm/cubic-0-0.5", {}, "queue_packets = 0"),
        ("rlbm/cubic-500-0", {}, "load = 0"),
        ("rlbm/cubic-500-0.5", {"load": 0.3}, "has no argument 'load'; valid: sizes, flow_list"),
        ("", {}, "scenario = '' is unknown"),
        ("trace:", {}, "scenario = 'trace:' is unknown"),
        (3, {}, "scenario = 3 is not a name"),
        ("ppcc/1", {"rate": 5}, "ppcc/1 has no argument 'rate'; .*valid: n, senders, rate_mbps"),
        ("ppcc/1", {"timestamp": False}, "did you mean 'timestamps'\\?.*; of every scenario: mss_bytes, .*window_scaling"),
        ("ppcc/1", {"n": 0}, "n = 0"),
        ("ppcc/1", {"n": 1.5}, "n = 1.5"),
        ("ppcc/1", {"rate_mbps": -1}, "rate_mbps = -1"),
        ("ppcc/1", {"senders": ["x"]}, "cc = 'x'"),
        ("ppcc/fluctuating", {"high_mbps": 0}, "high_mbps = 0"),
        ("ppcc/fluctuating", {"half_period_s": -1}, "half_period_s = -1"),
        ("ppcc/random", {"rate_mbps": (5, 1)}, r"rate_mbps\[1\] = 1"),
        ("file:/nowhere.json", {}, "/nowhere.json: cannot be read"),
    ],
)
def test_bad_names_and_arguments_are_named(name, kwargs, message):
    with pytest.raises(ScenarioError, match=message):
        scenarios.get(name, **kwargs)


def test_settings_of_tcp_are_arguments_of_every_scenario(tmp_path):
    kept = tmp_path / "world.json"
    kept.write_text(json.dumps(scenarios.dumbbell(duration_s=5).to_dict()))
    for name in ("dumbbell", "ppcc/3", "pantheon/1", f"file:{kept}"):
        usual, changed = scenarios.get(name), scenarios.get(name, timestamps=False, max_rto_ms=2000)
        assert changed == replace(usual, timestamps=False, max_rto_ms=2000) and changed.name == usual.name
    drawn, usual = (scenarios.get("paths/agents", **more) for more in ({"delayed_ack": 4}, {}))
    for seed in range(3):
        first, second = (world.sample(np.random.default_rng(seed)) for world in (drawn, usual))
        assert first == replace(second, delayed_ack=4)
    assert (drawn.flows, drawn.name) == (usual.flows, usual.name)
    with pytest.raises(ScenarioError, match="max_rto_ms = 2"):
        scenarios.get("paths/agents", max_rto_ms=2)
    env = gym.make("netbuf/CongestionWindow-v0", scenario={"name": "ppcc/2", "window_scaling": False})
    assert env.unwrapped.spec.kwargs["scenario"] == {"name": "ppcc/2", "window_scaling": False}
    env.close()


def test_a_dumbbells_bottleneck_duplicates_and_damages():
    link, *others = scenarios.get("dumbbell", duplicate=0.1, corrupt=0.2).links
    assert (link.duplicate, link.corrupt) == (0.1, 0.2)
    assert [replace(link, duplicate=0, corrupt=0), *others] == list(scenarios.dumbbell().links)


def test_trace_scenarios(tmp_path):
    path = tmp_path / "walk.csv"
    traces.write(traces.generate("walk", duration_s=20), path)
    scenario = scenarios.get(f"trace:{path}", rtt_ms=30, senders=["vegas"], loop=False)
    assert scenario.links[scenario.bottleneck].trace.name == "walk.csv"
    assert scenario.propagation_rtt_ms() == 30 and scenario.name == f"trace:{path}"
    with pytest.raises(TraceError, match="cannot be read"):
        scenarios.get(f"trace:{tmp_path}/none")
    with pytest.raises(ScenarioError, match="has no argument 'path'"):
        scenarios.get(f"trace:{path}", path="x")


def test_scenario_files(tmp_path):
    path = tmp_path / "world.json"
    scenario = scenarios.get("ppcc/3")
    path.write_text(json.dumps(scenario.to_dict()))
    assert scenarios.get(f"file:{path}") == scenario
    path.write_text(path.read_text()[:-20])
    with pytest.raises(ScenarioError, match=r"world.json: is not JSON"):
        scenarios.get(f"file:{path}")
    path.write_text(json.dumps(scenario.to_dict() | {"duration_s": -1}))
    with pytest.raises(ScenarioError, match=r"world.json: duration_s = -1"):
        scenarios.get(f"file:{path}")


def test_ready_made_worlds_pass_through():
    scenario = scenarios.dumbbell()
    assert scenarios.get(scenario) is scenario
    with pytest.raises(ScenarioError, match="takes no arguments"):
        scenarios.get(scenario, n=2)


def test_names_are_taken_once():
    with pytest.raises(ConfigError, match="'ppcc/1' is registered already"):
        scenarios.register("ppcc/1", scenarios.dumbbell)


def test_cells_of_the_thesis_grid():
    cell = scenarios.get("rlbm/newreno-300-0.4", duration_s=5)
    assert cell == dataclasses.replace(
        scenarios.get("rlbm/default", cc="newreno", queue_packets=300, load=0.4, duration_s=5), name="rlbm/newreno-300-0.4"
    )
    assert "cc" not in scenarios.parameters_of("rlbm/newreno-300-0.4")


def test_makers_of_ones_own(monkeypatch):
    monkeypatch.setattr(named, "_REGISTRY", dict(named._REGISTRY))
    scenarios.register("mine/needs", lambda *, rate_mbps: scenarios.dumbbell(rate_mbps=rate_mbps))
    scenarios.register("mine/any", lambda **kwargs: scenarios.dumbbell(**kwargs))
    scenarios.register("mine/name", lambda name="x": scenarios.dumbbell(name=name))
    with pytest.raises(ScenarioError, match="mine/needs needs the argument 'rate_mbps'"):
        scenarios.get("mine/needs")
    assert scenarios.get("mine/needs", rate_mbps=5).capacity_mbps == 5
    assert scenarios.get("mine/any", rate_mbps=7).name == "mine/any"
    assert scenarios.get("mine/name", name="y").name == "y"
    with pytest.raises(ScenarioError, match="unknown; valid"):
        scenarios.describe("nothing")
