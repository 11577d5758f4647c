"""Format of a campaign's tidy file, in which damaged rows are detected.

The first line is a comment: version, command, number of rows. Then a header and one row for each run, each ending in the column
`check`: the CRC-32 of the comment and of the row before the column. Rows that were cut, changed, or taken from another
campaign's file are thus detected, and the line is named.
"""

from __future__ import annotations

import csv
import io
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netbuf_gym.errors import ReferenceDataError, quote
from netbuf_gym.utils.files import CsvError, read_text, split_csv_fields, split_csv_rows

CHECK = "check"
FIRST_LINE = re.compile(r"# (?P<comment>.*); (?P<rows>\d+) rows")


@dataclass(frozen=True)
class Table:
    """Content of a tidy file.

    Attributes:
        comment: Version and command.
        rows: Complete rows, by column, as text; without their checks.
        promised: Number of rows that the first line states.
        lines: Line numbers of the rows, from 1.
        cut: Line at which the file is cut, so that rows are missing; None: the file is complete.
    """

    comment: str
    rows: list[dict[str, str]]
    promised: int
    lines: list[int]
    cut: int | None

    def require_complete(self, path: str | Path) -> Table:
        """Return this table after checking that it is complete.

        Raises:
            ReferenceDataError: The file is cut.
        """
        if self.cut is not None:
            whole = f"{len(self.rows)} of {self.promised}" if self.promised else "none"
            valid = "valid: all of them (the command that made it completes it)"
            raise ReferenceDataError(f"is cut: {whole} of its rows are whole; {valid}", path, self.cut)
        return self


def format_table(comment: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a tidy file."""
    first = f"# {comment}; {len(rows)} rows"
    lines = [first, ",".join([*columns, CHECK])]
    for row in rows:
        line = _format_line([format_value(row[name]) for name in columns])
        lines.append(f"{line},{_compute_check(first, line)}")
    return "\n".join(lines) + "\n"


def format_value(value: Any) -> str:
    """Return a value as written to the file: nine significant digits; "" where nothing was measured."""
    if value is None or value != value:
        return ""
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def read_table(path: str | Path, columns: Sequence[str], keys: Sequence[str]) -> Table:
    """Read a file written by `format_table` and verify every row.

    Args:
        path: The file.
        columns: Header, without the check.
        keys: Columns that identify a row.

    Raises:
        ReferenceDataError: The file is damaged other than by a cut of its end; names the file and the line.
        OSError: The file cannot be read.
    """
    try:
        content = read_text(path)
        records = split_csv_rows(content)
    except UnicodeDecodeError:
        raise ReferenceDataError("is not text", path) from None
    except CsvError as error:
        raise ReferenceDataError(str(error), path, error.line) from None
    ended = content.endswith("\n")
    first = FIRST_LINE.fullmatch(records[0][1]) if records else None
    if first is None:
        if len(records) < 2 and not ended:
            return Table("", [], 0, [], 1)
        raise ReferenceDataError("does not begin with a campaign's command and its number of rows", path, 1)
    comment, promised = first["comment"], int(first["rows"])
    if len(records) < 2 or (len(records) == 2 and not ended):
        return Table(comment, [], promised, [], 2)
    _check_header(split_csv_fields(records[1][1]), columns, path, records[1][0])

    rows: list[dict[str, str]] = []
    lines: list[int] = []
    seen: dict[tuple[str, ...], int] = {}
    for number, record in records[2:]:
        fields = split_csv_fields(record)
        line, _, check = record.rpartition(",")
        if len(fields) != len(columns) + 1 or check != _compute_check(records[0][1], line):
            if number == records[-1][0]:
                return Table(comment, rows, promised, lines, number)
            short = f"holds {len(fields)} values for {len(columns) + 1} columns"
            changed = f"is damaged, or of another campaign: {CHECK} = {quote(check)} is not that of its values"
            raise ReferenceDataError(changed if len(fields) == len(columns) + 1 else short, path, number)
        row = dict(zip(columns, fields, strict=False))
        key = tuple(row[name] for name in keys)
        if key in seen:
            raise ReferenceDataError(f"repeats line {seen[key]}", path, number)
        seen[key] = number
        rows.append(row)
        lines.append(number)
    if len(rows) > promised:
        raise ReferenceDataError(f"is one row too many; valid: {promised}", path, lines[promised])
    cut = records[-1][0] + 1 if len(rows) < promised else None
    return Table(comment, rows, promised, lines, cut)


def read_comment(path: str | Path) -> str | None:
    """Return the comment that a file begins with; None if there is none.

    Raises:
        OSError: The file cannot be read.
    """
    with open(path, encoding="utf-8", errors="replace") as file:
        first = FIRST_LINE.fullmatch(file.readline().rstrip("\n"))
    return first["comment"] if first else None


def _check_header(header: Sequence[str], columns: Sequence[str], path: str | Path, line: int) -> None:
    valid = [*columns, CHECK]
    if missing := [name for name in valid if name not in header]:
        raise ReferenceDataError(f"lacks the column {missing[0]}", path, line)
    if list(header) != valid:
        other = next((name for name in header if name not in valid), "another order")
        raise ReferenceDataError(f"holds other columns: {other}; valid: {','.join(valid)}", path, line)


def _format_line(fields: Sequence[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(fields)
    return out.getvalue()


def _compute_check(first: str, line: str) -> str:
    return f"{zlib.crc32((first + chr(10) + line).encode()):08x}"
