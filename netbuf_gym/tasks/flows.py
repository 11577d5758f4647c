"""Flows that agents control at one end: what their paths offer, and the common part of their trackers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from netbuf_gym import _core
from netbuf_gym.errors import ConfigError, describe_scenario
from netbuf_gym.plants.telemetry import TelemetrySchema
from netbuf_gym.scenarios.links import Link
from netbuf_gym.scenarios.types import PathFigures, Scenario
from netbuf_gym.tasks.task import outage_message
from netbuf_gym.tasks.tracking import LastMeasured, Quantity, RunningMeans, find_first_rows

LEAST_RTT_S = 1e-6
"""Replacement for a base RTT of 0, as of a Mahimahi trace without delays, where other quantities are divided by it."""

PerRow = float | Sequence[float]
"""A value of several rows of a tracker, one for all or one for each."""


def links_at(scenario: Scenario, path: Sequence[int | str]) -> list[Link]:
    """Return the links of a path; a checked scenario has their indices in it, no names."""
    return [scenario.links[int(index)] for index in path]


def capacity_mbps(scenario: Scenario, flow: int) -> float:
    """Return the mean rate of the slowest link on a flow's path."""
    return scenario.links[scenario.tightest_link(flow)].mean_mbps(scenario.duration_s)


def require_capacity(scenario: Scenario, flows: Sequence[int]) -> Scenario:
    """Return the scenario; raise ConfigError if the path of one of these flows is unlimited or carries nothing."""
    for flow in flows:
        capacity = capacity_mbps(scenario, flow)
        if not math.isfinite(capacity):
            at = f"{describe_scenario(scenario)} has no link of finite rate on the path of flows[{flow}]"
            raise ConfigError(f"{at}, so that there is nothing to control; valid: rate_mbps or a trace")
        if not capacity > 0:
            raise ConfigError(outage_message(scenario))
    return scenario


def describe_paths(paths: Sequence[PathFigures], rows: slice) -> dict[str, Sequence[float]]:
    """Return the arguments of `FlowTracker.reset_path` for agents with these paths; `rows` are the world's."""
    return {
        "capacity_bps": [path.capacity_mbps * 1e6 for path in paths],
        "share_bps": [path.fair_share_mbps * 1e6 for path in paths],
        "base_rtt_s": [max(path.base_rtt_ms * 1e-3, LEAST_RTT_S) for path in paths],
        "first_beside": find_first_rows([path.tightest for path in paths], rows),
    }


class FlowTracker(LastMeasured):
    """Last measured value of every telemetry field of flows' ends, and what is known of the flows' paths.

    Derived classes implement `netbuf_gym.rewards.utility.Path`.

    Args:
        telemetry, rows: As for `LastMeasured`.
        interval_s: Nominal length of a decision interval, the spacing of the agent's decisions and so its time resolution;
            measured amounts are divided by the measured length.

    Attributes (float32 of shape `(rows,)`, for rewards and reports; never observed):
        capacity_bps, share_bps, base_rtt_s: The slowest link's rate, the least even share of a link, and propagation plus
            serialisation of each flow's own path.
        first_beside: int64, the row of the first agent whose data cross the same slowest link.
        means: Means of `throughput_ratio` and `rtt_ratio` over the world's life.
    """

    def __init__(self, telemetry: TelemetrySchema, rows: int, interval_s: float):
        super().__init__(telemetry, rows)
        self.interval_s = interval_s
        self.capacity_bps = np.ones(rows, np.float32)
        self.share_and_rtt = np.ones((2, rows), np.float32)
        self.share_bps, self.base_rtt_s = self.share_and_rtt
        self.first_beside = np.arange(rows)
        self.means = RunningMeans(rows)
        self._paths = _core.RowValues([self.capacity_bps, self.share_bps, self.base_rtt_s, self.first_beside])

    def reset_path(
        self, rows: slice, *, capacity_bps: PerRow, share_bps: PerRow, base_rtt_s: PerRow, first_beside: PerRow
    ) -> None:
        """Forget all measurements of these rows, whose world starts anew."""
        self.forget(rows)
        self.means.forget(rows)
        self._paths.write(rows.start, rows.stop, [capacity_bps, share_bps, base_rtt_s, first_beside])

    quantities: ClassVar[tuple[Quantity, ...]] = (
        Quantity("capacity_bps", "bit/s", "mean rate of the path's bottleneck", lambda self: self.capacity_bps),
        Quantity("share_bps", "bit/s", "fair share, what `throughput_ratio` divides by", lambda self: self.share_bps),
        Quantity("base_rtt_s", "s", "base RTT: propagation and transmission there and back", lambda self: self.base_rtt_s),
        Quantity("first_beside", "1", "row of the first agent with the same bottleneck", lambda self: self.first_beside),
        Quantity("mean_throughput_ratio", "1", "mean of `throughput_ratio` so far", lambda self: self.means.share()),
        Quantity("mean_rtt_ratio", "1", "mean of `rtt_ratio` so far", lambda self: self.means.rtt_ratio()),
        Quantity("lived_s", "s", "time over which these two are means", lambda self: self.means.age_s),
    )
