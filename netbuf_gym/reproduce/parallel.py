"""Work in parallel, and nearest-rank percentiles."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
R = TypeVar("R")


def in_parallel(
    work: Callable[[T], R], tasks: Iterable[T], jobs: int, stop: threading.Event | None = None
) -> Iterator[tuple[T, R]]:
    """`work` of every task in threads, in the order in which they end; tasks are drawn as they are needed.

    The simulator leaves the interpreter while it runs. Whatever ends this early, an error, an interruption, or a caller
    that wants no more, sets `stop`: work that looks at it need not be waited for.
    """
    remaining = iter(tasks)
    running: dict[Any, Any] = {}
    with ThreadPoolExecutor(jobs) as pool:
        try:
            while True:
                while len(running) < 3 * jobs and (task := next(remaining, running)) is not running:
                    running[pool.submit(work, task)] = task
                if not running:
                    return
                done: set[Future] = wait(running, return_when=FIRST_COMPLETED).done
                for future in done:
                    yield running.pop(future), future.result()
        except BaseException:
            if stop is not None:
                stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def percentiles(values: np.ndarray, shares: tuple[float, ...]) -> list[float]:
    """Nearest-rank percentiles, shares from 0 to 1; NaN of none."""
    if not len(values):
        return [math.nan] * len(shares)
    ordered = np.sort(values)
    return [float(ordered[max(math.ceil(share * len(ordered)) - 1, 0)]) for share in shares]
