"""The worlds of the Sussex testbeds: the dumbbell of Mininet with netem before a token bucket, and the experiments on it.

netem delays the data alone, by the whole round trip, and loses before the queue; buffers are multiples of rate * 2^20 * RTT / 8
bytes. The token bucket's burst is not modelled: a rate is a rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import Any

import numpy as np

from netbuf_gym.scenarios import DelaySchedule, Flow, Link, LossSchedule, Scenario
from netbuf_gym.suites.field.suite import FieldCell
from netbuf_gym.suites.field.worlds import AGENT, seed_of
from netbuf_gym.suites.recording import Record, known_mean
from netbuf_gym.traces import RateTrace

RATE = 100.0
DELAYS_MS, QUEUES = tuple(range(10, 101, 10)), (0.2, 1, 4)
DRAWS = 50
START_WITHIN_S = 0.1
"""By up to this, as the run says, flows start late (ours): runs of Mininet are never twice the same."""
Measure = Callable[[Record], dict[str, float]]
Place = tuple[str, float, float]
"""A flow: its control, when it starts, when it stops."""


@dataclass(frozen=True)
class Testbed:
    """What differs between the two editions.

    Attributes:
        runs: Of each world.
        rates: Of the experiment on fairness over rates, Mbit/s.
        friendly: Of the window in which friendliness is scored, start and end, in seconds a ms of one-way delay; and how.
        fixed_buffer: Bytes, of worlds whose rate is drawn anew.
        late: Whether the experiments that the second edition added are part of it.
    """

    runs: int
    rates: Sequence[int]
    friendly: tuple[float, float, str]
    fixed_buffer: int
    late: bool


def buffer_bytes(rate_mbps: float, rtt_ms: float, q: float) -> int:
    """So many times what the path holds, as the testbed computes it: at least a packet."""
    return max(1500, int(q * rate_mbps * 2**20 * rtt_ms * 1e-3 / 8))


def dumbbell(
    rate: Any,
    rtts: Sequence[Any],
    places: Sequence[Place],
    queue_bytes: int,
    duration_s: float,
    name: str,
    loss: Any = 0.0,
    **more: Any,
) -> Scenario:
    """Flows through netem and a bucket: of one round trip alike, or each with its own.

    Args:
        rate: Mbit/s, or a trace.
        rtts: ms or schedules; one for all, or one a flow.
        loss: At netem, before the queue, of data alone.
        more: Fields of the bucket.
    """
    limit: dict[str, Any] = {} if "discipline" in more else {"queue_bytes": queue_bytes}
    flow_of = {"trace": rate} if isinstance(rate, RateTrace) else {"rate_mbps": rate}
    ways = [Link(name=f"netem-{k}", delay_ms=rtt, loss=loss) for k, rtt in enumerate(rtts)]
    links = [Link(name="bottleneck", **flow_of, **limit, **more), Link(name="return"), *ways]
    flows = [
        Flow(cc=cc, path=(2 + (k if len(rtts) > 1 else 0), 0), return_path=(1,), start_s=start, stop_s=stop)
        for k, (cc, start, stop) in enumerate(places)
    ]
    return Scenario(links=links, flows=flows, duration_s=duration_s, name=name)


def _seconds(start: float, end: float) -> np.ndarray:
    return np.linspace(start, end, max(2, round(end - start) + 1))


def goodputs(record: Record, start: float, end: float) -> np.ndarray:
    """Mbit/s of each flow in each second, `(flows, seconds)`."""
    times = _seconds(start, end)
    return np.stack([record.goodput_mbps(i, times) for i in range(len(record.scenario.flows))])


def even(record: Record, start: float, end: float) -> dict[str, float]:
    """R1: smaller over larger goodput, second by second."""
    each = goodputs(record, start, end)
    known = each.max(axis=0) > 0
    return {"fairness": float((each.min(axis=0)[known] / each.max(axis=0)[known]).mean()) if known.any() else math.nan}


def _even(start: float, end: float) -> Measure:
    return lambda record: even(record, start, end)


def _friendly(start: float, end: float, how: str) -> Measure:
    """R2, `even`: (smaller + 1) / (larger + 1); R3, `ratio`: the second flow's, the scheme's, over the first's, CUBIC's."""

    def measure(record: Record) -> dict[str, float]:
        cubic, own = goodputs(record, start, end)
        r2 = float(((np.minimum(cubic, own) + 1) / (np.maximum(cubic, own) + 1)).mean())
        known = cubic > 0
        r3 = float((own[known] / cubic[known]).mean()) if known.any() else math.nan
        return {"friendliness": r2 if how == "even" else r3, "fairness": r2}

    return measure


def _against(record: Record) -> dict[str, float]:
    """R4: the scheme's goodput over the mean of the CUBIC flows'."""
    each = goodputs(record, 45, 59)
    others = each[1:].mean(axis=0)
    known = others > 0
    return {"friendliness": float((each[0][known] / others[known]).mean()) if known.any() else math.nan}


def _spine(start: float, end: float) -> Measure:
    """R5: the goodput of the flow over all hops over the largest of the others'."""

    def measure(record: Record) -> dict[str, float]:
        each = goodputs(record, start, end)
        most = each[1:].max(axis=0)
        return {"spine": float((each[0][most > 0] / most[most > 0]).mean()) if (most > 0).any() else math.nan}

    return measure


def efficiency(record: Record, windows: Sequence[tuple[float, float]]) -> dict[str, float]:
    """E1, E2: goodput of all over the rate, without what was sent again (E2), over mean RTT / base RTT; and both parts."""
    start, end = windows[0][0], windows[-1][1]
    capacity = float(record.capacity_mbps((start, end))[0])
    used = sum(float(record.goodput_mbps(i, (start, end))[0]) for i in range(len(windows)))
    again = sum(float(record.retransmitted_mbps(i, (start, end))[0]) for i in range(len(windows)))
    inflation = known_mean([record.rtt_ms(i, window)[0] / record.scenario.base_rtt_ms(i) for i, window in enumerate(windows)])
    use = used / capacity
    return {
        "use": use,
        "inflation": inflation,
        "efficiency": use / inflation,
        "net_efficiency": (used - again) / capacity / inflation,
    }


def _efficiency(windows: Sequence[tuple[float, float]]) -> Measure:
    def measure(record: Record) -> dict[str, float]:
        step, times = windows[1][0] - windows[0][0], []
        for k, (start, _) in enumerate(windows[:4]):
            each = goodputs(record, start, start + step)
            share = RATE / (k + 1)
            near = np.abs(each[k] - share) <= 0.2 * share
            held = [t for t in range(len(near) - 4) if near[t : t + 5].all()]
            times.append(float(held[0]) if held else step)
        return {**efficiency(record, windows), "converge_s": float(np.mean(times))}

    return measure


def _alone(record: Record, start: float = 0.0) -> dict[str, float]:
    """G, X: goodput over the mean capacity, and what was sent again."""
    whole = (start, record.scenario.duration_s)
    capacity = float(record.capacity_mbps(whole)[0])
    return {
        "adaptation": float(record.goodput_mbps(0, whole)[0]) / capacity,
        "retransmitted_mbps": float(record.retransmitted_mbps(0, whole)[0]),
        "use": float(record.goodput_mbps(0, whole)[0]) / capacity,
        "inflation": float(record.rtt_ms(0, whole)[0]) / record.scenario.base_rtt_ms(0),
    }


def cells(testbed: Testbed) -> Iterator[FieldCell]:
    """All worlds of an edition, run by run."""
    for run in range(1, testbed.runs + 1):
        yield from _fair(testbed, run)
        yield from _beside_cubic(testbed, run)
        yield from _efficient(testbed, run)
        if testbed.late:
            yield from _parked(run)
            yield from _jumping(run)
    yield from _drawn(testbed)


def _cell(family: str, name: str, run: int, scenario: Scenario, measure: Measure, **about: Any) -> FieldCell:
    def measured(record: Record) -> dict[str, float]:
        return measure(record)

    own = f"{family}-{name}-{run}"
    late = np.random.default_rng(seed_of(own)).uniform(0, START_WITHIN_S, len(scenario.flows)).tolist()
    flows = [replace(flow, start_s=flow.start_s + by) for flow, by in zip(scenario.flows, late, strict=True)]
    scenario = replace(scenario, flows=flows)
    return FieldCell(own, family, scenario, seed_of(own), measure=measured, about={**about, "run": run})


def _two(d: float, first: str = AGENT, second: str = AGENT) -> list[Place]:
    """Two flows, the second from a quarter of the time on."""
    return [(first, 0.0, 4 * d), (second, float(d), 4 * d)]


def _fair(testbed: Testbed, run: int) -> Iterator[FieldCell]:
    for d, q in product(DELAYS_MS, QUEUES):
        name = f"{d}ms-{q}"
        scenario = dumbbell(RATE, [2 * d], _two(d), buffer_bytes(RATE, 2 * d, q), 4 * d, name)
        yield _cell("intra-rtt", name, run, scenario, _even(d, 4 * d), d=d, q=q)
        scenario = dumbbell(RATE, [20, 2 * d], _two(d), buffer_bytes(RATE, max(20, 2 * d), q), 4 * d, name)
        yield _cell("inter-rtt", name, run, scenario, _even(d, 4 * d), d=d, q=q)
    for rate, q in product(testbed.rates, QUEUES):
        name = f"{rate}mbps-{q}"
        places = [(AGENT, 0.0, 100.0), (AGENT, 25.0, 150.0)]
        scenario = dumbbell(rate, [40], places, buffer_bytes(rate, 40, q), 100, name)
        yield _cell("rates", name, run, scenario, _even(25, 100), rate=rate, q=q)


def _beside_cubic(testbed: Testbed, run: int) -> Iterator[FieldCell]:
    start, end, how = testbed.friendly
    for d, q in product(DELAYS_MS, QUEUES):
        name = f"{d}ms-{q}"
        scenario = dumbbell(RATE, [2 * d], _two(d, "cubic"), buffer_bytes(RATE, 2 * d, q), 4 * d, name)
        yield _cell("friendly", name, run, scenario, _friendly(start * d, end * d, how), d=d, q=q)
    for d, q in product((50,) if testbed.late else DELAYS_MS, QUEUES):
        name = f"{d}ms-{q}"
        scenario = dumbbell(RATE, [2 * d], _two(d, AGENT, "cubic"), buffer_bytes(RATE, 2 * d, q), 4 * d, name)
        yield _cell("inverse", name, run, scenario, _even(start * d, end * d), d=d, q=q)
    if not testbed.late:
        for rate, q in product(range(10, 101, 10), QUEUES):
            name = f"{rate}mbps-{q}"
            places = [("cubic", 0.0, 100.0), (AGENT, 25.0, 150.0)]
            scenario = dumbbell(rate, [40], places, buffer_bytes(rate, 40, q), 100, name)
            yield _cell("friendly-rates", name, run, scenario, _friendly(25, 100, how), rate=rate, q=q)
        return
    for n, q in product(range(2, 21, 2), QUEUES):
        name, draw = f"{n}cubic-{q}", Random(run)
        places = [(AGENT, 0.0, 60.0), *(("cubic", float(draw.randint(1, 15)), 60.0) for _ in range(n))]
        scenario = dumbbell(RATE, [30], places, buffer_bytes(RATE, 30, q), 60, name)
        yield _cell("many-cubic", name, run, scenario, _against, n=n, q=q)


def _efficient(testbed: Testbed, run: int) -> Iterator[FieldCell]:
    for d, q in product((10, 50, 100) if testbed.late else (10, 100), QUEUES):
        windows = [(25.0 * i, 25.0 * i + 100) for i in range(4)]
        scenario = dumbbell(RATE, [2 * d], [(AGENT, *w) for w in windows], buffer_bytes(RATE, 2 * d, q), 175, f"{d}ms-{q}")
        yield _cell("efficiency", f"{d}ms-{q}", run, scenario, _efficiency(windows), d=d, q=q)
    for aqm, d, q in product(("codel", "fq_codel") if testbed.late else (), (10, 100), (1,)):
        windows = [(25.0 * i, 25.0 * i + 125) for i in range(5)]
        limit = {"discipline": {"name": aqm}, "queue_packets": max(1, buffer_bytes(RATE, 2 * d, q) // 1500)}
        scenario = dumbbell(RATE, [2 * d], [(AGENT, *w) for w in windows], 0, 225, f"{aqm}-{d}ms", **limit)
        yield _cell("aqm", f"{aqm}-{d}ms", run, scenario, _efficiency(windows), d=d, aqm=aqm)


def parking_lot(switches: int, rtt_ms: float, queue_bytes: int, duration_s: float, name: str) -> Scenario:
    """A flow over all hops, and one over each; all of one round trip."""
    hops = switches - 1
    links = [Link(name=f"hop-{k}", rate_mbps=RATE, queue_bytes=queue_bytes) for k in range(hops)]
    links += [Link(name="netem", delay_ms=rtt_ms), Link(name="return")]
    late, whole = duration_s / 4, duration_s
    spine = Flow(cc=AGENT, path=(hops, *range(hops)), return_path=(hops + 1,), start_s=late, stop_s=whole)
    ribs = [Flow(cc=AGENT, path=(hops, k), return_path=(hops + 1,), stop_s=whole) for k in range(hops)]
    return Scenario(links=links, flows=[spine, *ribs], duration_s=duration_s, name=name)


def _parked(run: int) -> Iterator[FieldCell]:
    lots = [(4, q) for q in QUEUES] + [(n, 1) for n in (3, 5, 6)]
    for (n, q), d in product(lots, DELAYS_MS):
        name = f"{n}switches-{d}ms-{q}"
        scenario = parking_lot(n, 2 * d, buffer_bytes(RATE, 2 * d, q), 4 * d, name)
        yield _cell("parking-lot", name, run, scenario, _spine(3 * d, 4 * d), d=d, q=q, switches=n)


def _jumping(run: int) -> Iterator[FieldCell]:
    for gone in range(20, 201, 20):
        name = f"{gone}ms"
        starts = np.cumsum([5.0, *[5.0 + gone * 1e-3] * 19])
        starts = starts[starts < 99]
        links = _gone(
            RATE, starts, np.full(len(starts), gone * 1e-3), 50, buffer_bytes(RATE, 50, 1), 100.0, [(AGENT, 0.0, 100.0)], name
        )
        yield _cell("handover", name, run, links, _alone, gone=gone)
    for r, times in product(DELAYS_MS, (1.5, 2, 3, 4)):
        name = f"{r}ms-{times}"
        jump = DelaySchedule([0, 20], [r, r * times], reorder=True)
        scenario = dumbbell(RATE, [jump], [(AGENT, 0.0, 50.0)], buffer_bytes(RATE, r, 1), 50, name)
        yield _cell("jump", name, run, scenario, lambda record: _alone(record, 20.0), r=r, times=times)
    for r, q in product(DELAYS_MS, QUEUES):
        name, draw = f"{r}ms-{q}", Random(run)
        starts = np.arange(5.0, 200.0, 5.0)
        lasts = np.array([draw.randint(45, 120) * 1e-3 for _ in starts])
        queue = buffer_bytes(RATE, max(10, r), q)
        places = [(AGENT, 0.0, 200.0), (AGENT, 50.0, 200.0)]
        scenario = _gone(RATE, starts, lasts, 10, queue, 200.0, places, name, other=r)
        yield _cell("leo-inter-rtt", name, run, scenario, _even(50, 200), r=r, q=q)
    if run > 3:
        return
    for rate, r in product((20, 60, 100, 140, 180), DELAYS_MS):
        name = f"{rate}mbps-{r}ms"
        places = [(AGENT, 0.0, 2.0 * r), (AGENT, r / 2, 2.0 * r)]
        scenario = dumbbell(rate, [r], places, buffer_bytes(rate, r, 1), 2 * r, name)
        yield _cell("wide", name, run, scenario, _even(r / 2, 2 * r), rate=rate, r=r)


def _gone(
    rate: Any,
    starts: np.ndarray,
    lasts: np.ndarray,
    rtt: Any,
    queue: int,
    duration_s: float,
    places: Sequence[Place],
    name: str,
    other: float | None = None,
) -> Scenario:
    """Flows over a bottleneck that is down at times: both ways lose what waits and what arrives."""
    edges = np.stack([starts, starts + lasts], axis=1).ravel()
    down = LossSchedule([0.0, *edges], [0.0, *([1.0, 0.0] * len(starts))])
    if isinstance(rate, RateTrace):
        times = np.union1d(rate.time_s, edges)
        rates = rate.rate_mbps[np.searchsorted(rate.time_s, times, side="right") - 1]
    else:
        times, rates = np.array([0.0, *edges]), np.full(1 + len(edges), rate)
    within = (np.searchsorted(edges, times, side="right") % 2).astype(bool)
    trace = RateTrace(times, np.where(within, 0.0, rates))
    rtts = [rtt] if other is None else [rtt, other]
    ways = [Link(name=f"netem-{k}", delay_ms=one) for k, one in enumerate(rtts)]
    links = [
        Link(name="bottleneck", trace=trace, queue_bytes=queue, on_outage="drop", outage_ms=1),
        Link(name="return", loss=down, loss_on_acks=True),
        *ways,
    ]
    flows = [
        Flow(cc=cc, path=(2 + min(k, len(rtts) - 1), 0), return_path=(1,), start_s=start, stop_s=stop)
        for k, (cc, start, stop) in enumerate(places)
    ]
    return Scenario(links=links, flows=flows, duration_s=duration_s, name=name)


def _low_orbit(queue: int) -> Iterator[FieldCell]:
    """Satellites: paths drawn anew every 15 s, and sawtooth delays in place of logs."""
    alone: list[Place] = [(AGENT, 0.0, 300.0)]
    times = np.arange(0.0, 300.0, 15.0)
    for run in range(1, DRAWS + 1):
        draw = Random(run)
        each = [(draw.randint(50, 100), draw.randint(5, 100), draw.uniform(0, 1) / 100, draw.randint(45, 120)) for _ in times]
        rates, rtts, losses, gone_ms = zip(*each, strict=True)
        trace, rtt, lossy = RateTrace(times, rates), DelaySchedule(times, rtts, reorder=True), LossSchedule(times, losses)
        gone_s = np.array(gone_ms[1:]) * 1e-3
        yield _cell("leo", "draw", run, dumbbell(trace, [rtt], alone, queue, 300, f"{run}"), _alone)
        yield _cell("leo-loss", "draw", run, dumbbell(trace, [rtt], alone, queue, 300, f"{run}", lossy), _alone)
        yield _cell("leo-outages", "draw", run, _gone(trace, times[1:], gone_s, rtt, queue, 300.0, alone, f"{run}"), _alone)
    paths = zip((522, 408, 388, 326, 582, 219, 696, 740), (62.7, 49.0, 46.6, 39.1, 69.8, 26.3, 83.6, 88.8), strict=True)
    for (buffer, mean), flows in product(paths, (1, 2)):
        rtt = DelaySchedule(times, mean + np.where(np.arange(len(times)) % 2, 10.0, -10.0), reorder=True)
        places = [(AGENT, 0.0, 300.0), (AGENT, 100.0, 300.0)][:flows]
        name = f"{mean:g}ms-{flows}"
        scenario = dumbbell(RATE, [rtt], places, 1500 * buffer, 300, name)
        measure = _alone if flows == 1 else _even(100, 300)
        yield _cell("starlink" if flows == 1 else "starlink-two", name, 1, scenario, measure)


def _drawn(testbed: Testbed) -> Iterator[FieldCell]:
    """Worlds whose path is drawn anew again and again; the run's number is the seed of the draws."""
    alone: list[Place] = [(AGENT, 0.0, 300.0)]
    for run, lossy in product(range(1, DRAWS + 1), (False, True)):
        draw, times = Random(run), np.arange(0.0, 300.0, 10.0)
        rates, rtts, losses = [], [], []
        for _ in times:
            rates.append(draw.randint(1, 100))
            rtts.append(100 if lossy else draw.randint(20, 200))
            losses.append(round(draw.uniform(0, 5), 2) / 100 if lossy else 0.0)
        rtt = 100 if lossy else DelaySchedule(times, rtts, reorder=True)
        loss = LossSchedule(times, losses) if lossy else 0.0
        scenario = dumbbell(RateTrace(times, rates), [rtt], alone, testbed.fixed_buffer, 300, f"{run}", loss)
        yield _cell("responsive-loss" if lossy else "responsive", "draw", run, scenario, _alone)
    if testbed.late:
        yield from _low_orbit(testbed.fixed_buffer)
