"""Bounds of what a sender can have of a trace: controls that are told its capacity, as no sender is.

Both set the window on every ACK to what the trace carries within a round trip, times a scale, and a packet more, which waits
for the delayed ACK:

* `oracle`: what it carries in the round trip that begins now.
* `causal`: at the mean rate of the interval of a decision that ended a round trip ago, which is the newest that whoever decides
  so often can have heard all of: on 40 ms and every 100 ms the capacity from 140 to 40 ms ago, exactly.

Of several scales each world has the best, by its utility.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from netbuf_gym.errors import ConfigError, called
from netbuf_gym.scenarios import AckEvent, Scenario
from netbuf_gym.scenarios.types import AGENT
from netbuf_gym.tasks.congestion_window import CongestionControl
from netbuf_gym.traces.types import DeliveryTrace, Trace
from netbuf_gym.utils.arguments import choice

ORACLE, CAUSAL = "oracle", "causal"
SCALES = (0.7, 0.85, 1.0, 1.2, 1.5, 2.0)
INTERVAL_MS = 100
"""Of decisions, as the task's environment makes them."""
LEAST_PACKETS = 2
DELAYED_ACK = 1
"""Segments that wait for the receiver's delayed ACK."""


class Bound(CongestionControl):
    """A sender that is told the capacity of its bottleneck.

    Args:
        name: `oracle` or `causal`.
        scale: of what the path holds, above 0.
    """

    def __init__(self, name: str, scale: float = 1.0):
        self.name = choice("bound", name, (ORACLE, CAUSAL))
        self.scale = scale

    def place(self, scenario: Scenario) -> Scenario:
        """See `Controller.place`.

        Raises:
            ConfigError: The bottleneck of an agent's has no trace.
        """
        flows = list(scenario.flows)
        for index, flow in enumerate(flows):
            if flow.cc == AGENT:
                trace = scenario.links[scenario.tightest_link(index)].trace
                if trace is None:
                    raise ConfigError(f"{self.name} has no trace in {called(scenario)}; valid: a world with one")
                rtt_ms = max(1, round(scenario.propagation_rtt_ms(index)))
                first, last = (0, rtt_ms) if self.name == ORACLE else (-rtt_ms - INTERVAL_MS, -rtt_ms)
                packets = carried_packets(trace, scenario.duration_s + (rtt_ms + 1) * 1e-3, scenario.data_bytes)
                factor = self.scale * rtt_ms / (last - first) * scenario.mss
                flows[index] = replace(flow, cc=functools.partial(_Told, packets, first, last, factor, scenario.mss))
        return replace(scenario, flows=flows)


class _Told:
    """The control of one connection.

    Args:
        packets: carried up to each millisecond.
        first, last: between which milliseconds from now capacity counts.
        factor: bytes of window for each packet carried there.
        mss: of the world.
    """

    def __init__(self, packets: Sequence[float], first: int, last: int, factor: float, mss: int):
        self.packets, self.first, self.last, self.factor = packets, first, last, factor
        self.more, self.least = DELAYED_ACK * mss, LEAST_PACKETS * mss

    def __call__(self, ack: AckEvent) -> float:
        now_ms = int(ack.time_s * 1e3)
        carried = self.packets[max(now_ms + self.last, 0)] - self.packets[max(now_ms + self.first, 0)]
        return max(self.factor * carried + self.more, self.least)


@functools.lru_cache(maxsize=64)
def carried_packets(trace: Trace, duration_s: float, data_bytes: int) -> tuple[float, ...]:
    """How many full packets a trace can carry up to the end of each millisecond from 0 on, and one at the end."""
    time_s = np.arange(math.ceil(duration_s * 1e3) + 2) * 1e-3
    if isinstance(trace, DeliveryTrace):
        rounds, rest_ms = np.divmod(time_s * 1e3, trace.period_ms)
        return tuple((rounds * len(trace.time_ms) + np.searchsorted(trace.time_ms, rest_ms, side="right")).tolist())
    edges = np.append(trace.time_s, max(duration_s, trace.time_s[-1]) + 1 if trace.period_s is None else trace.period_s)
    mbit = np.append(0.0, np.cumsum(np.diff(edges) * trace.rate_mbps))
    rounds, rest_s = np.divmod(time_s, edges[-1])
    return tuple(((rounds * mbit[-1] + np.interp(rest_s, edges, mbit)) * 1e6 / 8 / data_bytes).tolist())
