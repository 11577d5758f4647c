"""Shared-buffer cells: lists of flows replayed through ns-3's switch with two queues, and through ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netbuf_gym.errors import quote
from netbuf_gym.scenarios import FlowList, Scenario, shared_buffer
from netbuf_gym.simulation.results.result import Result
from netbuf_gym.validation.cells import (
    DROPS,
    GOODPUT,
    GROUPED,
    ONE_PACKET,
    Cell,
    Family,
    Numbers,
    Row,
    Setting,
    Tolerance,
    register_family,
    stack_options,
)
from netbuf_gym.validation.dumbbells import NS3_SCHEMES, apply_stack_options, explain_missing_scheme

NS3_SHARED_BUFFER = "ns3-sharedbuffer"
HOSTS, QUEUES = 10, 2
DELAY_MS, ACCESS_DELAY_MS = 10.0, 0.1
POLICIES = {"naive": "naive", "soph": "sophisticated", "abm": "abm"}
"""Our names of the reference's buffer schemes: alphas 1 and 1; 8 and 1; 8 and 1 divided as ABM does."""

COMPLETED, OCCUPANCY = "flows_completed", "occupancy_p99_pct"
FCT, SLOWDOWN = ("fct_mean_s_p0", "fct_mean_s_p1"), ("slow_mean_p0", "slow_mean_p1")
FCT_P99, SLOWDOWN_P99 = ("fct_p99_s_p0", "fct_p99_s_p1"), ("slow_p99_p0", "slow_p99_p1")
COLUMNS = {GOODPUT: "sink_goodput_mbps", COMPLETED: "done_all", OCCUPANCY: "occ_p99_pct"} | {
    name: name for pair in (FCT, SLOWDOWN, FCT_P99, SLOWDOWN_P99) for name in pair
}
"""Columns of the reference by quantity, drops apart."""
NOT_OVERLOADED = (COMPLETED, *FCT, *SLOWDOWN, *FCT_P99, *SLOWDOWN_P99)
"""Quantities not compared where far more is offered than the link carries (variant thesis).

Few flows complete there, and the order of single packets decides which.
"""
OVERLOADED = "thesis"
HIGH_LOAD = 0.8
TITLES = {
    COMPLETED: "completed",
    OCCUPANCY: "occupancy p99",
    **{name: f"FCT {p}" for p, name in enumerate(FCT)},
    **{name: f"slowdown {p}" for p, name in enumerate(SLOWDOWN)},
    **{name: f"FCT p99 {p}" for p, name in enumerate(FCT_P99)},
    **{name: f"slowdown p99 {p}" for p, name in enumerate(SLOWDOWN_P99)},
}
"""Column titles: flows, per cent of the buffer, seconds and ratios of priority 0 and 1."""


ONE_FLOW = 1.0
ONE_PACKET_PCT = 0.5
"""Absolute tolerances of flow counts, and of an occupancy in per cent: one packet of the smallest buffer, 200 packets."""
FEW = Tolerance(0.30, doubled=False)
"""Tolerance of 99th percentiles of a few dozen flows, and of the few long flows that compete at high load."""
NS3_SHARED = {
    GOODPUT: Tolerance(0.02),
    COMPLETED: Tolerance(0.02, ONE_FLOW),
    **dict.fromkeys((*FCT, *SLOWDOWN), Tolerance(0.10)),
    **dict.fromkeys((*FCT_P99, *SLOWDOWN_P99), FEW),
    DROPS: Tolerance(0.20, ONE_PACKET),
    OCCUPANCY: Tolerance(0.10, ONE_PACKET_PCT),
}


def make_setting(kind: str, row: Row, v: Numbers) -> Setting:
    """Return the setting described by a row's columns; raise ValueError for a name with a slash."""
    for name in ("variant", "policy"):
        if "/" in row[name]:
            raise ValueError(f"{name} = {quote(row[name])}; valid: a name without a slash")
    return Setting(
        kind=kind,
        label=f"{row['variant']}/{row['policy']}",
        cc=row["cc"],
        flows=HOSTS,
        rate_mbps=v["B_mbps"],
        rtt_ms=2 * (DELAY_MS + ACCESS_DELAY_MS),
        buffer_packets=int(v["perq_pkts"]),
        loss=0.0,
        duration_s=v["T_s"],
        warmup_s=0.0,
        access_mbps=v["access_mbps"],
        extra=f"load{row['load']}",
        **stack_options(v),
    )


def get_variant(setting: Setting) -> str:
    """Return the variant of the flow lists: sane10, sane100, thesis."""
    return setting.label.split("/")[0]


def get_policy(setting: Setting) -> str:
    """Return the buffer scheme, as the reference names it."""
    return setting.label.split("/")[1]


def get_load(setting: Setting) -> float:
    """Return the offered load, as a share of the bottleneck's rate."""
    return float(setting.extra.removeprefix("load"))


def name_flow_file(row: Row) -> str:
    """Return the name of the flow list of a row's variant, load and seed."""
    return f"flows_{row['variant']}_{row['load']}_{row['seed']}.csv"


@register_family
class SharedBuffer(Family):
    kind = NS3_SHARED_BUFFER
    replays_flows = True
    contributes = True
    compact = True
    columns = ("load", "lists")

    def describe_path(self, s: Setting) -> str:
        return f"{s.rate_mbps:g} Mbit/s, {s.buffer_packets} packets a queue"

    def group_key(self, s: Setting) -> int:
        return s.buffer_packets

    def id_parts(self, s: Setting) -> list[str]:
        return [f"{s.rate_mbps:g}Mbps", f"{s.buffer_packets}pkts"]

    def why_not_judged(self, s: Setting) -> str:
        if get_policy(s) not in POLICIES:
            return f"buffer scheme {get_policy(s)} is not built yet"
        return explain_missing_scheme(s)

    def make_scenario(self, cell: Cell, seed: int | None) -> Scenario:
        """Return the world with the flow list of one of the cell's seeds, by default the first."""
        s = cell.setting
        assert s.access_mbps is not None  # a column of these cells
        flows = FlowList.read_csv(cell.flow_files[cell.seeds[0] if seed is None else seed], senders=HOSTS, queues=QUEUES)
        world = shared_buffer(
            senders=NS3_SCHEMES[s.cc],
            hosts=HOSTS,
            arrivals=flows,
            rate_mbps=s.rate_mbps,
            delay_ms=DELAY_MS,
            access_mbps=s.access_mbps,
            access_delay_ms=ACCESS_DELAY_MS,
            buffer_packets=2 * s.buffer_packets,
            scheme=POLICIES[get_policy(s)],
            queues=QUEUES,
            duration_s=s.duration_s,
            stack="ns3",
            hystart=s.hystart,
            name=s.id,
        )
        return apply_stack_options(world, s)

    def measure_quantities(self, result: Result) -> dict[str, float]:
        """Return the quantities compared with the reference, by the reference's definitions, over the whole run."""
        switch = result.switches[0]
        values = {
            GOODPUT: result.goodput_mbps,
            COMPLETED: float(result.flows_completed()),
            DROPS: float(sum(queue.drops for queue in switch.queues)),
            OCCUPANCY: 100 * switch.occupancy_p99,
        }
        for p in range(QUEUES):
            values[FCT[p]] = result.fct_mean_s(p)
            values[SLOWDOWN[p]] = result.slowdown_mean(p)
            values[FCT_P99[p]] = result.fct_s(99, p)
            values[SLOWDOWN_P99[p]] = result.slowdown(99, p)
        return values

    def choose_judging(self, s: Setting) -> str:
        return GROUPED

    def list_tolerances(self, s: Setting) -> Mapping[str, Tolerance]:
        if get_variant(s) == OVERLOADED:
            return {name: tolerance for name, tolerance in NS3_SHARED.items() if name not in NOT_OVERLOADED}
        return NS3_SHARED | {FCT[1]: FEW, SLOWDOWN[1]: FEW} if get_load(s) >= HIGH_LOAD else NS3_SHARED

    def format_row(self, s: Setting, runs: int) -> Sequence[str]:
        return [f"{get_load(s):g}", str(runs)]

    def report_fields(self, s: Setting) -> dict:
        return {
            "path": s.path,
            "load": get_load(s),
            "access_mbps": s.access_mbps,
            "duration_s": s.duration_s,
            "min_rto_s": s.min_rto_s,
            "delayed_ack": s.delayed_ack,
        }
