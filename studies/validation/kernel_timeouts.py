"""Measure when this machine's kernel sends again and gives up, between two namespaces whose packets are swallowed.

    python -m studies.validation.kernel_timeouts [CASE ...] [repeats=3] > tests/data/linux_timeouts.csv

Root only. Cases run side by side, in real time: the longest takes 20 minutes. A row is the `number`-th of its kind in a
case: a packet that an end put on the wire (a: opens and sends; b: listens), or an event; seconds since the first SYN,
median, least and largest of the repeats that have it. Packets: `syn`, `synack`, `fin`, `ack` until the connection stands,
`repeat` (data sent again), `probe` (of a closed window). Events: `established`, with the first window (segments) and the
RTO (s) as TCP_INFO has them, `close`, `failed`, `gone` (the kernel has no such socket any more).
"""

from __future__ import annotations

import csv
import fcntl
import heapq
import multiprocessing
import os
import select
import socket
import struct
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from netbuf_gym.plants.linux import system
from netbuf_gym.utils import checks, scripts
from netbuf_gym.utils.overrides import parse_value

_TUNSETIFF, _TUN_WITHOUT_INFORMATION = 0x400454CA, 0x1001
_FIN, _SYN, _RESET, _ACK = 1, 2, 4, 16
_ADDRESS = {"a": "10.9.0.1", "b": "10.9.0.2"}
_PORT = 5001
_TICK_S = 0.05
COLUMNS = ("case", "end", "what", "number", "repeats", "time_s", "least_s", "largest_s", "window", "rto_s")


@dataclass(frozen=True)
class Seen:
    """A packet on the wire: its end, kind, payload in bytes, and how many of its end and kind came before."""

    end: str
    kind: str
    payload: int
    before: int
    time_s: float


@dataclass(frozen=True)
class Case:
    """Losses, actions of the applications, and duration of one measurement."""

    loses: Callable[[Seen], bool]
    until_s: float
    rtt_s: float = 0.05
    writes: int = 0
    """Bytes a writes once it is connected; -1: 10 KB every 50 ms without end."""
    closes: bool = False
    reads: bool = True
    answers_close: bool = True
    sysctls: dict[str, str] = field(default_factory=dict)


def _first(end: str, kind: str, count: int) -> Callable[[Seen], bool]:
    return lambda seen: seen.end == end and seen.kind == kind and seen.before < count


def _after(time_s: float, ends: str = "ab") -> Callable[[Seen], bool]:
    return lambda seen: seen.end in ends and seen.time_s >= time_s


_PLAIN = {"net.ipv4.tcp_timestamps": "0"}
CASES = {
    "syn_all": Case(_after(0, "a"), 150),
    **{f"syn_{n}": Case(_first("a", "syn", n), 45 if n > 7 else 25, writes=200_000) for n in range(9)},
    **{f"syn_{n}_plain": Case(_first("a", "syn", n), 9, writes=200_000, sysctls=_PLAIN) for n in range(4)},
    "syn_1_plain_cut": Case(
        lambda seen: seen.end == "a" and (seen.kind == "data" or (seen.kind == "syn" and seen.before == 0)),
        12,
        writes=200_000,
        sysctls=_PLAIN,
    ),
    **{f"synack_{n}": Case(_first("b", "synack", n), 25, writes=200_000) for n in range(1, 8)},
    **{f"synack_{n}_plain": Case(_first("b", "synack", n), 9, writes=200_000, sysctls=_PLAIN) for n in (1, 2, 3)},
    "synack_all": Case(_after(0, "b"), 150),
    "ack_all": Case(lambda seen: seen.end == "a" and seen.kind != "syn", 80),
    "ack_1": Case(_first("a", "ack", 1), 9, writes=20_000),
    **{
        f"middle_{name}": Case(_after(1.0, ends), until, rtt, -1, sysctls={"net.ipv4.tcp_retries2": str(retries)})
        for name, ends, rtt, retries, until in (
            ("15", "ab", 0.05, 15, 1200),
            ("15_far", "ab", 0.2, 15, 1200),
            ("15_forward", "a", 0.05, 15, 1200),
            ("8", "ab", 0.05, 8, 250),
            ("5", "ab", 0.05, 5, 60),
            ("3_far", "ab", 0.2, 3, 30),
        )
    },
    "orphan": Case(_after(0.9, "a"), 260, writes=200_000, closes=True),
    "orphan_ack": Case(_after(0.9), 260, writes=200_000, closes=True),
    "last_ack": Case(lambda seen: seen.end == "b" and seen.kind == "fin", 260, writes=20_000, closes=True),
    "fin_wait_2": Case(lambda seen: False, 90, writes=20_000, closes=True, answers_close=False),
    "probes_15": Case(_after(3.0), 1200, writes=-1, reads=False),
    "probes_5": Case(_after(3.0), 60, writes=-1, reads=False, sysctls={"net.ipv4.tcp_retries2": "5"}),
    "probes_answered": Case(lambda seen: False, 120, writes=-1, reads=False),
}


class Bench:
    """Two ends in namespaces of their own, and the wire between them."""

    def __init__(self, case: Case) -> None:
        self.case, self.rows, self.counts = case, list[dict[str, Any]](), dict[tuple[str, str], int]()
        self.spaces, self.devices = dict[str, int](), dict[str, int]()
        for end, address in _ADDRESS.items():
            system.unshare(system.NEWNET)
            self.spaces[end] = os.open("/proc/self/ns/net", os.O_RDONLY)
            for name, value in case.sysctls.items():
                Path("/proc/sys", name.replace(".", "/")).write_text(value)
            self.devices[end] = device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", b"wire", _TUN_WITHOUT_INFORMATION))
            os.system(f"ip addr add {address}/24 dev wire && ip link set wire up mtu 1500 && ip link set lo up")
        self.listener = self.make_socket("b")
        if not case.reads:
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        self.listener.bind((_ADDRESS["b"], _PORT))
        self.listener.listen()
        self.opener: socket.socket | None = self.make_socket("a")
        self.peer: socket.socket | None = None
        self.start, self.established, self.written, self.highest = -1.0, False, 0, -1
        self.on_wire: list[tuple[float, int, str, bytes]] = []

    def make_socket(self, end: str) -> socket.socket:
        system.setns(self.spaces[end], system.NEWNET)
        made = socket.socket()
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        return made

    def note(self, end: str, what: str, **values: object) -> None:
        now = time.monotonic() - self.start if self.start >= 0 else 0.0
        self.rows.append({"end": end, "what": what, "time_s": now, **values})

    def run(self) -> list[dict[str, Any]]:
        assert self.opener
        self.opener.connect_ex((_ADDRESS["b"], _PORT))
        next_tick = 0.0
        while self.start < 0 or time.monotonic() < self.start + self.case.until_s:
            now = time.monotonic()
            while self.on_wire and self.on_wire[0][0] <= now:
                _, _, end, packet = heapq.heappop(self.on_wire)
                os.write(self.devices[end], packet)
            if now >= next_tick:
                next_tick = now + _TICK_S
                self.use_sockets()
            wait = min(next_tick, self.on_wire[0][0] if self.on_wire else now + 1) - time.monotonic()
            waiting: list[int | socket.socket] = list(self.devices.values())
            if not self.established and self.opener:
                waiting.append(self.opener)
            writable = [self.opener] if self.opener and not self.established and self.start >= 0 else []
            ready, can_write, _ = select.select(waiting, writable, [], max(0.0, wait))
            for end, device in self.devices.items():
                if device in ready:
                    self.take_packets(end, device)
            if can_write:
                self.use_sockets()
            if self.peer and self.case.reads:
                self.drain()
            if any(row["what"] == "failed" for row in self.rows[-1:]):
                break
        return self.rows

    def information(self) -> dict[str, object]:
        if not self.opener:
            return {}
        information = self.opener.getsockopt(socket.IPPROTO_TCP, 11, 104)
        fields = struct.unpack_from("24I", information, 8)
        return {"window": fields[18], "rto_s": fields[0] / 1e6}

    def drain(self) -> None:
        assert self.peer
        try:
            while data := self.peer.recv(1 << 20):
                pass
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data and self.case.answers_close:
            self.peer.close()
            self.peer = None

    def take_packets(self, end: str, device: int) -> None:
        while True:
            try:
                packet = os.read(device, 65536)
            except BlockingIOError:
                return
            if packet[0] >> 4 != 4 or packet[9] != 6:
                continue
            if self.start < 0:
                self.start = time.monotonic()
            header = (packet[0] & 15) * 4
            flags = packet[header + 13]
            payload = len(packet) - header - (packet[header + 12] >> 4) * 4
            kind = (
                "reset" if flags & _RESET
                else ("synack" if flags & _ACK else "syn") if flags & _SYN
                else "fin" if flags & _FIN
                else "data" if payload
                else "ack"
            )  # fmt: skip
            before = self.counts.get((end, kind), 0)
            self.counts[end, kind] = before + 1
            now = time.monotonic()
            seen = Seen(end, kind, payload, before, now - self.start)
            lost = self.case.loses(seen)
            sequence = struct.unpack_from("!I", packet, header + 4)[0]
            self.note_packet(end, kind, sequence, payload)
            if not lost:
                other = "b" if end == "a" else "a"
                heapq.heappush(self.on_wire, (now + self.case.rtt_s / 2, len(self.rows), other, packet))

    def note_packet(self, end: str, kind: str, sequence: int, payload: int) -> None:
        if end == "a" and payload > 0:
            again = self.highest >= 0 and (sequence - self.highest) % 2**32 > 2**31
            if not again:
                self.highest = (sequence + payload) % 2**32
            if again or kind == "fin":
                self.note(end, "repeat" if again else kind)
        elif kind == "ack" and end == "a" and sequence == (self.highest - 1) % 2**32:
            self.note(end, "probe")
        elif kind in ("syn", "synack", "fin") or (kind == "ack" and self.highest < 0):
            self.note(end, kind)

    def use_sockets(self) -> None:
        case = self.case
        if not self.peer:
            try:
                self.peer, _ = self.listener.accept()
                self.peer.setblocking(False)
            except BlockingIOError:
                pass
        if self.opener is None:
            for end in ("a", "b"):
                if self.has_socket(end) or any(r["end"] == end and r["what"] == "gone" for r in self.rows):
                    continue
                self.note(end, "gone")
            return
        error = self.opener.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            self.note("a", "failed")
            return
        if not self.established and select.select([], [self.opener], [], 0)[1] and self.start >= 0:
            self.established = True
            self.note("a", "established", **self.information())
        if not self.established:
            return
        size = 10_000 if case.writes < 0 else case.writes - self.written
        if size > 0:
            try:
                self.written += self.opener.send(b"x" * size)
            except BlockingIOError:
                pass
            except OSError:
                self.note("a", "failed")
                return
        if case.closes and self.written >= case.writes and time.monotonic() > self.start + 1:
            self.opener.close()
            self.opener = None
            self.note("a", "close")

    def has_socket(self, end: str) -> bool:
        system.setns(self.spaces[end], system.NEWNET)
        states = [line.split()[3] for line in Path("/proc/thread-self/net/tcp").read_text().splitlines()[1:]]
        return any(state not in ("0A", "06") for state in states)  # neither listening nor in TIME-WAIT


def summarise(case: str, runs: list[list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a case from its repeats."""
    found = defaultdict(list)
    for rows in runs:
        numbers: Counter[tuple[str, str]] = Counter()
        for row in rows:
            kind = row["end"], row["what"]
            found[(*kind, numbers[kind])].append(row)
            numbers[kind] += 1
    for (end, what, number), rows in sorted(found.items(), key=lambda item: min(row["time_s"] for row in item[1])):
        times = [row["time_s"] for row in rows]
        told: dict[str, Any] = {name: median(row[name] for row in rows) for name in ("window", "rto_s") if name in rows[0]}
        seconds = {"time_s": median(times), "least_s": min(times), "largest_s": max(times)}
        seconds = {name: f"{value:.3f}" for name, value in seconds.items()}
        yield {"case": case, "end": end, "what": what, "number": number, "repeats": len(rows), **seconds, **told}


def main(argv: Sequence[str]) -> int:
    """Measure the cases side by side and print their table."""
    if "-h" in argv or "--help" in argv:
        print(__doc__)
        return 0
    given, names = scripts.split_arguments(argv, {"repeats": "3"})
    repeats = checks.integer("repeats", parse_value(given["repeats"]), 1, 100)
    names = [checks.choice("case", name, CASES) for name in names] or list(CASES)
    with multiprocessing.get_context("fork").Pool(repeats * len(names), maxtasksperchild=1) as pool:
        runs = pool.map(_measure, [name for name in names for _ in range(repeats)], chunksize=1)
    table = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    table.writeheader()
    for i, name in enumerate(names):
        table.writerows(summarise(name, runs[i * repeats : (i + 1) * repeats]))
    return 0


def _measure(name: str) -> list[dict[str, Any]]:
    return Bench(CASES[name]).run()


if __name__ == "__main__":
    scripts.run("studies.validation.kernel_timeouts", main)
