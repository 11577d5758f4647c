"""Sources of unanswered datagrams: constant rate, on and off, random gaps and sizes, heavy-tailed periods, replays."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from netbuf_gym import _core
from netbuf_gym.errors import ScenarioError, ScenarioTypeError, prefix_location, quote
from netbuf_gym.scenarios.captures import MAX_PACKETS, is_capture, read_capture
from netbuf_gym.scenarios.fields import boolean, check_fields, check_span, choice, integer, links, number, rule, text
from netbuf_gym.scenarios.laws import Constant, Law, Pareto, check_times, law_or_number
from netbuf_gym.scenarios.limits import MAX_DATAGRAM_BYTES, MAX_DURATION_S, MAX_QUEUES
from netbuf_gym.scenarios.sizes import PACKET_SIZES, SizeDistribution, read_records
from netbuf_gym.traces.types import MAX_RATE_MBPS, MIN_RATE_MBPS
from netbuf_gym.utils import checks
from netbuf_gym.utils.files import parse_number, split_csv_fields
from netbuf_gym.utils.suggestions import suggest_valid

MOST_PACKETS_PER_S = 1e9
LEAST_PERIOD_S = 1e-6
_PERIOD = law_or_number(LEAST_PERIOD_S, MAX_DURATION_S)


def _check_packet_bytes(label: str, value: object) -> int | Law:
    if isinstance(value, str):
        if value not in PACKET_SIZES:
            raise ScenarioError(f"{label} = {quote(value)} is unknown; {suggest_valid(value, PACKET_SIZES)}, a number or a law")
        return PACKET_SIZES[value]
    if isinstance(value, SizeDistribution) and value.size_bytes[-1] > MAX_DATAGRAM_BYTES:
        longest = f"{quote(value.name)} has size_bytes = {value.size_bytes[-1]:g}"
        raise ScenarioError(f"{label}: {longest}, which is out of range; valid: 1 to {MAX_DATAGRAM_BYTES}")
    if isinstance(value, Law):
        try:
            get_size_law(value)
        except ScenarioError:
            valid = f"a law of sizes from 1 to {MAX_DATAGRAM_BYTES} bytes"
            raise ScenarioError(f"{label} = {quote(value)}: less than a millionth of it is in range; valid: {valid}") from None
        return value
    return checks.integer(label, value, 1, MAX_DATAGRAM_BYTES)


def get_size_law(law: Law) -> _core.LawConfig:
    """Return a law of packet sizes as the core draws it: within 1 to 65535 bytes once rounded.

    Raises:
        ScenarioError: A law hardly any of which is there.
    """
    return law.to_core(0.5, MAX_DATAGRAM_BYTES)


@dataclass(frozen=True, kw_only=True)
class UdpSource:
    """Source of datagrams without congestion control: packets at a rate, always or during on periods.

    With a constant size and constant gaps, the gap is packet_bytes / rate, to the nearest nanosecond. A source that is always
    on sends its first packet at its start; a source with periods sends a packet after being on for the packet's transmission
    time, and the remainder of an on period that ends earlier counts in the next one. ns-3's UdpClient and OnOffApplication do
    the same.

    Sizes may follow a law, and gaps may be exponential (Poisson arrivals): alone at a link with Poisson arrivals a source makes
    it an M/D/1, M/M/1 (`Exponential`) or M/G/1 queue. The mean gap is the mean size / rate, and gaps are independent of sizes.

    Periods may follow laws too. Such a source is found running at its start, on with the share of time that it is on in the
    mean (an alternating renewal process in equilibrium). See `make_self_similar_sources`.

    Args:
        path: Links of the path, in either direction, as indices into `Scenario.links` or link names.
        rate_mbps: Mean rate on the wire while on, 1e-6 to 1e6 Mbit/s, at most 1e9 packets a second.
        packet_bytes: Size of a packet on the wire, headers included, 1 to 65535; a law of sizes, whose draws are rounded to
            whole bytes and repeated until they are in this range (a `SizeDistribution` lies within it, unless it is part of a
            `Mixed` law); or "imix" (`IMIX`).
        arrivals: Gaps while on: "constant", or "poisson" for exponential ones.
        on_s, off_s: Length of the periods, 1e-6 to 1e6 seconds, on first; the mean length when `random`; or a law, of a mean
            up to 1e6 seconds. None (both): always on.
        random: Whether periods given as numbers are exponentially distributed instead of fixed, from the source's own stream.
        start_s: Start of the source, 0 to 1e6 seconds.
        stop_s: End of the source, after `start_s`, at most 1e6; None: never.
        name: Name in results, unique among the sources.
        priority: Queue at switches, 0 to 63.

    Raises:
        ScenarioError: A value out of range.
    """

    path: Sequence[int | str] = field(metadata=links(core="path"))
    rate_mbps: float = field(metadata=number(MIN_RATE_MBPS, MAX_RATE_MBPS, core="rate_bps"))
    packet_bytes: int | str | Law = field(default=1500, metadata=rule(_check_packet_bytes))
    arrivals: str = field(default="constant", metadata=choice(("constant", "poisson")))
    on_s: float | Law | None = field(default=None, metadata=_PERIOD)
    off_s: float | Law | None = field(default=None, metadata=_PERIOD)
    random: bool = field(default=False, metadata=boolean(core="random_on_off"))
    start_s: float = field(default=0.0, metadata=number(0, MAX_DURATION_S, core="start_ns"))
    stop_s: float | None = field(default=None, metadata=number(0, MAX_DURATION_S, core="stop_ns"))
    name: str = field(default="", metadata=text())
    priority: int = field(default=0, metadata=integer(0, MAX_QUEUES - 1, core="priority"))
    kind: ClassVar[str] = "rate"

    def __post_init__(self) -> None:
        check_fields(self, "udp.")
        most_mbps = MOST_PACKETS_PER_S * self.mean_packet_bytes * 8e-6
        if self.rate_mbps > most_mbps:
            raise ScenarioError(
                f"udp.rate_mbps = {self.rate_mbps:g} is more than 1e9 packets a second; valid: {most_mbps:g} or less"
            )
        for given, other in (("on_s", "off_s"), ("off_s", "on_s")):
            length_s = getattr(self, given)
            if length_s is not None and getattr(self, other) is None:
                told = quote(length_s) if isinstance(length_s, Law) else f"{length_s:g}"
                raise ScenarioError(f"udp.{given} = {told}, udp.{other} = None; valid: both in seconds, or neither")
            if isinstance(length_s, Law):
                check_times(f"udp.{given}", length_s, LEAST_PERIOD_S)
        if self.random and self.on_s is None:
            raise ScenarioError("udp.random = True without periods; valid: on_s and off_s, or False")
        if self.random and self.period_laws:
            raise ScenarioError("udp.random = True beside a law of periods; valid: False")
        check_span(self, "udp.")

    @property
    def mean_packet_bytes(self) -> float:
        """Mean size of a packet, bytes."""
        return get_size_law(self.packet_bytes).mean() if isinstance(self.packet_bytes, Law) else float(self.packet_bytes)

    @property
    def longest_packet_bytes(self) -> int:
        """Largest size that a packet can have, bytes."""
        if not isinstance(self.packet_bytes, Law):
            return int(self.packet_bytes)
        return min(MAX_DATAGRAM_BYTES, math.ceil(get_size_law(self.packet_bytes).highest()))

    @property
    def period_laws(self) -> tuple[Law, ...]:
        """Laws of the periods, on and off; empty unless one of them is a law."""
        periods = (self.on_s, self.off_s)
        if not any(isinstance(period, Law) for period in periods):
            return ()
        return tuple(period if isinstance(period, Law) else Constant(value=period) for period in periods if period is not None)

    @property
    def mean_on_off_s(self) -> tuple[float, float] | None:
        """Mean lengths of the periods, on and off, in seconds; None: always on."""
        if self.on_s is None or self.off_s is None:
            return None
        on_s, off_s = (one.compute_mean() if isinstance(one, Law) else one for one in (self.on_s, self.off_s))
        return on_s, off_s

    @property
    def mean_mbps(self) -> float:
        """Mean rate on the wire between start and stop, off periods included, Mbit/s."""
        if self.mean_on_off_s is None:
            return self.rate_mbps
        on_s, off_s = self.mean_on_off_s
        return self.rate_mbps * on_s / (on_s + off_s)

    def bound_events(self, span_s: float) -> float:
        """Return about the largest number of packets and periods in `span_s` seconds."""
        events = self.rate_mbps * 1e6 * span_s / 8 / self.mean_packet_bytes + 1
        if self.on_s is None or self.off_s is None:
            return events
        periods = (Constant(value=one) if not isinstance(one, Law) else one for one in (self.on_s, self.off_s))
        return events + 2 * span_s / max(sum(one.compute_mean(min(span_s, 1.0)) for one in periods), 1e-9) + 2


def make_self_similar_sources(
    path: Sequence[int | str],
    mean_mbps: float,
    hurst: float = 0.8,
    sources: int = 50,
    peak_mbps: float | None = None,
    cycle_s: float = 1.0,
    name: str = "self-similar",
    **fields: Any,
) -> list[UdpSource]:
    """Return sources of datagrams that are self-similar together: many that are on and off for Pareto times.

    The superposition of many sources whose on and off periods have a tail index alpha from 1 to 2 is self-similar over times
    above the periods, with the Hurst parameter H = (3 - alpha) / 2 (Willinger, Taqqu, Sherman and Wilson, "Self-similarity
    through high-variability", IEEE/ACM Transactions on Networking 5(1), 1997).

    Args:
        path: As in `UdpSource`.
        mean_mbps: Mean rate of all sources together, Mbit/s.
        hurst: Hurst parameter, above 0.5 and below 1.
        sources: Number of sources, 1 to 10000.
        peak_mbps: Rate of each source while on, above its mean; None: twice its mean.
        cycle_s: Mean length of an on and an off period together, 1e-5 to 1e6 seconds.
        name: Prefix of the sources' names.
        fields: Further fields of `UdpSource` (not those of rate and periods).

    Raises:
        ScenarioError: A value out of range.
    """
    hurst = checks.number("hurst", hurst, 0.501, 0.999)
    sources = checks.integer("sources", sources, 1, 10_000)
    mean_mbps = checks.number("mean_mbps", mean_mbps, MIN_RATE_MBPS, MAX_RATE_MBPS) / sources
    peak_mbps = 2 * mean_mbps if peak_mbps is None else checks.number("peak_mbps", peak_mbps, mean_mbps, MAX_RATE_MBPS)
    cycle_s = checks.number("cycle_s", cycle_s, 1e-5, MAX_DURATION_S)
    share = mean_mbps / peak_mbps
    if not 1e-3 <= share <= 0.999:
        valid = f"{mean_mbps / 0.999:g} to {mean_mbps / 1e-3:g}"
        raise ScenarioError(f"peak_mbps = {peak_mbps:g} beside a mean of {mean_mbps:g} Mbit/s a source; valid: {valid}")
    on_s, off_s = (Pareto.of_mean(cycle_s * part, 3 - 2 * hurst) for part in (share, 1 - share))
    return [
        UdpSource(path=path, rate_mbps=peak_mbps, on_s=on_s, off_s=off_s, name=f"{name}-{i}", **fields) for i in range(sources)
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class PacketReplay:
    """Source of datagrams that sends given packets at given times.

    Args:
        path: Links of the path, as in `UdpSource`.
        time_s: Time of each packet after `start_s`, 0 to 1e6 seconds, not falling; at most 5 million. Shape (packets,).
        packet_bytes: Size of each packet on the wire, 1 to 65535. Shape (packets,).
        period_s: Period with which the packets start again, above the last time, at most 1e6 seconds, and at least a nanosecond
            for each packet; None: they are sent once.
        start_s, stop_s, name, priority: As in `UdpSource`.

    Raises:
        ScenarioError: A value out of range.
    """

    path: Sequence[int | str] = field(metadata=links(core="path"))
    time_s: np.ndarray
    packet_bytes: np.ndarray
    period_s: float | None = field(default=None, metadata=number(1e-9, MAX_DURATION_S, core="replay_period_ns"))
    start_s: float = field(default=0.0, metadata=number(0, MAX_DURATION_S, core="start_ns"))
    stop_s: float | None = field(default=None, metadata=number(0, MAX_DURATION_S, core="stop_ns"))
    name: str = field(default="", metadata=text())
    priority: int = field(default=0, metadata=integer(0, MAX_QUEUES - 1, core="priority"))
    kind: ClassVar[str] = "replay"

    def __post_init__(self) -> None:
        check_fields(self, "replay.")
        time_s = _check_column("replay.time_s", self.time_s, 0, MAX_DURATION_S)
        sizes = _check_column("replay.packet_bytes", self.packet_bytes, 1, MAX_DATAGRAM_BYTES)
        if len(sizes) != len(time_s):
            raise ScenarioError(f"replay.packet_bytes has {len(sizes)} values for {len(time_s)} in time_s; valid: as many")
        whole = np.flatnonzero(sizes != np.floor(sizes))
        if len(whole):
            raise ScenarioError(f"replay.packet_bytes[{whole[0]}] = {sizes[whole[0]]:g}; valid: whole numbers")
        fall = np.flatnonzero(np.diff(time_s) < 0)
        if len(fall):
            i = int(fall[0]) + 1
            raise ScenarioError(
                f"replay.time_s[{i}] = {time_s[i]:g} is before {time_s[i - 1]:g}; valid: times that do not fall"
            )
        if self.period_s is not None and round(self.period_s * 1e9) <= round(float(time_s[-1]) * 1e9):
            raise ScenarioError(f"replay.period_s = {self.period_s:g} is not above the last time_s, {time_s[-1]:g}")
        if self.period_s is not None and round(self.period_s * 1e9) < len(time_s):
            raise ScenarioError(
                f"replay.period_s = {self.period_s:g} for {len(time_s)} packets is more than 1e9 packets a second; "
                f"valid: {len(time_s) / MOST_PACKETS_PER_S:g} or more"
            )
        check_span(self, "replay.")
        for name, column in (("time_s", time_s), ("packet_bytes", sizes.astype(np.int64))):
            column.setflags(write=False)
            object.__setattr__(self, name, column)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PacketReplay):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        columns = (self.time_s.tobytes(), self.packet_bytes.tobytes())
        return tuple(self.path), *columns, self.period_s, self.start_s, self.stop_s, self.name, self.priority

    @staticmethod
    def read(file: str | os.PathLike[str], *, header_bytes: int = 0, **fields: Any) -> PacketReplay:
        """Read the packets of a capture (pcap, pcapng), or of a CSV file with the columns `time_s,packet_bytes`.

        Args:
            file: Path of the file; times count from its first packet in time.
            header_bytes: Part of each length that is not sent on: 14 for the Ethernet header of a capture.
            fields: Further fields of `PacketReplay`, `path` among them.

        Raises:
            ScenarioError: No such file, a damaged one, more than 5 million packets, or a value out of range; names the file.
        """
        header_bytes = checks.integer("header_bytes", header_bytes, 0, MAX_DATAGRAM_BYTES)
        time_s, sizes = read_capture(file) if is_capture(file) else _read_csv(file)
        try:
            return PacketReplay(time_s=time_s, packet_bytes=sizes - header_bytes, **fields)
        except ScenarioError as error:
            raise type(error)(prefix_location(str(error), file, None)) from None

    @property
    def mean_packet_bytes(self) -> float:
        """Mean size of a packet, bytes."""
        return float(self.packet_bytes.mean())

    @property
    def longest_packet_bytes(self) -> int:
        """Size of the longest packet, bytes."""
        return int(self.packet_bytes.max())

    @property
    def mean_mbps(self) -> float:
        """Mean rate on the wire over a period, or up to the last packet, Mbit/s; infinite if all packets are sent at once."""
        span_s = self.period_s or float(self.time_s[-1])
        return float(self.packet_bytes.sum()) * 8e-6 / span_s if span_s else math.inf

    def bound_events(self, span_s: float) -> float:
        """Return the largest number of packets in `span_s` seconds."""
        if self.period_s is None:
            return float(np.searchsorted(self.time_s, span_s, side="right"))
        return len(self.time_s) * (span_s / self.period_s + 1)


DatagramSource = UdpSource | PacketReplay
DATAGRAM_SOURCES: dict[str, type] = {source.kind: source for source in (UdpSource, PacketReplay)}


def _check_column(label: str, values: object, low: float, high: float) -> np.ndarray:
    """Return finite numbers in [low, high]. Shape (packets,)."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ScenarioTypeError(f"{label} = {quote(values)} is not a list of numbers")
    try:
        array = np.array(values if isinstance(values, np.ndarray) else list(values))
    except ValueError:  # nested lists of different lengths
        array = np.zeros((0, 0))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "fiu"):
        raise ScenarioTypeError(f"{label} = {quote(values)} is not a list of numbers")
    if not 1 <= array.size <= MAX_PACKETS:
        raise ScenarioError(f"{label} has {array.size} values; valid: 1 to {MAX_PACKETS}")
    bad = np.flatnonzero(~((array >= low) & (array <= high)))
    if len(bad):
        raise ScenarioError(f"{label}[{bad[0]}] = {array[bad[0]]:g} is out of range; valid: {low:g} to {high:g}")
    return array.astype(np.float64)


def _read_csv(file: str | os.PathLike[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return times from the first on, and sizes, of a CSV file of packets in any order."""
    columns = ("time_s", "packet_bytes")
    (first, line), *rows = read_records(file)
    header = [name.lower() for name in split_csv_fields(line)]
    if any(header.count(name) != 1 for name in columns):
        raise ScenarioError(prefix_location(f"header = {quote(line)}; valid: {','.join(columns)}", file, first))
    if not 1 <= len(rows) <= MAX_PACKETS:
        raise ScenarioError(prefix_location(f"holds {len(rows)} packets; valid: 1 to {MAX_PACKETS}", file, first))
    places = [(name, header.index(name)) for name in columns]
    values = np.empty((len(rows), 2))
    for i, (at, row) in enumerate(rows):
        found = split_csv_fields(row)
        if len(found) != len(header):
            raise ScenarioError(prefix_location(f"has {len(found)} fields; valid: {len(header)}, as the header", file, at))
        for k, (name, place) in enumerate(places):
            label = prefix_location(name, file, at)
            try:
                value = parse_number(found[place])
            except ValueError:
                raise ScenarioError(f"{label} = {quote(found[place])} is not a number") from None
            values[i, k] = checks.number(label, value, -1e15, 1e15)
    values = values[np.argsort(values[:, 0], kind="stable")]
    return values[:, 0] - values[0, 0], values[:, 1]


def list_source_names(sources: Sequence[DatagramSource]) -> list[str]:
    """Return the names of the sources in results; `udp-N` for a source without a name."""
    return [source.name or f"udp-{i}" for i, source in enumerate(sources)]
