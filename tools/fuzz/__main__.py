"""Fuzzing: random scenarios, arguments, files and actions, and what must hold whatever they are.

    python -m tools.fuzz --seconds 60 --build build/sanitize
    python -m tools.fuzz --case 7:scenarios:1234 --build build/sanitize      one case again, in this process
    python -m tools.fuzz --seconds 1800 --seed 7 --output build/fuzz.json

Cases run in child processes, so that a crash, a hang or a child that takes too much memory is a finding like another, and the
rest goes on. Each is drawn from its seed, kind and number alone. Findings are written with what they were made of into the
folder --findings. Exit status: 0 none, 1 findings, 2 bad arguments.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tools.fuzz.sanitized import enter_sanitized

KINDS = ("scenarios", "environments", "commands", "files")


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long, about (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="(default: 1)")
    parser.add_argument("--build", type=Path, help="a build folder with the native module under sanitizers (default: none)")
    parser.add_argument("--kinds", default=",".join(KINDS), help="some of: %(default)s")
    parser.add_argument("--case", metavar="SEED:KIND:NUMBER", help="this case alone, in this process")
    parser.add_argument("--findings", type=Path, default=Path("build/fuzz/findings"), help="(default: %(default)s)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the summary as JSON too")
    given = parser.parse_args()
    given.kinds = given.kinds.split(",")
    if given.case is not None:
        try:
            seed, kind, number = given.case.split(":")
            given.case = int(seed), kind, int(number)
            given.kinds = [kind]
        except ValueError:
            parser.error(f"--case {given.case}: not SEED:KIND:NUMBER")
    if unknown := [kind for kind in given.kinds if kind not in KINDS]:
        parser.error(f"kind {unknown[0]!r} is unknown; valid: {', '.join(KINDS)}")
    if not 0 < given.seconds < 1e6:
        parser.error("--seconds is out of range")
    return given


def main() -> int:
    """Fuzz, and return the exit status."""
    given = parse_arguments()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # of threads, a fork keeps one
        os.environ[name] = "1"
    os.environ.setdefault("MPLBACKEND", "Agg")
    checked = enter_sanitized(given.build)
    from tools.fuzz.campaign import Campaign  # what imports the package comes after the module was chosen

    campaign = Campaign(given.kinds, given.seed, checked, given.findings.resolve())
    if given.case is not None:
        return campaign.one(*given.case)
    campaign.run(given.seconds)
    print(campaign.table())
    if given.output is not None:
        campaign.write(given.output)
    return 1 if campaign.found else 0


if __name__ == "__main__":
    sys.exit(main())
