"""Observations of a host's connections and buffers: ratios that carry over between paths, or the paper's seven features."""

from __future__ import annotations

import numpy as np

from netbuf_gym.scenarios.limits import DATA_BYTES
from netbuf_gym.tasks.features import Feature
from netbuf_gym.tasks.host_buffers.settings import CHOICES, RING_RANGE, SOCKET_RANGE, TCP_RANGE
from netbuf_gym.tasks.host_buffers.tracker import CONTROL, FIELD, Tracker

RATE_RANGE_BPS = (1e4, 1e10)
RTT_RANGE_S = (1e-3, 1.0)
MOST_CONNECTIONS = 4096.0
PACKET_BYTES = float(DATA_BYTES["linux"])

AUTER_FEATURES = (
    Feature("throughput", *RATE_RANGE_BPS, "log of throughput of a connection, mean over them, in bit/s"),
    Feature("latency", *RTT_RANGE_S, "log of round-trip time, mean over the connections, in seconds"),
    Feature("loss", 0, 1, "packets sent again over packets sent, mean over the connections"),
    Feature("ring", *RING_RANGE, "log of ring size in packets"),
    Feature("socket", *SOCKET_RANGE, "log of cap of explicit socket buffers in bytes"),
    Feature("tcp_default", *TCP_RANGE, "log of TCP default in bytes, the larger of both directions"),
    Feature("tcp_max", *TCP_RANGE, "log of TCP maximum in bytes, the larger of both directions"),
)
"""The paper's seven features; the paper states neither ranges nor scales, and these are ours."""

DEFAULT_FEATURES = (
    Feature("rtt_inflation", 1, 8, "log of latency / least round trip lately"),
    Feature("queueing", 1, 1.5, "log of latency / least round trip lately, more finely"),
    Feature("buffer_in_bdp", 1 / 16, 4096, "log of TCP maximum / (highest delivery rate lately * least round trip)", floor=-1),
    Feature("buffer_near_bdp", 1 / 4, 4, "likewise, more finely", floor=-1),
    Feature("buffer_in_use", 1, 4096, "log of TCP maximum / (rate of a connection * least round trip)"),
    Feature("buffer_near_use", 1, 8, "likewise, more finely"),
    Feature("cwnd_in_bdp", 1 / 16, 16, "log of window / (highest delivery rate lately * least round trip)", floor=-1),
    Feature("cwnd_in_buffer", 1 / 64, 64, "log of window / send buffer", floor=-1),
    Feature("send_buffer", 1 / 64, 1, "log of send buffer / TCP maximum"),
    Feature("receive_buffer", 1 / 64, 1, "log of receive buffer / TCP maximum"),
    Feature("rate_change", 1 / 4, 4, "log of rate of a connection / the one of an interval earlier", floor=-1),
    Feature("latency_change", 1 / 4, 4, "log of latency / the one of an interval earlier", floor=-1),
    Feature("tcp_change", 1 / 4, 4, "log of TCP maximum / the one of an interval earlier", floor=-1),
    Feature("tcp_default", 1, 4096, "log of TCP maximum / TCP default"),
    Feature("socket_in_bdp", 1 / 16, 4096, "log of cap of explicit socket buffers / product as above", floor=-1),
    Feature("ring_in_bdp", 1 / 256, 256, "log of what the ring holds / product as above; 0 without one", floor=-1),
    Feature("memory_in_bdp", 1 / 4, 4096, "log of TCP's and the ring's memory a connection / product as above", floor=-1),
    Feature("bdp_packets", 1, 256, "log of product as above in full packets"),
    Feature("round_trips", 1, 1024, "log of round trips in an interval"),
    Feature("connections", 1, MOST_CONNECTIONS, "log of 1 + connections alive"),
    Feature("rwnd_limited", 0, 1, "share of the busy time for which the other side's window held connections up"),
    Feature("sndbuf_limited", 0, 1, "share of the busy time for which send buffers held connections up"),
    Feature("busy", 0, 1, "share of the connections' time with data to carry"),
    Feature("rate", 0, 1, "rate of a connection / highest one lately"),
    Feature("loss", 0, 0.25, "sqrt of packets sent again over packets sent, mean over the connections"),
    Feature("unsent", 0, 1, "written and not sent yet, of what is written and not acknowledged"),
    Feature("send_fill", 0, 2, "memory that send buffers hold / their limits", floor=-1),
    Feature("receive_fill", 0, 2, "memory that receive buffers hold / their limits", floor=-1),
    Feature("memory_use", 0, 1, "TCP's memory / its limit; 0 without one"),
    Feature("pressure", 0, 1, "share of the interval under memory pressure"),
    Feature("turnover", 0, 1, "connections that were opened, of all of the interval"),
    Feature("receives", 0, 1, "bytes received, of bytes sent and received"),
    Feature("ring_fill", 0, 1, "sqrt of packets in the ring / its size"),
    Feature("ring_loss", 0, 1, "sqrt of packets that found the ring full / packets sent"),
    Feature("interrupted", 0, 1, "share of the interval for which the ring was being resized"),
)
"""Features of the default recipe, from what Linux reports of a host's sockets, and from recent peak rates and least RTT."""

CONTROL_FEATURES = (
    *DEFAULT_FEATURES,
    Feature("buffer_in_unbound_bdp", 1 / 16, 4096, "log of TCP maximum / (unbound delivery rate * least round trip)", floor=-1),
    Feature("buffer_near_unbound_bdp", 1 / 4, 4, "likewise, more finely", floor=-1),
    Feature("rate_in_unbound", 1 / 64, 1, "log of rate of a connection / unbound rate"),
    Feature("own_queue", 1, 1024, "log of 1 + packets of a connection that wait: rate * (latency - least round trip)"),
    Feature("queue_at_unbound", 1, 1024, "log of 1 + packets that would wait at the unbound rate"),
    Feature("unbound_ago", 1, 64, "log of 1 + intervals since the last one that no buffer bound"),
    Feature("chosen_ago", 1, 64, "log of 1 + intervals since the congestion control was chosen"),
    Feature("bound", 0, 1, "whether a buffer bound"),
    *(Feature(name, 0, 1, f"whether {name} was chosen") for name in CHOICES),
)
"""Features of the recipe `control`: those of the default one, estimates from intervals that no buffer bound, the control."""

_COLUMN = {feature.name: column for column, feature in enumerate(DEFAULT_FEATURES)}
_LOG_FEATURES = _COLUMN["rwnd_limited"]
"""Number of leading features that are logarithms."""

_UNBOUND = len(DEFAULT_FEATURES)
"""Number of the first feature that only the recipe `control` has."""
_UNBOUND_LOGS = len(CONTROL_FEATURES) - 1 - len(CHOICES) - _UNBOUND
"""Number of these that are logarithms, the first of them."""

_ONE, _TINY = np.float32(1), np.float32(1e-9)


def _log_scales(features: tuple[Feature, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return factors and offsets, `(n, 1)` each, so that log * factor - offset maps `low` to the floor and `high` to 1."""
    low = np.log([feature.low for feature in features])
    high = np.log([feature.high for feature in features])
    floor = np.array([feature.floor for feature in features])
    scale = (1 - floor) / (high - low)
    return scale.astype(np.float32)[:, None], (scale * low - floor).astype(np.float32)[:, None]


_SCALE, _OFFSET = _log_scales(DEFAULT_FEATURES[:_LOG_FEATURES])
_UNBOUND_SCALE, _UNBOUND_OFFSET = _log_scales(CONTROL_FEATURES[_UNBOUND : _UNBOUND + _UNBOUND_LOGS])
_AUTER_LOG_COLUMNS = (0, 1, 3, 4, 5, 6)
_AUTER_SCALE, _AUTER_OFFSET = _log_scales(tuple(AUTER_FEATURES[k] for k in _AUTER_LOG_COLUMNS))


def observe_auter(tracker: Tracker, out: np.ndarray) -> np.ndarray:
    """Write the 7 Auter features, each clipped to its range and scaled to [0, 1], into `out` of shape `(7, rows)`; return it.

    A field without a measurement keeps its last value; before the first it is the least.
    """
    last, settings = tracker.last, tracker.settings
    values = (
        last[FIELD["throughput_bps"]],
        last[FIELD["latency_s"]],
        np.nan_to_num(settings[:, CONTROL["ring_packets"]]),
        settings[:, CONTROL["socket_bytes"]],
        tracker.tcp_default,
        tracker.tcp_max,
    )
    for column, value, scale, less in zip(_AUTER_LOG_COLUMNS, values, _AUTER_SCALE, _AUTER_OFFSET, strict=True):
        out[column] = np.log(np.maximum(value, _TINY)) * scale - less
    out[2] = last[FIELD["loss"]]
    return np.clip(out, 0, 1, out=out)


def _known_ratio(value: np.ndarray, to: np.ndarray) -> np.ndarray:
    """Return value / to; 1 where either is unknown, 0."""
    known = (to > 0) & (value > 0)
    return np.where(known, value / np.where(known, to, _ONE), _ONE)


def observe_control(tracker: Tracker, out: np.ndarray) -> np.ndarray:
    """Write the features of `CONTROL_FEATURES`, each clipped to its range, into `out` of shape `(46, rows)`; return `out`."""
    observe_default(tracker, out[:_UNBOUND])
    waits_s = np.where(tracker.latency > 0, np.maximum(tracker.latency - tracker.least_rtt, np.float32(0)), np.float32(0))
    in_bdp = _known_ratio(tracker.tcp_max, tracker.unbound_delivery * tracker.least_rtt / np.float32(8))
    logs = out[_UNBOUND : _UNBOUND + _UNBOUND_LOGS]
    logs[0] = logs[1] = in_bdp
    logs[2] = _known_ratio(tracker.rate, tracker.unbound_rate)
    logs[3] = _ONE + tracker.rate * waits_s / np.float32(8 * PACKET_BYTES)
    logs[4] = _ONE + tracker.unbound_rate * waits_s / np.float32(8 * PACKET_BYTES)
    logs[5] = _ONE + tracker.unbound_ago_s / np.float32(tracker.interval_s)
    logs[6] = _ONE + tracker.chosen_ago_s / np.float32(tracker.interval_s)
    np.log(np.maximum(logs, _TINY, out=logs), out=logs)
    logs *= _UNBOUND_SCALE
    logs -= _UNBOUND_OFFSET
    rest = out[_UNBOUND + _UNBOUND_LOGS :]
    rest[0] = tracker.bound
    for number in range(len(CHOICES)):
        rest[1 + number] = tracker.settings[:, CONTROL["congestion_control"]] == number
    own = out[_UNBOUND:]
    np.maximum(own, _UNBOUND_FLOOR, out=own)
    np.minimum(own, _ONE, out=own)
    return out


def observe_default(tracker: Tracker, out: np.ndarray) -> np.ndarray:
    """Write the features of `DEFAULT_FEATURES`, each clipped to its range, into `out` of shape `(35, rows)`; return `out`.

    A field without a measurement keeps its last value. Ratios to a rate or a round trip are 1 before one was measured.
    """
    last, settings, ratio = tracker.last, tracker.settings, _known_ratio

    def of(name: str) -> np.ndarray:
        return last[FIELD[name]]

    tcp, least = tracker.tcp_max, tracker.least_rtt
    product = tracker.peak_delivery * least / np.float32(8)
    connections = of("connections")
    inflation = ratio(tracker.latency, least)
    in_bdp, in_use = ratio(tcp, product), ratio(tcp, tracker.rate * least / np.float32(8))
    logs = out[:_LOG_FEATURES]
    logs[0] = logs[1] = inflation
    logs[2] = logs[3] = in_bdp
    logs[4] = logs[5] = in_use
    logs[6] = ratio(of("cwnd_bytes"), product)
    logs[7] = ratio(of("cwnd_bytes"), of("send_buffer_bytes"))
    logs[8] = ratio(of("send_buffer_bytes"), tcp)
    logs[9] = ratio(of("receive_buffer_bytes"), tcp)
    logs[10] = ratio(tracker.rate, tracker.previous_rate)
    logs[11] = ratio(tracker.latency, tracker.previous_latency)
    logs[12] = ratio(tcp, tracker.previous_tcp)
    logs[13] = ratio(tcp, tracker.tcp_default)
    logs[14] = ratio(settings[:, CONTROL["socket_bytes"]], product)
    logs[15] = ratio(np.nan_to_num(settings[:, CONTROL["ring_packets"]]) * PACKET_BYTES, product)
    logs[16] = ratio(tracker.memory / np.maximum(connections, _ONE), product)
    logs[17] = product / np.float32(PACKET_BYTES)
    logs[18] = ratio(of("elapsed_s"), least)
    logs[19] = connections + _ONE
    np.log(np.maximum(logs, _TINY, out=logs), out=logs)
    logs *= _SCALE
    logs -= _OFFSET

    busy = np.maximum(of("busy_s"), _TINY)
    there = connections + of("connections_closed")
    out[20] = of("rwnd_limited_s") / busy
    out[21] = of("sndbuf_limited_s") / busy
    out[22] = of("busy_s") / np.maximum(of("elapsed_s") * there, _TINY)
    out[23] = tracker.rate / np.maximum(tracker.peak_rate, _ONE)
    out[24] = np.sqrt(np.minimum(of("loss") * np.float32(4), _ONE))
    out[25] = of("unsent_bytes") / np.maximum(of("unsent_bytes") + of("in_flight_bytes"), _ONE)
    out[26] = of("send_queued_bytes") / np.maximum(of("send_buffer_bytes") * connections, _ONE) - _ONE
    out[27] = of("receive_queued_bytes") / np.maximum(of("receive_buffer_bytes") * connections, _ONE) - _ONE
    out[28] = np.where(of("memory_limit_bytes") > 0, of("memory_bytes") / np.maximum(of("memory_limit_bytes"), _ONE), 0)
    out[29] = of("memory_pressure")
    out[30] = of("connections_opened") / np.maximum(there, _ONE)
    out[31] = of("received_bytes") / np.maximum(of("received_bytes") + of("sent_bytes"), _ONE)
    out[32] = np.sqrt(of("ring_queue_packets") / np.maximum(of("ring_packets"), _ONE))
    out[33] = np.sqrt(of("ring_drops") / np.maximum(of("packets_sent"), _ONE))
    out[34] = of("interrupted_s") / np.maximum(of("elapsed_s"), _TINY)
    np.maximum(out, _FLOOR, out=out)
    return np.minimum(out, _ONE, out=out)


_FLOOR = np.array([feature.floor for feature in DEFAULT_FEATURES], np.float32)[:, None]
_UNBOUND_FLOOR = np.array([feature.floor for feature in CONTROL_FEATURES[_UNBOUND:]], np.float32)[:, None]
