"""What the benchmarks share: repeated runs, medians, the machine, a table and a JSON file."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

LOAD_AT_START = os.getloadavg()[0]
MARKERS = "<!-- {name}: written by `{command}` -->", "<!-- end of {name} -->"


@dataclass(frozen=True)
class Row:
    """One figure: the median of `runs`, each in `unit`; `target` is the least (or most) that it aims at."""

    name: str
    unit: str
    runs: list[float]
    target: float | None = None
    at_most: bool = False
    note: str = ""
    median: float = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "median", statistics.median(self.runs))

    @property
    def met(self) -> bool | None:
        """Whether the median reaches the target; None without one."""
        if self.target is None:
            return None
        return self.median <= self.target if self.at_most else self.median >= self.target


def repeat(runs: int, once: Callable[[], dict[str, float]]) -> dict[str, list[float]]:
    """Calls `once` `runs` times, after one call that warms caches and is thrown away: lists by key."""
    once()
    results = [once() for _ in range(runs)]
    return {key: [result[key] for result in results] for key in results[0]}


def machine() -> dict[str, str | int | float]:
    """Processor, cores, system, versions, and what the machine was busy with beforehand."""
    import gymnasium
    import numpy

    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        match = re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text())
        model = match[1].strip() if match else model
    return {
        "processor": model,
        "cores": os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "gymnasium": gymnasium.__version__,
        "load_at_start": round(LOAD_AT_START, 2),
    }


def parser(description: str, runs: int) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    made.add_argument("--runs", type=positive, default=runs, help="runs of each figure; the median is reported")
    made.add_argument("--json", type=Path, metavar="FILE", help="write machine and figures there too")
    made.add_argument("--update", type=Path, metavar="PAGE", help="put the table into this Markdown page")
    return made


def positive(text: str) -> int:
    """An integer of at least 1, for argparse."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not at least 1")
    return value


def report(name: str, command: str, rows: list[Row], options: argparse.Namespace, notes: list[str]) -> None:
    """Prints the table; writes it where `options` say so."""
    about = machine()
    text = "\n".join(
        [
            f"{about['processor']}, {about['cores']} cores, {about['system']}, Python {about['python']}, "
            f"numpy {about['numpy']}; load average {about['load_at_start']:.1f} at the start; "
            f"median of {options.runs} (lowest to highest).",
            "",
            table(rows),
            *(["", *notes] if notes else []),
        ]
    )
    print(text)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        figures = [asdict(row) for row in rows]
        data = {"benchmark": name, "command": command, "machine": about, "notes": notes, "rows": figures}
        options.json.write_text(json.dumps(data, indent=1) + "\n")
    if options.update:
        replace_section(options.update, name, command, text)


def table(rows: list[Row]) -> str:
    """A Markdown table of the rows."""
    lines = ["| | median | range | target | |", "|---|---:|---:|---:|---|"]
    for row in rows:
        target = "" if row.target is None else f"{'at most' if row.at_most else 'at least'} {row.target:,.10g}"
        verdict = {True: "", False: "**off target** ", None: ""}[row.met]
        spread = f"{number(min(row.runs))} to {number(max(row.runs))}"
        lines.append(f"| {row.name} ({row.unit}) | {number(row.median)} | {spread} | {target} | {verdict}{row.note} |")
    return "\n".join(lines)


def number(value: float) -> str:
    """Three significant digits; thousands separated; no exponent. "-" for NaN."""
    if value == 0 or math.isnan(value):
        return "-" if value else "0"
    digits = max(0, 2 - int(f"{abs(value):e}".split("e")[1]))
    return f"{round(value, digits) if digits else float(f'{value:.3g}'):,.{digits}f}"


def replace_section(page: Path, name: str, command: str, text: str) -> None:
    """Replaces what stands in `page` between the markers of `name`.

    Raises:
        SystemExit: The page has no such markers.
    """
    begin, end = (marker.format(name=name, command=command) for marker in MARKERS)
    pattern = re.compile(rf"<!-- {re.escape(name)}: .*?-->.*?{re.escape(end)}", re.DOTALL)
    old = page.read_text()
    new, count = pattern.subn(lambda _: f"{begin}\n\n{text}\n\n{end}", old)
    if count != 1:
        sys.exit(f"{page} has {count} sections between {begin!r} and {end!r}; there must be one")
    page.write_text(new)
