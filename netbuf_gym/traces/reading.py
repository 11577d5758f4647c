"""Trace files: Mahimahi's (a millisecond a line), tables of rates, and reports of iperf; also compressed, in any common unit.

The format is detected from the content. Every error names the file and the line.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, TraceError, quote
from netbuf_gym.traces import iperf
from netbuf_gym.traces.decoding import read_trace_text
from netbuf_gym.traces.logs import Log, Reading, read_log, strip_comments
from netbuf_gym.traces.types import MAX_STEPS, MAX_TIME_S, TUN_HEADER_BYTES, DeliveryTrace, RateTrace, Trace
from netbuf_gym.traces.units import RATE_UNITS, TIME_UNITS, compute_rate_factor, compute_time_factor, read_column_name
from netbuf_gym.traces.windows import cut_window
from netbuf_gym.utils import checks
from netbuf_gym.utils.files import write_atomic

HEADERS = {"csv": "time_s,mbps", "mbit": "time,Mbit/s"}
"""Headers of CSV files by the `header` argument of `write`."""
FORMATS = (
    f"Mahimahi (one whole millisecond a line), CSV with the header {' or '.join(HEADERS.values())} or none,"
    " two columns (seconds Mbit/s), a log whose header names a column of rates, a rate a second, or iperf's report"
)
IMPLAUSIBLE_MBPS = 1000.0
"""Median rate in a file without units above which another unit is suggested."""
IMPLAUSIBLE_STEP_S = 100.0
"""Median time between rates in a file without units from which another unit is suggested."""


class ImplausibleTraceWarning(UserWarning):
    """A trace whose file says no units, and whose numbers look like another one."""


def read(
    path: str | os.PathLike[str],
    *,
    loop: bool = True,
    column: str | int | None = None,
    unit: str | None = None,
    time_unit: str | None = None,
    start_s: float = 0.0,
    duration_s: float | None = None,
) -> Trace:
    """Read a trace file of any known format.

    Times of rates count from the first row: a file that begins later than 0 s begins at 0. Times of a Mahimahi file are
    unchanged, including the time before the first. Rates are Mbit/s and times seconds unless the file or the caller says
    otherwise; of several directions, the download is read.

    Args:
        path: Path of the file; plain or compressed by gzip, UTF-8 or UTF-16, at most 256 MiB.
        loop: Whether a rate trace repeats after its last step, which is assumed to last as long as the one before it; otherwise
            the last rate holds. A Mahimahi trace always repeats, as in Mahimahi.
        column: Name or number, from 1, of the column of rates; of a report of iperf in both directions the side: "RX-C" and the
            like, in JSON "sum" or "sum_bidir_reverse".
        unit: Unit of the rates, e.g. "kbit/s", "MB/s"; a single column is then rates, one a second.
        time_unit: Unit of the times, e.g. "ms".
        start_s: Seconds of the trace to leave out, below its length.
        duration_s: Seconds to read; beyond the trace's end it is repeated, or without `loop` its last rate held. None: all.

    Returns:
        A `DeliveryTrace` for a Mahimahi file, a `RateTrace` for other files, both named after the file.

    Raises:
        TraceError: No such file, an unknown format, an empty, truncated or malformed file, times that fall, too large a file.
        ScenarioError: An unknown unit, or a time out of range.
        ScenarioTypeError: A `path` that is no file name, or an argument of another type.

    Warns:
        ImplausibleTraceWarning: The file says no units, and its numbers look like others than Mbit/s and seconds.
    """
    reading = _check_reading(column, unit, time_unit)
    start_s = checks.number("start_s", start_s, 0, MAX_TIME_S)
    if duration_s is not None:
        duration_s = checks.number("duration_s", duration_s, 0, MAX_TIME_S, low_open=True)
    trace = _read_whole(path, loop, reading)
    return trace if start_s == 0 and duration_s is None else _cut(path, trace, loop, start_s, duration_s)


def _check_reading(column: str | int | None, unit: str | None, time_unit: str | None) -> Reading:
    if column is not None and (isinstance(column, bool) or not isinstance(column, (str, int))):
        raise ScenarioTypeError(f"column = {quote(column)}; valid: a name, or a number from 1")
    factors = []
    for field, value, compute, valid in (
        ("unit", unit, compute_rate_factor, RATE_UNITS),
        ("time_unit", time_unit, compute_time_factor, TIME_UNITS),
    ):
        factor = None if value is None else compute(checks.text(field, value))
        if value is not None and factor is None:
            raise ScenarioError(f"{field} = {quote(value)} is unknown; valid: {valid}")
        factors.append(factor)
    return Reading(column, *factors)


def _read_whole(path: str | os.PathLike[str], loop: bool, reading: Reading) -> Trace:
    text = read_trace_text(path, FORMATS)
    if text.lstrip()[:1] == "{" or iperf.is_text_report(text):
        return _read_report(path, text, loop, reading)
    text, comment = strip_comments(text)
    if not text or text.isspace():
        raise TraceError(f"the file is empty; valid: {FORMATS}", path, 1)
    named = comment is not None and read_column_name(comment).role == "rate"
    if not named and reading.column is None and reading.rate_factor is None:
        deliveries = _parse_deliveries(path, text, reading.time_factor or 1e-3)
        if deliveries is not None:
            return deliveries
    log = read_log(path, text, reading, comment, FORMATS)
    return _build_rate_trace(path, log, loop)


def _read_report(path: str | os.PathLike[str], text: str, loop: bool, reading: Reading) -> RateTrace:
    side = None if reading.column is None else str(reading.column)
    try:
        if text.lstrip()[:1] == "{":
            intervals = iperf.read_json_report(text, side)
        else:
            intervals = iperf.read_text_report(text, side)
    except iperf.IperfError as error:
        raise TraceError(str(error), path, error.line) from None
    starts, ends, mbps, lines = zip(*intervals, strict=True)
    return _build_rate_trace(path, Log(np.array(starts), np.array(mbps), lines, ends[-1]), loop)


def _cut(path: str | os.PathLike[str], trace: Trace, loop: bool, start_s: float, duration_s: float | None) -> Trace:
    """Return a part of a trace as a trace of its own."""
    whole_s = trace.duration_s
    if start_s >= whole_s > 0 or (whole_s == 0 and duration_s is None):
        raise ScenarioError(f"start_s = {start_s:g} is not below the length of {path}; valid: 0 to less than {whole_s:g}")
    duration_s = whole_s - start_s if duration_s is None else duration_s
    steps = len(trace.time_s) if isinstance(trace, RateTrace) else len(trace.time_ms)
    rounds = (start_s + duration_s) / whole_s if whole_s > 0 else 1.0
    if rounds * steps > MAX_STEPS and rounds > 1:
        raise ScenarioError(f"duration_s = {duration_s:g} makes {rounds * steps:.0f} steps; valid: at most {MAX_STEPS}")
    part = cut_window(trace, start_s, duration_s)
    if part is None:
        raise TraceError(f"delivers nothing from {start_s:g} s for {duration_s:g} s; valid: a part with capacity", path)
    return part if loop or isinstance(part, DeliveryTrace) else replace(part, period_s=None)


def read_rate_steps(path: str | os.PathLike[str]) -> tuple[np.ndarray, np.ndarray]:
    """Read the rates of a file as they stand: seconds and Mbit/s, each of shape (rows,).

    Raises:
        TraceError: As `read`.
    """
    text, comment = strip_comments(read_trace_text(path, FORMATS))
    log = read_log(path, text, Reading(), comment, FORMATS)
    return log.time_s, log.mbps


def write(trace: Trace, path: str | os.PathLike[str], header: str = "csv") -> None:
    """Write a rate trace as CSV, a delivery trace as a Mahimahi file; atomically.

    CSV has no period, and `read` assumes that the last step lasts as long as the one before it: a last step of another length
    is written as two steps of half the length.

    Args:
        trace: Trace to write.
        path: Path of the file.
        header: "csv": time_s,mbps; "mbit": time,Mbit/s. A Mahimahi file has none.

    Raises:
        ScenarioError: Another header.
        TraceError: A file that cannot be written, or a trace with times that a Mahimahi file cannot hold.
    """
    first = HEADERS[checks.choice("header", header, HEADERS)]
    if isinstance(trace, RateTrace):
        rows = (f"{t!r},{m!r}" for t, m in zip(*_split_last_step(trace), strict=True))
        text = "\n".join([first, *rows]) + "\n"
    elif not isinstance(trace, DeliveryTrace):
        raise TraceError(f"{quote(trace)} is not a trace; valid: a RateTrace or a DeliveryTrace", path)
    else:
        whole = trace.time_ms.astype(np.int64)
        if not np.array_equal(whole, trace.time_ms):
            raise TraceError("a Mahimahi file holds whole milliseconds only; valid: DeliveryTrace.to_mahimahi()", path)
        if trace.period_ms != trace.time_ms[-1]:
            raise TraceError(
                f"a Mahimahi file repeats after its last time, {trace.time_ms[-1]:g}, not after {trace.period_ms:g} ms;"
                " valid: DeliveryTrace.to_mahimahi()",
                path,
            )
        text = "\n".join(map(str, whole.tolist())) + "\n"
    try:
        write_atomic(path, text)
    except OSError as error:
        raise TraceError(f"cannot be written: {error.strerror or error}", path) from None


def _split_last_step(trace: RateTrace) -> tuple[list[float], list[float]]:
    """Return seconds and Mbit/s from which `_build_rate_trace` builds a trace of the same period."""
    time_s, mbps = trace.time_s.tolist(), trace.rate_mbps.tolist()
    if trace.period_s is None or (len(time_s) > 1 and math.isclose(2 * time_s[-1] - time_s[-2], trace.period_s)):
        return time_s, mbps
    middle_s = (time_s[-1] + trace.period_s) / 2
    return ([*time_s, middle_s], [*mbps, mbps[-1]]) if middle_s > time_s[-1] else (time_s, mbps)


def _build_rate_trace(path: str | os.PathLike[str], log: Log, loop: bool) -> RateTrace:
    time_s = log.time_s - log.time_s[0]
    period_s = None
    if loop and log.end_s is not None:
        period_s = log.end_s - float(log.time_s[0])
    elif loop and len(time_s) > 1:
        period_s = 2 * time_s[-1] - time_s[-2]
    hint = _find_hint(time_s, log)
    try:
        trace = RateTrace(time_s, log.mbps, period_s, name=Path(path).name)
    except ScenarioError as error:
        row = re.search(r"\[(\d+)\]", str(error))  # index of the invalid value; without one: the first line
        said = f"{error}; {hint}" if hint else str(error)
        raise TraceError(said, path, log.lines[int(row[1]) if row else 0]) from None
    if hint:
        warnings.warn(f"{path}: {hint}", ImplausibleTraceWarning, stacklevel=4)
    return trace


def _find_hint(time_s: np.ndarray, log: Log) -> str:
    """Return what an implausible file may mean, "" if it is plausible or says its units."""
    hints = [log.hint] if log.hint else []
    positive = log.mbps[log.mbps > 0]
    typical = float(np.median(positive)) if len(positive) else 0.0
    if not log.rate_known and typical > IMPLAUSIBLE_MBPS:
        other = "kbit/s" if typical <= IMPLAUSIBLE_MBPS * 1e3 else "bit/s"
        hints.append(f"rates about {typical:.4g} are read as Mbit/s; if they are {other}: unit={other}")
    step_s = float(np.median(np.diff(time_s))) if len(time_s) > 1 else 0.0
    if not log.time_known and step_s >= IMPLAUSIBLE_STEP_S:
        hints.append(f"times {step_s:.4g} apart are read as seconds; if they are ms: time_unit=ms")
    return "; ".join(hints)


def _parse_deliveries(path: str | os.PathLike[str], text: str, unit_s: float) -> DeliveryTrace | None:
    """Parse one whole number a line; return None for a file that is none of Mahimahi's."""
    if re.search(r"[^\d\s]", text, re.ASCII) is None and re.search(r"\d[^\S\n]+\d", text) is None:
        time_ms = np.fromstring(text, dtype=np.float64, sep=" ")  # of digits and white space alone, exact below 2**53
    else:
        if not _looks_like_deliveries(text):
            return None
        blanks = " \t\r\f\v"  # those of ASCII alone, as above: every other one is a fault
        lines = [(i, line.strip(blanks)) for i, line in enumerate(text.split("\n"), 1)]
        i, line = next((i, line) for i, line in lines if line and re.fullmatch(r"[0-9]+", line) is None)
        if re.fullmatch(r"-[0-9]+", line):
            raise TraceError(f"{line} ms is negative; valid: 0 or more", path, i)
        hint = "" if re.fullmatch(r"[0-9.]+", line) is None else "; one rate a second: unit=Mbit/s or another"
        raise TraceError(f"{quote(line)}; valid: one whole number of milliseconds, 0 or more{hint}", path, i)
    fall = np.flatnonzero(np.diff(time_ms) < 0)
    if len(fall):
        i = int(fall[0]) + 1
        said = f"{time_ms[i]:.0f} ms comes after {time_ms[i - 1]:.0f} ms"
        valid = "times that do not fall; one rate a second: unit=Mbit/s or another"
        raise TraceError(f"{said}; valid: {valid}", path, _find_line(text, i))
    if time_ms[-1] == 0:
        valid = "a last time above 0, after which the trace repeats"
        raise TraceError(f"ends at 0 ms; valid: {valid}", path, _find_line(text, len(time_ms) - 1))
    try:
        time_ms = time_ms if unit_s == 1e-3 else time_ms * (unit_s * 1e3)
        return DeliveryTrace(time_ms, name=Path(path).name, packet_overhead_bytes=TUN_HEADER_BYTES)
    except ScenarioError as error:
        row = re.search(r"\[(\d+)\]", str(error))
        raise TraceError(str(error), path, _find_line(text, int(row[1])) if row else None) from None


def _looks_like_deliveries(text: str) -> bool:
    """Return whether lines are one number each, and more likely milliseconds with a fault than a rate a second.

    Rates have decimal places in most lines, or in a tenth of them and fall somewhere.
    """
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if len(lines[0].split()) != 1 or not re.fullmatch(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?", lines[0], re.ASCII):
        return False
    if any(len(line.split()) != 1 or re.search(r"[,;]", line) for line in lines[:100]):
        return not re.search(r"[,;]", lines[0]) and re.fullmatch(r"[0-9]+", lines[0], re.ASCII) is not None
    decimals = [
        line for line in lines if re.fullmatch(r"[0-9]*\.[0-9]+(?:e[+-]?[0-9]+)?|[0-9]+e[+-]?[0-9]+", line, re.A | re.I)
    ]
    if 2 * len(decimals) > len(lines):
        return False
    return not (10 * len(decimals) >= len(lines) and _falls(lines))


def _falls(lines: list[str]) -> bool:
    number = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
    values = [float(line) if number.fullmatch(line) else math.nan for line in lines]
    return bool((np.diff(values) < 0).any())


def _find_line(text: str, row: int) -> int:
    """Return the number of the line that holds a row, rows counted from 0 and blank lines passed over."""
    return [i for i, line in enumerate(text.split("\n"), 1) if line.strip()][row]
