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
from netbuf_gym.files import naming, unfinished

NAME = "\0netbuf-gym/live"
"""An abstract address is its network namespace's own, and goes with the process that holds it, however that ends."""


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
            raise Busy(_message("settings of this network namespace are tuned", *_holder())) from None
        holder.listen(8)
        if not begins and not journal.parent.is_dir():
            yield
            return
        with held(journal):
            yield


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
            pid = os.pread(handle, 20, 0).decode(errors="replace").strip()
            raise Busy(_message(f"journal {journal} is in use", int(pid) if pid.isdigit() else 0, os.geteuid()))
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


def _message(what: str, pid: int, uid: int) -> str:
    who = f"process {pid}" if pid else "another process"
    if uid not in (0, os.geteuid()):  # any user of a namespace can take an address of it
        return f"{what} by {who} of user {uid} already, or it only says so; valid: one tuner at a time, see what it is"
    return f"{what} by {who} already; valid: one tuner at a time (kill -INT ends it and restores its settings)"


def _holder() -> tuple[int, int]:
    """The process that holds the namespace, 0 where it cannot be seen from here, and its user."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK) as asking:
        try:
            asking.connect(NAME)
            pid, uid, _ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return pid, uid
        except OSError:
            return 0, os.geteuid()
