"""Sections of validation's pages, and their verdicts, from kept rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from netbuf_gym.utils.tables import format_number, format_percent
from netbuf_gym.validation import GroupVerdict, Report
from netbuf_gym.validation.cells import GOODPUT, QUEUE_DELAY
from netbuf_gym.validation.host_settings import SettingsReport
from netbuf_gym.validation.judging import WITHIN, CellVerdict
from netbuf_gym.validation.report import format_group_errors
from studies.common.experiment import Section
from studies.common.kept import KeptRows
from studies.common.verdicts import format_verdicts_table
from studies.validation.laws import LawReport, build_law_report
from studies.validation.laws_catalogue import BY_NAME
from studies.validation.measured import LAWS, LINUX, SOURCES, build_reference_report, build_report, build_settings_report

IN_SHORT = "in short"
KERNEL = "linux-dumbbell"
TITLES = {
    "ns3-dumbbell": "buffers, random loss, queue disciplines",
    "ns3-sharedbuffer": "shared buffer, finite flows",
    "ns3-lasthop": "links of varying rate",
    "mechanisms": "changes of delay, jitter, datagrams, reverse traffic",
    "marks": "explicit congestion notification",
}
"""Titles of kinds of cells, and of sections."""
CONTROLS = {"bbr": "BBR", "cubic": "CUBIC", "reno": "Reno"}
HEADER = ("phenomenon", "reference", "ours", "verdict")
Row = tuple[str, str, str, str]


def verdicts(found: Mapping[str, KeptRows]) -> str:
    """Return the table at the top of the page, from the sections whose rows exist."""
    rows: list[Row] = []
    for section, kept in found.items():
        report = build_report(kept)
        if isinstance(report, SettingsReport):
            rows += _make_settings_rows(report)
        elif isinstance(report, LawReport):
            rows.append(("laws of networking", "by formula", report.summary, _name_verdict(report.within)))
        elif section == "reference":
            rows += _make_reference_rows(report)
        else:
            rows.append((TITLES[section], "ns-3", report.summary.partition(";")[0], _name_verdict(report.within)))
    return format_verdicts_table(rows, HEADER)


def format_short_table(kept: KeptRows) -> str:
    """Return a table of the cells out of tolerance by kind, and of the groups' errors."""
    return build_reference_report(kept).short_table()


def _format_report(kept: KeptRows) -> str:
    return build_reference_report(kept).markdown()


def _format_settings_report(kept: KeptRows) -> str:
    return build_settings_report(kept).markdown()


def _format_law_report(kept: KeptRows) -> str:
    return build_law_report(BY_NAME.values(), kept).markdown()


def _make_reference_rows(report: Report) -> Iterator[Row]:
    groups: dict[str, list[GroupVerdict]] = defaultdict(list)
    cells: dict[str, list[CellVerdict]] = defaultdict(list)
    for group in report.groups:
        groups[group.kind].append(group)
    for one in report.cells:
        if one.how:
            cells[one.cell.setting.kind].append(one)
    for group in groups.pop(KERNEL, []):
        yield _make_kernel_row(group)
    for kind, own in groups.items():
        yield _make_ns3_row(TITLES[kind], own, cells[kind])


def _make_kernel_row(group: GroupVerdict) -> Row:
    of = {one.quantity: one for one in group.comparisons}
    goodput, delay = of[GOODPUT], of[QUEUE_DELAY]
    reference = f"Linux: {format_number(goodput.reference)} Mbit/s, {format_number(delay.reference)} ms"
    ours = f"{format_number(goodput.ours)} Mbit/s ({format_percent(goodput.relative_error)}), "
    ours += f"{format_number(delay.ours)} ms ({format_percent(delay.relative_error)})"
    return f"{CONTROLS[group.cc]}, {group.path}", reference, ours, group.verdict


def _make_ns3_row(title: str, groups: list[GroupVerdict], cells: list[CellVerdict]) -> Row:
    errors = ", ".join(
        f"{name} {said}"
        for name, quantity in (("goodput", GOODPUT), ("delay", QUEUE_DELAY))
        if (said := format_group_errors(groups, quantity))
    )
    within = {*(one.verdict for one in groups), *(one.verdict for one in cells)} <= {WITHIN}
    return f"{title}: errors, middle and largest group", f"ns-3, {len(cells)} cells", errors, _name_verdict(within)


def _make_settings_rows(report: SettingsReport) -> Iterator[Row]:
    for cc in dict.fromkeys(one.cell.cc for one in report.cells):
        own = [one for one in report.cells if one.cell.cc == cc]
        worst = max(own, key=lambda one: abs(one.error))
        where = f"{worst.cell.id.split('/')[2]}, {worst.cell.latency_ms:g} ms"
        phenomenon = f"hosts' buffers, {CONTROLS[cc]}: largest error of throughput"
        within = _name_verdict(all(one.within for one in own))
        yield phenomenon, f"Linux, {len(own)} settings", f"{format_percent(worst.error)} ({where})", within


def _name_verdict(within: bool) -> str:
    return "within" if within else "out of tolerance"


SECTIONS: dict[str, Section] = {
    **dict.fromkeys(SOURCES, _format_report),
    LINUX: _format_settings_report,
    LAWS: _format_law_report,
}
