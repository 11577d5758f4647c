"""What live worlds cost on this machine, and how true their links are; what proxies and many connections cost in the simulator.

    python benchmarks/live.py [--runs N] [--json FILE] [--update docs/appendix/benchmarks.md]

Some four minutes. The machine should have nothing else to do: all figures of live worlds are of real time. As root links have a
real-time priority.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import gymnasium as gym

import netbuf_gym as nb
from netbuf_gym import _core, plants, zoo
from netbuf_gym.plants.linux import machine, system
from netbuf_gym.plants.linux.host_meter import HostMeter
from netbuf_gym.plants.linux.netlink import Routing
from netbuf_gym.scenarios.native import build_world_config
from netbuf_gym.tasks.host_buffers.random_paths import make_host_world
from netbuf_gym.zoo import library

from measure import Row, parser, repeat, report

if TYPE_CHECKING:
    from netbuf_gym.zoo.agent import Agent

COMMAND = "python benchmarks/live.py"
CONNECTIONS, LOOKS = 1000, 20
RATE_MBPS, RTT_MS = 20.0, 40.0
DECISION_S, DECIDED_S, BEGINNING_S = 0.1, 15.0, 1.0
MADE = 10
LINKS_MBPS, CARRIED_S = (10.0, 50.0, 100.0), 8.0
PROXIED_S, SHARED_MBPS = 60.0, 100.0


# ---- live


def observe() -> None:
    """As a process of its own: seconds that a meter takes for a thousand connections, each time, as JSON."""
    system.unshare(system.NEWNET if os.geteuid() == 0 else system.NEWNET | system.NEWUSER)
    with Routing() as netlink:
        netlink.set_up("lo")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    listener = socket.create_server(("127.0.0.1", 0), backlog=CONNECTIONS)
    pairs = [(socket.create_connection(listener.getsockname()), listener.accept()[0]) for _ in range(CONNECTIONS // 2)]
    meter = HostMeter(local=True)
    took = []
    for _ in range(LOOKS + 1):
        for near, far in pairs:
            near.sendall(bytes(100))
            far.recv(100)
        began = time.perf_counter()
        seen = meter.measure()["connections"]
        took.append(time.perf_counter() - began)
        if seen != CONNECTIONS:
            raise SystemExit(f"{seen:g} connections were seen of {CONNECTIONS}")
    print(json.dumps(took[1:]))


def observation() -> list[float]:
    """Milliseconds of each observation."""
    done = subprocess.run([sys.executable, __file__, "--observe"], stdout=subprocess.PIPE, text=True, check=True)
    return [1e3 * seconds for seconds in json.loads(done.stdout)]


def path(rate_mbps: float, sender: str, duration_s: float) -> nb.scenarios.Scenario:
    """One sender, a queue of one product."""
    packets = max(20, round(rate_mbps * RTT_MS * 1e3 / 8 / 1500))
    return nb.scenarios.dumbbell(
        rate_mbps=rate_mbps, rtt_ms=RTT_MS, buffer_packets=packets, senders=[sender], duration_s=duration_s
    )


def controlled(agent: Agent | None) -> dict[str, float]:
    """A live world that is decided on every 100 ms: shares of a core, %, of the controller and of all that serves the world."""
    own = {"recipe": agent.env_kwargs["recipe"]} if agent else {}
    scenario = path(RATE_MBPS, "agent", BEGINNING_S + DECIDED_S + 1)
    env = gym.make("netbuf/CongestionWindow-v0", plant="linux", interval_s=DECISION_S, scenario=scenario, **own)
    try:
        observation, _ = env.reset(seed=1)
        idle, memory = env.action_space.sample() * 0, None

        def go_on(seconds: float) -> None:
            nonlocal observation, memory
            for _ in range(round(seconds / DECISION_S)):
                action, memory = (idle, None) if agent is None else agent.predict(observation, memory)
                observation, _, _, _, info = env.step(action)
                if "failure" in info:
                    raise SystemExit(f"the live world has failed: {info['failure']}")

        go_on(BEGINNING_S)
        before, began, spent = time.process_time(), time.monotonic(), _children_s()
        go_on(DECIDED_S)
        seconds, share = time.monotonic() - began, 100 * (time.process_time() - before)
    finally:
        env.close()
    return {"controller": share / seconds, "world": 100 * (_children_s() - spent) / (seconds + BEGINNING_S)}


def _children_s() -> float:
    """Processor time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def made() -> tuple[list[float], list[float]]:
    """Seconds until a topology runs, and until it is gone, of ten."""
    up, gone = [], []
    for seed in range(MADE):
        began = time.monotonic()
        world = plants.make_lone_world("linux", path(RATE_MBPS, "cubic", 10.0), seed)
        up.append(time.monotonic() - began)
        world.run(200_000_000)
        began = time.monotonic()
        world.close()
        gone.append(time.monotonic() - began)
    return up, gone


def carried(rate_mbps: float) -> dict[str, float]:
    """What a link's emulator says of itself after a flow of CUBIC: errors of the rate in %, lateness in ms."""
    world = plants.make_lone_world("linux", path(rate_mbps, "cubic", CARRIED_S), 1)
    try:
        world.run(round(CARRIED_S * 1e9))
        told = world.emulator()
    finally:
        world.close()
    late = {name: 1e3 * value for name, value in told.items() if "late_" in name}
    return {**late, "rate_error": round(100 * abs(told["rate_error"]), 4)}


def live_rows(runs: int) -> list[Row]:
    """The figures of live worlds."""
    rows = [Row(f"an observation of {CONNECTIONS:,} connections", "ms", observation(), 5.0, at_most=True)]
    for agent, who in ((None, "decisions that change nothing"), (zoo.load(library.SENDER), f"the zoo's {library.SENDER}")):
        shares = [controlled(agent) for _ in range(runs)]
        world = max(share["world"] for share in shares)
        note = f"its world's processes {world:.0f} % at most"
        name = f"a controller that decides every {1e3 * DECISION_S:.0f} ms, {who}"
        rows.append(Row(name, "% of a core", [share["controller"] for share in shares], 2.0, at_most=True, note=note))
    up, gone = made()
    rows.append(Row(f"a live topology is up, {MADE} of them", "s", up, 1.0, at_most=True))
    rows.append(Row(f"it is gone, {MADE} of them", "s", gone, 0.2, at_most=True))
    for rate_mbps in LINKS_MBPS:
        told = [carried(rate_mbps) for _ in range(runs)]
        what = f"a link of {rate_mbps:g} Mbit/s"
        rows.append(Row(f"{what}: error of its rate", "%", [one["rate_error"] for one in told], 0.1, at_most=True))
        for key, words in LATE.items():
            rows.append(Row(f"{what}: {words}", "ms", [one[key] for one in told]))
    return rows


LATE = {
    "late_p50_s": "packets are written late, median",
    "late_p99_s": "written late, 99 %",
    "late_max_s": "written late, the last of them",
    "read_late_p99_s": "wait to be read, 99 %",
    "read_late_max_s": "wait to be read, the last of them",
}
"""Of what an emulator tells."""


# ---- simulated


def proxied() -> dict[str, float]:
    """A flow from a target through a proxy to a client: packets that left a link, of either connection, a second."""
    scenario = make_host_world(rate_mbps=SHARED_MBPS, rtt_ms=RTT_MS, relay_bytes=1 << 20, duration_s=PROXIED_S)
    seconds, world = _run(scenario)
    return {"hops_per_s": sum(link["packets_out"] for link in world.link_stats()) / seconds}


def shared(relay_bytes: int | None) -> dict[str, float]:
    """A thousand connections that always have data: simulated seconds in one of the processor."""
    many = {"connections": CONNECTIONS, "stagger_s": 0.01, "relay_bytes": relay_bytes}
    return {"times": PROXIED_S / _run(make_host_world(rate_mbps=SHARED_MBPS, rtt_ms=RTT_MS, duration_s=PROXIED_S, **many))[0]}


def _run(scenario: nb.scenarios.Scenario) -> tuple[float, _core.World]:
    world = _core.World(build_world_config(scenario), 1)
    began = time.thread_time()
    world.run(round(scenario.duration_s * 1e9))
    return time.thread_time() - began, world


def simulated_rows(runs: int) -> list[Row]:
    """Those of the simulator."""
    hops = repeat(runs, proxied)["hops_per_s"]
    rows = [Row("simulated: a flow through a proxy", "packet-hops/s", hops, 10e6)]
    for relay_bytes, how, least in ((None, "", 100.0), (65536, ", each through a proxy", None)):
        times = repeat(runs, lambda relay_bytes=relay_bytes: shared(relay_bytes))["times"]
        name = f"simulated: {CONNECTIONS:,} connections share {SHARED_MBPS:g} Mbit/s{how}"
        rows.append(Row(name, "x real time", times, least))
    return rows


def main() -> None:
    options = parser(__doc__.split("\n")[0], 3).parse_args()
    here = machine.look()
    rows = [] if here.missing else live_rows(options.runs)
    if here.missing:
        notes = [f"Nothing live was measured; no live worlds: {here.missing}"]
    else:
        notes = [f"The threads of live links had {'a' if here.realtime else 'no'} real-time priority."]
    report("live", COMMAND, [*rows, *simulated_rows(options.runs)], options, notes)


if __name__ == "__main__":
    if sys.argv[1:] == ["--observe"]:
        observe()
    else:
        main()
