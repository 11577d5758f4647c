"""Ctrl-C ends whatever runs within a fraction of a second, and never changes what a run gives that is not interrupted."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import _core
from netbuf_gym.plants.simulator import Simulator
from netbuf_gym.scenarios.native import build_world_config
from tests.helpers.release_cases import for_release

ID = "netbuf/CongestionWindow-v0"
SOON_S = 3.0  # of the processor, whatever else the machine does; the end of the interpreter included
LONG = 'nb.scenarios.dumbbell(rate_mbps=1000, buffer_packets=500, senders=["cubic", "bbr"], duration_s=1e5)'
PRELUDE = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the shell that started the tests ignores
import gymnasium as gym, numpy as np, netbuf_gym as nb
from netbuf_gym.cli.program import main
import netbuf_gym.errors
print("ready", flush=True)
"""
ALL_OF_A_DECADE = {
    "name": "dumbbell",
    "rate_mbps": 1000.0,
    "senders": ["agent", "cubic", "bbr"],
    "duration_s": 1e5,
    "buffer_packets": 500,
}
STEPS = f"env = gym.make_vec({ID!r}, num_envs=4, threads=%d, interval_s=100.0, scenario={ALL_OF_A_DECADE!r}); env.reset(seed=1)"


def spent(pid):
    """Seconds of the processor that a process has had, threads and all."""
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def interrupted(code, after_s=0.4):
    """Runs the code in a child, sends SIGINT when it has run a while; its status, what it said, and what it took to end.

    Both times are of the processor: a busy machine changes neither.
    """
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    child = subprocess.Popen([sys.executable, "-c", PRELUDE + code], **pipes, start_new_session=True)
    try:
        assert child.stdout.readline() == "ready\n", child.stderr.read()
        begun = spent(child.pid)
        while (sent := spent(child.pid)) < begun + after_s:
            assert child.poll() is None, child.communicate()
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        out, said = child.communicate(timeout=300)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return child.returncode, out, said, whole - sent
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize(
    "work",
    [
        f"nb.simulate({LONG}, sample_interval_s=None)",
        STEPS % 2 + "; env.step(np.full(4, 8)); env.step(np.full(4, 8))",
        f"nb.rollout.evaluate('cubic', task='congestion_window', scenario={ALL_OF_A_DECADE!r}, seeds=range(6), threads=2)",
        *for_release(
            f"nb.simulate({LONG}, sample_interval_s=1000.0)",
            f"nb.plants.simulator.Simulator({LONG}, 1)._source.run(10**14)",
            STEPS % 1 + "; env.step(np.full(4, 8)); env.step(np.full(4, 8))",
            f"nb.rollout.evaluate('cubic', task='congestion_window', scenario={ALL_OF_A_DECADE!r}, seeds=range(3), threads=1)",
        ),
    ],
)
def test_python(work):
    status, _, said, took_s = interrupted(work)
    assert status in (130, -signal.SIGINT) and "KeyboardInterrupt" in said and took_s < SOON_S


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", "--scenario", "dumbbell", "--set", "rate_mbps=1000", "--duration", "1e5"],
        *for_release(["simulate", "--scenario", "rlbm/cubic-500-0.6", "--duration", "1e4"]),
    ],
    ids=lambda arguments: arguments[2],
)
def test_command_line(arguments):
    status, out, said, took_s = interrupted(f"sys.exit(main({arguments!r}))")
    assert (status, out) == (130, "") and said.splitlines()[-1] == "netbuf-gym: error: interrupted" and took_s < SOON_S


@pytest.mark.slow
def test_validate(tmp_path):
    (tmp_path / "rows.csv").write_text(
        "kernel,cc,N,B_mbps,rtt_prop_ms,buffer_pkts,loss,T_s,warm_s,seed,"
        "goodput_w_mbps,qdelay_mean_w_ms,srtt_mean_w_ms,loss_rate_w,queue_drops_w\n"
        "6.18,cubic,1,1000,20,100,0.0001,30000,1,1,95,1,21,0.001,100\n"
    )
    status, _, said, took_s = interrupted(f"sys.exit(main(['validate', {str(tmp_path)!r}, '--jobs', '2']))")
    assert status == 130 and said.splitlines()[-1] == "netbuf-gym: error: interrupted" and took_s < SOON_S


@pytest.mark.slow
def test_reproduce(tmp_path):
    campaign = ["schemes=[dt,pie]", "duration_s=3600", "loads=[0.9]"]
    arguments = ["reproduce", "rlbm", *campaign, f"output={tmp_path / 'campaign'}", "jobs=2"]
    status, _, said, took_s = interrupted(f"sys.exit(main({arguments!r}))", after_s=1.0)
    assert status == 130 and "interrupted" in said and took_s < SOON_S


@pytest.fixture
def interrupt_soon():
    """Sends SIGINT to this process, which raises KeyboardInterrupt whatever the shell that started the tests ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timers = []

    def soon(delay_s=0.05):
        timers.append(threading.Timer(delay_s, os.kill, (os.getpid(), signal.SIGINT)))
        timers[-1].start()

    yield soon
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for timer in timers:
        timer.cancel()
        timer.join()
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupted_step_closes_the_environment(interrupt_soon, threads):
    env = gym.make_vec(ID, num_envs=4, threads=threads, interval_s=100.0, scenario=ALL_OF_A_DECADE)
    env.reset(seed=1)
    interrupt_soon()
    started = time.process_time()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(100):
            env.step(np.full(4, 8))
    assert time.process_time() - started < 1.0 * threads
    with pytest.raises(gym.error.ClosedEnvironmentError):
        env.step(np.full(4, 8))
    env.reset(seed=1)


@pytest.mark.slow
def test_an_interrupted_world_runs_on_as_if_nothing_had_been(interrupt_soon):
    scenario = nb.scenarios.dumbbell(rate_mbps=1000, buffer_packets=500, senders=["cubic", "bbr"], loss=1e-5, duration_s=60)
    world, whole = Simulator(scenario, 3), Simulator(scenario, 3)
    interruptions = 0
    interrupt_soon()
    while world.now_ns < 60 * 10**9:
        try:
            world.run(60 * 10**9)
        except KeyboardInterrupt:
            interruptions += 1
            interrupt_soon()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    whole.run(60 * 10**9)
    assert interruptions
    assert repr(world.flow_stats()) == repr(whole.flow_stats()) and repr(world.link_stats()) == repr(whole.link_stats())


@pytest.mark.parametrize("events", [1, 7, 1000])
@pytest.mark.parametrize("stack", ["linux", "ns3"])
def test_slices_change_nothing(events, stack):
    scenario = nb.scenarios.dumbbell(rate_mbps=5, senders=["cubic", "newreno"], loss=1e-3, duration_s=5, stack=stack)
    sliced, whole = (_core.World(build_world_config(scenario), 9) for _ in range(2))
    slices = 1
    while not sliced.run(5 * 10**9, events):
        assert sliced.now_ns < 5 * 10**9
        slices += 1
    whole.run(5 * 10**9)
    assert slices > 1000 / events and sliced.now_ns == whole.now_ns == 5 * 10**9
    assert repr(sliced.flow_stats()) == repr(whole.flow_stats()) and repr(sliced.link_stats()) == repr(whole.link_stats())


def test_a_world_in_which_time_hardly_goes_on(interrupt_soon):
    """A flow without bounds over links that take next to no time: warned of, and interrupted, not waited for."""
    flow = nb.scenarios.Flow(path=(0,), return_path=(1,), send_buffer_bytes=2**30)
    links = [nb.scenarios.Link(name=name, delay_ms=0.01) for name in ("there", "back")]
    world = nb.scenarios.Scenario(links=links, flows=[flow], duration_s=100.0)
    interrupt_soon(0.3)
    with pytest.warns(nb.errors.SlowWorldWarning, match="flow 0"), pytest.raises(KeyboardInterrupt):
        nb.simulate(world)
