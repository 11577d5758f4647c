"""Kernel sockets whose congestion window is set from user space."""

import ctypes
import errno
import hashlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress
from importlib import resources
from pathlib import Path

import pytest

from netbuf_gym.plants.linux.bpf import objects, struct_ops, windows
from tests.helpers import machines
from tests.plants.linux import alone

SOURCES = Path(__file__).resolve().parents[3] / "cpp" / "bpf"
CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27


@pytest.mark.parametrize("name", sorted(windows.CONTROLS.values()))
def test_source_and_object_agree(name):
    digest = hashlib.sha256()
    for path in (SOURCES / f"{name}.bpf.c", *sorted(SOURCES.glob("*.h"))):
        digest.update(path.read_bytes())
    recorded = json.loads(resources.files("netbuf_gym.plants.linux.bpf").joinpath("sources.json").read_text())
    assert recorded[f"{name}.bpf.o"] == digest.hexdigest(), "make bpf, and commit what it writes"


@pytest.mark.parametrize("name", sorted(windows.CONTROLS.values()))
def test_what_an_object_holds(name):
    held = objects.load_object(name)
    assert set(held.programs) == {"init", "pkts_acked", "cong_control", "set_state", "ssthresh", "undo_cwnd"}
    assert held.maps["slots"].value_bytes == windows.ROW_BYTES
    assert held.maps["keys"].key_bytes == 8


def test_no_object_is_refused():
    with pytest.raises(ValueError, match="ELF"):
        objects.parse_object(b"not an object at all, but long enough to have a header of sixty-four bytes")


# ---- in a namespace of its own


def window_in_force(control: str) -> dict:
    """A connection that nobody reads: what the socket and its row say after a window of 40000 bytes was set."""
    steered = windows.SteeredSockets(control, 4)
    listener = socket.create_server(("127.0.0.1", 0))
    sock = socket.socket()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1448)
    number = steered.steer(sock)
    sock.connect(listener.getsockname())
    other, _ = listener.accept()
    sock.setblocking(False)
    other.setblocking(False)
    found: dict = {"name": steered.name, "listed": steered.name in CONTROLS.read_text().split()}
    for target in (0, 40_000, 5000):
        if target:
            set_s = []
            for _ in range(20):
                began = time.thread_time()
                steered.set_window(number, target)
                set_s.append(time.thread_time() - began)
            found["set_s"] = min(set_s)
        end, read = time.monotonic() + 0.1, 0
        while time.monotonic() < end:
            try:
                sock.send(bytes(65536))
            except BlockingIOError:
                select.select([other], [], [], 0.01)
            try:
                read += len(other.recv(1 << 20))
            except BlockingIOError:
                pass
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
        found[f"cwnd_{target}"] = struct.unpack_from("=I", info, 80)[0]
        found[f"read_{target}"] = read
    found["mss"] = struct.unpack_from("=I", info, 16)[0]
    found["row"] = steered.read_row(number)
    steered.close()
    found["still_listed"] = steered.name in CONTROLS.read_text().split()
    return found


@pytest.mark.slow
def test_the_window_is_what_was_set():
    machines.needs_bpf()
    found = alone.run(__name__, "window_in_force", "agent")
    row, mss = found["row"], found["mss"]
    assert found["listed"] and not found["still_listed"]
    assert found["cwnd_0"] == 10  # before the first decision: what connections begin with
    assert found["cwnd_40000"] == 40_000 // mss
    assert found["cwnd_5000"] == 5000 // mss
    assert row["mss"] == mss and row["established"] == 1 and row["cwnd"] == 5000 // mss
    assert row["acks"] > 10 and row["rtt_count"] > 10
    assert 0 < row["rtt_least_us"] <= row["rtt_sum_us"] / row["rtt_count"]
    assert row["delivered"] * mss > 0.9 * (found["read_0"] + found["read_40000"] + found["read_5000"])
    assert row["in_flight_sum"] / row["acks"] < 30
    assert found["set_s"] < 1e-3


@pytest.mark.slow
def test_slow_start_and_then_a_window_that_never_binds():
    machines.needs_bpf()
    found = alone.run(__name__, "window_in_force", "receiver_driven")
    row = found["row"]
    assert row["acks"] > 10
    assert row["cwnd"] > 10
    row = alone.run(__name__, "after_a_time_out")
    assert row["timeouts"] >= 1 and row["ssthresh"] < 1000  # half of what was in flight
    assert row["cwnd"] >= max(row["ssthresh"], 64)  # slow start is over, and twice the receiver's window never binds


def after_a_time_out() -> dict:
    """The row of a receiver's sender after everything was lost for a while, and slow start has come to its threshold again."""
    steered = windows.SteeredSockets("receiver_driven", 1)
    listener = socket.create_server(("127.0.0.1", 0))
    sock = socket.socket()
    number = steered.steer(sock)
    sock.connect(listener.getsockname())
    other, _ = listener.accept()
    drop_all = struct.pack("=HBBI", 0x06, 0, 0, 0)  # of classic BPF: take no byte of any packet
    place = ctypes.create_string_buffer(drop_all)
    for begin, enough in ((True, lambda row: row["timeouts"]), (False, lambda row: row["cwnd"] >= row["ssthresh"])):
        if begin:
            other.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(place)))
        else:
            other.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
        end = time.monotonic() + 20
        while not enough(steered.read_row(number)) and time.monotonic() < end:
            for one, what in ((sock, lambda: sock.send(bytes(65536))), (other, lambda: other.recv(1 << 20))):
                one.setblocking(False)
                with suppress(BlockingIOError):
                    what()
            time.sleep(0.001)
    row = steered.read_row(number)
    steered.close()
    return row


@pytest.mark.slow
def test_what_is_not_steered_keeps_its_control():
    """A socket that never was given a row runs the control all the same: its window stays what it began with."""
    machines.needs_bpf()
    assert alone.run(__name__, "without_a_row") == 10


def without_a_row() -> int:
    steered = windows.SteeredSockets("agent", 1)
    with socket.socket() as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, steered.name.encode())
        listener = socket.create_server(("127.0.0.1", 0))
        sock.connect(listener.getsockname())
        other, _ = listener.accept()
        for _ in range(100):
            sock.send(bytes(1000))
            other.recv(1000)
        return struct.unpack_from("=I", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232), 80)[0]


def test_rows_are_given_back():
    machines.needs_bpf()
    assert alone.run(__name__, "rows_given_out") == [0, "at most that many", 0]


def rows_given_out() -> list:
    steered = windows.SteeredSockets("agent", 1)
    first, second = socket.socket(), socket.socket()
    number = steered.steer(first)
    try:
        steered.steer(second)
        message = ""
    except OSError as error:
        message = str(error).rpartition(": ")[2]
    steered.release(number)
    return [number, message, steered.steer(second)]


def test_nothing_stays_registered_after_a_kill():
    machines.needs_bpf()
    code = (
        "from netbuf_gym.plants.linux.bpf.windows import SteeredSockets; import time; "
        "steered = SteeredSockets(); print(steered.name, flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    name = child.stdout.readline().strip()
    assert name in CONTROLS.read_text().split()
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    deadline = time.monotonic() + 60
    while name in CONTROLS.read_text().split():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_two_at_a_time():
    machines.needs_bpf()
    first, second = windows.SteeredSockets("agent", 1), windows.SteeredSockets("agent", 1)
    try:
        assert first.name != second.name
        assert {first.name, second.name} <= set(CONTROLS.read_text().split())
    finally:
        first.close()
        second.close()


def test_without_the_kernels_types(monkeypatch):
    monkeypatch.setattr(struct_ops, "KERNEL_TYPES", "/nowhere/vmlinux")
    struct_ops.kernel_structs.cache_clear()
    try:
        assert "CONFIG_DEBUG_INFO_BTF" in struct_ops.explain_unavailable()
        with pytest.raises(FileNotFoundError, match="CONFIG_DEBUG_INFO_BTF"):
            windows.SteeredSockets("agent", 1)
    finally:
        struct_ops.kernel_structs.cache_clear()


def test_refused_by_the_kernel(monkeypatch):
    def refuse(*args, **more):
        raise struct_ops.BpfError(errno.EPERM, "BPF map 'slots' cannot be made")

    monkeypatch.setattr("netbuf_gym.plants.linux.bpf.syscalls.create_map", refuse)
    machines.needs_bpf()
    with pytest.raises(struct_ops.BpfError, match="cannot be made"):
        windows.SteeredSockets("agent", 1)
