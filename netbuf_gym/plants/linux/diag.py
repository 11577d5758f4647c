"""All TCP sockets of a network namespace, of all processes: netlink's INET_DIAG, as `ss -itm` shows it.

`COLUMNS` are numbers of the listing (addresses as integers, ports, the socket's cookie, whether it is a connection over the
loopback device), of the socket's memory with the kernel's overhead (uapi/linux/sock_diag.h: SK_MEMINFO_*), and those of
`netbuf_gym.plants.linux.tcp_info`. What a kernel does not know is NaN.
"""

from __future__ import annotations

import os
import re
import socket
import struct
from collections.abc import Iterable

import numpy as np

from netbuf_gym import _core

COLUMNS: tuple[str, ...] = tuple(_core.inet_diag_columns())
INDEX = {name: i for i, name in enumerate(COLUMNS)}
ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING = 1, 4, 5, 8, 9, 11
OPEN = sum(1 << state for state in (ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING))
"""The states, as bits, of connections that have been established and may hold data."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
"""Unit in which the kernel counts the memory of sockets."""
TIMEOUT_S = 5
"""Longest time to wait for an answer."""
_SOCK_DIAG = 4
_TCP_DESTROY, _TCP6_DESTROY = 1 << 0, 1 << 2


class Table:
    """Sockets at one time: `rows` is float64 `(sockets, len(COLUMNS))`, `table["rtt_s"]` a column of it."""

    def __init__(self, rows: np.ndarray):
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, column: str) -> np.ndarray:
        return self.rows[:, INDEX[column]]

    def select_rows(self, kept: np.ndarray) -> Table:
        """Return some of the sockets, by a mask or by their indices."""
        return Table(self.rows[kept])


def join_tables(tables: Iterable[Table]) -> Table:
    """Join several tables."""
    tables = [table for table in tables if len(table)]
    if len(tables) == 1:
        return tables[0]
    return Table(np.concatenate([np.zeros((0, len(COLUMNS))), *(table.rows for table in tables)]))


class TcpSockets:
    """The TCP sockets of the network namespace in which this is made, to be listed as often as wanted, from any namespace.

    Needs no privileges. A context manager.

    Raises:
        OSError: the kernel lists no sockets (CONFIG_INET_DIAG).
    """

    def __init__(self) -> None:
        kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
        self._netlink = socket.socket(socket.AF_NETLINK, kind, _SOCK_DIAG)
        self._endings = socket.socket(socket.AF_NETLINK, kind | socket.SOCK_NONBLOCK, _SOCK_DIAG)
        try:
            self._netlink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", TIMEOUT_S, 0))
            # A thousand sockets are half a megabyte, of which the kernel sends as much as fits at a time.
            self._netlink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            self._netlink.bind((0, 0))
            self._endings.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
            self._endings.bind((0, _TCP_DESTROY | _TCP6_DESTROY))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> TcpSockets:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def list(self, local_port: int = 0, remote_port: int = 0, states: int = OPEN, v6: bool = True) -> Table:
        """Return the present sockets, in the kernel's order.

        Args:
            local_port, remote_port: sockets with these ports only; 0: any port.
            states: bits of `ESTABLISHED` and so on.
            v6: include sockets of IPv6; their addresses are numbers only where they stand for IPv4.

        Raises:
            OSError: the kernel refuses, or does not answer.
        """
        return Table(np.asarray(_core.inet_diag(self._netlink.fileno(), states, local_port, remote_port, v6)))

    def ended(self) -> Table:
        """Return the sockets that ended since the last call, with their last counters, without their memory.

        Some are missing where more ended than a buffer of the kernel's holds, and one may be reported more than once.
        """
        return Table(np.asarray(_core.inet_diag_ended(self._endings.fileno())))

    def close(self) -> None:
        """Close the netlink sockets."""
        self._netlink.close()
        self._endings.close()


class Sockstat:
    """TCP memory of the network namespace in which this is made (`/proc/net/sockstat`): a few microseconds a look."""

    _NUMBERS = re.compile(rb"^TCP: inuse (\d+) orphan (\d+) tw (\d+) alloc (\d+) mem (\d+)", re.MULTILINE)

    def __init__(self) -> None:
        # The contents remain those of the namespace in which the file was opened.
        self._file = os.open("/proc/thread-self/net/sockstat", os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> dict[str, int]:
        """Return `connections` (in use here), `orphans`, `time_wait`; of the whole host: `allocated`, `memory_bytes`."""
        found = self._NUMBERS.search(os.pread(self._file, 4096, 0))
        if found is None:
            raise OSError("/proc/net/sockstat has no line of TCP")
        used, orphans, waiting, allocated, pages = map(int, found.groups())
        return {
            "connections": used,
            "orphans": orphans,
            "time_wait": waiting,
            "allocated": allocated,
            "memory_bytes": pages * PAGE_BYTES,
        }

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
