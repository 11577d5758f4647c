"""Worlds that RFC 9743 asks to consider for a new congestion control; a row for every MUST and SHOULD, beside CUBIC's value.

The RFC (draft-ietf-ccwg-rfc5033bis, edbe64b) names settings and no thresholds: worlds, measures and flags are ours. Every flag
is raised against CUBIC in the same worlds, some only beyond an absolute amount as well. Every world is run with three seeds,
which determine losses, short flows, and a delay of each flow's start by up to one round trip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, pairwise, product
from typing import Any

import numpy as np

from netbuf_gym import traces
from netbuf_gym.evaluation.suites.field.suite import (
    PACKET_BITS,
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
)
from netbuf_gym.evaluation.suites.recorder import Record
from netbuf_gym.evaluation.suites.suite import Metric
from netbuf_gym.evaluation.summary import find_range, format_flows
from netbuf_gym.scenarios import (
    PIE,
    RED,
    CoDel,
    DelaySchedule,
    Flow,
    FqCoDel,
    GilbertElliott,
    Jitter,
    Link,
    LossSchedule,
    Scenario,
    UdpSource,
)
from netbuf_gym.scenarios.flows import Sized
from netbuf_gym.scenarios.sizes import WEB_SEARCH
from netbuf_gym.scenarios.traffic import Probe
from netbuf_gym.scenarios.types import AGENT
from netbuf_gym.simulation.results.traffic import ENOUGH
from netbuf_gym.traces import RateTrace, Trace
from netbuf_gym.utils.statistics import jain_index

WARM_S, SEEDS, SAMPLE_S = 10.0, (1, 2, 3), 0.1
OTHERS = ("cubic", "newreno", "bbr")
GRID = tuple(product((4, 20, 100, 500), (10, 40, 120, 300), (0.25, 1, 4)))
"""Mbit/s, ms, and buffers in multiples of what the path holds."""
MIXED = tuple(product(OTHERS, ((1, 1), (1, 8), (8, 1)), (20, 100), (0.25, 1, 4, 16)))
"""Other control, numbers of own and other flows, ms, buffers."""
MANAGED: Mapping[str, Callable[..., Any]] = {"red": RED, "codel": CoDel, "fq_codel": FqCoDel, "pie": PIE}
SHORT = {"short": (AGENT, AGENT), "short-cubic": (AGENT, "cubic"), "long-cubic": ("cubic", AGENT)}
"""Controls of the long flow and of the short flows."""
NOBODY = "nobody"
HONEST, RECEIVERS = "honest", ("split", "spoofed", "optimistic")
"""Receivers that misbehave (`netbuf_gym.scenarios.Flow.misbehaviour`), and those that do not (`HONEST`)."""
SEND_BUFFER_BYTES = 4 << 20
"""Linux's maximum, `tcp_wmem`: the only limit of a sender whose receiver anticipates ACKs."""
LATE_SHARES, LATE_PLACES, SLOTS = (0.001, 0.01, 0.1), (1, 10, 100), 10_000
Measure = Callable[[Record], dict[str, float]]


class _WorldBuilder:
    """Builder of the worlds of one seed."""

    def __init__(self, seed: int):
        self.seed = seed
        self.cells: list[FieldCell] = []

    def add(
        self,
        family: str,
        about: dict[str, Any],
        flows: Sequence[tuple[str, float]],
        duration_s: float,
        *,
        rate: float = 20.0,
        rtt: float = 40.0,
        q: float = 1.0,
        queue: int | None = None,
        measure: Measure | None = None,
        short: Sequence[Flow] = (),
        bottleneck: dict[str, Any] | None = None,
        back: dict[str, Any] | None = None,
        fields: Mapping[str, Mapping[str, Any]] | None = None,
        starts: str | None = None,
        **more: Any,
    ) -> None:
        """Add a world: flows over a bottleneck of `rate` Mbit/s, `rtt` ms and a buffer of q times what the path holds.

        Args:
            about: Parameters that distinguish it within its family.
            flows: Control and start time of each flow; the start is later by up to a round trip, drawn from the seed.
            queue: Buffer in packets, instead of `q`.
            short: Further flows, unchanged.
            bottleneck, back: Fields of these links.
            fields: Further fields of flows, by their control.
            starts: Worlds with the same value share start times; None: own start times.
        """
        name = "-".join([family, *(f"{key}{value}" for key, value in about.items())])
        rng = np.random.default_rng(derive_seed(starts or name, self.seed))
        own = {"delay_ms": rtt / 2, "queue_packets": queue or compute_queue(rate, rtt, q), **(bottleneck or {})}
        links = [
            Link(name="bottleneck", rate_mbps=None if "trace" in own else rate, **own),
            Link(name="return", **{"delay_ms": rtt / 2, **(back or {})}),
        ]
        late = rng.uniform(0, rtt * 1e-3, len(flows))
        made = [
            Flow(cc=cc, path=(0,), return_path=(1,), start_s=at + float(x), **(fields or {}).get(cc, {}))
            for (cc, at), x in zip(flows, late, strict=True)
        ]
        scenario = Scenario(links=links, flows=[*made, *short], duration_s=duration_s, name=name, **more)
        self._add_cell(name, family, scenario, measure, {"rate": rate, "rtt": rtt, "q": q, **about})

    def add_paths(
        self, family: str, about: dict[str, Any], rtts: Sequence[float], rate: float, q: float, duration_s: float
    ) -> None:
        """Add a world of flows with different round trips through one bottleneck, with the buffer of the longest."""
        name = "-".join([family, *(f"{key}{value}" for key, value in about.items())])
        rng = np.random.default_rng(derive_seed(name, self.seed))
        links = [Link(name="bottleneck", rate_mbps=rate, queue_packets=compute_queue(rate, max(rtts), q))]
        flows = []
        for k, rtt in enumerate(rtts):
            links.append(Link(name=f"return-{k}", delay_ms=rtt))
            flows.append(Flow(cc=AGENT, path=(0,), return_path=(k + 1,), start_s=float(rng.uniform(0, rtt * 1e-3))))
        scenario = Scenario(links=links, flows=flows, duration_s=duration_s, name=name)
        self._add_cell(name, family, scenario, _measure_rtt_ratio, {"rate": rate, "rtt": max(rtts), "q": q, **about})

    def _add_cell(self, name: str, family: str, scenario: Scenario, measure: Measure | None, about: dict[str, Any]) -> None:
        def measured(record: Record) -> dict[str, float]:
            return {**measure_basics(record), **(measure(record) if measure else {})}

        name = f"{name}-{self.seed}"
        about = {**about, "seed": self.seed}
        self.cells.append(FieldCell(name, family, scenario, derive_seed(name), measure=measured, about=about))


def _find_agents(scenario: Scenario) -> list[int]:
    return [i for i, flow in enumerate(scenario.flows) if flow.cc == AGENT]


def _get_warm_up_s(record: Record) -> float:
    """Return the time that statistics leave out, s: `WARM_S`, or a tenth of the duration if that is at most 2 `WARM_S`."""
    lasts_s = record.scenario.duration_s
    return WARM_S if lasts_s > 2 * WARM_S else lasts_s / 10


def _split_seconds(start: float, end: float, step: float = 1.0) -> np.ndarray:
    return np.linspace(start, end, max(2, round((end - start) / step) + 1))


def measure_basics(record: Record) -> dict[str, float]:
    """Return the metrics of every world: use of the link, the queue, losses of the controller's flows, the worst of these."""
    scenario, warm = record.scenario, _get_warm_up_s(record)
    own, end = _find_agents(scenario), scenario.duration_s
    whole, fine = (warm, end), _split_seconds(warm, end, SAMPLE_S)
    headers = scenario.data_bytes / scenario.mss
    used = sum(float(record.goodput_mbps(i, whole)[0]) for i in range(len(scenario.flows)))
    base = max(scenario.propagation_rtt_ms(i) for i in own)
    p95 = record.queue_quantile_ms(0.95, fine)
    return {
        "utilisation": used * headers / float(record.capacity_mbps(whole)[0]),
        "queue_ms": p95,
        "queue_rtt": p95 / base,
        "drops": _drop_share(record, own, whole),
        "loss_1s": _worst_drop_share(record, own, 1),
        "loss_10s": _worst_drop_share(record, own, 10),
    }


def _drop_share(record: Record, flows: Sequence[int], span: tuple[float, float]) -> float:
    """Return the share of the packets sent by flows in a time span that the queue drops."""
    sent, drops = (
        sum(float(record.get_flow_increase(i, key, span)[0]) for i in flows) for key in ("packets_sent", "queue_drops")
    )
    return drops / max(sent, 1.0)


def _worst_drop_share(record: Record, flows: Sequence[int], seconds: int) -> float:
    """Return the highest share of drops over a number of whole seconds; fewer than ten packets a second count as ten."""
    each = _split_seconds(0, record.scenario.duration_s)
    sent, drops = (
        np.sum([record.get_flow_increase(i, key, each) for i in flows], axis=0) for key in ("packets_sent", "queue_drops")
    )
    together = np.ones(min(seconds, len(sent)))
    sent, drops = (np.convolve(one, together, "valid") for one in (sent, drops))
    return float(np.max(drops / np.maximum(sent, 10 * len(together))))


def _measure_fairness(record: Record) -> dict[str, float]:
    """Return Jain's index over the last minute, and the time from the last start until it stays at 0.9 for 5 s."""
    own, end = _find_agents(record.scenario), record.scenario.duration_s
    last = max(record.scenario.flows[i].start_s for i in own)
    final = np.array([record.goodput_mbps(i, (end - 60, end))[0] for i in own])
    each = np.stack([record.goodput_mbps(i, _split_seconds(last, end)) for i in own])
    even = np.array([jain_index(each[:, t : t + 5].mean(axis=1), 0.0) for t in range(each.shape[1] - 5)]) >= 0.9
    return {"jain": jain_index(final, 0.0), "converge_s": float(np.argmax(even)) if even.any() else end - last}


def _measure_rtt_ratio(record: Record) -> dict[str, float]:
    """Return the goodput of the flow with the longer round trip over that with the shorter."""
    end = record.scenario.duration_s
    short, long = (float(record.goodput_mbps(i, (WARM_S, end))[0]) for i in (0, 1))
    return {"ratio": long / short if short else math.nan}


def _measure_blackout(record: Record) -> dict[str, float]:
    """Return the packets sent without feedback, from a second after its loss began, and the time to 80 % after its return."""
    sent = sum(float(record.get_flow_increase(i, "packets_sent", (21, 30))[0]) for i in _find_agents(record.scenario))
    return {"sends": sent, **_measure_recovery(record, 30.0)}


def _measure_recovery(record: Record, after_s: float, share: float = 0.8) -> dict[str, float]:
    """Return the seconds after `after_s` until all flows together use a share of the link's capacity over a second."""
    scenario = record.scenario
    times = np.arange(after_s, scenario.duration_s - 0.95, SAMPLE_S)

    def count_seconds(count: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        return count(times + 1) - count(times)

    bits = sum(8 * count_seconds(partial(record.flow_count, i, "delivered_bytes")) for i in range(len(scenario.flows)))
    carried = bits / np.maximum(count_seconds(partial(record.link_count, scenario.bottleneck, "offered_bits")), 1e-3)
    reached = carried >= share * record.scenario.mss / record.scenario.data_bytes
    return {"recover_s": float(times[np.argmax(reached)] - after_s) if reached.any() else float(times[-1] + 1 - after_s)}


def _measure_duplicates(record: Record) -> dict[str, float]:
    """Return the share of arriving packets that had arrived before."""
    whole, scenario = (WARM_S, record.scenario.duration_s), record.scenario
    arrived, new = (
        sum(float(record.get_flow_increase(i, k, whole)[0]) for i in _find_agents(scenario))
        for k in ("arrived_bytes", "delivered_bytes")
    )
    return {"duplicates": max(0.0, 1 - new / arrived) if arrived else 1.0}


def find_short_flows(scenario: Scenario) -> list[int]:
    """Return the indices of the flows of a fixed size."""
    return [i for i, flow in enumerate(scenario.flows) if isinstance(flow.app, Sized)]


def _measure_completion(first: int) -> Measure:
    """Return a measure of short flows, behind `first` long ones: completion time over the least possible.

    Flows that never end count until the end of the world.
    """

    def measure(record: Record) -> dict[str, float]:
        scenario, stats = record.scenario, record.world.flow_stats()
        slow = []
        for i in find_short_flows(scenario):
            flow = scenario.flows[i]
            assert isinstance(flow.app, Sized)
            done = stats[i]["completion_s"]
            took = (done if math.isfinite(done) else scenario.duration_s) - flow.start_s
            bits = flow.app.size_bytes * 8e-6 * scenario.data_bytes / scenario.mss
            slow.append(took / (scenario.propagation_rtt_ms(i) * 1e-3 + bits / scenario.capacity_mbps))
        found = {f"slowdown_p{share}": float(np.quantile(slow, share / 100)) if slow else math.nan for share in (50, 99)}
        long = [record.goodput_mbps(i, (WARM_S, scenario.duration_s))[0] for i in range(first)]
        return {**found, "long_mbps": float(np.mean(long)) if long else math.nan}

    return measure


def _measure_others(record: Record) -> dict[str, float]:
    """Return other flows' share of their fair share, the harm, whether one of them starves, and their share of dropped packets.

    Harm is what they lack of the capacity that they would have together if alone.
    """
    scenario = record.scenario
    whole = (WARM_S, scenario.duration_s)
    others = [i for i in range(len(scenario.flows)) if i not in _find_agents(scenario)]
    most = scenario.capacity_mbps * scenario.mss / scenario.data_bytes
    had = np.array([record.goodput_mbps(i, whole)[0] for i in others])
    share = had / (most / len(scenario.flows))
    return {
        "others_share": float(share.mean()),
        "harm": float(1 - had.sum() / most),
        "starved": float((share < 0.1).any()),
        "others_drops": _drop_share(record, others, whole),
    }


def _measure_real_time(record: Record) -> dict[str, float]:
    probe = np.concatenate([np.asarray(one) for one in record.world.probe_delays()])
    (source,) = record.world.udp_stats()
    sent = max(source["packets_sent"], 1)
    ninety_nine = float(np.quantile(probe, 0.99)) * 1e3 if len(probe) else math.nan
    return {"probe_p99_ms": ninety_nine, "met": source["packets_received"] / sent, "cross_loss": source["queue_drops"] / sent}


def _measure_phases(*bounds: float, share: float = 0.8) -> Measure:
    """Return a measure of phases, without the first 20 % of each: least use of the link, and least later use over the first.

    Also the longest time to a share of the link, and the longest queue, 95th percentile over packets of a whole phase.
    """

    def measure(record: Record) -> dict[str, float]:
        uses, reach, queues = [], [], []
        headers = record.scenario.data_bytes / record.scenario.mss
        for start, end in pairwise(bounds):
            span = (start + 0.2 * (end - start), end)
            used = sum(float(record.goodput_mbps(i, span)[0]) for i in _find_agents(record.scenario)) * headers
            uses.append(used / float(record.capacity_mbps(span)[0]))
            reach.append(min(_measure_recovery(record, start, share)["recover_s"], end - start))
            queues.append(record.queue_quantile_ms(0.95, _split_seconds(start, end, SAMPLE_S)))
        return {
            "phase_use": min(uses),
            "kept": min(uses[1:]) / uses[0] if uses[0] else 0.0,
            "reach_s": max(reach),
            "phase_queue_ms": float(np.nanmax(queues)) if np.isfinite(queues).any() else math.nan,
        }

    return measure


def _measure_start(record: Record) -> dict[str, float]:
    """Return the seconds from the start to 90 % of the link."""
    return {"reach_s": _measure_recovery(record, 0.0, 0.9)["recover_s"]}


def _measure_thin_path(record: Record) -> dict[str, float]:
    whole, own = (0.0, record.scenario.duration_s), _find_agents(record.scenario)
    kilobytes = sum(float(record.get_flow_increase(i, "delivered_bytes", whole)[0]) for i in own) / 1e3
    acks, expired = (
        sum(float(record.get_flow_increase(i, key, whole)[0]) for i in own) for key in ("acks_received", "timeouts")
    )
    return {"acks_per_kb": acks / max(kilobytes, 1e-9), "timeouts": expired}


def _measure_disturbance(until_s: float) -> Measure:
    def measure(record: Record) -> dict[str, float]:
        scenario = record.scenario
        others = [i for i in range(len(scenario.flows)) if i not in _find_agents(scenario)]
        span = (20.0, until_s)
        sent, lost = (
            sum(float(record.get_flow_increase(i, k, span)[0]) for i in others) for k in ("packets_sent", "queue_drops")
        )
        for source in record.world.udp_stats() if scenario.udp else []:
            sent, lost = source["packets_sent"], source["queue_drops"]
        cross = {"cross_loss": lost / sent} if sent else {}
        return {**_measure_recovery(record, until_s), **cross}

    return measure


def make_short_flows(cc: str, load: float, seed: int, rate: float = 20.0, duration_s: float = 120.0) -> list[Flow]:
    """Return finite flows of web-search sizes that arrive at random, with this load of the link together.

    They are as many as such a load has in the mean, of the sizes of as many evenly spaced quantiles, scaled to the load (by up
    to a fifth): few flows drawn one by one carry between a seventh of the load and one and a half of it.
    """
    rng = np.random.default_rng(seed)
    first_s, last_s = 1.0, duration_s - 10
    carried = load * rate * (last_s - first_s) * 1e6 / 8
    number = round(carried / WEB_SEARCH.mean_bytes)
    times = np.sort(rng.uniform(first_s, last_s, number))
    sizes = WEB_SEARCH.quantile((np.arange(number) + 0.5) / number)
    sizes = rng.permutation(sizes * (carried / sizes.sum()))
    return [
        Flow(cc=cc, path=(0,), return_path=(1,), start_s=float(at), app=Sized(size_bytes=max(1, round(float(size)))))
        for at, size in zip(times, sizes, strict=True)
    ]


def make_cells() -> list[FieldCell]:
    """Return all worlds, each with every seed."""
    cells = []
    for seed in SEEDS:
        of = _WorldBuilder(seed)
        _add_solo_worlds(of, seed)
        _add_shared_worlds(of, seed)
        _add_harsh_worlds(of, seed)
        cells += of.cells
    return cells


def _add_solo_worlds(of: _WorldBuilder, seed: int) -> None:
    alone = [(AGENT, 0.0)]
    for rate, rtt, q in GRID:
        of.add("grid", {"rate": rate, "rtt": rtt, "q": q}, alone, 60, rate=rate, rtt=rtt, q=q)
    gone = {"loss": LossSchedule([0, 20, 30], [0, 1, 0])}
    of.add("collapse", {"lost": "data"}, alone, 60, measure=_measure_blackout, bottleneck=gone)
    of.add("collapse", {"lost": "acks"}, alone, 60, measure=_measure_blackout, back={**gone, "loss_on_acks": True})
    for n in (64, 200):
        of.add("collapse", {"flows": n}, [(AGENT, 0.0)] * n, 60, rate=1, queue=20, measure=_measure_duplicates)
    losses: dict[str, dict[str, Any]] = {f"loss{p:g}": {"loss": p} for p in (1e-4, 1e-3, 1e-2)}
    for burst in (4, 16):
        bad = 1 / burst
        losses[f"burst{burst}"] = {"gilbert_elliott": GilbertElliott(p_good_to_bad=0.01 * bad / 0.99, p_bad_to_good=bad)}
    for kind in ("4g", "5g", "wifi"):
        losses[kind] = {"trace": _make_wireless_trace(kind, seed)}
    for kind, link in losses.items():
        of.add("wireless", {"path": kind}, alone, 60, bottleneck=link)
    for to in (20, 80, 160, 400):
        delays = {"delay_ms": DelaySchedule([0, 30, 60], [20, to - 20 if to > 20 else 0, 20])}
        of.add("delay", {"to": to}, alone, 90, bottleneck=delays, measure=_measure_phases(10, 30, 60, 90, share=0.9))
    for scale, reorder in product((5, 20), (False, True)):
        jitter = {"jitter": Jitter(scale_ms=scale, reorder=reorder)}
        about: dict[str, Any] = {"jitter": scale, "reorder": reorder}
        of.add("delay", about, alone, 90, bottleneck=jitter, measure=_measure_phases(10, 30, 60, 90, share=0.9))
    for kbps, rtt in product((64, 250), (200, 1000)):
        about = {"kbps": kbps, "rtt": rtt}
        thin: dict[str, Any] = {"rate": kbps / 1e3, "rtt": rtt, "queue": 4, "mss_bytes": 536}
        of.add("iot", about, alone, 120, **thin, measure=_measure_thin_path)
    for rate, q, loss in product((20, 100), (0.25, 1), (0.0, 1e-4)):
        about = {"rate": rate, "q": q, "loss": loss}
        of.add("satellite", about, alone, 120, rate=rate, rtt=600, q=q, bottleneck={"loss": loss}, measure=_measure_start)
    for share, places in product(LATE_SHARES, LATE_PLACES):
        late = {"delay_ms": _make_late_schedule(share, places, 20, 20, derive_seed("late", share, places, seed))}
        of.add("reorder", {"share": share, "places": places}, alone, 60, bottleneck=late, measure=_measure_duplicates)
    ways = [(20, 40), (5, 120), (100, 20)]
    for q, turned in product((0.25, 1, 4), (False, True)):
        path = ways[::-1] if turned else ways
        changing = {
            "trace": RateTrace([0, 20, 40], [rate for rate, _ in path]),
            "delay_ms": DelaySchedule([0, 20, 40], [rtt for _, rtt in path]),
            "queue_packets": compute_queue(*path[0], q),
        }
        about, back = {"q": q, "reverse": turned}, {"delay_ms": 0.0}
        of.add("path", about, alone, 60, q=q, bottleneck=changing, back=back, measure=_measure_phases(0, 20, 40, 60))


def _make_wireless_trace(kind: str, seed: int) -> Trace:
    """Return a generated trace of about 20 Mbit/s, so that the family's buffer is about what the path holds."""
    seeds = (derive_seed("wireless", kind, seed, number) for number in count())
    drawn = (traces.generate(kind, duration_s=60.0, seed=one, mean_mbps=20.0) for one in seeds)
    return next(trace for trace in drawn if 10 <= trace.mean_mbps(60) <= 40)


def _add_shared_worlds(of: _WorldBuilder, seed: int) -> None:
    for n, q in product((2, 8, 32), (0.1, 0.25, 0.5, 1, 1.5, 4)):
        of.add("shallow", {"flows": n, "q": q}, [(AGENT, 0.0)] * n, 60, rate=50, q=q)
    for n, rtt, q in product((2, 4, 16), (20, 100), (0.25, 1, 4)):
        joining = [(AGENT, 5.0 * i) for i in range(n)]
        about: dict[str, Any] = {"flows": n, "rtt": rtt, "q": q}
        of.add("intra", about, joining, 60 + max(60, 5 * n), rate=50, rtt=rtt, q=q, measure=_measure_fairness)
    for rtt, q in product((40, 100, 200), (0.25, 1, 4)):
        of.add_paths("rtt", {"rtt": rtt, "q": q}, (20, rtt), 50, q, 120)
    for family, (long, cc) in SHORT.items():
        for q, load in product((1, 4), (0.1, 0.3, 0.5)):
            short = make_short_flows(cc, load, derive_seed("short", load, of.seed))
            of.add(family, {"q": q, "load": load}, [(long, 0.0)], 120, q=q, short=short, measure=_measure_completion(1))
    for other, (ours, theirs), rtt, q in MIXED:
        flows = [(AGENT, 0.0)] * ours + [(other, 0.0)] * theirs
        about = {"other": other, "ours": ours, "theirs": theirs, "rtt": rtt, "q": q}
        of.add("mixed", about, flows, 120, rate=50, rtt=rtt, q=q, measure=_measure_others)
    for q, mbps in product((1, 4), (1, 2.5)):
        source, about = [UdpSource(path=(0,), rate_mbps=mbps, packet_bytes=1200)], {"q": q, "mbps": mbps}
        probes = [Probe(path=(0,), interval_s=0.02, start_s=WARM_S)]
        of.add("realtime", about, [(AGENT, 0.0)], 120, q=q, udp=source, probes=probes, measure=_measure_real_time)
    marks = {cc: {"ecn": True} for cc in (AGENT, "cubic")}
    limit = compute_queue(50, 40, 4)
    for (aqm, discipline), n, mixed in product(MANAGED.items(), (1, 8), (False, True)):
        flows = [(AGENT, 0.0)] * n + [("cubic", 0.0)] * (n * mixed)
        about = {"aqm": aqm, "flows": n, "cubic": mixed}
        for family, marking in (("aqm", False), ("ecn", True)):
            own, ecn = {"discipline": discipline(ecn=marking), "queue_packets": limit}, marks if marking else None
            of.add(family, about, flows, 60, rate=50, bottleneck=own, fields=ecn, measure=_measure_managed_queue)
    for n, other in product((1, 8), (NOBODY, "cubic", "prague")):  # DualPI2 has a queue each for classic and L4S packets
        flows = [(AGENT, 0.0)] * n + [(other, 0.0)] * (n * (other != NOBODY))
        own, about = {"discipline": "dualpi2", "queue_packets": limit}, {"flows": n, "other": other}
        of.add("l4s", about, flows, 60, rate=50, bottleneck=own, fields=marks, measure=_measure_managed_queue)
    for receiver, q in product((HONEST, *RECEIVERS), (1, 4)):
        fields = {"send_buffer_bytes": SEND_BUFFER_BYTES, "misbehaviour": None if receiver == HONEST else receiver}
        flows = [(AGENT, 0.0), ("cubic", 0.0)]
        about, same = {"receiver": receiver, "q": q}, f"misbehave-{q}"
        of.add("misbehave", about, flows, 60, q=q, fields={AGENT: fields}, starts=same, measure=_measure_misled)


def _measure_managed_queue(record: Record) -> dict[str, float]:
    """Return Jain's index of all flows, the median queue, and the share of packets that the queue marked."""
    at, whole = record.scenario.bottleneck, (WARM_S, record.scenario.duration_s)
    marks, came = (float(record.get_link_increase(at, key, whole)[0]) for key in ("marks", "packets_in"))
    return {
        "jain": jain_index([record.goodput_mbps(i, whole)[0] for i in range(len(record.scenario.flows))], 0.0),
        "queue_p50_ms": record.queue_quantile_ms(0.5, _split_seconds(*whole, SAMPLE_S)),
        "marked": marks / came if came else math.nan,
    }


def _measure_misled(record: Record) -> dict[str, float]:
    """Return the rate that the controller sends, Mbit/s, and the metrics of the other flows."""
    whole = (WARM_S, record.scenario.duration_s)
    sent = sum(float(record.get_flow_increase(i, "packets_sent", whole)[0]) for i in _find_agents(record.scenario))
    return {**_measure_others(record), "sent_mbps": sent * PACKET_BITS * 1e-6 / (whole[1] - whole[0])}


def _make_late_schedule(share: float, places: int, rate: float, delay_ms: float, seed: int) -> DelaySchedule:
    """Return a delay that is longer for a random share of the packets, each overtaken by so many others on a full link.

    It is longer for the time that the link takes for one packet, by the time that it takes for the others and a half.
    """
    slot_s = PACKET_BITS * 1e-6 / rate
    late = np.random.default_rng(seed).permutation(SLOTS) < round(share * SLOTS)
    starts = np.flatnonzero(np.diff(late, prepend=~late[0]))
    delays = delay_ms + late[starts] * (places + 0.5) * slot_s * 1e3
    return DelaySchedule(starts * slot_s, delays, period_s=SLOTS * slot_s, reorder=True)


def _add_harsh_worlds(of: _WorldBuilder, seed: int) -> None:
    alone = [(AGENT, 0.0)]
    for gone in (0.1, 0.5, 2.0, 10.0):
        outage = {"trace": RateTrace([0, 20, 20 + gone], [20, 0, 20])}
        of.add("transient", {"outage": gone}, alone, 60, bottleneck=outage, measure=_measure_disturbance(20 + gone))
    crowd = [Flow(cc="cubic", path=(0,), return_path=(1,), start_s=20.0 + 0.005 * k, stop_s=40.0) for k in range(8)]
    of.add("transient", {"cubic": 8}, alone, 60, short=crowd, measure=_measure_disturbance(40.0))
    flood = [UdpSource(path=(0,), rate_mbps=15, start_s=20.0, stop_s=40.0)]
    of.add("transient", {"udp": 15}, alone, 60, udp=flood, measure=_measure_disturbance(40.0))
    of.add("dc", {"flows": 2}, [(AGENT, 0.0)] * 2, 2, rate=10_000, rtt=0.1, queue=200)
    rng = np.random.default_rng(derive_seed("incast", seed))
    burst = [
        Flow(cc=AGENT, path=(0,), return_path=(1,), start_s=0.01 * k + late, app=Sized(size_bytes=64_000))
        for k in range(1, 65)  # 1,024 flows; time is left for what has to wait for a time-out
        for late in np.sort(rng.uniform(0, 1e-4, 16)).tolist()
    ]
    of.add("dc", {"incast": 16}, [], 2, rate=10_000, rtt=0.1, queue=200, short=burst, measure=_measure_completion(0))


REFERENCE = "cubic"
MUST, SHOULD, INFORMATIVE = "MUST", "SHOULD", "i"
MOST_DROPS, LEAST_USE = 0.05, 0.5
"""Limits beyond which a world of the grid is counted."""
BREAKS = 0.5
"""Share of drops over 10 s at which a circuit breaker trips."""


@dataclass(frozen=True)
class Flag:
    """Condition under which a value is flagged, given CUBIC's; `str` describes it.

    Attributes:
        factor: Factor of CUBIC's value.
        floor: Further bound that a value must be beyond; None: none.
        unit: Unit of the floor, with its leading space.
        direction: "over" or "under": side of the bounds that is flagged.
    """

    factor: float
    floor: float | None = None
    unit: str = ""
    direction: str = "over"

    def __call__(self, value: float, cubic: float) -> bool:
        bounds = [self.factor * cubic, *([] if self.floor is None else [self.floor])]
        return all(value > bound if self.direction == "over" else value < bound for bound in bounds)

    def __str__(self) -> str:
        times = {1.0: "", 2.0: "twice "}.get(self.factor, f"{self.factor:g} times ")
        floor = "" if self.floor is None else f" and {self.direction} {self.floor:g}{self.unit}"
        return f"{self.direction} {times}CUBIC's{floor}"


def flag_less(factor: float) -> Flag:
    """Return a flag for values of less than this factor times CUBIC's."""
    return Flag(factor, direction="under")


@dataclass(frozen=True)
class Criterion:
    """Row of the table.

    Attributes:
        sections: Sections of the RFC.
        level: MUST, SHOULD, or i: informative.
        says: What is measured, with the unit.
        value: Returns a controller's value over its worlds; NaN if there is none.
        flag: Condition of the flag; None: never flagged.
        digits: Decimal places.
        short_flows: Parameters of the worlds over whose short flows the value is a percentile; {}: it is none.
    """

    sections: str
    level: str
    says: str
    value: Callable[[Results, str], float]
    flag: Flag | None
    digits: int = 2
    short_flows: Mapping[str, Any] = field(default_factory=dict)

    def describe(self, results: Results) -> str:
        """Return what is measured, with the number of flows in a world that a percentile is of."""
        cells = results.select_cells(**self.short_flows) if self.short_flows else []
        flows = find_range(np.array([len(find_short_flows(cell.scenario)) for cell in cells]))
        return self.says if flows is None else f"{self.says}, of {format_flows(flows)}"


def _count_worlds(settings: Sequence[Any]) -> int:
    """Return the number of worlds of these settings."""
    return len(settings) * len(SEEDS)


def _mean(family: str, key: str, factor: float = 1.0, **about: Any) -> Callable[[Results, str], float]:
    return lambda results, name: factor * results.mean(name, key, family=family, **about)


def _count_bad_worlds(results: Results, name: str) -> float:
    """Return the number of worlds of the grid with too many drops or too little use."""
    cells = results.select_cells(family="grid")
    use, drops = (results.get_values(name, key, cells) for key in ("utilisation", "drops"))
    return float((~(drops <= MOST_DROPS) | ~(use >= LEAST_USE)).sum()) if np.isfinite(use).any() else math.nan


def _excess_harm(results: Results, name: str) -> float:
    """Return mean harm less that of CUBIC in the same place, over pairs of one against one and few against many."""
    cells = results.select_cells(family="mixed")
    own, cubic = (results.get_values(one, "harm", cells) for one in (name, REFERENCE))
    known = np.isfinite(own) & np.isfinite(cubic)
    return float((own - cubic)[known].mean()) if known.any() else math.nan


def _excess_starved(family: str, **about: Any) -> Callable[[Results, str], float]:
    """Return a function that counts worlds in which another flow starves, but not beside CUBIC."""

    def value(results: Results, name: str) -> float:
        cells = results.select_cells(family=family, **about)
        own, cubic = (results.get_values(one, "starved", cells) for one in (name, REFERENCE))
        return float(((own > 0) & ~(cubic > 0)).sum()) if np.isfinite(own).any() else math.nan

    return value


def _over_honest(key: str, receivers: Sequence[str]) -> Callable[[Results, str], float]:
    """Return a function for the mean over worlds with such receivers, over that with receivers that do not misbehave."""

    def value(results: Results, name: str) -> float:
        own, honest = (results.mean(name, key, family="misbehave", receiver=one) for one in (list(receivers), HONEST))
        return own / honest if honest else math.nan

    return value


def _worst(key: str) -> Callable[[Results, str], float]:
    """Return a function for the highest value over worlds in which CUBIC stays below `BREAKS` and no receiver misbehaves."""

    def value(results: Results, name: str) -> float:
        cells = results.select_cells(where=lambda cell: cell.about.get("receiver", HONEST) == HONEST)
        own, cubic = results.get_values(name, key, cells), results.get_values(REFERENCE, "loss_10s", cells)
        found = own[np.isfinite(own) & ~(cubic > BREAKS)]
        return 100 * float(found.max()) if len(found) else math.nan

    return value


COUNTED, ANTICIPATING = ("split", "spoofed"), ("optimistic",)
"""Receivers that send more ACKs than there are, and those that acknowledge data that has not arrived."""
SHALLOW = Criterion("5.1.3", SHOULD, "2, 8, 32 flows in shallow buffers, under 1.5 BDP: drops (%)",
                    _mean("shallow", "drops", 100, q=[0.1, 0.25, 0.5, 1]), Flag(3), 2)  # fmt: skip
"""Statement of the RFC on BBR version 1."""
CRITERIA: Sequence[Criterion] = (
    Criterion("5.1.2, 5.1.3, 6, 6.1", MUST, "grid of rates, RTTs and queues, drop-tail: worlds of "
              f"{_count_worlds(GRID)} with over {100 * MOST_DROPS:g} % drops or under {100 * LEAST_USE:g} % of the link",
              _count_bad_worlds, Flag(1), 0),
    Criterion("5.1.1, 5.2", MUST, "packets sent in 9 s in which no data arrive",
              _mean("collapse", "sends", lost="data"), Flag(2), 1),
    Criterion("5.1.1, 5.2", MUST, "packets sent in 9 s in which no ACK arrives",
              _mean("collapse", "sends", lost="acks"), Flag(2), 1),
    Criterion("5.1.1", MUST, "64 and 200 flows on 1 Mbit/s: drops (%)",
              _mean("collapse", "drops", 100, flows=[64, 200]), Flag(1.5, 5, " %"), 1),
    Criterion("5.1.1", MUST, "64 and 200 flows on 1 Mbit/s: arrivals that were there before (%)",
              _mean("collapse", "duplicates", 100, flows=[64, 200]), Flag(1.5, 5, " %"), 1),
    Criterion("5.1.5", MUST, "short flows of its own beside a long one: slowdown, 99th percentile",
              _mean("short", "slowdown_p99"), Flag(1.5), 1, {"family": "short"}),
    Criterion("5.1.5", MUST, "the same: slowdown, median", _mean("short", "slowdown_p50"), Flag(1.5), 1,
              {"family": "short"}),
    Criterion("5.1.5", MUST, "the same: goodput of the long flow (Mbit/s)",
              _mean("short", "long_mbps"), flag_less(0.67), 2),
    Criterion("5.2.3", MUST, "short CUBIC flows beside a long one of its own: slowdown, 99th percentile",
              _mean("short-cubic", "slowdown_p99"), Flag(1.5), 1, {"family": "short-cubic"}),
    Criterion("5.2.3", MUST, "the same: slowdown, median", _mean("short-cubic", "slowdown_p50"), Flag(1.5), 1,
              {"family": "short-cubic"}),
    Criterion("5.2.3", MUST, "short flows of its own beside a long CUBIC one: goodput of the CUBIC flow (Mbit/s)",
              _mean("long-cubic", "long_mbps"), flag_less(0.67), 2),
    Criterion("5.2, 5.2.1", MUST, "beside CUBIC, NewReno and BBR, 1:1, 1:8, 8:1: harm over CUBIC's in its place",
              _excess_harm, Flag(1, 0.1), 3),
    Criterion("5.2", MUST, f"the same: worlds of {_count_worlds(MIXED)} in which others starve that do not beside CUBIC",
              _excess_starved("mixed"), Flag(1), 0),
    Criterion("5.2", MUST, "the same: packets of the others dropped (%)",
              _mean("mixed", "others_drops", 100), Flag(1.5, 1, " %"), 2),
    Criterion("5.2", MUST, "the same: queue, 95th percentile over RTT", _mean("mixed", "queue_rtt"), Flag(1.25), 2),
    Criterion("7.9", MUST, "path changes of rate and delay: least use of the link in a phase (%)",
              _mean("path", "phase_use", 100), flag_less(0.67), 1),
    Criterion("7.9", MUST, "the same: longest time to 80 % of a new path (s)",
              _mean("path", "reach_s"), Flag(2, 5, " s"), 1),
    Criterion("7.9", MUST, "the same: queue, 95th percentile of the worst phase (ms)",
              _mean("path", "phase_queue_ms"), Flag(1.5), 0),
    Criterion("5.1.2", SHOULD, "standing queue on the grid, 95th percentile over RTT, buffers of 1 and 4 BDP",
              _mean("grid", "queue_rtt", q=[1, 4]), Flag(1.25), 2),
    SHALLOW,
    Criterion("5.1.4", SHOULD, "2, 4, 16 flows of its own: Jain's index of the last minute",
              _mean("intra", "jain"), flag_less(0.9), 3),
    Criterion("5.1.4", SHOULD, "the same: time to converge (s)", _mean("intra", "converge_s"), Flag(2, 10, " s"), 1),
    Criterion("5.1.4", SHOULD, "RTTs of 20 against 40, 100, 200 ms: goodput of the longer over the shorter",
              _mean("rtt", "ratio"), flag_less(0.5), 2),
    Criterion("5.2.2", SHOULD, "beside real-time datagrams: delay of small packets, 99th percentile (ms)",
              _mean("realtime", "probe_p99_ms"), Flag(1.25), 1),
    Criterion("5.2.2", SHOULD, "the same: datagrams lost (%)",
              _mean("realtime", "cross_loss", 100), Flag(1.5, 0.5, " %"), 2),
    Criterion("6.3", SHOULD, "wired, one flow: use of the link on the grid (%)",
              _mean("grid", "utilisation", 100), flag_less(0.8), 1),
    Criterion("6.4", SHOULD, "wireless: random and bursty loss, generated 4G, 5G, Wi-Fi: use of the link (%)",
              _mean("wireless", "utilisation", 100), flag_less(0.8), 1),
    Criterion("6.4", SHOULD, "the same: queue, 95th percentile (ms)", _mean("wireless", "queue_ms"), Flag(1.5), 1),
    Criterion("7.1", SHOULD, "behind RED, CoDel, FQ-CoDel, PIE: use of the link (%)",
              _mean("aqm", "utilisation", 100), flag_less(0.8), 1),
    Criterion("7.1", SHOULD, "the same: queue, median (ms)", _mean("aqm", "queue_p50_ms"), Flag(2), 1),
    Criterion("7.1", SHOULD, "the same: queue, 95th percentile (ms)", _mean("aqm", "queue_ms"), Flag(2), 1),
    Criterion("7.1", SHOULD, "the same, as many CUBIC flows beside: Jain's index",
              _mean("aqm", "jain", cubic=True), flag_less(0.8), 3),
    Criterion("7.1", SHOULD, "behind the same, which mark (ECN): use of the link (%)",
              _mean("ecn", "utilisation", 100), flag_less(0.8), 1),
    Criterion("7.1", SHOULD, "the same: queue, median (ms)", _mean("ecn", "queue_p50_ms"), Flag(2), 1),
    Criterion("7.1", SHOULD, "the same: queue, 95th percentile (ms)", _mean("ecn", "queue_ms"), Flag(2), 1),
    Criterion("7.1", SHOULD, "the same, no other flows: packets marked (%)",
              _mean("ecn", "marked", 100, cubic=False), Flag(2, 5, " %"), 2),
    Criterion("7.1", SHOULD, "the same, as many CUBIC flows beside: Jain's index",
              _mean("ecn", "jain", cubic=True), flag_less(0.8), 3),
    Criterion("7.1", SHOULD, "behind DualPI2 with ECN, alone, and as many CUBIC or Prague flows beside: use of the link (%)",
              _mean("l4s", "utilisation", 100), flag_less(0.8), 1),
    Criterion("7.1", SHOULD, "the same: queue, median (ms)", _mean("l4s", "queue_p50_ms"), Flag(2), 1),
    Criterion("7.1", SHOULD, "the same: queue, 95th percentile (ms)", _mean("l4s", "queue_ms"), Flag(2), 1),
    Criterion("7.1", SHOULD, "the same, where others are: Jain's index",
              _mean("l4s", "jain", other=["cubic", "prague"]), flag_less(0.8), 3),
    Criterion("7.2", SHOULD, f"most dropped by queues over 10 s, in worlds in which CUBIC has at most {100 * BREAKS:g} % (%)",
              _worst("loss_10s"), Flag(1, 100 * BREAKS, " %"), 1),
    Criterion("7.2", INFORMATIVE, "the same over a second (%)", _worst("loss_1s"), None, 1),
    Criterion("7.3", SHOULD, "a minimum delay that changes, jitter: least use of the link in a phase (%)",
              _mean("delay", "phase_use", 100), flag_less(0.8), 1),
    Criterion("7.3", SHOULD, "the same: use after a change over that before (%)",
              _mean("delay", "kept", 100), flag_less(0.8), 1),
    Criterion("7.3", SHOULD, "the same: longest time to 90 % (s)", _mean("delay", "reach_s"), Flag(2, 5, " s"), 1),
    Criterion("7.6", SHOULD, "a receiver that splits or repeats ACKs, CUBIC beside: sent (Mbit/s)",
              _mean("misbehave", "sent_mbps", receiver=[*COUNTED]), Flag(2), 1),
    Criterion("7.6", SHOULD, "the same: sent over what is sent to one that does not",
              _over_honest("sent_mbps", COUNTED), Flag(1.5), 2),
    Criterion("7.6", SHOULD, "the same: worlds in which the CUBIC beside starves, and not beside such a CUBIC",
              _excess_starved("misbehave", receiver=[*COUNTED]), Flag(1), 0),
    Criterion("7.7", SHOULD, "0.1, 1, 10 % of packets late by 1, 10, 100 places: use of the link (%)",
              _mean("reorder", "utilisation", 100), flag_less(0.8), 1),
    Criterion("7.7", SHOULD, "the same: arrivals that were there before (%)",
              _mean("reorder", "duplicates", 100), Flag(1.5, 5, " %"), 2),
    Criterion("7.8", SHOULD, "outages, a crowd, a flood: time to 80 % afterwards (s)",
              _mean("transient", "recover_s"), Flag(2, 5, " s"), 1),
    Criterion("7.8", SHOULD, "the same: cross traffic lost (%)",
              _mean("transient", "cross_loss", 100), Flag(1.5, 1, " %"), 2),
    Criterion("7.4", INFORMATIVE, "64 and 250 kbit/s, 4 packets of buffer: use of the link (%)",
              _mean("iot", "utilisation", 100), None, 1),
    Criterion("7.4", INFORMATIVE, "the same: time-outs in 120 s", _mean("iot", "timeouts"), None, 1),
    Criterion("7.4", INFORMATIVE, "the same: ACKs a kilobyte", _mean("iot", "acks_per_kb"), None, 2),
    Criterion("7.5", INFORMATIVE, "satellite, 600 ms: time to 90 % of the link (s)", _mean("satellite", "reach_s"), None, 1),
    Criterion("7.5", INFORMATIVE, "the same: use of the link (%)", _mean("satellite", "utilisation", 100), None, 1),
    Criterion("7.6", INFORMATIVE, "a receiver that anticipates ACKs: sent over what is sent to one that does not",
              _over_honest("sent_mbps", ANTICIPATING), None, 2),
    Criterion("7.6", INFORMATIVE, "the same: goodput of the CUBIC beside over a fair share",
              _mean("misbehave", "others_share", receiver=[*ANTICIPATING]), None, 2),
    Criterion("7.11", INFORMATIVE, "data centre, 10 Gbit/s, 0.1 ms, 2 flows: drops (%)",
              _mean("dc", "drops", 100, flows=2), None, 3),
    Criterion("7.11", INFORMATIVE, "the same, incast of 16: slowdown, 99th percentile",
              _mean("dc", "slowdown_p99", incast=16), None, 1, {"family": "dc", "incast": 16}),
)  # fmt: skip


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
        shown = [f"{v:.{one.criterion.digits}f}" if math.isfinite(v) else "-" for v in (one.value, one.cubic)]
        flag = "" if one.criterion.flag is None else str(one.criterion.flag)
        rows.append(
            [
                one.criterion.level,
                one.criterion.sections,
                one.criterion.describe(results),
                *shown,
                flag,
                "FLAG" if one.flagged else "",
            ]
        )
    return Table(f"{name}, criterion by criterion", ["level", "RFC", "measure", name, REFERENCE, "flagged if", ""], rows)


def judge(results: Results) -> Report:
    """Rank controllers by the number of flagged MUST rows, then of SHOULD rows, with a table for each controller."""
    flags: Mapping[str, list[CriterionResult]] = {name: evaluate_criteria(results, name) for name in results.names}

    def count(name: str, level: str) -> int:
        return sum(one.flagged is True and one.criterion.level == level for one in flags[name])

    order = sorted(results.names, key=lambda name: (count(name, MUST), count(name, SHOULD)))
    musts, shoulds = (sum(one.level == level for one in CRITERIA) for level in (MUST, SHOULD))
    rows = []
    for name in order:
        flagged = [one.criterion.says for one in flags[name] if one.flagged and one.criterion.level == MUST]
        rows.append([name, str(count(name, MUST)), str(count(name, SHOULD)), "; ".join(flagged)])
    header = ["controller", f"MUST rows flagged, of {musts}", f"SHOULD rows flagged, of {shoulds}", "flagged MUST rows"]
    first = [
        f"{name}: {must} of {musts} MUST rows and {should} of {shoulds} SHOULD rows flagged." for name, must, should, _ in rows
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
            "slowdown_p50": "completion over the least possible, median", "slowdown_p99": "the same, 99th percentile (of 16 to "
            "80 flows in a world beside a long flow, of 1,024 in `dc`)",
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
    load=make_loader(2, make_cells),
    measure=make_measure(METRICS),
    sample_s=SAMPLE_S,
    metrics=METRICS,
    scatter=("queue_rtt", "utilisation"),
    families=_FAMILIES,
    source=DRAFT,
    rules=(
        "The RFC asks to consider; it sets no thresholds and no ranking. Flags are ours: against CUBIC in the same worlds.",
        "Controllers stand by their flagged MUST rows, then by their flagged SHOULD rows.",
        "Statistics leave out the first 10 s (of `dc`, which has 2 s, a tenth); each world is run with three seeds.",
        "The RFC's SHOULDs, and what it says in lower case that a control should or ought to do, are SHOULD rows.",
        "Bursts of loss go on from packet to packet, as netem's do: a sender that waits for a time-out is still in one, and "
        "some seeds leave little after it.",
        "DCTCP and Prague always speak ECN, the other controllers in `ecn` and `l4s`; the queues of `aqm` mark no packets.",
        "Short flows that never end count with the time to the end of the world.",
        f"One or two flows decide a 99th percentile below {ENOUGH}: of short flows beside a long one there are 16 to 80.",
        "Receivers that anticipate ACKs raise no flags: CUBIC's own sender, which sees no loss, sends until its send buffer "
        f"({SEND_BUFFER_BYTES / 2**20:g} MiB) is full, so that no controller can be much worse.",
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
