"""Worker processes of a command, and their termination."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Sequence

PATIENCE_SECONDS = 120.0
"""Time that a signalled process has to end before a second SIGTERM, which ends it at once."""


def end_processes(
    processes: Sequence[subprocess.Popen[bytes]], received: int | None, patience_seconds: float = PATIENCE_SECONDS
) -> None:
    """End processes after a signal, and wait for them, so that they can save what they resume from.

    Args:
        processes: Processes to end.
        received: Number of the signal; None: none was received. A terminal's Ctrl-C reaches the processes, too; any other
            signal is passed on as SIGTERM.
        patience_seconds: Time after which processes that still run get another SIGTERM.
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
