"""Kills commands at random moments and gives them again: every artefact is whole, and the figures those of an undisturbed run.

    python tests/kills/run.py --command evaluate --kills 3
    python tests/kills/run.py --kills 30 --output tests/data/kills.json

Exit status: 0 all is whole, 1 something was not.
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

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # of threads, a fork keeps one
    os.environ[variable] = "1"
os.environ.setdefault("MPLBACKEND", "Agg")

from killing_cases import kill  # noqa: E402

from netbuf_gym.files import write_json  # noqa: E402
from netbuf_gym.version import __version__  # noqa: E402

COMMANDS = tuple(sorted(path.stem.removeprefix("kill_") for path in HERE.glob("kill_*.py")))


def main() -> int:
    """Kills; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--command", choices=COMMANDS, action="append", help="may be repeated (default: all)")
    parser.add_argument("--kills", type=int, default=30, help="commands killed, of each kind (default: 30)")
    parser.add_argument("--seed", type=int, default=1, help="(default: 1)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write what was found as JSON")
    given = parser.parse_args()
    found = {}
    for command in given.command or COMMANDS:
        with tempfile.TemporaryDirectory(prefix="netbuf-kills-") as folder:
            job = importlib.import_module(f"kill_{command}").JOB
            found[command] = kill(job, given.kills, given.seed, Path(folder))
        print(command, json.dumps(found[command], indent=1), flush=True)
    if given.output is not None:
        about = {
            "schema": "netbuf-gym/kills/1",
            "netbuf_gym": __version__,
            "date": time.strftime("%Y-%m-%d"),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
            "seed": given.seed,
        }
        write_json(given.output, {**about, "commands": found})
    return 1 if any(one["damage"] for one in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
