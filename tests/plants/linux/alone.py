"""Runs a piece of a test in a process and a network namespace of its own, where sockets and settings are nobody else's."""

import json
import os
import subprocess
import sys
from pathlib import Path

import loopback

from netbuf_gym.plants.linux import system

HERE = Path(__file__).resolve().parent
PATHS = os.pathsep.join([str(HERE), str(HERE.parents[1])])
"""Where modules of tests are, for a process that is no pytest."""


def enter() -> None:
    """This process gets a network namespace of its own, whose loopback works."""
    system.unshare(system.NEWNET if os.geteuid() == 0 else system.NEWNET | system.NEWUSER)
    loopback.up()


def run(module: str, function: str, *args: object) -> object:
    """What a function of a module beside this one returns, called in a process and a network namespace of its own."""
    code = (
        "import alone, importlib, json, sys; alone.enter(); "
        "print(json.dumps(getattr(importlib.import_module(sys.argv[1]), sys.argv[2])(*json.loads(sys.argv[3]))))"
    )
    command = [sys.executable, "-c", code, module, function, json.dumps(args)]
    environment = {**os.environ, "PYTHONPATH": PATHS}
    child = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, timeout=60)
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout.splitlines()[-1])
