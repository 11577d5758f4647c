"""One tuner for each network namespace, and one for each journal."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from netbuf_gym.errors import ConfigError
from netbuf_gym.utils.files import naming, unfinished

NAME = "\0netbuf-gym/live"
"""An abstract address is its network namespace's own, and goes with the process that holds it, however that ends."""


NAMESPACE = "settings of this network namespace are tuned"


class Busy(ConfigError):
    """Another process tunes or restores already."""


@contextmanager
def alone(journal: Path, begins: bool = True) -> Iterator[None]:
    """Holds the namespace and the journal of a tuner.

    Args:
        journal: its path.
        begins: whether a journal may begin there, so that its folder is made; else a folder that is not there needs no lock.

    Raises:
        Busy: another process holds one; named by its number. OSError: the journal's folder cannot be written, or the kernel
        has no abstract addresses.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as holder:
        try:
            holder.bind(NAME)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise Busy(_message(NAMESPACE, *(_holder() or (0, os.geteuid())))) from None
        holder.listen(8)
        if not begins and not journal.parent.is_dir():
            yield
            return
        with held(journal):
            yield


def busy(journal: Path) -> str:
    """Who tunes or restores just now, by `alone`, in words; "" where nobody does. Nothing is held for it, or made."""
    holder = _holder()
    if holder is not None:
        return f"{NAMESPACE} by {_who(*holder)}"
    try:
        handle = os.open(beside(journal), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return f"journal {journal} is in use by {_who(_written(handle), os.geteuid())}"
    finally:
        os.close(handle)
    return ""


def beside(journal: Path) -> Path:
    """The file that is locked for a journal; it is there for as long as that is held, or was when its holder was killed."""
    return journal.with_name(journal.name + ".lock")


@contextmanager
def held(journal: Path) -> Iterator[None]:
    """Holds a journal alone; what killed processes have left half written of it is taken away. Raises as `alone` does."""
    path = beside(journal)
    with naming(journal):
        journal.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours = _is(handle, path)  # not one that its holder took away
        except BlockingIOError:
            ours = False
        if not ours:
            raise Busy(_message(f"journal {journal} is in use", _written(handle), os.geteuid()))
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        try:
            for left in unfinished(journal):
                left.unlink(missing_ok=True)
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(handle)


def _is(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _written(handle: int) -> int:
    """The process that says in the file that it holds it; 0: none does."""
    pid = os.pread(handle, 20, 0).decode(errors="replace").strip()
    return int(pid) if pid.isdecimal() else 0


def _message(what: str, pid: int, uid: int) -> str:
    if uid not in (0, os.geteuid()):  # any user of a namespace can take an address of it
        return f"{what} by {_who(pid, uid)} already, or it only says so; valid: one tuner at a time, see what it is"
    return f"{what} by {_who(pid, uid)} already; valid: one tuner at a time (kill -INT ends it and restores its settings)"


def _who(pid: int, uid: int) -> str:
    who = f"process {pid}" if pid else "another process"
    return who if uid in (0, os.geteuid()) else f"{who} of user {uid}"


def _holder() -> tuple[int, int] | None:
    """The process that holds the namespace, 0 where it cannot be seen from here, and its user; None: none does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK) as asking:
        try:
            asking.connect(NAME)
            pid, uid, _ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return pid, uid
        except ConnectionRefusedError:
            return None
        except OSError:  # many have asked already
            return 0, os.geteuid()
