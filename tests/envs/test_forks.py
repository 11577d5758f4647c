"""After a fork: a child steps what it inherited, or is told why not; it never waits for threads that it has not."""

import multiprocessing
import os
import subprocess
import sys
import traceback

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym as nb  # noqa: F401
from tests.helpers.release_cases import for_release

ID = "netbuf/CongestionWindow-v0"
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),
]


def forked(work, timeout_s=20):
    """Runs `work` in a forked child; its status."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            import signal

            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(timeout_s)  # a child that hangs is killed, and its status says so
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1]


def steps(env, n=20):
    return [env.step(np.full(env.num_envs, i % 10))[0] for i in range(n)]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_child_steps_what_it_inherited(threads):
    env = gym.make_vec(ID, num_envs=16, scenario="ppcc/4", threads=threads)
    env.reset(seed=1)
    steps(env)
    expected = gym.make_vec(ID, num_envs=16, scenario="ppcc/4")
    expected.reset(seed=1)
    steps(expected)
    wanted = steps(expected)

    def child():
        assert all(np.array_equal(a, b) for a, b in zip(steps(env), wanted, strict=True))
        env.reset(seed=2)
        steps(env)
        env.close()
        env.reset(seed=3)
        steps(env, 2)

    assert forked(child) == 0
    assert forked(lambda: forked(child) and sys.exit(1)) == 0  # and so do grandchildren
    assert all(np.array_equal(a, b) for a, b in zip(steps(env), wanted, strict=True))  # the parent has lost nothing


def test_a_child_drops_and_closes_what_it_inherited():
    made = [gym.make_vec(ID, num_envs=4, threads=4), gym.make_vec(ID, num_envs=4, threads=2)]
    for env in made:
        env.reset(seed=1)
        env.step(np.full(4, 3))

    def child():
        made.pop().close()
        made.clear()

    assert forked(child) == 0
    steps(made[0], 2)


def _in_process(env, queue):
    env.step(np.full(env.num_envs, 3))
    env.close()
    queue.put("done")


def test_multiprocessing_by_fork():
    context = multiprocessing.get_context("fork")
    env = gym.make_vec(ID, num_envs=8, threads=2)
    env.reset(seed=1)
    env.step(np.full(8, 3))
    queue = context.Queue()
    child = context.Process(target=_in_process, args=(env, queue))
    child.start()
    assert queue.get(timeout=120) == "done"
    child.join(20)
    assert child.exitcode == 0  # which it reaches through the end of its interpreter
    steps(env, 2)


@pytest.mark.slow
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_gymnasiums_asynchronous_environments(context):
    held = gym.make_vec(ID, num_envs=8, threads=2)
    held.reset(seed=1)
    held.step(np.full(8, 3))
    env = gym.vector.AsyncVectorEnv([lambda: gym.make(f"netbuf_gym:{ID}", scenario="ppcc/2")] * 2, context=context)
    observations, _ = env.reset(seed=1)
    alone = gym.make(ID, scenario="ppcc/2")
    assert np.array_equal(observations[0], alone.reset(seed=1)[0])
    for _ in range(3):
        assert np.array_equal(env.step(np.array([3, 3]))[0][0], alone.step(3)[0])
    env.close()


AMID_A_STEP = f"""
import os, signal, sys, threading, time
import gymnasium as gym, numpy as np, netbuf_gym as nb
threads = int(sys.argv[1])
scenario = {{"name": "dumbbell", "rate_mbps": 1000.0, "senders": ["agent"], "duration_s": 1e5, "buffer_packets": 100}}
env = gym.make_vec({ID!r}, num_envs=4, threads=threads, scenario=scenario, interval_s=2.0)
env.reset(seed=1)
world = nb.plants.simulator.Simulator(nb.scenarios.dumbbell(rate_mbps=1000, duration_s=1e5), 1)
stop = threading.Event()
def step():
    while not stop.is_set():
        env.step(np.full(4, 8))
def run():
    while not stop.is_set():
        world.run(world.now_ns + 10**9)
for work in (step, run):
    threading.Thread(target=work).start()
refused = 0
for _ in range(10):
    time.sleep(0.011)
    pid = os.fork()
    if pid == 0:
        signal.alarm(10)
        try:
            env.step(np.full(4, 8))
            code = 0
        except nb.errors.BusyError as error:
            assert "forked" in str(error)
            code = 7
        env.close()
        env.reset(seed=1)
        env.step(np.full(4, 8))
        try:
            world.run(world.now_ns + 10**6)
        except nb.errors.BusyError as error:
            assert "forked" in str(error)
        world = None
        del env
        os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert status in (0, 7 << 8), status
    refused += status != 0
stop.set()
assert refused
"""


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["2", *for_release("1")])
def test_forks_amid_the_steps_of_another_thread(threads):
    found = subprocess.run([sys.executable, "-c", AMID_A_STEP, threads], capture_output=True, text=True, timeout=100)
    assert found.returncode == 0, found.stderr
