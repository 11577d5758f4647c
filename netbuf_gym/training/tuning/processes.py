"""Processes that a command has work done by, and how they end when it is interrupted."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Sequence

PATIENCE_SECONDS = 120.0
"""Given to a process that knows that it is to end, before it is told again, which ends it at once."""


def end(processes: Sequence[subprocess.Popen[bytes]], received: int | None, patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Ends processes after a signal came, and waits for them: they leave what they can go on with.

    Args:
        received: the signal's number. A terminal's Ctrl-C they have had, too; any other they are told; None: none came.
        patience_seconds: after which those that go on are told.
    """
    deadline = time.monotonic() + patience_seconds
    if received != signal.SIGINT:
        for one in processes:
            one.terminate()
    for one in processes:
        try:
            one.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            one.terminate()
            one.wait()
