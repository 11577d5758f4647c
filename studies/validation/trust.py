"""Table of phenomena on the page about trust: how closely laws, ns-3 and the kernel agree, what checks it, and known limits.

A phenomenon names the laws and the reference's cells that are of it; figures come from kept rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from netbuf_gym.utils.tables import format_percent, markdown_table
from netbuf_gym.validation import Report
from netbuf_gym.validation.cells import GOODPUT, QUEUE_DELAY
from netbuf_gym.validation.host_settings import SettingsReport
from netbuf_gym.validation.judging import Comparison
from studies.common import kept
from studies.validation.laws import LawReport, LawVerdict, build_law_report
from studies.validation.laws_catalogue import BY_NAME
from studies.validation.measured import LINUX, SOURCES, STUDY, build_reference_report, build_settings_report

SECTION = "trust"
HEADER = (
    "phenomenon",
    "law: median (largest)",
    "ns-3: goodput, delay at most",
    "kernel: goodput, delay at most",
    "checked by",
    "limits",
)


@dataclass(frozen=True, kw_only=True)
class Phenomenon:
    """A row of the table.

    Attributes:
        name: What agrees.
        laws: Names of the laws about it.
        ns3, kernel: Patterns of the ids of groups, or of cells judged one by one, that show it.
        settings: Whether the kernel's hosts' settings show it.
        measured: What else was measured on the kernel, without a figure.
        checks: Tests besides the commands that follow from the other fields, as paths below `tests/`.
        limits: Where not to believe it.
    """

    name: str
    laws: tuple[str, ...] = ()
    ns3: tuple[str, ...] = ()
    kernel: tuple[str, ...] = ()
    settings: bool = False
    measured: str = ""
    checks: tuple[str, ...] = ()
    limits: str = ""


PHENOMENA = (
    Phenomenon(
        name="transmission, propagation, first in first out",
        laws=("least-rtt", "lindley", "little", "md1", "mm1"),
        ns3=("ns3-mechanisms/udp_constant/*",),
        checks=("simulation/test_by_hand.py",),
        limits="whole nanoseconds; Little's law counts waits of packets that leave, not of those that a discipline drops later",
    ),
    Phenomenon(
        name="slow start, windows, silence",
        laws=("slow-start", "completion", "window-limit", "idle-restart"),
        checks=("simulation/test_idle_restart.py",),
        limits="exact with an ACK a segment; delayed ACKs of the last odd segment cost up to 40 ms, as on the kernel",
    ),
    Phenomenon(
        name="Reno",
        laws=("mathis", "pftk", "reno-sawtooth", "small-buffers", "reno-rtts"),
        ns3=("ns3-dumbbell/*/NewReno/*", "ns3-dumbbell/*/LinuxReno/*"),
        kernel=("linux-dumbbell/reno/*",),
        limits="two flows in a drop-tail queue share by its phase: use `start_jitter_ms`",
    ),
    Phenomenon(
        name="CUBIC",
        laws=("cubic-response", "cubic-friendly", "cubic-sawtooth", "cubic-rtts"),
        ns3=("ns3-dumbbell/*/Cubic/*",),
        kernel=("linux-dumbbell/cubic/*",),
        limits="the response function is of evenly spaced losses; random ones leave larger windows",
    ),
    Phenomenon(
        name="BBR",
        laws=("bbr-share", "bbr-queue"),
        kernel=("linux-dumbbell/bbr/*",),
        checks=("simulation/test_slow_worlds.py",),
        limits="the law of its share takes the queue for full all the time, and says more than we and a kernel find; "
        "several BBR flows are chaotic, on the kernel too; after outages it is silent as long as there",
    ),
    Phenomenon(
        name="senders by delay",
        laws=("vegas-queue", "copa-queue", "ledbat-delay"),
        limits="not measured on the kernel; above some 50 Mbit/s groups of segments wait in the queue besides; "
        "`ns3` runs ns-3's own Vegas, but not its LEDBAT",
    ),
    Phenomenon(
        name="sharing among equals",
        laws=("late-flow", "fairness"),
        limits="over minutes; over seconds flows are apart",
    ),
    Phenomenon(
        name="random and bursty loss",
        laws=("gilbert-loss", "gilbert-bursts"),
        ns3=("ns3-dumbbell/A1_*",),
        limits="losses are drawn by packet, not by time; jitter and interference of radio links are models of their own",
    ),
    Phenomenon(
        name="loss recovery and timers",
        laws=("rto-backoff", "tail-probe"),
        measured="waits of dead links",
        checks=("simulation/test_time_outs.py",),
        limits="`linux`: times lie on the slots of the kernel's timer wheel, so that they are late by some per cent, as there",
    ),
    Phenomenon(
        name="lost SYNs, SYN-ACKs, FINs; retries; giving up",
        measured="times of every packet and of the end",
        checks=("simulation/test_time_outs.py", "data/linux_timeouts.csv"),
        limits="`linux`: held against one kernel (6.18); a FIN that comes more than 60 s after the other end's was "
        "acknowledged is answered by an ACK, by a kernel that has given it up (`tcp_fin_timeout`) by a reset; `ns3`: doubling "
        "waits, after ns-3's source",
    ),
    Phenomenon(
        name="queue disciplines",
        laws=("red", "codel", "pie"),
        ns3=("ns3-dumbbell/A4_aqm/*",),
        checks=("validation/test_ns3_disciplines.py",),
        limits="CoDel's spacing errs until the fifth drop, by Linux' and ns-3's arithmetic; not measured on the kernel",
    ),
    Phenomenon(
        name="ECN, DCTCP",
        laws=("dctcp-marks", "dctcp-queue", "dctcp-threshold"),
        ns3=("ns3-marks/*",),
        checks=("validation/test_ns3_marks.py",),
        limits="a group of segments is marked in part, where the law's fluid is marked whole; on paths of a few milliseconds "
        "it is longer than the threshold and the link runs idle, unless the sender has an access link (`access_mbps`)",
    ),
    Phenomenon(
        name="DualPI2 and Prague",
        laws=("coupling", "balance"),
        limits="below 12 Mbit/s a packet lasts longer than the step of 1 ms, and Prague is left with a small part of the link "
        "beside CUBIC, in Linux too: `DualPI2(min_qlen_step=...)`; with few flows p' swings, and the law of means is off",
    ),
    Phenomenon(
        name="policers",
        laws=("policer",),
        limits="a packet longer than the burst never passes",
    ),
    Phenomenon(
        name="shared buffers, finite flows",
        ns3=("ns3-sharedbuffer/*",),
        checks=("validation/test_shared_buffer_cells.py",),
        limits="against ns-3 with our switch in it, not against hardware",
    ),
    Phenomenon(
        name="links of varying rate",
        ns3=("ns3-lasthop/*",),
        checks=("simulation/test_capacity.py",),
        limits="an opportunity of a Mahimahi trace carries 1504 bytes, a packet of 1500 and the 4 of its TUN header: a packet "
        "carries less than the trace's rate, and one that comes at an opportunity's instant waits for the next; in `ns3` a "
        "packet keeps the rate at which it began",
    ),
    Phenomenon(
        name="changing delay, jitter, reverse traffic",
        ns3=("ns3-mechanisms/jitter_*", "ns3-mechanisms/reverse*"),
        checks=("validation/test_ns3_mechanisms.py",),
        limits="jitter of one packet is independent of the next unless `correlation` says so",
    ),
    Phenomenon(
        name="hosts' buffers",
        settings=True,
        checks=("simulation/test_kernel_settings.py",),
        limits="autotuning differs between kernels: held against 6.18",
    ),
    Phenomenon(
        name="thin ways back, bunches of packets",
        measured="goodput, drops of data and of ACKs",
        checks=("scenarios/test_ways_back.py",),
        limits="ACKs and windows one by one, until where in a millisecond of the time stamps' clock a packet falls decides: "
        "goodput within 2 % of a run of the kernel that fell alike; other runs differ as they do among themselves; "
        "`start_jitter_ms=1` draws it",
    ),
    Phenomenon(
        name="chains of hops, ns-3's BBR and Vegas",
        checks=("validation/test_ns3_chains.py",),
        limits="`ns3`: goodput and drops to the digit, BBR's goodput within 1 %: the phase of its gains is of another "
        "stream of random numbers",
    ),
    Phenomenon(
        name="applications that pause, ECN on the kernel",
        measured="goodput, marks, round trips",
        checks=("plants/linux/test_live_on_off.py", "plants/linux/test_live_ecn.py"),
        limits="in its first half second a kernel's connection writes smaller packets; DCTCP is held where a kernel has it",
    ),
    Phenomenon(
        name="cross traffic: random datagrams, self-similar sources, web pages",
        checks=("simulation/test_queueing_theory.py", "scenarios/test_captures.py"),
        limits="waits by Pollaczek and Khinchine; models of the web are as old as their papers",
    ),
    Phenomenon(
        name="fq, FQ-PIE, CAKE, HyStart++",
        checks=("simulation/test_fair_queues.py",),
        limits="by the sources' and RFCs' rules, not measured on the kernel; CAKE without ingress mode and autorate",
    ),
    Phenomenon(
        name="Wi-Fi",
        checks=("simulation/test_media.py",),
        limits="datagrams within 2 to 5 % of ns-3, TCP within 6 %, contention within 6 % of Bianchi's model; no rate "
        "control, no RTS/CTS, no capture",
    ),
    Phenomenon(
        name="cells: proportional fairness, HARQ, grants",
        checks=("simulation/test_media.py",),
        limits="by arithmetic and by the theory of fading, not against a network; one user in a TTI",
    ),
)


def format_trust_table(laws: kept.KeptRows) -> str:
    """Return the table as Markdown from the rows of laws, and from those of references beside them."""
    law_report = build_law_report(BY_NAME.values(), laws)
    reports = [build_reference_report(rows) for name in SOURCES if (rows := kept.read_rows(laws.root, STUDY, name))]
    linux = kept.read_rows(laws.root, STUDY, LINUX)
    settings = build_settings_report(linux) if linux else None
    return markdown_table(HEADER, [_make_row(one, law_report, reports, settings) for one in PHENOMENA])


def _make_row(one: Phenomenon, laws: LawReport, reports: Sequence[Report], settings: SettingsReport | None) -> list[str]:
    by_name = {verdict.law.name: verdict for verdict in laws.laws}
    law = "; ".join(_format_law(by_name[name]) for name in one.laws)
    kernel = _format_cells(one.kernel, reports)
    if one.settings and settings:
        kernel = f"throughput {_format_share(max(abs(cell.error) for cell in settings.cells))}"
    kernel = "; ".join(filter(None, (kernel, one.measured)))
    checks = ["`laws`"] if one.laws else []
    checks += ["`validate`"] if one.ns3 or one.kernel or one.settings else []
    checks += [f"`{name}`" for name in one.checks]
    return [one.name, law, _format_cells(one.ns3, reports), kernel, ", ".join(checks), one.limits]


def _format_law(verdict: LawVerdict) -> str:
    failed = "" if verdict.within else f", {verdict.verdict}"
    return f"{verdict.law.name} {_format_share(verdict.middle)} ({_format_share(abs(verdict.worst[1].deviation))}{failed})"


def _format_cells(patterns: Sequence[str], reports: Sequence[Report]) -> str:
    found = [comparison for report in reports for comparison in _find_comparisons(patterns, report)]
    said = []
    for quantity in (GOODPUT, QUEUE_DELAY):
        errors = [abs(c.relative_error) for c in found if c.quantity == quantity and c.reference and math.isnan(c.p)]
        if errors:
            said.append(f"{_format_share(max(errors))}")
    return ", ".join(said)


def _find_comparisons(patterns: Sequence[str], report: Report) -> Iterator[Comparison]:
    """Yield the comparisons of groups that match, and of matching cells that are in no group."""
    grouped = {id(cell) for group in report.groups for cell in group.cells}
    units = [(group.id, group.comparisons) for group in report.groups]
    units += [(one.cell.setting.id, one.comparisons) for one in report.cells if id(one.cell) not in grouped]
    for name, comparisons in units:
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            yield from comparisons


def _format_share(share: float) -> str:
    return "0" if share < 1e-5 else format_percent(share).lstrip("+")
