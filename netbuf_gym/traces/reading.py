"""Trace files: Mahimahi (a millisecond a line), `time_s,mbps` or `time,Mbit/s` CSV, and two columns of seconds and Mbit/s.

The format is detected from the content. Every error names the file and the line.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import numpy as np

from netbuf_gym.errors import ScenarioError, ScenarioTypeError, TraceError, shown
from netbuf_gym.traces.types import DeliveryTrace, RateTrace, Trace
from netbuf_gym.utils import checks
from netbuf_gym.utils.files import CsvError, parse_number, read_text, split_csv_fields, split_csv_rows, write_atomic

CSV_HEADER = ["time_s", "mbps"]
HEADERS = {"csv": "time_s,mbps", "mbit": "time,Mbit/s"}
"""Headers of CSV files by the `header` argument of `write`; `read` accepts both, and files without a header."""
FORMATS = (
    f"Mahimahi (one whole millisecond a line), CSV with the header {' or '.join(HEADERS.values())} or none,"
    " or two columns (seconds Mbit/s)"
)


def read(path: str | os.PathLike[str], *, loop: bool = True) -> Trace:
    """Read a trace file of any known format.

    Times of rates count from the first row: a file that begins later than 0 s begins at 0. Times of a Mahimahi file are
    unchanged, including the time before the first.

    Args:
        path: Path of the file.
        loop: Whether a rate trace repeats after its last step, which is assumed to last as long as the one before it; otherwise
            the last rate holds. A Mahimahi trace always repeats, as in Mahimahi.

    Returns:
        A `DeliveryTrace` for a Mahimahi file, a `RateTrace` for other files, both named after the file.

    Raises:
        TraceError: No such file, an unknown format, an empty, truncated or malformed file, times that fall.
        ScenarioTypeError: A `path` that is no file name.
    """
    text = _read_file(path)
    lines = text.split("\n")
    number, first = next(((i, line) for i, line in enumerate(lines, 1) if line.strip()), (0, ""))
    if not first:
        raise TraceError(f"the file is empty; valid: {FORMATS}", path, 1)
    if "," in first:
        return _build_rate_trace(path, *_parse_csv(path, text), loop)
    if len(first.split()) == 2 and all(map(_is_number, first.split())):
        rows = [(i, line.split()) for i, line in enumerate(lines, 1) if line.strip()]
        return _build_rate_trace(path, *_parse_columns(path, rows), loop)
    if len(first.split()) == 1 and _is_number(first):
        return _parse_deliveries(path, lines)
    raise TraceError(f"{shown(first)} is not the first line of a known trace format; valid: {FORMATS}", path, number)


def read_rate_steps(path: str | os.PathLike[str]) -> tuple[np.ndarray, np.ndarray]:
    """Read the two columns of a `time_s,mbps` CSV file unchanged: seconds and Mbit/s, each of shape (rows,).

    Raises:
        TraceError: No such file, another header, an empty or malformed file, times that fall or negative numbers.
    """
    time_s, mbps, _ = _parse_csv(path, _read_file(path))
    return time_s, mbps


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
        raise TraceError(f"{shown(trace)} is not a trace; valid: a RateTrace or a DeliveryTrace", path)
    else:
        whole = trace.time_ms.astype(np.int64)
        if not np.array_equal(whole, trace.time_ms):
            raise TraceError("a Mahimahi file holds whole milliseconds only", path)
        if trace.period_ms != trace.time_ms[-1]:
            raise TraceError(
                f"a Mahimahi file repeats after its last time, {trace.time_ms[-1]:g}, not after {trace.period_ms:g} ms",
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


def _read_file(path: str | os.PathLike[str]) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise ScenarioTypeError(f"path = {shown(path)}; valid: the name of a trace file")
    try:
        return read_text(path)
    except OSError as error:
        raise TraceError(f"cannot be read: {error.strerror or error}", path) from None
    except UnicodeDecodeError as error:
        line = bytes(error.object[: error.start]).count(b"\n") + 1
        raise TraceError(f"is not text; valid: {FORMATS}", path, line) from None


def _parse_csv(path: str | os.PathLike[str], text: str) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Parse CSV text to seconds, Mbit/s and line numbers."""
    try:
        records = split_csv_rows(text)
    except CsvError as error:
        raise TraceError(str(error), path, error.line) from None
    if not records:
        raise TraceError(f"the file is empty; valid: {FORMATS}", path, 1)
    (line, header), *rows = records
    if all(map(_is_number, split_csv_fields(header))):
        rows = records
    elif ",".join(split_csv_fields(header)).lower() not in [known.lower() for known in HEADERS.values()]:
        raise TraceError(f"header {shown(header)}; valid: {', or '.join(HEADERS.values())}", path, line)
    if not rows:
        raise TraceError("has a header but no rows; valid: at least one row", path, line)
    return _parse_columns(path, [(i, split_csv_fields(record)) for i, record in rows])


def _parse_columns(path: str | os.PathLike[str], rows: list[tuple[int, list[str]]]) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Parse rows of two fields to seconds, Mbit/s and line numbers."""
    time_s: list[float] = []
    mbps: list[float] = []
    where: list[int] = []
    for i, fields in rows:
        if len(fields) != 2:
            raise TraceError(f"{shown(' '.join(fields))} has {len(fields)} fields; valid: 2, seconds and Mbit/s", path, i)
        for field, values, column in zip(CSV_HEADER, (time_s, mbps), fields, strict=True):
            value = float(parse_number(column)) if _is_number(column) else float("nan")
            if not 0 <= value < float("inf"):
                raise TraceError(f"{field} = {shown(column.strip())}; valid: a finite number, 0 or more", path, i)
            values.append(value)
        if len(time_s) > 1 and time_s[-1] <= time_s[-2]:
            raise TraceError(f"time_s = {time_s[-1]:g} is not after {time_s[-2]:g}; valid: rising times", path, i)
        where.append(i)
    return np.array(time_s), np.array(mbps), where


def _build_rate_trace(
    path: str | os.PathLike[str], time_s: np.ndarray, mbps: np.ndarray, where: list[int], loop: bool
) -> RateTrace:
    time_s = time_s - time_s[0]
    period_s = 2 * time_s[-1] - time_s[-2] if loop and len(time_s) > 1 else None
    try:
        return RateTrace(time_s, mbps, period_s, name=Path(path).name)
    except ScenarioError as error:
        row = re.search(r"\[(\d+)\]", str(error))  # index of the invalid value; without one: the first line
        raise TraceError(str(error), path, where[int(row[1]) if row else 0]) from None


def _parse_deliveries(path: str | os.PathLike[str], lines: list[str]) -> DeliveryTrace:
    while lines and not lines[-1].strip():
        lines.pop()
    try:
        time_ms = _parse_whole_numbers(lines)
    except (ValueError, OverflowError):
        i = next(i for i, line in enumerate(lines) if not _is_whole_number(line))
        raise TraceError(f"{shown(lines[i])}; valid: one whole number of milliseconds, 0 or more", path, i + 1) from None
    bad = np.flatnonzero(time_ms < 0)
    if len(bad):
        raise TraceError(f"{time_ms[bad[0]]} ms is negative; valid: 0 or more", path, int(bad[0]) + 1)
    fall = np.flatnonzero(np.diff(time_ms) < 0)
    if len(fall):
        i = int(fall[0]) + 1
        raise TraceError(f"{time_ms[i]} ms comes after {time_ms[i - 1]} ms; valid: times that do not fall", path, i + 1)
    if time_ms[-1] == 0:
        raise TraceError("ends at 0 ms; valid: a last time above 0, after which the trace repeats", path, len(lines))
    try:
        return DeliveryTrace(time_ms, name=Path(path).name)
    except ScenarioError as error:
        raise TraceError(str(error), path) from None


def _is_number(text: str) -> bool:
    try:
        float(parse_number(text))
    except (ValueError, OverflowError):
        return False
    return True


def _parse_whole_numbers(lines: list[str]) -> np.ndarray:
    """Parse one whole number a line; raise ValueError or OverflowError for a line with none, or one that is too large."""
    if not all(line.isascii() and "_" not in line for line in lines):
        raise ValueError
    return np.array(lines, dtype=np.int64)


def _is_whole_number(line: str) -> bool:
    try:
        return len(_parse_whole_numbers([line])) == 1
    except (ValueError, OverflowError):
        return False
