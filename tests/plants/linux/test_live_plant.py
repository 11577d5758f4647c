"""Live worlds from their start to their end, whatever ends them."""

import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import plants
from netbuf_gym.envs.env import Env
from netbuf_gym.errors import ConfigError, LateDecisionsWarning, PlantFault
from netbuf_gym.evaluation import rollout
from netbuf_gym.plants.linux.process import Process
from netbuf_gym.plants.linux.setup import Agents, Setup
from tests.helpers.busy_machine import undisturbed
from tests.helpers.machines import needs_live_worlds
from tests.helpers.release_cases import for_release
from tests.plants.linux import live_worlds
from tests.plants.linux.live_worlds import dumbbell

GONE_S = 30.0
"""How long the ends of processes may take on a machine that is busy."""


def gone(pids, spaces=frozenset()):
    """Whether neither these processes nor the namespaces are there any more, soon."""
    end = time.monotonic() + GONE_S
    while time.monotonic() < end:
        if not any(Path(f"/proc/{pid}").exists() and not zombie(pid) for pid in pids) and not live_worlds.in_use(spaces):
            return True
        time.sleep(0.02)
    return False


def zombie(pid):
    """Whether it has ended, and only its parent does not know yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture
def process():
    """A world that runs."""
    needs_live_worlds()
    process = live_worlds.started(dumbbell())
    yield process
    process.close()


def world_of(process):
    """The processes of a world, guard and helper, and their namespaces."""
    pids = live_worlds.processes(os.getpid())
    assert process.pid in pids
    return pids, live_worlds.namespaces(pids) - live_worlds.namespaces([os.getpid()])


@pytest.mark.slow
@undisturbed
def test_a_scenario_runs_as_in_the_simulator():
    needs_live_worlds()
    world = dumbbell(duration_s=4.0)
    live, simulated = (nb.simulate(world, plant=plant, warmup_s=1.0) for plant in ("linux", "sim"))
    assert live.flows[0].goodput_mbps == pytest.approx(simulated.flows[0].goodput_mbps, rel=0.15)
    assert live.flows[0].rtt_min_ms == pytest.approx(20.6, abs=5)
    assert live.links["bottleneck"].queue_max_packets_total <= 60
    assert live.flows[0].packets_sent > 0 and live.flows[0].cwnd_mean_packets > 10
    assert math.isnan(live.flows[0].fast_recoveries)


@pytest.mark.slow
def test_the_rate_is_the_links_own():
    needs_live_worlds()
    world = dumbbell(rate_mbps=10, duration_s=3.0, buffer_packets=100)
    run = plants.make_lone_world("linux", world, 1)
    try:
        run.run(3 * 10**9)
        first = run.link_stats()[0]
        run.run(5 * 10**9)
        last, told = run.link_stats()[0], run.emulator()
    finally:
        run.close()
    busy_s = last["busy_s"] - first["busy_s"]
    assert (last["used_bits"] - first["used_bits"]) / busy_s == pytest.approx(1e7, rel=1e-9)
    assert abs(told["rate_error"]) < 1e-3
    assert 0 <= told["late_p50_s"] <= told["late_p90_s"] <= told["late_p99_s"] <= told["late_p999_s"] <= told["late_max_s"]
    assert 0 <= told["read_late_p50_s"] <= told["read_late_p90_s"] <= told["read_late_p99_s"] <= told["read_late_max_s"]
    assert told["rate_busy_s"] > 2
    assert told["refused"] == 0 and told["packets_written"] > 1000


@pytest.mark.slow
def test_finite_flows_are_those_of_the_seed():
    needs_live_worlds()
    world = nb.scenarios.get("rlbm/default", duration_s=3.0, load=0.8)
    world = world.with_scheme("naive") if world.agent_switches else world
    live, simulated = (nb.simulate(world, seed=3, plant=plant) for plant in ("linux", "sim"))
    assert live.opened[["start_s", "sender", "size_bytes", "priority"]].tolist() == (
        simulated.opened[["start_s", "sender", "size_bytes", "priority"]].tolist()
    )
    assert set(live.completions["flow"]) <= set(live.opened["flow"])
    assert len(live.completions) > 0
    assert (live.completions["fct_s"] > 0.9 * live.completions["ideal_s"] - 0.001).all()
    assert live.switches[0].occupancy_max <= 1


@pytest.mark.slow
def test_flows_start_and_stop():
    needs_live_worlds()
    base = dumbbell(senders=["cubic", "newreno"], duration_s=3.0)
    flows = (
        nb.scenarios.Flow(path=(0,), return_path=(1,), start_s=0.5, stop_s=1.5),
        nb.scenarios.Flow(cc="newreno", path=(0,), return_path=(1,), app=nb.scenarios.Sized(size_bytes=100_000)),
        nb.scenarios.Flow(path=(0,), return_path=(1,), app=nb.scenarios.OnOff(on_s=0.2, off_s=0.2, rate_mbps=2)),
    )
    world = nb.scenarios.Scenario(links=base.links, flows=flows, duration_s=3.0)
    result = nb.simulate(world, plant="linux")
    _, second, third = result.flows
    assert second.delivered_bytes == 100_000 and 0.02 < second.completion_s < 3
    per_s = result.series["goodput_mbps"][:, 0]
    assert per_s[:4].sum() == 0 and per_s[7:14].mean() > 1 and per_s[-5:].sum() < 1
    assert third.delivered_bytes == pytest.approx(3.0 / 2 * 2e6 / 8, rel=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("environment", ["netbuf/CongestionWindow-v0", "netbuf/QueueThreshold-v0"])
def test_environments_run_on_it(environment):
    needs_live_worlds()
    scenario = {"name": "rlbm/default", "duration_s": 1.0}
    if "Congestion" in environment:
        scenario = dumbbell(senders=["agent"], duration_s=1.0)
    env = gym.make(environment, plant="linux", scenario=scenario)
    observation, _ = env.reset(seed=1)
    ended, steps = False, 0
    while not ended:
        assert env.observation_space.contains(observation)
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert math.isfinite(reward)
        ended, steps = terminated or truncated, steps + 1
    assert 1 <= steps <= 10 and "failure" not in info
    assert info["duration_s"] >= 1.0
    env.close()


@pytest.mark.slow
def test_an_agent_changes_the_drop_place_of_a_live_switch():
    needs_live_worlds()
    scenario = {"name": "rlbm/default", "duration_s": 5.0, "load": 0.95}
    env = Env(task="queue_threshold", plant="linux", scenario=scenario, actions="pulse_grid", drop="agent")
    try:
        env.reset(seed=1)
        drops, short = {0: 0.0, 1: 0.0}, 2 * (0 * 8 + 4)  # 1 ms for queue 0
        for step in range(45):
            head = step // 5 % 2
            env.step(short + head)
            assert env.telemetry["drop_head"] == head
            drops[head] += env.telemetry["drops_0"]
        assert drops[0] + drops[1] > 0
    finally:
        env.close()


@pytest.mark.slow
@undisturbed
def test_worlds_run_at_the_same_time_and_fail_alone():
    needs_live_worlds()
    scenario = dumbbell(senders=["agent"], duration_s=30.0)
    envs = gym.make_vec("netbuf/CongestionWindow-v0", 3, plant="linux", scenario=scenario, interval_s=1.0)
    try:
        envs.reset(seed=1)
        keep = np.full(3, 5)
        begun = time.monotonic()
        envs.step(keep)
        assert time.monotonic() - begun < 2.0  # one after another it would be 3
        victim = envs.unwrapped.engine.plant._processes[1]
        os.kill(victim.pid, signal.SIGKILL)
        _, _, _, truncated, infos = envs.step(keep)
        while not truncated.any():
            _, _, _, truncated, infos = envs.step(keep)
        assert truncated.tolist() == [False, True, False]
        assert "ended (signal 9)" in str(infos)
        _, rewards, _, truncated, _ = envs.step(keep)
        assert not truncated.any() and np.isfinite(rewards).all()
    finally:
        envs.close()
    assert gone(live_worlds.processes(os.getpid()))


@undisturbed
def test_it_is_up_and_gone_soon():
    needs_live_worlds()
    begun = time.monotonic()
    process = live_worlds.made(dumbbell())
    up_s = time.monotonic() - begun
    try:
        pids, spaces = world_of(process)
        assert len(pids) >= 2 and spaces
    finally:
        begun = time.monotonic()
        process.close()
    assert gone(pids, spaces)
    gone_s = time.monotonic() - begun
    assert up_s < 2.0 and gone_s < 1.0, (up_s, gone_s)  # where others run, too


@pytest.mark.parametrize("who", ["guard", "helper"])
def test_whoever_is_killed_the_other_goes_too(process, who):
    pids, spaces = world_of(process)
    victim = process.pid if who == "guard" else next(pid for pid in pids if pid != process.pid)
    os.kill(victim, signal.SIGKILL)
    assert gone(pids - {process.pid}, spaces)
    with pytest.raises(PlantFault, match=r"ended|answer"):
        live_worlds.step(process, 0.1)


OWNER = """
import os, sys, time
sys.path.insert(0, {here!r})
from tests.plants.linux import live_worlds
worlds = [live_worlds.started(live_worlds.dumbbell(senders=["cubic", "bbr"], duration_s=60)) for _ in range(2)]
if {forks}:
    if os.fork() == 0:
        time.sleep(60)
print("ready", flush=True)
while True:
    for world in worlds:
        live_worlds.step(world, 0.05)
"""


@pytest.mark.slow
@pytest.mark.parametrize("forks", [True, *for_release(False)], ids=["with a child that holds its sockets", "alone"])
def test_a_killed_controller_leaves_nothing(forks):
    needs_live_worlds()
    code = OWNER.format(here=str(Path(__file__).parents[3]), forks=forks)
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert owner.stdout.readline() == b"ready\n"
        time.sleep(random.Random(forks).uniform(0, 0.5))
        pids = live_worlds.processes(owner.pid)
        spaces = live_worlds.namespaces(pids) - live_worlds.namespaces([os.getpid()])
        assert len(pids) >= 4 and spaces
        owner.kill()
        owner.wait()
        assert gone(pids, spaces)
    finally:
        os.killpg(owner.pid, signal.SIGKILL)
        owner.wait()


@pytest.mark.slow
def test_a_controller_killed_while_it_starts_leaves_nothing():
    needs_live_worlds()
    code = OWNER.format(here=str(Path(__file__).parents[3]), forks=False)
    for after_s in (0.3, 0.6, 0.9):
        owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
        time.sleep(after_s)
        pids = live_worlds.processes(owner.pid)
        owner.kill()
        owner.wait()
        assert gone(pids | live_worlds.processes(owner.pid))


def test_nothing_of_the_machine_changes(process):
    live_worlds.step(process, 0.2)
    devices = set(os.listdir("/sys/class/net"))
    sysctl = Path("/proc/sys/net/ipv4/tcp_rmem").read_text()
    process.close()
    assert set(os.listdir("/sys/class/net")) == devices
    assert Path("/proc/sys/net/ipv4/tcp_rmem").read_text() == sysctl


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"stack": "ns3"}, "stack = 'ns3'; valid on plant 'linux': 'linux'"),
        ({"senders": ["copa"]}, r"flows\[0\]\.cc = 'copa'; valid on plant 'linux': .*cubic"),
        ({"senders": [{"name": "cubic", "beta": 0.8}]}, r"flows\[0\]\.cc = \{'beta': 0.8\}; valid on plant 'linux': 'cubic'"),
        ({"app": nb.scenarios.Video()}, r"flows\[0\]\.app = Video.*; valid on plant 'linux': Bulk"),
    ],
    ids=["stack", "control", "parameters", "video"],
)
def test_what_a_live_world_has_not_is_refused_by_name(changes, said):
    with pytest.raises(ConfigError, match=said):
        Setup(dumbbell(**changes), Agents())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"clock_offset_ms": 5}, r"flows\[0\]\.clock_offset_ms = 5"),
        ({"clock_drift_ppm": 5}, r"flows\[0\]\.clock_drift_ppm = 5"),
    ],
    ids=["offset", "drift"],
)
def test_flows_that_cannot_be_are_refused_by_name(changes, said):
    base = dumbbell()
    world = nb.scenarios.Scenario(
        links=base.links, flows=[nb.scenarios.Flow(path=(0,), return_path=(1,), **changes)], duration_s=1.0
    )
    with pytest.raises(ConfigError, match=said):
        Setup(world, Agents())


def test_only_scenarios_and_as_many_agents_as_asked_for():
    needs_live_worlds()
    env = gym.make("netbuf/CongestionWindow-v0", plant="linux", scenario=dumbbell(senders=["agent"]))
    plant = env.unwrapped.engine.plant
    with pytest.raises(ConfigError, match="0 agents of kind 'sender'; valid: 1 to 1"):
        plant.reset(0, dumbbell(), 1)
    with pytest.raises(ConfigError, match=r"is no netbuf_gym\.scenarios\.Scenario"):
        plant.reset(0, object(), 1)
    with pytest.raises(PlantFault, match="never reset"):
        plant.report(0)
    env.close()
    with pytest.raises(PlantFault, match="closed"):
        plant.reset(0, dumbbell(senders=["agent"]), 1)


def test_what_a_machine_lacks_is_said(monkeypatch):
    needs_live_worlds()
    process = Process()
    try:
        setup = Setup(dumbbell(), Agents()).message
        with pytest.raises(ConfigError, match="congestion control none: No such file"):
            process.ask({**setup, "seed": 1, "places": [], "flows": [{"route": 0, "cc": "none"}]})
        with pytest.raises(PlantFault, match="there is no world"):
            process.ask({"do": "report"})
        assert process.ask({**setup, "seed": 1, "places": []})["about"]["kernel"] == os.uname().release  # and goes on
    finally:
        process.close()


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        ({"name": "linux", "realtme": True}, "plant 'linux' has no argument 'realtme'"),
        ({"name": "linux", "realtime": "no"}, "realtime = 'no'"),
        ({"name": "linux", "proxy": "plain"}, "proxy = 'plain': no host decides here; valid: task host_buffers"),
        ({"name": "sim", "realtime": True}, "plant 'sim' has no argument 'realtime'"),
        ({"realtime": True}, "is neither a name nor a dict with a name"),
        ({}, "is neither a name nor a dict with a name"),
        ("linus", "plant = 'linus'"),
    ],
)
def test_a_plant_without_agents_is_asked_for_as_one_with_them(plant, said):
    with pytest.raises(ConfigError, match=said):
        nb.simulate(dumbbell(), plant=plant)


TIMES = ("decisions", "interval_p50_s", "interval_p99_s", "packet_lateness_p50_ms", "packet_lateness_p99_ms")


@pytest.mark.slow
@pytest.mark.parametrize(("task", "scenario"), [("congestion_window", "ppcc/4"), ("queue_threshold", "rlbm/default")])
def test_a_controller_that_is_slow_is_reported_and_warned_of(task, scenario):
    """Its interval begins when it has decided, and the report says how long those were."""
    needs_live_worlds()
    env = gym.make(
        nb.tasks.get(task).ids[0],
        scenario={"name": scenario, "duration_s": 1.5},
        plant="linux",
        interval_s=0.05,
        info="telemetry",
        disable_env_checker=True,
    )
    _, first = env.reset(seed=1)
    intervals, ended = [], False
    with pytest.warns(LateDecisionsWarning, match=r"decide every 0\.\d+ s \(median\), interval_s is 0\.05") as warned:
        while not ended:
            time.sleep(0.06)
            *_, terminated, truncated, info = env.step(env.action_space.sample())
            intervals.append(info["telemetry"]["elapsed_s"])
            ended = terminated or truncated
    env.close()
    assert len(warned) == 1
    assert first["telemetry"].keys() == info["telemetry"].keys()
    assert info["decisions"] == len(intervals)
    assert info["interval_p50_s"] == pytest.approx(np.percentile(intervals, 50), rel=1e-4) and info["interval_p50_s"] > 0.1
    assert info["interval_p99_s"] == pytest.approx(np.percentile(intervals, 99), rel=1e-4)
    lateness_ms = [info["packet_lateness_p50_ms"], info["packet_lateness_p99_ms"]]
    if task == "congestion_window":
        assert 0 < lateness_ms[0] <= lateness_ms[1]
    else:
        assert np.isnan(lateness_ms).all(), "no flow has begun"


@pytest.mark.slow
@undisturbed
def test_a_controller_that_keeps_its_times_is_not_warned_of(recwarn):
    needs_live_worlds()
    seen = []
    (world,) = rollout.draw_worlds("congestion_window", {"name": "ppcc/4", "duration_s": 2.0}, [1], plant="linux")
    for name in ("random", "cubic"):
        controller = rollout.get_controller(name, "congestion_window")
        rollout.play(controller, [world], lambda view: seen.extend(view.report()), task="congestion_window", plant="linux")
    deciding, acting = seen
    assert deciding["decisions"] == 20 and deciding["interval_p50_s"] == pytest.approx(0.1, rel=0.05)
    assert set(TIMES) <= deciding.keys() and set(TIMES[3:]) <= acting.keys() and not set(TIMES[:3]) & acting.keys()
    assert not [one for one in recwarn if one.category is LateDecisionsWarning]


def test_a_simulated_world_reports_no_lateness():
    (report,) = rollout.evaluate("random", "congestion_window", {"name": "ppcc/4", "duration_s": 1.0})
    assert not set(TIMES) & report.keys()
