"""`--multirun`: one job for each combination of values, each in its own folder, in turn or by a launcher of Hydra's.

Hydra parses the overrides and launches; its own sweeper would neither check all jobs first nor go on after a failed one.
"""

from __future__ import annotations

import importlib
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, QuotedString, Transformer
from hydra.core.utils import JobReturn, JobStatus
from hydra.experimental.callback import Callback
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from netbuf_gym.errors import ConfigError, NetbufError, SimulatorFault, one_line, quote, require_extra
from netbuf_gym.training import config_errors, config_reference
from netbuf_gym.training.config import Source, compose_config, open_hydra, resolve_config
from netbuf_gym.training.jobs import Job, check_job, load_job
from netbuf_gym.utils.executors import get_executor
from netbuf_gym.utils.files import write_atomic
from netbuf_gym.utils.overrides import quote_text
from netbuf_gym.utils.tables import format_number, markdown_table, text_table

INTERRUPTED = 130
BASIC_LAUNCHER = "basic"
LAUNCHER_EXTRAS = {
    "joblib": ("joblib", "hydra_plugins.hydra_joblib_launcher"),
    "submitit_local": ("slurm", "hydra_plugins.hydra_submitit_launcher"),
    "submitit_slurm": ("slurm", "hydra_plugins.hydra_submitit_launcher"),
    "ray": ("ray", "ray"),
}
"""Package extra and module of each optional launcher."""
Outcome = tuple[int, str, float]
"""Exit status of a job, its outcome in a few words, and its duration in seconds."""


@dataclass(frozen=True)
class SweepJob(Job):
    """A job of a sweep.

    Attributes:
        chosen: Overrides that differ between the jobs.
        folder: Output folder; None: as the overrides say.
    """

    chosen: list[str] = field(default_factory=list)
    folder: Path | None = None


def run_sweep(name: str, overrides: Sequence[str], source: Source, run: Callable[[Job], int]) -> int:
    """Run a sweep and return the worst status of its jobs; 130 as soon as one is interrupted.

    All jobs are checked before the first one begins. One that fails is reported, and the others go on.

    Args:
        name: Name of the command.
        overrides: Overrides that describe the sweep.
        source: Source of the configuration.
        run: Picklable function that runs a job and returns its exit status.

    Raises:
        ConfigError, ScenarioError, CheckpointError: Overrides that cannot be used.
        MissingExtraError: The launcher that the overrides name is not installed.
    """
    about = [one for one in overrides if one.startswith(("hydra/launcher=", "hydra.launcher."))]
    launcher = find_launcher(about)
    folder, jobs = expand_jobs(name, [one for one in overrides if one not in about], source)
    runner = JobRunner(run, jobs)
    how = "one after another" if launcher == BASIC_LAUNCHER else f"by the launcher {launcher}"
    print(f"{len(jobs)} jobs{'' if folder is None else f' in {folder}'}, {how}", flush=True)
    if launcher == BASIC_LAUNCHER:
        outcomes: Iterable[Outcome] = _run_in_turn(runner)
    else:
        outcomes = launch_jobs(runner, len(jobs), about, folder or Path("runs", "sweeps", name), source)
    ended = list(zip(jobs, outcomes, strict=False))
    header, rows = _tabulate(name, ended)
    print(f"\n{text_table(header, rows)}")
    if len(ended) < len(jobs):
        print(f"\ninterrupted; jobs not begun: {len(jobs) - len(ended)}", file=sys.stderr)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / "summary.md", f"{markdown_table(header, rows)}\n")
        print(f"\nwritten to {folder / 'summary.md'}")
    return max(status for _, (status, _, _) in ended)


def _tabulate(name: str, ended: Sequence[tuple[SweepJob, Outcome]]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the table that closes a sweep."""
    module = importlib.import_module(f"netbuf_gym.training.{name}")
    results = []
    for job, (status, _, _) in ended:
        result = ("", "-")
        if status in (0, INTERRUPTED) and job.folder is not None and job.folder.is_dir():
            with suppress(OSError, ValueError, LookupError):  # nothing was written yet
                result = module.describe_outcome(job.folder)
        results.append(result)
    labels = {label for label, _ in results if label}
    keys = [word.partition("=")[0] for word in ended[0][0].chosen]
    header = ["job", *keys, *(labels if len(labels) == 1 else {"outcome"}), "status", "seconds", "folder"]
    rows = []
    for number, ((job, (_, said, seconds)), (label, value)) in enumerate(zip(ended, results, strict=True)):
        values = [word.partition("=")[2] for word in job.chosen]
        result_cell = value if len(labels) == 1 else f"{label} {value}".strip()
        rows.append([str(number), *values, result_cell, said, format_number(seconds, 3), str(job.folder or "")])
    return header, rows


def expand_jobs(name: str, overrides: Sequence[str], source: Source) -> tuple[Path | None, list[SweepJob]]:
    """Return a sweep's folder (None: set by each job) and its checked jobs, whose last key changes fastest.

    Each job has a folder of its own below one: `run_dir=DIR`, else Hydra's `hydra.sweep.dir=DIR`, else a new one.

    Raises:
        ConfigError: An override that cannot be parsed, a job that cannot be run, or a sweep without end.
    """
    settings = [one for one in overrides if one.startswith(("hydra.sweep.dir", "hydra.sweep.subdir"))]
    own = [one for one in overrides if one not in settings and not one.startswith("hydra.mode=")]
    run_dir = next((one for one in own if one.startswith("run_dir=") and not config_errors.is_sweep(one[8:])), None)
    if run_dir is not None:
        own.remove(run_dir)
        settings.append(f"hydra.sweep.dir={run_dir[8:]}")
    placed = any(one.startswith(("run_dir=", "resume=")) for one in own)
    with config_errors.explain_errors(own, name):
        values = [_expand_override(override, source) for override in own]
    combinations = list(itertools.product(*values))
    if not combinations:
        raise ConfigError(f"{' '.join(own)}: expands to no jobs; valid: at least one value of each")
    folder, jobs = None, []
    for number, words in enumerate(combinations):
        chosen = [word for word, others in zip(words, values, strict=True) if len(others) > 1]
        if placed:
            jobs.append(SweepJob(**vars(load_job(name, words, source)), chosen=chosen))
            continue
        numbered = [*settings, f"hydra.job.num={number}", f"hydra.job.id='{number}'"]
        config, whole = compose_config(name, words, source, numbered)
        sweep_dir, subdir = _resolve_folders(whole, name)
        if folder is None:
            given = any(one.startswith("hydra.sweep.dir=") for one in settings)
            folder = sweep_dir if given else _find_unused(sweep_dir)
        config.run_dir = str(folder / subdir)
        own = [*words, f"run_dir={quote_text(config.run_dir)}"]
        jobs.append(SweepJob(name, resolve_config(config, name, words), own, source, chosen, folder / subdir))
        check_job(jobs[-1])
    return folder, jobs


def _expand_override(text: str, source: Source) -> list[str]:
    """Return an override for each value that an override gives."""
    if not config_errors.is_sweep(text.partition("=")[2]):
        return [text]
    (override,) = OverridesParser.create().parse_overrides([text])
    if not override.is_sweep_override():
        return [text]
    key, value = override.get_key_element(), override.value()
    if isinstance(value, Glob):
        found: Iterable[Any] = value.filter(list(config_reference.read_choices(override.key_or_group, *source.folders)))
        if not found:
            raise ConfigError(f"{text}: matches no choice of {key}")
    elif not override.is_discrete_sweep():
        raise ConfigError(f"{text}: an interval has no number of values; valid: key=1,2,3, range(1,4) or choice(a,b)")
    elif key == "scenario":  # Hydra would escape the name
        values = override.sweep_iterator(transformer=Transformer.identity)
        found = (one.text if isinstance(one, QuotedString) else one for one in values)
    else:
        found = override.sweep_string_iterator()
    return [f"{key}={one}" for one in found]


def _resolve_folders(whole: DictConfig, name: str) -> tuple[Path, str]:
    """Return the sweep's folder and the job's below it, whose names may use Hydra's resolvers."""
    before = HydraConfig.instance().cfg
    HydraConfig.instance().set_config(whole)
    try:
        with config_errors.explain_errors([], name):
            return Path(str(whole.hydra.sweep.dir)), str(whole.hydra.sweep.subdir)
    finally:
        HydraConfig.instance().cfg = before


def _find_unused(folder: Path) -> Path:
    """Return a folder that does not exist, by a suffix if need be."""
    others = (folder.with_name(f"{folder.name}-{number}") for number in itertools.count(1))
    return next(one for one in itertools.chain([folder], others) if not one.exists())


@dataclass(frozen=True)
class JobRunner:
    """Runs a job by its number, in any process of a launcher."""

    run: Callable[[Job], int]
    jobs: Sequence[SweepJob]

    def __call__(self, number: int) -> Outcome:
        """Return the outcome of a job, that of a failed one too."""
        started = time.monotonic()
        try:
            status = self.run(self.jobs[number])
            said = {0: "done", INTERRUPTED: "interrupted"}.get(status, f"status {status}")
        except KeyboardInterrupt:
            status, said = INTERRUPTED, "interrupted"
        except (NetbufError, OSError) as error:
            line = one_line(error)
            print(f"netbuf-gym: error: job {number}: {line}", file=sys.stderr)
            status, said = (3 if isinstance(error, SimulatorFault) else 2), f"failed: {quote(line, 70)[1:-1]}"
        return status, said, time.monotonic() - started


def _run_in_turn(runner: JobRunner) -> Iterator[Outcome]:
    """Run the jobs in turn until one is interrupted, and yield their outcomes."""
    for number, job in enumerate(runner.jobs):
        print(f"\n[{number + 1}/{len(runner.jobs)}] {' '.join(job.chosen)}", flush=True)
        outcome = runner(number)
        yield outcome
        if outcome[0] == INTERRUPTED:
            return


def find_launcher(overrides: Sequence[str]) -> str:
    """Return the name of the launcher that overrides choose.

    Raises:
        MissingExtraError: The launcher is not installed.
    """
    name = next((one.partition("=")[2] for one in reversed(overrides) if one.startswith("hydra/launcher=")), BASIC_LAUNCHER)
    if name in LAUNCHER_EXTRAS:
        extra, module = LAUNCHER_EXTRAS[name]
        with require_extra(f"hydra/launcher={name}", extra):
            importlib.import_module(module)
    return name


def launch_jobs(run: Callable[[int], Any], number: int, overrides: Sequence[str], folder: Path, source: Source) -> list[Any]:
    """Run so many jobs by their numbers under a launcher of Hydra's, and return the results of `run`; raises as `run` does.

    Args:
        run: Picklable function of a job's number.
        number: Number of jobs.
        overrides: Overrides of the launcher.
        folder: Folder of the launcher's files.
        source: Source of the configuration.

    Raises:
        ConfigError: An override that cannot be used.
    """
    own = [f"hydra.sweep.dir={quote_text(str(folder))}", "hydra.sweep.subdir=.", "hydra.output_subdir=null"]
    quiet = ["hydra/job_logging=none", "hydra/hydra_logging=none"]
    with open_hydra("sweep", source):
        try:
            config = compose(None, [*quiet, *overrides, *own], return_hydra_config=True)
            launcher = instantiate(config.hydra.launcher)
        except Exception as error:  # any error of Hydra's parts
            raise ConfigError(f"{' '.join(overrides)}: {config_errors.format_one_line(error)}") from None
        callbacks: Any = Callback()
        context = HydraContext(GlobalHydra.instance().config_loader(), callbacks)
        launcher.setup(hydra_context=context, task_function=NumberedTask(run, Path.cwd()), config=config)
        returned = launcher.launch([[f"+number={one}"] for one in range(number)], initial_job_idx=0)
        return [one.return_value for one in returned]


@dataclass(frozen=True)
class NumberedTask:
    """Task function of a launcher's process: runs a job, by its number, in the folder that the sweep was started in."""

    run: Callable[[int], Any]
    here: Path

    def __call__(self, config: DictConfig) -> Any:
        """Run the job of a configuration that holds its number."""
        os.chdir(self.here)
        return self.run(config.number)


class ExecutorLauncher(Launcher):
    """Launcher around an executor of `netbuf_gym.utils.executors` (Hydra's own for Ray requires outdated versions).

    Args:
        name: Name of the executor.
        jobs: Number of concurrent jobs; None: one for each core.
    """

    def __init__(self, name: str, jobs: int | None = None):
        self.executor, self.jobs = get_executor(name), jobs or len(os.sched_getaffinity(0))

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """See `Launcher.setup`."""
        self.task = task_function

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run `NumberedTask` for each job, whose only override is its number. See `Launcher.launch`."""
        numbers = range(initial_job_idx, initial_job_idx + len(job_overrides))
        found = dict(self.executor.run(partial(_run_numbered, self.task), numbers, self.jobs))
        returned = [JobReturn(status=JobStatus.COMPLETED) for _ in numbers]
        for number, one in zip(numbers, returned, strict=True):
            one.return_value = found[number]
        return returned


def _run_numbered(task: TaskFunction, number: int) -> Any:
    return task(OmegaConf.create({"number": number}))
