"""What tests need of a machine. Each skips the test where that is missing, with a reason that `.ci/check_skips.py` knows."""

import os
import shutil
import subprocess
from functools import lru_cache

import pytest

from netbuf_gym.plants.linux import machine, system
from netbuf_gym.plants.linux.bpf import struct_ops
from netbuf_gym.plants.linux.proxy import processes

ROOT = os.geteuid() == 0


@lru_cache
def missing() -> str:
    """Why this machine can have no live worlds; empty: it can."""
    return machine.look().missing


def needs_live_worlds() -> None:
    """Network namespaces, and devices in them."""
    if reason := missing():
        pytest.skip(f"no live worlds: {reason}")


def needs_bpf() -> None:
    """Live worlds, and a kernel that takes congestion controls of ours."""
    needs_live_worlds()
    if not system.may_register_bpf():
        pytest.skip(f"no windows in the kernel: no privileges ({system.BPF_PRIVILEGES})")
    if reason := struct_ops.explain_unavailable():
        pytest.skip(f"no windows in the kernel: {reason}")


def needs_root() -> None:
    """Root."""
    if not ROOT:
        pytest.skip("needs root")


def needs_program(*names: str) -> None:
    """Programs in the PATH."""
    for name in names:
        if shutil.which(name) is None:
            pytest.skip(f"needs {name}")


def needs_shadowsocks() -> None:
    """Its server and its local end."""
    for name in ("ss-server", "ss-local"):
        try:
            processes.find_program(name)
        except FileNotFoundError:
            pytest.skip(f"needs {name}")


def needs_user_namespaces() -> None:
    """That may be made by whoever runs the tests."""
    needs_program("unshare")
    if subprocess.run(["unshare", "-Ur", "true"], capture_output=True).returncode:
        pytest.skip("needs user namespaces")


def needs_linux(*version: int) -> None:
    """A kernel of this version or newer."""
    if struct_ops.kernel_release() < version:
        pytest.skip(f"needs Linux {'.'.join(map(str, version))}")
