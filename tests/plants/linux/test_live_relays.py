"""Relayed traffic in live worlds: two connections of the kernel's for each flow, as the simulator has them."""

import ctypes
import math
import os
import time

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym.plants.linux.codec import decode, encode
from netbuf_gym.plants.linux.process import Process
from netbuf_gym.plants.linux.setup import Agents, Setup
from tests.helpers import machines
from tests.helpers.machines import needs_live_worlds
from tests.helpers.release_cases import for_release
from tests.plants.linux import alone
from tests.plants.linux.live_worlds import dumbbell

WORLD = {"rate_mbps": 30.0, "extra_ms": 36.0, "relay_bytes": 65536, "duration_s": 6.0}
BUFFER_BYTES = 50_000


@pytest.mark.release
def test_a_relayed_world_is_the_simulators():
    needs_live_worlds()
    world = nb.scenarios.get("auter/local", traffic="mixed", **{**WORLD, "duration_s": 9.0})
    live, simulated = (nb.simulate(world, seed=1, plant=plant, warmup_s=3.0) for plant in ("linux", "sim"))
    told = ["start_s", "sender", "size_bytes"]
    within = live.opened["start_s"] < world.duration_s  # a live world ends some ms late
    assert live.opened[told][within].tolist() == simulated.opened[told].tolist()
    assert live.completions.dtype == simulated.completions.dtype
    assert live.traffic.goodput_mbps == pytest.approx(simulated.traffic.goodput_mbps, rel=0.15)  # finite flows vary
    _, one, other = np.intersect1d(live.completions["flow"], simulated.completions["flow"], return_indices=True)
    assert len(one) > 0.8 * len(simulated.completions) > 25
    one, other = live.completions[one], simulated.completions[other]
    assert one["ideal_s"].tolist() == other["ideal_s"].tolist()
    assert (one["fct_s"] > 0.99 * one["ideal_s"]).all()
    assert np.median(one["slowdown"]) == pytest.approx(np.median(other["slowdown"]), rel=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mixed", *for_release("long")])
def test_an_agent_at_the_relay_sees_both_connections(kind):
    needs_live_worlds()
    rows, completed = {}, {}
    for plant in ("linux", "sim"):
        scenario = {"name": "auter/local", "traffic": kind, **WORLD}
        env = gym.make("netbuf/HostBuffers-v0", plant=plant, interval_s=2.0, scenario=scenario, disable_env_checker=True)
        _, told = env.reset(seed=1)
        assert plant == "sim" or told["plant"]["window_clamp"] == "connections that a host receives"
        for _ in range(2):
            *_, info = env.step(env.action_space.sample() * 0)
            assert "failure" not in info, info
        rows[plant] = {name: float(value[0]) for name, value in env.unwrapped.engine.step_info("telemetry").items()}
        completed[plant] = env.unwrapped.engine.report(0)[0]["flows_completed"]
        env.close()
    live, simulated = rows["linux"], rows["sim"]
    if kind == "long":
        assert live["connections"] == simulated["connections"] == 2 and live["flows_sending"] == 1
    else:
        for name, rel in (("connections_opened", 0.2), ("flows_sending", 0.4), ("rtt_min_s", 0.4), ("latency_s", 0.6)):
            assert live[name] == pytest.approx(simulated[name], rel=rel), name
    assert completed["linux"] == pytest.approx(completed["sim"], abs=6)
    assert live["total_throughput_bps"] == pytest.approx(simulated["total_throughput_bps"], rel=0.1 if kind == "long" else 0.2)
    assert live["received_bytes"] * 8 / 2 > 0.9 * live["total_throughput_bps"]
    assert live["memory_bytes"] > live["send_queued_bytes"] > 0


def joined(rate_mbps, duration_s=20.0):
    """A message for a world of two flows, the second of which sends on what the first delivers."""
    base = dumbbell(rate_mbps=rate_mbps, duration_s=duration_s)
    near = nb.scenarios.Link(name="near", rate_mbps=200, delay_ms=1, queue_packets=1000)
    flows = [nb.scenarios.Flow(path=path, return_path=(1,)) for path in ((len(base.links),), (0,))]
    message = Setup(nb.scenarios.Scenario(links=(*base.links, near), flows=flows, duration_s=duration_s), Agents()).message
    config = decode(message["world"])
    both = config.flows
    both[1].relay_from, both[1].relay_buffer_bytes = 0, BUFFER_BYTES
    config.flows = both
    return {**message, "world": encode(config), "seed": 1, "places": []}


@pytest.mark.slow
def test_what_a_relay_holds_is_its_buffer():
    needs_live_worlds()
    process = Process()
    try:
        process.ask(joined(4))
        held = []
        for _ in range(8):
            process.ask({"do": "step", "interval_ns": 250_000_000, "until": "interval", "most": 1, "control": None})
            up, down = process.ask({"do": "report"})["report"]["flows"]
            held.append(up["delivered_bytes"] - down["written_bytes"])
        assert down["delivered_bytes"] * 8 / 2 == pytest.approx(4e6 * 0.95, rel=0.1)
    finally:
        process.close()
    assert max(held) == BUFFER_BYTES and min(held) >= 0


def broken():
    """What becomes of a static flow's relay when one of its connections is reset; for `alone.run`."""
    from netbuf_gym.plants.linux.world import LiveWorld

    world = LiveWorld(joined(20))
    try:
        world._begin()
        time.sleep(0.5)
        before = [flow["delivered_bytes"] for flow in world.flows.flow_stats()]
        descriptor = world.flows.sender_fd(1)
        ctypes.CDLL(None).connect(descriptor, bytes(16), 16)  # to no address: a reset
        os.close(descriptor)
        time.sleep(0.3)
        return before, world.flows.flow_stats(), world.failure(), world.flows.totals()["connections"]
    finally:
        world.close()


@pytest.mark.slow
def test_a_relay_goes_with_either_of_its_connections():
    needs_live_worlds()
    machines.needs_user_namespaces()
    before, flows, failure, connections = alone.run(__name__, "broken")
    assert min(before) > 10_000 and connections == 0 and failure == ""
    assert all(0.5 <= flow["failed_s"] < 1 for flow in flows)
    assert any("the other connection of its relay" in flow["failure"] for flow in flows)


def clamped():
    """Windows that the sender of a connection is told before and after they are clamped, and those of one opened later."""
    from netbuf_gym.plants.linux.world import LiveWorld

    base = dumbbell(rate_mbps=100, rtt_ms=40, buffer_packets=1000, duration_s=20.0)
    way = {"path": (0,), "return_path": (1,), "receiver_host": "reader"}
    flows = [nb.scenarios.Flow(start_s=start_s, **way) for start_s in (0.0, 1.5)]
    hosts = [nb.scenarios.Host(name="reader")]
    message = Setup(nb.scenarios.Scenario(links=base.links, flows=flows, hosts=hosts, duration_s=20.0), Agents()).message
    world = LiveWorld({**message, "seed": 1, "places": []})
    try:
        world._begin()
        told = []
        for seconds, clamp in ((1.0, 30_000), (2.0, 0)):
            time.sleep(seconds)
            told.append([route["in_flight_bytes"] for route in world.emulator.route_stats()])
            if clamp:
                told.append(world.flows.clamp_windows(world.setup["routes"][0]["receiver_node"], clamp))
        return told
    finally:
        world.close()


@pytest.mark.slow
def test_a_clamp_binds_connections_that_stand_and_those_opened_later():
    needs_live_worlds()
    machines.needs_user_namespaces()
    before, count, after = alone.run(__name__, "clamped")
    assert before[0] > 100_000 and count == 1
    assert 5_000 < max(after) <= 40_000 and min(after) > 5_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *for_release(1, 2, 3)])
def test_hosts_of_any_kind_of_traffic(seed):
    """The default world of the environment is relayed in a quarter of its episodes."""
    needs_live_worlds()
    scenario = {"name": "auter/any", "duration_s": 1.0, "relay_probability": 1.0}
    env = gym.make("netbuf/HostBuffers-v0", plant="linux", interval_s=0.5, scenario=scenario, disable_env_checker=True)
    env.reset(seed=seed)
    ended = False
    while not ended:
        _, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert "failure" not in info and math.isfinite(reward), info
        ended = terminated or truncated
    env.close()
