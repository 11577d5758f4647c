"""Running a world of the campaign, and many of them at a time."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

import numpy as np

from netbuf_gym.plants.simulator import LINK_SAMPLE, Simulator, World
from netbuf_gym.scenarios import Scenario
from netbuf_gym.traffic_results import completed

T, R = TypeVar("T"), TypeVar("R")

QUEUE_SAMPLE_NS = 20_000_000


class Stopped(Exception):
    """Work was given up because something else ended the campaign."""


def run(scenario: Scenario, seed: int) -> Simulator:
    """A world run to its end.

    Raises:
        SimulatorFault: The simulator found its own state inconsistent.
    """
    world = Simulator(scenario, seed)
    world.run_to_end()
    return world


def run_sampled(scenario: Scenario, seed: int) -> tuple[Simulator, np.ndarray]:
    """The same, with the length of the bottleneck's queue every 20 ms, packets: the core keeps no histogram of it."""
    world = Simulator(scenario, seed)
    column = LINK_SAMPLE.index("queue_packets")
    lengths = []
    for stop in range(QUEUE_SAMPLE_NS, round(scenario.duration_s * 1e9) + 1, QUEUE_SAMPLE_NS):
        world.run(stop)
        lengths.append(world.link_sample()[scenario.bottleneck, column])
    world.run_to_end()
    return world, np.array(lengths)


def flows_of(scenario: Scenario, world: World) -> np.ndarray:
    """The flows that completed, as `Result.completions` has them."""
    return completed(scenario, np.asarray(world.completions()))


def in_parallel(
    work: Callable[[T], R], tasks: Iterable[T], jobs: int, stop: threading.Event | None = None
) -> Iterator[tuple[T, R]]:
    """`work` of every task in threads, in the order in which they end; tasks are drawn as they are needed.

    The simulator leaves the interpreter while it runs. Whatever ends this early, an error, an interruption, or a caller
    that wants no more, sets `stop`: work that looks at it need not be waited for.
    """
    remaining, running = iter(tasks), {}
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
