"""Speed and memory of the simulator and of the environment on top of it.

    python benchmarks/simulator.py [--runs N] [--json FILE] [--update docs/appendix/benchmarks.md] [--no-ns3]

* data packets a second, one thread: CUBIC flows (full TCP: SACK, RTO, delayed ACKs, HyStart) over 100 Mbit/s, 48 ms and
  a buffer of one bandwidth-delay product, 1 and 64 flows;
* the same one-flow scenario in ns-3, compiled from benchmarks/ns3_dumbbell.cc against `pip install ns3==3.44.post0`,
  in the same process run, and the ratio; and in the two simulators of benchmarks/minimal.cc, which do as little as they
  can: one that computes when packets leave a queue, and one of objects and a sorted list of events, as htsim is built;
* 60 s of a shared-buffer switch under RLBM's traffic, as a mean over its eight loads;
* 120 s of a generated trace of 300 Mbit/s under CUBIC, as delivery opportunities and as rates, and how long traces of 80 s
  take to draw;
* environment steps a second of 1024 worlds, 10 Mbit/s and 48 ms, 100 ms steps, link full, on 1, 2 and 4 threads; the
  native core alone; bytes a world; of 1024 receivers with Nuwa's rule on every ACK and without it; and of 1024 switches
  under random thresholds.

One-thread figures count processor time, so that another process on the machine does not enter them; figures of several
threads, and those compared with them, are wall clock.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import numpy as np

import netbuf_gym as nb
from netbuf_gym import _core
from netbuf_gym.scenarios.native import build_world_config

from measure import Row, parser, repeat, report

COMMAND = "python benchmarks/simulator.py"
ENV_ID = "netbuf/CongestionWindow-v0"
RATE_MBPS, RTT_MS, BUFFER_PACKETS = 100, 48, 400  # 400 packets of 1500 bytes: 1 BDP
WORLDS = 1024
TRACE_MBPS = 300
DOUBLINGS, SETTLE_STEPS, TIMED_STEPS = 3, 30, 200
NS3_LIBRARIES = ("core", "network", "internet", "point-to-point", "applications", "traffic-control", "stats", "bridge")


def simulate_flows(flows: int, duration_s: float, stack: str = "linux") -> dict[str, float]:
    """One run of the dumbbell: data packets sent per second of processor time."""
    scenario = nb.scenarios.dumbbell(
        rate_mbps=RATE_MBPS,
        rtt_ms=RTT_MS,
        buffer_packets=BUFFER_PACKETS,
        senders=["cubic"] * flows,
        duration_s=duration_s,
        stagger_s=0.01,
        stack=stack,
    )
    world = _core.World(build_world_config(scenario), 1)
    started = time.thread_time()
    world.run(round(duration_s * 1e9))
    spent = time.thread_time() - started
    stats = world.flow_stats()
    return {
        "packets_per_s": sum(flow["packets_sent"] for flow in stats) / spent,
        "goodput_mbps": sum(flow["delivered_bytes"] for flow in stats) * 8e-6 / duration_s,
    }


def ns3_program() -> Path | str:
    """The compiled ns-3 program, or why there is none."""
    found = importlib.util.find_spec("ns3")
    if found is None:
        return "ns-3 was not compared: `pip install ns3==3.44.post0` is not there"
    wheel = Path(next(iter(found.submodule_search_locations)))
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    source = Path(__file__).with_name("ns3_dumbbell.cc")
    program = Path(__file__).resolve().parents[1] / "build" / "ns3_dumbbell"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        libraries = sorted((wheel / "lib64").glob("libns3*-core.so"))
        if compiler is None or not libraries:
            return "ns-3 was not compared: no C++ compiler, or no libraries in the wheel"
        prefix = libraries[0].name.removeprefix("lib").removesuffix("-core.so")
        program.parent.mkdir(parents=True, exist_ok=True)
        print(f"compiling {source.name} against {wheel}", file=sys.stderr)
        command = [compiler, "-std=c++20", "-O3", "-DNDEBUG", "-w", str(source), "-o", str(program)]
        command += [f"-I{wheel / 'include'}", f"-L{wheel / 'lib64'}", f"-Wl,-rpath,{wheel / 'lib64'}"]
        command += [f"-l{prefix}-{name}" for name in NS3_LIBRARIES]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"ns-3 was not compared: {source.name} did not compile: {done.stderr.strip().splitlines()[-1]}"
    return program


def ns3_run(program: Path, duration_s: float) -> dict[str, float]:
    """One run of the one-flow scenario in ns-3, by its own clock around Simulator::Run."""
    path = {"rate": RATE_MBPS, "rtt": RTT_MS, "buffer": BUFFER_PACKETS, "duration": duration_s}
    command = [str(program), *(f"--{name}={value}" for name, value in path.items())]
    result = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {
        "packets_per_s": result["data_packets"] / result["cpu_s"],
        "goodput_mbps": result["goodput_mbps"],
    }


def minimal_program() -> Path | str:
    """The compiled benchmarks/minimal.cc, or why there is none."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        return "the minimal simulators were not compared: no C++ compiler"
    source = Path(__file__).with_name("minimal.cc")
    program = Path(__file__).resolve().parents[1] / "build" / "minimal"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        program.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([compiler, "-std=c++20", "-O3", "-DNDEBUG", str(source), "-o", str(program)], check=True)
    return program


def minimal_run(program: Path, kind: str) -> dict[str, float]:
    """One run of the one-flow scenario, 600 s of it, in a minimal simulator, by its own clock."""
    command = [str(program), kind, *map(str, (RATE_MBPS, RTT_MS, BUFFER_PACKETS, 600))]
    result = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {"packets_per_s": result["data_packets"] / result["cpu_s"], "goodput_mbps": result["goodput_mbps"]}


def simulate_switches(name: str) -> dict[str, float]:
    """One run at each of RLBM's loads: milliseconds of processor time a run, flows opened and packets sent in it."""
    spent = flows = packets = 0.0
    loads = [k / 10 for k in range(1, 9)]
    for load in loads:
        config = build_world_config(nb.scenarios.get(name, queue_packets=500, load=load))
        started = time.thread_time()
        world = _core.World(config, 1)
        world.run(60 * 10**9)
        spent += time.thread_time() - started
        stats = world.traffic_stats()
        flows += stats["flows_started"]
        packets += stats["packets_sent"]
    return {
        "ms_per_run": 1e3 * spent / len(loads),
        "flows_per_run": flows / len(loads),
        "packets_per_run": packets / len(loads),
    }


def simulate_trace(network: str, form: str) -> dict[str, float]:
    """One run of CUBIC over 120 s of a path of 300 Mbit/s without outages: processor time, goodput."""
    options = {"wifi": {}, "5g": {"spread": 0}}[network]
    trace = nb.traces.generate(network, duration_s=120, seed=1, mean_mbps=TRACE_MBPS, outages=0, form=form, **options)
    world = nb.scenarios.dumbbell(trace=trace, rtt_ms=RTT_MS, buffer_packets=1200, senders=["cubic"], duration_s=120)
    config = build_world_config(world)
    started = time.thread_time()
    simulated = _core.World(config, 1)
    simulated.run(120 * 10**9)
    spent = time.thread_time() - started
    return {"s_per_run": spent, "goodput_mbps": simulated.flow_stats()[0]["delivered_bytes"] * 8e-6 / 120}


def draw_traces(network: str, count: int = 40) -> dict[str, float]:
    """Milliseconds of processor time for a trace of 80 s of a network, mean over its paths."""
    started = time.thread_time()
    for seed in range(count):
        nb.traces.generate(network, duration_s=80, seed=seed)
    return {"ms_per_trace": 1e3 * (time.thread_time() - started) / count}


def step_switches(scenario: str | dict = "rlbm/random", interval_s: float = 0.1) -> dict[str, float]:
    """Random thresholds, once the worlds have had 3 s of traffic; one thread."""
    env = gym.make_vec("netbuf/QueueThreshold-v0", num_envs=WORLDS, scenario=scenario, interval_s=interval_s)
    rng, settle = np.random.default_rng(1), round(3 / interval_s)
    actions = rng.uniform(-1, 1, (settle + TIMED_STEPS, WORLDS, 2)).astype(np.float32)
    env.reset(seed=1)
    for action in actions[:settle]:
        env.step(action)
    cpu, sent = time.thread_time(), 0.0
    for action in actions[settle:]:
        env.step(action)
        sent += env.unwrapped.engine.tracker.queue.drained_bytes.sum() / 1500
    cpu = time.thread_time() - cpu
    env.close()
    return {"steps_per_cpu_s": WORLDS * TIMED_STEPS / cpu, "packets_per_step": sent / (WORLDS * TIMED_STEPS)}


def step_receivers(acts_on: str) -> dict[str, float]:
    """Receivers over a full link of 10 Mbit/s and 48 ms that hold what they have; one thread. With `acts_on` other than
    "window" Nuwa's rule moves the window on every ACK."""
    scenario = {"name": "nuwa/fairness", "n": 1, "rtt_ms": 48, "buffer_packets": 150, "duration_s": 100}
    env = gym.make_vec("netbuf/ReceiverWindow-v0", num_envs=WORLDS, scenario=scenario, acts_on=acts_on)
    actions = np.full(WORLDS, env.unwrapped.engine.task.keep_action)
    env.reset(seed=1)
    for _ in range(SETTLE_STEPS):
        env.step(actions)
    arrived = env.unwrapped.engine.tracker["packets_received"].mean()
    cpu = time.thread_time()
    for _ in range(TIMED_STEPS):
        env.step(actions)
    cpu = time.thread_time() - cpu
    env.close()
    return {"steps_per_cpu_s": WORLDS * TIMED_STEPS / cpu, "packets_per_step": arrived}


def full_link_scenario() -> nb.scenarios.Scenario:
    """10 Mbit/s, 48 ms, 150 packets, no loss: a window that is kept above the BDP keeps the link full."""
    return nb.scenarios.get("ppcc/3")


def holding_actions(task, steps: int) -> list[int]:
    """Actions that double the initial window a few times and then hold it, by the two that change it least."""
    actions = [len(task.levels) - 1] * DOUBLINGS
    nearest = int(task.nearest_actions(np.zeros(1))[0])
    window = 1.0
    while len(actions) < steps:
        actions.append(nearest - (window > 1))
        window *= task.levels[actions[-1]]
    return actions


def step_random() -> dict[str, float]:
    """As training begins: random actions over `ppcc/4`, whose buffer they overflow; one thread."""
    env = gym.make_vec(ENV_ID, num_envs=WORLDS, scenario="ppcc/4")
    actions = np.random.default_rng(1).integers(0, env.single_action_space.n, (SETTLE_STEPS + TIMED_STEPS, WORLDS))
    env.reset(seed=1)
    for action in actions[:SETTLE_STEPS]:
        env.step(action)
    cpu = time.thread_time()
    for action in actions[SETTLE_STEPS:]:
        env.step(action)
    cpu = time.thread_time() - cpu
    env.close()
    return {"steps_per_cpu_s": WORLDS * TIMED_STEPS / cpu}


def step_env(threads: list[int]) -> dict[str, float]:
    """Environment steps of 1024 worlds a second, once the link is full, on each number of threads in turn."""
    rates = {}
    for n in threads:
        env = gym.make_vec(ENV_ID, num_envs=WORLDS, scenario="ppcc/3", threads=n)
        task = env.unwrapped.engine.task
        actions = [np.full(WORLDS, action) for action in holding_actions(task, SETTLE_STEPS + TIMED_STEPS)]
        env.reset(seed=1)
        for action in actions[:SETTLE_STEPS]:
            env.step(action)
        wall, cpu = time.perf_counter(), time.thread_time()
        for action in actions[SETTLE_STEPS:]:
            env.step(action)
        wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
        env.close()
        rates[f"steps_per_s_{n}"] = WORLDS * TIMED_STEPS / wall
        if n == 1:
            rates["steps_per_cpu_s"] = WORLDS * TIMED_STEPS / cpu
    return rates


def step_core() -> dict[str, float]:
    """The same worlds stepped in the native core alone: world steps a second, packets a step, bytes a world."""
    config = build_world_config(full_link_scenario().with_agents())
    batch = _core.Batch(WORLDS, 1, 1)
    for world in range(WORLDS):
        batch.reset(world, config, world)
    interval_ns = 100_000_000
    fields = batch.fields
    cwnd = fields.index("cwnd_bytes")
    for step in range(SETTLE_STEPS):
        batch.control[:, :, 0] = batch.telemetry[:, :, cwnd] * 2 if 0 < step <= DOUBLINGS else np.nan
        batch.advance(interval_ns)
    batch.control[:] = np.nan
    sent = [batch.flow_stats(world)[0]["packets_sent"] for world in range(WORLDS)]
    started = time.thread_time()
    for _ in range(TIMED_STEPS):
        batch.advance(interval_ns)
    spent = time.thread_time() - started
    sent = sum(batch.flow_stats(world)[0]["packets_sent"] - sent[world] for world in range(WORLDS))
    return {
        "steps_per_s": WORLDS * TIMED_STEPS / spent,
        "packets_per_step": sent / (WORLDS * TIMED_STEPS),
        "bytes_per_world": max(batch.memory_bytes(world) for world in range(WORLDS)),
    }


def main() -> None:
    arguments = parser(__doc__.split("\n")[0], runs=5)
    arguments.add_argument("--no-ns3", action="store_true", help="leave ns-3 out even where its wheel is installed")
    options = arguments.parse_args()
    rows, notes = [], []

    one = repeat(options.runs, lambda: simulate_flows(1, duration_s=600))
    many = repeat(options.runs, lambda: simulate_flows(64, duration_s=300))
    unit = "data packets/s"
    note = f"{one['goodput_mbps'][0]:.1f} Mbit/s of goodput"
    rows.append(Row("1 CUBIC flow, 100 Mbit/s, 48 ms, 1 BDP", unit, one["packets_per_s"], 25e6, note=note))
    note = f"{many['goodput_mbps'][0]:.1f} Mbit/s of goodput"
    rows.append(Row("64 CUBIC flows, the same link", unit, many["packets_per_s"], 12e6, note=note))

    small = minimal_program()
    if isinstance(small, str):
        notes.append(small)
    else:
        for kind, name in (("arithmetic", "computed departures"), ("events", "objects and a sorted list, as htsim")):
            run = repeat(options.runs, lambda kind=kind: minimal_run(small, kind))
            note = f"{run['goodput_mbps'][0]:.1f} Mbit/s; no SACK, RTO, telemetry"
            rows.append(Row(f"1 CUBIC flow in a minimal simulator: {name}", unit, run["packets_per_s"], note=note))

    program = "ns-3 was left out (--no-ns3)" if options.no_ns3 else ns3_program()
    if isinstance(program, str):
        notes.append(program)
    else:
        profile = repeat(options.runs, lambda: simulate_flows(1, duration_s=600, stack="ns3"))
        ns3 = repeat(options.runs, lambda: ns3_run(program, duration_s=20))
        note = f"{profile['goodput_mbps'][0]:.1f} Mbit/s; with ns-3's access links"
        rows.append(Row("1 CUBIC flow, ns3 profile", unit, profile["packets_per_s"], note=note))
        note = f"{ns3['goodput_mbps'][0]:.1f} Mbit/s; 20 s simulated"
        rows.append(Row("1 CUBIC flow in ns-3.44", unit, ns3["packets_per_s"], note=note))
        for name, ours, target in (("linux", one, 300.0), ("ns3", profile, None)):
            ratios = [a / b for a, b in zip(ours["packets_per_s"], ns3["packets_per_s"], strict=True)]
            rows.append(Row(f"{name} profile against ns-3", "times", ratios, target))

    for name in ("rlbm/default", "rlbm/thesis-code", "rlbm/thesis-text"):
        switch = repeat(options.runs, lambda name=name: simulate_switches(name))
        flows, packets = switch["flows_per_run"][0], switch["packets_per_run"][0]
        note = f"{flows:,.0f} flows, {packets:,.0f} data packets sent"
        rows.append(Row(f"60 s of {name}, mean over loads", "ms", switch["ms_per_run"], note=note))

    for network, form in (("wifi", "deliveries"), ("5g", "rates")):
        driven = repeat(options.runs, lambda network=network, form=form: simulate_trace(network, form))
        note = f"{driven['goodput_mbps'][0]:.0f} Mbit/s of goodput"
        name = f"120 s of {network} at {TRACE_MBPS} Mbit/s, {form}, CUBIC (processor time)"
        rows.append(Row(name, "s", driven["s_per_run"], 1.0, at_most=True, note=note))
    for network in ("wired", "wifi", "4g", "5g"):
        drawn = repeat(options.runs, lambda network=network: draw_traces(network))
        rows.append(Row(f"a trace of 80 s of {network} drawn (processor time)", "ms", drawn["ms_per_trace"], 3.0, at_most=True))

    core = repeat(options.runs, step_core)
    packets = core["packets_per_step"][0]
    note = f"{packets:.1f} data packets a step"
    rows.append(Row("1024 worlds, core alone, 1 thread", "steps/s", core["steps_per_s"], note=note))
    cores = os.cpu_count() or 1
    threads = [n for n in (1, 2, 4) if n <= cores]
    env = repeat(options.runs, lambda: step_env(threads))
    rows.append(Row("1024 worlds, environment, 1 core (processor time)", "steps/s", env["steps_per_cpu_s"], 214e3))
    random = repeat(options.runs, step_random)
    name = "1024 worlds, environment, random actions on ppcc/4, 1 core (processor time)"
    rows.append(Row(name, "steps/s", random["steps_per_cpu_s"]))
    switches = repeat(options.runs, step_switches)
    name = "1024 switches, environment, random thresholds on rlbm/random, 1 core (processor time)"
    rows.append(Row(name, "steps/s", switches["steps_per_cpu_s"], 120e3))
    full = {"name": "rlbm/default", "load": 3.0}
    switches = repeat(options.runs, lambda: step_switches(full, 0.01))
    note = f"{switches['packets_per_step'][0]:.1f} full packets sent a step"
    name = "1024 switches, decisions every 10 ms, a port of 10 Mbit/s kept busy, 1 core (processor time)"
    rows.append(Row(name, "steps/s", switches["steps_per_cpu_s"], 300e3, note=note))
    for acts_on, what in (("k", "Nuwa's rule on every ACK"), ("window", "a window each decision")):
        receivers = repeat(options.runs, lambda acts_on=acts_on: step_receivers(acts_on))
        note = f"{receivers['packets_per_step'][0]:.1f} data packets a step"
        name = f"1024 receivers, environment, {what}, 1 core (processor time)"
        rows.append(Row(name, "steps/s", receivers["steps_per_cpu_s"], 120e3, note=note))
    for n in threads:
        rows.append(Row(f"1024 worlds, environment, {n} thread{'s' * (n > 1)}", "steps/s", env[f"steps_per_s_{n}"]))
    for n in threads[1:]:
        ratios = [many / one for many, one in zip(env[f"steps_per_s_{n}"], env["steps_per_s_1"], strict=True)]
        rows.append(Row(f"{n} threads against 1", "times", ratios, 2.5 if n == 4 else None))
    if cores < 4:
        notes.append(f"4 threads were not measured: this machine has {cores} cores")
    rows.append(Row("memory", "bytes/world", core["bytes_per_world"], 64 * 1024, at_most=True))

    report("simulator", COMMAND, rows, options, notes)


if __name__ == "__main__":
    main()
