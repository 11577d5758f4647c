"""A plain relay: `python relay.py ADDRESS PORT TARGET_ADDRESS TARGET_PORT [CONGESTION_CONTROL]`.

Each client is connected on to the target. The relay reads no more than it can pass on, and writes 16 KiB at a time. It prints
`ready` on standard output when it listens, and ends when standard input does.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys

READ_BYTES, WRITE_BYTES = 64 * 1024, 16 * 1024
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class End:
    """One end of a relayed connection, and the data that waits to be written to this end."""

    other: End

    def __init__(self, connection: socket.socket):
        self.connection, self.waiting, self.over, self.events = connection, b"", False, 0

    def pump(self) -> bool:
        """Pass on all available data; return whether this direction is at its end."""
        other = self.other
        if not other.waiting and not self.over:
            try:
                other.waiting = self.connection.recv(READ_BYTES)
                self.over = not other.waiting
            except BlockingIOError:
                pass
        while other.waiting:
            try:
                sent = other.connection.send(other.waiting[:WRITE_BYTES])
            except BlockingIOError:
                break
            other.waiting = other.waiting[sent:]
        if self.over and not other.waiting:
            try:
                other.connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            return True
        return False


class Relay:
    """A relay with all connections through it."""

    def __init__(self, listener: socket.socket, target: tuple[str, int], control: str):
        self.listener, self.target, self.control = listener, target, control
        self.chosen = selectors.DefaultSelector()
        self.chosen.register(listener, READ)
        self.chosen.register(0, READ)

    def serve(self) -> None:
        """Serve until standard input ends."""
        while True:
            for key, _ in self.chosen.select():
                if key.fileobj == 0:
                    if not os.read(0, 4096):
                        return
                elif key.fileobj is self.listener:
                    self.accept()
                elif key.data.connection.fileno() >= 0:
                    self.handle(key.data)

    def accept(self) -> None:
        """Accept a client, and connect to the target."""
        try:
            near, _ = self.listener.accept()
        except OSError:  # the client has gone again
            return
        far = socket.socket()
        for one in (near, far):
            one.setblocking(False)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.control:
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.control.encode())
        far.connect_ex(self.target)
        ends = End(near), End(far)
        ends[0].other, ends[1].other = ends[1], ends[0]
        for end in ends:
            self.watch(end)

    def handle(self, end: End) -> None:
        """Try both directions, when an end can be read from or written to."""
        try:
            done = [one.pump() for one in (end, end.other)]
        except OSError:
            done = [True, True]
        if all(done):
            for one in (end, end.other):
                if one.events:
                    self.chosen.unregister(one.connection)
                one.connection.close()
            return
        for one in (end, end.other):
            self.watch(one)

    def watch(self, end: End) -> None:
        """Wait for what an end needs next: room, where something is to be written; else data, where they can be passed on."""
        wanted = (WRITE if end.waiting else 0) | (READ if not end.other.waiting and not end.over else 0)
        if wanted == end.events:
            return
        if not end.events:
            self.chosen.register(end.connection, wanted, end)
        elif wanted:
            self.chosen.modify(end.connection, wanted, end)
        else:
            self.chosen.unregister(end.connection)
        end.events = wanted


def main(address: str, port: str, target_address: str, target_port: str, control: str = "") -> None:
    """Listen and serve."""
    listener = socket.create_server((address, int(port)), backlog=1024)
    listener.setblocking(False)
    print("ready", flush=True)
    Relay(listener, (target_address, int(target_port)), control).serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
