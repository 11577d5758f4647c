"""Measurements of a host's TCP connections over an interval, from samples of the kernel's counters.

The values have the names of the telemetry of agents of kind `host`. A connection that comes and goes between two looks is
known from the kernel's report at its end.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from netbuf_gym.plants.linux.diag import ESTABLISHED, INDEX, PAGE_BYTES, Sockstat, Table, TcpSockets, join_tables

CUMULATIVE = (
    *("acked_bytes", "received_bytes", "data_segments_sent", "retransmitted_packets"),
    *("busy_s", "rwnd_limited_s", "sndbuf_limited_s"),
)
COLUMNS = [INDEX[name] for name in CUMULATIVE]
MEMORY = ("receive_queued_bytes", "send_queued_bytes", "memory_reserve_bytes")
"""Columns that make up the memory of a connection."""
SHORT_S = 0.01
"""Least lifetime assumed of a connection that came and went between two looks, where nothing tells."""


@dataclass
class KnownConnections:
    """Connections that were there at the last look, by cookie in ascending order.

    Attributes:
        cookie, counters: `(n,)` and `(n, len(CUMULATIVE))`, as they were at the interval's start; 0 for those opened since.
        since_s: when each was first seen, by the meter's clock.
        rtt_sum_s, rtt_count: sum and number of round-trip times over the looks in this interval.
        waits: whether the connection had gone at the end of the last interval, without the kernel's final report.
    """

    cookie: np.ndarray = field(default_factory=lambda: np.zeros(0))
    counters: np.ndarray = field(default_factory=lambda: np.zeros((0, len(CUMULATIVE))))
    since_s: np.ndarray = field(default_factory=lambda: np.zeros(0))
    rtt_sum_s: np.ndarray = field(default_factory=lambda: np.zeros(0))
    rtt_count: np.ndarray = field(default_factory=lambda: np.zeros(0))
    waits: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))

    def find(self, cookie: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices of these connections, and whether each is known."""
        if not len(self.cookie):
            return np.zeros(len(cookie), int), np.zeros(len(cookie), bool)
        at = np.minimum(np.searchsorted(self.cookie, cookie), len(self.cookie) - 1)
        return at, self.cookie[at] == cookie

    def add(self, cookie: np.ndarray, now_s: float) -> None:
        """Add connections that were opened meanwhile."""
        if not len(cookie):
            return
        order = np.argsort(np.concatenate([self.cookie, cookie]), kind="stable")
        more = len(cookie)
        self.cookie = np.concatenate([self.cookie, cookie])[order]
        self.counters = np.concatenate([self.counters, np.zeros((more, len(CUMULATIVE)))])[order]
        self.since_s = np.concatenate([self.since_s, np.full(more, now_s)])[order]
        self.rtt_sum_s = np.concatenate([self.rtt_sum_s, np.zeros(more)])[order]
        self.rtt_count = np.concatenate([self.rtt_count, np.zeros(more)])[order]
        self.waits = np.concatenate([self.waits, np.zeros(more, bool)])[order]


class HostMeter:
    """Meter of the connections of the network namespace that it is made in.

    Args:
        local: whether connections over the loopback device count.
        own_memory: whether memory is the sum over the namespace's connections; otherwise it is the machine's, of sockstat.
        behind: ports. For a host that relays, its ends of loopback connections to these ports are part of that sum.

    Raises:
        OSError: the kernel does not report connections.
    """

    def __init__(self, local: bool = False, own_memory: bool = True, behind: Sequence[int] = ()):
        self._local, self._own_memory, self._behind = local, own_memory, list(behind)
        self._sockets = TcpSockets()
        # The contents remain those of the namespace in which the file was opened.
        self._netstat = os.open("/proc/thread-self/net/netstat", os.O_RDONLY | os.O_CLOEXEC)
        self._sockstat = Sockstat()
        self._known = KnownConnections()
        self._memory: list[float] = []
        self._ended: list[Table] = []
        self._opened = 0
        self._memory_limit = _read_memory_limit(Path("/proc/sys/net/ipv4/tcp_mem"))
        self._pressure_ms = self._read_pressure_ms()
        self._now = self._look(time.monotonic())
        self._begin_s = self._seen_s = time.monotonic()
        self._begin(self._now, join_tables([]))

    def close(self) -> None:
        """Close the sockets and files."""
        self._sockets.close()
        self._sockstat.close()
        os.close(self._netstat)

    def look(self) -> Table:
        """Sample the connections within an interval, for mean round-trip times and memory; return the present connections."""
        now_s = time.monotonic()
        self._now = self._look(now_s)
        self._seen_s = now_s
        return self._now

    def measure(self) -> dict[str, float]:
        """Sample, end the interval and begin the next; return the measurements by name, without settings and the ring."""
        now = self.look()
        now_s, begin_s = self._seen_s, self._begin_s
        elapsed_s = max(now_s - begin_s, 1e-9)
        ended = self._ended_connections()
        known = self._known
        table = join_tables([now, ended])
        at, seen = known.find(table["cookie"])
        before = np.where(seen[:, None], known.counters[at] if len(known.counters) else 0.0, 0.0)
        grown = np.maximum(np.nan_to_num(table.rows[:, COLUMNS] - before), 0.0)
        acked, received, packets, again, busy_s, rwnd_s, sndbuf_s = grown.T
        waiting = np.nan_to_num(table["unacked_packets"]) + np.nan_to_num(table["unsent_bytes"]) > 0
        sending = (packets > 0) | (busy_s > 0) | (waiting & (np.arange(len(table)) < len(now)))
        sending &= np.nan_to_num(table["data_segments_sent"]) + np.nan_to_num(table["unsent_bytes"]) > 0  # a FIN is busy too
        since_s = np.where(seen, known.since_s[at] if len(known.since_s) else now_s, now_s)
        there_s = np.maximum(np.where(seen, now_s - np.maximum(since_s, begin_s), busy_s), SHORT_S)
        rtt_s = self._rtt_s(table, at, seen)
        live = now["state"] == ESTABLISHED
        pressure_ms = self._read_pressure_ms()
        found = {
            "elapsed_s": elapsed_s,
            "sent_bytes": float(acked.sum()),
            "received_bytes": float(received.sum()),
            "throughput_bps": _finite_mean((8 * acked / there_s)[sending]),
            "total_throughput_bps": float(8 * acked.sum() / elapsed_s),
            "latency_s": _finite_mean(rtt_s[sending]),
            "rtt_min_s": _finite_mean(table["rtt_min_s"][sending]),
            "loss": _finite_mean((again / np.maximum(packets, 1))[packets > 0]),
            "packets_sent": float(packets.sum()),
            "packets_retransmitted": float(again.sum()),
            "connections": float(live.sum()),
            "connections_opened": float(self._opened + (~known.find(ended["cookie"])[1]).sum()),
            "connections_closed": float(len(ended)),
            "flows_sending": float(sending.sum()),
            "rwnd_limited_s": float(rwnd_s.sum()),
            "sndbuf_limited_s": float(sndbuf_s.sum()),
            "busy_s": float(busy_s.sum()),
            "cwnd_bytes": _finite_mean((table["cwnd_packets"] * table["mss_bytes"])[sending]),
            "unsent_bytes": float(np.nansum(now["unsent_bytes"])),
            "in_flight_bytes": float(np.maximum(np.nan_to_num(now["send_queue_bytes"] - now["unsent_bytes"]), 0).sum()),
            "send_buffer_bytes": _finite_mean(now["send_buffer_bytes"][live & (now["data_segments_sent"] > 0)]),
            "receive_buffer_bytes": _finite_mean(now["receive_buffer_bytes"][live & (now["received_bytes"] > 0)]),
            "send_queued_bytes": float(np.nansum(now["send_queued_bytes"])),
            "receive_queued_bytes": float(np.nansum(now["receive_queued_bytes"])),
            "memory_bytes": float(np.mean(self._memory)),
            "memory_limit_bytes": self._memory_limit,
            "memory_pressure": min(max(pressure_ms - self._pressure_ms, 0.0) * 1e-3 / elapsed_s, 1.0),
            "delivery_rate_bps": 8 * _finite_max(table["delivery_rate_bytes_per_s"][sending]),
        }
        self._pressure_ms = pressure_ms
        self._begin(now, ended)
        return found

    def _begin(self, now: Table, ended: Table) -> None:
        """Begin the next interval with these connections, and those that have gone without a final report yet."""
        known = self._known
        here = now["cookie"]
        at, seen = known.find(here)
        since_s = np.where(seen, known.since_s[at] if len(known.since_s) else 0.0, self._seen_s)
        late = ~known.waits
        late[at[seen]] = False
        at_end, known_before = known.find(ended["cookie"])
        late[at_end[known_before]] = False
        cookie = np.concatenate([here, known.cookie[late]])
        order, count = np.argsort(cookie), len(cookie)
        self._known = KnownConnections(
            cookie[order],
            np.concatenate([np.nan_to_num(now.rows[:, COLUMNS]), known.counters[late]])[order],
            np.concatenate([since_s, known.since_s[late]])[order],
            np.zeros(count),
            np.zeros(count),
            (np.arange(count) >= len(now))[order],
        )
        self._memory, self._ended, self._opened = [], [], 0
        self._begin_s = self._seen_s

    def _look(self, now_s: float) -> Table:
        every = self._sockets.list()
        table = self._select_counted(every)
        self._ended.append(self._select_counted(self._sockets.ended()))
        cookie = table["cookie"]
        fresh = cookie[~self._known.find(cookie)[1]]
        self._opened += len(fresh)
        self._known.add(fresh, now_s)
        at, seen = self._known.find(cookie)
        measured = seen & ~np.isnan(table["rtt_s"])
        self._known.rtt_sum_s[at[measured]] += table["rtt_s"][measured]
        self._known.rtt_count[at[measured]] += 1
        self._memory.append(self._measure_memory(every))
        return table

    def _select_counted(self, table: Table) -> Table:
        return table if self._local else table.select_rows(table["loopback"] == 0)

    def _ended_connections(self) -> Table:
        """Return the connections that ended in this interval; of several reports of one, the last."""
        reports = join_tables(self._ended)
        if not len(reports):
            return reports
        _, last = np.unique(reports["cookie"][::-1], return_index=True)
        final = reports.select_rows(len(reports) - 1 - last)
        return final.select_rows(~np.isin(final["cookie"], self._now["cookie"]))

    def _rtt_s(self, table: Table, at: np.ndarray, seen: np.ndarray) -> np.ndarray:
        count = np.where(seen, self._known.rtt_count[at] if len(self._known.cookie) else 0, 0)
        total = np.where(seen, self._known.rtt_sum_s[at] if len(self._known.cookie) else 0, 0)
        return np.where(count > 0, total / np.maximum(count, 1), table["rtt_s"])

    def _measure_memory(self, table: Table) -> float:
        if self._own_memory:
            own = table.select_rows((table["loopback"] == 0) | self._local | np.isin(table["remote_port"], self._behind))
            return float(sum(np.nansum(own[name]) for name in MEMORY))
        return float(self._sockstat.read()["memory_bytes"])

    def _read_pressure_ms(self) -> float:
        """Return milliseconds under memory pressure since the namespace began."""
        lines = os.pread(self._netstat, 1 << 16, 0).decode().splitlines()
        for head, values in zip(lines[::2], lines[1::2], strict=False):
            names = head.split()
            if "TCPMemoryPressuresChrono" in names:
                return float(values.split()[names.index("TCPMemoryPressuresChrono")])
        return 0.0


def _read_memory_limit(path: Path) -> float:
    try:
        return float(path.read_text().split()[2]) * PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return float("nan")


def _finite_mean(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")


def _finite_max(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if len(finite) else float("nan")
