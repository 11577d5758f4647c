"""Kill tuners at random moments and look what the next start brings back: `python -m tools.kills.live_tuners --kills 100`.

Each tuner changes settings of a network namespace, twenty times a second (`fast_tuner.py`) or as `netbuf-gym live tune --apply`
does. It is killed (SIGKILL) at any moment from its first import on: while it starts, between and within changes, or while it
brings everything back after a SIGTERM. What comes next, `live restore` or another `live tune --apply`, is not told where the
journal was; after it each setting must have its first value again, and no journal, lock or half-written file may be left.
Exits with 1, and says what, where one has not.
"""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from netbuf_gym.plants.linux import machine
from tests.helpers.namespaces import Namespace

NAMES = ("tcp_rmem", "tcp_wmem", "tcp_limit_output_bytes", "tcp_notsent_lowat")
FAST = Path(__file__).resolve().parents[2] / "tests" / "host" / "fast_tuner.py"
DEFAULT = "/var/lib/netbuf-gym"
STARTING, ENDING, SLOW = 0.2, 0.25, 0.2
"""Shares of the kills that come while a tuner starts, and while it ends; share of the tuners that are the command itself."""
STARTS_IN_S, RUNS_S, ENDS_IN_S = 2.0, 0.5, 0.1
COMMAND = ("tune", "tcp_wmem_max_bytes=6000000", "tcp_rmem_max_bytes=7000000", "--apply", "--interval", "3")
NEXT = (("restore",), ("tune", "controller=keep", "--apply", "--interval", "3", "--duration", "3"))


def read_settings(namespace):
    """Read the settings that tuners change."""
    return {name: namespace.get(name) for name in NAMES}


def list_left_files(folder, namespace):
    """List files of tuners that are there, in a folder and in the default place."""
    default = namespace.run("sh", "-c", f"ls -A {DEFAULT} 2>/dev/null").stdout.split()
    return sorted(one.name for one in folder.iterdir()) + default


def kill_tuner(namespace, folder, draw):
    """Start a tuner, and kill it; return how, in words."""
    given = [] if draw.random() < 0.5 else [str(folder / "live.json")]
    slow = draw.random() < SLOW
    if slow:
        process = namespace.start(*COMMAND, *(["--journal", *given] if given else []))
    else:
        argv = [*namespace.enter, sys.executable, FAST, *given]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    when = draw.random()
    if when < STARTING:
        how, after_s = "starting", draw.uniform(0, STARTS_IN_S)
    else:
        for line in process.stdout:
            if "set net" in line if slow else line.strip().isdigit():
                break
        how, after_s = "running", draw.uniform(0, RUNS_S)
        if when < STARTING + ENDING:
            time.sleep(after_s)
            process.send_signal(signal.SIGTERM)
            how, after_s = "ending", draw.uniform(0, ENDS_IN_S)
    time.sleep(after_s)
    process.kill()
    process.communicate()
    return f"{'command' if slow else 'fast'}, {'given' if given else 'default'} journal, {how} for {after_s:.3f} s"


def main():
    """Kill tuners, as the module says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if reason := machine.look().missing:
        sys.exit(f"no live worlds: {reason}")
    draw, caught, bad = random.Random(arguments.seed), 0, 0
    with Namespace() as namespace, tempfile.TemporaryDirectory() as name:
        folder, original = Path(name), read_settings(namespace)
        for number in range(arguments.kills):
            how = kill_tuner(namespace, folder, draw)
            changed = read_settings(namespace) != original
            caught += changed
            words = draw.choice(NEXT)
            done = namespace.live(*words)
            wrong = {name: value for name, value in read_settings(namespace).items() if value != original[name]}
            rest = list_left_files(folder, namespace)
            if wrong or rest or done.returncode:
                bad += 1
                print(f"kill {number} ({how}), then {words[0]}: {wrong} {rest} {done.returncode} {done.stderr}", flush=True)
            print(f"{number + 1}: {how}; {'changed' if changed else 'as it was'}; {words[0]}", file=sys.stderr)
    print(f"{arguments.kills} kills, {caught} of them with settings changed, {bad} not brought back")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
