"""Executors for independent tasks: threads of this process, or engines that distribute jobs to other processes and machines.

A task's result depends on the task alone, so that results are the same wherever it ran and whatever ran beside it. Engines
with workers elsewhere size each job to keep a worker busy for `Executor.job_seconds`, from the durations of finished tasks; the
first jobs have one task each. Engines take their own settings from the environment: Ray's cluster is named by `RAY_ADDRESS`,
Slurm's partition, account and time by `SBATCH_PARTITION` and the like.
"""

from __future__ import annotations

import importlib
import itertools
import logging
import operator
import os
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from netbuf_gym.errors import NetbufError, WorkerError, require_extra
from netbuf_gym.utils.arguments import check_choice
from netbuf_gym.utils.moved import find_renamed

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class ForeignError:
    """An exception from outside this package, as text, since other packages' exceptions need not survive pickling."""

    says: str
    trace: str


Outcome = tuple[Any, NetbufError | ForeignError | None]
"""A task's result and its error, of which one is None."""
Outcomes = Generator[tuple[Any, Any], None, None]
"""Generator of the items given to an engine (tasks or groups of tasks), each with its outcome."""
OVERTIME = 2.0
"""Multiple of a job's intended duration after which it hands back the tasks it has not begun."""
LEAST_S = 1e-3
"""Least duration assumed of a task, which limits a job to `job_seconds` / LEAST_S tasks."""


class Executor(ABC):
    """Base class of the engines.

    Attributes:
        name: Value of `executor=` that selects the engine.
        says: One-line description.
        modules: Modules required; they come with the package's extra named by `extra`.
        job_seconds: Intended duration of a job, for engines that work in other processes.
    """

    name: str
    says: str
    modules: tuple[str, ...] = ()
    extra: str = ""
    job_seconds: float = 1.0

    def run(
        self, work: Callable[[T], R], tasks: Iterable[T], jobs: int, stop: threading.Event | None = None
    ) -> Iterator[tuple[T, R]]:
        """Yield every task with its result, in order of completion (of tasks or of their groups); tasks are drawn as needed.

        An early end, by an error, an interruption or a caller that stops iterating, sets `stop` and cancels what has not begun:
        work in this process that checks `stop` need not be waited for.

        Args:
            work: Function of a task; for engines with other processes, function and tasks must be picklable.
            jobs: Maximum number of concurrent jobs.

        Raises:
            NetbufError: An error of this package raised by a task, in whatever process.
            WorkerError: A process was lost, or a task raised any other exception.
        """
        stop = stop or threading.Event()
        with closing(self._each(work, tasks, jobs, stop)) as outcomes:
            try:
                for task, (result, error) in outcomes:
                    if isinstance(error, ForeignError):
                        raise self._lost(error.says) from RuntimeError(error.trace)
                    if error is not None:
                        raise error
                    yield task, result
            except BaseException:
                stop.set()
                raise

    @property
    def here(self) -> bool:
        """True if tasks run in this process."""
        return not self.modules

    @abstractmethod
    def _outcomes(self, work: Callable[[T], Any], tasks: Iterable[T], jobs: int, stop: threading.Event) -> Outcomes:
        """Yield each item with its outcome, in order of completion; at an early end, set `stop` before waiting for anything."""

    def _each(self, work: Callable[[T], Any], tasks: Iterable[T], jobs: int, stop: threading.Event) -> Outcomes:
        """Yield each task with its `Outcome`, running one job per group of tasks."""
        groups = TaskGroups(tasks, jobs, self.job_seconds)
        job = partial(_run_group, work, OVERTIME * self.job_seconds)
        while True:
            with closing(self._outcomes(job, groups, jobs, stop)) as ended:
                for group, done in ended:
                    groups.record_durations(group, [seconds for _, seconds in done])
                    yield from zip(group, (outcome for outcome, _ in done), strict=False)
            if not groups.handed_back:
                return

    def _lost(self, error: Exception | str) -> WorkerError:
        return WorkerError(
            f"executor = {self.name!r}: work was lost: {error}; finished work is kept; valid: the same command again"
        )


class ThreadExecutor(Executor):
    """Threads of this process; the simulator releases the interpreter lock while it runs."""

    name, says = "local", "threads of this process"

    def _each(self, work: Callable[[T], Any], tasks: Iterable[T], jobs: int, stop: threading.Event) -> Outcomes:
        """Yield each task with its `Outcome`; a thread takes one task at a time."""
        return self._outcomes(partial(_attempt_task, work), tasks, jobs, stop)

    def _outcomes(self, work: Callable[[T], Outcome], tasks: Iterable[T], jobs: int, stop: threading.Event) -> Outcomes:
        with ThreadPoolExecutor(jobs) as pool:
            try:
                ended = lambda running: wait(running, return_when=FIRST_COMPLETED).done  # noqa: E731
                submit = lambda task: pool.submit(work, task)  # noqa: E731
                yield from _run_windowed(tasks, 3 * jobs, submit, ended, lambda future: future.result())
            except BaseException:
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise


class JoblibExecutor(Executor):
    """Processes of this machine."""

    name, says, modules, extra = "joblib", "processes of this machine", ("joblib",), "joblib"

    def _outcomes(self, work: Callable[[T], Outcome], tasks: Iterable[T], jobs: int, stop: threading.Event) -> Outcomes:
        from joblib import Parallel, delayed

        drawn: dict[int, T] = {}

        def numbered() -> Iterator[Any]:
            for number, task in enumerate(tasks):
                drawn[number] = task
                yield delayed(_run_numbered)(work, number, task)

        try:
            for number, outcome in Parallel(jobs, return_as="generator_unordered", batch_size=1)(numbered()):
                yield drawn.pop(number), outcome
        except NetbufError:
            raise
        except Exception as error:
            raise self._lost(error) from error


class RayExecutor(Executor):
    """Ray's processes: of the cluster named by `RAY_ADDRESS`, else of this machine."""

    name, says, modules, extra = "ray", "Ray tasks on the cluster in RAY_ADDRESS, else on this machine", ("ray",), "ray"
    STARTS = 3
    """Maximum number of attempts to start a node, each of which Ray waits 30 s for."""

    def _outcomes(self, work: Callable[[T], Outcome], tasks: Iterable[T], jobs: int, stop: threading.Event) -> Outcomes:
        import ray

        begun = not ray.is_initialized()
        if begun:
            self._start_node(jobs)
        try:
            call: Any = ray.remote(_run_task)
            there = ray.put(work)
            ended = lambda running: ray.wait(list(running))[0]  # noqa: E731
            yield from _run_windowed(tasks, 2 * jobs, lambda task: call.remote(there, task), ended, ray.get)
        except ray.exceptions.RayError as error:
            raise self._lost(error) from error
        finally:
            if begun:
                ray.shutdown()

    def _start_node(self, jobs: int) -> None:
        """Join the cluster of RAY_ADDRESS, or start a node of this machine, with up to `STARTS` attempts."""
        import ray

        joins = "RAY_ADDRESS" in os.environ
        own: dict[str, Any] = {} if joins else {"num_cpus": jobs, "include_dashboard": False}
        for left in range(1 if joins else self.STARTS)[::-1]:  # on a busy machine Ray gives up waiting for its own node
            try:
                ray.init(log_to_driver=False, logging_level=logging.WARNING, **own)
                return
            except Exception as error:  # Ray raises plain exceptions
                ray.shutdown()
                if not left:
                    raise WorkerError(
                        f"executor = 'ray': no node: {error}; valid: RAY_ADDRESS of a running cluster, or unset"
                    ) from error


class SubmititExecutor(Executor):
    """Jobs of Slurm, or processes of this machine in their place; their files are in `runs/submitit`.

    Args:
        cluster: Name of the cluster in submitit.
    """

    modules, extra = ("submitit",), "slurm"
    MINUTES = 240
    """Maximum duration of a job, min; `SBATCH_TIMELIMIT` overrides it."""

    def __init__(self, name: str, says: str, cluster: str, poll_s: float, job_seconds: float):
        self.name, self.says, self.cluster, self.poll_s, self.job_seconds = name, says, cluster, poll_s, job_seconds

    def _outcomes(self, work: Callable[[T], Outcome], tasks: Iterable[T], jobs: int, stop: threading.Event) -> Outcomes:
        import submitit

        try:
            pool = submitit.AutoExecutor(folder=Path("runs", "submitit").absolute() / "%j", cluster=self.cluster)
        except RuntimeError as error:  # Slurm is not available
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
            yield from _run_windowed(tasks, jobs, submit, ended, lambda job: job.result())
        except (submitit.core.utils.UncompletedJobError, submitit.core.utils.FailedJobError) as error:
            raise self._lost(error) from error
        finally:
            for job in given:
                if not job.done():
                    job.cancel()


EXECUTORS: dict[str, Executor] = {
    one.name: one
    for one in (
        ThreadExecutor(),
        JoblibExecutor(),
        RayExecutor(),
        SubmititExecutor("slurm", "jobs of Slurm, through submitit", "slurm", 5.0, 60.0),
        SubmititExecutor("submitit_local", "processes of this machine in place of Slurm's jobs", "local", 0.1, 10.0),
    )
}
"""Engines by name."""
LOCAL = EXECUTORS["local"]


def get_executor(name: Any) -> Executor:
    """Return the engine of a name, after importing the modules it requires.

    Raises:
        ConfigError: There is no engine of that name.
        MissingExtraError: A required module is not installed.
    """
    found = EXECUTORS[check_choice("executor", name, EXECUTORS)]
    with require_extra(f"executor = {name!r}", found.extra):
        for module in found.modules:
            importlib.import_module(module)
    return found


def list_executors() -> str:
    """Return the valid values of `executor=` with their descriptions, one per line."""
    width = max(map(len, EXECUTORS))
    return "\n".join(f"  {one.name:{width}}  {one.says}" for one in EXECUTORS.values())


def _run_windowed(
    tasks: Iterable[T],
    most: int,
    submit: Callable[[T], Any],
    ended: Callable[[Any], Iterable[Any]],
    result: Callable[[Any], Outcome],
) -> Outcomes:
    """Yield each task with its outcome, with at most `most` tasks submitted at a time; `ended` waits for at least one.

    If one is lost, those that ended at the same time are yielded before its error is raised.
    """
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
        lost = None
        for handle in ended(running.keys()):
            task = running.pop(handle)
            try:
                outcome = result(handle)
            except Exception as error:
                lost = error if lost is None else lost
                continue
            yield task, outcome
        if lost is not None:
            raise lost


class TaskGroups(Iterator[tuple[T, ...]]):
    """Groups of tasks, drawn as needed, each sized to keep a job busy for a given time.

    Groups have one task until the first durations are known, and then as many as last for `seconds` on average. If the number
    of tasks is known, a group is at most a fair share of those left, so that the last jobs end together.

    Args:
        jobs: Number of concurrent jobs.
        seconds: Intended duration of a job.

    Attributes:
        handed_back: Tasks that a job was given and did not begin; they come first in the next groups.
    """

    def __init__(self, tasks: Iterable[T], jobs: int, seconds: float):
        self._left = operator.length_hint(tasks, -1)
        self._tasks, self._jobs, self._seconds = iter(tasks), jobs, seconds
        self._done, self._took_s = 0, 0.0
        self._lock = threading.Lock()  # an engine's own threads may draw tasks
        self.handed_back: deque[T] = deque()

    def __next__(self) -> tuple[T, ...]:
        with self._lock:
            group = tuple(itertools.islice(self._draw_tasks(), self._next_size()))
        if not group:
            raise StopIteration
        return group

    def record_durations(self, group: tuple[T, ...], seconds: list[float]) -> None:
        """Record the durations of the first tasks of a group, and take back the tasks that were not begun."""
        with self._lock:
            self._done += len(seconds)
            self._took_s += sum(seconds)
            self.handed_back.extend(group[len(seconds) :])

    def _draw_tasks(self) -> Iterator[T]:
        while self.handed_back:
            yield self.handed_back.popleft()
        for task in self._tasks:
            self._left -= self._left > 0
            yield task

    def _next_size(self) -> int:
        if not self._done:
            return 1
        size = int(self._seconds / max(self._took_s / self._done, LEAST_S))
        if self._left >= 0:
            size = min(size, -(-(self._left + len(self.handed_back)) // self._jobs))
        return max(size, 1)


def _attempt_task(work: Callable[[T], R], task: T) -> Outcome:
    """Return a task's outcome; errors of this package are returned unchanged, however an engine handles exceptions."""
    try:
        return work(task), None
    except NetbufError as error:
        return None, error


def _run_group(work: Callable[[T], R], most_s: float, group: tuple[T, ...]) -> list[tuple[Outcome, float]]:
    """Return outcome and duration (s) of a group's tasks, up to the first failure or until `most_s` has passed."""
    done: list[tuple[Outcome, float]] = []
    began = now = time.perf_counter()
    for task in group:
        if done and (done[-1][0][1] is not None or now - began >= most_s):
            break
        try:
            outcome = _attempt_task(work, task)
        except Exception as error:
            outcome = None, ForeignError(f"{type(error).__name__}: {error}", traceback.format_exc())
        before, now = now, time.perf_counter()
        done.append((outcome, now - before))
    return done


def _run_numbered(work: Callable[[T], R], number: int, task: T) -> tuple[int, R]:
    return number, work(task)


def _run_task(work: Callable[[T], R], task: T) -> R:
    return work(task)


def __getattr__(name: str) -> Any:
    """Find the present name of a renamed member."""
    return find_renamed(__name__, name)
