"""The worlds that are run on both plants: none of them was trained on, all of them a kernel can be put into."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from netbuf_gym import traces
from netbuf_gym.scenarios import Scenario, dumbbell, route_change
from netbuf_gym.scenarios.impairments import Jitter
from netbuf_gym.scenarios.limits import AGENT, bdp_packets
from netbuf_gym.tasks.queue_threshold.scenarios import rlbm_default
from netbuf_gym.tasks.receiver_window import receiver_world

SENDER, RECEIVER, SWITCH = "congestion_window", "receiver_window", "queue_threshold"


class Path(NamedTuple):
    """A bottleneck: rate, propagation there and back, queue in bandwidth-delay products."""

    rate_mbps: float
    rtt_ms: float
    bdp: float

    @property
    def name(self) -> str:
        """Of a world over it."""
        return f"{self.rate_mbps:g}M-{self.rtt_ms:g}ms-{self.bdp:g}bdp"

    @property
    def packets(self) -> int:
        """The queue's limit."""
        return queue_packets(self.rate_mbps, self.rtt_ms, self.bdp)


def queue_packets(rate_mbps: float, rtt_ms: float, bdp: float) -> int:
    """So many bandwidth-delay products, in full packets, two at least."""
    return max(2, round(bdp * bdp_packets(rate_mbps, rtt_ms)))


PATHS = tuple(
    Path(*path)
    for path in (
        (5, 20, 2), (5, 60, 4), (5, 150, 1), (10, 10, 4), (10, 40, 1), (10, 100, 0.5),
        (20, 30, 0.5), (20, 80, 2), (50, 10, 2), (50, 40, 1), (50, 120, 0.5), (100, 20, 1), (100, 50, 0.5),
    )
)  # fmt: skip
"""Rates of 5 to 100 Mbit/s, round trips of 10 to 150 ms, queues of half to four products."""

TRACE = "trace"
TRACE_SEED = 4_000_001
"""Of the generated 4G trace: no training or evaluation draws it."""

RIVALS = tuple(Path(20, 40, bdp) for bdp in (0.5, 1, 4))
"""Paths that the sender shares with one flow of CUBIC, which begins `LATER_S` after it."""
LATER_S = 0.5
STEPS_MS = {"longer": (40.0, 50.0), "shorter": (100.0, -50.0)}
"""Propagation there and back, and what becomes of it after `STEP_AT` of the run, of a route that changes."""
STEP_MBPS, STEP_AT = 10.0, 0.25

CELLS = tuple((size, load) for size in (100, 200, 500, 1000) for load in (0.3, 0.6, 0.8))
"""Packets a queue, offered load: a quarter of RLBM's grid."""


def _trace_mbps(duration_s: float) -> traces.Trace:
    return traces.generate("4g", duration_s=duration_s, seed=TRACE_SEED)


def _sender(path: Path | None, duration_s: float) -> Scenario:
    if path is None:
        trace = _trace_mbps(duration_s)
        return dumbbell(trace=trace, rtt_ms=40, buffer_packets=100, senders=[AGENT], duration_s=duration_s, name=TRACE)
    return dumbbell(
        rate_mbps=path.rate_mbps,
        rtt_ms=path.rtt_ms,
        buffer_packets=path.packets,
        senders=[AGENT],
        duration_s=duration_s,
        name=path.name,
    )


def _beside(path: Path, duration_s: float) -> Scenario:
    """The sender beside a CUBIC."""
    return dumbbell(
        rate_mbps=path.rate_mbps,
        rtt_ms=path.rtt_ms,
        buffer_packets=path.packets,
        senders=[AGENT, "cubic"],
        stagger_s=LATER_S,
        duration_s=duration_s,
        name=f"cubic-{path.name}",
    )


def _changing(name: str, rtt_ms: float, change_ms: float, duration_s: float) -> Scenario:
    """A route that becomes longer or shorter; its queue is one product of the shorter."""
    delays = route_change(delay_ms=rtt_ms / 2, change_ms=change_ms, at_s=STEP_AT * duration_s)
    return dumbbell(
        rate_mbps=STEP_MBPS,
        rtt_ms=rtt_ms,
        delays=delays,
        buffer_packets=queue_packets(STEP_MBPS, rtt_ms + min(change_ms, 0), 1),
        senders=[AGENT],
        duration_s=duration_s,
        name=name,
    )


def _receiver(path: Path | None, duration_s: float) -> Scenario:
    own: dict[str, Any] = {"receivers": [AGENT], "rtt_ms": 40, "duration_s": duration_s}
    if path is None:
        own |= {"trace": _trace_mbps(duration_s), "buffer_packets": 100, "name": TRACE}
    else:
        own |= {"rtt_ms": path.rtt_ms, "buffer_packets": path.packets, "name": path.name, "rate_mbps": path.rate_mbps}
    world = receiver_world(**own)
    clamped = tuple(replace(flow, clamp_interval_ms=0) for flow in world.flows)  # as the kernel takes a window that is set
    return replace(world, flows=clamped)


def _switch(size: int, load: float, duration_s: float) -> Scenario:
    return rlbm_default(queue_packets=size, load=load, duration_s=duration_s)


def noisy(world: Scenario, noise_ms: float) -> Scenario:
    """The same world on hosts that are late: every packet is delayed at the end of each link, by `noise_ms` in the mean."""
    jitter = Jitter(distribution="exponential", scale_ms=noise_ms)
    return replace(world, links=tuple(link if link.jitter else replace(link, jitter=jitter) for link in world.links))


Maker = Callable[[float], Scenario]
"""A world that lasts so many seconds."""


def _paths(make: Callable[[Path | None, float], Scenario]) -> dict[str, Maker]:
    return {path.name: partial(make, path) for path in PATHS} | {TRACE: partial(make, None)}


WORLDS: Mapping[str, Mapping[str, Maker]] = {
    SENDER: _paths(_sender)
    | {f"cubic-{path.name}": partial(_beside, path) for path in RIVALS}
    | {name: partial(_changing, name, *step) for name, step in STEPS_MS.items()},
    RECEIVER: _paths(_receiver),
    SWITCH: {f"{size}-{load:g}": partial(_switch, size, load) for size, load in CELLS},
}
"""By task and name."""
