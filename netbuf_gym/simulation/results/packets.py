"""Log of packets: the table of a result, its CSV file, and a capture that tcpdump and tshark read."""

from __future__ import annotations

import struct
from collections import defaultdict, deque
from typing import NamedTuple

import numpy as np

from netbuf_gym import _core
from netbuf_gym.scenarios.limits import TIMESTAMP_BYTES
from netbuf_gym.scenarios.types import Scenario

_COLUMNS, _ROW_BYTES = _core.packet_fields()
ROW = np.dtype(
    {
        "names": [name for name, _, _ in _COLUMNS],
        "formats": [form for _, form, _ in _COLUMNS],
        "offsets": [offset for _, _, offset in _COLUMNS],
        "itemsize": _ROW_BYTES,
    }
)
"""Row of the core's log."""


class _Row(NamedTuple):
    """Row of the log as plain Python numbers, in the order of `ROW`."""

    time: int
    stamp: int
    owner: int
    link: int
    segment: int
    window: int
    wire_bytes: int
    payload: int
    sack: list[int]
    event: int
    is_ack: int
    kind: int
    flags: int
    ecn: int
    sack_blocks: int


PACKET = np.dtype(
    [
        *[("time_s", "f8"), ("event", "U10"), ("link", "i4"), ("flow", "i4"), ("udp", "i4"), ("kind", "U9")],
        *[("to_sender", "?"), ("sequence", "i8"), ("payload_bytes", "i4"), ("wire_bytes", "i4")],
        *[("acknowledgement", "i8"), ("window_bytes", "i8"), ("stamp_s", "f8"), ("ecn", "U4"), ("sack", "i8", (6,))],
    ]
)
"""Row of `Result.packets`."""

EVENTS = np.array(["sent", "received", "dropped", "lost", "duplicated", "corrupted"])
"""Events by the core's numbers."""

KINDS = np.array(["data", "data", "syn", "ack", "probe", "ack", "rst"])
"""Kinds of packets of a sender by the core's numbers; "fin" for the last data of a stream."""

SENT, RECEIVED = 0, 1
PUSHED, SYN, WINDOW_PROBE, FINAL_ACK, RESET, DATAGRAM = 1, 2, 4, 5, 6, 255
SYN_ACK, ACK_FIN, ACK_ECHO = 2, 16, 64
OFFERS_SACK, OFFERS_STAMPS, OFFERS_SCALING, AGREED_SHIFT = 2, 4, 8, 3
ACK_RESET = SYN_ACK | ACK_FIN
ECT, CE, CWR, ECT1 = 1, 2, 4, 8
NO_LINK = UNLIMITED_WINDOW = 2**32 - 1
FIRST_ONE_WAY = 2**31
MARK_COUNT = 7

POINTS = ("sender", "receiver")
"""Ends of flows at which a capture can be taken."""

_HEADERS_BYTES, _SNAP_BYTES = 40, 128
_LINK_HEADER_BYTES = {"linux": 0, "ns3": 2}
_LINEAR_SYNS, _SYN_RETRIES = {"linux": 4, "ns3": 0}, {"linux": 6, "ns3": 5}
_WINDOW_SCALE = 7
_RAW_IP = 101


class PacketLog(NamedTuple):
    """Log of a simulated world: rows of the core in order of time, and the scenario that they are of."""

    rows: np.ndarray
    connection: np.ndarray  # of each row: number of the flow, those of the traffic after the scenario's; -1 for datagrams
    start: np.ndarray  # first sequence number of the row's segment, SYN 0, data from 1 on
    starts: dict[int, np.ndarray]  # by connection: first sequence number of each segment
    scenario: Scenario


def build_packet_log(raw: np.ndarray, scenario: Scenario) -> PacketLog:
    """Return the log from the core's bytes."""
    rows = raw.view(ROW)
    rows = rows[np.argsort(rows["time"], kind="stable")]
    connection = np.full(len(rows), -1, np.int64)
    start, starts = np.zeros(len(rows), np.int64), {}
    parts: list[np.ndarray] = []
    retries = scenario.syn_retries if scenario.syn_retries is not None else _SYN_RETRIES[scenario.stack]
    tries = 1 + _LINEAR_SYNS[scenario.stack] + retries
    for owner in np.unique(rows["owner"][rows["owner"] < FIRST_ONE_WAY]):
        at = np.flatnonzero(rows["owner"] == owner)
        parts += [at] if owner < len(scenario.flows) else _split_connections(rows, at, tries)
    fixed = [at for at in parts if rows["owner"][at[0]] < len(scenario.flows)]
    opened = sorted((at for at in parts if rows["owner"][at[0]] >= len(scenario.flows)), key=lambda at: at[0])
    for number, at in [(int(rows["owner"][at[0]]), at) for at in fixed] + list(enumerate(opened, len(scenario.flows))):
        connection[at] = number
        starts[number] = _number_bytes(rows[at])
        start[at] = _find_starts(starts[number], rows["segment"][at])
    start[(rows["is_ack"] == 0) & (rows["kind"] == SYN)] = 0
    return PacketLog(rows, connection, start, starts, scenario)


def _split_connections(rows: np.ndarray, at: np.ndarray, tries: int) -> list[np.ndarray]:
    """Split the rows of a place that flows of the traffic share one after the other: each begins with a SYN.

    A connection that was given up has sent `tries` SYNs and nothing else.
    """
    mine = rows[at]
    ours = (mine["event"] == SENT) & (mine["is_ack"] == 0)
    syns = np.flatnonzero(ours & (mine["kind"] == SYN))
    others = np.cumsum(ours & (mine["kind"] != SYN))
    fresh = np.diff(others[syns], prepend=-1) > 0  # something else was sent since the SYN before
    begun = np.maximum.accumulate(np.where(fresh, np.arange(len(syns)), 0))
    first = syns[(np.arange(len(syns)) - begun) % tries == 0]
    first = first[first > 0]
    return [part for part in np.split(at, first) if len(part)]


def _number_bytes(mine: np.ndarray) -> np.ndarray:
    """Return the first sequence number of each segment of a connection, and of the one after the last."""
    data = (mine["is_ack"] == 0) & (mine["kind"] <= PUSHED)
    count = int(mine["segment"][data].max()) + 1 if data.any() else 0
    lengths = np.zeros(count, np.int64)
    np.maximum.at(lengths, mine["segment"][data], mine["payload"][data] + (mine["flags"][data] & 1))
    return 1 + np.concatenate([[0], np.cumsum(lengths)])


def _find_starts(starts: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """Return the first sequence numbers of segments; those never sent, which some receivers acknowledge, are full ones."""
    segments, last = segments.astype(np.int64), len(starts) - 1
    full = np.diff(starts).max(initial=0)
    return starts[np.minimum(segments, last)] + np.maximum(segments - last, 0) * full


def packets_table(log: PacketLog) -> np.ndarray:
    """Return the rows of `Result.packets`."""
    rows, scenario = log.rows, log.scenario
    table = np.zeros(len(rows), PACKET)
    is_ack, datagram = rows["is_ack"] != 0, rows["kind"] == DATAGRAM
    table["time_s"], table["event"] = rows["time"] * 1e-9, EVENTS[rows["event"]]
    table["link"] = np.where(rows["link"] == NO_LINK, -1, rows["link"].astype(np.int64))
    table["flow"] = log.connection
    table["udp"] = np.where(datagram, rows["owner"].astype(np.int64) - FIRST_ONE_WAY - len(scenario.probes), -1)
    table["kind"] = KINDS[np.where(datagram | is_ack, 0, rows["kind"])]
    table["kind"][~is_ack & ~datagram & (rows["kind"] <= PUSHED) & (rows["flags"] & 1 != 0)] = "fin"
    table["kind"][is_ack] = "ack"
    table["kind"][is_ack & (rows["flags"] & SYN_ACK != 0)] = "syn-ack"
    table["kind"][is_ack & (rows["flags"] & ACK_FIN != 0)] = "fin"
    table["kind"][is_ack & (rows["flags"] & ACK_RESET == ACK_RESET)] = "rst"
    table["kind"][datagram] = "datagram"
    table["to_sender"] = is_ack
    table["sequence"] = np.where(is_ack | datagram, 0, log.start)
    table["payload_bytes"], table["wire_bytes"] = rows["payload"], rows["wire_bytes"]
    table["acknowledgement"] = np.where(is_ack, log.start, 0)
    table["window_bytes"] = np.where(is_ack & (rows["window"] != UNLIMITED_WINDOW), rows["window"].astype(np.int64), -1)
    table["stamp_s"] = (rows["stamp"] & ~np.where(is_ack, MARK_COUNT, 0)) * 1e-9
    ecn = rows["ecn"]
    table["ecn"] = np.where(ecn & CE, "CE", np.where(ecn & ECT1, "ECT1", np.where(ecn & ECT, "ECT0", "")))
    for at in np.flatnonzero(rows["sack_blocks"]).tolist():
        table["sack"][at] = _sack_numbers(log, at)
    return table


def _sack_numbers(log: PacketLog, at: int) -> list[int]:
    """Return the SACK blocks of an ACK in sequence numbers, two for each, 0 for none."""
    row = log.rows[at]
    ends = _find_starts(log.starts[int(log.connection[at])], row["sack"]).tolist()
    return [end if i < 2 * row["sack_blocks"] else 0 for i, end in enumerate(ends)]


def format_csv(table: np.ndarray, scenario: Scenario) -> str:
    """Return the table as CSV, links by name, SACK blocks as `from-to` separated by spaces; what is unknown is empty."""
    names = list(PACKET.names or ())
    lines = [",".join(names)]
    links = [link.name for link in scenario.links]
    for row in table.tolist():
        one = dict(zip(names, row, strict=True))
        one["time_s"], one["stamp_s"] = f"{one['time_s']:.9f}", f"{one['stamp_s']:.9f}"
        one["link"] = _quote(links[one["link"]]) if one["link"] >= 0 else ""
        for name in ("flow", "udp", "window_bytes"):
            one[name] = "" if one[name] < 0 else one[name]
        one["to_sender"] = int(one["to_sender"])
        ends = list(one["sack"])
        one["sack"] = " ".join(f"{ends[i]}-{ends[i + 1]}" for i in range(0, len(ends), 2) if ends[i + 1])
        lines.append(",".join(str(one[name]) for name in names))
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text


def format_pcap(log: PacketLog, point: str) -> bytes:
    """Return a capture of the packets that leave and reach one end of all flows: headers only, nanoseconds, raw IPv4.

    Flow i is of hosts 10.0.0.0 + i + 1 and 10.128.0.0 + i + 1, from port 40000 to 5001; datagrams come from 10.64.0.0 + i + 1.
    Sequence numbers begin at 0. Time stamps are milliseconds, the window's scale is 7, payloads count as zeros in checksums.

    Args:
        log: the log.
        point: one of `POINTS`: the end where the capture is taken.
    """
    out = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, _SNAP_BYTES, _RAW_IP)]
    heads = _Headers(log)
    for at, row in enumerate(map(_Row._make, log.rows.tolist())):
        if row.event not in (SENT, RECEIVED):
            continue
        header = heads.make(at, row)
        here = (row.event == SENT) == ((row.is_ack == 0) == (point == "sender"))
        if here:
            seconds, nanoseconds = divmod(row.time, 10**9)
            length = max(len(header), row.wire_bytes - heads.link_header)
            out.append(struct.pack("<IIII", seconds, nanoseconds, len(header), length) + header)
    return b"".join(out)


class _Headers:
    """IPv4 and TCP headers of packets, asked for in order of time, of each that is sent and of each that arrives."""

    def __init__(self, log: PacketLog):
        self._log, self._numbers = log, 0
        self._connection, self._start = log.connection.tolist(), log.start.tolist()
        rows = log.rows
        capable = (rows["is_ack"] == 0) & (rows["kind"] <= PUSHED) & (rows["ecn"] & (ECT | CE | ECT1) != 0)
        self._speaks_ecn = set(np.unique(log.connection[capable]).tolist())
        self.link_header = _LINK_HEADER_BYTES[log.scenario.stack]
        self._echo: dict[int, int] = defaultdict(int)  # of a flow: time stamp of the latest ACK that its sender has
        self._acknowledged: dict[int, int] = defaultdict(lambda: 1)
        self._options: dict[int, int] = defaultdict(int)  # of a flow: the flags of its SYN's row
        self._on_way: dict[tuple, deque[tuple[bytes, int]]] = defaultdict(deque)

    def make(self, at: int, row: _Row) -> bytes:
        """Return the headers of a row: those that the packet was sent with, where it arrives (with the marks it got)."""
        flow = self._connection[at]
        if row.kind == DATAGRAM:
            source, length = row.owner - FIRST_ONE_WAY + 1, row.wire_bytes - self.link_header
            if length < 28:
                return self._ip(row, 10 << 24 | 64 << 16 | source, 10 << 24 | 192 << 16 | source, max(length, 20), 253)
            udp = struct.pack(">HHHH", 40000, 5001, length - 20, 0)
            return self._ip(row, 10 << 24 | 64 << 16 | source, 10 << 24 | 192 << 16 | source, length, 17) + udp
        key = (flow, row.is_ack, row.kind, row.segment, row.stamp, row.flags, row.payload, row.window, row.sack_blocks)
        if row.event == SENT:
            made, stamp = self._tcp(at, row, flow)
            self._on_way[key].append((made, stamp))
        else:
            waiting = self._on_way[key]
            made, stamp = waiting[0] if len(waiting) == 1 else waiting.popleft()  # the last for copies of it, too
            if row.is_ack:
                self._echo[flow] = max(self._echo[flow], stamp)
                self._acknowledged[flow] = max(self._acknowledged[flow], self._start[at])
        near, far = 10 << 24 | (flow + 1) & 0x7FFFFF, 10 << 24 | 128 << 16 | (flow + 1) & 0x7FFFFF
        source, target = (far, near) if row.is_ack else (near, far)
        ip = self._ip(row, source, target, row.wire_bytes - self.link_header, 6)
        length = row.wire_bytes - self.link_header - 20
        total = _sum_words(ip[12:20] + struct.pack(">HH", 6, length) + made)
        return ip + made[:16] + struct.pack(">H", total) + made[18:]

    def _ip(self, row: _Row, source: int, target: int, length: int, protocol: int) -> bytes:
        ecn = row.ecn
        tos = 3 if ecn & CE else 1 if ecn & ECT1 else 2 if ecn & ECT else 0
        self._numbers = self._numbers + 1 & 0xFFFF
        ip = struct.pack(">BBHHHBBHII", 0x45, tos, length, self._numbers, 0x4000, 64, protocol, 0, source, target)
        return ip[:10] + struct.pack(">H", _sum_words(ip)) + ip[12:]

    def _tcp(self, at: int, row: _Row, flow: int) -> tuple[bytes, int]:
        """Return a TCP header with its options, its checksum left 0, and its time stamp."""
        number, flags = self._start[at], row.flags
        stamp = row.stamp
        if row.is_ack:
            opening = flags & ACK_RESET == SYN_ACK
            sequence, ack, bits = 0 if opening else 1, number, 0x10
            if flags & ACK_RESET == ACK_RESET:
                ack, bits, flags = 0, 0x04, 0
            echo = flow in self._speaks_ecn if opening else flags & ACK_ECHO
            bits |= 0x02 * opening | 0x01 * bool(flags & ACK_FIN) | 0x40 * bool(echo)
            window, source, target = row.window, 5001, 40000
            stamps = _milliseconds(row.time), _milliseconds(stamp & ~MARK_COUNT)
        else:
            kind = row.kind
            opening = kind == SYN
            ack, bits = (0, 0xC2 if flow in self._speaks_ecn else 0x02) if opening else (2 if kind == FINAL_ACK else 1, 0x10)
            bits |= 0x08 * (kind == PUSHED) | 0x01 * (kind <= PUSHED and flags & 1) | 0x04 * (kind == RESET)
            bits |= 0x80 * bool(row.ecn & CWR)
            sequence = number
            if kind in (WINDOW_PROBE, FINAL_ACK, RESET):
                sequence = self._acknowledged[flow] - (kind == WINDOW_PROBE)
            window, source, target = 64 << 10, 40000, 5001
            stamps = _milliseconds(stamp), self._echo[flow]
        if opening and not row.is_ack:
            self._options[flow] = flags
        offers = self._options[flow] >> (0 if opening and not row.is_ack else AGREED_SHIFT)
        options = self._write_options(at, row, opening, stamps, offers)
        scale = 0 if opening or not offers & OFFERS_SCALING else _WINDOW_SCALE
        window = min(window >> scale, 0xFFFF)
        offset = (20 + len(options)) // 4 << 4
        head = struct.pack(">HHIIBBHHH", source, target, sequence & 0xFFFFFFFF, ack & 0xFFFFFFFF, offset, bits, window, 0, 0)
        return head + options, stamps[0]

    def _write_options(self, at: int, row: _Row, opening: bool, stamps: tuple[int, int], offers: int) -> bytes:
        room = row.wire_bytes - row.payload - self.link_header - _HEADERS_BYTES
        if room == 0:
            return b""
        scenario, blocks = self._log.scenario, row.sack_blocks
        stamped = struct.pack(">BBII", 8, 10, stamps[0] & 0xFFFFFFFF, stamps[1] & 0xFFFFFFFF)
        times = stamped if offers & OFFERS_STAMPS else b""
        if opening:
            scale = b"\1" + struct.pack("BBB", 3, 3, _WINDOW_SCALE) if offers & OFFERS_SCALING else b""
            segment = scenario.data_bytes - _HEADERS_BYTES
            if scenario.mss_bytes is not None:
                segment = scenario.mss_bytes + TIMESTAMP_BYTES * bool(times)
            largest = struct.pack(">BBH", 2, 4, segment) if scenario.stack == "linux" else b""
            selective = b"\4\2" if offers & OFFERS_SACK else b"\1\1"
            others = selective + times if times else b"\1\1" + selective if offers & OFFERS_SACK else b""
            return (largest + others + scale).ljust(room, b"\0")
        parts = [times] if times else []
        if blocks:
            ends = [end & 0xFFFFFFFF for end in _sack_numbers(self._log, at)[: 2 * blocks]]
            parts.append(struct.pack(f">BB{2 * blocks}I", 5, 2 + 8 * blocks, *ends))
        aligned = b"".join(b"\1\1" + part for part in parts)  # as Linux does; ns-3 pads the end
        return (aligned if len(aligned) <= room else b"".join(parts)).ljust(room, b"\0")


def _milliseconds(time_ns: int) -> int:
    return 1000 + time_ns // 10**6


def _sum_words(data: bytes) -> int:
    """Return the Internet checksum of bytes (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF
