"""Compiled senders in the kernel: the BPF program decides what the core decides, to the bit."""

import hashlib
import json
from importlib import resources
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym import _core
from netbuf_gym.plants.linux.bpf import objects
from netbuf_gym.plants.linux.bpf.policy import KernelPolicy
from netbuf_gym.zoo.integer_policy import INTERVAL_FIELDS, POLICY, Dense, Network, Recurrent, quantise
from tests.helpers import machines

SOURCES = Path(__file__).resolve().parents[3] / "cpp" / "bpf"


def random_policy(kind, recipe, seed=4):
    draws = np.random.default_rng(seed)
    task = gym.make("netbuf/CongestionWindow-v0", recipe=recipe).unwrapped.engine.task
    inputs, units = len(task.features) * task.history, 40

    def draw(rows, columns):
        return draws.normal(size=(rows, columns)) / columns**0.5

    recurrent = None
    if kind in ("lstm", "gru"):
        gates = {"lstm": 4, "gru": 3}[kind] * units
        recurrent = Recurrent(kind, draw(gates, inputs), draw(gates, units), *draws.normal(size=(2, gates)) * 0.1)
    first, activation = (units, "tanh") if recurrent else (inputs, kind)
    layers = [Dense(draw(64, first), draws.normal(size=64), activation), Dense(draw(12, 64), draws.normal(size=12))]
    return quantise(Network(layers, recurrent), task, 0.1).tobytes()


def random_intervals(count, seed=6):
    """Intervals of a sender whose path changes now and then, among them some without ACKs and some with many losses."""
    draws, cwnd, out = np.random.default_rng(seed), 10.0, []
    for k in range(count):
        if k % 50 == 0:
            rtt, rate = draws.uniform(1e6, 4e8), 10 ** draws.uniform(1, 5)  # ns, segments a second
        cwnd = float(np.clip(cwnd * draws.choice([0.5, 0.9, 1.1, 2.0]), 2, 1e5))
        segments = int(draws.poisson(rate / 10)) if draws.random() > 0.1 else 0
        acks = (segments + 1) // 2
        delay = int(rtt * (1 + draws.exponential(0.3)))
        lost = int(draws.poisson(segments * 0.2)) if draws.random() < 0.2 else 0
        values = {
            "elapsed": 100_000_000,
            "acks": acks,
            "segments": segments,
            "acked_bytes": segments * 1448,
            "span": int(draws.uniform(5e7, 1.5e8)) if acks else 0,
            "rtt_sum": acks * delay,
            "rtt_count": acks,
            "rtt_min": int(delay * 0.9) if acks else 0,
            "lost": lost,
            "timeouts": int(draws.random() < 0.02),
            "in_flight": int(cwnd * 1448 * draws.uniform(0, 1.2)),
            "in_flight_sum": int(acks * cwnd * 1448 * draws.uniform(0.5, 1)),
            "cwnd": int(cwnd * 1448),
            "mss": 1448,
            "threshold": int(k > 3),
        }
        out.append([values[name] for name in INTERVAL_FIELDS])
    return np.array(out, np.int64)


def test_source_and_object_agree():
    digest = hashlib.sha256()
    for path in (SOURCES / "policy.bpf.c", *sorted(SOURCES.glob("*.h")), SOURCES.parent / "policy" / "policy.h"):
        digest.update(path.read_bytes())
    recorded = json.loads(resources.files("netbuf_gym.plants.linux.bpf").joinpath("sources.json").read_text())
    assert recorded["policy.bpf.o"] == digest.hexdigest(), "make bpf, and commit what it writes"


def test_the_object_is_linked_with_its_functions():
    found = objects.load_object("policy")
    program = found.programs["syscall"]
    assert found.maps["policies"].value_bytes == POLICY.itemsize and set(program.maps.values()) == {"policies", "decisions"}
    starts = [int.from_bytes(record[:4], "little") for record in program.functions]
    assert starts[0] == 0 and starts == sorted(set(starts)) and 8 * starts[-1] < len(program.instructions)


@pytest.mark.parametrize("kind, recipe", [("lstm", "default"), ("gru", "robust"), ("tanh", "robust"), ("relu", "default")])
def test_the_kernel_decides_as_the_core_to_the_bit(kind, recipe):
    machines.needs_bpf()
    policy, intervals = random_policy(kind, recipe), random_intervals(400)
    core, kernel = _core.IntegerPolicy(policy, 1), KernelPolicy(policy)
    (action, window), taken = np.zeros((2, 1), np.int64), set()
    try:
        for k, interval in enumerate(intervals):
            start = np.array([k in (0, 250)])
            core.step(interval[None], start, action, window)
            decided = kernel.step(interval, bool(start[0]))
            assert decided == (action[0], window[0])
            taken.add(decided)
    finally:
        kernel.close()
    assert len(taken) > 100
