"""Machines that lack something: one message that names it, and nothing left behind.

What is hidden is so for one process, which has a mount namespace of its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import netbuf_gym as nb
from netbuf_gym.plants.linux.relayed import Proxy, split_proxy_work
from netbuf_gym.plants.linux.setup import Agents, Setup
from tests.helpers import machines
from tests.helpers.machines import needs_live_worlds
from tests.plants.linux import alone

BEGIN = """
import ctypes, json, os, shutil, sys, time
sys.path.insert(0, {here!r})
import gymnasium as gym
from tests.plants.linux import live_worlds
import netbuf_gym as nb
from netbuf_gym.plants.linux import system

libc = ctypes.CDLL(None, use_errno=True)
def mount(source, target, kind, flags):
    words = [word and word.encode() for word in (source, target, kind)]
    if libc.mount(*words, ctypes.c_ulong(flags), None):
        raise OSError(ctypes.get_errno(), "mount " + target)
def alone():
    system.unshare(system.NEWNS)
    mount("none", "/", None, 1 << 14 | 1 << 18)  # MS_REC | MS_PRIVATE
def empty(folder):
    if os.path.isdir(folder):
        mount("none", folder, "tmpfs", 0)
def said(what):
    try:
        what()
    except nb.errors.ConfigError as error:
        return str(error)
def reset(**options):
    env = gym.make(**options, disable_env_checker=True)
    try:
        return env.reset(seed=1)[1]
    finally:
        env.close()
def end(*told):
    until = time.monotonic() + 60
    while live_worlds.processes(os.getpid()) and time.monotonic() < until:
        time.sleep(0.02)
    print(json.dumps([*told, len(live_worlds.processes(os.getpid()))]))

world = live_worlds.dumbbell(duration_s=1.0)
agents = {{"id": "netbuf/CongestionWindow-v0", "plant": "linux", "scenario": live_worlds.dumbbell(senders=["agent"])}}
hosts = {{"id": "netbuf/HostBuffers-v0", "scenario": "auter/local"}}
"""


def run(code, tmp_path, first=""):
    """What a process says that hides something from itself; it leaves no processes, and no files."""
    needs_live_worlds()
    machines.needs_user_namespaces()
    begin = BEGIN.format(here=str(Path(__file__).parents[3]))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", first + begin + code]
    child = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert child.returncode == 0 and child.stderr == "", child.stderr
    *told, left = json.loads(child.stdout)
    assert left == 0 and list(tmp_path.iterdir()) == []
    return told


def test_no_tun_devices(tmp_path):
    code = """
alone(); empty("/dev/net")
end(said(lambda: reset(**agents)), said(lambda: nb.simulate(world, plant="linux")))
"""
    told = run(code, tmp_path)
    assert told == ["there is no /dev/net/tun (modprobe tun; in a container: --device /dev/net/tun)"] * 2


def test_no_privileges(tmp_path):
    """Neither root's, which a program loses as it is started here, nor user namespaces."""
    first = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
assert libc.unshare(0x10000000) == 0  # CLONE_NEWUSER, while there is one thread
for name, text in (("setgroups", "deny"), ("uid_map", "0 0 1"), ("gid_map", "0 0 1")):
    open("/proc/self/" + name, "w").write(text)
open("/proc/sys/user/max_user_namespaces", "w").write("0")  # of this user namespace
assert libc.prctl(28, 3, 0, 0, 0) == 0  # PR_SET_SECUREBITS: SECBIT_NOROOT, locked
"""
    code = """
end(said(lambda: reset(**agents)), said(lambda: nb.simulate(world, plant="linux")))
"""
    why = "no more user namespaces are allowed (sysctl user.max_user_namespaces)"
    assert run(code, tmp_path, first) == [f"network namespaces cannot be made here: {why}"] * 2


def test_no_shadowsocks(tmp_path):
    code = """
alone()
for name in ("ss-server", "ss-local"):
    while found := shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/bin"):
        mount("/dev/null", found, None, 1 << 12)  # MS_BIND
end(said(lambda: reset(**hosts, plant={"name": "linux", "proxy": "shadowsocks"})))
"""
    assert run(code, tmp_path) == ["ss-server is not installed (Debian: apt install shadowsocks-libev)"]


@pytest.mark.slow
def test_no_types_of_the_kernels(tmp_path):
    """Windows are kept from user space then, which is said, and the world runs."""
    code = """
alone(); empty("/sys/kernel/btf")
env = gym.make(**agents, disable_env_checker=True)
info = env.reset(seed=1)[1]
failures = [env.step(env.action_space.sample())[4].get("failure") for _ in range(3)]
env.close()
end(info["plant"]["window"], failures)
"""
    why = "no /sys/kernel/btf/vmlinux: the kernel was built without CONFIG_DEBUG_INFO_BTF"
    assert run(code, tmp_path) == [f"from user space, within the kernel's Reno ({why})", [None] * 3]


def port_in_use(proxy):
    """What a world says whose proxy's port somebody has at the proxy's node; for `alone.run`."""
    import socket

    from netbuf_gym.plants.linux.proxy import workload
    from netbuf_gym.plants.linux.world import LiveWorld

    world = nb.tasks.get("host_buffers").rules().control(nb.scenarios.get("auter/local"))
    bare, work = split_proxy_work(world, Proxy(proxy))
    message = Setup(bare, Agents("host")).message
    work = {**work, "control": "cubic"}
    live = LiveWorld({**message, "work": work, "seed": 1, "places": [0]})
    said = None
    try:
        node = live.nodes[message["routes"][0]["sender_node"]]
        node.enter()
        with socket.create_server((f"10.{node.number}.0.0", workload.PORT)):
            live._begin()
    except RuntimeError as error:
        said = str(error)
    finally:
        live.close()
    return said, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("proxy", "program", "why"),
    [("plain", "relay", "Address already in use"), ("shadowsocks", "ss-server", "failed to bind address")],
)
def test_a_port_in_use(proxy, program, why):
    needs_live_worlds()
    machines.needs_user_namespaces()
    if proxy == "shadowsocks":
        machines.needs_shadowsocks()
    said, left = alone.run(__name__, "port_in_use", proxy)
    assert said.startswith(f"{program}: ") and why in said and "\n" not in said
    assert left == []
