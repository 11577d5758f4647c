"""Experiments of the Sussex testbeds of 2024 and 2025: fairness, friendliness, efficiency, responsiveness."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from netbuf_gym.evaluation.suites.field import sussex_worlds as worlds
from netbuf_gym.evaluation.suites.field.ranking import SENDER, FieldReport
from netbuf_gym.evaluation.suites.field.suite import (
    TASK,
    Column,
    FieldCell,
    FieldSuite,
    OmittedWorlds,
    Report,
    Results,
    Sign,
    Table,
    rank_controllers,
)
from netbuf_gym.evaluation.suites.field.sussex_measures import E1, METRICS, R1, R2, R3, R4, R5, G, Score, measure_common
from netbuf_gym.evaluation.suites.field.sussex_worlds import Testbed
from netbuf_gym.evaluation.suites.field.worlds import derive_seed, make_loader
from netbuf_gym.utils import statistics

VERSIONS = {2024: 2, 2025: 3}
DRAWS = 50
START_WITHIN_S = 0.1
"""Largest delay of the flows' starts, drawn per run (ours): runs of Mininet are never identical."""
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
class Experiment:
    """Experiment.

    Attributes:
        key: Name on the command line.
        says: Description.
        make: Returns the worlds of a run, numbered from 1 to `runs`.
        score: Score of the experiment.
        column: Heading of the ranking's column, shared by families of the same heading; None: in no column.
        testbeds: Years of the testbeds that have it; keys are unique within a testbed.
    """

    key: str
    says: str
    make: Callable[[Testbed, int], worlds.Worlds]
    score: Score
    column: str | None = None
    testbeds: Sequence[int] = (2025,)
    runs: int = 5

    def cells(self, testbed: Testbed) -> Iterator[FieldCell]:
        """Yield its worlds, run by run, with slightly delayed starts of flows."""
        for run in range(1, self.runs + 1):
            for world in self.make(testbed, run):
                name = f"{self.key}-{world.name}-{run}"
                seed, flows = derive_seed(name), world.scenario.flows
                late = np.random.default_rng(seed).uniform(0, START_WITHIN_S, len(flows)).tolist()
                flows = [replace(flow, start_s=flow.start_s + by) for flow, by in zip(flows, late, strict=True)]
                scenario, about = replace(world.scenario, flows=flows), {**world.about, "run": run}
                yield FieldCell(name, self.key, scenario, seed, measure=world.measure, about=about)


BOTH = (2024, 2025)
FAMILIES = (
    Experiment("intra-rtt", "two flows of one round trip, 20 to 200 ms, 100 Mbit/s, the second a quarter later",
           worlds.intra_rtt, R1, "R1, one RTT", BOTH),
    Experiment("inter-rtt", "two flows, one of 20 ms and one of 20 to 200 ms", worlds.inter_rtt, R1, "R1, several",
           BOTH),
    Experiment("rates", "two flows on 10 Mbit/s and more, 40 ms", worlds.rates, R1, "R1, rates", BOTH),
    Experiment("friendly", "the controller joins a CUBIC flow", worlds.friendly, R2, "R2", (2024,)),
    Experiment("friendly", "the controller joins a CUBIC flow", worlds.friendly, R3, "|ln R3|, R4"),
    Experiment("inverse", "a CUBIC flow joins the controller", worlds.inverse, R1, None, BOTH),
    Experiment("friendly-rates", "the controller joins a CUBIC flow, 10 to 100 Mbit/s, 40 ms", worlds.friendly_rates, R2,
           "R2", (2024,)),
    Experiment("many-cubic", "the controller and 2 to 20 CUBIC flows that come in 15 s", worlds.many_cubic, R4,
           "|ln R3|, R4"),
    Experiment("efficiency", "four flows that join every 25 s and leave so", worlds.efficient, E1, "E1", BOTH),
    Experiment("aqm", "five such flows behind CoDel and FQ-CoDel, q = 0.2, 1, 4", worlds.managed_queues, E1),
    Experiment("parking-lot", "one flow over two to five hops, another over each hop", worlds.parking_lots, R5, "R5"),
    Experiment("cross-intra", "two pairs of 40 ms; the second is moved to the first one's bottleneck, and back",
           worlds.cross_intra, R1, "R1, cross paths"),
    Experiment("cross-inter", "the same of 50 ms, and 10 to 100 ms", worlds.cross_inter, R1, "R1, cross paths"),
    Experiment("handover", "one flow; every 5 s a link before the bottleneck is down for 20 to 200 ms", worlds.handover, G,
           "G, handover"),
    Experiment("jump", "one flow whose round trip is multiplied by 1.5 to 4 at 20 s", worlds.jump, G),
    Experiment("leo-inter-rtt", "two flows of different round trips, outages of 45 to 120 ms every 5 s",
           worlds.leo_inter_rtt, R1),
    Experiment("wide", "two flows of one round trip on 20 to 180 Mbit/s, 10 to 100 ms", worlds.wide, R1, runs=3),
    Experiment("responsive", "rate (1 to 100 Mbit/s) and round trip (20 to 200 ms) drawn anew every 10 s",
           worlds.responsive, G, "G, responsive", BOTH, DRAWS),
    Experiment("responsive-loss", "rate and random loss (0 to 5 %) drawn anew every 10 s", worlds.responsive_loss, G,
           "G, loss", BOTH, DRAWS),
    Experiment("leo", "rate (50 to 100 Mbit/s) and round trip (5 to 100 ms) drawn anew every 15 s", worlds.leo, G,
           "G, LEO", runs=DRAWS),
    Experiment("leo-loss", "the same, with random loss of 0 to 1 %", worlds.leo_loss, G, "G, LEO", runs=DRAWS),
    Experiment("leo-outages", "the same, with an outage of 45 to 120 ms at each change", worlds.leo_outages, G, "G, LEO",
           runs=DRAWS),
    Experiment("starlink", "sawtooth delays with the means of eight Starlink paths, for logs that are not stored: one flow",
           worlds.starlink, G, runs=1),
    Experiment("starlink-two", "the same with two flows", worlds.starlink_two, R1, runs=1),
)  # fmt: skip
"""Every experiment of either testbed."""


def get_experiments(year: int) -> dict[str, Experiment]:
    """Return the experiments of a testbed, by key."""
    return {family.key: family for family in FAMILIES if year in family.testbeds}


def make_cells(year: int) -> list[FieldCell]:
    """Return all worlds of a testbed, family by family."""
    return [cell for family in get_experiments(year).values() for cell in family.cells(TESTBEDS[year])]


def measure(year: int, cell: Any, record: Any) -> dict[str, float]:
    """Return the metrics of a world; those that are measured only in other worlds are NaN."""
    found = {metric.key: math.nan for metric in METRICS} | measure_common(record) | cell.measure(record)
    return found | {"score": get_experiments(year)[cell.family].score.score_world(found)}


# ---- ranking


def _make_columns(year: int, results: Results) -> dict[str, Column]:
    """Return the ranking's columns: for each heading the mean over the worlds of its families."""
    sharing: dict[str, list[Experiment]] = {}
    for family in get_experiments(year).values():
        if family.column is not None:
            sharing.setdefault(family.column, []).append(family)

    def mean(own: Sequence[Experiment], name: str) -> float:
        each = [one.score.to_rank_values(results.values(name, one.score.key, family=one.key)) for one in own]
        values = np.concatenate(each)
        return float(values.mean()) if len(values) else math.nan

    return {heading: (partial(mean, own), 3, own[0].score.ratio) for heading, own in sharing.items()}


def judge(year: int, results: Results) -> Report:
    """Rank controllers by the mean of their places in the columns; there is no published rule."""
    columns = _make_columns(year, results)
    order, table = rank_controllers(results, columns, "Ranking")
    first = [f"{order[0]} stands first: mean place {table.rows[0][-1]} of {len(order)} over {len(columns)} columns."]
    tables = [table, _tabulate_buffers(year, results, order)]
    return Report(first, order, tables + ([_tabulate_disciplines(results, order)] if "aqm" in get_experiments(year) else []))


def _list_unranked(year: int) -> str:
    """Return the families that are in no column."""
    return ", ".join(family.key for family in get_experiments(year).values() if family.column is None)


def _tabulate_buffers(year: int, results: Results, order: Sequence[str]) -> Table:
    own = [get_experiments(year)[key] for key in ("intra-rtt", "inter-rtt", "friendly")]
    labels = {metric.key: metric.label for metric in METRICS}
    header = ["controller", *(f"{labels[one.score.key]} of {one.key}, q = {q}" for one in own for q in worlds.QUEUES)]

    def shown(name: str, one: Experiment, q: float) -> str:
        return f"{results.mean(name, one.score.key, family=one.key, q=q):.3f}"

    rows = [[name, *(shown(name, one, q) for one in own for q in worlds.QUEUES)] for name in order]
    return Table("By buffer, in BDP", header, rows)


def _tabulate_disciplines(results: Results, order: Sequence[str]) -> Table:
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


def _all_finite(*values: float) -> bool:
    return all(map(math.isfinite, values))


def _compare_unequal(results: Results, name: str, key: str) -> tuple[statistics.Interval, tuple[float, float]]:
    """Return the difference of a metric of two flows between unequal round trips (ratio 5 to 10) and both at the longer one.

    Returns:
        The mean difference over round trips and buffers with its 95 % interval, and both means.
    """
    far = results.select_cells(family="inter-rtt", where=lambda cell: cell.about["d"] >= 50)
    alike = [{"d": d, "q": q} for d, q in sorted({(cell.about["d"], cell.about["q"]) for cell in far})]
    found = np.array([[results.mean(name, key, family=f"{kind}-rtt", **one) for kind in ("inter", "intra")] for one in alike])
    found = found.reshape(-1, 2)
    found = found[np.isfinite(found).all(axis=1)]
    if len(found) < 2:
        return statistics.Interval(math.nan, math.nan, math.nan), (math.nan, math.nan)
    unequal, equal = found.mean(axis=0)
    return statistics.mean_interval(found[:, 0] - found[:, 1]), (float(unequal), float(equal))


def _format_signed(interval: statistics.Interval, factor: float = 1.0, digits: int = 2) -> str:
    mean, low, high = (factor * one for one in interval)
    return f"{mean:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"


def check_signs(results: Results) -> list[Sign]:
    """Return the expectations of classic controls on both testbeds."""
    near = results.mean("cubic", R1.key, family="intra-rtt", q=[1, 4])
    even, evens = _compare_unequal(results, "cubic", R1.key)
    share, shares = _compare_unequal(results, "cubic", "second_share")
    _, reno = _compare_unequal(results, "newreno", "second_share")
    why = "CUBIC's window grows with time, not with round trips; of NewReno, whose grows with these, the longer has "
    why += f"{100 * reno[0]:.0f} % and the second of two as long {100 * reno[1]:.0f} %" if _all_finite(*reno) else "less"
    cubic, bbr = (results.mean(name, G.key, family="responsive-loss") for name in ("cubic", "bbr"))
    return [
        Sign(
            "CUBIC shares evenly at equal round trips (R1 over 0.7, q >= 1)",
            "expected",
            near > 0.7 if _all_finite(near) else None,
            f"R1 {near:.2f}",
            "R1 is of single seconds of the whole overlap: the second flow's rise counts, and windows cut at different times",
        ),
        Sign(
            "CUBIC's R1 is lower at unequal round trips than at equal ones (ratios of 5 to 10; as long as the longer)",
            "expected",
            even.high < 0 if _all_finite(even.high) else None,
            f"{evens[0]:.2f} and {evens[1]:.2f}, {_format_signed(even)}",
            why,
        ),
        Sign(
            "with unequal round trips CUBIC favours the shorter one (the longer, which comes second, has less than the "
            "second of two as long)",
            "recalled from the 2024 paper",
            share.high < 0 if _all_finite(share.high) else None,
            f"{100 * shares[0]:.0f} and {100 * shares[1]:.0f} %, in points {_format_signed(share, 100, 1)}",
            why,
        ),
        Sign(
            "under random loss of 0 to 5 % CUBIC's goodput collapses while BBR's stays",
            "expected",
            cubic < 0.5 * bbr if _all_finite(cubic, bbr) else None,
            f"G {cubic:.2f} and {bbr:.2f}",
        ),
    ]


def check_2024_signs(results: Results) -> list[Sign]:
    """Return the signs of both testbeds, and those published in 2024 of controls that are not available here."""
    return [
        *check_signs(results),
        Sign(
            "CUBIC and Orca share paths of equal round trips well, Aurora starves late comers",
            "recalled from the 2024 paper",
            None,
            "needs Orca and Aurora, which are not part of the package",
        ),
    ]


def _split_learned(results: Results) -> tuple[str, list[str]]:
    """Return the agent that signs on learned controls are checked with ("": none), and the controllers that are no agents."""
    agents = [name for name in results.names if "/" in name]
    ours = SENDER if SENDER in agents else next(iter(agents), "")
    return ours, [name for name in results.names if name not in agents]


def check_2025_signs(results: Results) -> list[Sign]:
    """Return the signs of both testbeds, and those published in 2025 of learned controls."""
    shallow, deep = (results.mean("bbr", R3.key, family="friendly", q=q) for q in (0.2, 4))
    ours, others = _split_learned(results)
    plain, lossy = (results.mean(ours, G.key, family=f) for f in ("responsive", "responsive-loss"))
    bbr = results.mean("bbr", G.key, family="responsive-loss")
    known = [value for name in others if _all_finite(value := results.mean(name, G.key, family="responsive"))]
    best = max(known, default=math.nan)
    full, delay = (results.mean(ours, key, family="efficiency") for key in ("use", "inflation"))
    least = results.mean("cubic", "inflation", family="efficiency")
    return [
        *check_signs(results),
        Sign(
            "BBR takes more than CUBIC at q = 0.2 (R3 > 1), less at q = 4",
            "expected",
            shallow > 1 > deep if _all_finite(shallow, deep) else None,
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
            lossy > bbr - 0.1 if _all_finite(lossy, bbr) else None,
            f"{ours} G {lossy:.2f}, bbr {bbr:.2f}",
        ),
        Sign(
            "learned controls fall behind when rate and round trip change every 10 s",
            "arXiv 2510.25105, abstract",
            plain < best if _all_finite(plain, best) else None,
            f"{ours} G {plain:.2f}, the best that is no agent {best:.2f}",
            "of another learned control, and another training: the published ones are Astraea, Orca, Sage, Vivace",
        ),
        Sign(
            "learned controls fill the link and keep delay low",
            "arXiv 2510.25105, abstract",
            full > 0.8 and delay < least if _all_finite(full, delay, least) else None,
            f"{ours}: {100 * full:.0f} % at RTT / base {delay:.2f}, CUBIC {least:.2f}",
        ),
    ]


# ---- suites

NOT_SCORED = "nothing: the second flow is alone, and no score sees it"


def _make_suite(
    year: int, summary: str, source: str, signs: Callable[[Results], list[Sign]], not_run: tuple[OmittedWorlds, ...]
) -> FieldSuite:
    return FieldSuite(
        name=f"testbed/{year}",
        summary=summary,
        task=TASK,
        load=make_loader(VERSIONS[year], partial(make_cells, year)),
        measure=partial(measure, year),
        sample_s=1.0,
        metrics=METRICS,
        scatter=("inflation", "use"),
        families={family.key: family.says for family in get_experiments(year).values()},
        report_writer=FieldReport,
        source=source,
        rules=(
            "The testbeds' authors rank nobody, and sum nothing over experiments. Ours: each column a mean over its "
            "worlds and runs; controllers by the mean of their places.",
            f"In no column, and so without a say in the places: {_list_unranked(year)}.",
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
        signs=signs,
        not_run=not_run,
        reference=("cubic",),
    )


SUITES = (
    _make_suite(
        2024,
        "the Sussex testbed of 2024: fairness, friendliness, efficiency, responsiveness",
        "giacomoni/mininettestbed, commit 11d25e8",
        check_2024_signs,
        (
            OmittedWorlds("bursts in responsive, responsive-loss: 100 runs", "a token bucket whose rate changes; a plain rate"),
            OmittedWorlds("the last 50 s in rates, friendly-rates: 300 runs", NOT_SCORED),
        ),
    ),
    _make_suite(
        2025,
        "the Sussex testbed of 2025: the same with more rates, hops, moved paths, handovers, satellites, AQMs",
        "Aruuni/mininettestbed, commit 61af361 (grids at 128d9d5); arXiv 2510.25105",
        check_2025_signs,
        (
            OmittedWorlds("efficiency under fq, fq_pie, sfq, sfb: 120 runs", "these disciplines"),
            OmittedWorlds("the last 50 s in rates: 270 runs", NOT_SCORED),
            OmittedWorlds(
                "bursts in responsive, responsive-loss, leo, leo-loss, leo-outages: 250 runs",
                "a token bucket whose rate changes; a plain rate",
            ),
            OmittedWorlds("bursts in aqm: 60 runs", "a token bucket that holds another discipline; a plain rate"),
            OmittedWorlds(
                "logs of eight Starlink paths, one flow and two, in three buffers: 240",
                "nothing: the logs are not stored; 16 runs of starlink stand for them",
            ),
        ),
    ),
)
