"""`--multirun`: a job for each combination of values, one after another, each in a folder of its own."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from netbuf_gym.errors import NetbufError, SimulatorFault
from netbuf_gym.files import write_atomic
from netbuf_gym.tables import markdown_table, number, text_table

INTERRUPTED = 130


def run(
    name: str,
    overrides: Sequence[str],
    source: Any,
    needed: Callable[[str, str], ModuleType],
    check: Callable[[Sequence[str]], None],
) -> int:
    """Runs a sweep and returns the worst status of its jobs; 130 as soon as one is interrupted.

    Args:
        source: where the configuration is composed from (`netbuf_gym.zoo.config.Source`).
        needed: gives a module of the zoo to a command.
        check: refuses a job's overrides; all jobs are checked before the first one runs.

    Raises:
        ConfigError: overrides that cannot be used.
    """
    folder, jobs = needed(name, "hydra_views").jobs(name, overrides, source)
    for job in jobs:
        check(job.overrides)
    module = needed(name, name)
    print(f"{len(jobs)} jobs{'' if folder is None else f' in {folder}'}, one after another", flush=True)
    rows, worst = [], 0
    for index, job in enumerate(jobs):
        print(f"\n[{index + 1}/{len(jobs)}] {' '.join(job.chosen)}", flush=True)
        started = time.monotonic()
        status, said = _one(module, job.overrides, source)
        values = [one.partition("=")[2] for one in job.chosen]
        rows.append([str(index), *values, said, number(time.monotonic() - started, 3), str(job.folder or "")])
        worst = max(worst, status)
        if status == INTERRUPTED:
            break
    if len(rows) < len(jobs):
        print(f"\ninterrupted; {len(jobs) - len(rows)} jobs not begun", file=sys.stderr)
    header = ["job", *(one.partition("=")[0] for one in jobs[0].chosen), "status", "seconds", "folder"]
    print(f"\n{text_table(header, rows)}")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / "summary.md", f"{markdown_table(header, rows)}\n")
        print(f"\nwritten to {folder / 'summary.md'}")
    return worst


def _one(module: ModuleType, overrides: Sequence[str], source: Any) -> tuple[int, str]:
    """A job's exit status and what became of it, in a few words."""
    try:
        status = module.main(list(overrides), source)
        return status, {0: "done", INTERRUPTED: "interrupted"}.get(status, f"status {status}")
    except KeyboardInterrupt:
        return INTERRUPTED, "interrupted"
    except (NetbufError, OSError) as error:
        line = " ".join(str(error).split())
        print(f"netbuf-gym: error: {line}", file=sys.stderr)
        return (3 if isinstance(error, SimulatorFault) else 2), f"failed: {line}"[:80]
