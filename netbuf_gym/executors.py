"""Where work that falls into independent tasks is done: in threads of this process, or by an engine that spreads it further.

What comes of a task depends on the task alone, so that results are the same wherever it was done. An engine's own settings are
its own: Ray's cluster is named by `RAY_ADDRESS`, Slurm's partition, account and time by `SBATCH_PARTITION` and the like.
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from netbuf_gym.arguments import choice
from netbuf_gym.errors import NetbufError, WorkerError, needing

T = TypeVar("T")
R = TypeVar("R")
Outcome = tuple[Any, NetbufError | None]
"""A task's result, or why it has none."""
Outcomes = Generator[tuple[Any, Outcome], None, None]


class Executor(ABC):
    """An engine.

    Attributes:
        name: What `executor=` calls it.
        says: A line.
        modules: What it needs of the extra of the package that is called `extra`.
    """

    name: str
    says: str
    modules: tuple[str, ...] = ()
    extra: str = ""

    def run(
        self, work: Callable[[T], R], tasks: Iterable[T], jobs: int, stop: threading.Event | None = None
    ) -> Iterator[tuple[T, R]]:
        """`work` of every task, in the order in which they end; tasks are drawn as they are needed.

        Whatever ends this early, an error, an interruption, or a caller that wants no more, sets `stop` and gives up what has
        not begun: work in this process that looks at it need not be waited for.

        Args:
            work: Where it is done in other processes, it and the tasks can be pickled.
            jobs: At once.

        Raises:
            NetbufError: What a task has raised of them, whatever process it was in.
            WorkerError: A process was lost, or what it ran has raised something else.
        """
        stop = stop or threading.Event()
        with closing(self._outcomes(partial(_tried, work), tasks, jobs, stop)) as outcomes:
            try:
                for task, (result, error) in outcomes:
                    if error is not None:
                        raise error
                    yield task, result
            except BaseException:
                stop.set()
                raise

    @property
    def here(self) -> bool:
        """Whether tasks are done in this process."""
        return not self.modules

    @abstractmethod
    def _outcomes(self, work: Callable[[T], Outcome], tasks: Iterable[T], jobs: int, stop: threading.Event) -> Outcomes:
        """Each task with its outcome, in the order in which they end; `stop` is set before anything is waited for at an end."""

    def _lost(self, error: Exception) -> WorkerError:
        return WorkerError(f"executor = {self.name!r}: work was lost: {error}; what is done is kept: the same command goes on")


class Local(Executor):
    """Threads: the simulator leaves the interpreter while it runs."""

    name, says = "local", "threads of this process"

    def _outcomes(self, work: Callable[[T], Outcome], tasks: Iterable[T], jobs: int, stop: threading.Event) -> Outcomes:
        with ThreadPoolExecutor(jobs) as pool:
            try:
                ended = lambda running: wait(running, return_when=FIRST_COMPLETED).done  # noqa: E731
                submit = lambda task: pool.submit(work, task)  # noqa: E731
                yield from _sliding(tasks, 3 * jobs, submit, ended, lambda future: future.result())
            except BaseException:
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise


class Joblib(Executor):
    """Processes of this machine."""

    name, says, modules, extra = "joblib", "processes of this machine", ("joblib",), "joblib"

    def _outcomes(self, work: Callable[[T], Outcome], tasks: Iterable[T], jobs: int, stop: threading.Event) -> Outcomes:
        from joblib import Parallel, delayed

        drawn: dict[int, T] = {}

        def numbered() -> Iterator[Any]:
            for number, task in enumerate(tasks):
                drawn[number] = task
                yield delayed(_numbered)(work, number, task)

        try:
            for number, outcome in Parallel(jobs, return_as="generator_unordered")(numbered()):
                yield drawn.pop(number), outcome
        except NetbufError:
            raise
        except Exception as error:
            raise self._lost(error) from error


class Ray(Executor):
    """Ray's processes: a cluster's where `RAY_ADDRESS` names one, else of this machine."""

    name, says, modules, extra = "ray", "Ray's, of the cluster that RAY_ADDRESS names or of this machine", ("ray",), "ray"

    def _outcomes(self, work: Callable[[T], Outcome], tasks: Iterable[T], jobs: int, stop: threading.Event) -> Outcomes:
        import ray

        begun = not ray.is_initialized()
        if begun:
            own: dict[str, Any] = {} if "RAY_ADDRESS" in os.environ else {"num_cpus": jobs, "include_dashboard": False}
            ray.init(log_to_driver=False, logging_level=logging.WARNING, **own)
        try:
            call: Any = ray.remote(_call)
            there = ray.put(work)
            ended = lambda running: ray.wait(list(running))[0]  # noqa: E731
            yield from _sliding(tasks, 2 * jobs, lambda task: call.remote(there, task), ended, ray.get)
        except ray.exceptions.RayError as error:
            raise self._lost(error) from error
        finally:
            if begun:
                ray.shutdown()


class Submitit(Executor):
    """Jobs of Slurm, or processes of this machine in their place; their files stand in `runs/submitit`.

    Args:
        cluster: As submitit calls it.
    """

    modules, extra = ("submitit",), "slurm"
    MINUTES = 240
    """Of a task, at most; `SBATCH_TIMELIMIT` says otherwise."""

    def __init__(self, name: str, says: str, cluster: str, poll_s: float):
        self.name, self.says, self.cluster, self.poll_s = name, says, cluster, poll_s

    def _outcomes(self, work: Callable[[T], Outcome], tasks: Iterable[T], jobs: int, stop: threading.Event) -> Outcomes:
        import submitit

        try:
            pool = submitit.AutoExecutor(folder=Path("runs", "submitit").absolute() / "%j", cluster=self.cluster)
        except RuntimeError as error:  # there is no Slurm
            raise self._lost(error) from error
        pool.update_parameters(timeout_min=self.MINUTES, name="netbuf-gym")
        given: list[Any] = []

        def submit(task: T) -> Any:
            given.append(pool.submit(work, task))
            return given[-1]

        def ended(running: Iterable[Any]) -> list[Any]:
            while not (done := [job for job in running if job.done()]):
                time.sleep(self.poll_s)
            return done

        try:
            yield from _sliding(tasks, jobs, submit, ended, lambda job: job.result())
        except (submitit.core.utils.UncompletedJobError, submitit.core.utils.FailedJobError) as error:
            raise self._lost(error) from error
        finally:
            for job in given:
                if not job.done():
                    job.cancel()


EXECUTORS: dict[str, Executor] = {
    one.name: one
    for one in (
        Local(),
        Joblib(),
        Ray(),
        Submitit("slurm", "jobs of Slurm, through submitit", "slurm", 5.0),
        Submitit("submitit_local", "processes of this machine in place of Slurm's jobs", "local", 0.1),
    )
}
"""By name."""
LOCAL = EXECUTORS["local"]


def executor(name: Any) -> Executor:
    """The engine of a name, once what it needs is known to be there.

    Raises:
        ConfigError: There is none of that name.
        MissingExtraError: What it needs is not installed.
    """
    found = EXECUTORS[choice("executor", name, EXECUTORS)]
    with needing(f"executor = {name!r}", found.extra):
        for module in found.modules:
            importlib.import_module(module)
    return found


def listed() -> str:
    """What `executor=` may be, a line each."""
    width = max(map(len, EXECUTORS))
    return "\n".join(f"  {one.name:{width}}  {one.says}" for one in EXECUTORS.values())


def _sliding(
    tasks: Iterable[T],
    most: int,
    submit: Callable[[T], Any],
    ended: Callable[[Any], Iterable[Any]],
    result: Callable[[Any], Outcome],
) -> Outcomes:
    """Each task with its outcome, at most so many of them given to an engine at a time; `ended` waits for one at least."""
    remaining = iter(tasks)
    running: dict[Any, Any] = {}
    while True:
        while len(running) < most:
            task: Any = next(remaining, running)
            if task is running:
                break
            running[submit(task)] = task
        if not running:
            return
        for handle in ended(running.keys()):
            yield running.pop(handle), result(handle)


def _tried(work: Callable[[T], R], task: T) -> Outcome:
    """Errors of ours travel as they are, whatever an engine makes of errors."""
    try:
        return work(task), None
    except NetbufError as error:
        return None, error


def _numbered(work: Callable[[T], R], number: int, task: T) -> tuple[int, R]:
    return number, work(task)


def _call(work: Callable[[T], R], task: T) -> R:
    return work(task)
