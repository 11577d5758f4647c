"""Commands killed at random moments, by a signal that nothing can catch, and given again until they are done.

Each command runs in a process of its own, forked from one that has imported everything, so that the moments fall into its
work and not into its imports.
"""

from __future__ import annotations

import contextlib
import csv
import json
import operator
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MOMENTS = ("any", "begun", "writing")
"""A kill comes at any moment of a command, at any one since it has begun to write, or as soon as a file appears or changes."""
KILLS_A_CASE = 3
LIMIT_S = 900.0
LOOK_S = 0.001
PICTURE = (b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82")


class Damage(Exception):
    """Something that is not as it should be after a kill."""


@dataclass(frozen=True)
class Job:
    """A command that is killed.

    Attributes:
        name: of the case.
        prepare: imports what the command needs, once.
        argv: of a folder: the words of the command that begins the job there, or goes on with it.
        whole: of a folder, finished or not: raises where some artefact that is there cannot be read to its end.
        figures: of a finished folder: by name, what an undisturbed run gives too, clocks left out.
        equal: whether two figures are the same.
        done: whether a folder that a kill left needs no further command; by default it is always given again.
    """

    name: str
    prepare: Callable[[], None]
    argv: Callable[[Path], Sequence[str]]
    whole: Callable[[Path], None]
    figures: Callable[[Path], dict[str, Any]]
    equal: Callable[[Any, Any], bool] = operator.eq
    done: Callable[[Path], bool] = lambda folder: False


def compare(job: Job, folder: Path, undisturbed: Path) -> None:
    """Raise `Damage` unless two finished folders hold the same figures."""
    one, other = job.figures(folder), job.figures(undisturbed)
    for name in one.keys() | other.keys():
        if name not in one or name not in other or not job.equal(one[name], other[name]):
            raise Damage(f"{job.name}: {name} is not that of an undisturbed run")


def require_whole(path: Path) -> None:
    """Raise `Damage` or an error of reading unless a picture, a JSON file, a CSV or a page is there to its end."""
    data = path.read_bytes()
    if path.suffix == ".png":
        cut = not (data.startswith(PICTURE[0]) and data.endswith(PICTURE[1]))
    elif path.suffix == ".json":
        cut = not json.loads(data)
    elif path.suffix == ".csv":
        rows = csv.reader(line for line in data.decode().splitlines() if not line.startswith("#"))
        cut = not data.endswith(b"\n") or len({len(row) for row in rows}) != 1
    elif path.suffix == ".md":
        cut = not data.endswith(b"\n") or b"| " not in data
    else:
        raise Damage(f"{path.name} is no artefact")
    if cut:
        raise Damage(f"{path.name} is cut")


def list_artefacts(folder: Path) -> list[Path]:
    """List the files in a folder, but for those of writes that were under way."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")]


def run(argv: Sequence[str], log: Path, kill_at: Callable[[float], bool] | None = None) -> bool:
    """Run a command line, and kill it, with all that it has started, when `kill_at(seconds since its start)` says so.

    Returns:
        Whether it was killed, and had not ended before.

    Raises:
        Damage: it failed by itself, or takes too long.
    """
    process, began = _start(argv, log), time.monotonic()
    try:
        while True:
            found, status = os.waitpid(process, os.WNOHANG)
            if found:
                break
            elapsed = time.monotonic() - began
            if elapsed > LIMIT_S:
                raise Damage(f"{' '.join(argv)} takes more than {LIMIT_S:g} s")
            if kill_at is not None and kill_at(elapsed):
                _kill_group(process)
                return True
            time.sleep(0 if isinstance(kill_at, Moment) and kill_at.kind == "writing" else LOOK_S)  # most writes take less
    except BaseException:
        _kill_group(process)
        raise
    if code := os.waitstatus_to_exitcode(status):
        raise Damage(f"{' '.join(argv)} ends with {code}: {log.read_text(errors='replace')[-1000:]}")
    return False


def _kill_group(process: int) -> None:
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)


def _start(argv: Sequence[str], log: Path) -> int:
    """Start a process that runs a command line, its group's leader; return its number."""
    ready, tell = os.pipe()
    child = os.fork()
    if child:
        os.close(tell)
        os.read(ready, 1)  # it leads its group
        os.close(ready)
        return child
    status = 99
    try:
        os.setsid()
        os.close(ready)
        os.close(tell)
        with open(log, "ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        from netbuf_gym.cli import program

        status = program.main(argv)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


@dataclass
class Moment:
    """A moment that a kill is to come at: of which kind, and where in the seconds that it is drawn from."""

    kind: str
    at: float
    folder: Path
    whole_s: float
    writing_s: float

    def __post_init__(self):
        self._known = _list_stamps(self.folder)
        self._begun: float | None = None

    def __call__(self, elapsed: float) -> bool:
        """Whether it is now."""
        if self.kind == "any":
            return elapsed >= self.at * self.whole_s
        if self._begun is None:
            if _list_stamps(self.folder) == self._known:
                return False
            self._begun = elapsed
        if self.kind == "begun":
            return elapsed >= self._begun + self.at * self.writing_s
        if elapsed < self._begun + self.at * self.writing_s / 2:
            self._known = _list_stamps(self.folder)
            return False
        return _list_stamps(self.folder) != self._known


def _list_stamps(folder: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    with contextlib.suppress(FileNotFoundError):  # a folder that goes meanwhile ends the walk: what is missing is a change too
        for path in folder.rglob("*"):
            found[str(path)] = path.stat().st_mtime_ns
    return found


def kill(jobs: Sequence[Job], kills: int, seed: int, scratch: Path) -> dict[str, Any]:
    """Kill jobs in turn, up to three times each case, until so many kills have come, and compares what they then give.

    Returns:
        JSON-able: what was done, and what was found.
    """
    rng = random.Random(seed)
    log, cases, undisturbed = scratch / "log", [], {}
    done = 0
    for job in jobs:
        job.prepare()
    while done < kills:
        job = jobs[len(cases) % len(jobs)]
        whole = scratch / f"undisturbed-{job.name}"
        if job.name not in undisturbed:
            undisturbed[job.name] = _measure_spans(job, whole, log)
        case = {"job": job.name, "kills": [], "damage": ""}
        cases.append(case)
        folder = scratch / f"case-{len(cases)}"
        try:
            most = min(KILLS_A_CASE, kills - done)
            _run_case(job, folder, whole, undisturbed[job.name], most, rng, case["kills"])
        except Exception as error:
            case["damage"] = f"{type(error).__name__}: {error}"
            case["left"] = _list_left(folder)
        else:
            shutil.rmtree(folder)
        done += len(case["kills"])
        print(f"{done}/{kills} kills: {job.name} {case['damage'] or 'ended as undisturbed'}", flush=True)
        if len(cases) > 10 * kills:
            raise SystemExit("the commands end before they can be killed")
    left = [kill["left"] for case in cases for kill in case["kills"]]
    return {
        "commands": {job.name: _format_command(job) for job in jobs},
        "undisturbed_s": {name: round(spans[0], 2) for name, spans in undisturbed.items()},
        "kills": done,
        "kills_while_a_file_was_being_written": sum(any("/." in f"/{name}" for name in names) for names in left),
        "kills_before_anything_was_written": sum(not names for names in left),
        "cases": cases,
        "damage": [f"case {i}: {case['damage']}" for i, case in enumerate(cases, 1) if case["damage"]],
    }


def _measure_spans(job: Job, folder: Path, log: Path) -> tuple[float, float]:
    """Run a job undisturbed; return how long it takes, and how long from its first file on."""
    wrote: list[float] = []

    def look(elapsed: float) -> bool:
        if not wrote and _list_stamps(folder):
            wrote.append(elapsed)
        return False

    began = time.monotonic()
    run(job.argv(folder), log, look)
    whole_s = time.monotonic() - began
    job.whole(folder)
    compare(job, folder, folder)
    return whole_s, whole_s - (wrote[0] if wrote else 0.0)


def _run_case(
    job: Job, folder: Path, whole: Path, spans: tuple[float, float], kills: int, rng: random.Random, found: list[dict[str, Any]]
) -> None:
    log = folder.with_suffix(".log")
    while not job.done(folder):
        moment = None
        if len(found) < kills:
            moment = Moment(rng.choice(MOMENTS), rng.random(), folder, *spans)
        began = time.monotonic()
        killed = run(job.argv(folder), log, moment)
        if killed and moment is not None:
            at_s = round(time.monotonic() - began, 3)
            found.append({"moment": moment.kind, "after_s": at_s, "left": _list_left(folder)})
        if folder.is_dir():
            job.whole(folder)
        if not killed:
            break
    compare(job, folder, whole)
    log.unlink(missing_ok=True)


def _list_left(folder: Path) -> list[str]:
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return names if len(names) <= 12 else [*names[:12], f"and {len(names) - 12} more"]


def _format_command(job: Job) -> str:
    return " ".join(["netbuf-gym", *job.argv(Path("DIR"))]).replace(f"{ROOT}/", "")
