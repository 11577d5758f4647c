"""Cells of ns-3's dumbbell in which queues mark instead of dropping (ECN), and of LEDBAT.

ns-3's congestion controls are compared with those of the `linux` stack, the only one with ECN here; lengths on the wire, least
RTO and delayed ACKs are ns-3's. The tolerances allow for the other differences between the stacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netbuf_gym.scenarios import Flow, Link, Scenario
from netbuf_gym.simulation.results.result import Result
from netbuf_gym.validation.cells import (
    ALONE,
    DROPS,
    GOODPUT,
    QUEUE_DELAY,
    Cell,
    Family,
    Numbers,
    Row,
    Setting,
    Tolerance,
    make_dumbbell_setting,
    register_family,
)
from netbuf_gym.validation.dumbbells import NS3_ODD

NS3_MARKS = "ns3-marks"
ACCESS_DELAY_MS = 1.0
WIRE_BYTES = 1502
MARKS = "queue_marks"
COLUMNS = {GOODPUT: "goodput_w_mbps", QUEUE_DELAY: "sojourn_mean_w_ms", DROPS: "queue_drops", MARKS: "queue_marks_w"}
"""Columns of the reference by quantity."""
TITLES = {MARKS: "marks"}
SCHEMES = {"LinuxReno": "newreno", "Cubic": "cubic", "Dctcp": "dctcp"}
DCTCP = {GOODPUT: Tolerance(0.01), QUEUE_DELAY: Tolerance(0.15, 1.0), MARKS: Tolerance(0.55)}
"""Marks: Linux holds segments back for the next ACK (`tcp_tso_should_defer`), where ns-3 sends with every ACK. Between groups
the queue is short, and of one or two flows up to 47 % fewer packets are marked; without that they differ by a fifth at most."""
CLASSIC = {GOODPUT: Tolerance(0.05), QUEUE_DELAY: Tolerance(0.25, 2.0)}
"""RFC 3168: ns-3 takes the whole reduction at once, Linux over a round trip, and which packet is marked decides the next."""


@dataclass(frozen=True, kw_only=True)
class Marking:
    """Parameters of a cell's marking, beside those of the dumbbell.

    Attributes:
        how: "Fifo", "CoDel", or "Step", which marks packets that find `packets` waiting.
        packets: Threshold of Step.
        ecn: Whether flows use ECN.
    """

    how: str
    packets: int
    ecn: bool
    by_chance: bool = False


def make_setting(kind: str, row: Row, v: Numbers) -> Setting:
    """Return the setting described by a row's columns."""
    return make_dumbbell_setting(kind, row, v, Marking(how=row["marking"], packets=int(v["mark_pkts"]), ecn=bool(v["ecn"])))


@register_family
class Ns3Marks(Family):
    kind = NS3_MARKS
    least_rtt_ms = 4 * ACCESS_DELAY_MS
    columns = ("flows", "buffer", "marking", "runs")

    def id_parts(self, s: Setting) -> list[str]:
        return [*super().id_parts(s), s.own.how + (str(s.own.packets) if s.own.packets else "")]

    def why_not_judged(self, s: Setting) -> str:
        if s.cc in NS3_ODD:
            return NS3_ODD[s.cc]
        if s.cc == "LinuxReno" and s.flows == 1 and s.own.how == "Step":
            return "ns-3's lone Reno has up to 14 % less than a window that is halved where it is marked would have"
        if s.cc not in SCHEMES:
            return f"congestion control {s.cc} is not built yet"
        return "" if s.own.how in ("Fifo", "CoDel", "Step") else f"queue discipline {s.own.how} is not built yet"

    def choose_judging(self, s: Setting) -> str:
        return ALONE

    def list_tolerances(self, s: Setting) -> Mapping[str, Tolerance]:
        return DCTCP if s.cc == "Dctcp" else CLASSIC

    def measure_quantities(self, result: Result) -> dict[str, float]:
        """Return goodput, delay and marks of the window after the warm-up, and drops of the whole run."""
        link = result.links[result.bottleneck]
        return {
            GOODPUT: result.goodput_mbps,
            QUEUE_DELAY: link.queue_delay_mean_ms,
            DROPS: float(link.queue_drops_total),
            MARKS: float(link.marks),
        }

    def make_scenario(self, cell: Cell, seed: int | None) -> Scenario:
        s, own = cell.setting, cell.setting.own
        disciplines: dict[str, dict[str, Any]] = {
            "Fifo": {"name": "droptail"},
            "CoDel": {"name": "codel", "mtu_bytes": 1499},
            "Step": {"name": "droptail", "mark_packets": max(own.packets - 1, 0)},
        }
        delay_ms = s.rtt_ms / 2 - 2 * ACCESS_DELAY_MS
        links = [
            Link(
                name="bottleneck",
                rate_mbps=s.rate_mbps,
                delay_ms=delay_ms,
                queue_packets=s.buffer_packets,
                discipline=disciplines[own.how],
                device_packets=1,
            ),
            Link(name="return", rate_mbps=s.rate_mbps, delay_ms=delay_ms),
        ]
        flows = []
        for i in range(s.flows):
            first = len(links)
            for end in ("out", "in", "out-back", "in-back"):
                links.append(Link(name=f"{i}-{end}", rate_mbps=s.access_mbps, delay_ms=ACCESS_DELAY_MS))
            path: dict[str, Any] = {"path": (first, 0, first + 1), "return_path": (first + 2, 1, first + 3)}
            flows.append(Flow(cc=SCHEMES[s.cc], start_s=i * s.stagger_s, ecn=own.ecn, **path))
        return Scenario(
            links=links,
            flows=flows,
            duration_s=s.duration_s,
            name=s.id,
            mss_bytes=WIRE_BYTES - 52,
            min_rto_ms=1000.0,
            delayed_ack=2,
        )

    def format_row(self, s: Setting, runs: int) -> Sequence[str]:
        return [str(s.flows), str(s.buffer_packets), f"{s.own.how} {s.own.packets or ''}".strip(), str(runs)]

    def report_fields(self, s: Setting) -> dict:
        return super().report_fields(s) | {"marking": s.own.how, "mark_packets": s.own.packets, "ecn": s.own.ecn}
