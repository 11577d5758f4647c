"""Hosts on the live plant: what an agent sets is set, what is measured is measured, through plain sockets and real proxies."""

import math
import os
import re
import signal
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym  # noqa: F401  # registers the environments
from netbuf_gym import scenarios, tasks
from netbuf_gym.errors import ConfigError
from netbuf_gym.plants.linux.kinds import host as live
from netbuf_gym.plants.linux.proxy import processes
from netbuf_gym.plants.linux.proxy.workload import MOST_FAILURES, Workload
from netbuf_gym.plants.linux.relayed import Proxy, split_proxy_work
from netbuf_gym.tasks.host_buffers.settings import CHOICES
from netbuf_gym.tasks.host_buffers.telemetry import CONTROLS, TELEMETRY
from tests.helpers import machines
from tests.helpers.busy_machine import undisturbed

PLAIN = Proxy("plain")
WORLD = {"name": "auter/local", "extra_ms": 16.0, "rate_mbps": 30.0, "duration_s": 4.0}


@pytest.fixture
def possible():
    machines.needs_live_worlds()


def made(proxy=None, **world):
    plant = {"name": "linux", "proxy": proxy} if proxy else "linux"
    kwargs = {"plant": plant, "interval_s": 2.0, "scenario": {**WORLD, **world}, "recipe": "direct"}
    return gym.make("netbuf/HostBuffers-v0", disable_env_checker=True, **kwargs)


def telemetry(env):
    return {name: float(value[0]) for name, value in env.unwrapped.engine.step_info("telemetry").items()}


def test_names_are_those_of_the_kind():
    assert live.TELEMETRY == TELEMETRY.names
    assert live.CONTROLS == tuple(one.name for one in CONTROLS)
    assert live.CHOICES == CHOICES


@pytest.mark.slow
@undisturbed
def test_what_is_set_is_set_and_acts(possible):
    env = made()
    _, info = env.reset(seed=1)
    assert info["plant"]["window_clamp"] == "none: the hosts receive no connections"
    engine = env.unwrapped.engine
    told = {}
    for most in (16_384, 4_194_304):
        control = engine.plant.control
        control.fill(math.nan)
        for name, value in {"tcp_wmem_max_bytes": most, "tcp_wmem_default_bytes": 16_384, "ring_packets": 100}.items():
            control[0, 0, live.CONTROLS.index(name)] = value
        engine.plant.apply(control)
        advance = engine.plant.advance(2_000_000_000)
        assert not advance.failures
        row = dict(zip(live.TELEMETRY, engine.plant.telemetry[0, 0].tolist(), strict=True))
        assert row["tcp_wmem_max_bytes"] == most and row["ring_packets"] == 100
        told[most] = row
    small, large = told.values()
    assert small["total_throughput_bps"] < 0.6 * large["total_throughput_bps"]  # 16 KiB in 20 ms is no 30 Mbit/s
    assert large["send_buffer_bytes"] > 2 * small["send_buffer_bytes"]
    assert large["total_throughput_bps"] == pytest.approx(29e6, rel=0.1)
    assert 0.0199 < large["rtt_min_s"] < 0.035 and small["interrupted_s"] > 0 == large["interrupted_s"]
    assert small["memory_bytes"] < large["memory_bytes"]
    assert large["connections"] == 1 and large["flows_sending"] == 1 and small["connections_opened"] == 1
    counted = engine.plant.report(0)[0]
    assert counted["sent_bytes"] == pytest.approx(small["sent_bytes"] + large["sent_bytes"]) and counted["rtt_count"] > 100
    env.close()


@pytest.mark.parametrize("have", [["reno", "cubic", "bbr"], ["reno", "cubic"]])
def test_a_choice_that_the_kernel_lacks_is_named(tmp_path, monkeypatch, have):
    monkeypatch.setattr(live, "AVAILABLE", tmp_path / "available")
    live.AVAILABLE.write_text(" ".join(have) + "\n")
    live._require_choices(0)
    if "bbr" in have:
        live._require_choices(0b011)
        with pytest.raises(OSError, match=r"no vegas loaded; valid: controls = \['cubic', 'bbr'\]"):
            live._require_choices(0b111)
    else:
        with pytest.raises(OSError, match="valid: a kernel with cubic and bbr"):
            live._require_choices(0b001)


@pytest.mark.slow
@pytest.mark.parametrize("proxy", [None, "plain"])
def test_the_congestion_control_of_connections_that_stand(possible, proxy):
    """Of what `ss` would show, and what leaves on: BBR, CUBIC again, and a slow start anew."""
    if "bbr" not in live.AVAILABLE.read_text().split():
        pytest.skip("this kernel has no BBR loaded")
    plant = {"name": "linux", "proxy": proxy} if proxy else "linux"
    world = {**WORLD, "duration_s": 8.0}
    kwargs = {"plant": plant, "interval_s": 2.0, "scenario": world, "recipe": "control", "controls": ["cubic", "bbr"]}
    env = gym.make("netbuf/HostBuffers-v0", disable_env_checker=True, actions="multi", **kwargs)
    env.reset(seed=1)
    same = int(env.unwrapped.engine.task.keep_action[0])
    for choice in (2, 0, 1, 3):  # bbr, as it is, cubic, anew
        _, _, _, _, info = env.step([same, choice])
        assert "failure" not in info, info
        assert telemetry(env)["total_throughput_bps"] > 15e6
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize("proxy", ["plain", "shadowsocks"])
def test_through_a_proxy(possible, proxy):
    if proxy == "shadowsocks":
        machines.needs_shadowsocks()
    env = made(proxy, traffic="mixed")
    env.reset(seed=1)
    rows = []
    for _ in range(2):
        _, _, _, _, info = env.step(env.action_space.sample() * 0 + 0.5)
        assert "failure" not in info, info
        rows.append(telemetry(env))
    assert rows[-1]["total_throughput_bps"] > 15e6 and rows[0]["connections_opened"] > 3
    report = env.unwrapped.engine.report(0)[0]
    assert report["flows_completed"] > 2 and np.isfinite(report["latency_ms"])
    env.close()


@pytest.mark.slow
def test_windows_through_a_proxy_and_its_death(possible):
    env = made("plain", duration_s=20.0)
    _, info = env.reset(seed=1)
    assert info["plant"]["window_clamp"] == "connections of the proxy that stand, looked for every 0.25 s"
    plant = env.unwrapped.engine.plant
    control = plant.control
    control.fill(math.nan)
    control[0, 0, live.CONTROLS.index("window_clamp_bytes")] = 20_000
    plant.apply(control)
    assert not plant.advance(2_000_000_000).failures
    os.kill(child_of_mine("proxy/relay.py"), signal.SIGKILL)
    assert plant.advance(2_000_000_000).failures == {0: "relay: ended with status -9"}
    env.close()


def child_of_mine(script):
    """The process of a script that a live world of this process has started."""
    helpers = set()
    for _ in range(2):  # guards, then helpers
        helpers |= {pid for pid, parent, _ in processes_now() if parent in helpers | {os.getpid()}}
    (found,) = (pid for pid, parent, words in processes_now() if parent in helpers and script in words)
    return found


def processes_now():
    """(number, parent, arguments) of each."""
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
                yield int(path.name), parent, (path / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue


def test_a_missing_proxy_is_named(possible, monkeypatch):
    monkeypatch.setattr(processes.shutil, "which", lambda *words, **kwargs: None)
    with pytest.raises(FileNotFoundError, match=r"ss-server is not installed \(Debian: apt install shadowsocks-libev\)"):
        processes.find_program("ss-server")


@pytest.mark.slow
def test_ports_in_use_and_dead_proxies(namespace):
    code = """
import os
from netbuf_gym.plants.linux.proxy.processes import *
here = os.open("/proc/self/ns/net", os.O_RDONLY)
target = start_script("target", here, "127.0.0.1", 9000)
try:
    start_script("relay", here, "127.0.0.1", 9000, "127.0.0.1", 9000)
except RuntimeError as error:
    print(*str(error).split())
with Shadowsocks(here, here, "127.0.0.1") as first:
    assert first.check(("127.0.0.1", 9000)) < 5
    try:
        Shadowsocks(here, here, "127.0.0.1").check(("127.0.0.1", 9000))
    except RuntimeError as error:
        print(*str(error).split())
    first.programs[1].process.kill()
    try:
        first.check(("127.0.0.1", 9000))
    except RuntimeError as error:
        print(*str(error).split())
print(target.alive); target.close(); print(target.alive)
"""
    machines.needs_root()  # enters network namespaces
    machines.needs_shadowsocks()
    said = namespace.python(code).splitlines()
    assert "relay: " in said[0] and "Address already in use" in said[0]
    assert said[1].startswith(("ss-server: ", "ss-local: ")), "whichever died first"
    assert re.search("failed to bind|Address already in use", said[1])
    assert said[2].startswith("ss-local: ") and said[3:] == ["True", "False"]


def test_a_proxy_that_serves_nobody_fails_its_world():
    workload = Workload.__new__(Workload)
    workload._received = workload._failures = 0
    told = {"received_bytes": 0, "why": "Connection refused"}
    workload._judge({**told, "failures": MOST_FAILURES - 1})
    with pytest.raises(RuntimeError, match="through the proxy: 3 connections have failed, the last: Connection refused"):
        workload._judge({**told, "failures": MOST_FAILURES})
    workload._judge({**told, "failures": 10 * MOST_FAILURES, "received_bytes": 1})  # some of it comes
    with pytest.raises(RuntimeError, match="3 connections have failed"):
        workload._judge({**told, "failures": 11 * MOST_FAILURES, "received_bytes": 1})


def test_worlds_that_no_proxy_can_carry():
    rules = tasks.get("host_buffers").rules()
    for own in ({"explicit_bytes": 65536}, {"size_bytes": "mixed", "memory_bytes": 10**6}):
        world = rules.control(scenarios.get("auter/local", **own))
        if "explicit_bytes" in own:
            with pytest.raises(ConfigError, match="sndbuf_bytes = 65536; valid with a proxy on plant 'linux': None"):
                split_proxy_work(world, PLAIN)
        else:
            bare, work = split_proxy_work(world, PLAIN)
            assert bare.traffic is None and len(bare.flows) == 1 and work["arrivals_per_s"] > 0 and len(work["sizes"][0]) == 10
    assert split_proxy_work(rules.control(scenarios.get("auter/local")), PLAIN)[1]["bulk"] == [{"start_s": 0.0}]


def test_a_relay_of_the_scenarios_is_the_proxy():
    rules = tasks.get("host_buffers").rules()
    own, through = (
        split_proxy_work(rules.control(scenarios.get("auter/local", traffic="mixed", relay_bytes=relay_bytes)), PLAIN)
        for relay_bytes in (None, 65536)
    )
    assert own[1] == through[1] and own[0].flows == through[0].flows


@pytest.mark.release
def test_pages_of_several_objects(possible):
    pages = {"name": "plain", "page": [3, 5], "think_s": 0.05}
    work = split_proxy_work(tasks.get("host_buffers").rules().control(scenarios.get("auter/local")), Proxy.parse(pages))[1]
    assert work["page"] == [3, 5] and work["think_s"] == 0.05
    told = {}
    for proxy in ("plain", pages):
        env = made(proxy, traffic="short", load=0.3)
        env.reset(seed=1)
        rows = []
        for _ in range(2):
            *_, info = env.step(env.action_space.sample() * 0 + 0.5)
            assert "failure" not in info, info
            rows.append(telemetry(env))
        opened = sum(row["connections_opened"] for row in rows)
        told[str(proxy)] = env.unwrapped.engine.report(0)[0]["flows_completed"], opened
        env.close()
    (alone, connections), (together, fewer) = told.values()
    assert 10 < alone <= connections + 2  # told each second
    assert together > 10 and together > 1.5 * fewer


@pytest.mark.parametrize(
    ("proxy", "said"),
    [
        ("none", "proxy = 'none'"),
        ({"page": [1, 2]}, r"proxy = \{'page': \[1, 2\]\}; valid: name, and optionally page and think_s"),
        ({"name": "plain", "pages": 3}, "valid: name, and optionally page and think_s"),
        ({"name": "plain", "page": [3, 2]}, r"proxy\.page\[1\] = 2"),
        ({"name": "plain", "page": [3]}, r"proxy\.page = \[3\]; valid: two numbers"),
        ({"name": "plain", "think_s": -1}, r"proxy\.think_s = -1"),
    ],
)
def test_proxies_are_checked(proxy, said):
    with pytest.raises(ConfigError, match=said):
        made(proxy)
