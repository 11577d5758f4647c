"""Tables of text: for the terminal, and for Markdown."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

NUMBER = re.compile(r"(p = )?[+-]?\d[\d.]*(e[+-]?\d+)?( %)?")
"""What is set to the right: a number, a percentage, a probability."""


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of equal width, numbers to the right, a rule below the header."""
    right = [all(_numeric(row[i]) for row in rows) for i in range(len(header))]
    widths = [max([len(header[i]), *(len(row[i]) for row in rows)]) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join([line(header), "  ".join("-" * w for w in widths), *map(line, rows)])


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, numbers to the right."""
    right = [all(_numeric(row[i]) for row in rows) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = "|" + "|".join(" ---: " if r else " --- " for r in right) + "|"
    return "\n".join([line(header), rule, *map(line, rows)])


def number(value: float | None, digits: int = 4) -> str:
    """A number to `digits` significant digits, without an exponent where that is short; "-" for none and NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, int) or value == 0:
        return str(int(value))
    if 1e-3 <= abs(value) < 1e6:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        return f"{value:.{decimals}f}"
    return f"{value:.{digits}g}"


def percent(value: float | None) -> str:
    """A share as a signed percentage; "-" for none and NaN."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value * 100:+.2f} %"


def _numeric(cell: str) -> bool:
    return cell in ("", "-", "mean") or NUMBER.fullmatch(cell) is not None


def csv_table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], comment: str) -> str:
    """Rows as CSV, six significant digits, with a comment in the first line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([f"{row[name]:.6g}" if isinstance(row[name], float) else row[name] for name in columns])
    return f"# {comment}\n{out.getvalue()}"
