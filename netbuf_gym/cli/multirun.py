"""`--multirun`: one job per combination of values, each in its own folder, in sequence or by a Hydra launcher."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netbuf_gym.errors import NetbufError, SimulatorFault, shown
from netbuf_gym.utils.files import write_atomic
from netbuf_gym.utils.tables import format_number, markdown_table, text_table

INTERRUPTED = 130
Ended = tuple[int, str, float]
"""Exit status of a job, its outcome in a few words, and its duration in seconds."""


def run_sweep(
    name: str,
    overrides: Sequence[str],
    source: Any,
    needed: Callable[[str, str], Any],
    check: Callable[[Sequence[str]], None],
) -> int:
    """Run a sweep and return the worst status of its jobs; 130 as soon as one is interrupted.

    Args:
        name: Name of the command.
        overrides: Overrides that describe the sweep.
        source: Source that the configuration is composed from (`netbuf_gym.training.config.Source`).
        needed: Function that imports a module of `netbuf_gym.training` for a command; picklable.
        check: Function that refuses a job's overrides; all jobs are checked before the first one runs.

    Raises:
        ConfigError: Overrides that cannot be used.
        MissingExtraError: The launcher that the overrides name is not installed.
    """
    launching = needed(name, "launching")
    launcher, about, overrides = launching.split_launcher_overrides(overrides)
    folder, jobs = needed(name, "hydra_views").expand_jobs(name, overrides, source)
    for job in jobs:
        check(job.overrides)
    module = needed(name, name)
    words = [job.overrides for job in jobs]
    one = _JobRunner(name, needed, source, words)
    how = "one after another" if launcher == launching.BASIC_LAUNCHER else f"by the launcher {launcher}"
    print(f"{len(jobs)} jobs{'' if folder is None else f' in {folder}'}, {how}", flush=True)
    if launcher == launching.BASIC_LAUNCHER:
        ended: Iterable[Ended] = _run_in_sequence(one, [" ".join(job.chosen) for job in jobs])
    else:
        ended = launching.launch_jobs(name, words, about, folder or Path("runs", "sweeps", name), source, one)
    rows, outcomes, worst = [], [], 0
    for index, (job, (status, said, seconds)) in enumerate(zip(jobs, ended, strict=False)):
        outcome = ("", "-")
        if status in (0, INTERRUPTED) and job.folder is not None and job.folder.is_dir():
            with suppress(OSError, ValueError, LookupError):  # nothing was written yet
                outcome = module.outcome(job.folder)
        outcomes.append(outcome)
        values = [one.partition("=")[2] for one in job.chosen]
        rows.append([str(index), *values, said, format_number(seconds, 3), str(job.folder or "")])
        worst = max(worst, status)
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


def _run_in_sequence(one: Callable[[int], Ended], chosen: Sequence[str]) -> Iterable[Ended]:
    """Run the jobs in sequence until one is interrupted, and yield their outcomes."""
    for index, words in enumerate(chosen):
        print(f"\n[{index + 1}/{len(chosen)}] {words}", flush=True)
        yield (ended := one(index))
        if ended[0] == INTERRUPTED:
            return


@dataclass(frozen=True)
class _JobRunner:
    """Callable that runs a job by its index, in any process of a launcher."""

    name: str
    needed: Callable[[str, str], Any]
    source: Any
    overrides: Sequence[Sequence[str]]

    def __call__(self, index: int) -> Ended:
        started = time.monotonic()
        status, said = self._run(index)
        return status, said, time.monotonic() - started

    def _run(self, index: int) -> tuple[int, str]:
        try:
            status = self.needed(self.name, self.name).main(list(self.overrides[index]), self.source)
            return status, {0: "done", INTERRUPTED: "interrupted"}.get(status, f"status {status}")
        except KeyboardInterrupt:
            return INTERRUPTED, "interrupted"
        except (NetbufError, OSError) as error:
            line = " ".join(str(error).split())
            print(f"netbuf-gym: error: job {index}: {line}", file=sys.stderr)
            return (3 if isinstance(error, SimulatorFault) else 2), f"failed: {shown(line, 70)[1:-1]}"
