"""Kills commands at random moments and gives them again: every artefact is whole, and the figures those of an undisturbed run.

    python -m tools.kills --command evaluate --kills 3
    python -m tools.kills --command train --command evaluate --kills 30 --output build/kills.json

What is in the file --output of other commands stays. Exit status: 0 all is whole, 1 something was not.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # of threads, a fork keeps one
    os.environ[variable] = "1"
os.environ.setdefault("MPLBACKEND", "Agg")

from netbuf_gym.utils.files import write_json  # noqa: E402
from netbuf_gym.version import __version__  # noqa: E402
from tools.kills.killing import kill  # noqa: E402

SCHEMA = "netbuf-gym/kills/2"
COMMANDS = ("evaluate", "reproduce", "train")


def main() -> int:
    """Kill, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--command", choices=COMMANDS, action="append", help="may be repeated (default: all)")
    parser.add_argument("--job", help="of a command this one alone, such as a learner of train (default: all in turn)")
    parser.add_argument("--kills", type=int, default=30, help="of each command (default: 30)")
    parser.add_argument("--seed", type=int, default=1, help="(default: 1)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write what was found as JSON")
    given = parser.parse_args()
    if given.kills < 1:
        parser.error("--kills is less than 1")
    damaged = False
    for command in given.command or COMMANDS:
        jobs = importlib.import_module(f"tools.kills.kill_{command}").JOBS
        chosen = [job for job in jobs if given.job in (None, job.name)]
        if not chosen:
            parser.error(f"--job {given.job} is none of {command}; valid: {', '.join(job.name for job in jobs)}")
        print(f"{command}:", flush=True)
        with tempfile.TemporaryDirectory(prefix="netbuf-kills-") as folder:
            os.environ["TMPDIR"] = tempfile.tempdir = folder  # where commands that are killed may leave something
            try:
                found = kill(chosen, given.kills, given.seed, Path(folder))
            finally:
                os.environ.pop("TMPDIR")
                tempfile.tempdir = None
        damaged |= bool(found["damage"])
        if given.output is not None:
            write_found(given.output, command, {**describe_run(given.seed), **found})
    return 1 if damaged else 0


def describe_run(seed: int) -> dict[str, object]:
    """Describe what the kills were made with."""
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"
    return {"netbuf_gym": __version__, "date": time.strftime("%Y-%m-%d"), "machine": machine, "seed": seed}


def write_found(path: Path, command: str, found: dict[str, object]) -> None:
    """Put what was found into a file, beside what is there of other commands."""
    before = json.loads(path.read_text()) if path.is_file() else {}
    others = before["commands"] if before.get("schema") == SCHEMA else {}
    write_json(path, {"schema": SCHEMA, "commands": {**others, command: found}})


if __name__ == "__main__":
    sys.exit(main())
