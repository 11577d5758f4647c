"""What a owner and a world's process tell each other: JSON objects over a socket pair, the length before each."""

from __future__ import annotations

import json
import math
import select
import socket
import struct
import time
from typing import Any

_LENGTH = struct.Struct("<I")


class Ended(Exception):
    """The other end is gone."""


class Late(Exception):
    """The other end did not answer in time."""


class Wire:
    """One end.

    Args:
        end: a connected stream socket, which it takes over.
    """

    def __init__(self, end: socket.socket):
        self.socket = end
        self._buffer = bytearray()

    def send(self, message: dict[str, Any]) -> None:
        """Raises `Ended`."""
        text = json.dumps(message).encode()
        try:
            self.socket.sendall(_LENGTH.pack(len(text)) + text)
        except OSError as error:
            raise Ended(str(error)) from None

    def receive(self, timeout_s: float | None = None) -> dict[str, Any]:
        """The next message.

        Raises:
            Ended: the other end is gone.
            Late: there is none after so long.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while (message := self._taken()) is None:
            if not self.ready(None if end is None else max(0.0, end - time.monotonic())):
                raise Late
            self._read()
        return message

    def ready(self, timeout_s: float | None) -> bool:
        """Whether something can be read (the end of it all, too), at the latest after `timeout_s` seconds."""
        if len(self._buffer) >= _LENGTH.size and len(self._buffer) >= _LENGTH.size + _LENGTH.unpack_from(self._buffer)[0]:
            return True
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return bool(poll.poll(None if timeout_s is None else math.ceil(timeout_s * 1e3)))

    def idle(self, seconds: float) -> bool:
        """Sleeps, to some microseconds; True, at once: there is a message, which takes turns with what goes on.

        Raises:
            Ended: the other end is gone.
        """
        ready = select.select([self.socket], [], [], seconds)[0]
        if ready and not self.socket.recv(1, socket.MSG_PEEK):
            raise Ended("the other end has closed")
        return bool(ready)

    def _read(self) -> None:
        try:
            got = self.socket.recv(1 << 20)
        except OSError as error:
            raise Ended(str(error)) from None
        if not got:
            raise Ended("the other end has closed")
        self._buffer += got

    def _taken(self) -> dict[str, Any] | None:
        if len(self._buffer) < _LENGTH.size:
            return None
        length = _LENGTH.unpack_from(self._buffer)[0]
        if len(self._buffer) < _LENGTH.size + length:
            return None
        text = bytes(self._buffer[_LENGTH.size : _LENGTH.size + length])
        del self._buffer[: _LENGTH.size + length]
        return json.loads(text)

    def close(self) -> None:
        """Lets the other end know that this one is gone."""
        self.socket.close()
