"""Time series of one run, for figures; rows of results do not keep them."""

from __future__ import annotations

import numpy as np

from netbuf_gym.controllers import Controller
from netbuf_gym.evaluation.rollout import View, World, play
from netbuf_gym.plants.simulator import FLOW_SAMPLE

SAMPLE_S = 0.5
FIELDS = ("throughput_mbps", "rtt_ms", "in_flight_packets", "queue_delay_ms")


class SeriesRecorder:
    """Recorder of samples of the first flow and its bottleneck.

    Attributes:
        rows: Samples: time in s, cumulative bytes arrived, seconds waited and packets waited, then RTT in ms and packets in
            flight.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[float, ...]] = [(0.0, 0.0, 0.0, 0.0, np.nan, 0.0)]
        self._rtt, self._in_flight = (FLOW_SAMPLE.index(name) for name in ("srtt_ms", "in_flight_packets"))

    def record(self, view: View) -> None:
        """Record a sample, unless the last one is less than `SAMPLE_S` old."""
        world, now_s = view.simulated, view.simulated.now_ns * 1e-9
        if now_s < self.rows[-1][0] + SAMPLE_S - 1e-9:
            return
        link, flow = world.link_stats()[view.scenario.tightest_link(0)], world.flow_sample()[0]
        arrived = float(world.flow_arrivals()[0])
        waited = (link["sojourn_sum_s"], link["sojourn_count"])
        self.rows.append((now_s, arrived, *waited, float(flow[self._rtt]), float(flow[self._in_flight])))

    def series(self) -> dict[str, np.ndarray]:
        """Return the arrays `time_s` and `FIELDS` by name, `(samples,)` each."""
        time_s, arrived, waited_s, passed, rtt_ms, in_flight = np.array(self.rows).T
        with np.errstate(invalid="ignore", divide="ignore"):
            delay_ms = np.where(np.diff(passed) > 0, np.diff(waited_s) / np.diff(passed) * 1e3, np.nan)
        return {
            "time_s": time_s[1:],
            "throughput_mbps": np.diff(arrived) * 8e-6 / np.diff(time_s),
            "rtt_ms": rtt_ms[1:],
            "in_flight_packets": in_flight[1:],
            "queue_delay_ms": delay_ms,
        }


def record_series(controller: Controller, world: World, task: str) -> dict[str, np.ndarray]:
    """Play a controller in one world and return its time series; see `Watched.series`."""
    found = SeriesRecorder()
    play(controller, [world], lambda view: None, task=task, watch={0: found.record})
    return found.series()
