"""Sage's sets on ccBench's grid: I, a flow alone on a rate that flips, and II, a flow that CUBIC joins; see `games`."""

from __future__ import annotations

from itertools import product

from netbuf_gym.evaluation.suites.field import games
from netbuf_gym.evaluation.suites.field.games import BUFFERS, DELAYS_MS, RATES_MBPS, Alone, Beside
from netbuf_gym.evaluation.suites.field.ranking import Field
from netbuf_gym.evaluation.suites.field.suite import TASK, FieldCell, FieldSuite, NotRun, Results, Sign, Table, Told, scored
from netbuf_gym.evaluation.suites.field.worlds import AGENT, edition, path, queue_of, seed_of
from netbuf_gym.evaluation.suites.recorder import Record, known_mean
from netbuf_gym.evaluation.suites.suite import Metric
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


def cells() -> list[FieldCell]:
    """Both sets: 500 worlds and 125."""
    made = []
    for (kind, by), rate, rtt, q in product(TIMES.items(), RATES_MBPS, RTTS_MS, BUFFERS):
        name = f"{kind}-{rate}-{rtt}-{q}"
        trace = RateTrace([0, FLIP_S], [rate, rate * by], period_s=2 * FLIP_S)
        scenario = path(None, rtt, [(AGENT, 0.0, None)], ALONE_S, queue_packets=queue_of(rate, rtt, q), trace=trace)
        about = {"rate": rate, "rtt": rtt, "q": q, "set": 1}
        made.append(FieldCell(name, kind, scenario, seed_of("sage", name), measure=_alone, about=about))
    for rate, rtt, q in product(RATES_MBPS, RTTS_MS, BUFFERS):
        name = f"friendly-{rate}-{rtt}-{q}"
        flows = [(AGENT, 0.0, None), ("cubic", JOINS_S, None)]
        scenario = path(rate, rtt, flows, BESIDE_S, queue_packets=queue_of(rate, rtt, q))
        about = {"rate": rate, "rtt": rtt, "q": q, "set": 2}
        made.append(FieldCell(name, "friendly", scenario, seed_of("sage", name), measure=_beside, about=about))
    return made


def _alone(record: Record) -> dict[str, float]:
    found = Alone.of(record, (0.0, *(end for _, end in ALONE)))
    share, inflation = float((found.mbps / found.rate_mbps).mean()), known_mean(found.delay_ms) / found.propagation_ms
    return {"score": found.score, "share": share, "inflation": inflation} | found.columns


def _beside(record: Record) -> dict[str, float]:
    found = Beside.of(record, 0, BESIDE)
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


def won(results: Results, number: int) -> dict[str, float]:
    """Winning rates, %, of set 1 or 2, of all that have played it."""
    winners, windows = (games.won_alone, ALONE) if number == 1 else (games.won_beside, BESIDE)
    return games.rates(winners(results, results.chosen(set=number), len(windows)))


def judge(results: Results) -> Told:
    """Controllers by the sum of both winning rates; the sets apart beside it."""
    one, two = won(results, 1), won(results, 2)
    names = [name for name in results.names if name in one or name in two]
    order = sorted(names, key=lambda name: -(one.get(name, 0) + two.get(name, 0)))
    rows = [
        [
            str(k),
            name,
            *(f"{part[name]:.2f}" if name in part else "-" for part in (one, two)),
            f"{one.get(name, 0) + two.get(name, 0):.2f}",
        ]
        for k, name in enumerate(order, 1)
    ]
    header = ["", "controller", "set I (%)", "set II (%)", "sum"]
    first = [f"{order[0]} has the highest sum of both winning rates."] if order else ["nobody has played"]
    return Told(first, order, [Table("Winning rates", header, rows)])


def signs(results: Results) -> list[Sign]:
    """Rates are published as plots alone."""
    return []


SUITE = FieldSuite(
    name="sage",
    summary="Sage's sets: 500 worlds alone on flipping rates, 125 that CUBIC joins",
    task=TASK,
    load=edition(1, cells),
    measure=scored(METRICS),
    sample_s=1.0,
    metrics=METRICS,
    scatter=("inflation", "share"),
    families=FAMILIES,
    teller=Field,
    source="Soheil-ab/sage; Aruuni/mininettestbed: tcpdatagen/sage_og (a re-creation of its grids); scores of " + games.SOURCE,
    rules=(
        "Scores and winners as in ccBench, in windows of 7 s (set I) and 30 s from when CUBIC is there (set II); the "
        "sum is ours.",
    ),
    judge=judge,
    signs=signs,
    not_run=(NotRun("its own traces of the Internet and of cellular networks", "nothing: they are not stored"),),
)
