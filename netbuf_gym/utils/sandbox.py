"""Isolated worker process for user code: a crash, a hang or memory exhaustion ends the worker alone and is reported.

The worker is a fresh interpreter (nothing of the caller's main module is run again) that dies with its parent. The worker sends
a sign of life whenever `Heartbeat.is_set` is called, as rollouts do between two events, and is killed where none comes.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.connection import Connection, Pipe
from typing import Any, Protocol, cast

from netbuf_gym.errors import ConfigError, ControlError, NetbufError, PlantFault, one_line

SILENT_CPU_S = 10.0
"""Seconds of CPU time without a sign of life after which a worker is killed."""

SILENT_S = 300.0
"""Seconds of wall-clock time without a sign of life, sleep included, after which a worker is killed."""

STEP_CPU_S = 300.0
"""CPU time in seconds within which each step must end: a world, if worlds are reported one by one."""

MEMORY_BYTES = 4 << 30
"""Memory that the work may use beyond that of a fresh worker."""

_WORDS_EVERY_S = 0.1
_PR_SET_PDEATHSIG = 1
_parent: Connection | None = None
_at = ""


class StopSignal(Protocol):
    """Interface by which work learns that it is to end early, satisfied by `threading.Event`."""

    def is_set(self) -> bool: ...

    def set(self) -> None: ...


class Stopped(Exception):
    """Work was abandoned because `stop` was set."""


class Heartbeat:
    """Stand-in for the `threading.Event` that ends work: it is never set, and every check sends a sign of life."""

    def __init__(self, pipe: Connection):
        self._pipe, self._last = pipe, 0.0

    def is_set(self) -> bool:
        """Return False, after sending a sign of life if the last one is 0.1 s old."""
        now = time.monotonic()
        if now - self._last > _WORDS_EVERY_S:
            self._last = now
            self._pipe.send(("alive", None))
        return False

    def set(self) -> None:
        """Do nothing: the waiting parent ends the worker."""


def is_worker() -> bool:
    """Return whether this process is such a worker."""
    return _parent is not None


def set_location(where: str) -> None:
    """Set the location that a worker's error messages name from now on; elsewhere do nothing."""
    global _at
    if _parent is not None:
        _at = where
        _parent.send(("at", where))


def run(
    what: str,
    function: Callable[..., Any],
    *args: Any,
    each: Callable[[Any], None] = lambda step: None,
    stop: StopSignal | None = None,
) -> Any:
    """Return the result of `function(*args, each=..., stop=...)`, called in a worker.

    Args:
        what: Name of the user's code in messages.
        function: Module-level function; function, arguments and result must be picklable. It calls `each` with every completed
            step, and `stop.is_set()` regularly.
        each: Callback in this process, called with each completed step.
        stop: Event that ends the worker when set.

    Raises:
        Stopped: `stop` was set.
        ControlError: The code crashed, hung, took too much time or memory, or raised an exception.
        NetbufError: An error of this package raised by the function.
    """
    ours, theirs = Pipe()
    begin = f"from netbuf_gym.utils.sandbox import run_worker; run_worker({theirs.fileno()})"
    start = f"import sys; sys.path[:] = {sys.path!r}; {begin}"
    command = [sys.executable, *(f"-W{option}" for option in sys.warnoptions), "-c", start]
    with ours, subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=2) as process:
        theirs.close()
        try:
            ours.send_bytes(_pickle_work((what, function, args)))
            return _follow_worker(what, process, ours, each, stop or threading.Event())
        finally:
            if process.poll() is None:
                process.kill()


def run_parallel(
    what: str,
    function: Callable[..., list[Any]],
    items: Sequence[Any],
    workers: int,
    *args: Any,
    each: Callable[[int], None] = lambda index: None,
    stop: StopSignal | None = None,
) -> list[Any]:
    """Return a result for each item, computed by several workers at the same time, each of which takes every n-th item.

    Args:
        what: Name of the user's code in messages.
        function: As for `run`; `function(share, *args, each=..., stop=...)` returns a result for each item of its share, and
            calls `each` with the index in the share of every one that is done.
        items: Items, at least one.
        workers: Number of workers, at least 1.
        each: Callback in this process, called with the index of every item that is done, one at a time.
        stop: Event that ends the workers when set; set by the first error, which ends all workers.

    Raises:
        Stopped, ControlError, NetbufError: As `run` does.
    """
    workers = min(workers, len(items))
    one_at_a_time, stop = threading.Lock(), stop or threading.Event()

    def work(first: int) -> list[Any]:
        def report(index: int) -> None:
            with one_at_a_time:
                each(first + index * workers)

        return cast(list[Any], run(what, function, items[first::workers], *args, each=report, stop=stop))

    found: list[Any] = [None] * len(items)
    with ThreadPoolExecutor(workers) as pool:
        working = {pool.submit(work, first): first for first in range(workers)}
        try:
            for done in as_completed(working):
                found[working[done] :: workers] = done.result()
        except BaseException:
            stop.set()
            raise
    return found


def _follow_worker(
    what: str, process: subprocess.Popen, pipe: Connection, each: Callable[[Any], None], stop: StopSignal
) -> Any:
    heard, heard_cpu, step_cpu, begun, where = time.monotonic(), 0.0, 0.0, False, ""
    while True:
        if stop.is_set():
            raise Stopped
        if pipe.poll(0.25):
            try:
                said, value = pipe.recv()
            except (EOFError, ConnectionResetError):
                raise ControlError(f"{what} {_describe_exit(process.wait(), where)}") from None
            if said == "done":
                return value
            if said == "failed":
                raise value
            heard, heard_cpu = time.monotonic(), _read_cpu_s(process.pid)
            if said == "each" or not begun:
                begun, step_cpu = True, heard_cpu
            if said == "each":
                each(value)
            elif said == "at":
                where = f" in {value}"
        elif begun and _read_cpu_s(process.pid) - heard_cpu > SILENT_CPU_S:
            said = f"{what} does not return: {SILENT_CPU_S:g} s of computing in one call{where}"
            raise ControlError(f"{said}; valid: microseconds")
        elif time.monotonic() - heard > SILENT_S:
            raise ControlError(f"{what} does not return: {SILENT_S:g} s without a sign of life{where}; valid: microseconds")
        if begun and _read_cpu_s(process.pid) - step_cpu > STEP_CPU_S:
            raise ControlError(f"{what} takes more than {STEP_CPU_S:g} s of computing{where or ' for a world'}; valid: less")


def _pickle_work(work: Any) -> bytes:
    try:
        return pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        said = f"user code runs in a separate process, to which this cannot be sent: {error}"
        raise ConfigError(f"{said}; valid: scenarios and arguments that can be pickled") from None


def _read_cpu_s(process: int) -> float:
    """Return the CPU time of a process in seconds; 0 if it has ended."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
    except (OSError, ValueError):
        return 0.0
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _describe_exit(status: int, where: str) -> str:
    if status >= 0:
        return f"ended the process (exit status {status}){where}; valid: code that returns"
    said = signal.strsignal(-status)
    return f"crashed ({signal.Signals(-status).name}: {said}){where}; valid: code that does not"


def run_worker(pipe: int) -> None:
    """Run the worker's side until its work is done."""
    global _parent
    _parent = connection = Connection(pipe)
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl-C in a terminal, the parent ends the worker
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        what, function, args = pickle.loads(connection.recv_bytes())
        _limit_memory()
        answer = "done", function(*args, each=lambda step: connection.send(("each", step)), stop=Heartbeat(connection))
    except (BrokenPipeError, EOFError):
        return
    except ControlError as error:
        answer = "failed", ControlError(f"{one_line(error)} ({_at})" if _at else one_line(error))
    except NetbufError as error:
        answer = "failed", error
    except MemoryError as error:
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))  # reporting the error takes memory, too
        why = ": ".join(
            filter(None, [f"{what} needs more than {MEMORY_BYTES >> 30} GiB of memory{_format_location()}", str(error)])
        )
        answer = "failed", ControlError(f"{why}; valid: less")
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{what} raised {type(error).__name__}: {one_line(error)} ({last.filename}:{last.lineno}){_format_location()}"
        answer = "failed", ControlError(said)
    try:
        packed = pickle.dumps(answer)
    except Exception:
        packed = pickle.dumps(("failed", PlantFault(str(answer[1]))))
    connection.send_bytes(packed)


def _format_location() -> str:
    return f" in {_at}" if _at else ""


def _limit_memory() -> None:
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = now + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
