"""Runs a piece of a test in a process and a network namespace of its own, where sockets and settings are nobody else's."""

import json
import os
import subprocess
import sys
from pathlib import Path

from netbuf_gym.plants.linux import system
from tests.helpers import loopback

CHECKOUT = Path(__file__).resolve().parents[3]


def enter() -> None:
    """This process gets a network namespace of its own, whose loopback works."""
    system.unshare(system.NEWNET if os.geteuid() == 0 else system.NEWNET | system.NEWUSER)
    loopback.up()


def run(module: str, function: str, *args: object) -> object:
    """What a function of a module of tests returns, called in a process and a network namespace of its own."""
    code = (
        "import importlib, json, sys; from tests.plants.linux import alone; alone.enter(); "
        "print(json.dumps(getattr(importlib.import_module(sys.argv[1]), sys.argv[2])(*json.loads(sys.argv[3]))))"
    )
    command = [sys.executable, "-c", code, module, function, json.dumps(args)]
    child = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=300)
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout.splitlines()[-1])
