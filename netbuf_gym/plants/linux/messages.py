"""Messages between an owner and a world's process: JSON objects over a socket pair, each preceded by its length."""

from __future__ import annotations

import json
import math
import select
import socket
import struct
import time
from typing import Any

_LENGTH = struct.Struct("<I")


class PeerGone(Exception):
    """Error: the other end is gone."""


class AnswerTimeout(Exception):
    """Error: the other end did not answer in time."""


class MessageChannel:
    """One end of the connection.

    Args:
        end: a connected stream socket, which the wire takes over.
    """

    def __init__(self, end: socket.socket):
        self.socket = end
        self._buffer = bytearray()

    def send(self, message: dict[str, Any]) -> None:
        """Send a message.

        Raises:
            PeerGone: the other end is gone.
        """
        text = json.dumps(message).encode()
        try:
            self.socket.sendall(_LENGTH.pack(len(text)) + text)
        except OSError as error:
            raise PeerGone(str(error)) from None

    def receive(self, timeout_s: float | None = None) -> dict[str, Any]:
        """Receive the next message.

        Raises:
            PeerGone: the other end is gone.
            AnswerTimeout: no message has come within `timeout_s`.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while (message := self._pop_message()) is None:
            if not self.ready(None if end is None else max(0.0, end - time.monotonic())):
                raise AnswerTimeout
            self._read()
        return message

    def ready(self, timeout_s: float | None) -> bool:
        """Wait for something to read (or the end of the stream), at most `timeout_s` seconds; return whether there is."""
        if self._find_end() is not None:
            return True
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return bool(poll.poll(None if timeout_s is None else math.ceil(timeout_s * 1e3)))

    def sleep_unless_message(self, seconds: float) -> bool:
        """Sleep, to some microseconds; returns True at once when there is a message, which takes turns with what goes on.

        Raises:
            PeerGone: the other end is gone.
        """
        ready = select.select([self.socket], [], [], seconds)[0]
        if ready and not self.socket.recv(1, socket.MSG_PEEK):
            raise PeerGone("the other end has closed")
        return bool(ready)

    def _read(self) -> None:
        try:
            got = self.socket.recv(1 << 20)
        except OSError as error:
            raise PeerGone(str(error)) from None
        if not got:
            raise PeerGone("the other end has closed")
        self._buffer += got

    def _find_end(self) -> int | None:
        """Return the end of the first message in the buffer; None: the message is not complete yet."""
        if len(self._buffer) < _LENGTH.size:
            return None
        end = _LENGTH.size + int(_LENGTH.unpack_from(self._buffer)[0])
        return end if len(self._buffer) >= end else None

    def _pop_message(self) -> dict[str, Any] | None:
        end = self._find_end()
        if end is None:
            return None
        text = bytes(self._buffer[_LENGTH.size : end])
        del self._buffer[:end]
        return json.loads(text)

    def close(self) -> None:
        """Close the socket, which tells the other end that this one is gone."""
        self.socket.close()
