"""RFC 7928's guidelines for queue management as coded for ns-3, and flent's grid; ranks both senders and disciplines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from netbuf_gym.evaluation.suites.field.suite import (
    Column,
    FieldCell,
    FieldSuite,
    OmittedWorlds,
    Report,
    Results,
    Sign,
    Table,
    compute_queue,
    derive_seed,
    make_loader,
    make_measure,
    rank_controllers,
)
from netbuf_gym.evaluation.suites.recorder import Record, weighted_quantile
from netbuf_gym.evaluation.suites.suite import Metric
from netbuf_gym.scenarios import Flow, Link, OnOff, Scenario, Sized, UdpSource
from netbuf_gym.scenarios.types import AGENT
from netbuf_gym.traces import RateTrace
from netbuf_gym.utils.statistics import jain_index

LIMIT, SHARP_LIMIT, DURATION_S = 45, 500, 300.0
SEGMENT, PACKET_BYTES, ACCESS_MS = 698, 750, 1.0
MANAGED: dict[str, Any] = {
    "droptail": None,
    "red": {"name": "red", "min_packets": 5, "max_packets": 15, "mean_packet_bytes": PACKET_BYTES, "wait": True, "ecn": False},
    "codel": {"name": "codel", "mtu_bytes": PACKET_BYTES - 1, "ecn": False},
    "pie": {"name": "pie", "burst_quiet_s": 1.5, "mean_packet_bytes": PACKET_BYTES, "ecn": False},
}
"""Parameters of the source for ns-3 (thresholds, and 750 bytes for RED's and PIE's packets and for what CoDel leaves), the rest
as in ns-3.44: RED waits between drops, PIE's allowance begins with the first arrival, no discipline marks."""
WINDOW_S, SHORT_S = 0.1, 1.0
"""Length of a point of the ellipse; longest period of a rate for which a point is a whole period."""
PUBLISHED = {"codel": (2.5, 0.723), "pie": (19, 0.736), "red": (50, 0.812), "droptail": (72, 0.787)}
"""Queue delay, ms, and goodput, Mbit/s, of scenario 5.2, read off ns-3's suite's graph/qdel-goodput.png."""
RTTS_MS = (5, 8, 10, 16, 20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 500)
DISPLAY_NAMES = {"droptail": "drop-tail", "red": "RED", "codel": "CoDel", "pie": "PIE"}
FLENT = ("fq_codel",)
FLENT_ACCESS, FLENT_LEAST = 10, 1000
"""Access rate over the bottleneck's rate; least packets that the bottleneck's queues hold."""
FAMILIES = {
    **{aqm: f"ns-3's scenarios behind {aqm}: 1 Mbit/s, 100 ms, 45 packets" for aqm in MANAGED},
    "flent-fq_codel": "flent's grid behind FQ-CoDel: 1, 3, 16 flows, 80 to 1000 Mbit/s, 4 to 800 ms, with and without ECN",
}
Measure = Callable[[Record], dict[str, float]]


def _make_world(aqm: str, flows: list[dict[str, Any]], name: str, **changed: Any) -> Scenario:
    """Return the dumbbell: 1 Mbit/s and 48 ms in the middle; at either end each flow has its own link of 10 Mbit/s and 1 ms.

    Args:
        flows: Fields of each flow; `access_ms`: delay of both of its own links.
        changed: Changes to these values; `access`: Mbit/s of the links at the ends, `udp`: Mbit/s of datagram sources.
    """
    at = {"rate": 1.0, "limit": LIMIT, "delay": 48.0, "access": 10.0, "duration": DURATION_S, "udp": (), **changed}
    rate = at["rate"]
    link = {"trace": rate} if isinstance(rate, RateTrace) else {"rate_mbps": rate}
    links = [Link(name="bottleneck", delay_ms=at["delay"], queue_packets=at["limit"], discipline=MANAGED[aqm], **link)]

    def add_path(flow: str, access_ms: float) -> tuple[int, int, int]:
        """Return a forward path with its own links at both ends."""
        links.extend(Link(name=f"{end} {flow}", rate_mbps=at["access"], delay_ms=access_ms) for end in ("from", "to"))
        return len(links) - 2, 0, len(links) - 1

    made = []
    for number, flow in enumerate(flows):
        own = {"cc": AGENT, "initial_cwnd_packets": 3, "access_ms": ACCESS_MS, **flow}
        access_ms = own.pop("access_ms")
        there = add_path(str(number), access_ms)
        links.append(Link(name=f"back {number}", delay_ms=at["delay"] + 2 * access_ms))
        made.append(Flow(path=there, return_path=(len(links) - 1,), **own))
    udp = [
        UdpSource(path=add_path(f"udp {number}", ACCESS_MS), rate_mbps=mbps, packet_bytes=PACKET_BYTES)
        for number, mbps in enumerate(at["udp"])
    ]
    return Scenario(links=links, flows=made, duration_s=at["duration"], name=name, udp=udp, mss_bytes=SEGMENT)


def _make_ns3_worlds(aqm: str) -> Iterator[tuple[str, Scenario]]:
    one: dict[str, Any] = {}
    yield "5.1.1", _make_world(aqm, [one], "5.1.1")
    short = {"initial_cwnd_packets": 10, "start_s": 0.5, "app": Sized(size_bytes=100 * SEGMENT)}
    yield "5.1.2", _make_world(aqm, [one, short], "5.1.2")
    yield "5.3.2", _make_world(aqm, [one], "5.3.2", udp=(0.8,))
    yield "5.4", _make_world(aqm, [one, {"cc": "ledbat"}], "5.4")
    for rtt in RTTS_MS:
        middle = min(0.4 * rtt, 40.0)
        flows = [{"access_ms": (whole / 2 - middle) / 2, "start_s": at} for whole, at in ((100, 0.0), (rtt, 0.5))]
        yield f"6-{rtt}ms", _make_world(aqm, flows, f"6-{rtt}", delay=middle, duration=600.0)
    for name, n, delay in (("8.2.2", 2, 45.0), ("8.2.3", 5, 48.0), ("8.2.4", 7, 48.0)):
        yield name, _make_world(aqm, [{"start_s": float(i)} for i in range(n)], name, delay=delay)
    pausing = OnOff(on_s=40, off_s=20)
    varying: list[dict[str, Any]] = [one, one, *[{"app": pausing}] * 3, {"app": OnOff(on_s=20, off_s=40)}, one]
    yield "8.2.5", _make_world(aqm, varying, "8.2.5")
    for name, period in (("8.2.6.1", 20.0), ("8.2.6.2", 0.1)):
        rate = RateTrace([0, period], [100, 10], period_s=2 * period)
        yield name, _make_world(aqm, [one, one], name, rate=rate, limit=SHARP_LIMIT, access=500.0)


def _make_flent_worlds(aqm: str) -> Iterator[tuple[str, Scenario, dict[str, Any]]]:
    for n, rate, rtt, ecn in product((1, 3, 16), (80, 160, 1000), (4, 40, 80, 800), (False, True)):
        name = f"{n}-{rate}mbps-{rtt}ms{'-ecn' if ecn else ''}"
        middle: dict[str, Any] = {
            "rate_mbps": rate,
            "delay_ms": rtt / 2,
            "queue_packets": max(FLENT_LEAST, compute_queue(rate, rtt, 1)),
            "discipline": {"name": aqm, "ecn": ecn},
        }
        links = [
            Link(name="bottleneck", **middle),
            Link(name="return", **middle),
            *(Link(name=end, rate_mbps=FLENT_ACCESS * rate) for end in ("from", "to")),
        ]
        flows = [Flow(cc=AGENT, path=(2, 0, 3), return_path=(1,), ecn=ecn) for _ in range(n)]
        yield (
            name,
            Scenario(links=links, flows=flows, duration_s=200, name=name),
            {"flows": n, "rate": rate, "rtt": rtt, "ecn": ecn},
        )


def make_cells() -> Iterator[FieldCell]:
    """Yield all worlds, discipline by discipline."""
    for aqm in MANAGED:
        for number, scenario in _make_ns3_worlds(aqm):
            name = f"{aqm}-{number}"
            yield FieldCell(name, aqm, scenario, derive_seed(name), measure=measure_world, about={"aqm": aqm, "number": number})
    for aqm in FLENT:
        for number, scenario, about in _make_flent_worlds(aqm):
            name, own = f"flent-{aqm}-{number}", {"aqm": aqm, "number": "flent", **about}
            yield FieldCell(name, f"flent-{aqm}", scenario, derive_seed(name), measure=measure_world, about=own)


def measure_world(record: Record) -> dict[str, float]:
    """Return means of queue delay and goodput, their distance from (0, 1), the area of the ellipse of points, and more.

    A point's goodput is over the capacity of the bottleneck earlier by the delay from the bottleneck to the receiver.
    """
    scenario = record.scenario
    whole = (0.0, scenario.duration_s)
    times, late = _split_windows(scenario)
    delay = record.queue_ms(times)
    good = _goodput_mbps(record, times) / record.capacity_mbps(times - late)
    known = np.isfinite(delay)
    if known.sum() < 3:
        return {"goodput": 0.0}
    middle = float(delay[known].mean()), float(_goodput_mbps(record, whole)[0] / record.capacity_mbps(whole)[0])
    area = math.pi * math.sqrt(max(float(np.linalg.det(np.cov(delay[known] / 100, good[known]))), 0.0))
    endless = [i for i, flow in enumerate(scenario.flows) if not isinstance(flow.app, Sized)]
    each = np.array([record.goodput_mbps(i, whole)[0] for i in endless])
    drops, came = (float(record.get_link_increase(scenario.bottleneck, key, whole)[0]) for key in ("queue_drops", "packets_in"))
    return {
        "distance": -math.hypot(middle[0] / 100, 1 - middle[1]),
        "queue_ms": middle[0],
        "goodput": middle[1],
        "area": area,
        "jain": jain_index(each, of_nothing=0.0),
        "drops": drops / max(came, 1),
        "queue_p95_ms": weighted_quantile(delay, record.get_link_increase(scenario.bottleneck, "sojourn_count", times), 0.95),
        "fct_s": _completion_s(record),
    }


def _split_windows(scenario: Scenario) -> tuple[np.ndarray, float]:
    """Return the edges of the points, s, and the delay from the bottleneck to the receiver, s, before which none begins."""
    trace = scenario.links[scenario.bottleneck].trace
    period = trace.period_s if isinstance(trace, RateTrace) else None
    step = period if period is not None and WINDOW_S < period <= SHORT_S else WINDOW_S
    links = scenario.links_of(0)
    behind = links[links.index(scenario.links[scenario.bottleneck]) :]
    late = sum(float(link.least_delay_ms) for link in behind) * 1e-3
    return step * np.arange(math.ceil(late / step), math.floor(scenario.duration_s / step + 1e-9) + 1), late


def _goodput_mbps(record: Record, times: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the rate delivered to receivers between times, headers included: of flows, and of datagrams.

    Datagrams are counted on the last link of their path, which is their own.
    """
    scenario = record.scenario
    headers = scenario.data_bytes / scenario.mss
    flows = sum(record.goodput_mbps(i, times) for i in range(len(scenario.flows))) * headers
    datagrams = [record.get_link_increase(int(source.path[-1]), "bytes_sent", times) for source in scenario.udp]
    return np.asarray(flows + sum(datagrams) * 8e-6 / np.diff(times))


def _completion_s(record: Record) -> float:
    """Return the mean completion time of finite flows, unfinished ones counted until the end of the world; NaN without any."""
    scenario = record.scenario
    sized = [i for i, flow in enumerate(scenario.flows) if isinstance(flow.app, Sized)]
    if not sized:
        return math.nan
    done = np.array([record.world.flow_stats()[i]["completion_s"] for i in sized])
    return float(np.mean(np.where(np.isfinite(done), done, scenario.duration_s) - [scenario.flows[i].start_s for i in sized]))


METRICS = (
    Metric(
        "distance", "- distance", 3, "minus the distance of the mean (queue delay / 100 ms, goodput / capacity) from (0, 1)"
    ),
    Metric("queue_ms", "queue (ms)", 1, "mean over 0.1 s intervals of the time in the queue, transmission included"),
    Metric(
        "goodput",
        "goodput / rate (%)",
        1,
        "what receivers were handed over what the bottleneck could carry, from start to end: of all flows and of datagrams, "
        "headers counted",
        100,
    ),
    Metric(
        "area",
        "area",
        3,
        "of the ellipse of one standard deviation, in the units of the distance, over 0.1 s intervals (0.2 s where the rate "
        "changes every 0.1 s)",
    ),
    Metric("jain", "Jain", 3, "Jain's index of the flows that do not end"),
    Metric("drops", "drops (%)", 2, "of the packets that come to the queue, dropped or not", 100),
    Metric("queue_p95_ms", "queue, p95 (ms)", 1, "95th percentile, intervals weighted by packets"),
    Metric("fct_s", "completion (s)", 2, "of the flow of 100 packets in 5.1.2"),
)


def judge(results: Results) -> Report:
    """Rank controllers by their distances behind each discipline, and the disciplines for each sender."""
    groups = [*MANAGED, *(f"flent-{aqm}" for aqm in FLENT)]

    def near(group: str) -> Column:
        return lambda name: -results.mean(name, "distance", family=group), 3, True

    columns = {group: near(group) for group in groups}
    order, table = rank_controllers(results, columns, "Senders: distance from no queue and full use, by discipline")
    rows = []
    for name in order:
        found = {aqm: results.mean(name, "distance", family=aqm) for aqm in MANAGED}
        best = sorted(found, key=lambda aqm: (-found[aqm], results.mean(name, "area", family=aqm)))
        rows.append([name, *(f"{aqm} {-found[aqm]:.3f}" for aqm in best)])
    disciplines = Table("Disciplines, sender by sender, the nearest first", ["sender", "1", "2", "3", "4"], rows)
    return Report([f"{order[0]} is the nearest to no queue and full use over all disciplines."], order, [table, disciplines])


def check_signs(results: Results) -> list[Sign]:
    """Return the published orders of scenario 5.2, an aggressive sender, with CUBIC and NewReno in place of BIC."""
    found = []
    source = "ns-3's AQM suite, scenario 5.2 (a plot; its sender is not recorded)"
    at = {aqm: results.select_cells(aqm=aqm, number="5.1.1") for aqm in MANAGED}
    for name in ("cubic", "newreno"):
        delay, good = (
            {aqm: float(results.get_values(name, key, one)[0]) if one else math.nan for aqm, one in at.items()}
            for key in ("queue_ms", "goodput")
        )
        known = all(map(math.isfinite, [*delay.values(), *good.values()]))
        order = sorted(PUBLISHED, key=lambda aqm: PUBLISHED[aqm][0])
        here = sorted(delay, key=lambda aqm: delay[aqm])
        says = f"{name}, queue delay: {' < '.join(DISPLAY_NAMES[aqm] for aqm in order)}"
        found.append(Sign(says, source, here == order if known else None, ", ".join(f"{a} {delay[a]:.1f} ms" for a in here)))
        order = sorted(PUBLISHED, key=lambda aqm: -PUBLISHED[aqm][1])
        here = sorted(good, key=lambda aqm: -good[aqm])
        says = f"{name}, goodput: {' > '.join(DISPLAY_NAMES[aqm] for aqm in order)}"
        shown = ", ".join(f"{a} {100 * good[a]:.1f} %" for a in here)
        found.append(Sign(says, source, here == order if known else None, shown, _explain_droptail()))
    return found


def _explain_droptail() -> str:
    """Return the reason why drop-tail's goodput is the highest here."""
    path = _make_world("droptail", [{}], "path")
    held = path.capacity_mbps * path.propagation_rtt_ms() * 125 / PACKET_BYTES
    low, high = (pick(mbps for _, mbps in PUBLISHED.values()) for pick in (min, max))
    return (
        f"drop-tail's {LIMIT} packets are {LIMIT / held:.1f} times what the path holds, so that it never runs empty here; the "
        f"published goodputs ({low:.2f} to {high:.2f} of a link that is never short of data) are of a sender that loses time"
    )


SUITE = FieldSuite(
    name="rfc7928",
    summary="RFC 7928 as coded for ns-3 behind drop-tail, RED, CoDel, PIE, and flent's grid behind FQ-CoDel",
    load=make_loader(2, lambda: list(make_cells())),
    measure=make_measure(METRICS),
    sample_s=0.1,
    metrics=METRICS,
    scatter=("queue_ms", "goodput"),
    families=FAMILIES,
    source="rahulkumdas/Upgrade-AQM-Evaluation-Suite-of-ns-3 (aqm-eval-suite), shashank68/aqm-evaluation; RFC 7928",
    rules=(
        "No ranking is published. Ours: the distance of the centre of the ellipse (queue delay / 100 ms, goodput / "
        "capacity) from (0, 1); "
        "controllers by their mean place over the disciplines, disciplines by the distance, ties by the ellipse's area.",
        "Controllers send wherever the suite has NewReno; the aggressive sender of 5.2 is the controller (scenario 5.1.1).",
        "Segments of 698 bytes, initial windows of 3, queues of 45 packets, 500 where the rate changes; Linux's "
        "stack, not ns-3's. RED, CoDel and PIE have the source's parameters, the rest as ns-3.44 has it. The way "
        "back has no limit.",
        "Behind FQ-CoDel each way has a bottleneck and its queue, and the way there links of ten times the rate at both ends.",
        "In worlds without ECN no discipline marks, so that senders that always speak ECN (dctcp, prague) do without too.",
    ),
    judge=judge,
    signs=check_signs,
    not_run=(
        OmittedWorlds("5.3.1, datagrams alone", "nothing: no controller plays in it"),
        OmittedWorlds(
            "RFC 7928's sections 7 (web, video, constant rate, bulk) and 9 to 12", "nothing: ns-3's suite lacks them"
        ),
        OmittedWorlds("Adaptive RED, Feng's RED, nonlinear RED, COBALT: 27 worlds each", "these disciplines"),
        OmittedWorlds("flent behind FQ-PIE and CAKE: 144 worlds", "these disciplines"),
    ),
)
