"""The Sussex testbeds' experiments: fairness, friendliness, efficiency, responsiveness; the editions of 2024 and of 2025."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from netbuf_gym.suites.field import sussex_worlds as worlds
from netbuf_gym.suites.field.suite import TASK, Column, FieldSuite, NotRun, Results, Sign, Table, Told, ranked
from netbuf_gym.suites.field.telling import Field
from netbuf_gym.suites.field.worlds import edition
from netbuf_gym.suites.recording import known_mean
from netbuf_gym.suites.suite import Metric

T2024 = worlds.Testbed(runs=5, rates=range(10, 101, 10), friendly=(1, 4, "even"), fixed_buffer=131_072, late=False)
T2025 = worlds.Testbed(
    runs=5, rates=(*range(10, 101, 10), *range(150, 501, 50)), friendly=(3, 4, "ratio"), fixed_buffer=655_360, late=True
)
ALONE = ["responsive", "responsive-loss", "leo", "leo-loss", "leo-outages", "handover", "jump", "starlink"]
FAMILIES = {
    "intra-rtt": "two flows of one round trip, 20 to 200 ms, 100 Mbit/s, the second a quarter later",
    "inter-rtt": "two flows, one of 20 ms and one of 20 to 200 ms",
    "rates": "two flows on 10 Mbit/s and more, 40 ms",
    "friendly": "the contender joins a CUBIC flow",
    "inverse": "a CUBIC flow joins the contender",
    "friendly-rates": "the contender joins a CUBIC flow, 10 to 100 Mbit/s, 40 ms",
    "many-cubic": "the contender and 2 to 20 CUBIC flows that come in 15 s",
    "efficiency": "four flows that join every 25 s and leave so",
    "aqm": "five such flows behind CoDel and FQ-CoDel",
    "parking-lot": "one flow over two to five hops, another over each hop",
    "handover": "one flow; every 5 s the link is down for 20 to 200 ms",
    "jump": "one flow whose round trip is multiplied by 1.5 to 4 at 20 s",
    "leo-inter-rtt": "two flows of different round trips, outages of 45 to 120 ms every 5 s",
    "wide": "two flows of one round trip on 20 to 180 Mbit/s, 10 to 100 ms",
    "responsive": "rate (1 to 100 Mbit/s) and round trip (20 to 200 ms) drawn anew every 10 s",
    "responsive-loss": "rate and random loss (0 to 5 %) drawn anew every 10 s",
    "leo": "rate (50 to 100 Mbit/s) and round trip (5 to 100 ms) drawn anew every 15 s",
    "leo-loss": "the same, with random loss of 0 to 1 %",
    "leo-outages": "the same, with an outage of 45 to 120 ms at each change",
    "starlink": "sawtooth delays with the means of eight Starlink paths, for logs that are not stored: one flow",
    "starlink-two": "the same with two flows",
}
METRICS = (
    Metric("score", "score", 3, "what the family is about, below, on a scale of which 1 is best: fairness, "
    "friendliness as the smaller "
           "over the larger, efficiency, or goodput over the mean capacity"),
    Metric("use", "goodput / rate (%)", 1, "goodput of all over what the link can carry", 100),
    Metric("inflation", "RTT / base", 2, "mean round-trip time over the least possible one"),
    Metric("fairness", "R1", 3, "smaller over larger goodput, mean over seconds"),
    Metric("friendliness", "R2, R3, R4", 3, "2024: (smaller + 1) / (larger + 1); 2025: goodput over the mean of the "
    "CUBIC flows'"),
    Metric("spine", "R5", 3, "goodput of the flow over all hops over the largest of the others'"),
    Metric("efficiency", "E1", 3, "goodput over rate, over RTT / base"),
    Metric("net_efficiency", "E2", 3, "the same of goodput less what was sent again"),
    Metric("adaptation", "G", 3, "goodput over the mean capacity"),
    Metric("retransmitted_mbps", "X (Mbit/s)", 2, "segments that were sent again"),
    Metric("converge_s", "convergence (s)", 1, "until a flow stays within 20 % of its share for 5 s, mean of flows"),
)  # fmt: skip


def measure(cell: Any, record: Any) -> dict[str, float]:
    """What a world has come to; NaN for what is measured in others alone."""
    found = {metric.key: math.nan for metric in METRICS}
    times = (0.0, record.scenario.duration_s)
    flows = [i for i, flow in enumerate(record.scenario.flows) if flow.cc == "agent"]
    link = record.scenario.bottleneck
    crossing = [i for i, flow in enumerate(record.scenario.flows) if link in flow.path]
    used = sum(float(record.goodput_mbps(i, times)[0]) for i in crossing)
    found["use"] = used / float(record.capacity_mbps(times, link)[0])
    found["inflation"] = known_mean([record.rtt_ms(i, times)[0] / record.scenario.base_rtt_ms(i) for i in flows])
    found |= cell.measure(record)
    found["score"] = next((found[key] for key in ("spine", "efficiency", "adaptation") if math.isfinite(found[key])), math.nan)
    if math.isfinite(found["friendliness"]):
        ratio = found["friendliness"]
        found["score"] = min(ratio, 1 / ratio) if ratio > 0 else 0.0
    elif math.isnan(found["score"]):
        found["score"] = found["fairness"]
    found["score"] = min(found["score"], 1.0) if math.isfinite(found["score"]) else math.nan
    return found


def _log_ratio(results: Results, name: str) -> float:
    """Mean |ln R3|; of somebody who starves CUBIC or is starved at most ln 100."""
    ratios = results.values(name, "friendliness", family=["friendly", "many-cubic"])
    return float(np.abs(np.log(np.clip(ratios, 0.01, 100))).mean()) if len(ratios) else math.nan


def judge(testbed: worlds.Testbed, title: str, results: Results) -> Told:
    """Contenders by the mean of their places in the columns; there is no published rule."""

    def mean(key: str, **about: Any) -> Callable[[str], float]:
        return lambda name: results.mean(name, key, **about)

    friendly: Column = (mean("friendliness", family=["friendly", "friendly-rates"]), 3, False)
    if testbed.late:
        friendly = (lambda name: _log_ratio(results, name), 3, True)
    columns = {
        "R1, one RTT": (mean("fairness", family="intra-rtt"), 3, False),
        "R1, several": (mean("fairness", family="inter-rtt"), 3, False),
        "R1, rates": (mean("fairness", family="rates"), 3, False),
        "|ln R3|, R4" if testbed.late else "R2": friendly,
        "E1": (mean("efficiency", family="efficiency"), 3, False),
        "G, responsive": (mean("adaptation", family="responsive"), 3, False),
        "G, loss": (mean("adaptation", family="responsive-loss"), 3, False),
    }
    if testbed.late:
        columns |= {
            "R5": (mean("spine"), 3, False),
            "G, LEO": (mean("adaptation", family=["leo", "leo-loss", "leo-outages"]), 3, False),
            "G, handover": (mean("adaptation", family="handover"), 3, False),
        }
    order, table = ranked(results, columns, title)
    queues = ["R1, one RTT", "R1, several", "friendliness"]
    by_queue = [
        [
            name,
            *(
                f"{results.mean(name, key, family=family, q=q):.3f}"
                for key, family in (("fairness", "intra-rtt"), ("fairness", "inter-rtt"), ("friendliness", "friendly"))
                for q in worlds.QUEUES
            ),
        ]
        for name in order
    ]
    header = ["controller", *(f"{one}, q = {q}" for one in queues for q in worlds.QUEUES)]
    first = [f"{order[0]} stands first: mean place {table.rows[0][-1]} of {len(order)} over {len(columns)} columns."]
    return Told(first, order, [table, Table("By buffer, in BDP", header, by_queue)])


def signs(testbed: worlds.Testbed, results: Results) -> list[Sign]:
    """What is expected of classic controls, and what was published of learned ones that can be told here."""
    found = []

    def known(*values: float) -> bool:
        return all(map(math.isfinite, values))

    near, far = (
        results.mean("cubic", "fairness", family="intra-rtt", q=[1, 4]),
        results.mean("cubic", "fairness", where=lambda c: c.family == "inter-rtt" and c.about["d"] >= 50),
    )
    found.append(
        Sign(
            "CUBIC shares evenly at equal round trips (R1 over 0.7, q >= 1)",
            "expected",
            near > 0.7 if known(near) else None,
            f"R1 {near:.2f}",
            "R1 is of single seconds of the whole overlap: the second flow's rise counts, and windows cut at different times",
        )
    )
    even = results.mean("cubic", "fairness", where=lambda c: c.family == "inter-rtt" and c.about["d"] <= 20)
    found.append(
        Sign(
            "CUBIC favours the shorter path: R1 falls as the ratio of round trips grows",
            "recalled from the 2024 paper",
            far < even if known(far, even) else None,
            f"ratio 1 to 2: {even:.2f}, 5 to 10: {far:.2f}",
        )
    )
    if testbed.late:
        shallow, deep = (results.mean("bbr", "friendliness", family="friendly", q=q) for q in (0.2, 4))
        found.append(
            Sign(
                "BBR takes more than CUBIC at q = 0.2 (R3 > 1), less at q = 4",
                "expected",
                shallow > 1 > deep if known(shallow, deep) else None,
                f"R3 {shallow:.2f} and {deep:.2f}",
            )
        )
    cubic, bbr = (results.mean(name, "adaptation", family="responsive-loss") for name in ("cubic", "bbr"))
    found.append(
        Sign(
            "under random loss of 0 to 5 % CUBIC's goodput collapses while BBR's stays",
            "expected",
            cubic < 0.5 * bbr if known(cubic, bbr) else None,
            f"G {cubic:.2f} and {bbr:.2f}",
        )
    )
    ours = next((name for name in results.names if name.startswith("congestion_window/")), "")
    plain, lossy = (results.mean(ours, "adaptation", family=f) for f in ("responsive", "responsive-loss"))
    best = max(
        (results.mean(name, "adaptation", family="responsive") for name in results.names if name != ours), default=math.nan
    )
    if testbed.late:
        found.append(
            Sign(
                "learned controls withstand random loss",
                "arXiv 2510.25105, abstract",
                lossy > bbr - 0.1 if known(lossy, bbr) else None,
                f"{ours} G {lossy:.2f}, bbr {bbr:.2f}",
            )
        )
        found.append(
            Sign(
                "learned controls fall behind when rate and round trip change every 10 s",
                "arXiv 2510.25105, abstract",
                plain < best if known(plain, best) else None,
                f"{ours} G {plain:.2f}, best other {best:.2f}",
                "of another learned control, and another training: the published ones are Astraea, Orca, Sage, Vivace",
            )
        )
        full, delay = (results.mean(ours, key, family="efficiency") for key in ("use", "inflation"))
        least = results.mean("cubic", "inflation", family="efficiency")
        found.append(
            Sign(
                "learned controls fill the link and keep delay low",
                "arXiv 2510.25105, abstract",
                full > 0.8 and delay < least if known(full, delay, least) else None,
                f"{ours}: {100 * full:.0f} % at RTT / base {delay:.2f}, CUBIC {least:.2f}",
            )
        )
    return found


def _suite(name: str, testbed: worlds.Testbed, summary: str, source: str, not_run: tuple[NotRun, ...]) -> FieldSuite:
    load = edition(1, lambda: list(worlds.cells(testbed)))
    late = {
        "many-cubic",
        "aqm",
        "parking-lot",
        "handover",
        "jump",
        "leo-inter-rtt",
        "wide",
        "leo",
        "leo-loss",
        "leo-outages",
        "starlink",
        "starlink-two",
    }
    own = {
        key: said
        for key, said in FAMILIES.items()
        if (testbed.late or key not in late) and not (testbed.late and key == "friendly-rates")
    }
    return FieldSuite(
        name=name,
        summary=summary,
        task=TASK,
        load=load,
        measure=measure,
        sample_s=1.0,
        metrics=METRICS,
        scatter=("inflation", "use"),
        families=own,
        teller=Field,
        source=source,
        rules=(
            "No rule is published. Ours: each column a mean over its worlds and runs; contenders by the mean of their places.",
            "R1 is the smaller over the larger goodput of a second, R3 and R4 the scheme's over CUBIC's, of which 1 "
            "is friendly and "
            "|ln| is ranked, E1 utilisation over mean RTT in base RTTs, G goodput over the mean capacity.",
            "netem before the bucket: data are delayed and lost before the queue; the bucket's burst is not modelled.",
        ),
        judge=partial(judge, testbed, "Ranking"),
        signs=partial(signs, testbed),
        not_run=not_run,
        reference=("cubic",),
    )


_CROSS = NotRun("cross paths, intra (3) and inter (10 and more)", "a change of a running flow's path")
SUITES = (
    _suite(
        "testbed/2024",
        T2024,
        "the Sussex testbed of 2024: fairness, friendliness, efficiency, responsiveness",
        "giacomoni/mininettestbed, commit 11d25e8",
        (NotRun("bursts of the token bucket", "a token bucket with a burst"),),
    ),
    _suite(
        "testbed/2025",
        T2025,
        "the Sussex testbed of 2025: the same with more rates, hops, handovers, satellites, AQMs",
        "Aruuni/mininettestbed, commit 61af361 (grids at 128d9d5); arXiv 2510.25105",
        (
            _CROSS,
            NotRun("efficiency under fq, fq_pie, sfq, sfb: 8", "these disciplines"),
            NotRun("bursts of the token bucket", "a token bucket with a burst"),
        ),
    ),
)
