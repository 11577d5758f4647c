"""Report of a validation, as text, JSON and Markdown."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from netbuf_gym.errors import ConfigError
from netbuf_gym.utils.arguments import check_integer
from netbuf_gym.utils.progress import ProgressBar
from netbuf_gym.utils.tables import format_number, format_percent, markdown_table, text_table
from netbuf_gym.validation import marks, mechanisms, shared_buffer
from netbuf_gym.validation.cells import DROPS, FAMILIES, GOODPUT, QUEUE_DELAY, TITLES, Cell, Reference, Skipped, match_pattern
from netbuf_gym.validation.judging import (
    NOT_JUDGED,
    OUT,
    WITHIN,
    CellVerdict,
    Comparison,
    GroupVerdict,
    judge_cell,
    judge_groups,
)
from netbuf_gym.validation.reference import read_folder
from netbuf_gym.validation.runner import run_cells
from netbuf_gym.version import __version__

SCHEMA = "netbuf-gym/validation/1"
TITLES = TITLES | shared_buffer.TITLES | mechanisms.TITLES | marks.TITLES
COMPARED = (*("reference", "ours", "error", "relative_error", "allowed", "standard_error", "distance", "p", "verdict"),)
"""Fields of a comparison in the report."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """Verdicts on all cells and groups of a folder.

    Attributes:
        folder, seeds: Folder of the reference, and number of our seeds where chance decides.
        cells, groups: Verdicts in the order of the files.
        skipped: Files without cells.
    """

    folder: Path
    seeds: int
    cells: tuple[CellVerdict, ...]
    groups: tuple[GroupVerdict, ...]
    skipped: tuple[Skipped, ...]

    @property
    def within(self) -> bool:
        """True if nothing that was judged is out of tolerance."""
        return not any(v.verdict == OUT for v in self.cells) and not any(group.verdict == OUT for group in self.groups)

    def count(self, verdict: str) -> int:
        """Return the number of cells with a verdict."""
        return sum(v.verdict == verdict for v in self.cells)

    @property
    def summary(self) -> str:
        """Summary in one line."""
        judged = self.count(WITHIN) + self.count(OUT)
        bad_groups = sum(g.verdict == OUT for g in self.groups)
        return (
            f"{judged} cells judged, {self.count(OUT)} out of tolerance; {len(self.groups)} groups, {bad_groups} out;"
            f" {self.count(NOT_JUDGED)} cells not judged; {len(self.skipped)} files skipped:"
            f" {'within tolerance' if self.within else 'OUT OF TOLERANCE'}"
        )

    def to_dict(self) -> dict:
        """Return a JSON-able form (but for NaN)."""
        return {
            "schema": SCHEMA,
            "version": __version__,
            "folder": str(self.folder),
            "seeds": self.seeds,
            "verdict": WITHIN if self.within else OUT,
            "counts": {verdict: self.count(verdict) for verdict in (WITHIN, OUT, NOT_JUDGED)},
            "cells": [self._cell(v) for v in self.cells],
            "groups": [self._group(g) for g in self.groups],
            "skipped": [{"file": self._name(s.file), "reason": s.reason} for s in self.skipped],
        }

    def text(self) -> str:
        """Return the report for the terminal: a table for each congestion control on each path, then the cells not judged."""
        parts = []
        for title, header, rows in self._tables():
            parts.append(f"{title}\n{text_table(header, rows)}\n")
        for reason, cells in self._not_judged().items():
            parts.append("\n".join([f"Not judged: {reason}", *(f"  {cell.setting.id}" for cell in cells), ""]))
        if self.skipped:
            lines = [f"  {self._name(s.file)}: {s.reason}" for s in self.skipped]
            parts.append("\n".join(["Files skipped", *lines, ""]))
        parts.append(self.summary)
        return "\n".join(parts)

    def markdown(self) -> str:
        """Return the tables as Markdown."""
        parts = [f"{self.seeds} seeds where chance decides: {self.summary}.", ""]
        shared = [group for group in self.groups if FAMILIES[group.kind].compact]
        others = [group for group in self.groups if not FAMILIES[group.kind].compact]
        parts += ["## Groups", "", _groups_table(others), ""] if others else []
        parts += ["## Groups of the shared buffer", "", _shared_groups_table(shared), ""] if shared else []
        parts += ["## Cells", ""]
        for title, header, rows in self._tables():
            parts += [f"### {title}", "", markdown_table(header, rows), ""]
        listed = [[cell.setting.id, reason] for reason, cells in self._not_judged().items() for cell in cells]
        if listed:
            parts += ["## Not judged", "", markdown_table(["cell", "reason"], listed), ""]
        if self.skipped:
            rows = [[self._name(s.file), s.reason] for s in self.skipped]
            parts += ["## Files skipped", "", markdown_table(["file", "reason"], rows), ""]
        return "\n".join(parts)

    def short_table(self) -> str:
        """Return a Markdown table: how many cells of each kind are out, and how far groups are off."""
        header = ["cells", "judged", "out of tolerance", "groups", "error of goodput", "error of queueing delay"]
        rows = []
        judged: dict[str, list[str]] = {}
        for v in self.cells:
            if v.verdict != NOT_JUDGED:
                judged.setdefault(v.cell.setting.kind, []).append(v.verdict)
        by_kind: dict[str, list[GroupVerdict]] = {}
        for group in self.groups:
            by_kind.setdefault(group.kind, []).append(group)
        for kind, groups in by_kind.items():
            verdicts = judged.get(kind, [])
            counts = (len(verdicts), verdicts.count(OUT), len(groups))
            rows.append(
                [kind, *map(str, counts), *(format_group_errors(groups, quantity) for quantity in (GOODPUT, QUEUE_DELAY))]
            )
        return f"{self.summary}.\n\n{markdown_table(header, rows)}\n"

    def _tables(self) -> Iterator[tuple[str, list[str], list[list[str]]]]:
        """Yield title, header and rows for each congestion control on each path."""
        sections: dict[tuple, list[CellVerdict]] = {}
        for v in self.cells:
            if v.verdict != NOT_JUDGED:
                sections.setdefault(v.cell.setting.group, []).append(v)
        groups = {group.cells[0].setting.group: group for group in self.groups}
        for key, members in sections.items():
            setting = members[0].cell.setting
            title = f"{' '.join(filter(None, (setting.kind, setting.label)))}: {setting.cc}, {setting.path}"
            family = setting.family
            header = list(family.columns)
            for quantity in family.list_tolerances(setting):
                header += [TITLES[quantity]] if family.compact else [TITLES[quantity], "ref", "error"]
            rows = [_format_cell_row(v) for v in members]
            if key in groups:
                first = ["mean", *[""] * (len(family.columns) - 1)]
                rows.append(_format_row(first, groups[key].comparisons, groups[key].verdict, family.compact))
            yield title, [*header, "verdict"], rows

    def _not_judged(self) -> dict[str, list[Cell]]:
        """Return the cells that are not judged, by reason."""
        reasons: dict[str, list[Cell]] = {}
        for v in self.cells:
            if v.verdict == NOT_JUDGED:
                reasons.setdefault(v.cell.not_judged, []).append(v.cell)
        return reasons

    def _cell(self, v: CellVerdict) -> dict:
        cell, setting = v.cell, v.cell.setting
        return {
            "id": setting.id,
            "kind": setting.kind,
            "file": self._name(cell.file),
            "line": cell.line,
            "setting": {
                "label": setting.label,
                "cc": setting.cc,
                "rate_mbps": setting.rate_mbps,
                "buffer_packets": setting.buffer_packets,
                **setting.family.report_fields(setting),
            },
            "judged": v.how or None,
            "verdict": v.verdict,
            "reason": cell.not_judged or None,
            "reference_seeds": cell.seeds,
            "our_seeds": cell.our_seeds,
            "quantities": {
                c.quantity: {
                    **_collect_comparison(c),
                    "reference_values": cell.reference[c.quantity],
                    "our_values": cell.ours[c.quantity],
                }
                for c in v.comparisons
            },
        }

    def _group(self, group: GroupVerdict) -> dict:
        return {
            "id": group.id,
            "kind": group.kind,
            "label": group.label,
            "cc": group.cc,
            "path": group.path,
            "cells": [cell.setting.id for cell in group.cells],
            "verdict": group.verdict,
            "quantities": {c.quantity: _collect_comparison(c) for c in group.comparisons},
        }

    def _name(self, file: Path) -> str:
        return file.relative_to(self.folder).as_posix() if file.is_relative_to(self.folder) else str(file)


def validate(
    folder: str | os.PathLike[str],
    *,
    seeds: int = 30,
    jobs: int | None = None,
    only: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Rerun the cells of the reference measurements in a folder and judge how far our results are from them.

    Args:
        folder: Folder of CSV files, read recursively.
        seeds: Runs where chance decides, 2 to 100000.
        jobs: Threads, 1 to 1024; None: one for each processor core. The report does not depend on it.
        only: Pattern: judge only the cells whose id matches it (with *, ? or [...]) or contains it; groups then
            consist of those cells.
        progress: Callback with the number of runs done and their total; None: a bar when standard error is a terminal.

    Raises:
        ReferenceDataError: No such folder, or a malformed file; names the file and the line.
        ConfigError: An argument out of range, or a pattern that no cell matches.
        SimulatorFault: The simulator found its own state inconsistent.
    """
    seeds = check_integer("seeds", seeds, 2, 100_000)
    jobs = None if jobs is None else check_integer("jobs", jobs, 1, 1024)
    reference = read_folder(Path(folder))
    cells = [cell for cell in reference.cells if only is None or match_pattern(cell.setting.id, only)]
    if not cells:
        example = reference.cells[0].setting.id
        raise ConfigError(f"only = {only!r} matches none of the {len(reference.cells)} cells; there is, e.g., {example}")
    with ProgressBar("validate") as bar:
        run_cells(cells, seeds, jobs, progress or bar)
    return judge_cells(reference, cells, seeds)


def judge_cells(reference: Reference, cells: Sequence[Cell], seeds: int) -> Report:
    """Return the report on cells of a reference whose values have been measured."""
    return Report(
        folder=reference.folder,
        seeds=seeds,
        cells=tuple(judge_cell(cell) for cell in cells),
        groups=tuple(judge_groups(cells)),
        skipped=reference.skipped,
    )


def _format_cell_row(v: CellVerdict) -> list[str]:
    s = v.cell.setting
    return _format_row(s.family.format_row(s, len(v.cell.our_seeds)), v.comparisons, v.verdict, s.family.compact)


def _format_row(first: Sequence[str], comparisons: Sequence[Comparison], verdict: str, compact: bool) -> list[str]:
    cells = list(first)
    for c in comparisons:
        if compact:
            cells.append(f"{_format_value(c.quantity, c.ours)} ({_format_error(c)})")
            continue
        cells += [_format_value(c.quantity, c.ours), _format_value(c.quantity, c.reference), _format_error(c)]
    out = [TITLES[c.quantity] for c in comparisons if c.verdict == OUT]
    return [*cells, f"OUT: {', '.join(out)}" if out else verdict]


def _format_value(quantity: str, value: float) -> str:
    whole = quantity in (DROPS, shared_buffer.COMPLETED) and value == round(value)
    return f"{value:.0f}" if whole else format_number(value)


def _format_error(c: Comparison) -> str:
    if c.p == c.p:
        return f"p = {c.p:.3g}"
    return format_percent(c.relative_error) if c.reference else f"{c.error:+.3g}"


def format_group_errors(groups: Sequence[GroupVerdict], quantity: str) -> str:
    """Return the median and the largest relative error of groups in a quantity, where it is compared by its mean."""
    found = [c for group in groups for c in group.comparisons if c.quantity == quantity and c.reference and math.isnan(c.p)]
    errors = sorted(abs(c.relative_error) for c in found)
    return (
        f"{format_number(100 * statistics.median(errors), 2)} %, at most {format_number(100 * errors[-1], 2)} %"
        if errors
        else ""
    )


def _groups_table(groups: Sequence[GroupVerdict]) -> str:
    header = ["kind", "label", "scheme", "path", "cells", "goodput", "ref", "error", "delay", "ref", "error"]
    header += ["drops or loss rate", "ref", "error", "verdict"]
    rows = []
    for group in groups:
        first = [group.kind, group.label, group.cc, group.path, str(len(group.cells))]
        rows.append(_format_row(first, group.comparisons, group.verdict, compact=False))
    return markdown_table(header, rows)


def _shared_groups_table(groups: Sequence[GroupVerdict]) -> str:
    firsts = [group.cells[0].setting for group in groups]
    quantities = max((tuple(one.family.list_tolerances(one)) for one in firsts), key=len)
    rows = []
    for group in groups:
        errors = {c.quantity: _format_error(c) for c in group.comparisons}
        out = [TITLES[c.quantity] for c in group.comparisons if c.verdict == OUT]
        first = [group.label, group.cc, group.path, str(len(group.cells))]
        verdict = f"OUT: {', '.join(out)}" if out else group.verdict
        rows.append([*first, *(errors.get(quantity, "") for quantity in quantities), verdict])
    header = ["flows/scheme", "congestion control", "path", "cells", *(TITLES[quantity] for quantity in quantities), "verdict"]
    return markdown_table(header, rows)


def _collect_comparison(c: Comparison) -> dict:
    return {name: getattr(c, name) for name in COMPARED}
