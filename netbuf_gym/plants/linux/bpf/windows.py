"""Kernel sockets whose congestion window is set from here, and counters of each at its acknowledgements.

Each socket has a row in memory that is shared with the kernel: to set a window is to write a number, and to read counters
is to read numbers.
"""

from __future__ import annotations

import mmap
import socket
import struct

from netbuf_gym.plants.linux.bpf import syscalls
from netbuf_gym.plants.linux.bpf.objects import load_object
from netbuf_gym.plants.linux.bpf.struct_ops import StructOps

SET = ("window_bytes", "decision", "interval", "paced", "slow_start", "receiver_limits", "fine")
COUNTED = (
    "acks", "delivered", "in_flight_sum", "rtt_count", "rtt_sum_us", "rtt_interval", "rtt_min_us", "rtt_least_us",
    "first_ack_us", "last_ack_us", "first_sent_ns", "last_sent_ns", "packets_sent", "packets_lost", "packets_retransmitted",
    "timeouts", "recoveries", "in_flight", "cwnd", "ssthresh", "mss", "srtt_us", "state", "established",
    "delivered_before",
)  # fmt: skip
FIELDS = SET + COUNTED
"""The row of a socket, 64 bits each, in the order of cpp/bpf/slots.h."""

ROW_BYTES = 8 * len(FIELDS)
_INDEX = {name: i for i, name in enumerate(FIELDS)}
_WINDOW, _DECISION, _INTERVAL, _PACED, _SLOW_START, _LIMITS, _FINE = (_INDEX[name] for name in SET)
_SO_COOKIE = 57
CONTROLS = {"agent": "window", "receiver_driven": "receiver_driven"}
"""The simulator's congestion controls that exist for kernel sockets, and the objects that they are compiled to."""


class SteeredSockets:
    """A congestion control of this process's own for a limited number of sockets.

    Args:
        control: `"agent"`: the window is set by `set_window`; `"receiver_driven"`: CUBIC's slow start, and then the
            receiver's window alone. Both as the simulator's.
        most: greatest number of sockets at a time.

    Attributes:
        name: value for TCP_CONGESTION; taken by no socket without CAP_NET_ADMIN in its network namespace.

    Raises:
        BpfError, OSError: see `StructOps`.
    """

    def __init__(self, control: str = "agent", most: int = 64):
        source = load_object(CONTROLS[control])
        if source.maps["slots"].value_bytes != ROW_BYTES:
            raise RuntimeError(f"the BPF object {control!r} is another version's: make bpf")
        self._ops = StructOps(source, dict.fromkeys(("slots", "keys"), most))
        self.name = self._ops.name
        self._memory = mmap.mmap(self._ops.maps["slots"], most * ROW_BYTES, mmap.MAP_SHARED)
        self._cells = memoryview(self._memory).cast("Q")
        self._free = list(range(most))[::-1]
        self._keys: dict[int, bytes] = {}

    def steer(self, sock: socket.socket) -> int:
        """Set this control on a TCP socket, connected or not, and return the socket's number.

        Raises:
            OSError: the control cannot be set on this socket (no CAP_NET_ADMIN in its network namespace), or no number is left.
        """
        (cookie,) = struct.unpack("=Q", sock.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, 8))
        number = self._claim_number(cookie)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.name.encode())
        except OSError:
            self.release(number)
            raise
        return number

    def expect(self, own: str, other: str) -> int:
        """Return a number for a future connection between two IPv4 addresses, whose opener sets this control.

        Raises:
            OSError: no number is left.
        """
        near, far = (struct.unpack("=I", socket.inet_aton(address))[0] for address in (own, other))
        return self._claim_number(near << 32 | far)

    def _claim_number(self, key: int) -> int:
        if not self._free:
            raise OSError(f"{len(self._keys)} sockets have congestion control {self.name!r}; valid: at most that many")
        number = self._free.pop()
        for cell in range(number * len(FIELDS), (number + 1) * len(FIELDS)):
            self._cells[cell] = 0
        self.set_receiver_limits(number, True)
        self._keys[number] = struct.pack("=Q", key)
        syscalls.update_element(self._ops.maps["keys"], self._keys[number], struct.pack("=I", number))
        return number

    def release(self, number: int) -> None:
        """Release the number of a socket that is closed."""
        syscalls.delete_element(self._ops.maps["keys"], self._keys.pop(number))
        self._free.append(number)

    def set_receiver_limits(self, number: int, receiver: bool) -> None:
        """Set whether the receiver may advertise less than there is to send, which `receiver_driven` takes into account."""
        self._cells[number * len(FIELDS) + _LIMITS] = receiver

    def pace(self, number: int) -> None:
        """Let packets leave at 1.2 windows in the least round trip so far; the socket itself must be one that is paced."""
        self._cells[number * len(FIELDS) + _PACED] = 1

    def pace_fine_windows(self, number: int) -> None:
        """Let windows below two segments, to 1/16 of one, leave at one in a smoothed round trip; the socket must be paced."""
        self._cells[number * len(FIELDS) + _FINE] = 1

    def start_slowly(self, number: int) -> None:
        """Let the window grow by what is acknowledged until the first decision, a longer round trip or a loss."""
        self._cells[number * len(FIELDS) + _SLOW_START] = 1

    def set_window(self, number: int, window_bytes: float) -> None:
        """Set a congestion window: in force with the next acknowledgement, until a time-out or the next decision."""
        row = number * len(FIELDS)
        self._cells[row + _WINDOW] = min(max(int(window_bytes), 1), 1 << 40)
        self._cells[row + _DECISION] += 1

    def begin_interval(self, number: int) -> None:
        """Begin a new interval for `rtt_min_us`, which is valid where `rtt_interval` equals `interval`."""
        self._cells[number * len(FIELDS) + _INTERVAL] += 1

    def read_row(self, number: int) -> dict[str, int]:
        """Return the fields of a socket's row."""
        start = number * len(FIELDS)
        return dict(zip(FIELDS, self._cells[start : start + len(FIELDS)].tolist(), strict=True))

    def close(self) -> None:
        """Unregister the control; sockets that have it keep it until they are closed."""
        self._ops.close()


__all__ = ["CONTROLS", "COUNTED", "FIELDS", "ROW_BYTES", "SET", "SteeredSockets"]
