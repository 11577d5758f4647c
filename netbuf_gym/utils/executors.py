"""Where work that falls into independent tasks is done: in threads of this process, or by an engine that spreads it further.

What comes of a task depends on the task alone, so that results are the same wherever it was done, and whatever was done beside
it. Engines that work elsewhere give a job as many tasks as keep it busy for `Executor.job_seconds`, by how long those that are
done took; the first jobs have one each. An engine's own settings are its own: Ray's cluster is named by `RAY_ADDRESS`, Slurm's
partition, account and time by `SBATCH_PARTITION` and the like.
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

from netbuf_gym.errors import NetbufError, WorkerError, needing
from netbuf_gym.utils.arguments import choice

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Foreign:
    """An error that is none of ours, in words: objects of other packages need not survive the way."""

    says: str
    trace: str


Outcome = tuple[Any, NetbufError | Foreign | None]
"""A task's result, or why it has none."""
Outcomes = Generator[tuple[Any, Any], None, None]
"""Whatever was given to an engine, a task or a group of them, with what came of it."""
OVERTIME = 2.0
"""A job that has worked for so many times what was meant for it hands back the tasks that it has not begun."""
LEAST_S = 1e-3
"""A task is taken to last no less, so that no job gets more than `job_seconds` / LEAST_S of them."""


class Executor(ABC):
    """An engine.

    Attributes:
        name: What `executor=` calls it.
        says: A line.
        modules: What it needs of the extra of the package that is called `extra`.
        job_seconds: Work that a job is given at a time, where it is not in this process.
    """

    name: str
    says: str
    modules: tuple[str, ...] = ()
    extra: str = ""
    job_seconds: float = 1.0

    def run(
        self, work: Callable[[T], R], tasks: Iterable[T], jobs: int, stop: threading.Event | None = None
    ) -> Iterator[tuple[T, R]]:
        """`work` of every task, in the order in which they end, or their groups do; tasks are drawn as they are needed.

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
        with closing(self._each(work, tasks, jobs, stop)) as outcomes:
            try:
                for task, (result, error) in outcomes:
                    if isinstance(error, Foreign):
                        raise self._lost(error.says) from RuntimeError(error.trace)
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
    def _outcomes(self, work: Callable[[T], Any], tasks: Iterable[T], jobs: int, stop: threading.Event) -> Outcomes:
        """Each task with its outcome, in the order in which they end; `stop` is set before anything is waited for at an end."""

    def _each(self, work: Callable[[T], Any], tasks: Iterable[T], jobs: int, stop: threading.Event) -> Outcomes:
        """Each task with its `Outcome`, by a job for each group of tasks."""
        groups = Groups(tasks, jobs, self.job_seconds)
        job = partial(_work_off, work, OVERTIME * self.job_seconds)
        while True:
            with closing(self._outcomes(job, groups, jobs, stop)) as ended:
                for group, done in ended:
                    groups.learn(group, [seconds for _, seconds in done])
                    yield from zip(group, (outcome for outcome, _ in done), strict=False)
            if not groups.handed_back:
                return

    def _lost(self, error: Exception | str) -> WorkerError:
        return WorkerError(f"executor = {self.name!r}: work was lost: {error}; what is done is kept: the same command goes on")


class Local(Executor):
    """Threads: the simulator leaves the interpreter while it runs."""

    name, says = "local", "threads of this process"

    def _each(self, work: Callable[[T], Any], tasks: Iterable[T], jobs: int, stop: threading.Event) -> Outcomes:
        """See `Executor._each`: a thread takes one task at a time."""
        return self._outcomes(partial(_tried, work), tasks, jobs, stop)

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
            for number, outcome in Parallel(jobs, return_as="generator_unordered", batch_size=1)(numbered()):
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
    """Of a job, at most; `SBATCH_TIMELIMIT` says otherwise."""

    def __init__(self, name: str, says: str, cluster: str, poll_s: float, job_seconds: float):
        self.name, self.says, self.cluster, self.poll_s, self.job_seconds = name, says, cluster, poll_s, job_seconds

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
        Submitit("slurm", "jobs of Slurm, through submitit", "slurm", 5.0, 60.0),
        Submitit("submitit_local", "processes of this machine in place of Slurm's jobs", "local", 0.1, 10.0),
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
    """Each task with its outcome, at most so many of them given to an engine at a time; `ended` waits for one at least.

    Where one of them was lost, those that ended beside it are handed over before its error is raised.
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


class Groups(Iterator[tuple[T, ...]]):
    """Groups of tasks, drawn as they are needed, each to keep a job busy for a while.

    One task each before anything is known of how long they take; then as many as last for `seconds` on average, but of a
    known number no more than a fair share of those that are left, so that the last jobs end together.

    Args:
        jobs: At once.
        seconds: Of a job.

    Attributes:
        handed_back: Tasks that a job was given and has not begun, which come first in the next groups.
    """

    def __init__(self, tasks: Iterable[T], jobs: int, seconds: float):
        self._left = operator.length_hint(tasks, -1)
        self._tasks, self._jobs, self._seconds = iter(tasks), jobs, seconds
        self._done, self._took_s = 0, 0.0
        self._lock = threading.Lock()  # an engine's own threads may draw
        self.handed_back: deque[T] = deque()

    def __next__(self) -> tuple[T, ...]:
        with self._lock:
            group = tuple(itertools.islice(self._drawn(), self._size()))
        if not group:
            raise StopIteration
        return group

    def learn(self, group: tuple[T, ...], seconds: list[float]) -> None:
        """Takes down how long the first tasks of a group took, and takes back those that were not begun."""
        with self._lock:
            self._done += len(seconds)
            self._took_s += sum(seconds)
            self.handed_back.extend(group[len(seconds) :])

    def _drawn(self) -> Iterator[T]:
        while self.handed_back:
            yield self.handed_back.popleft()
        for task in self._tasks:
            self._left -= self._left > 0
            yield task

    def _size(self) -> int:
        if not self._done:
            return 1
        size = int(self._seconds / max(self._took_s / self._done, LEAST_S))
        if self._left >= 0:
            size = min(size, -(-(self._left + len(self.handed_back)) // self._jobs))
        return max(size, 1)


def _tried(work: Callable[[T], R], task: T) -> Outcome:
    """A task's outcome, in which errors of ours travel as they are, whatever an engine makes of errors."""
    try:
        return work(task), None
    except NetbufError as error:
        return None, error


def _work_off(work: Callable[[T], R], most_s: float, group: tuple[T, ...]) -> list[tuple[Outcome, float]]:
    """The outcomes of a group's tasks, and the seconds of each, up to the first that fails, or as long as there is time."""
    done: list[tuple[Outcome, float]] = []
    began = now = time.perf_counter()
    for task in group:
        if done and (done[-1][0][1] is not None or now - began >= most_s):
            break
        try:
            outcome = _tried(work, task)
        except Exception as error:
            outcome = None, Foreign(f"{type(error).__name__}: {error}", traceback.format_exc())
        before, now = now, time.perf_counter()
        done.append((outcome, now - before))
    return done


def _numbered(work: Callable[[T], R], number: int, task: T) -> tuple[int, R]:
    return number, work(task)


def _call(work: Callable[[T], R], task: T) -> R:
    return work(task)
