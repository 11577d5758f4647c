"""Bounds on what a sender can achieve on a trace: controls that know the trace's capacity, as no real sender does.

Both set the window on every ACK to what the trace carries within a round trip, times a scale, plus one packet, which waits for
the delayed ACK:

* `oracle`: what the trace carries in the round trip that begins now.
* `causal`: at the mean rate of the decision interval that ended a round trip ago, the newest of which a controller that decides
  so often can know everything: on 40 ms and every 100 ms the capacity from 140 to 40 ms ago, exactly.

Each world counts with the best of several scales, by utility.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from netbuf_gym.errors import ConfigError, describe_scenario
from netbuf_gym.scenarios import AckEvent, Scenario
from netbuf_gym.scenarios.types import AGENT
from netbuf_gym.tasks.congestion_window import CongestionControl
from netbuf_gym.traces.types import DeliveryTrace, Trace
from netbuf_gym.utils.arguments import check_choice

ORACLE, CAUSAL = "oracle", "causal"
SCALES = (0.7, 0.85, 1.0, 1.2, 1.5, 2.0)
INTERVAL_MS = 100
"""Decision interval of the task's environment."""
LEAST_PACKETS = 2
DELAYED_ACK = 1
"""Segments that wait for the receiver's delayed ACK."""


class Bound(CongestionControl):
    """Sender that knows the capacity of its bottleneck.

    Args:
        name: `oracle` or `causal`.
        scale: Factor on what the path holds, above 0.
    """

    def __init__(self, name: str, scale: float = 1.0):
        self.name = check_choice("bound", name, (ORACLE, CAUSAL))
        self.scale = scale

    def place(self, scenario: Scenario) -> Scenario:
        """See `Controller.place`.

        Raises:
            ConfigError: The bottleneck of an agent's flow has no trace.
        """
        flows = list(scenario.flows)
        for index, flow in enumerate(flows):
            if flow.cc == AGENT:
                trace = scenario.links[scenario.tightest_link(index)].trace
                if trace is None:
                    raise ConfigError(f"{self.name} has no trace in {describe_scenario(scenario)}; valid: a world with one")
                rtt_ms = max(1, round(scenario.propagation_rtt_ms(index)))
                first, last = (0, rtt_ms) if self.name == ORACLE else (-rtt_ms - INTERVAL_MS, -rtt_ms)
                packets = compute_carried_packets(trace, scenario.duration_s + (rtt_ms + 1) * 1e-3, scenario.data_bytes)
                factor = self.scale * rtt_ms / (last - first) * scenario.mss
                flows[index] = replace(
                    flow, cc=functools.partial(_KnownCapacityControl, packets, first, last, factor, scenario.mss)
                )
        return replace(scenario, flows=flows)


class _KnownCapacityControl:
    """Congestion control of one connection, which sets the window by a known capacity.

    Args:
        packets: Packets carried up to each millisecond.
        first, last: Milliseconds from now between which capacity counts.
        factor: Bytes of window for each packet carried in between.
        mss: Maximum segment size of the world.
    """

    def __init__(self, packets: Sequence[float], first: int, last: int, factor: float, mss: int):
        self.packets, self.first, self.last, self.factor = packets, first, last, factor
        self.more, self.least = DELAYED_ACK * mss, LEAST_PACKETS * mss

    def __call__(self, ack: AckEvent) -> float:
        now_ms = int(ack.time_s * 1e3)
        carried = self.packets[max(now_ms + self.last, 0)] - self.packets[max(now_ms + self.first, 0)]
        return max(self.factor * carried + self.more, self.least)


@functools.lru_cache(maxsize=64)
def compute_carried_packets(trace: Trace, duration_s: float, data_bytes: int) -> tuple[float, ...]:
    """Return how many full packets a trace can carry from 0 on up to each millisecond, through the first after the end."""
    time_s = np.arange(math.ceil(duration_s * 1e3) + 2) * 1e-3
    if isinstance(trace, DeliveryTrace):
        rounds, rest_ms = np.divmod(time_s * 1e3, trace.period_ms)
        return tuple((rounds * len(trace.time_ms) + np.searchsorted(trace.time_ms, rest_ms, side="right")).tolist())
    edges = np.append(trace.time_s, max(duration_s, trace.time_s[-1]) + 1 if trace.period_s is None else trace.period_s)
    mbit = np.append(0.0, np.cumsum(np.diff(edges) * trace.rate_mbps))
    rounds, rest_s = np.divmod(time_s, edges[-1])
    return tuple(((rounds * mbit[-1] + np.interp(rest_s, edges, mbit)) * 1e6 / 8 / data_bytes).tolist())
