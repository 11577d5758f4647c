"""Reports of iperf and iperf3: the rate of each interval, from text or from JSON (`--json`, `--json-stream`)."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from netbuf_gym.errors import shown
from netbuf_gym.traces.units import compute_rate_factor

_LINE = re.compile(
    r"\[ *(?P<id>SUM|\d+)\](?:\[(?P<role>[RT]X-[CS])\])? *(?P<start>\d+\.\d+) *- *(?P<end>\d+\.\d+) +sec"
    r" +[\d.]+ +[KMGT]?Bytes +(?P<rate>\d[\d.]*) +(?P<unit>[KMGT]?(?:bits|Bytes)/sec)(?P<rest>.*)"
)


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
    return _LINE.search(text[:65536]) is not None


def read_text_report(text: str, role: str | None = None) -> list[Interval]:
    """Return the intervals of a report in text: the sums where there are several streams, without warm-up and totals.

    Args:
        text: The report.
        role: Side of a test in both directions, e.g. "RX-C"; None: the only one.

    Raises:
        IperfError: No interval, or several sides and no role.
    """
    lines = [(i, found) for i, line in enumerate(text.split("\n"), 1) if (found := _LINE.search(line))]
    roles = sorted({found["role"] or "" for _, found in lines})
    if (len(roles) > 1) if role is None else role not in roles:
        given = "" if role is None else f"column = {role!r}: "
        raise IperfError(f"{given}the report has {len(roles)} sides; valid: column={' or column='.join(filter(None, roles))}")
    lines = [(i, found) for i, found in lines if role is None or found["role"] == role]
    if any(found["id"] == "SUM" for _, found in lines):
        lines = [(i, found) for i, found in lines if found["id"] == "SUM"]
    intervals: list[Interval] = []
    for i, found in lines:
        start_s, end_s = float(found["start"]), float(found["end"])
        if re.search(r"sender|receiver|omitted", found["rest"]):
            continue
        if intervals and start_s < intervals[-1].end_s - 1e-6:
            continue  # the total, or another stream: of one that began beside it, the sum would say more
        intervals.append(Interval(start_s, end_s, _read_rate(found["rate"], found["unit"]), i))
    return _require(intervals)


def _read_rate(rate: str, unit: str) -> float:
    if "Bytes" not in unit:
        return float(rate) * (compute_rate_factor(unit) or 0)
    return float(rate) * 1024.0 ** " KMGT".index(unit[0] if unit[0] in "KMGT" else " ") * 8e-6  # iperf's bytes count in 1024


def read_json_report(text: str) -> list[Interval]:
    """Return the intervals of a report of `iperf3 --json` or `--json-stream`, without those of `--omit`.

    Raises:
        IperfError: JSON of another kind, a report of a failure, or no interval.
    """
    intervals = []
    for number, (line, one) in enumerate(_load_intervals(text)):
        try:
            total = one.get("sum") or one["streams"][0]
            start_s, end_s, bps = (float(total[key]) for key in ("start", "end", "bits_per_second"))
        except (AttributeError, LookupError, TypeError, ValueError):
            said = f"intervals[{number}] has no sum of start, end and bits_per_second"
            raise IperfError(f"{said}; valid: iperf3 --json", line) from None
        if not total.get("omitted"):
            intervals.append(Interval(start_s, end_s, bps / 1e6, line))
    return _require(intervals)


def _load_intervals(text: str) -> list[tuple[int, Any]]:
    """Return the line, where that is known, and the content of each interval."""
    try:
        report = json.loads(text)
    except ValueError as error:
        try:
            events = [(i, json.loads(line)) for i, line in enumerate(text.split("\n"), 1) if line.strip()]
        except (ValueError, RecursionError):
            raise IperfError(f"is not JSON: {error}", getattr(error, "lineno", None)) from None
        return [(i, one.get("data")) for i, one in events if isinstance(one, dict) and one.get("event") == "interval"]
    except RecursionError:
        raise IperfError("is nested too deeply; valid: iperf3 --json") from None
    if not isinstance(report, dict) or not isinstance(report.get("intervals"), list):
        raise IperfError("is JSON without intervals; valid: iperf3 --json")
    if not report["intervals"] and report.get("error"):
        raise IperfError(f"reports a failure: {shown(report['error'])}; valid: a test that ran")
    return [(1, one) for one in report["intervals"]]


def _require(intervals: list[Interval]) -> list[Interval]:
    if not intervals:
        raise IperfError("the report has no interval; valid: one of a test that ran for some, e.g. iperf3 -t 60 -i 1")
    return intervals
