"""Health checks of a listening program: whether it still accepts connections."""

from __future__ import annotations

import os
import socket
import struct

from netbuf_gym.plants.linux.proxy.processes import enter_namespace

EACH_S, PATIENCE_S = 5.0, 10.0
LISTENING = "0A"


class HealthProbe:
    """Probe of a listening program: connections from its own namespace now and then, closed without data once accepted.

    Args:
        name: name of the program in messages.
        namespace: a descriptor of the program's network namespace.
        address: where the program listens, IPv4 and port.
        each_s: time from one connection to the next.
        patience_s: longest time that the program may leave connections waiting.
    """

    def __init__(
        self, name: str, namespace: int, address: tuple[str, int], each_s: float = EACH_S, patience_s: float = PATIENCE_S
    ):
        self._name, self._namespace, self._address = name, namespace, address
        self._each_s, self._patience_s = each_s, patience_s
        self._probe: socket.socket | None = None
        self._due_s = self._waiting_since_s = -1.0
        with enter_namespace(namespace):  # the contents remain those of the namespace in which the file was opened
            self._table = os.open("/proc/thread-self/net/tcp", os.O_RDONLY | os.O_CLOEXEC)

    def look(self, now_s: float) -> None:
        """Probe if it is time; raises RuntimeError when the program has not accepted a connection for too long.

        To be called regularly.
        """
        if self._due_s < 0:
            self._due_s = now_s + self._each_s
        if self._probe is None:
            if now_s >= self._due_s:
                self._waiting_since_s = now_s
                self._probe = self._connect()
        elif self._count_waiting() == 0:
            self._close_probe()
            self._due_s = now_s + self._each_s
        elif now_s - self._waiting_since_s > self._patience_s:
            raise RuntimeError(f"{self._name}: it runs, but has taken no connection for {now_s - self._waiting_since_s:.0f} s")

    def _connect(self) -> socket.socket:
        with enter_namespace(self._namespace):
            probe = socket.socket()
        probe.setblocking(False)
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        probe.connect_ex(self._address)
        return probe

    def _count_waiting(self) -> int:
        """Return the number of connections that the program has not accepted yet."""
        for line in os.pread(self._table, 1 << 16, 0).decode().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENING and int(words[1].split(":")[1], 16) == self._address[1]:
                return int(words[4].split(":")[1], 16)
        return 0

    def _close_probe(self) -> None:
        if self._probe is not None:
            self._probe.close()
            self._probe = None

    def close(self) -> None:
        """Close the probe and the file."""
        self._close_probe()
        os.close(self._table)
