"""Locks: one tuner for each network namespace, and one for each journal."""

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
from netbuf_gym.utils.files import find_unfinished, name_in_errors

NAME = "\0netbuf-gym/live"
"""Abstract socket address: belongs to a network namespace, and goes with the process that holds it, however that ends."""


NAMESPACE = "settings of this network namespace are tuned"


class LockedError(ConfigError):
    """Error: another process tunes or restores already."""


@contextmanager
def lock_host_tuning(journal: Path, begins: bool = True) -> Iterator[None]:
    """Hold the namespace and the journal of a tuner.

    Args:
        journal: path of the journal.
        begins: whether a journal may begin there, so that its folder is made; else a folder that is not there needs no lock.

    Raises:
        LockedError: another process, named by its number, holds one. OSError: the journal's folder cannot be written, or the
            kernel has no abstract addresses.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as holder:
        try:
            holder.bind(NAME)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise LockedError(_busy_message(NAMESPACE, *(_find_holder() or (0, os.geteuid())))) from None
        holder.listen(8)
        if not begins and not journal.parent.is_dir():
            yield
            return
        with lock_journal(journal):
            yield


def describe_holder(journal: Path) -> str:
    """Return in words who tunes or restores just now; "": nobody. Takes no lock, and creates nothing."""
    holder = _find_holder()
    if holder is not None:
        return f"{NAMESPACE} by {_describe_process(*holder)}"
    try:
        handle = os.open(lock_path(journal), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return f"journal {journal} is in use by {_describe_process(_read_holder_pid(handle), os.geteuid())}"
    finally:
        os.close(handle)
    return ""


def lock_path(journal: Path) -> Path:
    """Return the path of a journal's lock file, which exists while the lock is held, or was when its holder was killed."""
    return journal.with_name(journal.name + ".lock")


@contextmanager
def lock_journal(journal: Path) -> Iterator[None]:
    """Hold a journal exclusively, and remove half-written files of killed processes. Raises as `lock_host_tuning`."""
    path = lock_path(journal)
    with name_in_errors(journal):
        journal.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours = _is_same_file(handle, path)  # not a file that its holder has removed
        except BlockingIOError:
            ours = False
        if not ours:
            raise LockedError(_busy_message(f"journal {journal} is in use", _read_holder_pid(handle), os.geteuid()))
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        try:
            for left in find_unfinished(journal):
                left.unlink(missing_ok=True)
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(handle)


def _is_same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _read_holder_pid(handle: int) -> int:
    """Return the process that the lock file names as its holder; 0: none."""
    pid = os.pread(handle, 20, 0).decode(errors="replace").strip()
    return int(pid) if pid.isdecimal() else 0


def _busy_message(what: str, pid: int, uid: int) -> str:
    holder = f"{what} by {_describe_process(pid, uid)}"
    if uid not in (0, os.geteuid()):  # any user of a namespace can take an address of it
        return f"{holder} already, or it only claims so; valid: one tuner at a time, see what it is"
    return f"{holder} already; valid: one tuner at a time (kill -INT ends it and restores its settings)"


def _describe_process(pid: int, uid: int) -> str:
    who = f"process {pid}" if pid else "another process"
    return who if uid in (0, os.geteuid()) else f"{who} of user {uid}"


def _find_holder() -> tuple[int, int] | None:
    """Return the process that holds the namespace (0 where it cannot be seen from here) and its user; None: none does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK) as asking:
        try:
            asking.connect(NAME)
            pid, uid, _ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return pid, uid
        except ConnectionRefusedError:
            return None
        except OSError:  # many have asked already
            return 0, os.geteuid()
