"""`--multirun`: a job for each combination of values, one after another, each in a folder of its own."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

from netbuf_gym.errors import NetbufError, SimulatorFault, shown
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
    rows, outcomes, worst = [], [], 0
    for index, job in enumerate(jobs):
        print(f"\n[{index + 1}/{len(jobs)}] {' '.join(job.chosen)}", flush=True)
        started = time.monotonic()
        status, said = _one(module, job.overrides, source, index)
        seconds = number(time.monotonic() - started, 3)
        outcome = ("", "-")
        if status in (0, INTERRUPTED) and job.folder is not None and job.folder.is_dir():
            with suppress(OSError, ValueError, LookupError):  # nothing was written yet
                outcome = module.outcome(job.folder)
        outcomes.append(outcome)
        rows.append([str(index), *(one.partition("=")[2] for one in job.chosen), said, seconds, str(job.folder or "")])
        worst = max(worst, status)
        if status == INTERRUPTED:
            break
    header = ["job", *(one.partition("=")[0] for one in jobs[0].chosen), "status", "seconds", "folder"]
    labels = {label for label, _ in outcomes if label}
    header.insert(-3, *(labels if len(labels) == 1 else {"outcome"}))
    for row, (label, value) in zip(rows, outcomes, strict=True):
        row.insert(-3, value if len(labels) == 1 else f"{label} {value}".strip())
    print(f"\n{text_table(header, rows)}")
    if len(rows) < len(jobs):
        print(f"\ninterrupted; jobs not begun: {len(jobs) - len(rows)}", file=sys.stderr)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / "summary.md", f"{markdown_table(header, rows)}\n")
        print(f"\nwritten to {folder / 'summary.md'}")
    return worst


def _one(module: ModuleType, overrides: Sequence[str], source: Any, index: int) -> tuple[int, str]:
    """A job's exit status and what became of it, in a few words."""
    try:
        status = module.main(list(overrides), source)
        return status, {0: "done", INTERRUPTED: "interrupted"}.get(status, f"status {status}")
    except KeyboardInterrupt:
        return INTERRUPTED, "interrupted"
    except (NetbufError, OSError) as error:
        line = " ".join(str(error).split())
        print(f"netbuf-gym: error: job {index}: {line}", file=sys.stderr)
        return (3 if isinstance(error, SimulatorFault) else 2), f"failed: {shown(line, 70)[1:-1]}"
