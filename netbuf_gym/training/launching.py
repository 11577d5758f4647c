"""The jobs of a sweep by the launcher of Hydra's that `hydra/launcher=` names: joblib's, submitit's, Ray's, another."""

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

from netbuf_gym.errors import ConfigError, needing
from netbuf_gym.training import config_errors
from netbuf_gym.training.config import Source, hydra_of, normalised
from netbuf_gym.utils.executors import executor
from netbuf_gym.utils.overrides import quoted

IN_TURN = "basic"
EXTRAS = {
    "joblib": ("joblib", "hydra_plugins.hydra_joblib_launcher"),
    "submitit_local": ("slurm", "hydra_plugins.hydra_submitit_launcher"),
    "submitit_slurm": ("slurm", "hydra_plugins.hydra_submitit_launcher"),
    "ray": ("ray", "ray"),
}
"""By launcher the extra of the package that brings it, and the module that is then there."""


def split(overrides: Sequence[str]) -> tuple[str, list[str], list[str]]:
    """The launcher's name, the overrides that speak of it, and all others.

    Raises:
        MissingExtraError: it is not installed.
    """
    about = [one for one in overrides if one.startswith(("hydra/launcher=", "hydra.launcher."))]
    name = next((one.partition("=")[2] for one in reversed(about) if one.startswith("hydra/")), IN_TURN)
    if name in EXTRAS:
        extra, module = EXTRAS[name]
        with needing(f"hydra/launcher={name}", extra):
            importlib.import_module(module)
    return name, about, [one for one in overrides if one not in about]


@dataclass(frozen=True)
class Numbered:
    """What a launcher runs in a process of its own: a job, by its number, in the folder that the sweep was started in."""

    run: Callable[[int], Any]
    here: Path

    def __call__(self, config: DictConfig) -> Any:
        os.chdir(self.here)
        return self.run(HydraConfig.get().job.num)


def launch(
    command: str, jobs: Sequence[Sequence[str]], about: Sequence[str], folder: Path, source: Source, run: Callable[[int], Any]
) -> list[Any]:
    """What `run` gives of each job, which is told its number; raises what it raises.

    Args:
        jobs: their overrides.
        about: overrides that say which launcher, and how.
        folder: of the sweep, for files of the launcher's.
        run: can be pickled.

    Raises:
        ConfigError: an override that cannot be used.
    """
    own = [f"hydra.sweep.dir={quoted(str(folder))}", "hydra.sweep.subdir=.", "hydra.output_subdir=null"]
    quiet = ["hydra/job_logging=none", "hydra/hydra_logging=none"]
    with hydra_of(command, source) as hydra:
        try:
            config = hydra.compose_config(
                config_name=source.config_name or command,
                overrides=[*quiet, *about, *own],
                run_mode=RunMode.MULTIRUN,
                with_log_configuration=False,
            )
            launcher = instantiate(config.hydra.launcher)
            words = [normalised(one, command, source) for one in jobs]
        except Exception as error:  # Hydra's parts raise what they like
            raise ConfigError(f"{' '.join(about)}: {config_errors.one_line(error)}") from None
        context = HydraContext(config_loader=hydra.config_loader, callbacks=Callbacks())
        launcher.setup(hydra_context=context, task_function=Numbered(run, Path.cwd()), config=config)
        return [one.return_value for one in launcher.launch(words, initial_job_idx=0)]


class ExecutorLauncher(Launcher):
    """An engine of `netbuf_gym.utils.executors` as a launcher (Hydra's own for Ray asks for versions of years ago).

    Args:
        name: of the engine.
        jobs: at once; None: one for each core.
    """

    def __init__(self, name: str, jobs: int | None = None):
        self.executor, self.jobs = executor(name), jobs or len(os.sched_getaffinity(0))

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """See `Launcher.setup`."""
        self.context, self.task, self.config = hydra_context, task_function, config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """See `Launcher.launch`."""
        run = OneJob(self.context, self.task, self.config, Singleton.get_state())
        jobs = [(number, tuple(words)) for number, words in enumerate(job_overrides, initial_job_idx)]
        found = dict(self.executor.run(run, jobs, self.jobs))
        return [found[job] for job in jobs]


@dataclass(frozen=True)
class OneJob:
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
