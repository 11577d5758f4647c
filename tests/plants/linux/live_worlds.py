"""What tests of live worlds have in common: small worlds, and what is left of them."""

import math
import os
from pathlib import Path

import netbuf_gym as nb
from netbuf_gym.plants.linux.process import Process
from netbuf_gym.plants.linux.setup import Agents, Setup

BOOT = "netbuf_gym/plants/linux/boot.py"


def dumbbell(**changes):
    """A small world of 20 Mbit/s and 20 ms."""
    given = {"rate_mbps": 20, "rtt_ms": 20, "buffer_packets": 60, "senders": ["cubic"], "duration_s": 2.0}
    return nb.scenarios.dumbbell(**{**given, **changes})


def made(scenario, agents=None, **more):
    """A process with a world that is to run the scenario."""
    process = Process()
    process.ask({**Setup(scenario, agents or Agents()).message, "seed": 1, "places": [], **more})
    return process


def started(scenario, agents=None, **more):
    """A process with a world that runs the scenario, which has begun."""
    process = made(scenario, agents, **more)
    step(process, 0.05)
    return process


def step(process, seconds):
    """Runs its world on."""
    return process.ask({"do": "step", "interval_ns": round(seconds * 1e9), "until": "interval", "most": 1, "control": None})


def processes(of=None):
    """Processes of live worlds, by their number: all on this machine, or those that serve a owner, children included."""
    found = set()
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                arguments = (path / "cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            if any(BOOT in argument for argument in arguments) and (of is None or str(of) in arguments[-2:]):
                found.add(int(path.name))
    return found


def namespaces(pids):
    """The network namespaces of processes, as far as these are there."""
    found = set()
    for pid in pids:
        try:
            found.add(os.readlink(f"/proc/{pid}/ns/net"))
        except OSError:
            continue
    return found


def in_use(spaces, since=math.inf):
    """Those of these namespaces that some process is in which began before `since` (ticks): their numbers are given anew."""
    here = namespaces(int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and began(path) <= since)
    return here & spaces


def began(process):
    """When a process (a path of /proc) began, in clock ticks since the machine did; never, of one that is gone."""
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return math.inf


def ticks():
    """The time in clock ticks since the machine began."""
    return int(float(Path("/proc/uptime").read_text().split()[0]) * os.sysconf("SC_CLK_TCK"))
