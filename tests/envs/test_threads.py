"""Several threads and one environment: whoever comes second is told so, nothing is mixed, and memory stays whole."""

import subprocess
import sys
import threading
import time

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import _core
from netbuf_gym.errors import BusyError
from netbuf_gym.plants.simulator import Simulator
from netbuf_gym.scenarios.native import build_world_config

ID = "netbuf/CongestionWindow-v0"
SLOW = {"name": "dumbbell", "rate_mbps": 1000.0, "rtt_ms": 10, "senders": ["agent"], "duration_s": 1000.0}


def together(*calls):
    """Runs them in threads, and gives what each raised."""
    raised = [None] * len(calls)

    def run(index, call):
        try:
            call()
        except BaseException as error:
            raised[index] = error

    threads = [threading.Thread(target=run, args=(i, call)) for i, call in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return raised


def in_child(code, *arguments, timeout=300):
    """A Python process; its status and what it said."""
    found = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=timeout)
    return found.returncode, found.stdout, found.stderr


STEP_IN_FOUR_THREADS = f"""
import threading, sys, faulthandler
import gymnasium as gym, netbuf_gym
env = gym.make_vec({ID!r}, num_envs=256, scenario={{"name": "ppcc/random", "duration_s": 1.0}}, threads=int(sys.argv[1]))
env.reset(seed=1)
done, busy = [], []
def work():
    for _ in range(100):
        try:
            env.step(env.action_space.sample())
            done.append(1)
        except netbuf_gym.errors.BusyError as error:
            assert "another thread" in str(error)
            busy.append(1)
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(done) + len(busy) == 400 and busy and done
assert env.unwrapped.engine.steps.max() <= len(done)
"""


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "2"])
def test_four_threads_in_one_vector_environment(threads):
    status, _, said = in_child(STEP_IN_FOUR_THREADS, threads)
    assert status == 0, said


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: gym.make(ID, scenario=SLOW, interval_s=5.0), "vector", "parallel"])
def test_a_second_thread_is_refused_by_name(make):
    if make == "vector":
        env = gym.make_vec(ID, num_envs=2, scenario=SLOW, interval_s=5.0)
        action = np.full(2, 8)
    elif make == "parallel":
        from netbuf_gym.envs.parallel_env import ParallelEnv

        env, action = ParallelEnv(agents=1, scenario=SLOW, interval_s=5.0), {"sender_0": 8}
    else:
        env, action = make(), 8
    env.reset(seed=1)
    started = threading.Event()

    def step():
        started.set()
        for _ in range(20):
            env.step(action)

    def intrude():
        started.wait()
        for _ in range(2000):
            env.step(action)

    raised = together(step, intrude)
    assert any(raised) and all(error is None or isinstance(error, BusyError) for error in raised)
    assert any("one thread at a time" in str(error) for error in raised)
    env.step(action)  # and afterwards it goes on
    env.reset(seed=2)
    env.close()


def test_a_thread_that_is_refused_changes_nothing():
    """The transitions of the one thread are those of an undisturbed run."""
    alone, beside = [], []
    for seen, disturb in ((alone, False), (beside, True)):
        env = gym.make_vec(ID, num_envs=32, scenario="ppcc/4", threads=2)
        seen.append(env.reset(seed=3)[0])
        over = threading.Event()

        def intrude(env=env, over=over):
            while not over.is_set():
                try:
                    with env.unwrapped.engine.turn:
                        pass  # in between is nobody's step
                    time.sleep(0.0005)
                except BusyError:
                    pass

        intruder = threading.Thread(target=intrude)
        if disturb:
            intruder.start()
        made = 0
        while made < 50:
            try:
                seen.append(env.step(np.full(32, made % 10))[0])
                made += 1
            except BusyError:
                pass
        over.set()
        if disturb:
            intruder.join()
        env.close()
    assert all(np.array_equal(a, b) for a, b in zip(alone, beside, strict=True))


def test_environments_of_several_threads_run_beside_each_other():
    def play(found):
        env = gym.make_vec(ID, num_envs=8, scenario="ppcc/2")
        found.append(env.reset(seed=5)[0])
        for step in range(40):
            found.append(env.step(np.full(8, step % 10))[0])
        env.close()

    runs = [[] for _ in range(4)]
    assert together(*[lambda run=run: play(run) for run in runs]) == [None] * 4
    for run in runs[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(runs[0], run, strict=True))


def test_close_waits_for_the_step_of_another_thread():
    env = gym.make(ID, scenario=SLOW, interval_s=50.0)
    env.reset(seed=1)
    inside = threading.Event()

    def step():
        inside.set()
        env.step(8)

    def close():
        inside.wait()
        time.sleep(0.005)
        env.close()

    raised = together(step, close)
    assert raised[1] is None
    assert raised[0] is None or isinstance(raised[0], (gym.error.ClosedEnvironmentError, nb.errors.PlantFault))
    with pytest.raises(gym.error.ClosedEnvironmentError):
        env.step(8)
    env.reset(seed=1)
    env.step(8)


def test_a_step_inside_a_step_is_refused():
    env = gym.make(ID).unwrapped
    env.reset(seed=1)
    check = env.engine.task.check_actions
    env.engine.task.check_actions = lambda *given: env.step(3) and check(*given)
    with pytest.raises(BusyError, match="called from within"):
        env.step(3)
    env.engine.task.check_actions = check
    env.step(3)


def test_readers_beside_a_world_that_runs():
    world = Simulator(nb.scenarios.dumbbell(rate_mbps=500, senders=["cubic", "bbr"], duration_s=20), 1)
    over = threading.Event()

    def run():
        try:
            for second in range(1, 21):
                world.run(second * 10**9)
        finally:
            over.set()

    def read():
        last = 0
        while not over.is_set():
            assert world.now_ns >= last
            last = world.now_ns
            assert len(world.flow_stats()) == 2 and world.link_sample().shape[0] == 2

    assert together(run, read, read) == [None] * 3
    again = Simulator(world.scenario, 1)
    again.run(20 * 10**9)
    assert again.flow_stats()[0]["packets_sent"] == world.flow_stats()[0]["packets_sent"]


def test_the_core_takes_turns():
    scenario = nb.scenarios.dumbbell(rate_mbps=100, senders=["agent"], duration_s=100)
    batch = _core.Batch(4, 1, 2)
    for world in range(4):
        batch.reset(world, build_world_config(scenario), world)

    def advance():
        for _ in range(30):
            batch.advance(10**8)

    def reset():
        for seed in range(200):
            batch.reset(seed % 4, build_world_config(scenario), seed)

    def read():
        for turn in range(200):
            batch.flow_stats(turn % 4)
            batch.completions(turn % 4)

    assert together(advance, advance, reset, read) == [None] * 4


AT_EXIT = f"""
import threading, time, sys
import gymnasium as gym, numpy as np, netbuf_gym as nb
kind, threads = sys.argv[1], int(sys.argv[2])
env = gym.make_vec({ID!r}, num_envs=64, threads=threads, scenario={SLOW!r}, interval_s=0.5)
env.reset(seed=1)
env.step(env.action_space.sample())
def work():
    if kind == "step":
        while True:
            env.step(np.full(64, 8))
    if kind == "own":
        while True:
            nb.simulate(nb.scenarios.dumbbell(rate_mbps=100, senders=[lambda ack: 50 * ack.mss_bytes], duration_s=5))
    while True:
        nb.simulate(nb.scenarios.dumbbell(rate_mbps=1000, duration_s=50))
if kind != "idle":
    threading.Thread(target=work, daemon=True).start()
    time.sleep(float(sys.argv[3]))
print("over", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["idle", "step", "simulate", "own"])
@pytest.mark.parametrize(("threads", "wait"), [("1", "0.05"), ("2", "0.1"), ("2", "0.113")])
def test_the_interpreter_ends_while_threads_are_at_work(kind, threads, wait):
    status, out, said = in_child(AT_EXIT, kind, threads, wait)
    assert (status, out, said) == (0, "over\n", "")


STEP_AFTER_THE_END = f"""
import atexit, threading, time
atexit.register(time.sleep, 0.5)  # the first to be registered is the last to be called: the thread has time for steps
import gymnasium as gym, netbuf_gym as nb
env = gym.make_vec({ID!r}, num_envs=4, scenario={SLOW!r}, interval_s=0.01)
env.reset(seed=1)
begun = threading.Event()
def work():
    while True:
        env.step(env.action_space.sample())
        begun.set()
        time.sleep(0.1)
threading.Thread(target=work, daemon=True).start()
begun.wait()
print("over", flush=True)
"""

DECIDE_AT_THE_END = """
import threading, time, netbuf_gym as nb
begun = threading.Event()
def slow(ack):
    begun.set()
    time.sleep(0.05)  # the interpreter ends meanwhile
scenario = nb.scenarios.dumbbell(rate_mbps=100, senders=[slow], duration_s=50)
threading.Thread(target=lambda: nb.simulate(scenario), daemon=True).start()
begun.wait()
print("over", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("code", [STEP_AFTER_THE_END, DECIDE_AT_THE_END])
def test_threads_do_not_learn_that_the_interpreter_ends(code):
    assert in_child(code) == (0, "over\n", "")


CLOSED_AT_THE_END = """
import atexit, sys
atexit.register(print, "end")  # the last to be called
import gymnasium as gym, netbuf_gym as nb
from netbuf_gym.plants.simulated import SimPlant
class Told(SimPlant):
    outlives_program = sys.argv[1] == "True"
    def close(self):
        if self._batch is not None:
            print("closed")
        super().close()
class Derived(Told):
    pass
nb.plants.register("told", Derived if sys.argv[1] == "derived" else Told)
env = gym.make("netbuf/CongestionWindow-v0", plant="told")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("outlives", "said"), [("True", "closed\nend\n"), ("derived", "closed\nend\n"), ("False", "end\n")])
def test_what_outlives_the_program_is_closed_at_its_end(outlives, said):
    status, out, error = in_child(CLOSED_AT_THE_END, outlives)
    assert (status, error) == (0, "") and out.startswith(said)
