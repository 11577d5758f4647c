"""Kill owners of live worlds at random moments and look what is left: `python -m tools.kills.live_worlds --kills 100`.

Each owner resets, steps and closes environments with two live worlds over and over. It is killed (SIGKILL) at any moment
from its first import on; soon after, nothing may be there that was not there before: processes, network namespaces, devices,
congestion controls, changed sysctls. Exits with 1, and says what, where something is.
"""

import argparse
import os
import random
import subprocess
import sys
import time
from pathlib import Path

from netbuf_gym.plants.linux import machine
from tests.plants.linux import live_worlds

LONGEST_S = 2.5
STARTING = 0.2
"""Share of the kills that come at any moment from the start of the process on; the others once worlds are made."""
SETTLED_S = 5.0
OWNER = """
import gymnasium as gym
import netbuf_gym as nb
print("begun", flush=True)
scenario = nb.scenarios.dumbbell(rate_mbps=20, rtt_ms=20, buffer_packets=60, senders=["agent"], duration_s=1.0)
while True:
    envs = gym.make_vec("netbuf/CongestionWindow-v0", 2, plant="linux", scenario=scenario)
    envs.reset(seed=1)
    for _ in range(15):
        envs.step(envs.action_space.sample())
    envs.close()
"""
WATCHED = ("net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem", "net/ipv4/tcp_available_congestion_control", "net/core/rmem_max")


def read_state(spaces=frozenset(), since=0):
    """Read what killing may leave behind, as it is now."""
    return {
        "namespaces": sorted(live_worlds.in_use(set(spaces), since)),
        "devices": sorted(os.listdir("/sys/class/net")),
        **{name: " ".join(sorted(Path("/proc/sys", name).read_text().split())) for name in WATCHED},
    }


def kill_owner(starting, after_s, before):
    """Kill an owner so long after its start, or after it has begun; its processes, and what is left of it, by name."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE)
    if not starting:
        owner.stdout.readline()
    time.sleep(after_s)
    pids = live_worlds.processes(owner.pid)
    spaces = live_worlds.namespaces(pids) - live_worlds.namespaces([os.getpid()])
    owner.kill()
    owner.communicate()
    since = live_worlds.ticks()
    end = time.monotonic() + SETTLED_S
    while True:
        left = {name: (before[name], now) for name, now in read_state(spaces, since).items() if now != before[name]}
        if live_worlds.processes() - pids:  # other programs' worlds have congestion controls too
            left.pop(WATCHED[2], None)
        alive = live_worlds.processes(owner.pid) | {pid for pid in pids if Path(f"/proc/{pid}").exists()}
        if alive:
            left["processes"] = sorted(alive)
        if not left or time.monotonic() > end:
            return len(pids), left
        time.sleep(0.05)


def main():
    """Kill owners, as the module says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if reason := machine.look().missing:
        sys.exit(f"no live worlds: {reason}")
    draw = random.Random(arguments.seed)
    before, caught, bad = read_state(), 0, 0
    for number in range(arguments.kills):
        starting, after_s = draw.random() < STARTING, draw.uniform(0, LONGEST_S)
        processes, left = kill_owner(starting, after_s, before)
        caught += processes > 0
        if left:
            bad += 1
            print(f"kill {number} after {after_s:.3f} s: left {left}", flush=True)
    print(f"{arguments.kills} kills, {caught} of them with worlds there, {bad} left something")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
