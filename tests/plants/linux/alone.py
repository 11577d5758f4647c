"""Runs a piece of a test in a process and a network namespace of its own, where sockets and settings are nobody else's."""

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from netbuf_gym.plants.linux import system
from netbuf_gym.plants.linux.bpf import struct_ops

HERE = Path(__file__).resolve().parent
SIOCSIFFLAGS, IFF_UP = 0x8914, 1


def needs_namespaces() -> None:
    """Skips the test, with the reason, where this process may not make a network namespace."""
    if os.geteuid() != 0:
        pytest.skip("not root: no network namespace of its own")
    code = "import alone; alone.enter()"
    child = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True)
    if child.returncode:
        pytest.skip(f"no network namespace: {child.stderr.decode().strip().splitlines()[-1]}")


def needs_bpf() -> None:
    """Skips the test, with the reason, where no congestion control can be registered."""
    if reason := struct_ops.unavailable():
        pytest.skip(reason)
    needs_namespaces()


def enter() -> None:
    """This process gets a network namespace of its own, whose loopback works."""
    system.unshare(system.NEWNET)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def run(module: str, function: str, *args: object) -> object:
    """What a function of a module beside this one returns, called in a process and a network namespace of its own."""
    code = (
        "import alone, importlib, json, sys; alone.enter(); "
        "print(json.dumps(getattr(importlib.import_module(sys.argv[1]), sys.argv[2])(*json.loads(sys.argv[3]))))"
    )
    command = [sys.executable, "-c", code, module, function, json.dumps(args)]
    child = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=60)
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout.splitlines()[-1])
