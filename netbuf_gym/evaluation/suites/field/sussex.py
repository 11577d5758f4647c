"""The Sussex testbeds' experiments of 2024 and 2025: fairness, friendliness, efficiency, responsiveness."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from netbuf_gym.evaluation.suites.field import sussex_worlds as worlds
from netbuf_gym.evaluation.suites.field.ranking import SENDER, Field
from netbuf_gym.evaluation.suites.field.suite import (
    TASK,
    Column,
    FieldCell,
    FieldSuite,
    NotRun,
    Results,
    Sign,
    Table,
    Told,
    ranked,
)
from netbuf_gym.evaluation.suites.field.sussex_measures import E1, METRICS, R1, R2, R3, R4, R5, G, Score, common
from netbuf_gym.evaluation.suites.field.sussex_worlds import Testbed
from netbuf_gym.evaluation.suites.field.worlds import edition, seed_of
from netbuf_gym.utils import statistics

VERSIONS = {2024: 2, 2025: 3}
DRAWS = 50
START_WITHIN_S = 0.1
"""By up to this, as the run says, flows start late (ours): runs of Mininet are never twice the same."""
TESTBEDS = {
    2024: Testbed(
        rates=range(10, 101, 10),
        friendly=(1, 4),
        inverse_ms=worlds.DELAYS_MS,
        efficient_ms=(10, 100),
        fixed_buffer=131_072,
    ),
    2025: Testbed(
        rates=(*range(10, 101, 10), *range(150, 501, 50)),
        friendly=(3, 4),
        inverse_ms=(50,),
        efficient_ms=(10, 50, 100),
        fixed_buffer=655_360,
    ),
}


@dataclass(frozen=True)
class Family:
    """An experiment.

    Attributes:
        key: Its name on the command line.
        says: What it is.
        make: Makes the worlds of a run, of which there are `runs`, from 1 on.
        score: What it is about.
        column: Of the ranking, which families of one heading share; None: of none.
        testbeds: Those that have it, by year, in which no other has its key.
    """

    key: str
    says: str
    make: Callable[[Testbed, int], worlds.Worlds]
    score: Score
    column: str | None = None
    testbeds: Sequence[int] = (2025,)
    runs: int = 5

    def cells(self, testbed: Testbed) -> Iterator[FieldCell]:
        """Its worlds, run by run, whose flows start a little late."""
        for run in range(1, self.runs + 1):
            for world in self.make(testbed, run):
                name = f"{self.key}-{world.name}-{run}"
                seed, flows = seed_of(name), world.scenario.flows
                late = np.random.default_rng(seed).uniform(0, START_WITHIN_S, len(flows)).tolist()
                flows = [replace(flow, start_s=flow.start_s + by) for flow, by in zip(flows, late, strict=True)]
                scenario, about = replace(world.scenario, flows=flows), {**world.about, "run": run}
                yield FieldCell(name, self.key, scenario, seed, measure=world.measure, about=about)


BOTH = (2024, 2025)
FAMILIES = (
    Family("intra-rtt", "two flows of one round trip, 20 to 200 ms, 100 Mbit/s, the second a quarter later",
           worlds.intra_rtt, R1, "R1, one RTT", BOTH),
    Family("inter-rtt", "two flows, one of 20 ms and one of 20 to 200 ms", worlds.inter_rtt, R1, "R1, several",
           BOTH),
    Family("rates", "two flows on 10 Mbit/s and more, 40 ms", worlds.rates, R1, "R1, rates", BOTH),
    Family("friendly", "the controller joins a CUBIC flow", worlds.friendly, R2, "R2", (2024,)),
    Family("friendly", "the controller joins a CUBIC flow", worlds.friendly, R3, "|ln R3|, R4"),
    Family("inverse", "a CUBIC flow joins the controller", worlds.inverse, R1, None, BOTH),
    Family("friendly-rates", "the controller joins a CUBIC flow, 10 to 100 Mbit/s, 40 ms", worlds.friendly_rates, R2,
           "R2", (2024,)),
    Family("many-cubic", "the controller and 2 to 20 CUBIC flows that come in 15 s", worlds.many_cubic, R4,
           "|ln R3|, R4"),
    Family("efficiency", "four flows that join every 25 s and leave so", worlds.efficient, E1, "E1", BOTH),
    Family("aqm", "five such flows behind CoDel and FQ-CoDel, q = 0.2, 1, 4", worlds.managed, E1),
    Family("parking-lot", "one flow over two to five hops, another over each hop", worlds.parked, R5, "R5"),
    Family("cross-intra", "two pairs of 40 ms; the second is moved to the first one's bottleneck, and back",
           worlds.cross_intra, R1, "R1, cross paths"),
    Family("cross-inter", "the same of 50 ms, and 10 to 100 ms", worlds.cross_inter, R1, "R1, cross paths"),
    Family("handover", "one flow; every 5 s a link before the bottleneck is down for 20 to 200 ms", worlds.handover, G,
           "G, handover"),
    Family("jump", "one flow whose round trip is multiplied by 1.5 to 4 at 20 s", worlds.jump, G),
    Family("leo-inter-rtt", "two flows of different round trips, outages of 45 to 120 ms every 5 s",
           worlds.leo_inter_rtt, R1),
    Family("wide", "two flows of one round trip on 20 to 180 Mbit/s, 10 to 100 ms", worlds.wide, R1, runs=3),
    Family("responsive", "rate (1 to 100 Mbit/s) and round trip (20 to 200 ms) drawn anew every 10 s",
           worlds.responsive, G, "G, responsive", BOTH, DRAWS),
    Family("responsive-loss", "rate and random loss (0 to 5 %) drawn anew every 10 s", worlds.responsive_loss, G,
           "G, loss", BOTH, DRAWS),
    Family("leo", "rate (50 to 100 Mbit/s) and round trip (5 to 100 ms) drawn anew every 15 s", worlds.leo, G,
           "G, LEO", runs=DRAWS),
    Family("leo-loss", "the same, with random loss of 0 to 1 %", worlds.leo_loss, G, "G, LEO", runs=DRAWS),
    Family("leo-outages", "the same, with an outage of 45 to 120 ms at each change", worlds.leo_outages, G, "G, LEO",
           runs=DRAWS),
    Family("starlink", "sawtooth delays with the means of eight Starlink paths, for logs that are not stored: one flow",
           worlds.starlink, G, runs=1),
    Family("starlink-two", "the same with two flows", worlds.starlink_two, R1, runs=1),
)  # fmt: skip
"""Every experiment of either testbed."""


def families(year: int) -> dict[str, Family]:
    """Those of a testbed, by key."""
    return {family.key: family for family in FAMILIES if year in family.testbeds}


def cells(year: int) -> list[FieldCell]:
    """All worlds of a testbed, family by family."""
    return [cell for family in families(year).values() for cell in family.cells(TESTBEDS[year])]


def measure(year: int, cell: Any, record: Any) -> dict[str, float]:
    """What a world has come to; NaN for what is measured in others alone."""
    found = {metric.key: math.nan for metric in METRICS} | common(record) | cell.measure(record)
    return found | {"score": families(year)[cell.family].score.of(found)}


# ---- ranking


def _columns(year: int, results: Results) -> dict[str, Column]:
    """Of each heading the mean over the worlds of its families."""
    sharing: dict[str, list[Family]] = {}
    for family in families(year).values():
        if family.column is not None:
            sharing.setdefault(family.column, []).append(family)

    def mean(own: Sequence[Family], name: str) -> float:
        each = [one.score.ranked(results.values(name, one.score.key, family=one.key)) for one in own]
        values = np.concatenate(each)
        return float(values.mean()) if len(values) else math.nan

    return {heading: (partial(mean, own), 3, own[0].score.ratio) for heading, own in sharing.items()}


def judge(year: int, results: Results) -> Told:
    """Controllers by the mean of their places in the columns; there is no published rule."""
    columns = _columns(year, results)
    order, table = ranked(results, columns, "Ranking")
    first = [f"{order[0]} stands first: mean place {table.rows[0][-1]} of {len(order)} over {len(columns)} columns."]
    tables = [table, _by_buffer(year, results, order)]
    return Told(first, order, tables + ([_by_discipline(results, order)] if "aqm" in families(year) else []))


def _outside(year: int) -> str:
    """The families that are in no column."""
    return ", ".join(family.key for family in families(year).values() if family.column is None)


def _by_buffer(year: int, results: Results, order: Sequence[str]) -> Table:
    own = [families(year)[key] for key in ("intra-rtt", "inter-rtt", "friendly")]
    labels = {metric.key: metric.label for metric in METRICS}
    header = ["controller", *(f"{labels[one.score.key]} of {one.key}, q = {q}" for one in own for q in worlds.QUEUES)]

    def shown(name: str, one: Family, q: float) -> str:
        return f"{results.mean(name, one.score.key, family=one.key, q=q):.3f}"

    rows = [[name, *(shown(name, one, q) for one in own for q in worlds.QUEUES)] for name in order]
    return Table("By buffer, in BDP", header, rows)


def _by_discipline(results: Results, order: Sequence[str]) -> Table:
    shown = [metric for metric in METRICS if metric.key in ("efficiency_e1", "efficiency_e2", "queue_ms")]
    header = ["controller", *(f"{metric.label}, {aqm}" for aqm in worlds.DISCIPLINES for metric in shown)]
    rows = [
        [
            name,
            *(
                f"{results.mean(name, metric.key, family='aqm', aqm=aqm):.{metric.digits}f}"
                for aqm in worlds.DISCIPLINES
                for metric in shown
            ),
        ]
        for name in order
    ]
    return Table("Behind managed queues", header, rows)


# ---- signs


def _known(*values: float) -> bool:
    return all(map(math.isfinite, values))


def _unequal(results: Results, name: str, key: str) -> tuple[statistics.Interval, tuple[float, float]]:
    """What two flows come to whose round trips differ by 5 to 10 times, less what two of the longer one come to: the mean over
    round trips and buffers with its 95 % interval, and both means."""
    far = results.chosen(family="inter-rtt", where=lambda cell: cell.about["d"] >= 50)
    alike = [{"d": d, "q": q} for d, q in sorted({(cell.about["d"], cell.about["q"]) for cell in far})]
    found = np.array([[results.mean(name, key, family=f"{kind}-rtt", **one) for kind in ("inter", "intra")] for one in alike])
    found = found.reshape(-1, 2)
    found = found[np.isfinite(found).all(axis=1)]
    if len(found) < 2:
        return statistics.Interval(math.nan, math.nan, math.nan), (math.nan, math.nan)
    unequal, equal = found.mean(axis=0)
    return statistics.mean_interval(found[:, 0] - found[:, 1]), (float(unequal), float(equal))


def _signed(interval: statistics.Interval, factor: float = 1.0, digits: int = 2) -> str:
    mean, low, high = (factor * one for one in interval)
    return f"{mean:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"


def signs(results: Results) -> list[Sign]:
    """What is expected of classic controls on both testbeds."""
    near = results.mean("cubic", R1.key, family="intra-rtt", q=[1, 4])
    even, evens = _unequal(results, "cubic", R1.key)
    share, shares = _unequal(results, "cubic", "second_share")
    _, reno = _unequal(results, "newreno", "second_share")
    why = "CUBIC's window grows with time, not with round trips; of NewReno, whose grows with these, the longer has "
    why += f"{100 * reno[0]:.0f} % and the second of two as long {100 * reno[1]:.0f} %" if _known(*reno) else "less"
    cubic, bbr = (results.mean(name, G.key, family="responsive-loss") for name in ("cubic", "bbr"))
    return [
        Sign(
            "CUBIC shares evenly at equal round trips (R1 over 0.7, q >= 1)",
            "expected",
            near > 0.7 if _known(near) else None,
            f"R1 {near:.2f}",
            "R1 is of single seconds of the whole overlap: the second flow's rise counts, and windows cut at different times",
        ),
        Sign(
            "CUBIC's R1 is lower at unequal round trips than at equal ones (ratios of 5 to 10; as long as the longer)",
            "expected",
            even.high < 0 if _known(even.high) else None,
            f"{evens[0]:.2f} and {evens[1]:.2f}, {_signed(even)}",
            why,
        ),
        Sign(
            "with unequal round trips CUBIC favours the shorter one (the longer, which comes second, has less than the "
            "second of two as long)",
            "recalled from the 2024 paper",
            share.high < 0 if _known(share.high) else None,
            f"{100 * shares[0]:.0f} and {100 * shares[1]:.0f} %, in points {_signed(share, 100, 1)}",
            why,
        ),
        Sign(
            "under random loss of 0 to 5 % CUBIC's goodput collapses while BBR's stays",
            "expected",
            cubic < 0.5 * bbr if _known(cubic, bbr) else None,
            f"G {cubic:.2f} and {bbr:.2f}",
        ),
    ]


def earlier_signs(results: Results) -> list[Sign]:
    """The same on the testbed of 2024, and what was published of controls that are not there."""
    return [
        *signs(results),
        Sign(
            "CUBIC and Orca share paths of equal round trips well, Aurora starves late comers",
            "recalled from the 2024 paper",
            None,
            "needs Orca and Aurora, which are not part of the package",
        ),
    ]


def _learned(results: Results) -> tuple[str, list[str]]:
    """The agent that signs on learned controls are told of, or no name, and whoever is no agent."""
    agents = [name for name in results.names if "/" in name]
    ours = SENDER if SENDER in agents else next(iter(agents), "")
    return ours, [name for name in results.names if name not in agents]


def later_signs(results: Results) -> list[Sign]:
    """The same on the testbed of 2025, and what was published of learned controls."""
    shallow, deep = (results.mean("bbr", R3.key, family="friendly", q=q) for q in (0.2, 4))
    ours, others = _learned(results)
    plain, lossy = (results.mean(ours, G.key, family=f) for f in ("responsive", "responsive-loss"))
    bbr = results.mean("bbr", G.key, family="responsive-loss")
    known = [value for name in others if _known(value := results.mean(name, G.key, family="responsive"))]
    best = max(known, default=math.nan)
    full, delay = (results.mean(ours, key, family="efficiency") for key in ("use", "inflation"))
    least = results.mean("cubic", "inflation", family="efficiency")
    return [
        *signs(results),
        Sign(
            "BBR takes more than CUBIC at q = 0.2 (R3 > 1), less at q = 4",
            "expected",
            shallow > 1 > deep if _known(shallow, deep) else None,
            f"R3 {shallow:.2f} and {deep:.2f}",
        ),
        Sign(
            "Astraea is the fairest over the round trips and rates that it was made for, and outside of them no longer",
            "arXiv 2510.25105, abstract",
            None,
            "needs Astraea, which is not part of the package",
        ),
        Sign(
            "learned controls withstand random loss",
            "arXiv 2510.25105, abstract",
            lossy > bbr - 0.1 if _known(lossy, bbr) else None,
            f"{ours} G {lossy:.2f}, bbr {bbr:.2f}",
        ),
        Sign(
            "learned controls fall behind when rate and round trip change every 10 s",
            "arXiv 2510.25105, abstract",
            plain < best if _known(plain, best) else None,
            f"{ours} G {plain:.2f}, the best that is no agent {best:.2f}",
            "of another learned control, and another training: the published ones are Astraea, Orca, Sage, Vivace",
        ),
        Sign(
            "learned controls fill the link and keep delay low",
            "arXiv 2510.25105, abstract",
            full > 0.8 and delay < least if _known(full, delay, least) else None,
            f"{ours}: {100 * full:.0f} % at RTT / base {delay:.2f}, CUBIC {least:.2f}",
        ),
    ]


# ---- suites

NOT_SCORED = "nothing: the second flow is alone, and no score sees it"


def _suite(
    year: int, summary: str, source: str, told: Callable[[Results], list[Sign]], not_run: tuple[NotRun, ...]
) -> FieldSuite:
    return FieldSuite(
        name=f"testbed/{year}",
        summary=summary,
        task=TASK,
        load=edition(VERSIONS[year], partial(cells, year)),
        measure=partial(measure, year),
        sample_s=1.0,
        metrics=METRICS,
        scatter=("inflation", "use"),
        families={family.key: family.says for family in families(year).values()},
        teller=Field,
        source=source,
        rules=(
            "The testbeds' authors rank nobody, and sum nothing over experiments. Ours: each column a mean over its "
            "worlds and runs; controllers by the mean of their places.",
            f"In no column, and so without a say in the places: {_outside(year)}.",
            "R1 is the smaller over the larger goodput of a second, R2 the same of both and 1 Mbit/s, R3 and R4 the "
            "scheme's over CUBIC's (in R3 both are at least 1 Mbit/s), of which 1 is friendly and |ln| is ranked, R5 "
            "that of the flow over all hops over the largest of the others', E1 utilisation over mean RTT in "
            "base RTTs, G goodput over the mean capacity.",
            "R1 and R2 over the last part, which the plots of 2024 show, are measured beside. On cross paths R1 is of "
            "all four flows, the mean of three phases.",
            "E1 and E2 are of each second, of all flows together. The plots of 2024 take the seconds that all flows "
            "share, those of 2025 each flow's seconds by themselves.",
            "netem before the bucket: data are delayed and lost before the queue. What comes in 42 ms at the rate "
            "passes at once, but where the rate is drawn anew, or CoDel or FQ-CoDel manages it.",
        ),
        judge=partial(judge, year),
        signs=told,
        not_run=not_run,
        reference=("cubic",),
    )


SUITES = (
    _suite(
        2024,
        "the Sussex testbed of 2024: fairness, friendliness, efficiency, responsiveness",
        "giacomoni/mininettestbed, commit 11d25e8",
        earlier_signs,
        (
            NotRun("bursts in responsive, responsive-loss: 100 runs", "a token bucket whose rate changes; a plain rate"),
            NotRun("the last 50 s in rates, friendly-rates: 300 runs", NOT_SCORED),
        ),
    ),
    _suite(
        2025,
        "the Sussex testbed of 2025: the same with more rates, hops, moved paths, handovers, satellites, AQMs",
        "Aruuni/mininettestbed, commit 61af361 (grids at 128d9d5); arXiv 2510.25105",
        later_signs,
        (
            NotRun("efficiency under fq, fq_pie, sfq, sfb: 120 runs", "these disciplines"),
            NotRun("the last 50 s in rates: 270 runs", NOT_SCORED),
            NotRun(
                "bursts in responsive, responsive-loss, leo, leo-loss, leo-outages: 250 runs",
                "a token bucket whose rate changes; a plain rate",
            ),
            NotRun("bursts in aqm: 60 runs", "a token bucket that holds another discipline; a plain rate"),
            NotRun(
                "logs of eight Starlink paths, one flow and two, in three buffers: 240",
                "nothing: the logs are not stored; 16 runs of starlink stand for them",
            ),
        ),
    ),
)
