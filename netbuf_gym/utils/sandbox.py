"""Work in a process beside this one, where code of the user's may crash, hang or fill the memory: it ends there, and is told.

The worker is a fresh interpreter (nothing of the caller's main module is run again) that dies with its parent. It sends word
whenever `Pulse.is_set` is asked, as rollouts do between two events: one that computes on without word is ended.
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
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from typing import Any, Protocol

from netbuf_gym.errors import ConfigError, ControlError, NetbufError, PlantFault, one_line

SILENT_CPU_S = 10.0
"""Of computing without word, after which a worker is ended."""

SILENT_S = 300.0
"""Of anything without word, sleep among it."""

STEP_CPU_S = 300.0
"""Of computing, after which something must be done: a world, of those that are told one by one."""

MEMORY_BYTES = 4 << 30
"""That the work may add to what a fresh worker has."""

_WORDS_EVERY_S = 0.1
_PR_SET_PDEATHSIG = 1
_parent: Connection | None = None
_at = ""


class Stop(Protocol):
    """What work looks at to end early: a `threading.Event`, or what stands for one."""

    def is_set(self) -> bool: ...

    def set(self) -> None: ...


class GivenUp(Exception):
    """A worker was ended because nobody wants its work any more."""


class Pulse:
    """Stands where work looks for a `threading.Event` that ends it: never set, and every look sends word."""

    def __init__(self, pipe: Connection):
        self._pipe, self._last = pipe, 0.0

    def is_set(self) -> bool:
        """False, with word of the work's being alive now and then."""
        now = time.monotonic()
        if now - self._last > _WORDS_EVERY_S:
            self._last = now
            self._pipe.send(("alive", None))
        return False

    def set(self) -> None:
        """Nothing: whoever waits ends the worker."""


def here() -> bool:
    """Whether this process is such a worker."""
    return _parent is not None


def at(where: str) -> None:
    """Says what a worker is at from now on, for messages of what becomes of it; elsewhere nothing."""
    global _at
    if _parent is not None:
        _at = where
        _parent.send(("at", where))


def run(
    what: str,
    function: Callable[..., Any],
    *args: Any,
    each: Callable[[Any], None] = lambda told: None,
    stop: Stop | None = None,
) -> Any:
    """What `function(*args, each=..., stop=...)` returns, called in a worker.

    Args:
        what: whose code it is, as messages call it.
        function: of a module; it, its arguments and what it returns can be pickled. It calls `each` with every step that is
            done, and asks `stop.is_set()` every now and then.
        each: is told these steps here.
        stop: ends the worker when it is set.

    Raises:
        GivenUp: `stop` was set.
        ControlError: the code has crashed, hung, taken too much time or memory, or raised.
        NetbufError: what the function raised of the package's own errors.
    """
    ours, theirs = Pipe()
    start = f"import sys; sys.path[:] = {sys.path!r}; from netbuf_gym.utils.sandbox import work; work({theirs.fileno()})"
    command = [sys.executable, *(f"-W{option}" for option in sys.warnoptions), "-c", start]
    with ours, subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=2) as process:
        theirs.close()
        try:
            ours.send_bytes(_packed((what, function, args)))
            return _followed(what, process, ours, each, stop or threading.Event())
        finally:
            if process.poll() is None:
                process.kill()


def _followed(what: str, process: subprocess.Popen, pipe: Connection, each: Callable[[Any], None], stop: Stop) -> Any:
    heard, heard_cpu, step_cpu, begun, where = time.monotonic(), 0.0, 0.0, False, ""
    while True:
        if stop.is_set():
            raise GivenUp
        if pipe.poll(0.25):
            try:
                said, value = pipe.recv()
            except (EOFError, ConnectionResetError):
                raise ControlError(f"{what} {_ended(process.wait(), where)}") from None
            if said == "done":
                return value
            if said == "failed":
                raise value
            heard, heard_cpu = time.monotonic(), _cpu_s(process.pid)
            if said == "each" or not begun:
                begun, step_cpu = True, heard_cpu
            if said == "each":
                each(value)
            elif said == "at":
                where = f" in {value}"
        elif begun and _cpu_s(process.pid) - heard_cpu > SILENT_CPU_S:
            said = f"{what} does not return: {SILENT_CPU_S:g} s of computing in one call{where}"
            raise ControlError(f"{said}; valid: microseconds")
        elif time.monotonic() - heard > SILENT_S:
            raise ControlError(f"{what} does not return: {SILENT_S:g} s without a sign of life{where}; valid: microseconds")
        if begun and _cpu_s(process.pid) - step_cpu > STEP_CPU_S:
            raise ControlError(f"{what} takes more than {STEP_CPU_S:g} s of computing{where or ' for a world'}; valid: less")


def _packed(work: Any) -> bytes:
    try:
        return pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        said = f"code of the user's runs in a process beside, where this cannot be sent: {error}"
        raise ConfigError(f"{said}; valid: scenarios and arguments that pickle takes") from None


def _cpu_s(process: int) -> float:
    """Seconds that a process has computed; 0 of one that has ended."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
    except (OSError, ValueError):
        return 0.0
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _ended(status: int, where: str) -> str:
    if status >= 0:
        return f"ended the process (exit status {status}){where}; valid: code that returns"
    said = signal.strsignal(-status)
    return f"crashed ({signal.Signals(-status).name}: {said}){where}; valid: code that does not"


def work(pipe: int) -> None:
    """The worker's side, until its work is done."""
    global _parent
    _parent = connection = Connection(pipe)
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C: the parent ends this
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        what, function, args = pickle.loads(connection.recv_bytes())
        _limit_memory()
        told = "done", function(*args, each=lambda step: connection.send(("each", step)), stop=Pulse(connection))
    except (BrokenPipeError, EOFError):
        return
    except ControlError as error:
        told = "failed", ControlError(f"{one_line(error)} ({_at})" if _at else one_line(error))
    except NetbufError as error:
        told = "failed", error
    except MemoryError as error:
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))  # what tells of it takes memory, too
        why = ": ".join(filter(None, [f"{what} needs more than {MEMORY_BYTES >> 30} GiB of memory{_where()}", str(error)]))
        told = "failed", ControlError(f"{why}; valid: less")
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{what} raised {type(error).__name__}: {one_line(error)} ({last.filename}:{last.lineno}){_where()}"
        told = "failed", ControlError(said)
    try:
        packed = pickle.dumps(told)
    except Exception:
        packed = pickle.dumps(("failed", PlantFault(str(told[1]))))
    connection.send_bytes(packed)


def _where() -> str:
    return f" in {_at}" if _at else ""


def _limit_memory() -> None:
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = now + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
