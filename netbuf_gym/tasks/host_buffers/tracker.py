"""Per-row memory of each host's telemetry, for decisions, observations and rewards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netbuf_gym.tasks.host_buffers.settings import RING_SLOT_BYTES
from netbuf_gym.tasks.host_buffers.telemetry import CONTROLS, TELEMETRY
from netbuf_gym.tasks.tracking import LastMeasured, Quantity

FIELD = {name: column for column, name in enumerate(TELEMETRY.names)}
CONTROL = {control.name: column for column, control in enumerate(CONTROLS)}

PEAK_MEMORY_S = 120.0
"""Time constant, of time in which something was sent, with which the highest rates so far are forgotten."""

LEAST_MEMORY_S = 300.0
"""Time constant with which the least round trip moves towards the present one, since a path may have become longer."""

BOUND_SHARE = 0.05
"""Share of the busy time for which buffers held connections up, from which on an interval counts as bound by a buffer."""

BINDING_WINDOWS = 1.6
"""Send buffers that are as large as may be, and hold fewer congestion windows than this, bind, whether a program tells or not:
a window is sent while what was acknowledged waits for its place to be given back, of packets with their overhead."""

DELAY_WEIGHT, MEMORY_WEIGHT = 0.2, 0.03
LEAST_SHARE, MOST_SHARE, MOST_INFLATION = 1e-3, 10.0, 8.0
"""Weights and bounds of the utility, see `Meter`."""

MEASURED = tuple(name for name in CONTROL if name in FIELD)
"""Settings that telemetry reports; for the others the last decision is in force."""

_SETTING_FIELDS = np.array([FIELD[name] for name in MEASURED])
_SETTING_CONTROLS = np.array([CONTROL[name] for name in MEASURED])


def compute_terms(tracker: Tracker, out: np.ndarray) -> np.ndarray:
    """Write ln(x), y - 1 and ln(1 + m) of the interval just ended, `(3, rows)`, into `out` and return it."""
    np.log(np.clip(tracker.throughput_ratio(), np.float32(LEAST_SHARE), np.float32(MOST_SHARE)), out=out[0])
    np.minimum(tracker.rtt_ratio(), np.float32(MOST_INFLATION), out=out[1])
    out[1] -= np.float32(1)
    np.log1p(tracker.memory_ratio(), out=out[2])
    return out


class Meter:
    """Accumulator of each host's utility and of the quantities behind it, the same for agents and for baselines.

    The utility of an interval is ln(x) - 0.2 (y - 1) - 0.03 ln(1 + m), with x = throughput of a connection / its fair share,
    within 0.001 and 10; y = latency / base RTT, within 1 and 8; m = memory / twice the path's product. All three are as last
    measured.

    Intervals before something was sent or received do not count for the utility, and intervals without a throughput or latency
    measurement do not count for their means.

    Args:
        rows: Number of hosts that are measured.
    """

    def __init__(self, rows: int):
        self._terms = np.zeros((3, rows), np.float32)
        self._sums = np.zeros((9, rows))

    def reset(self, rows: slice) -> None:
        """Forget everything about these rows, whose worlds start anew."""
        self._sums[:, rows] = 0

    def add(self, tracker: Tracker, telemetry: np.ndarray) -> None:
        """Add an interval of every row: the telemetry, `(rows, fields)`, and the tracker already updated with it."""
        elapsed = np.fmax(telemetry[:, FIELD["elapsed_s"]], 0)  # 0 for NaN
        begun = elapsed * (tracker.rate > 0)
        throughput, delay, memory = compute_terms(tracker, self._terms)
        self._sums[0] += begun
        self._sums[1] += begun * (throughput - DELAY_WEIGHT * delay - MEMORY_WEIGHT * memory)
        for row, column in ((2, FIELD["throughput_bps"]), (4, FIELD["latency_s"])):
            value = telemetry[:, column]
            measured = elapsed * ~np.isnan(value)
            self._sums[row] += measured
            self._sums[row + 1] += measured * np.nan_to_num(value)
        self._sums[6] += elapsed * tracker.memory
        self._sums[7] += elapsed
        self._sums[8] += np.nan_to_num(telemetry[:, FIELD["interrupted_s"]])

    def compute_results(self, row: int) -> dict[str, float]:
        """Return the results of a row so far; NaN where nothing was measured.

        Returns:
            utility: mean of the intervals' utility.
            flow_bps: mean of the intervals' throughput of a connection.
            latency_s: mean of the intervals' latency.
            memory_bytes: mean of TCP's and the ring's memory.
            interrupted_s: time for which rings were being resized.
        """
        begun, utility, sending, rate, timed, latency, memory, time, interrupted = self._sums[:, row].tolist()
        return {
            "utility": _divide(utility, begun),
            "flow_bps": _divide(rate, sending),
            "latency_s": _divide(latency, timed),
            "memory_bytes": _divide(memory, time),
            "interrupted_s": interrupted,
        }


def _divide(total: float, time: float) -> float:
    return total / time if time > 0 else float("nan")


class Tracker(LastMeasured):
    """Last measured value of every telemetry field, and quantities derived from more than one interval.

    Args:
        rows: Number of agents, over all worlds.
        interval_s: Nominal length of a decision interval.

    Attributes (all float32 of shape `(rows,)` unless stated):
        settings: float64 `(rows, controls)`, the settings in force, in the order of the controls; NaN: there is none to set.
        first: float64 `(rows, controls)`, the settings that the world started with.
        previous_tcp: float64, the larger TCP maximum an interval earlier, bytes.
        requests: int64 `(2, rows)`, consecutive requests for a larger and for a smaller ring (`actions.request_ring`).
        rate: last measured mean rate of a connection in bit/s: of sent data, or of received data for a host that only receives.
        latency, previous_rate, previous_latency: last measured values in seconds and bit/s, and those of an interval earlier.
        peak_rate, peak_delivery: highest recent rate of a connection, and highest delivery rate by the kernel's estimate.
        least_rtt: least recent round trip in seconds; 0 before the first.
        memory: memory of the host's TCP and of its ring in bytes.
        decisions: int64, number of intervals so far in which there was a rate, this one included.
        bound: 1 where a buffer bound in the last interval in which something was sent, else 0.
        unbound_rate, unbound_delivery: highest recent rate of a connection, and delivery rate, of intervals that no buffer
            bound; what is measured while one binds only raises them.
        unbound_ago_s: time since the last interval that no buffer bound.
        chosen_ago_s: time since the congestion control was last chosen, or the world began.
        capacity_bps, share_bps, base_rtt_s: what the world offers the host's connections. For rewards and reports; never
            observed.
        meter: accumulates the results for reports.
    """

    def __init__(self, rows: int, interval_s: float):
        super().__init__(TELEMETRY, rows)
        self.interval_s = interval_s
        self.settings = np.full((rows, len(CONTROLS)), np.nan)
        self.first = self.settings.copy()
        self.previous_tcp = np.ones(rows)
        self.requests = np.zeros((2, rows), np.int64)
        self.decisions = np.zeros(rows, np.int64)
        self._memory = np.zeros((13, rows), np.float32)
        self.rate, self.latency, self.previous_rate, self.previous_latency = self._memory[:4]
        self.peak_rate, self.peak_delivery, self.least_rtt, self.memory = self._memory[4:8]
        self.bound, self.unbound_rate, self.unbound_delivery, self.unbound_ago_s, self.chosen_ago_s = self._memory[8:]
        self._world = np.ones((3, rows), np.float32)
        self.capacity_bps, self.share_bps, self.base_rtt_s = self._world
        self.meter = Meter(rows)

    def reset(
        self,
        rows: slice,
        *,
        settings: Sequence[Sequence[float]],
        capacity_bps: Sequence[float],
        share_bps: Sequence[float],
        base_rtt_s: Sequence[float],
    ) -> None:
        """Forget all measurements of these rows; their world starts anew with these settings, in the order of controls."""
        self.forget(rows)
        self._memory[:, rows] = 0
        self.requests[:, rows] = 0
        self.decisions[rows] = 0
        self.settings[rows] = self.first[rows] = settings
        self.last[_SETTING_FIELDS, rows] = np.nan_to_num(self.settings[rows][:, _SETTING_CONTROLS].T)
        self.previous_tcp[rows] = self.tcp_max[rows]
        self.memory[rows] = self.ring_bytes[rows]
        self.capacity_bps[rows], self.share_bps[rows], self.base_rtt_s[rows] = capacity_bps, share_bps, base_rtt_s
        self.meter.reset(rows)

    @property
    def tcp_max(self) -> np.ndarray:
        """Larger of the TCP maxima in force, bytes, float64 `(rows,)`."""
        return np.maximum(self.settings[:, CONTROL["tcp_rmem_max_bytes"]], self.settings[:, CONTROL["tcp_wmem_max_bytes"]])

    @property
    def tcp_default(self) -> np.ndarray:
        """Larger of the TCP defaults in force, bytes, float64 `(rows,)`."""
        columns = CONTROL["tcp_rmem_default_bytes"], CONTROL["tcp_wmem_default_bytes"]
        return np.maximum(*(self.settings[:, column] for column in columns))

    @property
    def ring_bytes(self) -> np.ndarray:
        """Memory of the ring in bytes, float64 `(rows,)`; 0 without one."""
        return np.nan_to_num(self.settings[:, CONTROL["ring_packets"]]) * RING_SLOT_BYTES

    def update(self, telemetry: np.ndarray) -> None:
        """Take in the telemetry of one interval, `(rows, fields)` in float64, as the plant wrote it."""
        self.previous_tcp[:] = self.tcp_max
        self.previous_rate[:], self.previous_latency[:] = self.rate, self.latency
        super().update(telemetry)
        for field, control in zip(_SETTING_FIELDS, _SETTING_CONTROLS, strict=True):
            now = telemetry[:, field]
            np.copyto(self.settings[:, control], now, where=~np.isnan(now))
        last = self.last
        elapsed = last[FIELD["elapsed_s"]]
        self.chosen_ago_s += elapsed
        self._update_rates(telemetry, elapsed)
        np.copyto(self.latency, last[FIELD["latency_s"]])
        self._update_least_rtt(telemetry, elapsed)
        np.add(last[FIELD["memory_bytes"]], self.ring_bytes, out=self.memory, casting="same_kind")
        for before, now in ((self.previous_rate, self.rate), (self.previous_latency, self.latency)):
            np.copyto(before, now, where=before <= 0)  # no earlier value to compare with
        self.decisions += self.rate > 0
        self.meter.add(self, telemetry)

    def _update_rates(self, telemetry: np.ndarray, elapsed: np.ndarray) -> None:
        sent = telemetry[:, FIELD["throughput_bps"]]
        connections = np.fmax(telemetry[:, FIELD["connections"]] + telemetry[:, FIELD["connections_closed"]], 1)
        received = telemetry[:, FIELD["received_bytes"]] * 8 / (np.maximum(elapsed, 1e-9) * connections)
        rate = np.where(np.isnan(sent), np.where(received > 0, received, np.nan), sent)
        measured = ~np.isnan(rate)
        np.copyto(self.rate, rate, where=measured, casting="same_kind")
        kept = np.exp(elapsed * measured * np.float32(-1 / PEAK_MEMORY_S))
        np.maximum(self.peak_rate * kept, np.nan_to_num(rate), out=self.peak_rate, casting="same_kind")
        delivery = np.fmax(np.nan_to_num(telemetry[:, FIELD["delivery_rate_bps"]]), np.nan_to_num(rate))
        np.maximum(self.peak_delivery * kept, delivery, out=self.peak_delivery, casting="same_kind")
        self._update_bound(telemetry, measured)
        free = measured & (self.bound == 0)
        self.unbound_ago_s[:] = np.where(free, 0, self.unbound_ago_s + elapsed)
        kept = np.where(free, kept, 1)
        for estimate, now in ((self.unbound_rate, np.nan_to_num(rate)), (self.unbound_delivery, delivery)):
            np.maximum(estimate * kept, now, out=estimate, casting="same_kind")

    def _update_bound(self, telemetry: np.ndarray, measured: np.ndarray) -> None:
        """Note whether a buffer bound: by what the kernel tells, or by a buffer that has grown to the maximum."""
        held_s = telemetry[:, FIELD["rwnd_limited_s"]] + telemetry[:, FIELD["sndbuf_limited_s"]]
        told = held_s > BOUND_SHARE * telemetry[:, FIELD["busy_s"]]
        buffer, most = telemetry[:, FIELD["send_buffer_bytes"]], self.settings[:, CONTROL["tcp_wmem_max_bytes"]]
        full = (buffer >= 0.95 * most) & (BINDING_WINDOWS * telemetry[:, FIELD["cwnd_bytes"]] > buffer)
        np.copyto(self.bound, told | full, where=measured)

    def _update_least_rtt(self, telemetry: np.ndarray, elapsed: np.ndarray) -> None:
        """Update the least recent round trip: at most the present measurement, and rising slowly towards it."""
        now = np.fmin(telemetry[:, FIELD["rtt_min_s"]], telemetry[:, FIELD["latency_s"]])
        towards = 1 - np.exp(elapsed * np.float32(-1 / LEAST_MEMORY_S))
        aged = self.least_rtt + np.maximum(self.latency - self.least_rtt, 0) * towards
        known = self.least_rtt > 0
        least = np.where(np.isnan(now), self.least_rtt, np.where(known, np.fmin(aged, now), now))
        np.copyto(self.least_rtt, least, casting="same_kind")

    def throughput_ratio(self) -> np.ndarray:
        """Return the rate of a connection over its share of what the world offers; 0 before a rate was measured."""
        return self.rate / self.share_bps

    def rtt_ratio(self) -> np.ndarray:
        """Return the round-trip time over the least possible one, at least 1; 1 before the first sample."""
        return np.maximum(self.latency / self.base_rtt_s, np.float32(1))

    def queueing_s(self) -> np.ndarray:
        """Return the round-trip time less the least possible one, in seconds, at least 0."""
        return np.where(self.latency > 0, np.maximum(self.latency - self.base_rtt_s, np.float32(0)), np.float32(0))

    def loss_ratio(self) -> np.ndarray:
        """Return packets sent again over packets sent."""
        return np.minimum(self["loss"], np.float32(1))

    def memory_ratio(self) -> np.ndarray:
        """Return the memory of TCP and ring over twice what the world's path holds, which counts as at least 64 KiB."""
        holds = np.maximum(self.capacity_bps * self.base_rtt_s * np.float32(2 / 8), np.float32(65_536))
        return self.memory / holds

    quantities = (
        Quantity("throughput_ratio", "1", "rate of a connection, mean, over its fair share", throughput_ratio),
        Quantity("rtt_ratio", "1", "latency / base RTT, at least 1", rtt_ratio),
        Quantity("queueing_s", "s", "latency - base RTT, at least 0", queueing_s),
        Quantity("loss_ratio", "1", "packets sent again / sent, mean over the connections; 0 when there were none", loss_ratio),
        Quantity("memory_ratio", "1", "TCP's and the ring's memory / twice the path's product, at least 64 KiB", memory_ratio),
        Quantity("total_memory_bytes", "B", "TCP's and the ring's memory", lambda self: self.memory),
        Quantity("capacity_bps", "bit/s", "mean rates of the slowest links of its paths", lambda self: self.capacity_bps),
        Quantity("share_bps", "bit/s", "an even share of it for each lasting connection", lambda self: self.share_bps),
        Quantity("base_rtt_s", "s", "base RTT: propagation and transmission, there and back", lambda self: self.base_rtt_s),
        Quantity("rate_bps", "bit/s", "rate of a connection, mean, as last measured", lambda self: self.rate),
        Quantity("least_rtt_s", "s", "least round trip lately; 0 before the first", lambda self: self.least_rtt),
        Quantity("tcp_max_bytes", "B", "larger of the TCP maxima", lambda self: self.tcp_max.astype(np.float32)),
        Quantity("previous_rate_bps", "bit/s", "rate of a connection an interval earlier", lambda self: self.previous_rate),
    )
