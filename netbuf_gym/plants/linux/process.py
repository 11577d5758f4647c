"""A world's process, seen from its owner: started, sent messages, and ended."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from netbuf_gym.errors import ConfigError, PlantFault
from netbuf_gym.plants.linux.messages import AnswerTimeout, MessageChannel, PeerGone

_BOOT = str(Path(__file__).with_name("boot.py"))
START_S = 30.0
"""Longest time that a world may take to be made, on a machine that is busy."""
END_S = 2.0
_STARTING = threading.Lock()


class Process:
    """A world's process. It ends with the calling process, however that ends."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._wire = MessageChannel(ours)
        command = [sys.executable, "-I", "-S", _BOOT, str(theirs.fileno()), str(os.getpid())]
        try:
            with theirs, _STARTING:
                self._process = subprocess.Popen(
                    command, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
                )
        except OSError as error:
            ours.close()
            raise PlantFault(f"no process for a live world: {error}") from None

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message, whose answer is to be fetched.

        Raises:
            PlantFault: the process is gone.
        """
        try:
            self._wire.send(message)
        except PeerGone:
            raise self._gone_fault() from None

    def answer(self, timeout_s: float) -> dict[str, Any]:
        """Return the answer to the last message.

        Raises:
            ConfigError: the machine, or the kernel, does not have what the message asked for.
            PlantFault: the process is gone, silent, or cannot go on.
        """
        try:
            answer = self._wire.receive(timeout_s)
        except PeerGone:
            raise self._gone_fault() from None
        except AnswerTimeout:
            raise PlantFault(f"a live world's process has been silent for {timeout_s:g} s") from None
        if "error" in answer:
            raise (ConfigError if answer.get("config") else PlantFault)(answer["error"])
        return answer

    def ask(self, message: dict[str, Any], timeout_s: float = START_S) -> dict[str, Any]:
        """Send a message and return its answer: `tell`, then `answer`."""
        self.tell(message)
        return self.answer(timeout_s)

    @property
    def pid(self) -> int:
        """Process number of the guard, whose child runs the world."""
        return self._process.pid

    def close(self) -> None:
        """End the process and everything that it has made."""
        self._wire.close()
        end = time.monotonic() + END_S
        while self._process.poll() is None and time.monotonic() < end:
            time.sleep(0.002)
        if self._process.poll() is None:
            self._process.kill()
        with suppress(OSError):
            self._process.wait()

    def _gone_fault(self) -> PlantFault:
        with suppress(subprocess.TimeoutExpired):
            status = self._process.wait(1.0)
            how = f"signal {status - 128}" if status > 128 else f"signal {-status}" if status < 0 else f"status {status}"
            return PlantFault(f"a live world's process has ended ({how})")
        return PlantFault("a live world's process does not answer any more")
