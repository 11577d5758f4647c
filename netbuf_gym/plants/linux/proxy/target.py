"""A server of bytes: `python target.py ADDRESS PORT`.

A client sends eight bytes, a number, and gets so many back; again and again. The server prints `ready` on standard output when
it listens, and ends with the process that started it, which holds its standard input.
"""

from __future__ import annotations

import os
import selectors
import socket
import struct
import sys

CHUNK = bytes(16 * 1024)
NUMBER = struct.Struct(">Q")


class Client:
    """One connection: the requests received, and the bytes that are still to be sent."""

    def __init__(self, connection: socket.socket):
        self.connection, self.asked, self.left = connection, b"", 0

    def read(self) -> bool:
        """Read requests; return whether the client is still there."""
        data = self.connection.recv(4096)
        self.asked += data
        self._take_request()
        return bool(data)

    def _take_request(self) -> None:
        while not self.left and len(self.asked) >= NUMBER.size:
            (self.left,) = NUMBER.unpack_from(self.asked)
            self.asked = self.asked[NUMBER.size :]

    def write(self) -> None:
        """Send at most 16 KiB at a time, so that no more waits than the send buffer takes."""
        for _ in range(16):
            if not self.left:
                break
            chunk = CHUNK if self.left >= len(CHUNK) else CHUNK[: self.left]
            try:
                self.left -= self.connection.send(chunk)
            except BlockingIOError:
                break
            self._take_request()


def serve(address: str, port: int) -> None:
    """Serve until standard input ends."""
    chosen = selectors.DefaultSelector()
    listener = socket.create_server((address, port), backlog=1024)
    listener.setblocking(False)
    chosen.register(listener, selectors.EVENT_READ)
    chosen.register(0, selectors.EVENT_READ)
    print("ready", flush=True)
    while True:
        for key, events in chosen.select():
            if key.fileobj == 0:
                if not os.read(0, 4096):
                    return
            elif key.fileobj is listener:
                connection = listener.accept()[0]
                connection.setblocking(False)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                chosen.register(connection, selectors.EVENT_READ, Client(connection))
            else:
                client = key.data
                try:
                    alive = client.read() if events & selectors.EVENT_READ else True
                    client.write()
                except BlockingIOError:
                    alive = True
                except OSError:
                    alive = False
                if not alive:
                    chosen.unregister(client.connection)
                    client.connection.close()
                    continue
                wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.left else 0)
                if wanted != key.events:
                    chosen.modify(client.connection, wanted, client)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
