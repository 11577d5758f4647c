"""What a program sees of the package's types: `mypy --strict` takes one that uses it, and refuses one that misuses it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import netbuf_gym

HERE = Path(netbuf_gym.__file__).parent
PROGRAM = '''
"""A reward of one's own, a scenario with two bottlenecks, many worlds."""

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

import netbuf_gym as nb
from netbuf_gym import contenders, rollout, scenarios, stats, tasks, traces, wrappers
from netbuf_gym.env import Env
from netbuf_gym.rewards import AlphaFair, Telemetry
from netbuf_gym.scenarios import Bulk, Flow, Link, Scenario, SizeDistribution, Switch
from netbuf_gym.vector import VectorEnv


def thrifty(telemetry: Telemetry, price: float = 0.1) -> dict[str, npt.NDArray[Any]]:
    mbit = telemetry["throughput_bps"] * telemetry["elapsed_s"] * 1e-6
    return {"delivered": mbit, "lost": -price * telemetry.packets_lost}


class Bolder:
    """A reward that remembers."""

    def __init__(self) -> None:
        self.best = 0.0

    def __call__(self, telemetry: Telemetry) -> npt.NDArray[Any]:
        self.best = max(self.best, float(telemetry["throughput_bps"].max()))
        return telemetry["throughput_bps"] / max(self.best, 1.0)


def two_bottlenecks(rate_mbps: float = 10.0) -> Scenario:
    links = [
        Link(name="bottleneck", rate_mbps=rate_mbps, delay_ms=10, queue_packets=100),
        Link(name="second", rate_mbps=0.8 * rate_mbps, delay_ms=10, queue_packets=50),
        Link(name="back", delay_ms=20),
    ]
    flows = [
        Flow(cc="cubic", path=["bottleneck", "second"], return_path=["back"]),
        Flow(cc={"name": "cubic", "beta": 0.8}, path=("bottleneck",), return_path=("back",), start_s=1, app=Bulk()),
        Flow(cc="bbr", path=[1], return_path=[2], name="cross"),
    ]
    return Scenario(links=links, flows=flows, duration_s=2)


scenarios.register("mine/two", two_bottlenecks)
result = nb.simulate(two_bottlenecks(20), seed=3)
goodput: float = result.flows[0].goodput_mbps
delay: float = result.links["second"].queue_delay_mean_ms
samples = len(result.series["time_s"])
world: Scenario = scenarios.dumbbell(senders=["cubic", {"name": "cubic", "beta": 0.8}], rtt_ms=20, duration_s=2)
trace = traces.RateTrace([0.0, 1.0], [5, 10], period_s=2)
last = scenarios.last_hop(trace=trace, senders="cubic", duration_s=2)
flow_list = scenarios.FlowList(start_s=[0.0], sender=[0], size_bytes=[1000], priority=[0])
sizes = SizeDistribution(name="mine", size_bytes=[100, 1000], cumulative=[0.5, 1])
switch = Switch(ports=["bottleneck"], queues=2, buffer_packets=100)
interval = stats.mean_interval(np.array([goodput, delay, 1.0]))
envs = gym.make_vec("netbuf/CongestionWindow-v0", num_envs=4, scenario="mine/two", reward=thrifty)
observations, _ = envs.reset(seed=1)
for _step in range(3):
    observations, rewards, terminated, truncated, info = envs.step(envs.action_space.sample())
native, scalar = VectorEnv(2, scenario=two_bottlenecks(), reward=Bolder()), Env(scenario="ppcc/2", reward="power")
wrappers.exchange_reward(envs, AlphaFair(alpha=2.0))
record = tasks.get("congestion_window")
print(interval.low, trace.mean_mbps(), last.capacity_mbps, len(flow_list), sizes.mean_bytes, switch.capacity, samples)
print(scalar.telemetry["elapsed_s"], native.num_envs, record.name, contenders.__name__, rollout.__name__, world.name)
'''
MISUSES = '''
import netbuf_gym as nb

nb.simulate(nb.scenarios.dumbbell(), sede="x")
nb.simulate(nb.scenarios.dumbbell()).goodput
'''


def test_a_program_passes_mypy_strict_and_runs(tmp_path):
    site = tmp_path / "site"
    code = shutil.ignore_patterns("*.so", "__pycache__", "*.csv", "*.json")
    shutil.copytree(HERE, site / "netbuf_gym", ignore=code)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "misuses.py").write_text(MISUSES)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file=", "program.py", "misuses.py"]
    environment = {**os.environ, "PYTHONPATH": str(site)}  # so that it is found as installed packages are
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    said = [line for line in done.stdout.splitlines() if ": note: " not in line]
    assert len(said) == 2 and done.stderr == "", done.stdout + done.stderr
    assert said[0].startswith("misuses.py:4: error: ") and said[1].startswith("misuses.py:5: error: "), said
    ran = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_the_package_says_that_it_is_typed():
    assert (HERE / "py.typed").is_file()
