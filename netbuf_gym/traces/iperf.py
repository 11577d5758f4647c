"""Reports of iperf and iperf3: the rate of each interval, from text or from JSON (`--json`, `--json-stream`)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection
from typing import Any, NamedTuple

from netbuf_gym.errors import quote
from netbuf_gym.traces.units import compute_rate_factor

_LINE = re.compile(
    r"\[ *\*?(?P<id>SUM|\d+)(?:-\d+)?\](?:\[(?P<role>[RT]X-[CS])\])? *(?P<start>\d+\.\d+) *- *(?P<end>\d+\.\d+) +sec"
    r" +[\d.]+ +[KMGT]?Bytes +(?P<rate>\d[\d.]*) +(?P<unit>[KMGT]?(?:bits|Bytes)/sec)(?P<rest>.*)"
)
_CSV_LINE = re.compile(  # of iperf 2 with -y C
    r"(?m)^\d{14}[\d.]*,[^,\n]*,\d+,[^,\n]*,\d+,(?P<id>-?\d+),(?P<start>\d+\.\d+)-(?P<end>\d+\.\d+),\d+,"
    r"(?P<rate>\d+)(?P<unit>)(?P<role>)(?P<rest>.*)"
)
_SUMS = {"SUM", "-1"}
_SIDES = ("sum", "sum_bidir_reverse")
_SAME_S = 1e-6
"""Largest difference of times that are the same."""
_SEVERAL = "holds several tests, or streams that do not begin and end together; valid: one test"


class IperfError(ValueError):
    """A report that gives no rates; `line` is where, None: the whole."""

    def __init__(self, message: str, line: int | None = None):
        super().__init__(message)
        self.line = line


class Interval(NamedTuple):
    """One interval of a report: its start and end in seconds, its rate in Mbit/s, and its line in the file."""

    start_s: float
    end_s: float
    mbps: float
    line: int


def is_text_report(text: str) -> bool:
    """Return whether a text has a line of iperf's in its first 64 KiB."""
    return any(pattern.search(text, 0, 65536) is not None for pattern in (_LINE, _CSV_LINE))


def read_text_report(text: str, side: str | None = None) -> list[Interval]:
    """Return the intervals of a report in text, or of iperf 2's in CSV: all streams together, without warm-up and totals.

    Args:
        text: The report.
        side: Side of a test in both directions, e.g. "RX-C"; None: the only one.

    Raises:
        IperfError: No interval, several sides and no `side`, or several tests.
    """
    pattern = _LINE if _LINE.search(text) else _CSV_LINE
    lines = [(i, found) for i, line in enumerate(text.split("\n"), 1) if (found := pattern.search(line))]
    side = _choose_side(side, {found["role"] or "" for _, found in lines})
    lines = [(i, found) for i, found in lines if (found["role"] or "") == side]
    if any(found["id"] in _SUMS for _, found in lines):
        lines = [(i, found) for i, found in lines if found["id"] in _SUMS]
    return _require(_add_streams(lines))


def _choose_side(side: str | None, sides: Collection[str]) -> str:
    if (len(sides) > 1) if side is None else side not in sides:
        given = "" if side is None else f"column = {side!r}: "
        number = "1 side" if len(sides) == 1 else f"{len(sides)} sides"
        valid = " or ".join(f"column={one}" for one in sorted(sides) if one) or "no column"
        raise IperfError(f"{given}the report has {number}; valid: {valid}")
    return side or next(iter(sides))


def _add_streams(lines: list[tuple[int, re.Match[str]]]) -> list[Interval]:
    """Return the intervals of a test, the sum of its streams, whose lines alternate.

    Raises:
        IperfError: Streams that do not begin and end together, as those of several tests in a file.
    """
    streams: dict[str, list[Interval]] = {}
    next_line: dict[str, int] = {}  # of a stream's second interval, or of its total
    complete: set[str] = set()
    for i, found in lines:
        start_s, end_s, name = float(found["start"]), float(found["end"]), found["id"]
        if "omitted" in found["rest"] or end_s <= start_s:
            continue
        stream = streams.setdefault(name, [])
        if stream:
            next_line.setdefault(name, i)
        total = re.search("sender|receiver", found["rest"]) is not None
        if stream and not total and start_s < stream[-1].end_s - _SAME_S:
            total = name not in complete and start_s < stream[0].start_s + _SAME_S and end_s > stream[-1].end_s - _SAME_S
            if not total:
                raise IperfError(_SEVERAL, i)
        if total:
            complete.add(name)
        elif name in complete:
            raise IperfError(_SEVERAL, i)
        else:
            try:
                stream.append(Interval(start_s, end_s, _read_rate(found["rate"], found["unit"]), i))
            except ValueError:
                raise IperfError(f"rate = {found['rate']!r}; valid: a number", i) from None
    whole = [(name, stream) for name, stream in streams.items() if stream]
    if not whole:
        return []
    first, intervals = whole[0]
    for _, other in whole[1:]:
        beside = other[0].line < next_line.get(first, math.inf) and len(other) == len(intervals)
        if not beside or any(abs(a.end_s - b.end_s) > _SAME_S for a, b in zip(intervals, other, strict=True)):
            raise IperfError(_SEVERAL, other[0].line)
    return [one._replace(mbps=sum(stream[k].mbps for _, stream in whole)) for k, one in enumerate(intervals)]


def _read_rate(rate: str, unit: str) -> float:
    if "Bytes" not in unit:
        return float(rate) * (compute_rate_factor(unit or "bit/s") or 0)
    return float(rate) * 1024.0 ** " KMGT".index(unit[0] if unit[0] in "KMGT" else " ") * 8e-6  # iperf's bytes count in 1024


def read_json_report(text: str, side: str | None = None) -> list[Interval]:
    """Return the intervals of a report of `iperf3 --json` or `--json-stream`, all streams together, without those of `--omit`.

    Args:
        text: The report.
        side: Side of a test in both directions, "sum" or "sum_bidir_reverse"; None: the only one.

    Raises:
        IperfError: JSON of another kind, a report of a failure, several reports, no interval, or several sides and no `side`.
    """
    intervals = []
    report = _load_intervals(text)
    side = _choose_side(side, {key for _, one in report if isinstance(one, dict) for key in _SIDES if key in one} or {"sum"})
    for number, (line, one) in enumerate(report):
        try:
            totals = [one[side]] if one.get(side) else one["streams"]
            start_s, end_s = (float(totals[0][key]) for key in ("start", "end"))
            bps = sum(float(total["bits_per_second"]) for total in totals)
            omitted = totals[0].get("omitted", False)
        except (AttributeError, LookupError, TypeError, ValueError):
            said = f"intervals[{number}] has no {side} of start, end and bits_per_second"
            raise IperfError(f"{said}; valid: iperf3 --json", line) from None
        if not omitted and end_s > start_s:
            intervals.append(Interval(start_s, end_s, bps / 1e6, line))
    return _require(intervals)


def _load_intervals(text: str) -> list[tuple[int, Any]]:
    """Return the line, where that is known, and the content of each interval."""
    try:
        report = json.loads(text)
    except ValueError as error:
        said = _SEVERAL if '"intervals"' in text and str(error).startswith("Extra data") else f"is not JSON: {error}"
        try:
            events = [(i, json.loads(line)) for i, line in enumerate(text.split("\n"), 1) if line.strip()]
        except (ValueError, RecursionError):
            raise IperfError(said, getattr(error, "lineno", None)) from None
        if any(isinstance(one, dict) and "intervals" in one for _, one in events):
            raise IperfError(said, getattr(error, "lineno", None)) from None
        return [(i, one.get("data")) for i, one in events if isinstance(one, dict) and one.get("event") == "interval"]
    except RecursionError:
        raise IperfError("is nested too deeply; valid: iperf3 --json") from None
    if not isinstance(report, dict) or not isinstance(report.get("intervals"), list):
        raise IperfError("is JSON without intervals; valid: iperf3 --json")
    if not report["intervals"] and report.get("error"):
        raise IperfError(f"reports a failure: {quote(report['error'])}; valid: a test that ran")
    return [(1, one) for one in report["intervals"]]


def _require(intervals: list[Interval]) -> list[Interval]:
    if not intervals:
        raise IperfError("the report has no interval; valid: one of a test that ran for some, e.g. iperf3 -t 60 -i 1")
    return intervals
