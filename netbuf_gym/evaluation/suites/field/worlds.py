"""What suites of the field make worlds of: a dumbbell, and the edition of a list of worlds."""

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


def path(
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
    """A bottleneck that flows share.

    Args:
        rtt_ms: Of the whole path, a number; half of it lies behind the bottleneck and half on the way back.
        flows: Of each its control ("agent": the controller's place), when it starts and when it stops, s.
        back: The way back; None: half of the round trip, and no limit.
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
    """Full packets of 1500 bytes that a path holds."""
    return rate_mbps * rtt_ms * 1e3 / PACKET_BITS


def queue_of(rate_mbps: float, rtt_ms: float, times: float) -> int:
    """So many times what a path holds, in whole packets, at least one."""
    return max(1, round(bdp_packets(rate_mbps, rtt_ms) * times))


def seed_of(*words: Any) -> int:
    """A seed of what a world is called: the same for ever, whatever else is in its suite."""
    return int.from_bytes(hashlib.sha256(repr(words).encode()).digest()[:6], "big")


def edition(version: int, make: Callable[[], Sequence[FieldCell]]) -> Callable[[], Edition]:
    """What loads a list of worlds, with a digest of all that decides them; it is made once."""

    @lru_cache(maxsize=1)
    def load() -> Edition:
        cells = tuple(make())
        sha = hashlib.sha256()
        for cell in cells:
            made = frozen.rounded(cell.scenario.to_dict())  # other processors round the last bits of traces otherwise
            sha.update(json.dumps([cell.name, cell.family, cell.seed, made], sort_keys=True).encode())
        return Edition(version, sha.hexdigest()[:16], cells)

    return load


__all__ = ["AGENT", "bdp_packets", "edition", "path", "queue_of", "seed_of"]
