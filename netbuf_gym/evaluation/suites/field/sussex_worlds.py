"""Worlds of the Sussex testbeds: Mininet's dumbbells with netem before a token bucket, and the experiments on them.

netem delays only data, by the whole round trip, and loses before the queue; buffers are multiples of
rate * 2^20 * RTT / 8 bytes. Behind it a token bucket (tbf) holds back what exceeds its rate, and passes a burst at once: the
data that arrives in 42 ms at that rate. Where the bucket's rate changes, and where it holds another discipline, it is a plain
rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import Any, NamedTuple

import numpy as np

from netbuf_gym.evaluation.suites.field import sussex_measures as measures
from netbuf_gym.evaluation.suites.field.sussex_measures import Measure
from netbuf_gym.evaluation.suites.field.worlds import AGENT
from netbuf_gym.scenarios import DelaySchedule, Flow, Link, LossSchedule, Route, Scenario
from netbuf_gym.traces import RateTrace

RATE = 100.0
PEAK_MBPS = 10_000.0
"""Rate at which a burst leaves (ours): Mininet's pairs of devices have no rate of their own."""
DELAYS_MS, QUEUES = tuple(range(10, 101, 10)), (0.2, 1, 4)
DISCIPLINES: dict[str, dict[str, Any]] = {"codel": {"ecn": False}, "fq_codel": {"flows": 100}}
"""Disciplines behind which efficiency is measured, as `tc` sets them up: without an ECN option CoDel marks nothing."""
ORBIT_S = np.arange(0.0, 300.0, 15.0)
"""Times at which the paths of satellites are drawn anew."""
Place = tuple[str, float, float]
"""Control of a flow, its start and its stop."""
Worlds = Iterator["World"]


class World(NamedTuple):
    """World of an experiment: its name there, scenario, measure, and parameters."""

    name: str
    scenario: Scenario
    measure: Measure
    about: dict[str, Any]


@dataclass(frozen=True)
class Testbed:
    """Differences between the two testbeds in the experiments that both have.

    Attributes:
        rates: Rates of the experiment on fairness over rates, Mbit/s.
        friendly: Start and end of the window that friendliness is scored in, in seconds per ms of one-way delay.
        inverse_ms, efficient_ms: One-way delays of the inverse of friendliness, and of efficiency.
        fixed_buffer: Buffer in bytes of worlds whose rate is drawn anew.
    """

    rates: Sequence[int]
    friendly: tuple[float, float]
    inverse_ms: Sequence[int]
    efficient_ms: Sequence[int]
    fixed_buffer: int


# ---- paths


def buffer_bytes(rate_mbps: float, rtt_ms: float, q: float) -> int:
    """Return a multiple of what the path holds, as the testbed computes it: at least a packet."""
    return max(1500, int(q * rate_mbps * 2**20 * rtt_ms * 1e-3 / 8))


def burst_bytes(rate_mbps: float) -> int:
    """Return the size of the burst that the testbed lets its bucket pass at once."""
    return int(10 * rate_mbps * 2**20 / 250 / 8)


def make_bucket(rate_mbps: float, queue_bytes: int, name: str = "bottleneck") -> Link:
    """Return a tbf link: a queue before tokens that arrive at a rate."""
    tokens = {"name": "tbf", "rate_mbps": rate_mbps, "burst_bytes": burst_bytes(rate_mbps)}
    return Link(name=name, rate_mbps=PEAK_MBPS, queue_bytes=queue_bytes, discipline=tokens)


def make_dumbbell(
    bottleneck: Link,
    rtts: Sequence[Any],
    places: Sequence[Place],
    duration_s: float,
    name: str,
    *,
    loss: Any = 0.0,
    back: Link | None = None,
) -> Scenario:
    """Return a scenario of flows through netem and a bottleneck, with one round trip for all or one for each.

    Args:
        rtts: ms or schedules; one for all flows, or one per flow.
        loss: Loss at netem, before the queue, of data only.
        back: Return path; None: one without limit or delay.
    """
    ways = [Link(name=f"netem-{k}", delay_ms=rtt, loss=loss) for k, rtt in enumerate(rtts)]
    links = [bottleneck, back or Link(name="return"), *ways]
    flows = [
        Flow(cc=cc, path=(2 + (k if len(rtts) > 1 else 0), 0), return_path=(1,), start_s=start, stop_s=stop)
        for k, (cc, start, stop) in enumerate(places)
    ]
    return Scenario(links=links, flows=flows, duration_s=duration_s, name=name)


def make_parking_lot(switches: int, rtt_ms: float, queue_bytes: int, duration_s: float, name: str) -> Scenario:
    """Return a scenario of a flow over all hops, and one over each hop, all of one round trip."""
    hops = switches - 1
    links = [make_bucket(RATE, queue_bytes, f"hop-{k}") for k in range(hops)]
    links += [Link(name="netem", delay_ms=rtt_ms), Link(name="return")]
    late, whole = duration_s / 4, duration_s
    spine = Flow(cc=AGENT, path=(hops, *range(hops)), return_path=(hops + 1,), start_s=late, stop_s=whole)
    ribs = [Flow(cc=AGENT, path=(hops, k), return_path=(hops + 1,), stop_s=whole) for k in range(hops)]
    return Scenario(links=links, flows=[spine, *ribs], duration_s=duration_s, name=name)


def make_crossing(
    rtts_ms: tuple[float, float], queues: tuple[int, int], moved_s: float, back_s: float, duration_s: float, name: str
) -> Scenario:
    """Return a scenario of two flows over each of two buckets, of which the second pair uses the first bucket for a while.

    Routes change before netem, so they do so a round trip earlier, for the data sent then.
    """
    links = [make_bucket(RATE, queues[0]), make_bucket(RATE, queues[1], "second")]
    links += [*(Link(name=f"netem-{k}", delay_ms=rtt) for k, rtt in enumerate(rtts_ms)), Link(name="return")]
    first, second, back = (2, 0), (3, 1), (4,)
    early = rtts_ms[1] * 1e-3
    moves = [
        Route(at_s=moved_s - early, path=(3, 0), return_path=back),
        Route(at_s=back_s - early, path=second, return_path=back),
    ]
    flows = [Flow(cc=AGENT, path=first, return_path=back, stop_s=duration_s) for _ in range(2)]
    flows += [Flow(cc=AGENT, path=second, return_path=back, stop_s=duration_s, routes=moves) for _ in range(2)]
    return Scenario(links=links, flows=flows, duration_s=duration_s, name=name)


def _make_loss_schedule(starts: np.ndarray, lasts: np.ndarray) -> LossSchedule:
    """Return a schedule in which everything is lost in these intervals."""
    edges = np.stack([starts, starts + lasts], axis=1).ravel()
    return LossSchedule([0.0, *edges], [0.0, *([1.0, 0.0] * len(starts))])


def _make_outages(link: Link, rate: RateTrace, starts: np.ndarray, lasts: np.ndarray) -> tuple[Link, Link]:
    """Return a link of this rate that is down in these intervals, and its return path: queued and arriving packets are lost."""
    edges = np.stack([starts, starts + lasts], axis=1).ravel()
    times = np.union1d(rate.time_s, edges)
    rates = rate.rate_mbps[np.searchsorted(rate.time_s, times, side="right") - 1]
    within = (np.searchsorted(edges, times, side="right") % 2).astype(bool)
    trace = RateTrace(times, np.where(within, 0.0, rates))
    ahead = replace(link, rate_mbps=None, trace=trace, on_outage="drop", outage_ms=1)
    return ahead, Link(name="return", loss=_make_loss_schedule(starts, lasts), loss_on_acks=True)


# ---- fairness


def _make_two_flows(d: float, first: str = AGENT, second: str = AGENT) -> list[Place]:
    """Return two flows, the second from a quarter of the time on."""
    return [(first, 0.0, 4 * d), (second, float(d), 4 * d)]


def _get_last_window(d: int) -> measures.Window:
    """Return the last part of the flows' time, which the plots of 2024 show."""
    return 4 * d - d // 4, 4 * d


RATES_S = 100.0
"""Duration of worlds over many rates, at which their first flow stops; the second one's 50 s alone would not be scored."""


def _two_over_rates(first: str = AGENT) -> list[Place]:
    """Return two flows, the second from 25 s on."""
    return [(first, 0.0, RATES_S), (AGENT, 25.0, RATES_S)]


def intra_rtt(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds of two flows of one round trip."""
    for d, q in product(DELAYS_MS, QUEUES):
        name, link = f"{d}ms-{q}", make_bucket(RATE, buffer_bytes(RATE, 2 * d, q))
        scenario = make_dumbbell(link, [2 * d], _make_two_flows(d), 4 * d, name)
        yield World(name, scenario, measures.measure_fairness(d, 4 * d, _get_last_window(d)), {"d": d, "q": q})


def inter_rtt(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds of two flows, the first of 20 ms."""
    for d, q in product(DELAYS_MS, QUEUES):
        name, link = f"{d}ms-{q}", make_bucket(RATE, buffer_bytes(RATE, max(20, 2 * d), q))
        scenario = make_dumbbell(link, [20, 2 * d], _make_two_flows(d), 4 * d, name)
        yield World(name, scenario, measures.measure_fairness(d, 4 * d, _get_last_window(d)), {"d": d, "q": q})


def rates(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds of two flows of 40 ms over many rates."""
    for rate, q in product(testbed.rates, QUEUES):
        name, link = f"{rate}mbps-{q}", make_bucket(rate, buffer_bytes(rate, 40, q))
        scenario = make_dumbbell(link, [40], _two_over_rates(), RATES_S, name)
        yield World(name, scenario, measures.measure_fairness(25, RATES_S, (75, RATES_S)), {"rate": rate, "q": q})


def wide(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds of two flows of one round trip over five rates."""
    for rate, r in product((20, 60, 100, 140, 180), DELAYS_MS):
        name, places = f"{rate}mbps-{r}ms", [(AGENT, 0.0, 2.0 * r), (AGENT, r / 2, 2.0 * r)]
        scenario = make_dumbbell(make_bucket(rate, buffer_bytes(rate, r, 1)), [r], places, 2 * r, name)
        yield World(name, scenario, measures.measure_fairness(r / 2, 2 * r), {"rate": rate, "r": r})


def parking_lots(testbed: Testbed, run: int) -> Worlds:
    """Yield parking lots of two to five hops."""
    lots = [(4, q) for q in QUEUES] + [(n, 1) for n in (3, 5, 6)]
    for (n, q), d in product(lots, DELAYS_MS):
        name = f"{n}switches-{d}ms-{q}"
        scenario = make_parking_lot(n, 2 * d, buffer_bytes(RATE, 2 * d, q), 4 * d, name)
        yield World(name, scenario, measures.measure_spine(3 * d, 4 * d), {"d": d, "q": q, "switches": n})


def cross_intra(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds of two pairs of 40 ms; the first bucket's buffer is of 50 ms, as in the testbed's script."""
    for d, q in product((20,), QUEUES):
        name, queues = f"{d}ms-{q}", (buffer_bytes(RATE, 50, q), buffer_bytes(RATE, 2 * d, q))
        scenario = make_crossing((2 * d, 2 * d), queues, 4 * d, 8 * d, 12 * d, name)
        yield World(name, scenario, measures.measure_phases(4 * d, 8 * d, RATE), {"d": d, "q": q})


def cross_inter(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds of a pair of 50 ms, and another of 10 to 100 ms."""
    for d, q in product(range(5, 51, 5), QUEUES):
        name, queues = f"{d}ms-{q}", (buffer_bytes(RATE, 50, q), buffer_bytes(RATE, 2 * d, q))
        scenario = make_crossing((50, 2 * d), queues, 100, 200, 300, name)
        yield World(name, scenario, measures.measure_phases(100, 200, RATE), {"d": d, "q": q})


# ---- friendliness


def friendly(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds in which the controller joins a CUBIC flow."""
    start, end = testbed.friendly
    for d, q in product(DELAYS_MS, QUEUES):
        name, link = f"{d}ms-{q}", make_bucket(RATE, buffer_bytes(RATE, 2 * d, q))
        measure = measures.measure_friendliness(start * d, end * d, _get_last_window(d))
        yield World(name, make_dumbbell(link, [2 * d], _make_two_flows(d, "cubic"), 4 * d, name), measure, {"d": d, "q": q})


def inverse(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds in which a CUBIC flow joins the controller."""
    start, end = testbed.friendly
    for d, q in product(testbed.inverse_ms, QUEUES):
        name, link = f"{d}ms-{q}", make_bucket(RATE, buffer_bytes(RATE, 2 * d, q))
        scenario = make_dumbbell(link, [2 * d], _make_two_flows(d, AGENT, "cubic"), 4 * d, name)
        yield World(name, scenario, measures.measure_fairness(start * d, end * d), {"d": d, "q": q})


def friendly_rates(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds in which the controller joins a CUBIC flow of 40 ms, over many rates."""
    for rate, q in product(testbed.rates, QUEUES):
        name, link = f"{rate}mbps-{q}", make_bucket(rate, buffer_bytes(rate, 40, q))
        scenario = make_dumbbell(link, [40], _two_over_rates("cubic"), RATES_S, name)
        yield World(name, scenario, measures.measure_friendliness(25, RATES_S, (75, RATES_S)), {"rate": rate, "q": q})


def many_cubic(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds of the controller and CUBIC flows that start within 15 s, drawn with the seed run * number of flows."""
    for n, q in product(range(2, 21, 2), QUEUES):
        name, draw = f"{n}cubic-{q}", Random(run * (n + 1))
        places = [(AGENT, 0.0, 60.0), *(("cubic", float(draw.randint(1, 15)), 60.0) for _ in range(n))]
        scenario = make_dumbbell(make_bucket(RATE, buffer_bytes(RATE, 30, q)), [30], places, 60, name)
        yield World(name, scenario, measures.measure_against_cubic, {"n": n, "q": q})


# ---- efficiency


def efficient(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds of four flows that come, and leave, every 25 s."""
    windows = [(25.0 * i, 25.0 * i + 100) for i in range(4)]
    for d, q in product(testbed.efficient_ms, QUEUES):
        name, link = f"{d}ms-{q}", make_bucket(RATE, buffer_bytes(RATE, 2 * d, q))
        scenario = make_dumbbell(link, [2 * d], [(AGENT, *w) for w in windows], 175, name)
        yield World(name, scenario, measures.measure_efficiency(windows, RATE), {"d": d, "q": q})


def managed_queues(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds of five such flows behind each of the disciplines; delays and buffers are ours."""
    windows = [(25.0 * i, 25.0 * i + 125) for i in range(5)]
    for (aqm, how), d, q in product(DISCIPLINES.items(), (10, 100), QUEUES):
        name, packets = f"{aqm}-{d}ms-{q}", buffer_bytes(RATE, 2 * d, q) // 1500
        link = Link(name="bottleneck", rate_mbps=RATE, queue_packets=packets, discipline={"name": aqm, **how})
        scenario = make_dumbbell(link, [2 * d], [(AGENT, *w) for w in windows], 225, name)
        yield World(name, scenario, measures.measure_efficiency(windows, RATE), {"d": d, "q": q, "aqm": aqm})


# ---- paths that change


def responsive(testbed: Testbed, run: int) -> Worlds:
    """Yield a world of rate and round trip drawn anew every 10 s; the run's number is the seed of the draws."""
    draw, times = Random(run), np.arange(0.0, 300.0, 10.0)
    rates_mbps, rtts = zip(*((draw.randint(1, 100), draw.randint(20, 200)) for _ in times), strict=True)
    yield _make_drawn_world(testbed, run, RateTrace(times, rates_mbps), DelaySchedule(times, rtts, reorder=True))


def responsive_loss(testbed: Testbed, run: int) -> Worlds:
    """Yield a world of rate and loss drawn anew every 10 s."""
    draw, times = Random(run), np.arange(0.0, 300.0, 10.0)
    rates_mbps, losses = zip(*((draw.randint(1, 100), round(draw.uniform(0, 5), 2) / 100) for _ in times), strict=True)
    yield _make_drawn_world(testbed, run, RateTrace(times, rates_mbps), 100, LossSchedule(times, losses))


def _make_drawn_world(testbed: Testbed, run: int, trace: RateTrace, rtt: Any, loss: Any = 0.0) -> World:
    """Return a world of a flow alone for 300 s, over a rate that changes."""
    link = Link(name="bottleneck", trace=trace, queue_bytes=testbed.fixed_buffer)
    return World(
        "draw", make_dumbbell(link, [rtt], [(AGENT, 0.0, 300.0)], 300, f"{run}", loss=loss), measures.measure_solo(), {}
    )


def _draw_orbit(draw: Random) -> tuple[int, int, float]:
    """Return a satellite's path: Mbit/s, round trip in ms, loss."""
    return draw.randint(50, 100), draw.randint(5, 100), round(draw.uniform(0, 1), 2) / 100


def _draw_orbit_and_outage(draw: Random) -> tuple[int, int, float, float]:
    """Return a satellite's path, and the seconds of outage before it, which only the scripts with outages draw."""
    return *_draw_orbit(draw), draw.randint(45, 120) * 1e-3


def _make_schedules(paths: Sequence[Sequence[float]]) -> tuple[RateTrace, DelaySchedule, LossSchedule]:
    """Return rate, round trip and loss of a flow's successive paths over satellites."""
    rates_mbps, rtts, losses, *_ = zip(*paths, strict=True)
    return RateTrace(ORBIT_S, rates_mbps), DelaySchedule(ORBIT_S, rtts, reorder=True), LossSchedule(ORBIT_S, losses)


def leo(testbed: Testbed, run: int) -> Worlds:
    """Yield a world of paths over satellites."""
    draw = Random(run)
    trace, rtt, _ = _make_schedules([_draw_orbit(draw) for _ in ORBIT_S])
    yield _make_drawn_world(testbed, run, trace, rtt)


def leo_loss(testbed: Testbed, run: int) -> Worlds:
    """Yield a world of paths over satellites with random loss."""
    draw = Random(run)
    yield _make_drawn_world(testbed, run, *_make_schedules([_draw_orbit(draw) for _ in ORBIT_S]))


def leo_outages(testbed: Testbed, run: int) -> Worlds:
    """Yield a world of paths over satellites with an outage of the bottleneck's link at each change."""
    draw = Random(run)
    paths = [_draw_orbit_and_outage(draw) for _ in ORBIT_S]
    trace, rtt, _ = _make_schedules(paths)
    gone_s = np.array([gone for *_, gone in paths])
    link = Link(name="bottleneck", queue_bytes=testbed.fixed_buffer)
    ahead, back = _make_outages(link, trace, ORBIT_S[1:], gone_s[1:])
    scenario = make_dumbbell(ahead, [rtt], [(AGENT, 0.0, 300.0)], 300, f"{run}", back=back)
    yield World("draw", scenario, measures.measure_solo(), {})


def leo_inter_rtt(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds of two flows of different round trips, and an outage of the bottleneck's link every 5 s.

    After an outage the bucket is full: none is shorter than its burst takes to arrive (Linux' `tbf_reset` fills the bucket when
    the device goes down).
    """
    for r, q in product(DELAYS_MS, QUEUES):
        name, draw, times = f"{r}ms-{q}", Random(run), np.arange(0.0, 200.0, 5.0)
        gone_s = np.array([_draw_orbit_and_outage(draw)[-1] for _ in times])
        link = make_bucket(RATE, buffer_bytes(RATE, max(10, r), q))
        ahead, back = _make_outages(link, RateTrace([0.0], [PEAK_MBPS]), times[1:], gone_s[1:])
        places = [(AGENT, 0.0, 200.0), (AGENT, 50.0, 200.0)]
        scenario = make_dumbbell(ahead, [10, r], places, 200, name, back=back)
        yield World(name, scenario, measures.measure_fairness(50, 200, (100, 199)), {"r": r, "q": q})


def handover(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds in which netem's link goes down after every 5 s and loses queued and arriving data, but not the bucket."""
    rtt_ms = 50
    for gone in range(20, 201, 20):
        starts = np.arange(5.0, 99.0, 5.0 + gone * 1e-3)
        lasts, early = np.full(len(starts), gone * 1e-3), rtt_ms * 1e-3
        back = Link(name="return", loss=_make_loss_schedule(starts, lasts), loss_on_acks=True)
        link, lost = make_bucket(RATE, buffer_bytes(RATE, rtt_ms, 1)), _make_loss_schedule(starts - early, lasts + early)
        scenario = make_dumbbell(link, [rtt_ms], [(AGENT, 0.0, 100.0)], 100, f"{gone}ms", loss=lost, back=back)
        yield World(f"{gone}ms", scenario, measures.measure_solo(), {"gone": gone})


def jump(testbed: Testbed, run: int) -> Worlds:
    """Yield worlds in which the round trip is multiplied at 20 s; what follows is compared with the new one."""
    for r, times in product(DELAYS_MS, (1.5, 2, 3, 4)):
        name, rtt = f"{r}ms-{times}", DelaySchedule([0, 20], [r, r * times], reorder=True)
        scenario = make_dumbbell(make_bucket(RATE, buffer_bytes(RATE, r, 1)), [rtt], [(AGENT, 0.0, 50.0)], 50, name)
        yield World(name, scenario, measures.measure_solo(20.0, r * times), {"r": r, "times": times})


STARLINK = {522: 62.7, 408: 49.0, 388: 46.6, 326: 39.1, 582: 69.8, 219: 26.3, 696: 83.6, 740: 88.8}
"""Buffers in packets, and mean round trips in ms, of the paths that LeoEM has logs of. Here each rises second by second from
10 ms under its mean to 10 ms above it, and falls back after 15 s."""


def _starlink(starts: Sequence[float], measure: Measure) -> Worlds:
    for buffer, mean in STARLINK.items():
        rtt = DelaySchedule(np.arange(15.0), mean + np.linspace(-10, 10, 15), period_s=15, reorder=True)
        link = Link(name="bottleneck", rate_mbps=RATE, queue_bytes=1500 * buffer)
        name = f"{mean:g}ms-{len(starts)}"
        yield World(name, make_dumbbell(link, [rtt], [(AGENT, at, 300.0) for at in starts], 300, name), measure, {})


def starlink(testbed: Testbed, run: int) -> Worlds:
    """Return worlds of one flow over sawtooth delays, in place of logs that are not stored."""
    return _starlink([0.0], measures.measure_solo())


def starlink_two(testbed: Testbed, run: int) -> Worlds:
    """Return worlds of two flows over sawtooth delays, in place of logs that are not stored."""
    return _starlink([0.0, 100.0], measures.measure_fairness(100, 300))
