"""Jobs of a sweep under the Hydra launcher that `hydra/launcher=` names: joblib's, submitit's, Ray's, or another."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra._internal.callbacks import Callbacks
from hydra.core.hydra_config import HydraConfig
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, run_job, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, RunMode, TaskFunction
from hydra.utils import instantiate
from omegaconf import DictConfig, open_dict

from netbuf_gym.errors import ConfigError, require_extra
from netbuf_gym.training import config_errors
from netbuf_gym.training.config import Source, normalise_overrides, open_hydra
from netbuf_gym.utils.executors import executor
from netbuf_gym.utils.overrides import quote_text

BASIC_LAUNCHER = "basic"
LAUNCHER_EXTRAS = {
    "joblib": ("joblib", "hydra_plugins.hydra_joblib_launcher"),
    "submitit_local": ("slurm", "hydra_plugins.hydra_submitit_launcher"),
    "submitit_slurm": ("slurm", "hydra_plugins.hydra_submitit_launcher"),
    "ray": ("ray", "ray"),
}
"""Package extra and module of each optional launcher."""


def split_launcher_overrides(overrides: Sequence[str]) -> tuple[str, list[str], list[str]]:
    """Split the overrides into the launcher's name, the overrides about the launcher, and all others.

    Raises:
        MissingExtraError: The launcher is not installed.
    """
    about = [one for one in overrides if one.startswith(("hydra/launcher=", "hydra.launcher."))]
    name = next((one.partition("=")[2] for one in reversed(about) if one.startswith("hydra/")), BASIC_LAUNCHER)
    if name in LAUNCHER_EXTRAS:
        extra, module = LAUNCHER_EXTRAS[name]
        with require_extra(f"hydra/launcher={name}", extra):
            importlib.import_module(module)
    return name, about, [one for one in overrides if one not in about]


@dataclass(frozen=True)
class NumberedTask:
    """Task function of a launcher's process: run a job, by its number, in the folder that the sweep was started in."""

    run: Callable[[int], Any]
    here: Path

    def __call__(self, config: DictConfig) -> Any:
        os.chdir(self.here)
        return self.run(HydraConfig.get().job.num)


def launch_jobs(
    command: str, jobs: Sequence[Sequence[str]], about: Sequence[str], folder: Path, source: Source, run: Callable[[int], Any]
) -> list[Any]:
    """Run each job by its number under the launcher, and return the results of `run`; raises as `run` does.

    Args:
        command: Name of the job's configuration.
        jobs: Overrides of each job.
        about: Overrides of the launcher.
        folder: Folder of the sweep, for the launcher's files.
        source: Source of the configuration.
        run: Picklable function of a job's number.

    Raises:
        ConfigError: An override that cannot be used.
    """
    own = [f"hydra.sweep.dir={quote_text(str(folder))}", "hydra.sweep.subdir=.", "hydra.output_subdir=null"]
    quiet = ["hydra/job_logging=none", "hydra/hydra_logging=none"]
    with open_hydra(command, source) as hydra:
        try:
            config = hydra.compose_config(
                config_name=source.config_name or command,
                overrides=[*quiet, *about, *own],
                run_mode=RunMode.MULTIRUN,
                with_log_configuration=False,
            )
            launcher = instantiate(config.hydra.launcher)
            words = [normalise_overrides(one, command, source) for one in jobs]
        except Exception as error:  # any error of Hydra's parts
            raise ConfigError(f"{' '.join(about)}: {config_errors.format_one_line(error)}") from None
        context = HydraContext(config_loader=hydra.config_loader, callbacks=Callbacks())
        launcher.setup(hydra_context=context, task_function=NumberedTask(run, Path.cwd()), config=config)
        return [one.return_value for one in launcher.launch(words, initial_job_idx=0)]


class ExecutorLauncher(Launcher):
    """Launcher around an executor of `netbuf_gym.utils.executors` (Hydra's own for Ray requires outdated versions).

    Args:
        name: Name of the executor.
        jobs: Number of concurrent jobs; None: one for each core.
    """

    def __init__(self, name: str, jobs: int | None = None):
        self.executor, self.jobs = executor(name), jobs or len(os.sched_getaffinity(0))

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """See `Launcher.setup`."""
        self.context, self.task, self.config = hydra_context, task_function, config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """See `Launcher.launch`."""
        run = SweepJobRunner(self.context, self.task, self.config, Singleton.get_state())
        jobs = [(number, tuple(words)) for number, words in enumerate(job_overrides, initial_job_idx)]
        found = dict(self.executor.run(run, jobs, self.jobs))
        return [found[job] for job in jobs]


@dataclass(frozen=True)
class SweepJobRunner:
    """Runs a job of a sweep in another process."""

    context: HydraContext
    task: TaskFunction
    config: DictConfig
    singletons: dict[Any, Any]

    def __call__(self, job: tuple[int, tuple[str, ...]]) -> JobReturn:
        number, words = job
        Singleton.set_state(self.singletons)
        setup_globals()
        config = self.context.config_loader.load_sweep_config(self.config, list(words))
        with open_dict(config):
            config.hydra.job.id, config.hydra.job.num = str(number), number
        HydraConfig.instance().set_config(config)
        return run_job(
            hydra_context=self.context,
            task_function=self.task,
            config=config,
            job_dir_key="hydra.sweep.dir",
            job_subdir_key="hydra.sweep.subdir",
        )
