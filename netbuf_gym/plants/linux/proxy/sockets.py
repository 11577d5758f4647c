"""Sockets of other processes: options set on them from outside."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress

from netbuf_gym.plants.linux import system

TCP_WINDOW_CLAMP = 10
GAP = 64
"""Number of unused descriptors in a row that are taken as the end of them: the lowest free ones are given first."""


def clamp_windows(pid: int, size_bytes: int) -> int:
    """Clamp the windows of all TCP connections that a process has now; return their number.

    Raises:
        OSError: this process may not; the message says why.
    """
    return _set_option(pid, TCP_WINDOW_CLAMP, size_bytes, "windows of a proxy's connections cannot be clamped here")


def set_congestion_control(pid: int, name: str) -> int:
    """Set the congestion control of all TCP connections that a process has now; return their number.

    Raises:
        OSError: this process may not; the message says why.
    """
    what = "the congestion control of a proxy's connections cannot be set here"
    return _set_option(pid, socket.TCP_CONGESTION, name.encode(), what)


def _set_option(pid: int, option: int, value: int | bytes, refusal: str) -> int:
    """Set an option of TCP on all connections of a process; return their number."""
    count = missing = number = 0
    process = system.pidfd_open(pid)
    try:
        while missing < GAP:
            try:
                descriptor = system.pidfd_getfd(process, number)
            except OSError as error:
                if error.errno == errno.ESRCH:
                    return count
                if error.errno != errno.EBADF:
                    raise OSError(error.errno, f"{refusal}: {error.strerror}") from None
                missing += 1
            else:
                missing = 0
                count += _set_on_connection(descriptor, option, value)
            number += 1
        return count
    finally:
        os.close(process)


def _set_on_connection(descriptor: int, option: int, value: int | bytes) -> bool:
    """Set an option of TCP on a connection; return whether the descriptor is one."""
    try:
        one = socket.socket(fileno=descriptor)
    except OSError:
        os.close(descriptor)
        return False
    with one, suppress(OSError):
        if one.family in (socket.AF_INET, socket.AF_INET6) and one.type == socket.SOCK_STREAM:
            one.getpeername()  # fails for a listening socket
            one.setsockopt(socket.IPPROTO_TCP, option, value)
            return True
    return False
