"""Kills a command at random moments (SIGKILL, which no program can answer), and lets it go on, until it is done.

`python tests/kills/killing.py train kills=30` does it for a job, and writes what came of it; see `make kills`.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
KILLS_A_CASE = 3
DATA = Path(__file__).resolve().parents[1] / "data" / "kills.json"


@dataclass(frozen=True)
class Job:
    """What is killed.

    Attributes:
        name: of the case.
        command: (folder, whether it was begun) -> the command that begins the job in a folder, or goes on with it.
        begun: whether a folder holds something that the job goes on with.
        done: whether a folder holds the finished job.
        check: raises AssertionError unless whatever lies in a folder is whole.
        compare: (folder, undisturbed one): raises AssertionError unless they hold the same result.
    """

    name: str
    command: Callable[[Path, bool], Sequence[str]]
    begun: Callable[[Path], bool]
    done: Callable[[Path], bool]
    check: Callable[[Path], None]
    compare: Callable[[Path, Path], None]


def run(command: Sequence[str], kill_at: Callable[[float], bool] | None = None, limit_s: float = 300.0) -> bool:
    """Runs a command; kills it, with all its children, when `kill_at(seconds since its start)` says so.

    Returns:
        Whether it was killed.

    Raises:
        AssertionError: it failed by itself, or took too long.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
        started = time.monotonic()
        try:
            while process.poll() is None:
                elapsed = time.monotonic() - started
                assert elapsed < limit_s, f"{command} takes more than {limit_s} s"
                if kill_at is not None and kill_at(elapsed):
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    return True
                time.sleep(0.002)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        assert process.returncode == 0, f"{command} ended with {process.returncode}: {output.read().decode()[-2000:]}"
    return False


def kill_often(job: Job, folder: Path, kills: int, rng: random.Random, work_s: float) -> list[str]:
    """Runs a job in a folder, killed up to `kills` times, to its end.

    Three of four kills come at a random moment of the `work_s` seconds in which the job writes, the others while it starts.

    Returns:
        When each kill came.

    Raises:
        AssertionError: something is not whole, or the job does not go on.
    """
    moments = []
    while not job.done(folder):
        kill_at = None
        if len(moments) < kills:
            early, delay = rng.random() < 0.25, rng.random()
            since: list[float] = []
            known = {path.name: path.stat().st_mtime_ns for path in folder.glob("*")}

            def kill_at(elapsed: float, early=early, delay=delay, since=since, known=known) -> bool:
                if early:
                    return elapsed >= 2 * delay
                if not since and any(known.get(path.name) != _mtime(path) for path in folder.glob("*")):
                    since.append(elapsed)
                return bool(since) and elapsed >= since[0] + delay * work_s

        if run(job.command(folder, job.begun(folder)), kill_at):
            moments.append(", ".join(sorted(path.name for path in folder.glob("*"))) or "nothing written")
        elif not job.done(folder):
            raise AssertionError(f"{job.name} ended, and is not done")
        job.check(folder)
    return moments


def _mtime(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def campaign(jobs: Sequence[Job], kills: int, seed: int, scratch: Path, work_s: float = 1.5) -> dict[str, object]:
    """Kills the jobs in turn, `kills` times in all, each case to its end; what came of it, JSON-able."""
    rng = random.Random(seed)
    undisturbed, cases, done = {}, [], 0
    while done < kills:
        job = jobs[len(cases) % len(jobs)]
        if job.name not in undisturbed:
            undisturbed[job.name] = scratch / f"undisturbed-{job.name}"
            run(job.command(undisturbed[job.name], False))
            job.check(undisturbed[job.name])
        folder = scratch / f"case{len(cases)}"
        moments = kill_often(job, folder, min(KILLS_A_CASE, kills - done), rng, work_s)
        job.compare(folder, undisturbed[job.name])
        done += len(moments)
        cases.append({"job": job.name, "kills": len(moments), "left": moments})
        print(f"{done}/{kills} kills: {job.name} went on {len(moments)} times, and ended as undisturbed", flush=True)
    return {"kills": done, "seed": seed, "cases": cases}


def main(argv: Sequence[str]) -> int:
    """`NAME [kills=30] [seed=0] [out=tests/data/kills.json]`: NAME is a module `kills.NAME_runs` with `JOBS`."""
    name, *rest = argv
    options = {"kills": "30", "seed": "0", "out": str(DATA)} | dict(one.split("=", 1) for one in rest)
    module = importlib.import_module(f"kills.{name}_runs")
    with tempfile.TemporaryDirectory() as scratch:
        found = campaign(module.JOBS, int(options["kills"]), int(options["seed"]), Path(scratch))
    out = Path(options["out"])
    results = json.loads(out.read_text()) if out.is_file() else {}
    out.write_text(json.dumps(results | {name: found}, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
