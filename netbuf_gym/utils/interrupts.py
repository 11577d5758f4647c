"""Interruptions of the command line while nothing has to be tidied up, above all during imports."""

from __future__ import annotations

import os
import signal
import sys


class ExitOnInterrupt:
    """Context in which SIGINT ends the process at once, with a line and status 130; in the command `netbuf-gym` only.

    As an exception, it would be caught or replaced by modules that are being imported, and by Python as it ends.
    """

    def __enter__(self) -> None:
        self._before = signal.getsignal(signal.SIGINT)
        package = sys.modules[__name__.partition(".")[0]]
        self._ours = package.STARTED_AS_PROGRAM and callable(self._before)
        if self._ours:
            signal.signal(signal.SIGINT, leave)

    def __exit__(self, *exception: object) -> None:
        if self._ours:
            signal.signal(signal.SIGINT, self._before)


def leave(number: int, frame: object) -> None:
    """Print that the command was interrupted, and end the process: a handler of SIGINT."""
    os.write(2, b"netbuf-gym: error: interrupted\n")
    os._exit(130)
