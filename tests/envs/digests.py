"""Digests of what the environments and the simulator give: a change of the code that should change no bit changes none.

    python -m tests.envs.digests            compares with tests/data/digests.json; exit status 1 where a case differs
    python -m tests.envs.digests --write    records them anew (say in CHANGELOG.md which changed, and why)

A case has a digest of what the core measured, `core`, and one of observations and rewards, `numpy`: numpy's float32
logarithms differ in the last bit between processors that it dispatches differently for, so that the second is compared
only where it was recorded on a processor of the same kind.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import netbuf_gym as nb
from netbuf_gym import _core, traces
from tests.helpers.processors import start_pinned

RECORDED = Path(__file__).resolve().parents[1] / "data" / "digests.json"
WORLDS, STEPS = 4, 60
BY_SUMS = ("netbuf/QueueThreshold-v0 ", "simulate trace lte", "simulate last hop lte")
"""How cases begin whose `core` has means by numpy: its sums of many numbers end in other bits in other versions of it."""
LATER = (
    *("marks", "mark_responses", "failed_s", "flows_failed"),
    *(f"{name}_p{priority}" for name in ("flows_completed", "slowdown_log_mean") for priority in range(8)),
    *("slowdown_log_mean", "fct_utility"),
)
"""Came after the digests were recorded: marks and failed flows, of which there are none here; counts and mean logarithms of
slowdown by priority, and the utility made of them."""

CONGESTION_WINDOW: dict[str, dict[str, Any]] = {
    **{f"ppcc/{k}": {"scenario": f"ppcc/{k}"} for k in (1, 2, 3, 4)},
    "ppcc/random": {"scenario": "ppcc/random"},
    "ppcc recipe": {"scenario": "ppcc/4", "recipe": "ppcc"},
    "alpha-fair": {"scenario": "ppcc/2", "reward": "alpha_fair"},
    "per ACK": {"scenario": "ppcc/2", "per_ack": True},
    "three senders": {"scenario": "ppcc/2", "senders": 3},
    "20 ms": {"scenario": {"name": "ppcc/2", "rate_mbps": 20}, "interval_s": 0.02},
    "ends within": {"scenario": {"name": "ppcc/4", "duration_s": 2.05}},
    "beside others": {"scenario": {"name": "dumbbell", "rate_mbps": 20, "senders": ["agent", "bbr", "cubic"]}},
    "ns3": {"scenario": {"name": "dumbbell", "rate_mbps": 10, "senders": ["agent"], "stack": "ns3"}},
}
QUEUE_THRESHOLD: dict[str, dict[str, Any]] = {
    "rlbm/default": {"scenario": {"name": "rlbm/default", "load": 0.8, "queue_packets": 200}},
    "rlbm/random": {"scenario": "rlbm/random"},
    "rlbm/incast": {"scenario": "rlbm/incast"},
    "limits": {"scenario": "rlbm/random", "actions": "limits"},
    "grid": {"scenario": "rlbm/default", "actions": "grid"},
    "thesis-text": {"scenario": "rlbm/thesis-text", "recipe": "thesis-text"},
    "thesis-code": {"scenario": {"name": "rlbm/thesis-code", "load": 0.6}, "recipe": "thesis-code"},
    "ends within": {"scenario": {"name": "rlbm/default", "duration_s": 2.05}},
}
ENVIRONMENTS = {"netbuf/CongestionWindow-v0": CONGESTION_WINDOW, "netbuf/QueueThreshold-v0": QUEUE_THRESHOLD}


DISCIPLINES = nb.scenarios.DISCIPLINES


class Digest:
    """SHA-256 of numbers, to the bit, and of text."""

    def __init__(self) -> None:
        self._sha = hashlib.sha256()

    def add(self, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.dtype != object:
            self._sha.update(np.where(np.isnan(value), np.nan, value).tobytes() if value.dtype.kind == "f" else value.tobytes())
        elif isinstance(value, dict):
            for key in sorted(value.keys() - set(LATER)):
                self._sha.update(key.encode())
                self.add(value[key])
        elif isinstance(value, (list, tuple, np.ndarray)):
            for one in value:
                self.add(one)
        else:
            self._sha.update(repr(value).encode())

    def __str__(self) -> str:
        return self._sha.hexdigest()[:16]


def environment(name: str, kwargs: dict[str, Any]) -> dict[str, str]:
    """Random actions in a few worlds; telemetry and reports, and observations and rewards."""
    senders = kwargs.get("senders", 1)
    env = gym.make_vec(name, num_envs=WORLDS * senders, **kwargs)
    engine = env.unwrapped.engine
    core, arrays = Digest(), Digest()
    observations, _ = env.reset(seed=7)
    arrays.add(observations)
    env.action_space.seed(7)
    for _ in range(STEPS):
        observations, rewards, _, truncated, info = env.step(env.action_space.sample())
        core.add(engine.plant.telemetry)
        arrays.add(observations)
        arrays.add(rewards)
        if truncated.any():
            core.add({key: info["final_info"][key][truncated].tolist() for key in sorted(info["final_info"]) if key[0] != "_"})
    core.add([engine.report(world) for world in range(WORLDS)])
    env.close()
    return {"core": str(core), "numpy": str(arrays)}


def simulated(scenario: nb.scenarios.Scenario) -> dict[str, str]:
    """A run without an agent: totals, series, and finite flows where there are some."""
    found = nb.simulate(scenario, seed=3, sample_interval_s=0.1).to_dict()
    found["series"] = {name: values for name, values in found["series"].items() if "arrival" not in name}  # came later
    core = Digest()
    core.add(found)
    return {"core": str(core)}


def dumbbells() -> Iterator[tuple[str, nb.scenarios.Scenario]]:
    """Every congestion control of both stacks, alone and together, with loss, disciplines, traces, pacing and small MSS."""
    path = {"rate_mbps": 10, "rtt_ms": 48, "buffer_packets": 60, "duration_s": 20}
    for stack in ("linux", "ns3"):
        for name in ("newreno", "linuxreno", "cubic", "bbr", "vegas", "westwood", "copa", "vivace", "bbrplus", "inigo"):
            if name not in nb.scenarios.congestion_controls(stack):
                continue
            yield f"{stack} {name}", nb.scenarios.dumbbell(**path, senders=[name], stack=stack)
            yield f"{stack} {name} lossy", nb.scenarios.dumbbell(**path, senders=[name, "cubic"], loss=5e-3, stack=stack)
        for discipline in ("red", "codel", "fq_codel", "pie"):
            senders = ["cubic", "newreno", "cubic"]
            yield f"{stack} {discipline}", managed(nb.scenarios.dumbbell(**path, senders=senders, stack=stack), discipline)
    many = {"rate_mbps": 100, "rtt_ms": 20, "buffer_packets": 100, "duration_s": 10, "stagger_s": 0.01}
    yield "64 flows", nb.scenarios.dumbbell(**many, senders=["cubic"] * 64)
    for kind in ("lte", "poisson", "square"):
        trace = traces.generate(kind, duration_s=20, seed=1)
        yield f"trace {kind}", nb.scenarios.dumbbell(**{**path, "rate_mbps": None}, trace=trace, senders=["cubic", "bbr"])
        yield f"last hop {kind}", nb.scenarios.last_hop(trace=trace, senders=["cubic", "newreno"], duration_s=20)
    yield "paced", nb.scenarios.dumbbell(**path, senders=["cubic", "newreno"], pacing=True)
    bursty = nb.scenarios.GilbertElliott(p_good_to_bad=0.01, p_bad_to_good=0.3, loss_bad=0.5)
    yield "bursty losses", nb.scenarios.dumbbell(**path, senders=["cubic", "bbr"], gilbert_elliott=bursty)
    on_off = nb.scenarios.OnOff(on_s=1.0, off_s=0.5, random=True, rate_mbps=4.0)
    yield "on-off", nb.scenarios.dumbbell(**path, senders=["cubic", "bbr"], app=on_off)
    yield "sized", nb.scenarios.dumbbell(**path, senders=["cubic", "bbr"], app=nb.scenarios.Sized(size_bytes=3_000_000))
    for number, scenario in enumerate(drawn()):
        yield f"drawn {number}", scenario


def managed(scenario: nb.scenarios.Scenario, discipline: str) -> nb.scenarios.Scenario:
    """The same world, the first link's queue in the hands of a discipline."""
    kind = DISCIPLINES[discipline]
    return replace(scenario, links=(replace(scenario.links[0], discipline=kind()), *scenario.links[1:]))


def drawn() -> Iterator[nb.scenarios.Scenario]:
    """Worlds of many kinds: paths of several links, buffers, clamps, relays, priorities, finite flows and switches."""
    link, flow = nb.scenarios.Link, nb.scenarios.Flow
    links = [
        link(name="a", rate_mbps=20, delay_ms=5, queue_packets=40, loss=1e-3),
        link(name="b", rate_mbps=8, delay_ms=10, queue_bytes=60_000),
        link(name="c", rate_mbps=5, delay_ms=15, queue_packets=30, loss=1e-3, loss_on_acks=True),
        link(name="d", delay_ms=2),
    ]
    flows = [
        flow(cc="cubic", path=(0, 1), return_path=(2, 3)),
        flow(cc="bbr", path=(1,), return_path=(2,), start_s=0.5, stop_s=9.0),
        flow(cc="newreno", path=(0, 3), return_path=(2, 3), send_buffer_bytes=90_000, receive_buffer_bytes=60_000),
        flow(cc="vegas", path=(2,), return_path=(0,), initial_cwnd_packets=4),
        flow(cc="westwood", path=(1, 3), return_path=(3,), app=nb.scenarios.Sized(size_bytes=2_000_000)),
    ]
    for stack in ("linux", "ns3"):
        yield nb.scenarios.Scenario(links=links, flows=flows, duration_s=15, stack=stack)
        yield nb.scenarios.Scenario(links=links, flows=flows[:3], duration_s=15, stack=stack, mss_bytes=700)
    for name in ("rlbm/default", "rlbm/incast", "rlbm/thesis-code"):
        for scheme in ("abm", "codel"):
            yield nb.scenarios.get(name, duration_s=8).with_scheme(scheme)


def of_core(number: int) -> dict[str, str]:
    """A random world of what scenarios do not say: relays, clamps, short finite flows over lossy ways back, timers."""
    rng = np.random.default_rng(number)
    config = _core.WorldConfig()
    config.stack = ("linux", "ns3")[number % 2]
    config.pacing, config.hystart = bool(rng.integers(2)), bool(rng.integers(2))
    config.min_rto_ns, config.delayed_ack_packets = int(rng.choice([0, 50e6])), int(rng.choice([0, 1, 4]))
    links = []
    for k in range(4):
        link = _core.LinkConfig()
        link.name, link.rate_bps = str(k), float(rng.choice([1e6, 5e6, 2e7]))
        link.delay_ns, link.queue_limit_packets = int(rng.integers(0, 3e7)), int(rng.choice([0, 5, 30, 100]))
        link.loss, link.loss_on_acks = float(rng.choice([0, 0.003, 0.03])), bool(rng.integers(2))
        links.append(link)
    flows = []
    for k in range(int(rng.integers(2, 7))):
        flow = _core.FlowConfig()
        names = ["newreno", "cubic", "bbr", "vegas", "westwood", "agent"]
        if config.stack == "ns3" and number < 40:  # drawn before it had BBR
            names.remove("bbr")
        flow.cc = str(rng.choice(names))
        flow.controlled = flow.cc == "agent"
        flow.path = [int(one) for one in rng.permutation(4)[: rng.integers(1, 4)]]
        flow.return_path = [int(one) for one in rng.permutation(4)[: rng.integers(1, 3)]]
        flow.start_ns, flow.initial_cwnd_packets = int(rng.integers(0, 2e9)), int(rng.choice([1, 4, 10]))
        if rng.random() < 0.4:
            flow.app, flow.size_bytes = "sized", int(rng.integers(1, 400_000))
        flow.window_clamp_bytes = int(rng.choice([0, 0, 20_000]))
        if k and rng.random() < 0.3 and flow.app == "bulk" and all(one.relay_from != k - 1 for one in flows):
            flow.relay_from, flow.relay_buffer_bytes = k - 1, int(rng.integers(3_000, 60_000))
        flows.append(flow)
    config.links, config.flows = links, flows
    world, core = _core.World(config, number), Digest()
    for step in range(60):
        world.run((step + 1) * 100_000_000)
        core.add([np.array(world.flow_sample()), np.array(world.link_sample())])
    core.add([world.flow_stats(), world.link_stats()])
    return {"core": str(core)}


def cases() -> dict[str, Callable[[], dict[str, str]]]:
    """Every case by name."""
    found: dict[str, Callable[[], dict[str, str]]] = {}
    for name, settings in ENVIRONMENTS.items():
        for label, kwargs in settings.items():
            found[f"{name} {label}"] = lambda name=name, kwargs=kwargs: environment(name, kwargs)
    for label, scenario in dumbbells():
        found[f"simulate {label}"] = lambda scenario=scenario: simulated(scenario)
    for number in range(52):
        found[f"core {number}"] = lambda number=number: of_core(number)
    return found


def processor() -> str:
    """What numpy dispatches float32 logarithms by."""
    features = np._core._multiarray_umath.__cpu_features__
    return next((name for name in ("X86_V4", "AVX2", "NEON") if features.get(name)), "none")


def sums() -> str:
    """How numpy adds many numbers."""
    return float(np.random.default_rng(1).random(10_001).sum()).hex()


def comparable(recorded: dict[str, Any], label: str) -> tuple[str, ...]:
    """Which digests of a case have to be as recorded, with this numpy and processor."""
    if recorded["processor"] == processor() and recorded["numpy"] == np.__version__:
        return ("core", "numpy")
    return () if label.startswith(BY_SUMS) and recorded["sums"] != sums() else ("core",)


def differing(recorded: dict[str, Any]) -> list[str]:
    """The recorded cases that are different now; a case that is new, or gone, is one."""
    found = cases()
    wrong = sorted(recorded["cases"].keys() ^ found.keys())
    for label, then in recorded["cases"].items():
        if label in found:
            now = found[label]()
            wrong += [f"{label}: {key}" for key in comparable(recorded, label) if now.get(key) != then.get(key)]
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="record anew")
    if parser.parse_args().write:
        made: dict[str, Any] = {"processor": processor(), "numpy": np.__version__, "sums": sums()}
        made["cases"] = {name: case() for name, case in cases().items()}
        RECORDED.parent.mkdir(exist_ok=True)
        RECORDED.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")
        return 0
    wrong = differing(json.loads(RECORDED.read_text()))
    print("\n".join(wrong) or "every digest as recorded")
    return bool(wrong)


if __name__ == "__main__":
    start_pinned()
    sys.exit(main())
