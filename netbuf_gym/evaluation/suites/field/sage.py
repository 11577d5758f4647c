"""Sage's sets on ccBench's grid: I, a flow alone on a rate that flips, and II, a flow that CUBIC joins; see `games`."""

from __future__ import annotations

from itertools import product

from netbuf_gym.evaluation.suites.field import games
from netbuf_gym.evaluation.suites.field.games import BUFFERS, DELAYS_MS, RATES_MBPS, PairwiseMetric, SoloMetric
from netbuf_gym.evaluation.suites.field.suite import (
    FieldCell,
    FieldSuite,
    OmittedWorlds,
    Report,
    Results,
    Table,
    compute_queue,
    derive_seed,
    make_loader,
    make_measure,
    make_path,
)
from netbuf_gym.evaluation.suites.recorder import Record, finite_mean
from netbuf_gym.evaluation.suites.suite import Metric
from netbuf_gym.scenarios.types import AGENT
from netbuf_gym.traces import RateTrace

RTTS_MS = tuple(2 * delay for delay in DELAYS_MS)
TIMES = {"2x": 2.0, "4x": 4.0, "half": 0.5, "quarter": 0.25}
FLIP_S, ALONE_S, BESIDE_S, JOINS_S = 7.0, 30.0, 120.0, 30.0
ALONE = tuple((FLIP_S * k, FLIP_S * (k + 1)) for k in range(4))
BESIDE = ((30.0, 60.0), (60.0, 90.0), (90.0, 120.0))
FAMILIES = {
    **{name: f"set I: a rate that is multiplied by {by:g} every other 7 s" for name, by in TIMES.items()},
    "friendly": "set II: CUBIC joins after 30 s",
}


def make_cells() -> list[FieldCell]:
    """Return the worlds of both sets: 500 and 125."""
    made = []
    for (kind, by), rate, rtt, q in product(TIMES.items(), RATES_MBPS, RTTS_MS, BUFFERS):
        name = f"{kind}-{rate}-{rtt}-{q}"
        trace = RateTrace([0, FLIP_S], [rate, rate * by], period_s=2 * FLIP_S)
        scenario = make_path(None, rtt, [(AGENT, 0.0, None)], ALONE_S, queue_packets=compute_queue(rate, rtt, q), trace=trace)
        about = {"rate": rate, "rtt": rtt, "q": q, "set": 1}
        made.append(FieldCell(name, kind, scenario, derive_seed("sage", name), measure=_measure_solo, about=about))
    for rate, rtt, q in product(RATES_MBPS, RTTS_MS, BUFFERS):
        name = f"friendly-{rate}-{rtt}-{q}"
        flows = [(AGENT, 0.0, None), ("cubic", JOINS_S, None)]
        scenario = make_path(rate, rtt, flows, BESIDE_S, queue_packets=compute_queue(rate, rtt, q))
        about = {"rate": rate, "rtt": rtt, "q": q, "set": 2}
        made.append(FieldCell(name, "friendly", scenario, derive_seed("sage", name), measure=_measure_pairwise, about=about))
    return made


def _measure_solo(record: Record) -> dict[str, float]:
    found = SoloMetric.from_record(record, (0.0, *(end for _, end in ALONE)))
    share, inflation = float((found.mbps / found.rate_mbps).mean()), finite_mean(found.delay_ms) / found.propagation_ms
    return {"score": found.score, "share": share, "inflation": inflation} | found.columns


def _measure_pairwise(record: Record) -> dict[str, float]:
    found = PairwiseMetric.from_record(record, 0, BESIDE)
    inflation = float(record.rtt_ms(0, (JOINS_S, BESIDE_S))[0]) / record.scenario.base_rtt_ms()
    return {"score": found.score, "share": float(found.mbps.mean() / found.fair_mbps), "inflation": inflation} | found.columns


METRICS = (
    Metric(
        "score", "score", 3, "set I: share of the rate squared over delay / propagation; set II: 1 less the distance from half"
    ),
    Metric("share", "share (%)", 1, "throughput over the rate; set II: over half of it", 100),
    Metric("inflation", "delay / base", 2, "mean delay over propagation"),
    *(Metric(f"mbps_{k}", f"throughput {k} (Mbit/s)", 2, "in the window of this number") for k in range(4)),
    *(Metric(f"delay_ms_{k}", f"delay {k} (ms)", 1, "in the window of this number") for k in range(4)),
)


def compute_winning_rates(results: Results, number: int) -> dict[str, float]:
    """Return winning rates, %, in set 1 or 2, of the controllers that have run in it."""
    winners, windows = (games.find_solo_winners, ALONE) if number == 1 else (games.find_pairwise_winners, BESIDE)
    return games.compute_winning_rates(winners(results, results.select_cells(set=number), len(windows)))


def judge(results: Results) -> Report:
    """Rank controllers by the sum of both winning rates, shown beside the rates of each set."""
    one, two = compute_winning_rates(results, 1), compute_winning_rates(results, 2)
    names = [name for name in results.names if name in one or name in two]
    order = sorted(names, key=lambda name: -(one.get(name, 0) + two.get(name, 0)))
    rows = []
    for k, name in enumerate(order, 1):
        rates = [f"{part[name]:.2f}" if name in part else "-" for part in (one, two)]
        rows.append([str(k), name, *rates, f"{one.get(name, 0) + two.get(name, 0):.2f}"])
    header = ["", "controller", "set I (%)", "set II (%)", "sum"]
    first = [f"{order[0]} has the highest sum of both winning rates."] if order else ["no controller has results in all worlds"]
    return Report(first, order, [Table("Winning rates", header, rows)])


SUITE = FieldSuite(
    name="sage",
    summary="Sage's sets: 500 worlds alone on flipping rates, 125 that CUBIC joins",
    load=make_loader(1, make_cells),
    measure=make_measure(METRICS),
    sample_s=1.0,
    metrics=METRICS,
    scatter=("inflation", "share"),
    families=FAMILIES,
    source="Soheil-ab/sage; Aruuni/mininettestbed: tcpdatagen/sage_og (a re-creation of its grids); scores of " + games.SOURCE,
    rules=(
        "Scores and winners as in ccBench, in windows of 7 s (set I) and 30 s from when CUBIC is there (set II); the "
        "sum is ours.",
    ),
    judge=judge,
    not_run=(OmittedWorlds("its own traces of the Internet and of cellular networks", "nothing: they are not stored"),),
)
