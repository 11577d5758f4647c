"""Senders in integers: what they observe and decide beside the network in floating point, and their files."""

import ctypes
import re
import subprocess
import zipfile
from itertools import pairwise
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch as th

import netbuf_gym as nb
from netbuf_gym import _core, zoo
from netbuf_gym.cli.program import main
from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.scenarios import Scenario
from netbuf_gym.scenarios.compiled_agent import load_compiled_agent
from netbuf_gym.tasks.congestion_window.tracker import MSS
from netbuf_gym.zoo import compile as compiling
from netbuf_gym.zoo.agent import Agent
from netbuf_gym.zoo.integer_policy import (
    INTERVAL_FIELDS,
    ONE,
    POLICY,
    Dense,
    Network,
    Recurrent,
    count_intervals,
    extract_network,
    quantise,
)
from tests.helpers import machines

ROOT = Path(__file__).parents[2]
SENDER = "congestion_window/sender"


def random_network(inputs, actions, widths, seed=3, activation="tanh"):
    draws, sizes = np.random.default_rng(seed), [inputs, *widths, actions]
    layers = [
        Dense(draws.normal(size=(rows, columns)) / columns**0.5, draws.normal(size=rows) * 0.1, activation)
        for columns, rows in pairwise(sizes)
    ]
    return Network([*layers[:-1], Dense(layers[-1].weight, layers[-1].bias)])


def record(recipe, steps, rows=16):
    """Intervals, starts and observations of senders that act at random in paths of all families."""
    env = gym.make_vec("netbuf/CongestionWindow-v0", num_envs=rows, recipe=recipe, scenario="paths/training")
    engine = env.unwrapped.engine
    draws, starts, found = np.random.default_rng(1), np.ones(rows, bool), []
    observations, _ = env.reset(seed=1)
    for _ in range(steps):
        intervals = count_intervals(engine.plant.telemetry.reshape(rows, -1))
        intervals[starts, INTERVAL_FIELDS.index("cwnd")] = engine.tracker.cwnd[starts]
        intervals[starts, INTERVAL_FIELDS.index("mss")] = engine.tracker.last[MSS][starts]
        found.append((intervals, starts, observations.copy()))
        observations, _, terminated, truncated, _ = env.step(draws.integers(3, 10, rows))
        starts = terminated | truncated
    task, interval_s = engine.task, engine.interval_s
    env.close()
    return task, interval_s, found


def test_the_layout_is_that_of_the_core():
    assert POLICY.itemsize == _core.POLICY_BYTES


@pytest.mark.parametrize("recipe", ["default", "robust"])
def test_features_in_integers_are_those_of_the_task(recipe):
    task, interval_s, found = record(recipe, 150)
    inputs = len(task.features) * task.history
    policy = quantise(random_network(inputs, 12, [8]), task, interval_s).tobytes()
    integers = _core.IntegerPolicy(policy, len(found[0][1]))
    actions, windows = np.zeros((2, len(found[0][1])), np.int64)
    seen, worst = np.zeros((len(actions), inputs), np.int32), 0.0
    for intervals, starts, observations in found:
        integers.step(intervals, starts, actions, windows)
        integers.observe(seen)
        worst = max(worst, float(np.abs(seen / 2.0**ONE - observations).max()))
    assert worst < 5e-3


@pytest.mark.parametrize("recipe", ["default", "robust"])
def test_windows_in_integers_are_those_of_the_task(recipe):
    """Senders that do what the integers say, where queues are drained each second and windows held by heavy losses."""
    rows, own = 32, {"drain_after_s": 1, "growth_loss": 0.02}
    env = gym.make_vec("netbuf/CongestionWindow-v0", num_envs=rows, recipe=recipe, scenario="paths/training", **own)
    engine, starts, met = env.unwrapped.engine, np.ones(rows, bool), np.zeros(3, int)
    tracker, task = engine.tracker, engine.task
    first, *others = random_network(len(task.features) * task.history, 12, [64]).dense
    network = Network([Dense(40 * first.weight, first.bias, first.activation), *others])  # which takes all actions
    integers = _core.IntegerPolicy(quantise(network, task, engine.interval_s).tobytes(), rows)
    actions, windows = np.zeros((2, rows), np.int64)
    env.reset(seed=3)
    for _ in range(300):
        intervals = count_intervals(engine.plant.telemetry.reshape(rows, -1))
        intervals[starts, INTERVAL_FIELDS.index("cwnd")] = tracker.cwnd[starts]
        intervals[starts, INTERVAL_FIELDS.index("mss")] = tracker.last[MSS][starts]
        integers.step(intervals, starts, actions, windows)
        _, _, terminated, truncated, _ = env.step(actions.copy())
        decided = np.nan_to_num(engine.plant.control.reshape(rows, -1)[:, 0])
        goes_on, starts = ~(starts | terminated | truncated), terminated | truncated
        assert (np.abs(windows - decided) <= 4 + 1e-2 * decided)[goes_on].all()
        met += [(of > 0).sum() for of in (tracker.draining_s, tracker.held_s, tracker.cwnd < 2 * tracker.last[MSS])]
    env.close()
    assert (met[: 2 + (recipe == "robust")] > 50).all()


@pytest.mark.parametrize("recipe", ["default", "robust"])
def test_losses_are_heavy_where_they_are_for_the_task(recipe):
    task = gym.make("netbuf/CongestionWindow-v0", recipe=recipe).unwrapped.engine.task
    rules = task.make_tracker(1, 0.1).path_rules()
    share, sent = np.float32(rules["heavy_loss"]), np.arange(1, 10_000)
    policy = quantise(random_network(len(task.features) * task.history, 12, [8]), task, 0.1)
    for lost in (np.floor(rules["heavy_loss"] * sent).astype(int) + k for k in (0, 1)):
        heavy = (lost << ONE) > int(policy["rules"]["heavy_loss"]) * sent
        assert (heavy == (lost.astype(np.float32) > share * sent.astype(np.float32))).all()


def test_an_agent_decides_alike_in_integers():
    agent = zoo.load(SENDER)
    compiled = compiling.compile_agent(agent)
    found = compiling.compare_decisions(agent, compiled, 4000)
    assert found.states >= 4000 and found.same_actions >= 0.998 and found.same_actions_of_network >= 0.998
    assert found.same_silence >= 0.999 and found.window_error < 5e-3


def recurrent_of(module, kind):
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    return Recurrent(kind, *(getattr(module, name).detach().double().numpy() for name in names))


@pytest.mark.parametrize("kind", ["lstm", "gru", "tanh", "relu"])
def test_networks_decide_as_torch_does(kind):
    th.manual_seed(5)
    task = gym.make("netbuf/CongestionWindow-v0").unwrapped.engine.task
    rows, inputs = 32, len(task.features) * task.history
    memory = {"lstm": th.nn.LSTM, "gru": th.nn.GRU}.get(kind)
    module = memory(inputs, 33).double() if memory else None
    activation = kind if kind in ("tanh", "relu") else "tanh"
    dense = random_network(33 if module else inputs, 12, [64, 17], activation=activation).dense
    network = Network(dense, recurrent_of(module, kind) if module else None)
    integers = _core.IntegerPolicy(quantise(network, task, 0.1).tobytes(), rows)
    draws, state, actions = np.random.default_rng(2), None, np.zeros(rows, np.int64)
    alike, starts = [], np.ones(rows, bool)
    for _ in range(60):
        x = draws.uniform(-1, 1, (rows, inputs))
        integers.infer(np.round(x * 2**ONE).astype(np.int32), starts, actions)
        values, starts = x, np.zeros(rows, bool)
        if module:
            out, state = module(th.as_tensor(x)[None], state)
            values = out[0].detach().numpy()
        for layer in dense:
            values = values @ layer.weight.T + layer.bias
            values = {"tanh": np.tanh, "relu": lambda v: np.maximum(v, 0), "": lambda v: v}[layer.activation](values)
        alike.append(actions == values.argmax(axis=1))
        assert (values.max(axis=1) - values[np.arange(rows), actions]).max() < 2e-3  # where they differ, by next to nothing
    assert np.mean(alike) > 0.99


def test_a_shared_library_decides_as_the_core_to_the_bit(tmp_path):
    machines.needs_program("cc")
    library = tmp_path / "policy.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", ROOT / "cpp/policy/policy.c", "-o", library], check=True)
    shared = ctypes.CDLL(str(library))
    shared.netbuf_policy_step.restype = ctypes.c_int64
    shared.netbuf_state_bytes.restype = ctypes.c_uint64
    task, interval_s, found = record("robust", 100, rows=4)
    policy = quantise(random_network(188, 12, [64, 64]), task, interval_s).tobytes()
    integers, (actions, windows) = _core.IntegerPolicy(policy, 4), np.zeros((2, 4), np.int64)
    states = [ctypes.create_string_buffer(shared.netbuf_state_bytes()) for _ in range(4)]
    taken = set()
    for intervals, starts, _ in found:
        integers.step(intervals, starts, actions, windows)
        for row, state in enumerate(states):
            action, interval = ctypes.c_uint32(), intervals[row].ctypes.data_as(ctypes.c_void_p)
            if starts[row]:
                ctypes.memset(state, 0, len(state))
                cwnd, mss = (ctypes.c_int64(intervals[row, INTERVAL_FIELDS.index(name)]) for name in ("cwnd", "mss"))
                decided = shared.netbuf_policy_start(policy, state, cwnd, mss), 0
            else:
                window = shared.netbuf_policy_step(policy, state, interval, ctypes.byref(action))
                decided = action.value, window
            assert decided == (actions[row], windows[row])
            taken.add(decided)
    assert len(taken) > 100


def test_the_simulator_plays_what_is_compiled_nearly_as_the_agent(tmp_path):
    agent = zoo.load(SENDER)
    compiled = compiling.compile_agent(agent)
    compiling.write_compiled(compiled, tmp_path / "sender.policy")
    cc = {"name": "compiled", "agent": str(tmp_path / "sender.policy")}
    found = compiling.compare_scores(agent, compiled, worlds=1)
    assert found.worlds > 5 and abs(found.compiled - found.agent) < 0.03
    world = nb.scenarios.dumbbell(rate_mbps=20, rtt_ms=40, buffer_packets=100, senders=[cc], duration_s=10)
    again = Scenario.from_dict(world.to_dict())
    (flow,), (same,) = nb.simulate(world, seed=1).flows, nb.simulate(again, seed=1).flows
    assert 15 < flow.goodput_mbps == same.goodput_mbps < 20


def test_the_command_measures_and_writes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["compile", SENDER, "--states", "640", "--worlds", "0"]) == 0
    told = capsys.readouterr().out
    assert "lstm 108-64, dense 64-64-64-12, recipe default, every 100 ms" in told and "written to" in told
    about = load_compiled_agent("congestion_window-sender.policy").about
    assert about["agent"] == SENDER and about["decisions"]["states"] >= 640 and "scores" not in about


@pytest.mark.parametrize(
    "agent, said",
    [
        ("queue_threshold/ppo", "valid: an agent of netbuf/CongestionWindow-v0"),
        ("congestion_window/ppo_kl-ppcc", 'recipe = "ppcc"; valid for compiled agents: default, robust'),
    ],
)
def test_what_integers_do_not_have_is_refused(agent, said):
    with pytest.raises(ConfigError, match="valid") as error:
        compiling.compile_agent(Agent(agent))
    assert said in str(error.value)


@pytest.mark.parametrize(
    "widths, options, said",
    [
        ([65], {}, "a layer of 65 units; valid for compiled agents: at most 64"),
        ([8] * 4, {}, "4 layers; valid for compiled agents: at most 3"),
        ([8], {"history": 8}, "216 inputs of 27 features; valid for compiled agents: at most 192 inputs"),
        ([8], {"actions": "continuous"}, 'actions = "continuous"; valid for compiled agents: "discrete"'),
        ([8], {"clamp": "path"}, 'clamp = "path"; valid for compiled agents: "measured", "none"'),
        ([8], {"per_ack": True}, "per_ack = True; valid for compiled agents: False"),
    ],
)
def test_bounds_are_named(widths, options, said):
    task = gym.make("netbuf/CongestionWindow-v0", **options).unwrapped.engine.task
    with pytest.raises(ConfigError) as error:
        quantise(random_network(len(task.features) * task.history, 12, widths), task, 0.1)
    assert said in str(error.value)


def test_layers_that_are_not_known_are_refused():
    agent = zoo.load(SENDER)
    policy = agent.controller.model(agent.make_env().unwrapped.engine.task).policy
    policy.mlp_extractor.policy_net[1], kept = th.nn.SiLU(), policy.mlp_extractor.policy_net[1]
    with pytest.raises(ConfigError, match="layer SiLU; valid: Linear"):
        extract_network(policy)
    policy.mlp_extractor.policy_net[1] = kept


def test_files_that_are_no_policies_are_refused(tmp_path):
    file = tmp_path / "sender.policy"
    compiling.write_compiled(compiling.compile_agent(zoo.load(SENDER)), file)
    with zipfile.ZipFile(file) as packed:
        about, policy = packed.read("policy.json"), packed.read("policy.bin")
    cases = {
        "damaged": (about, policy[:-1] + b"\1"),
        "schema": (b"{}", policy),
        "longer than": (about, policy + b"\0"),
        "Expecting": (b"{", policy),
    }
    for said, (one, other) in cases.items():
        with zipfile.ZipFile(file, "w") as packed:
            packed.writestr("policy.json", one)
            packed.writestr("policy.bin", other)
        with pytest.raises(ScenarioError, match=f"(?s){said}.*valid: "):
            load_compiled_agent(file)
    with pytest.raises(ScenarioError, match="there is no such file"):
        nb.scenarios.dumbbell(senders=[{"name": "compiled", "agent": str(tmp_path / "none.policy")}])
    with pytest.raises(ScenarioError, match=re.escape('valid: {"name": "compiled", "agent": FILE}')):
        nb.scenarios.dumbbell(senders=[{"name": "compiled"}])
