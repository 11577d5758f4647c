"""Kernel sockets whose congestion window is set from here, and what is counted of them with each acknowledgement.

Each socket has a row in memory that is shared with the kernel: to set a window is to write a number, and to read what was
counted is to read numbers.
"""

from __future__ import annotations

import mmap
import socket
import struct
from collections.abc import Iterable

import numpy as np

from netbuf_gym.plants.linux.bpf import syscalls
from netbuf_gym.plants.linux.bpf.objects import shipped
from netbuf_gym.plants.linux.bpf.struct_ops import StructOps

SET = ("window_bytes", "decision", "interval", "receiver_limits")
COUNTED = (
    "acks", "delivered", "in_flight_sum", "rtt_count", "rtt_sum_us", "rtt_interval", "rtt_min_us", "rtt_least_us",
    "last_ack_us", "first_sent_ns", "last_sent_ns", "packets_sent", "packets_lost", "packets_retransmitted", "timeouts",
    "recoveries", "in_flight", "cwnd", "ssthresh", "mss", "srtt_us", "state", "established",
)  # fmt: skip
ROW = np.dtype([(name, np.uint64) for name in SET + COUNTED])
"""The row of a socket: cpp/bpf/slots.h, whose order this is."""

_SO_COOKIE = 57
CONTROLS = {"agent": "window", "receiver_driven": "receiver_driven"}
"""The simulator's congestion controls that there are for kernel sockets, and the objects that they are compiled to."""


class SteeredSockets:
    """A congestion control of this process' own for up to so many sockets.

    Args:
        control: `"agent"`: the window is what `set_windows` says; `"receiver_driven"`: CUBIC's slow start, and then the
            receiver's window alone. Both as the simulator's.
        most: sockets at a time.

    Attributes:
        rows: of the sockets, by their numbers: what was counted, and the fields of `SET`.

    Raises:
        BpfError, OSError: see `StructOps`.
    """

    def __init__(self, control: str = "agent", most: int = 64):
        source = shipped(CONTROLS[control])
        if source.maps["slots"].value_bytes != ROW.itemsize:
            raise RuntimeError(f"the BPF object {control!r} is another version's: make bpf")
        self._ops = StructOps(source, most)
        self.name = self._ops.name
        self._memory = mmap.mmap(self._ops.maps["slots"], most * ROW.itemsize, mmap.MAP_SHARED)
        self.rows = np.frombuffer(self._memory, ROW, most)
        self._free = list(range(most))[::-1]
        self._cookies: dict[int, int] = {}

    def steer(self, sock: socket.socket) -> int:
        """Gives a TCP socket this control, connected or not, and a number.

        Raises:
            OSError: it cannot be set on this socket (no CAP_NET_ADMIN in its network namespace), or no number is left.
        """
        if not self._free:
            raise OSError(f"{len(self.rows)} sockets have congestion control {self.name!r}: no row is left")
        cookie, = struct.unpack("=Q", sock.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, 8))
        number = self._free.pop()
        self.rows[number] = 0
        self.rows["receiver_limits"][number] = 1
        syscalls.update(self._ops.maps["cookies"], struct.pack("=Q", cookie), struct.pack("=I", number))
        self._cookies[number] = cookie
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.name.encode())
        except OSError:
            self.release(number)
            raise
        return number

    def release(self, number: int) -> None:
        """Forgets a socket that is closed."""
        syscalls.delete(self._ops.maps["cookies"], struct.pack("=Q", self._cookies.pop(number)))
        self._free.append(number)

    def set_windows(self, numbers: Iterable[int] | int, window_bytes: np.ndarray | float) -> None:
        """Sets congestion windows, bytes: in force with the next acknowledgement, until a time-out or the next decision."""
        numbers = np.atleast_1d(np.asarray(numbers))
        self.rows["window_bytes"][numbers] = np.asarray(window_bytes, np.float64).clip(1, 2.0**40).astype(np.uint64)
        self.rows["decision"][numbers] += np.uint64(1)

    def begin_interval(self, numbers: Iterable[int] | int) -> None:
        """From now on `rtt_min_us` is of a new interval; it counts where `rtt_interval` equals `interval`."""
        self.rows["interval"][np.atleast_1d(np.asarray(numbers))] += np.uint64(1)

    def close(self) -> None:
        """Takes the control back; sockets that have it keep it until they are closed."""
        self._ops.close()


__all__ = ["CONTROLS", "COUNTED", "ROW", "SET", "SteeredSockets"]
