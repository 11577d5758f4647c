"""Considerations of RFC 9743 for a new congestion control: a row for every MUST and SHOULD, CUBIC's value beside it.

The RFC (draft-ietf-ccwg-rfc5033bis, edbe64b) names settings and no thresholds: worlds, measures and flags are ours. Every flag
is raised against CUBIC in the same worlds, some only beyond an absolute amount as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from netbuf_gym.evaluation.suites.field import rfc9743_worlds as worlds
from netbuf_gym.evaluation.suites.field.ranking import FieldReport
from netbuf_gym.evaluation.suites.field.rfc9743_criteria import CRITERIA, MUST, REFERENCE, SHALLOW, SHOULD, Criterion
from netbuf_gym.evaluation.suites.field.suite import TASK, FieldSuite, OmittedWorlds, Report, Results, Sign, Table, make_measure
from netbuf_gym.evaluation.suites.field.worlds import make_loader
from netbuf_gym.evaluation.suites.suite import Metric

DRAFT = "ietf-wg-ccwg/rfc5033bis, draft-ietf-ccwg-rfc5033bis.md (edbe64b), the draft of RFC 9743; worlds and thresholds ours"


@dataclass(frozen=True)
class CriterionResult:
    """Criterion of a controller: its value, CUBIC's, and whether it is flagged (None: no flag, or a value is unknown)."""

    criterion: Criterion
    value: float
    cubic: float
    flagged: bool | None = field(init=False)

    def __post_init__(self) -> None:
        known = self.criterion.flag is not None and math.isfinite(self.value) and math.isfinite(self.cubic)
        flagged = self.criterion.flag(self.value, self.cubic) if known and self.criterion.flag else None
        object.__setattr__(self, "flagged", flagged)


def evaluate_criteria(results: Results, name: str) -> list[CriterionResult]:
    """Return every criterion of one controller."""
    return [CriterionResult(one, one.value(results, name), one.value(results, REFERENCE)) for one in CRITERIA]


def _tabulate_criteria(results: Results, name: str) -> Table:
    rows = []
    for one in evaluate_criteria(results, name):
        words = {True: "FLAG", False: "", None: ""}[one.flagged]
        shown = [f"{v:.{one.criterion.digits}f}" if math.isfinite(v) else "-" for v in (one.value, one.cubic)]
        flag = "" if one.criterion.flag is None else str(one.criterion.flag)
        rows.append([one.criterion.level, one.criterion.sections, one.criterion.says, *shown, flag, words])
    return Table(f"{name}, criterion by criterion", ["level", "RFC", "measure", name, REFERENCE, "flagged if", ""], rows)


def judge(results: Results) -> Report:
    """Rank controllers by the number of flagged MUST rows, then of SHOULD rows, with a table for each controller."""
    flags: Mapping[str, list[CriterionResult]] = {name: evaluate_criteria(results, name) for name in results.names}

    def count(name: str, level: str) -> int:
        return sum(one.flagged is True and one.criterion.level == level for one in flags[name])

    order = sorted(results.names, key=lambda name: (count(name, MUST), count(name, SHOULD)))
    musts = [one.says for one in CRITERIA if one.level == MUST]
    shoulds = [one.says for one in CRITERIA if one.level == SHOULD]
    rows = [
        [
            name,
            str(count(name, MUST)),
            str(count(name, SHOULD)),
            "; ".join(one.criterion.says for one in flags[name] if one.flagged and one.criterion.level == MUST),
        ]
        for name in order
    ]
    header = [
        "controller",
        f"MUST rows flagged, of {len(musts)}",
        f"SHOULD rows flagged, of {len(shoulds)}",
        "flagged MUST rows",
    ]
    first = [
        f"{name}: {count(name, MUST)} of {len(musts)} MUST rows and {count(name, SHOULD)} of {len(shoulds)} SHOULD "
        f"rows flagged."
        for name in order
    ]
    pages = [_tabulate_criteria(results, name) for name in order if name != REFERENCE]
    return Report(first, order, [Table("Flags", header, rows), *pages])


def check_signs(results: Results) -> list[Sign]:
    """Return the RFC's own statement on a control that is known to fail; it tests this suite as well."""
    drops = {name: SHALLOW.value(results, name) for name in ("bbr", "cubic", "bbr3")}
    known = math.isfinite(drops["bbr"]) and math.isfinite(drops["cubic"])
    shown = ", ".join(f"{name} {value:.2f} %" for name, value in drops.items() if math.isfinite(value))
    flag = SHALLOW.flag
    assert flag is not None
    times = f"{flag.direction} {flag.factor:g} times as much"
    says = f"BBR version 1 loses {times} as CUBIC with several flows in buffers under 1.5 BDP"
    return [Sign(says, "RFC 9743, section 5.1.3", flag(drops["bbr"], drops["cubic"]) if known else None, shown)]


_FAMILIES = {
    "grid": "4 to 500 Mbit/s, 10 to 300 ms, buffers of 0.25 to 4 BDP, one flow",
    "collapse": "10 s in which data, or ACKs, are all lost; 64 and 200 flows on 1 Mbit/s",
    "shallow": "2, 8, 32 flows, 50 Mbit/s, buffers of 0.1 to 4 BDP",
    "intra": "2, 4, 16 flows that join every 5 s",
    "rtt": "two flows of different round trips",
    "short": "a long flow and web-search flows of loads 0.1 to 0.5, all of the controller's",
    "short-cubic": "a long flow of the controller's and web-search flows of CUBIC",
    "long-cubic": "a long flow of CUBIC and web-search flows of the controller's",
    "mixed": "beside CUBIC, NewReno and BBR, 1:1, 1:8, 8:1, buffers of 0.25 to 16 BDP",
    "realtime": "datagrams of 1 and 2.5 Mbit/s beside a bulk flow",
    "wireless": "20 Mbit/s in the mean: random loss, bursts of loss, generated 4G, 5G and Wi-Fi paths",
    "aqm": "RED, CoDel, FQ-CoDel, PIE, 1 and 8 flows, alone and beside as many CUBIC flows",
    "ecn": "the same where all flows speak ECN and the queues mark",
    "l4s": "DualPI2, 1 and 8 flows that speak ECN, alone and beside as many CUBIC flows that do, or Prague flows",
    "misbehave": "a receiver that splits, repeats or anticipates ACKs, or none of these, beside one CUBIC flow",
    "reorder": "0.1, 1, 10 % of packets late by the time of 1, 10, 100 packets: as many places where the link is full",
    "delay": "a minimum delay that changes twice; jitter, with and without reordering",
    "iot": "64 and 250 kbit/s, 4 packets of buffer, segments of 536 bytes",
    "satellite": "600 ms, with and without loss",
    "transient": "outages of 0.1 to 10 s, 8 CUBIC flows for 20 s, datagrams of 75 % for 20 s",
    "path": "rate and delay change together, twice",
    "dc": "10 Gbit/s, 0.1 ms: two flows; 64 kB from each of 16 every 10 ms",
}
METRICS = (
    Metric("utilisation", "use of the link (%)", 1, "goodput of all flows over what the link can carry of it, after "
    "the warm-up", 100),
    Metric("queue_rtt", "queue / RTT", 2, "95th percentile of the time in the queue over the round trip"),
    Metric("drops", "drops (%)", 2, "packets of the controller's flows dropped by the queue, of those sent", 100),
    Metric("queue_ms", "queue (ms)", 1, "95th percentile of the time in the queue, in intervals of 0.1 s weighted by packets"),
    Metric("loss_10s", "worst 10 s (%)", 1, "highest share of what was sent in 10 s that the queue dropped", 100),
    Metric("loss_1s", "worst second (%)", 1, "the same of a second", 100),
    *(
        Metric(key, key, 3, says)
        for key, says in {
            "sends": "packets sent in 21 to 30 s", "recover_s": "seconds to 80 % afterwards", "duplicates": "share "
            "that was there before",
            "jain": "Jain's index", "converge_s": "seconds until it stays at 0.9", "ratio": "goodput of the longer "
            "over the shorter path",
            "slowdown_p50": "completion over the least possible, median", "slowdown_p99": "the same, 99th percentile",
            "long_mbps": "goodput of the long flow, Mbit/s", "others_share": "goodput of others over a fair share",
            "harm": "1 - goodput of others over the link", "starved": "whether one of them has under a tenth of its share",
            "others_drops": "share of others' packets that the queue dropped",
            "probe_p99_ms": "delay of small packets, ms", "met": "share of datagrams that arrive",
            "cross_loss": "cross traffic lost",
            "phase_use": "least use of the link in a phase", "kept": "least use in a later phase over that in the first",
            "phase_queue_ms": "95th percentile of the time in the queue, of the phase in which it is the longest, ms",
            "reach_s": "longest time to 80 % (delay, satellite: to 90 %) in a phase",
            "queue_p50_ms": "median time in the queue, ms",
            "acks_per_kb": "ACKs a kilobyte", "timeouts": "time-outs",
            "marked": "share of packets that the queue marked", "sent_mbps": "what the controller sends, Mbit/s",
        }.items()
    ),
)  # fmt: skip


SUITE = FieldSuite(
    name="rfc9743",
    summary="what RFC 9743 asks to consider: worlds of three seeds each, a row for every MUST and SHOULD",
    task=TASK,
    load=make_loader(2, worlds.make_cells),
    measure=make_measure(METRICS),
    sample_s=worlds.SAMPLE_S,
    metrics=METRICS,
    scatter=("queue_rtt", "utilisation"),
    families=_FAMILIES,
    report_writer=FieldReport,
    source=DRAFT,
    rules=(
        "The RFC asks to consider; it sets no thresholds and ranks nobody. Flags are ours: against CUBIC in the same worlds.",
        "Controllers stand by their flagged MUST rows, then by their flagged SHOULD rows.",
        "Statistics leave out the first 10 s (of `dc`, which has 2 s, a tenth); each world is run with three seeds.",
        "The RFC's SHOULDs, and what it says in lower case that a control should or ought to do, are SHOULD rows.",
        "Bursts of loss go on from packet to packet, as netem's do: a sender that waits for a time-out is still in one, and "
        "some seeds leave little after it.",
        "DCTCP and Prague always speak ECN, the other controllers in `ecn` and `l4s`; the queues of `aqm` mark nobody.",
        "Short flows that never end count with the time to the end of the world.",
        "Receivers that anticipate ACKs flag nobody: CUBIC's own sender, told of no loss, sends until its send buffer "
        f"({worlds.SEND_BUFFER_BYTES / 2**20:g} MiB) is full, so that nobody can be much worse.",
    ),
    judge=judge,
    signs=check_signs,
    not_run=(
        OmittedWorlds(
            "7.6, misbehaving senders, routers, outside attackers", "none: the sender is judged, the rest is reasoning"
        ),
        OmittedWorlds("5.3.1, 5.3.2, 6.2, 7.10, 8", "none: to be explained on paper, tunnels, several paths, security"),
    ),
    reference=(REFERENCE,),
)
