"""Families of cells with a few endless flows: ns-3's dumbbell and last hop, and Linux' dumbbell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from netbuf_gym.scenarios import Scenario, dumbbell, last_hop
from netbuf_gym.simulation.results.result import Result
from netbuf_gym.traces import RateTrace, read_rate_steps
from netbuf_gym.validation.cells import (
    ALONE,
    DISTRIBUTION,
    DROPS,
    GOODPUT,
    GROUPED,
    LOSS_RATE,
    ONE_PACKET,
    QUEUE_DELAY,
    Cell,
    Family,
    Setting,
    Tolerance,
    register_family,
)

NS3_DUMBBELL = "ns3-dumbbell"
NS3_LAST_HOP = "ns3-lasthop"
LINUX_DUMBBELL = "linux-dumbbell"

NS3_SCHEMES = {"NewReno": "newreno", "LinuxReno": "linuxreno", "Cubic": "cubic", "WestwoodPlus": "westwood", "Vegas": "vegas"}
LINUX_SCHEMES = {"reno": "newreno", "cubic": "cubic", "bbr": "bbr", "vegas": "vegas", "westwood": "westwood"}
LINUX_PACING = True
"""True if senders pace.

The kernel paced the reference's Reno and CUBIC too: iperf3 sets the congestion control after the connection is made with the
host's default, which was BBR, and pacing stays on. It shows in the retransmissions of slow start, which a kernel without
pacing does not have.
"""
NS3_ODD = {
    "Ledbat": "ns-3's LEDBAT stands still at 60 ms of queue, short of its target of 100: an oddity that is not copied",
    "Bbr": "ns-3's BBR begins its cycles in phases of a random stream of its own",
    "Veno": "ns-3's Veno equals its NewReno",
}


DisciplineSpec = dict[str, Any]
"""A value of `Link.discipline`: its name and parameters."""
NS3_DISCIPLINES: dict[str, Callable[[int], DisciplineSpec]] = {
    "Fifo": lambda limit: {"name": "droptail"},
    "CoDel": lambda limit: {"name": "codel", "mtu_bytes": 1499},
    "FqCoDel": lambda limit: {"name": "fq_codel", "mtu_bytes": 1499, "quantum_bytes": 1502, "perturbation": 2994316},
    "Pie": lambda limit: {"name": "pie", "burst_quiet_s": 1.5},
    "Red": lambda limit: {"name": "red", "min_packets": 0.2 * limit, "max_packets": 0.6 * limit, "wait": True},
}
"""ns-3.44's queue disciplines by name, as functions of the limit in packets.

CoDel drops unless fewer than 1500 bytes would be left, a quantum is one packet, PIE's burst allowance begins with the first
arrival, RED waits between drops and has the thresholds of the reference program. With this perturbation no two of 64 flows
share a queue of FQ-CoDel (ns-3's hash is of the addresses), and the queues of the first ten are ordered as in ns-3, where the
first of the longest ones loses packets at the limit.
"""

NS3_ALONE = {GOODPUT: Tolerance(0.01), QUEUE_DELAY: Tolerance(0.05, 1.0), DROPS: Tolerance(0.10, ONE_PACKET)}
NS3_GROUPED = {GOODPUT: Tolerance(0.02), QUEUE_DELAY: Tolerance(0.12, 1.0), DROPS: Tolerance(0.20, ONE_PACKET)}
NS3_AQM = {GOODPUT: Tolerance(0.02), QUEUE_DELAY: Tolerance(0.15, 1.0)}
LINUX = {GOODPUT: Tolerance(0.02), QUEUE_DELAY: Tolerance(0.12, 2.0), LOSS_RATE: Tolerance(0.20, 2e-4)}
LINUX_BBR = {GOODPUT: Tolerance(0.03), QUEUE_DELAY: Tolerance(0.25, 3.0), LOSS_RATE: Tolerance(0.20, 2e-4)}


class Dumbbell(Family):
    """Common base of the families."""

    def common_arguments(self, s: Setting) -> dict:
        """Return the arguments common to the topologies."""
        return {
            "rtt_ms": s.rtt_ms,
            "buffer_packets": s.buffer_packets,
            "loss": s.loss,
            "duration_s": s.duration_s,
            "stagger_s": s.stagger_s,
            "name": s.id,
        }

    def measure_quantities(self, result: Result) -> dict[str, float]:
        """Return goodput and queueing delay of the window after the warm-up."""
        return {GOODPUT: result.goodput_mbps, QUEUE_DELAY: result.links[result.bottleneck].queue_delay_mean_ms}


class Ns3(Dumbbell):
    """Common base of ns-3's families."""

    disciplines: Mapping[str, Callable[[int], DisciplineSpec]] = {}

    def why_not_judged(self, s: Setting) -> str:
        if reason := explain_missing_scheme(s):
            return reason
        if s.disciplined and s.qdisc not in self.disciplines:
            return f"queue discipline {s.qdisc} is not built yet"
        return ""

    def common_arguments(self, s: Setting) -> dict:
        senders = (NS3_SCHEMES[s.cc],) * s.flows
        return {
            "senders": senders,
            "stack": "ns3",
            "access_mbps": s.access_mbps,
            "hystart": s.hystart,
            **super().common_arguments(s),
        }

    def measure_quantities(self, result: Result) -> dict[str, float]:
        """Return goodput and queueing delay of the window after the warm-up, and drops from the start."""
        return {**super().measure_quantities(result), DROPS: float(result.links[result.bottleneck].queue_drops_total)}

    def choose_judging(self, s: Setting) -> str:
        if s.disciplined:
            return ALONE
        return DISTRIBUTION if s.bottomless else GROUPED

    def list_tolerances(self, s: Setting) -> Mapping[str, Tolerance]:
        if s.disciplined:
            return NS3_AQM
        return NS3_ALONE if self.choose_judging(s) == ALONE else NS3_GROUPED


@register_family
class Ns3Dumbbell(Ns3):
    kind = NS3_DUMBBELL
    least_rtt_ms = 4.0
    disciplines = NS3_DISCIPLINES

    def make_scenario(self, cell: Cell, seed: int | None) -> Scenario:
        s = cell.setting
        return apply_stack_options(_apply_discipline(dumbbell(rate_mbps=s.rate_mbps, **self.common_arguments(s)), s), s)

    def choose_judging(self, s: Setting) -> str:
        how = super().choose_judging(s)
        determined = s.flows == 1 and not s.loss and s.cc in ("NewReno", "LinuxReno")
        return ALONE if how == GROUPED and determined else how


@register_family
class Ns3LastHop(Ns3):
    kind = NS3_LAST_HOP
    follows_schedule = True

    def make_scenario(self, cell: Cell, seed: int | None) -> Scenario:
        s = cell.setting
        return apply_stack_options(
            last_hop(trace=_read_schedule(cell), return_rate_mbps=s.rate_mbps, **self.common_arguments(s)), s
        )


@register_family
class LinuxDumbbell(Dumbbell):
    kind = LINUX_DUMBBELL

    def why_not_judged(self, s: Setting) -> str:
        return "" if s.cc in LINUX_SCHEMES else f"congestion control {s.cc} is not built yet"

    def make_scenario(self, cell: Cell, seed: int | None) -> Scenario:
        s = cell.setting
        common = self.common_arguments(s)
        late_ms = float(np.mean(cell.late_us)) / 1e3 if cell.late_us else 0.0
        common["rtt_ms"] += 2 * late_ms  # the emulator's lateness, in both directions
        senders = (LINUX_SCHEMES[s.cc],) * s.flows
        return dumbbell(rate_mbps=s.rate_mbps, senders=senders, stack="linux", pacing=LINUX_PACING, **common)

    def has_uncertain_starts(self, s: Setting) -> bool:
        return s.flows > 1

    def measure_quantities(self, result: Result) -> dict[str, float]:
        """Return goodput, queueing delay and loss rate of the window after the warm-up.

        The loss rate is the packets lost at the full queue and at random over the packets that arrived at the queue.
        """
        link = result.links[result.bottleneck]
        lost = link.queue_drops + link.random_losses
        return {**super().measure_quantities(result), LOSS_RATE: lost / link.packets_in if link.packets_in else float("nan")}

    def choose_judging(self, s: Setting) -> str:
        return GROUPED

    def list_tolerances(self, s: Setting) -> Mapping[str, Tolerance]:
        return LINUX_BBR if s.cc == "bbr" else LINUX


def explain_missing_scheme(s: Setting) -> str:
    """Return the reason why a congestion control of ns-3's is not judged; empty when it is."""
    if s.cc in NS3_ODD:
        return NS3_ODD[s.cc]
    return "" if s.cc in NS3_SCHEMES else f"congestion control {s.cc} is not built yet"


def apply_stack_options(scenario: Scenario, setting: Setting) -> Scenario:
    """Return a scenario with a cell's minimum RTO, delayed ACKs and segment size, where they differ from the stack's.

    Raises:
        ScenarioError: A value out of range.
    """
    changes: dict[str, Any] = {}
    if setting.min_rto_s != 1.0:
        changes["min_rto_ms"] = setting.min_rto_s * 1e3
    if setting.delayed_ack != 2:
        changes["delayed_ack"] = setting.delayed_ack
    if setting.mss_bytes != 1448:
        changes["mss_bytes"] = setting.mss_bytes
    return replace(scenario, **changes) if changes else scenario


def _apply_discipline(world: Scenario, setting: Setting) -> Scenario:
    """Return a world with the reference program's queue discipline at the bottleneck, and the device's one packet behind it."""
    if not setting.disciplined:
        return world
    discipline = NS3_DISCIPLINES[setting.qdisc](setting.buffer_packets)
    links = [replace(link, discipline=discipline, device_packets=1) if i == 0 else link for i, link in enumerate(world.links)]
    return replace(world, links=tuple(links))


def _read_schedule(cell: Cell) -> RateTrace:
    """Return the rate schedule as the reference program plays it: whole bit/s, first the rate B, the last rate to the end."""
    assert cell.rate_file is not None
    time_s, mbps = read_rate_steps(cell.rate_file)
    mbps = np.floor(mbps * 1e6 + 0.5) / 1e6
    if time_s[0] > 0:
        time_s, mbps = np.insert(time_s, 0, 0.0), np.insert(mbps, 0, cell.setting.rate_mbps)
    return RateTrace(time_s, mbps, name=cell.setting.rate_trace)
