"""Tables of rates: rows of a time and a rate, of rates alone, or of a log with many columns, with or without a header.

Columns are divided by commas, semicolons, tabs or spaces. What a column holds, and in which unit, is said by its name, by the
unit beside the number, or by the caller. HSDPA logs (Riiser et al., 2013) and Ghent's LTE logs (van der Hooft et al., 2016)
have six columns and no header, and are known by their numbers.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from netbuf_gym.errors import TraceError, quote
from netbuf_gym.traces.types import MAX_STEPS
from netbuf_gym.traces.units import (
    RATE_UNITS,
    Column,
    compute_rate_factor,
    guess_epoch_factor,
    is_compact_date,
    parse_date,
    read_column_name,
    scale,
)
from netbuf_gym.utils.files import CsvError, parse_number, split_csv_rows

DAY_S = 86400.0
PLAIN_BYTES = 2**20
"""Size from which a table is first tried as plain numbers."""
EPOCH_S = 1e9
"""Times from here on are dates: seconds since 1970."""
GAP_S, GAP_STEPS = 60.0, 20
"""Shortest break of a log that is said, in seconds and in usual steps."""
_WITH_UNIT = re.compile(r"([+-]?[\d.]+(?:[eE][+-]?\d+)?)\s*([a-zA-Z/]+)")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*-\s*(\d+(?:\.\d+)?)")
_DATE_AND_CLOCK = re.compile(r"(\d{4}[-./]\d\d?[-./]\d\d?)\s+(\d\d?:\d\d)")
_DECIMAL_COMMAS = re.compile(r"\s*\d+,\d+(?:[^\S\n]+\d+,\d+)+\s*")
_THOUSANDS = re.compile(r"[+-]?\d{1,3},\d{3}")
_COMMENT = re.compile(r"(?m)(?:^[^\S\n]*(?:#|%|//)|[^\S\n]#).*$")


class Reading(NamedTuple):
    """How the caller reads a file; None: as the file says.

    Attributes:
        column: Name or number, from 1, of the column of rates.
        rate_factor: Mbit/s per unit of rates.
        time_factor: Seconds per unit of times.
    """

    column: str | int | None = None
    rate_factor: float | None = None
    time_factor: float | None = None


class Log(NamedTuple):
    """What a table holds.

    Attributes:
        time_s: Start of each rate, seconds, rising. Shape (rows,).
        mbps: Rates, Mbit/s. Shape (rows,).
        lines: Line of each rate in the file.
        end_s: End of the last rate, seconds; None: it lasts as long as the one before.
        rate_known, time_known: Whether the unit was said, by the file or by the caller.
        hint: Another reading of the table that is likely, "": none.
    """

    time_s: np.ndarray
    mbps: np.ndarray
    lines: Sequence[int]
    end_s: float | None = None
    rate_known: bool = True
    time_known: bool = True
    hint: str = ""


class _Table(NamedTuple):
    """Rows of a table, its header (None: none) and line, and whether a comma is a decimal point."""

    rows: list[tuple[int, list[str]]]
    header: list[str] | None
    line: int
    decimal_comma: bool


class _Layout(NamedTuple):
    """Columns of a table, by number from 0, with seconds and Mbit/s per unit; None: not there, or not known."""

    rate: int
    time: int | None
    unit: int | None = None
    rate_factor: float | None = None
    time_factor: float | None = None


def strip_comments(text: str) -> tuple[str, str | None]:
    """Return a text without comments, which leave their lines empty, and the comment above the first row, if there is one.

    Comments begin with `#`, `%` or `//`, and within a row with a space and `#`.
    """
    if not any(mark in text for mark in ("#", "%", "//")):
        return text, None
    bare, above = _COMMENT.sub("", text), None
    for line, left in zip(text.split("\n"), bare.split("\n"), strict=True):
        if left.strip():
            return bare, above
        if line.strip():
            above = line.strip().lstrip("#%/").strip()
    return bare, None


def read_log(path: object, text: str, reading: Reading, comment: str | None, valid: str) -> Log:
    """Read a table of rates.

    Args:
        path: Path of the file, for messages.
        text: The table, without comments.
        reading: What the caller says of it.
        comment: Comment above the first row, which may hold the names of columns.
        valid: Formats to name in the message about a file of none.

    Raises:
        TraceError: A file that is no such table; the message names the line.
    """
    if len(text) > PLAIN_BYTES and reading == Reading() and comment is None:
        plain = _read_plain(text)
        if plain is not None:
            return plain
    table = _split(path, text, comment, valid)
    if table.header is None and _is_hsdpa(table.rows) and reading.column is None:
        return _read_hsdpa(path, table)
    layout = _choose_columns(path, table, reading, valid)
    return _read_rows(path, table, layout, reading)


def _read_plain(text: str) -> Log | None:
    """Read a large table of seconds and Mbit/s by numpy, many times as fast; None for any other, and for one with a fault."""
    header, _, body = text.partition("\n")
    known = header.strip().lower() in ("time_s,mbps", "time,mbit/s")
    body = body if known else text
    if re.search(r"[^0-9.eE+\-,\s]", body, re.ASCII) is not None:
        return None
    try:
        time_s, mbps = np.loadtxt(io.StringIO(body), delimiter="," if "," in body[:100] else None, comments=None, ndmin=2).T
    except ValueError:
        return None
    plausible = 0 <= time_s[0] < EPOCH_S and (np.diff(time_s) > 0).all() and (mbps >= 0).all() and np.isfinite(mbps).all()
    if not plausible or len(mbps) > MAX_STEPS:
        return None
    lines = [i for i, line in enumerate(body.split("\n"), 2 if known else 1) if line and not line.isspace()]
    return Log(time_s, mbps, lines, None, known, known)


def _split(path: object, text: str, comment: str | None, valid: str) -> _Table:
    """Split a text into rows of fields."""
    try:
        records = split_csv_rows(text)
    except CsvError as error:
        raise _error(str(error), path, error.line) from None
    if not records:
        raise _error(f"the file is empty; valid: {valid}", path, 1)
    if len(records) > MAX_STEPS:
        raise _error(f"has {len(records)} rows; valid: at most {MAX_STEPS}", path, None)
    line, first = records[0]
    delimiter = next((one for one in ";\t," if one in first.strip()), None)
    if delimiter == "\t" and first.split() == [field.strip() for field in first.split("\t")]:
        delimiter = None
    if delimiter == "," and _DECIMAL_COMMAS.fullmatch(first):
        delimiter = None
    split = _make_splitter(delimiter)
    rows: list[tuple[int, list[str]]] = []
    for i, record in records:
        try:
            rows.append((i, split(record)))
        except csv.Error as error:
            raise _error(f"is not CSV: {error}", path, i) from None
    rows = _drop_trailing(rows)
    comma = delimiter != ","
    if not any(_is_value(field, comma) for field in rows[0][1]):
        if len(rows) == 1 and delimiter is not None:
            raise _error("has a header but no rows; valid: at least one row", path, line)
        names = rows[0][1]
        if delimiter is None and len(rows) > 1 and len(names) != len(rows[1][1]):  # blanks within a name: Time (s) Rate (Mbps)
            apart = re.split(r"\s{2,}|(?<=[\])])\s+", first.strip())
            names = apart if len(apart) == len(rows[1][1]) else names
        return _Table(rows[1:], names, line, comma)
    for pattern in [] if comment is None else [r"\s*[,;\t]\s*|\s{2,}", r"[\s,;]+"]:
        names = re.split(pattern, comment or "")
        roles = {read_column_name(name).role for name in names}
        if len(names) == len(rows[0][1]) and "rate" in roles and ("time" in roles or len(names) == 1):
            return _Table(rows, names, line, comma)
    return _Table(rows, None, line, comma)


def _make_splitter(delimiter: str | None) -> Callable[[str], list[str]]:
    def split(record: str) -> list[str]:
        if delimiter is None:
            return _DATE_AND_CLOCK.sub(r"\1T\2", record).split()
        if '"' in record:  # where a field may hold several lines
            return [" ".join(one.split()) for one in next(csv.reader([record], delimiter=delimiter, skipinitialspace=True))]
        return [one.strip() for one in record.split(delimiter)]

    return split


def _drop_trailing(rows: list[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Drop the empty field behind a delimiter that ends a row, unless it is a value that is missing in the last column."""
    width = len(rows[0][1])
    if width > 2 and not rows[0][1][-1] and not any(len(row) == width and row[-1] for _, row in rows):
        width -= 1
    return [(i, row[:-1] if len(row) == width + 1 and not row[-1] else row) for i, row in rows]


def _error(message: str, path: object, line: int | None) -> TraceError:
    return TraceError(message, path, line)  # type: ignore[arg-type]


def _parse(field: str, decimal_comma: bool) -> float:
    """Return the number in a field, NaN if there is none.

    A comma within a number, which has to be quoted where commas divide columns, is read as a decimal point; one that may as
    well mark thousands is refused there.
    """
    if field.count(",") == 1 and "." not in field and (decimal_comma or _THOUSANDS.fullmatch(field) is None):
        field = field.replace(",", ".")
    try:
        return float(parse_number(field))
    except (ValueError, OverflowError):
        return math.nan


def _is_value(field: str, decimal_comma: bool) -> bool:
    if not math.isnan(_parse(field, decimal_comma)) or _parse_time(field, decimal_comma)[0] is not None:
        return True
    found = _WITH_UNIT.fullmatch(field)
    return found is not None and compute_rate_factor(found[2]) is not None


def _parse_time(field: str, decimal_comma: bool) -> tuple[float | None, bool]:
    """Return the time in a field, None if there is none, and whether it is a date or a time of the day."""
    value = _parse(field, decimal_comma)
    if 0 <= value < math.inf and not is_compact_date(field):
        return value, False
    span = _SPAN.fullmatch(field)
    if span is not None:
        return float(span[1]), False
    date = parse_date(field)
    return date, date is not None


def _is_hsdpa(rows: list[tuple[int, list[str]]]) -> bool:
    """Return whether the first row is of an HSDPA log: time stamp, ms, latitude, longitude, bytes, ms that they took."""
    values = [_parse(field, False) for field in rows[0][1]]
    if len(values) != 6 or not (values[0] >= EPOCH_S and values[1] >= 0 and values[4] >= 0 and values[5] >= 0):
        return False
    return abs(values[2]) <= 90 and abs(values[3]) <= 180


def _read_hsdpa(path: object, table: _Table) -> Log:
    """Read an HSDPA log: a rate holds from the row before to its own, or for as long as its bytes took."""
    starts: list[float] = []
    mbps: list[float] = []
    lines: list[int] = []
    last_ms = -math.inf
    for i, fields in table.rows:
        values = [_parse(field, False) for field in fields]
        if values[4:] == [0, 0] and not starts:
            continue  # nothing in no time: the log's beginning
        if len(values) != 6 or not all(map(math.isfinite, values)) or values[4] < 0 or values[5] <= 0:
            raise _error(f"{quote(' '.join(fields))}; valid: time stamp, ms, latitude, longitude, bytes, ms", path, i)
        if values[1] <= last_ms:
            raise _error(f"{values[1]:g} ms is not after {last_ms:g}; valid: rising times", path, i)
        starts.append(max(values[1] - values[5], last_ms) * 1e-3)
        mbps.append(values[4] * 8e-3 / values[5])
        lines.append(i)
        last_ms = values[1]
    if not starts:
        raise _error("has no row with bytes and the ms that they took; valid: at least one", path, table.line)
    return Log(np.array(starts), np.array(mbps), lines, last_ms * 1e-3)


def _choose_columns(path: object, table: _Table, reading: Reading, valid: str) -> _Layout:
    """Return which columns hold times and rates.

    Raises:
        TraceError: A header without rates, or with several; an unknown column; columns without a header.
    """
    first = table.rows[0][1] if table.rows else []
    units = [k for k, field in enumerate(first) if k and compute_rate_factor(field) is not None]
    if table.header is None:
        count = len(first)
        unit = units[0] if len(units) == 1 else None
        rate = unit - 1 if unit is not None else min(count, 2) - 1
        if reading.column is not None:
            rate = _find_column(path, table, reading.column, list(map(str, range(1, count + 1))))
        elif unit is None and count > 2:
            raise _error(f"has {count} columns and no header; valid: column=1 to {count}", path, table.line)
        return _Layout(rate, 0 if rate else None, unit if unit == rate + 1 else None)
    columns = [read_column_name(name) for name in table.header]
    rates = [k for k, one in enumerate(columns) if one.role == "rate"]
    times = [k for k, one in enumerate(columns) if one.role == "time"]
    if reading.column is not None:
        rate = _find_column(path, table, reading.column, table.header)
    else:
        rate = _choose_rate(path, table, columns, rates, valid)
    times = [k for k in times if k != rate]
    named = next((k for k, one in enumerate(columns) if one.role == "unit"), None)
    unit = rate + 1 if named is None and rate + 1 in units else named
    if not times and len(columns) == 2 and unit is None:
        said = f"header {quote(','.join(table.header))} names no column of times"
        raise _error(f"{said}; valid: e.g. time_s, time (ms), timestamp", path, table.line)
    readable = [k for k in times if k < len(first) and _parse_time(first[k], table.decimal_comma)[0] is not None]
    time = next(iter(readable or times), None)  # a date alone is none
    return _Layout(rate, time, unit, columns[rate].factor, None if time is None else columns[time].factor)


def _choose_rate(path: object, table: _Table, columns: list[Column], rates: list[int], valid: str) -> int:
    """Return the only column of rates, or of several directions the download."""
    header = table.header or []
    down = [k for k in rates if columns[k].direction == "down"]
    if len(rates) > 1 and len(down) == 1 and all(columns[k].direction for k in rates):
        rates = down
    if len(rates) == 1:
        return rates[0]
    if rates:
        named = " or ".join(f"column={header[k]}" for k in rates)
        raise _error(f"has {len(rates)} columns of rates; valid: {named}", path, table.line)
    if len(header) < 3 and not any(one.role for one in columns):
        said = f"{quote(' '.join(header))} is not the first line of a known trace format"
        raise _error(f"{said}; valid: {valid}", path, table.line)
    named = "time_s,mbps, or time,Mbit/s, or other names of rates, or column=NAME or its number"
    raise _error(f"header {quote(','.join(header))} names no column of rates; valid: {named}", path, table.line)


def _find_column(path: object, table: _Table, column: str | int, names: list[str]) -> int:
    for k, name in enumerate(names):
        if str(column).strip().lower() == name.strip().lower():
            return k
    if re.fullmatch(r"[0-9]{1,6}", str(column)) and 1 <= int(column) <= len(names):
        return int(column) - 1
    valid = f"1 to {len(names)}" + ("" if table.header is None else f", or {', '.join(names)}")
    raise _error(f"column = {quote(column)}; valid: {valid}", path, table.line)


def _read_rows(path: object, table: _Table, layout: _Layout, reading: Reading) -> Log:
    """Read the rows of a table by its layout."""
    time_column, rate_column, comma = layout.time, layout.rate, table.decimal_comma
    rate_factor = reading.rate_factor or layout.rate_factor
    if not table.rows:
        raise _error("has a header but no rows; valid: at least one row", path, table.line)
    count = len(table.header or table.rows[0][1])
    time_label, rate_label = "time_s", "mbps"
    if table.header is not None and [name.lower() for name in table.header] not in (["time_s", "mbps"], ["time", "mbit/s"]):
        rate_label = table.header[rate_column]
        time_label = time_label if time_column is None else table.header[time_column]
    times: list[float] = []
    mbps: list[float] = []
    lines: list[int] = []
    merged: list[int] = []  # rows in each entry
    dated = False
    rate_known = rate_factor is not None
    for i, fields in table.rows:
        if len(fields) != count:
            what = "2, seconds and Mbit/s" if count == 2 else str(count)
            raise _error(f"{quote(' '.join(fields))} has {len(fields)} fields; valid: {what}", path, i)
        if time_column is None:
            time: float | None = float(len(times))
        else:
            time, dated = _parse_time(fields[time_column], comma)
            if time is None:
                valid = "a finite number, 0 or more, or a date such as 2018-02-12 16:14:02"
                raise _error(f"{time_label} = {quote(fields[time_column])}; valid: {valid}", path, i)
            if dated and times and time < times[-1] - DAY_S / 2 and time < DAY_S:
                time += DAY_S * math.ceil((times[-1] - time) / DAY_S)  # midnight
        value, factor = _parse_rate(fields, rate_column, layout.unit, comma)
        if not 0 <= value < math.inf:
            raise _error(f"{rate_label} = {quote(fields[rate_column])}; valid: a finite number, 0 or more", path, i)
        if factor is None and layout.unit is not None and reading.rate_factor is None:
            raise _error(f"unit = {quote(fields[layout.unit])}; valid: {RATE_UNITS}", path, i)
        rate_known = rate_known or factor is not None
        value = scale(value, reading.rate_factor or factor or rate_factor or 1.0)
        assert time is not None
        if times and time <= times[-1]:
            if time < times[-1] or not (dated or time >= EPOCH_S):
                said = f"{time_label} = {quote(fields[time_column]) if dated and time_column is not None else f'{time:.15g}'}"
                said += f" is not after {'the row before' if dated else f'{times[-1]:.15g}'}"
                raise _error(f"{said}; valid: rising times", path, i)
            mbps[-1] += (value - mbps[-1]) / (merged[-1] + 1)  # several rows of one moment: their mean
            merged[-1] += 1
            continue
        times.append(time)
        mbps.append(value)
        lines.append(i)
        merged.append(1)
    raw = np.array(times)
    said_factor = reading.time_factor or layout.time_factor
    factor = 1.0 if dated or time_column is None else said_factor or guess_epoch_factor(times[0])
    usual = factor != 1 or times[0] < 1e11  # no date in seconds is later
    time_known = dated or time_column is None or (usual and (said_factor is not None or times[0] >= EPOCH_S))
    time_s = scale(raw if times[0] < EPOCH_S else raw - raw[0], factor)
    span = None if time_column is None else _SPAN.fullmatch(table.rows[-1][1][time_column])
    ends_later = span is not None and times[0] < EPOCH_S and float(span[2]) > times[-1]
    end_s = scale(float(span[2]), factor) if span is not None and ends_later else None
    if time_column is None:
        hint = _find_time_hint(table, rate_column)
    else:
        hint = _find_gap_hint(time_s, lines) if dated or times[0] >= EPOCH_S else ""
    return Log(time_s, np.array(mbps), lines, end_s, rate_known, time_known, hint)


def _find_gap_hint(time_s: np.ndarray, lines: list[int]) -> str:
    """Return that a log was interrupted, over which time a rate holds, "" if it was not."""
    steps = np.diff(time_s)
    at = int(np.argmax(steps)) if len(steps) > 1 else -1
    if at < 0 or steps[at] < max(GAP_S, GAP_STEPS * np.median(steps)):
        return ""
    said = f"the rate of line {lines[at]} holds for {steps[at]:.4g} s, until the next row"
    return f"{said}; to read a part without the break: start_s and duration_s (--start, --duration)"


def _find_time_hint(table: _Table, rate_column: int) -> str:
    """Return what a table without a column of times may mean whose first column looks like one, "" for any other."""
    if table.header is None or rate_column == 0:
        return ""
    values = np.array(
        [math.nan if (one := _parse_time(row[0], table.decimal_comma)[0]) is None else one for _, row in table.rows]
    )
    steps = np.diff(values)
    if not (steps > 0).all() or (steps == 1).all():
        return ""
    return (
        f"rows are read as one a second; if {quote(table.header[0])} is their time: name that column time_s, time_ms or alike"
    )


def _parse_rate(fields: list[str], column: int, unit: int | None, decimal_comma: bool) -> tuple[float, float | None]:
    """Return the rate of a row, and Mbit/s per unit if the row says it."""
    field = fields[column]
    value = _parse(field, decimal_comma)
    if not math.isnan(value):
        return value, None if unit is None else compute_rate_factor(fields[unit])
    found = _WITH_UNIT.fullmatch(field)
    return (math.nan, None) if found is None else (_parse(found[1], False), compute_rate_factor(found[2]))
