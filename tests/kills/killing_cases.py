"""Commands killed at random moments, by a signal that nothing can catch, and given again.

Each command runs in a process of its own, forked from one that has imported everything, so that the moments fall into its
work and not into its imports.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]


class Damage(Exception):
    """What is not as it should be after a kill."""


@dataclass(frozen=True)
class Job:
    """A command to be killed.

    Attributes:
        name: of the command.
        prepare: imports what it needs, once.
        argv: its words, for the folder that it writes into.
        whole: of a folder, finished or not: raises where some artefact that is there cannot be read to its end.
        figures: of a finished folder: what an undisturbed run gives too, clocks left out.
        same: two of these, compared; raises `Damage`.
    """

    name: str
    prepare: Callable[[], None]
    argv: Callable[[Path], Sequence[str]]
    whole: Callable[[Path], None]
    figures: Callable[[Path], Any]
    same: Callable[[Any, Any], None]


@dataclass
class Killed:
    """One command that was killed.

    Attributes:
        after_s: the moments of its kills, from the start of each process, or of its writing.
        there: the files that the last kill left.
        damage: what was wrong; empty: nothing.
    """

    after_s: list[float]
    there: list[str] = field(default_factory=list)
    damage: str = ""


def started(argv: Sequence[str], log: Path) -> int:
    """A process that runs a command line, its group's leader; returns its number."""
    child = os.fork()
    if child:
        return child
    status = 99
    try:
        os.setsid()
        with open(log, "ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        from netbuf_gym import cli

        status = cli.main(argv)
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        os._exit(status)


def ended(process: int) -> int:
    """Waits for a process; its exit status, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def killed_after(process: int, seconds: float, writing: Path | None = None) -> bool:
    """Kills a process and all that it has started, so long from now, or from the first file in the folder `writing` on.

    Returns:
        whether it was killed, and had not ended before.
    """
    until = time.monotonic() + seconds
    while writing is not None or (left := until - time.monotonic()) > 0:
        if writing is not None:
            left = 1.0
            if writing.is_dir() and any(writing.iterdir()):
                until, writing = time.monotonic() + seconds, None
                continue
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            if os.waitstatus_to_exitcode(status) != 0:
                raise Damage(f"the command ended by itself with {os.waitstatus_to_exitcode(status)}")
            return False
        time.sleep(min(left, 0.002))
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return True


def kill(job: Job, kills: int, seed: int, folder: Path) -> dict[str, Any]:
    """Kills a command at moments spread over the time that it takes, one in three twice, one in three once it has begun to
    write, and compares what it then gives.

    Returns:
        JSON-able: what was done, and what was found.
    """
    job.prepare()
    rng = np.random.default_rng(seed)
    whole, log = folder / "undisturbed", folder / "log"
    began = time.monotonic()
    if status := ended(started(job.argv(whole), log)):
        raise SystemExit(f"{job.name} ends with {status} when it is left alone:\n{log.read_text()[-2000:]}")
    span_s = time.monotonic() - began
    writing_s = time.time() - min(path.stat().st_mtime for path in whole.rglob("*") if path.is_file())
    figures = job.figures(whole)
    outcomes = []
    for i in range(kills):
        own = folder / f"killed-{i}"
        if i % 3 == 2:  # while it writes: for some commands the rarest of moments
            outcomes.append(_killed(job, [float(rng.random()) * writing_s], own, figures, log, own))
        else:
            outcomes.append(_killed(job, _moments(rng, i, kills, span_s), own, figures, log))
    found = [f"kill {i}: {one.damage}" for i, one in enumerate(outcomes) if one.damage]
    return {
        "command": " ".join(["netbuf-gym", *job.argv(Path("DIR"))]).replace(f"{ROOT}/", ""),
        "undisturbed_s": round(span_s, 2),
        "commands_killed": kills,
        "kills": sum(len(one.after_s) for one in outcomes),
        "before_anything_was_written": sum(not one.there for one in outcomes),
        "moments_s": [[round(x, 3) for x in one.after_s] for one in outcomes],
        "damage": found,
    }


def _moments(rng: np.random.Generator, i: int, kills: int, span_s: float) -> list[float]:
    """One in each of as many equal stretches as there are kills; and perhaps one of the command that goes on."""
    first = (i + float(rng.random())) / kills * span_s
    return [first] if i % 3 else [first, float(rng.random()) * span_s]


def _killed(
    job: Job, moments: list[float], folder: Path, figures: Any, log: Path, writing: Path | None = None
) -> Killed:
    outcome = Killed([])
    try:
        for moment in moments:
            if not killed_after(started(job.argv(folder), log), moment, writing):
                break
            outcome.after_s.append(moment)
            if folder.is_dir():
                job.whole(folder)
        outcome.there = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()) if folder.is_dir() else []
        if status := ended(started(job.argv(folder), log)):
            raise Damage(f"given again, the command ends with {status}: {log.read_text()[-500:]}")
        job.whole(folder)
        job.same(figures, job.figures(folder))
    except Exception as error:
        outcome.damage = f"{type(error).__name__}: {error}"
    else:
        shutil.rmtree(folder)
    return outcome
