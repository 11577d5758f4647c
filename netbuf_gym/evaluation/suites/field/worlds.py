"""Building blocks of the field's worlds: a dumbbell, and the edition of a list of worlds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from netbuf_gym.evaluation.suites import frozen
from netbuf_gym.evaluation.suites.field.suite import FieldCell
from netbuf_gym.evaluation.suites.suite import Edition
from netbuf_gym.scenarios import Flow, Link, Scenario
from netbuf_gym.scenarios.types import AGENT

PACKET_BITS = 12_000


def make_path(
    rate_mbps: float | None,
    rtt_ms: Any,
    flows: Sequence[tuple[str, float, float | None]],
    duration_s: float,
    *,
    queue_packets: int | None = None,
    queue_bytes: int | None = None,
    loss: Any = 0.0,
    back: Link | None = None,
    more: dict[str, Any] | None = None,
    **link: Any,
) -> Scenario:
    """Return a scenario in which flows share a bottleneck.

    Args:
        rtt_ms: Round-trip propagation of the path, a number; half of it behind the bottleneck, half on the return path.
        flows: For each flow its control ("agent": the controller's place), start and stop, s.
        back: Return path; None: half of the round trip, without a limit.
        more: Further fields of the scenario.
        link: Further fields of the bottleneck.
    """
    link = {"delay_ms": rtt_ms / 2, **link}
    ahead = Link(
        name="bottleneck", rate_mbps=rate_mbps, queue_packets=queue_packets, queue_bytes=queue_bytes, loss=loss, **link
    )
    behind = back or Link(name="return", delay_ms=rtt_ms / 2)
    made = [Flow(cc=cc, path=(0,), return_path=(1,), start_s=at, stop_s=until) for cc, at, until in flows]
    return Scenario(links=[ahead, behind], flows=made, duration_s=duration_s, **(more or {}))


def bdp_packets(rate_mbps: float, rtt_ms: float) -> float:
    """Return the number of full packets of 1500 bytes that a path holds."""
    return rate_mbps * rtt_ms * 1e3 / PACKET_BITS


def compute_queue(rate_mbps: float, rtt_ms: float, times: float) -> int:
    """Return a multiple of what a path holds, in whole packets, at least one."""
    return max(1, round(bdp_packets(rate_mbps, rtt_ms) * times))


def derive_seed(*words: Any) -> int:
    """Return a seed that depends only on a world's name, not on other worlds of its suite."""
    return int.from_bytes(hashlib.sha256(repr(words).encode()).digest()[:6], "big")


def make_loader(version: int, make: Callable[[], Sequence[FieldCell]]) -> Callable[[], Edition]:
    """Return a function that loads a list of worlds, once, with a digest of everything that determines them."""

    @lru_cache(maxsize=1)
    def load() -> Edition:
        cells = tuple(make())
        sha = hashlib.sha256()
        for cell in cells:
            made = frozen.round_floats(cell.scenario.to_dict())  # processors differ in the last bits of traces
            sha.update(json.dumps([cell.name, cell.family, cell.seed, made], sort_keys=True).encode())
        return Edition(version, sha.hexdigest()[:16], cells)

    return load


__all__ = ["AGENT", "bdp_packets", "compute_queue", "derive_seed", "make_loader", "make_path"]
