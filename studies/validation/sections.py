"""Sections of validation's pages, and their verdicts, from the rows that are kept of ours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from netbuf_gym.utils.tables import number, percent
from netbuf_gym.validation import GroupVerdict, Report
from netbuf_gym.validation.cells import GOODPUT, QUEUE_DELAY
from netbuf_gym.validation.host_settings import SettingsReport
from netbuf_gym.validation.judging import WITHIN, CellVerdict
from netbuf_gym.validation.report import group_errors
from studies.common.experiment import Section
from studies.common.kept import Kept
from studies.common.verdicts import verdicts_table
from studies.validation.measured import LINUX, SOURCES, reference_report, report_of, settings_report

IN_SHORT = "in short"
KERNEL = "linux-dumbbell"
TITLES = {
    "ns3-dumbbell": "buffers, random loss, queue disciplines",
    "ns3-sharedbuffer": "shared buffer, finite flows",
    "ns3-lasthop": "links of varying rate",
    "mechanisms": "changes of delay, jitter, datagrams, reverse traffic",
    "marks": "explicit congestion notification",
}
"""Kinds of cells, and sections, in words."""
CONTROLS = {"bbr": "BBR", "cubic": "CUBIC", "reno": "Reno"}
HEADER = ("phenomenon", "reference", "ours", "verdict")
Row = tuple[str, str, str, str]


def verdicts(found: Mapping[str, Kept]) -> str:
    """The table that the page begins with, of the sections whose rows are there."""
    rows: list[Row] = []
    for section, kept in found.items():
        report = report_of(kept)
        if isinstance(report, SettingsReport):
            rows += _settings_rows(report)
        elif section == "reference":
            rows += _reference_rows(report)
        else:
            rows.append((TITLES[section], "ns-3", report.summary.partition(";")[0], _verdict(report.within)))
    return verdicts_table(rows, HEADER)


def in_short(kept: Kept) -> str:
    """By kind of cell how many are out of tolerance, and how far groups are off."""
    return reference_report(kept).in_short()


def _markdown(kept: Kept) -> str:
    return reference_report(kept).markdown()


def _settings(kept: Kept) -> str:
    return settings_report(kept).markdown()


def _reference_rows(report: Report) -> Iterator[Row]:
    groups: dict[str, list[GroupVerdict]] = defaultdict(list)
    cells: dict[str, list[CellVerdict]] = defaultdict(list)
    for group in report.groups:
        groups[group.kind].append(group)
    for one in report.cells:
        if one.how:
            cells[one.cell.setting.kind].append(one)
    for group in groups.pop(KERNEL, []):
        yield _kernel_row(group)
    for kind, own in groups.items():
        yield _ns3_row(TITLES[kind], own, cells[kind])


def _kernel_row(group: GroupVerdict) -> Row:
    of = {one.quantity: one for one in group.comparisons}
    goodput, delay = of[GOODPUT], of[QUEUE_DELAY]
    reference = f"Linux: {number(goodput.reference)} Mbit/s, {number(delay.reference)} ms"
    ours = f"{number(goodput.ours)} Mbit/s ({percent(goodput.relative_error)}), "
    ours += f"{number(delay.ours)} ms ({percent(delay.relative_error)})"
    return f"{CONTROLS[group.cc]}, {group.path}", reference, ours, group.verdict


def _ns3_row(title: str, groups: list[GroupVerdict], cells: list[CellVerdict]) -> Row:
    errors = ", ".join(
        f"{name} {said}"
        for name, quantity in (("goodput", GOODPUT), ("delay", QUEUE_DELAY))
        if (said := group_errors(groups, quantity))
    )
    within = all(one.verdict == WITHIN for one in (*groups, *cells))
    return f"{title}: errors, middle and largest group", f"ns-3, {len(cells)} cells", errors, _verdict(within)


def _settings_rows(report: SettingsReport) -> Iterator[Row]:
    for cc in dict.fromkeys(one.cell.cc for one in report.cells):
        own = [one for one in report.cells if one.cell.cc == cc]
        worst = max(own, key=lambda one: abs(one.error))
        where = f"{worst.cell.id.split('/')[2]}, {worst.cell.latency_ms:g} ms"
        phenomenon = f"hosts' buffers, {CONTROLS[cc]}: largest error of throughput"
        within = _verdict(all(one.within for one in own))
        yield phenomenon, f"Linux, {len(own)} settings", f"{percent(worst.error)} ({where})", within


def _verdict(within: bool) -> str:
    return "within" if within else "out of tolerance"


SECTIONS: dict[str, Section] = {**dict.fromkeys(SOURCES, _markdown), LINUX: _settings}
