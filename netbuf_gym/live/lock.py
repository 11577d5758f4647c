"""One tuner for each network namespace, and one for each journal."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from netbuf_gym.errors import ConfigError
from netbuf_gym.files import naming

NAME = "\0netbuf-gym/live"
"""An abstract address is its network namespace's own, and goes with the process that holds it, however that ends."""


class Busy(ConfigError):
    """Another process tunes or restores already."""


@contextmanager
def alone(journal: Path) -> Iterator[None]:
    """Holds the namespace and the journal of a tuner.

    Raises:
        Busy: another process holds one; named by its number. OSError: the journal's folder cannot be written.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as holder:
        try:
            holder.bind(NAME)
        except OSError:
            raise Busy(_message("settings of this network namespace are tuned", _holder())) from None
        holder.listen(8)
        path = journal.with_name(journal.name + ".lock")
        with naming(journal):
            journal.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = path.exists() and os.path.samestat(os.fstat(handle), path.stat())  # not one that its holder took away
            except BlockingIOError:
                held = False
            if not held:
                pid = os.pread(handle, 20, 0).decode(errors="replace").strip()
                raise Busy(_message(f"journal {journal} is in use", int(pid) if pid.isdigit() else 0))
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
        finally:
            os.close(handle)


def _message(what: str, pid: int) -> str:
    who = f"process {pid}" if pid else "another process"
    return f"{what} by {who} already; valid: one tuner at a time (kill -INT ends it and restores its settings)"


def _holder() -> int:
    """The process that holds the namespace; 0 where it cannot be seen from here."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK) as asking:
        try:
            asking.connect(NAME)
            return int(struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
        except OSError:
            return 0
