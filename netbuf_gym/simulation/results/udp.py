"""Results of sources of datagrams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from netbuf_gym.simulation.results.parts import NAN, NamedResults, format_quantity


@dataclass(frozen=True, kw_only=True, repr=False)
class UdpResult:
    """Statistics of a source of datagrams over the measured window; names ending in `_total` count from the world's start.

    Rates are Mbit/s on the wire; NaN where nothing was measured.

    Attributes:
        name: As in the scenario; `udp-N` for a source without a name.
        packets_sent, packets_received: Counts; packets in flight at the end of the window are in neither the latter nor lost.
        queue_drops, random_losses: Packets lost at full queues and at random.
        loss_rate: (queue_drops + random_losses) / packets_sent.
        sent_mbps, received_mbps: Mean rates over the whole window, whenever the source started.
        delay_mean_ms, delay_std_ms: One-way delay, over the packets that arrived in the window.
        lost_share_total: Share of the packets sent that have not arrived, those in flight included, 0 to 1.
        delay_min_ms_total, delay_max_ms_total: Least and greatest delay since the start of the world.
    """

    name: str
    packets_sent: int
    packets_received: int
    queue_drops: int
    random_losses: int
    loss_rate: float
    sent_mbps: float
    received_mbps: float
    delay_mean_ms: float
    delay_std_ms: float
    lost_share_total: float
    delay_min_ms_total: float
    delay_max_ms_total: float

    def __repr__(self) -> str:
        """Return name, rate, delay and losses."""
        delay, lost = format_quantity(self.delay_mean_ms, "ms"), format_quantity(self.loss_rate, "%", 100)
        return f"<{self.name} (udp): {format_quantity(self.received_mbps, 'Mbit/s')}, one way {delay}, lost {lost}>"


class UdpResults(NamedResults[UdpResult]):
    """Results of sources of datagrams, by index or by name."""

    __slots__ = ()
    what = "source of datagrams"


def build_udp_result(name: str, a: Mapping[str, Any], b: Mapping[str, Any], span_s: float) -> UdpResult:
    """Return the result of a source from the core's counters at both ends of a window of `span_s` seconds."""
    counted = ("packets_sent", "packets_received", "queue_drops", "random_losses")
    d = {key: b[key] - a[key] for key in (*counted, "sent_bytes", "received_bytes", "delay_sum_s", "delay_sum2")}
    received = d["packets_received"]
    mean_s = d["delay_sum_s"] / received if received else NAN
    variance = max(d["delay_sum2"] / received - mean_s**2, 0.0) if received else NAN
    return UdpResult(
        name=name,
        **{key: d[key] for key in counted},
        loss_rate=(d["queue_drops"] + d["random_losses"]) / d["packets_sent"] if d["packets_sent"] else NAN,
        sent_mbps=d["sent_bytes"] * 8e-6 / span_s,
        received_mbps=d["received_bytes"] * 8e-6 / span_s,
        delay_mean_ms=mean_s * 1e3,
        delay_std_ms=variance**0.5 * 1e3,
        lost_share_total=1 - b["packets_received"] / b["packets_sent"] if b["packets_sent"] else NAN,
        delay_min_ms_total=b["delay_min_s"] * 1e3,
        delay_max_ms_total=b["delay_max_s"] * 1e3,
    )
