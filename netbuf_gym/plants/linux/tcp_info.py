"""Kernel statistics of sockets that are open in this process: TCP_INFO, in SI units.

`COLUMNS` are the fields of `struct tcp_info` (uapi/linux/tcp.h), under descriptive names; those that a kernel does
not know yet are NaN. Times are seconds, cumulative ones since the connection's start; packets are segments of `mss_bytes`.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence

import numpy as np

from netbuf_gym import _core

COLUMNS: tuple[str, ...] = tuple(_core.tcp_info_columns())
INDEX = {name: i for i, name in enumerate(COLUMNS)}


def tcp_info(sockets: Sequence[socket.socket | int]) -> np.ndarray:
    """Return `COLUMNS` of TCP sockets or their descriptors, float64 `(sockets, columns)`; rows of other sockets are NaN."""
    return np.asarray(_core.tcp_info([sock if isinstance(sock, int) else sock.fileno() for sock in sockets]))
