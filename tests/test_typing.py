"""What a program sees of the package's types: `mypy --strict` takes one that uses it, and refuses one that misuses it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import netbuf_gym

HERE = Path(netbuf_gym.__file__).parent
PROGRAM = '''
"""A reward of one's own, a scenario with two bottlenecks, many worlds."""

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

import netbuf_gym as nb
from netbuf_gym import controllers, rollout, scenarios, stats, tasks, traces, wrappers
from netbuf_gym.envs.env import Env
from netbuf_gym.rewards import AlphaFair, Telemetry
from netbuf_gym.scenarios import Bulk, Flow, Link, Scenario, SizeDistribution, Switch
from netbuf_gym.envs.vector_env import VectorEnv


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
print(scalar.telemetry["elapsed_s"], native.num_envs, record.name, controllers.__name__, rollout.__name__, world.name)
'''
EVERYTHING = '''
"""What else a program takes from the package: agents by name, results as tables, controls and worlds of one's own."""

import random
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

import netbuf_gym as nb
from netbuf_gym import baselines, scenarios, wrappers, zoo
from netbuf_gym.rewards import Telemetry
from netbuf_gym.scenarios import AckEvent, Bulk, Flow, Link, Scenario, Sender
from netbuf_gym.zoo.agent import Agent


class Gentle:
    """A congestion control of one's own."""

    def __init__(self, share: float = 0.875) -> None:
        self.share = share

    def __call__(self, ack: AckEvent) -> float:
        return ack.cwnd_bytes + ack.mss_bytes * ack.acked_bytes / ack.cwnd_bytes

    def on_loss(self, ack: AckEvent) -> float:
        return self.share * ack.in_flight_bytes


def steady(ack: AckEvent) -> float | None:
    return 20.0 * ack.mss_bytes


def drawn(rng: np.random.Generator) -> Scenario:
    return scenarios.dumbbell(rate_mbps=float(rng.uniform(5, 20)), senders=["agent", "cubic"], duration_s=1)


def delivered(telemetry: Telemetry) -> npt.NDArray[Any]:
    return telemetry["throughput_bps"] * 1e-6


class Priced:
    """A reward of terms."""

    def __init__(self, price: float) -> None:
        self.price = price

    def __call__(self, telemetry: Telemetry) -> dict[str, npt.NDArray[Any]]:
        return {"delivered": delivered(telemetry), "lost": -self.price * telemetry.packets_lost}


links = [Link(name="out", rate_mbps=10, delay_ms=10, queue_packets=50), Link(name="back", delay_ms=10)]
flows = [
    Flow(cc=Gentle, path=["out"], return_path=["back"], app=Bulk()),
    Flow(cc=Gentle(0.5), path=["out"], return_path=["back"]),
    Flow(cc=steady, path=["out"], return_path=["back"]),
]
result = nb.simulate(Scenario(links=links, flows=flows, duration_s=1), seed=1, sample_interval_s=0.1)
nb.simulate(scenarios.dumbbell(senders=["cubic", Gentle, steady, {"name": "cubic", "beta": 0.8}], duration_s=1), progress=False)
Sender(path=[0], return_path=[1], cc=Gentle)
frame = result.to_dataframe("links")
figure = result.plot()
by_flow: dict[str, npt.NDArray[Any]] = result.flows[0].series
fair: float = result.fairness

named: list[str] = zoo.names()
agent = zoo.load("congestion_window/ppo")
world = agent.make_env(scenario="ppcc/4", render_mode="ansi")
observation, _ = world.reset(seed=1)
action, state = agent.predict(observation)
world.step(action)
many = agent.make_vec(3)
observations, _ = many.reset(seed=1)
actions, state = agent.predict(observations, state, np.ones(3, bool), deterministic=False)
loaded: Agent = nb.zoo.load("congestion_window/ppo")

env = gym.make("netbuf/CongestionWindow-v0", scenario=drawn, reward=delivered)
wrappers.exchange_reward(env, Priced(0.1))
wrapped = wrappers.NormalizeObservation(wrappers.AlphaFairReward(env, alpha=0.5))
wrapped.reset(seed=1)
envs = gym.make_vec("netbuf/CongestionWindow-v0", num_envs=2, scenario=drawn, reward=Priced(0.2), threads=1)
normal = wrappers.VectorNormalizeObservation(wrappers.VectorExchangeReward(envs, "power"))
normal.reset(seed=1)
rules = baselines.list_defaults()
reports = baselines.evaluate(["cubic", baselines.make("newreno")], scenario=drawn, seeds=range(2))
utility: float = reports["cubic"][0]["utility"]
beside = baselines.evaluate([agent.controller], task="congestion_window", scenario="ppcc/4", seeds=[random.randrange(9)])
print(frame.shape, figure, by_flow.keys(), fair, named, state, actions.shape, rules, utility, list(beside), loaded.card[:9])
'''
MISUSES = """
import netbuf_gym as nb

nb.simulate(nb.scenarios.dumbbell(), sede="x")
nb.simulate(nb.scenarios.dumbbell()).goodput
nb.zoo.load(7)
nb.zoo.load("congestion_window/ppo").predikt
nb.scenarios.dumbbell(senders=["cubic", 8])
"""
PROGRAMS = {"program.py": PROGRAM, "everything.py": EVERYTHING, "misuses.py": MISUSES}


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """A folder of programs beside the package as it is installed; and what `mypy --strict` says of each of them."""
    folder = tmp_path_factory.mktemp("typing")
    code = shutil.ignore_patterns("*.so", "__pycache__", "*.csv", "*.json", "*.zip")
    shutil.copytree(HERE, folder / "site" / "netbuf_gym", ignore=code)
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file=", *PROGRAMS]
    environment = {**os.environ, "PYTHONPATH": str(folder / "site")}  # so that it is found as installed packages are
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.stderr == ""
    said = [line for line in done.stdout.splitlines() if ": note: " not in line]
    return folder, {name: [line for line in said if line.startswith(f"{name}:")] for name in PROGRAMS} | {"all": said}


@pytest.mark.release
@pytest.mark.parametrize("name", ["program.py", "everything.py"])
def test_a_program_passes_mypy_strict_and_runs(checked, name):
    folder, said = checked
    assert not said[name]
    ran = subprocess.run([sys.executable, name], cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.release
def test_misuses_are_told(checked):
    _, said = checked
    lines = MISUSES.splitlines()
    wrong = [number for number, line in enumerate(lines, 1) if line.startswith("nb.")]
    assert [int(line.split(":")[1]) for line in said["misuses.py"]] == wrong, said
    assert said["all"] == said["misuses.py"]


def test_the_package_says_that_it_is_typed():
    assert (HERE / "py.typed").is_file()
