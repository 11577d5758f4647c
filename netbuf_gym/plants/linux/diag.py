"""All TCP sockets of a network namespace, whosever they are: netlink's INET_DIAG, as `ss -itm` has it.

`COLUMNS` are numbers of the listing (addresses as integers, ports, the socket's cookie), of the socket's memory with the
kernel's overhead (uapi/linux/sock_diag.h: SK_MEMINFO_*), and those of `netbuf_gym.plants.linux.tcp_info`. What a kernel does
not know is NaN.
"""

from __future__ import annotations

import os
import re
import socket

import numpy as np

from netbuf_gym import _core

COLUMNS: tuple[str, ...] = tuple(_core.inet_diag_columns())
INDEX = {name: i for i, name in enumerate(COLUMNS)}
ESTABLISHED, SYN_SENT, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING, LISTEN = 1, 2, 4, 5, 8, 9, 11, 10
OPEN = sum(1 << state for state in (ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING))
"""The states, as bits, of connections that have been established and may hold data."""
_SOCK_DIAG = 4
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class TcpSockets:
    """The TCP sockets of the network namespace in which this is made, to be listed as often as wanted, from any namespace.

    Raises:
        OSError: the kernel lists no sockets (CONFIG_INET_DIAG).
    """

    def __init__(self) -> None:
        self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG)
        self._netlink.bind((0, 0))
        # A thousand sockets are half a megabyte, of which the kernel sends as much as fits at a time.
        self._netlink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)

    def list(self, local_port: int = 0, remote_port: int = 0, states: int = OPEN, v6: bool = True) -> np.ndarray:
        """float64 `(sockets, columns)`, in the kernel's order.

        Args:
            local_port, remote_port: those of these ports only; 0: of any.
            states: bits of `ESTABLISHED` and so on.
            v6: those of IPv6 as well; their addresses are numbers only where they stand for IPv4.
        """
        return np.asarray(_core.inet_diag(self._netlink.fileno(), states, local_port, remote_port, v6))

    def close(self) -> None:
        """Closes the netlink socket."""
        self._netlink.close()


class Sockstat:
    """TCP memory of the network namespace in which this is made (`/proc/net/sockstat`): a few microseconds a look."""

    _NUMBERS = re.compile(rb"^TCP: inuse (\d+) orphan (\d+) tw (\d+) alloc (\d+) mem (\d+)", re.MULTILINE)

    def __init__(self) -> None:
        # What is read stays that of the namespace in which the folder was opened.
        self._file = os.open("/proc/thread-self/net/sockstat", os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> dict[str, int]:
        """`connections` (in use here), `orphans`, `time_wait`; of the whole host: `allocated`, `memory_bytes`."""
        found = self._NUMBERS.search(os.pread(self._file, 4096, 0))
        if found is None:
            raise OSError("/proc/net/sockstat has no line of TCP")
        used, orphans, waiting, allocated, pages = map(int, found.groups())
        return {
            "connections": used,
            "orphans": orphans,
            "time_wait": waiting,
            "allocated": allocated,
            "memory_bytes": pages * _PAGE_BYTES,
        }

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)
