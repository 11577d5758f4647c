"""Worlds that run on both plants: none was used in training, and a kernel can be configured for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from netbuf_gym import traces
from netbuf_gym.scenarios import Scenario, dumbbell, route_change
from netbuf_gym.scenarios.impairments import Jitter
from netbuf_gym.scenarios.limits import AGENT, compute_bdp_packets
from netbuf_gym.tasks.queue_threshold.scenarios import rlbm_default
from netbuf_gym.tasks.receiver_window import receiver_world

SENDER, RECEIVER, SWITCH = "congestion_window", "receiver_window", "queue_threshold"


class Path(NamedTuple):
    """A bottleneck: rate, round-trip propagation delay, queue in bandwidth-delay products."""

    rate_mbps: float
    rtt_ms: float
    bdp: float

    @property
    def name(self) -> str:
        """Name of a world with this path."""
        return f"{self.rate_mbps:g}M-{self.rtt_ms:g}ms-{self.bdp:g}bdp"

    @property
    def packets(self) -> int:
        """Limit of the queue, in packets."""
        return compute_queue_packets(self.rate_mbps, self.rtt_ms, self.bdp)


def compute_queue_packets(rate_mbps: float, rtt_ms: float, bdp: float) -> int:
    """Return a number of bandwidth-delay products as full packets, at least two."""
    return max(2, round(bdp * compute_bdp_packets(rate_mbps, rtt_ms)))


PATHS = tuple(
    Path(*path)
    for path in (
        (5, 20, 2), (5, 60, 4), (5, 150, 1), (10, 10, 4), (10, 40, 1), (10, 100, 0.5),
        (20, 30, 0.5), (20, 80, 2), (50, 10, 2), (50, 40, 1), (50, 120, 0.5), (100, 20, 1), (100, 50, 0.5),
    )
)  # fmt: skip
"""Rates of 5 to 100 Mbit/s, round trips of 10 to 150 ms, queues of half to four products."""

TRACE = "trace"
TRACE_SEED, TRACE_RTT_MS = 4_000_001, 40.0
"""Seed of the generated 4G trace, used by no training or evaluation, and round-trip propagation delay of its path."""

RIVALS = tuple(Path(20, 40, bdp) for bdp in (0.5, 1, 4))
"""Paths that the sender shares with one flow of CUBIC."""
LATER_S = 0.5
"""Start of the CUBIC flow."""
STEPS_MS = {"longer": (40.0, 50.0), "shorter": (100.0, -50.0)}
"""Round-trip propagation delay of a changing route, and its change after the share `STEP_AT` of the run."""
STEP_MBPS, STEP_AT = 10.0, 0.25

CELLS = tuple((size, load) for size in (100, 200, 500, 1000) for load in (0.3, 0.6, 0.8))
"""Packets per queue, and offered load: a quarter of RLBM's grid."""


def _generate_trace(duration_s: float) -> traces.Trace:
    return traces.generate("4g", duration_s=duration_s, seed=TRACE_SEED)


def _make_sender_world(path: Path | None, duration_s: float) -> Scenario:
    if path is None:
        trace = _generate_trace(duration_s)
        return dumbbell(
            trace=trace,
            rtt_ms=TRACE_RTT_MS,
            buffer_packets=100,
            senders=[AGENT],
            start_jitter_ms=TRACE_RTT_MS,
            duration_s=duration_s,
            name=TRACE,
        )
    return dumbbell(
        rate_mbps=path.rate_mbps,
        rtt_ms=path.rtt_ms,
        buffer_packets=path.packets,
        senders=[AGENT],
        duration_s=duration_s,
        name=path.name,
    )


def _make_shared_path(path: Path, duration_s: float) -> Scenario:
    """Return a world in which the sender shares its path with a CUBIC flow."""
    return dumbbell(
        rate_mbps=path.rate_mbps,
        rtt_ms=path.rtt_ms,
        buffer_packets=path.packets,
        senders=[AGENT, "cubic"],
        stagger_s=LATER_S,
        start_jitter_ms=path.rtt_ms,
        duration_s=duration_s,
        name=f"cubic-{path.name}",
    )


def _make_route_change(name: str, rtt_ms: float, change_ms: float, duration_s: float) -> Scenario:
    """Return a world with a route that becomes longer or shorter; the queue is one product of the shorter."""
    delays = route_change(delay_ms=rtt_ms / 2, change_ms=change_ms, at_s=STEP_AT * duration_s)
    return dumbbell(
        rate_mbps=STEP_MBPS,
        rtt_ms=rtt_ms,
        delays=delays,
        buffer_packets=compute_queue_packets(STEP_MBPS, rtt_ms + min(change_ms, 0), 1),
        senders=[AGENT],
        duration_s=duration_s,
        name=name,
    )


def _make_receiver_world(path: Path | None, duration_s: float) -> Scenario:
    own: dict[str, Any] = {"receivers": [AGENT], "rtt_ms": TRACE_RTT_MS, "duration_s": duration_s}
    if path is None:
        own |= {"trace": _generate_trace(duration_s), "buffer_packets": 100, "name": TRACE}
    else:
        own |= {"rtt_ms": path.rtt_ms, "buffer_packets": path.packets, "name": path.name, "rate_mbps": path.rate_mbps}
    world = receiver_world(**own)
    clamped = tuple(replace(flow, clamp_interval_ms=0) for flow in world.flows)  # as the kernel applies a window
    return replace(world, flows=clamped)


def _make_switch_world(size: int, load: float, duration_s: float) -> Scenario:
    return rlbm_default(queue_packets=size, load=load, duration_s=duration_s)


def add_noise(world: Scenario, noise_ms: float) -> Scenario:
    """Return the world on late hosts: every packet is delayed at the end of each link, by `noise_ms` in the mean."""
    jitter = Jitter(distribution="exponential", scale_ms=noise_ms)
    return replace(world, links=tuple(link if link.jitter else replace(link, jitter=jitter) for link in world.links))


ScenarioFactory = Callable[[float], Scenario]
"""Function from a duration in seconds to a world."""


def _make_path_worlds(make: Callable[[Path | None, float], Scenario]) -> dict[str, ScenarioFactory]:
    return {TRACE if path is None else path.name: partial(make, path) for path in (*PATHS, None)}


WORLDS: Mapping[str, Mapping[str, ScenarioFactory]] = {
    SENDER: _make_path_worlds(_make_sender_world)
    | {f"cubic-{path.name}": partial(_make_shared_path, path) for path in RIVALS}
    | {name: partial(_make_route_change, name, *step) for name, step in STEPS_MS.items()},
    RECEIVER: _make_path_worlds(_make_receiver_world),
    SWITCH: {f"{size}-{load:g}": partial(_make_switch_world, size, load) for size, load in CELLS},
}
"""Worlds by task and name."""

PHASED = frozenset({TRACE, *(f"cubic-{path.name}" for path in RIVALS)})
"""Worlds of senders whose results depend on a phase: of two flows, of which a full queue drops the packets of one, or of a
start and the bunches of a trace. In the simulator nothing disturbs a phase, and few of them occur over starts that differ by a
packet or two; on the kernel it drifts. Simulated starts are therefore spread over a round trip."""


def to_live(world: Scenario) -> Scenario:
    """Return the world as the kernel runs it, where starts differ by themselves."""
    return replace(world, start_jitter_ms=0.0)
