"""Text tables for the terminal and for Markdown, and CSV tables that can be read back."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

from netbuf_gym.errors import ConfigError, quote

NUMBER = re.compile(r"(p = )?[+-]?\d[\d.]*(e[+-]?\d+)?( %)?")
"""Cells that are right-aligned: numbers, percentages, probabilities."""
NUMBERS: dict[type, str] = {int: "a whole number", float: "a number"}
"""Names of the cell types of tables that are read."""


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with aligned columns, numbers to the right, and a rule below the header."""
    right = [all(_is_numeric(row[i]) for row in rows) for i in range(len(header))]
    widths = [max([len(header[i]), *(len(row[i]) for row in rows)]) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join([line(header), "  ".join("-" * w for w in widths), *map(line, rows)])


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, numbers to the right."""
    right = [all(_is_numeric(row[i]) for row in rows) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = "|" + "|".join(" ---: " if r else " --- " for r in right) + "|"
    return "\n".join([line(header), rule, *map(line, rows)])


def format_number(value: float | None, digits: int = 4) -> str:
    """Return a number with `digits` significant digits, as text.

    Plain from 1e-3 to below 1e6, else with an exponent where that is shorter; integers in full; "-" for None and NaN.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, int) or value == 0:
        return str(int(value))
    if 1e-3 <= abs(value) < 1e6:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        return f"{value:.{decimals}f}"
    return f"{value:.{digits}g}"


def format_percent(value: float | None) -> str:
    """Return a share as a signed percentage; "-" for None and NaN."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value * 100:+.2f} %"


def _is_numeric(cell: str) -> bool:
    return cell in ("", "-", "mean") or NUMBER.fullmatch(cell) is not None


def csv_table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], comment: str) -> str:
    """Return rows as CSV, with six significant digits, below a comment in the first line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([f"{row[name]:.6g}" if isinstance(row[name], float) else row[name] for name in columns])
    return f"# {comment}\n{out.getvalue()}"


def read_table(path: Path, comment: str, columns: Mapping[str, type | Collection[str]]) -> list[dict[str, Any]]:
    """Return the rows of a file that holds a `csv_table`; an empty list if there is no file.

    Args:
        columns: Cell type by column: `float`, `int`, or the valid words.

    Raises:
        ConfigError: The table has another comment or other columns, or a cell does not fit its column.
    """
    if not path.exists():
        return []
    where = f"output = {str(path)!r}"
    first, *lines = path.read_text(encoding="utf-8", errors="replace").splitlines() or [""]
    if first != f"# {comment}":
        raise ConfigError(f"{where} begins with {quote(first)}; valid: {f'# {comment}'!r}, or no such file")
    rows, names = [], list(columns)
    try:
        table = csv.reader(lines)
        for at, (found, name) in enumerate(zip_longest(next(table, []), names, fillvalue=""), 1):
            if found != name:
                raise ConfigError(f"{where}, line 2: column {at} = {quote(found)}; valid: the columns {', '.join(names)}")
        for cells in table:
            line = f"{where}, line {table.line_num + 1}"
            if len(cells) > len(names):
                raise ConfigError(f"{line}: has {len(cells)} cells; valid: {len(names)}, {', '.join(names)}")
            cells += [""] * (len(names) - len(cells))
            rows.append(
                {name: _parse_cell(cell, columns[name], f"{line}: {name}") for name, cell in zip(names, cells, strict=True)}
            )
    except csv.Error as error:
        raise ConfigError(f"{where} is no table ({error}); valid: {', '.join(names)}, or no such file") from None
    return rows


def _parse_cell(cell: str, values: type | Collection[str], where: str) -> Any:
    """Return a cell's value; raises ConfigError if it does not fit its column."""
    if isinstance(values, type):
        valid = NUMBERS[values]
        with suppress(ValueError):
            return values(cell)
    else:
        valid = f"one of {', '.join(values)}"
        if cell in values:
            return cell
    raise ConfigError(f"{where} = {quote(cell)}; valid: {valid}")
