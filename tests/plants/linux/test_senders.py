"""Trained senders installed as congestion controls: what any program's sockets do with them, and what is left behind."""

import contextlib
import errno
import hashlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from importlib import resources
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from netbuf_gym import _core
from netbuf_gym.errors import ConfigError
from netbuf_gym.plants.linux import system
from netbuf_gym.plants.linux.bpf import installed, objects, senders, struct_ops, syscalls
from netbuf_gym.zoo.integer_policy import INTERVAL_FIELDS, Dense, Network, quantise
from tests.helpers import machines
from tests.helpers.busy_machine import undisturbed
from tests.plants.linux import alone
from tests.plants.linux.test_bpf_policy import random_policy

SOURCES = Path(__file__).resolve().parents[3] / "cpp" / "bpf"
CWND, MSS = (INTERVAL_FIELDS.index(name) for name in ("cwnd", "mss"))
TCP_MAXSEG = 1448


def unique_name():
    return f"nbt_{os.urandom(4).hex()}"


def growing_policy(**options):
    """A policy that always takes the action of the largest factor."""
    task = gym.make("netbuf/CongestionWindow-v0", **options).unwrapped.engine.task
    chosen = np.eye(len(task.levels))[int(np.argmax(task.levels))]
    layer = Dense(np.zeros((len(task.levels), len(task.features) * task.history)), chosen)
    return quantise(Network([layer]), task, 0.1).tobytes()


def test_source_and_object_agree():
    digest = hashlib.sha256()
    for path in (SOURCES / "sender.bpf.c", *sorted(SOURCES.glob("*.h")), SOURCES.parent / "policy" / "policy.h"):
        digest.update(path.read_bytes())
    recorded = json.loads(resources.files("netbuf_gym.plants.linux.bpf").joinpath("sources.json").read_text())
    assert recorded["sender.bpf.o"] == digest.hexdigest(), "make bpf, and commit what it writes"


def test_what_the_object_holds():
    held = objects.load_object("sender")
    assert set(held.programs) == {"init", "release", "pkts_acked", "cong_control", "set_state", "ssthresh", "undo_cwnd"}
    assert held.maps["connections"].type == syscalls.MAP_SK_STORAGE and held.maps["connections"].entries == 0
    sizes = {"settings": senders.SETTINGS.size, "totals": installed._TOTALS.size, "rows": installed._ROW.size}
    assert {name: held.maps[name].value_bytes for name in installed.SHOWN} == sizes


@pytest.mark.parametrize("name", ["", "sixteen_letters_", "a-b", "a b", "ä", "cubic\n"])
def test_names_that_are_none(name):
    with pytest.raises(ConfigError, match="valid: 1 to 15 letters"):
        senders.check_name(name)


def test_a_name_that_the_kernel_has_is_taken():
    taken = senders.CONTROLS.read_text().split()[0]
    with pytest.raises(ConfigError, match=f"'{taken}' is taken"):
        senders.check_name(taken)


@pytest.mark.parametrize(
    "bounds, field",
    [
        ({"max_window_mb": 0}, "max_window_mb"),
        ({"max_rate_mbps": -1}, "max_rate_mbps"),
        ({"max_growth": 1}, "max_growth"),
        ({"max_window_mb": 1e4}, "max_window_mb"),
    ],
)
def test_bounds_out_of_range(bounds, field):
    with pytest.raises(ConfigError, match=f"{field} = "):
        installed.Bounds(**bounds)


def test_bounds_are_read_as_they_were_written():
    for bounds in (installed.Bounds(), installed.Bounds(0.5, 20.0, 1.5)):
        assert installed.Bounds.unpack(bounds.pack("congestion_window/ppo")) == (bounds, "congestion_window/ppo")


def test_percentiles_of_decision_times():
    times = [0] * installed.TIMES
    times[10], times[20], times[255] = 50, 49, 1
    totals = installed.Totals(0, 0, 100, 0, 0, 0, 0, tuple(times))
    assert [totals.percentile_us(percent) for percent in (50, 99, 100)] == [10.5, 20.5, 255.5]
    assert np.isnan(installed.Totals(0, 0, 0, 0, 0, 0, 0, (0,) * installed.TIMES).percentile_us(50))


def test_a_kernel_without_types_is_refused(monkeypatch):
    monkeypatch.setattr(senders, "explain_unavailable", lambda: "no BTF")
    with pytest.raises(ConfigError, match="no BTF"):
        senders.InstalledSender(unique_name(), b"")


def test_missing_privileges_are_named(monkeypatch):
    monkeypatch.setattr(senders, "explain_unavailable", lambda: "")
    monkeypatch.setattr(system, "may_register_bpf", lambda: False)
    with pytest.raises(ConfigError, match="privileges are missing; valid: CAP_SYS_ADMIN"):
        senders.InstalledSender(unique_name(), b"")


def refuse_listing():
    raise struct_ops.BpfError(errno.EPERM, "BPF links cannot be listed")


def test_listing_takes_privileges(monkeypatch):
    monkeypatch.setattr(syscalls, "list_links", refuse_listing)
    with pytest.raises(ConfigError, match="CAP_SYS_ADMIN"):
        installed.find_senders()


# ---- in a namespace of its own


def find(name):
    return next((one for one in installed.find_senders() if one.name == name), None)


@contextlib.contextmanager
def connected(control):
    """A connection over loopback whose opener has the control, and whose other end is read slowly, so that ACKs go on."""
    listener = socket.create_server(("127.0.0.1", 0))
    opener = socket.socket()
    opener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, TCP_MAXSEG)
    opener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    opener.connect(listener.getsockname())
    other, _ = listener.accept()

    def read():
        with contextlib.suppress(OSError):
            while other.recv(1 << 15):
                time.sleep(0.0005)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    opener.setblocking(False)
    try:
        yield opener
    finally:
        opener.close()
        reader.join(10)
        other.close()
        listener.close()


def send(opener, seconds, each=lambda: True):
    """Sends for a time, or until `each` is false; returns the bytes."""
    sent, end = 0, time.monotonic() + seconds
    while time.monotonic() < end and each():
        with contextlib.suppress(BlockingIOError):
            sent += opener.send(bytes(20_000))
        time.sleep(0.001)
    return sent


def look(sender, opener):
    """What the kernel holds of a socket: the latest interval; window in force, segment, decided window, decisions; action."""
    length = objects.load_object("sender").maps["connections"].value_bytes
    data = syscalls.read_element(sender._ops.maps["connections"], struct.pack("=i", opener.fileno()), length)
    numbers = np.frombuffer(data, np.int64)
    interval, own = numbers[: len(INTERVAL_FIELDS)].copy(), numbers[len(INTERVAL_FIELDS) :][:8].tolist()
    (action,) = struct.unpack_from("=I", data, 8 * (len(INTERVAL_FIELDS) + 8))
    return interval, own[0], own[1], own[3], own[5], action


def decide_beside(kind, recipe) -> dict:
    """A connection whose decisions are made again by the core; ends where a decision was missed."""
    policy = random_policy(kind, recipe)
    sender = senders.InstalledSender(unique_name(), policy)
    core = _core.IntegerPolicy(policy, 1)
    action, window = np.zeros((2, 1), np.int64)
    found: dict = {"compared": 0, "different": [], "windows": 0}
    with connected(sender.name) as opener:
        _, cwnd, mss, _, _, _ = look(sender, opener)
        interval = np.zeros((1, len(INTERVAL_FIELDS)), np.int64)
        interval[0, [CWND, MSS]] = cwnd, mss
        core.step(interval, np.array([True]), action, window)

        def compare():
            interval, _, mss, decided, decisions, taken = look(sender, opener)
            if decisions <= found["compared"]:
                return True
            if decisions > found["compared"] + 1:
                return False
            core.step(interval[None], np.array([False]), action, window)
            same = taken == action[0] and (window[0] == 0 or decided == max(window[0], mss))
            if not same:
                found["different"].append([decisions, taken, int(action[0]), decided, int(window[0])])
            found["compared"] = decisions
            found["windows"] += bool(window[0])
            return decisions < 30

        found["sent"] = send(opener, 10, compare)
        found["row"] = vars(find(sender.name).read_sockets()[0])
        found["port"] = opener.getsockname()[1]
        found["mss"] = mss
    end = time.monotonic() + 10
    while find(sender.name).read_totals().sockets and time.monotonic() < end:  # until the kernel has closed it
        time.sleep(0.05)
    totals = find(sender.name).read_totals()
    found["totals"] = {name: getattr(totals, name) for name in installed.TOTALS} | {"timed": sum(totals.times)}
    found["rows"] = len(find(sender.name).read_sockets())
    sender.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind, recipe", [("lstm", "default"), ("tanh", "robust")])
def test_a_sockets_decisions_are_the_cores_to_the_bit(kind, recipe):
    machines.needs_bpf()
    for _ in range(3):  # a machine that stops for a tenth of a second misses decisions
        found = alone.run(__name__, "decide_beside", kind, recipe)
        assert found["different"] == []
        if found["compared"] >= 10:
            break
    else:
        pytest.fail(f"of 30 decisions only {found['compared']} could be looked at")
    row, totals = found["row"], found["totals"]
    assert found["windows"] > 0 and found["sent"] > 10 * found["mss"]
    assert row["local"] == f"127.0.0.1:{found['port']}" and row["decisions"] >= found["compared"]
    assert 0 < row["window_bytes"] <= 64e6 and row["rtt_ms"] > 0 and row["rate_mbps"] > 0
    assert totals["timed"] == totals["decisions"] >= totals["windows"] > 0 and totals["time_ns"] > 0
    assert totals["sockets"] == found["rows"] == 0 < totals["opened"]


def keep_bounds() -> dict:
    """Windows and rates of sockets that would have more."""
    found = {}
    free, bound, slow = installed.Bounds(), installed.Bounds(0.01, 8.0), installed.Bounds(max_rate_mbps=8.0)
    for name, bounds, paced in (("free", free, True), ("bound", bound, True), ("unpaced", slow, False)):
        sender = senders.InstalledSender(unique_name(), growing_policy(paced=paced), bounds.pack("drawn"))
        with connected(sender.name) as opener:
            windows = []

            def watch(opener=opener, windows=windows):
                windows.append(struct.unpack_from("=I", opener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232), 80)[0])
                return True

            send(opener, 2, watch)
            pacing, _, acked = struct.unpack_from("=3Q", opener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232), 104)
            decided = [one.window_bytes for one in find(sender.name).read_sockets()]
        totals = find(sender.name).read_totals()
        found[name] = {"decided": decided, "pacing": pacing, "clamped": totals.clamped, "windows": windows, "acked": acked}
        sender.close()
    return found


@pytest.mark.slow
@undisturbed
def test_the_kernel_keeps_the_bounds():
    machines.needs_bpf()
    found = alone.run(__name__, "keep_bounds")
    free, bound = found["free"], found["bound"]
    assert max(free["decided"]) > 10_000 and free["clamped"] == 0 and free["pacing"] > bound["pacing"]
    assert 0 < max(bound["decided"]) <= 10_000 and bound["clamped"] > 0 and bound["pacing"] <= 1e6
    assert max(bound["windows"]) <= 10 < max(free["windows"])  # the initial window, from which no slow start goes on
    assert max(bound["windows"][100:]) <= 10_000 // 1400
    assert found["unpaced"]["acked"] < 2 * 2e6 < free["acked"]  # twice what 8 Mbit/s carry in two seconds


def choose_as_nobody(unrestricted) -> int:
    """The error that a process without privileges gets when it chooses a control; 0: none."""
    sender = senders.InstalledSender(unique_name(), growing_policy(), unrestricted=unrestricted)
    child = os.fork()
    if child == 0:
        status = 0
        try:
            os.setuid(65534)
            with socket.socket() as sock:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sender.name.encode())
        except OSError as error:
            status = error.errno
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sender.close()
    return status


@pytest.mark.slow
@pytest.mark.parametrize("unrestricted, status", [(False, errno.EPERM), (True, 0)])
def test_who_may_choose_it(unrestricted, status):
    machines.needs_bpf()
    machines.needs_root()
    assert alone.run(__name__, "choose_as_nobody", unrestricted) == status


def outlive() -> dict:
    """A connection that goes on when its control is removed, by another holder than this."""
    sender = senders.InstalledSender(unique_name(), random_policy("tanh", "default"))
    with connected(sender.name) as opener:
        send(opener, 0.5)
        before = sender.is_removed()
        find(sender.name).remove()
        found = {"listed": sender.name in senders.CONTROLS.read_text().split(), "told": [before, sender.is_removed()]}
        with socket.socket() as late:
            try:
                late.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sender.name.encode())
            except OSError as error:
                found["refused"] = error.errno
        decided = look(sender, opener)[4]
        found["sent"] = send(opener, 1)
        found["decided"] = look(sender, opener)[4] - decided
    sender.close()
    return found


@pytest.mark.slow
@undisturbed
def test_sockets_go_on_when_their_control_is_removed():
    machines.needs_bpf()
    machines.needs_linux(6, 11)
    found = alone.run(__name__, "outlive")
    assert not found["listed"] and found["told"] == [False, True] and found["refused"] == errno.ENOENT
    assert found["sent"] > 0 and found["decided"] > 0


@pytest.mark.slow
def test_two_of_one_name():
    machines.needs_bpf()
    policy = random_policy("tanh", "default")
    sender = senders.InstalledSender(unique_name(), policy)
    try:
        with pytest.raises(ConfigError, match="is taken"):
            senders.InstalledSender(sender.name, policy)
        assert find(sender.name) is not None
    finally:
        sender.close()


@pytest.mark.slow
def test_nothing_is_left_after_a_kill():
    machines.needs_bpf()
    code = (
        "import sys, time; from netbuf_gym.plants.linux.bpf import senders; "
        "from tests.plants.linux.test_bpf_policy import random_policy; "
        "sender = senders.InstalledSender(sys.argv[1], random_policy('tanh', 'default')); "
        "print('up', flush=True); time.sleep(60)"
    )
    name = unique_name()
    command = [sys.executable, "-c", code, name]
    child = subprocess.Popen(command, cwd=alone.CHECKOUT, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "up\n" and find(name) is not None
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    deadline = time.monotonic() + 60
    while name in senders.CONTROLS.read_text().split():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert find(name) is None


def pinned() -> list:
    """What is found of a pinned control, in a mount namespace with a BPF file system of its own, until it is removed."""
    system.unshare(0x20000)  # CLONE_NEWNS
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    sender = senders.InstalledSender(unique_name(), random_policy("tanh", "default"))
    subprocess.run(["mount", "-t", "tmpfs", "none", "/sys/fs/bpf"], check=True)
    try:
        sender.pin()
        refused = ""
    except ConfigError as error:
        refused = str(error)
    subprocess.run(["mount", "-t", "bpf", "bpf", "/sys/fs/bpf"], check=True)
    file = sender.pin()
    sender.close()
    time.sleep(0.2)
    found = find(sender.name)
    held = found is not None and found.pinned and file.exists()
    if found is not None:
        found.remove()
    left = [file.parent.exists(), sender.name in senders.CONTROLS.read_text().split()]
    stale = senders.InstalledSender(sender.name, random_policy("tanh", "default"))
    stale.pin()
    syscalls.detach_link(stale._ops.link)  # as where this file system is not seen
    stale.close()
    again = senders.InstalledSender(sender.name, random_policy("tanh", "default"))
    mistaken = find(sender.name).pinned
    again.close()
    with contextlib.suppress(ConfigError):
        installed.get_sender(sender.name)
    return [refused, held, *left, mistaken, file.exists()]


def test_a_name_with_dots_is_not_pinned():
    with pytest.raises(ConfigError, match=r"name = 'a.b' cannot be pinned|no BPF file system"):
        senders.check_pin("a.b")


@pytest.mark.slow
def test_a_pinned_control_outlives_its_process_until_it_is_removed():
    machines.needs_bpf()
    machines.needs_root()
    refused, held, folder, listed, mistaken, stale = alone.run(__name__, "pinned")
    assert "no BPF file system" in refused and held and not folder and not listed
    assert not mistaken and not stale  # a pin whose control is gone says nothing of the next one, and goes when it is asked for
