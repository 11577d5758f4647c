"""ccBench's two leagues: a flow alone, and a flow beside CUBIC; see `games`.

Segments and windows are those of Soheil-ab/ccBench (49b5ada, August 2023; arXiv 2307.10054): `league-piecewise.py`,
`league-piecewise-2flows.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from netbuf_gym.evaluation.suites.field import games
from netbuf_gym.evaluation.suites.field.games import DELAYS_MS, RATES_MBPS, SOURCE, GameWins, PairwiseMetric, SoloMetric
from netbuf_gym.evaluation.suites.field.suite import (
    FieldCell,
    FieldSuite,
    Report,
    Results,
    Sign,
    Table,
    compute_queue,
    derive_seed,
    make_loader,
    make_path,
)
from netbuf_gym.evaluation.suites.recorder import Record
from netbuf_gym.evaluation.suites.suite import Metric
from netbuf_gym.scenarios.types import AGENT
from netbuf_gym.traces import RateTrace

BUFFERS = {"0.5B": 0.5, **{"B" if times == 1 else f"{times}B": times for times in games.BUFFERS}}
"""Multiples of what the path holds."""
SCHEDULES = {"constant": 1.0, "2x-u": 2.0, "4x-u": 4.0, "2x-d": 0.5, "4x-d": 0.25}
NOT_IN_LEAGUE = {(96, "4x-u"), (192, "2x-u"), (192, "4x-u")}
SEGMENTS = ((0, 3), (3, 10), (10, 17), (17, 24))
WINDOWS = ((5, 35), (35, 65), (65, 95), (95, 120))
"""Seconds of the flow's life alone (`SEGMENTS`), and of the first flow's beside another. The last window has 25 s of data."""
PARTS = len(SEGMENTS)
"""Segments or windows of a world, equal in both leagues."""
SOLO_S, FRIENDLY_S, SECOND_S = 24.0, 120.0, 5.0
DELAY_BASED, LOSS_BASED = ("vegas", "copa", "ledbat", "ledbatpp"), ("cubic", "newreno", "westwood")


def _make_solo_world(rate: int, delay: int, buffer: str, schedule: str) -> FieldCell:
    name = f"{rate}-{delay}-{schedule}-{buffer}"
    second = rate * SCHEDULES[schedule]
    link: dict[str, Any] = {"trace": RateTrace([0, 7, 14, 21], [rate, second, rate, second])} if second != rate else {}
    link["queue_packets"] = compute_queue(rate, 2 * delay, BUFFERS[buffer])
    flows, mbps = [(AGENT, 0.0, None)], rate if second == rate else None
    scenario = make_path(mbps, 2 * delay, flows, SOLO_S, more={"name": name}, **link)
    about = {"rate": rate, "delay": delay, "buffer": buffer, "schedule": schedule}
    return FieldCell(name, schedule, scenario, derive_seed("solo", name), measure=_measure_solo, about=about)


def _measure_solo(record: Record) -> dict[str, float]:
    """Return throughput on the wire and delay, of each segment and of all of them."""
    found = SoloMetric.from_record(record, (SEGMENTS[0][0], *(end for _, end in SEGMENTS)))
    whole = (0.0, SOLO_S)
    share = float(record.wire_mbps(0, whole)[0] / record.capacity_mbps(whole)[0])
    inflation = float(record.queue_ms(whole)[0]) / found.propagation_ms + 1
    return {"power": found.score, "share": share, "inflation": inflation, **found.columns}


def _make_friendly_world(rate: int, delay: int, buffer: str) -> FieldCell:
    name = f"{rate}-{delay}-{buffer}"
    flows = [("cubic", 0.0, None), (AGENT, SECOND_S, None)]
    queue = compute_queue(rate, 2 * delay, BUFFERS[buffer])
    scenario = make_path(rate, 2 * delay, flows, FRIENDLY_S, queue_packets=queue, more={"name": name})
    about = {"rate": rate, "delay": delay, "buffer": buffer}
    return FieldCell(name, buffer, scenario, derive_seed("friendly", name), measure=_measure_friendly, about=about)


def _measure_friendly(record: Record) -> dict[str, float]:
    found, whole = PairwiseMetric.from_record(record, 1, WINDOWS), (SECOND_S, FRIENDLY_S)
    return {
        "closeness": found.score,
        "share": float(record.wire_mbps(1, whole)[0] / found.fair_mbps),
        "inflation": float(record.rtt_ms(1, whole)[0]) / record.scenario.base_rtt_ms(1),
        **found.columns,
    }


def make_solo_cells() -> list[FieldCell]:
    """Return all 660 worlds of a flow alone."""
    grid = product(SCHEDULES, RATES_MBPS, DELAYS_MS, BUFFERS)
    return [_make_solo_world(rate, d, b, schedule) for schedule, rate, d, b in grid if (rate, schedule) not in NOT_IN_LEAGUE]


def make_friendly_cells() -> list[FieldCell]:
    """Return all 125 worlds beside CUBIC."""
    return [_make_friendly_world(rate, d, b) for b, rate, d in product(list(BUFFERS)[1:], RATES_MBPS, DELAYS_MS)]


def _get_winner_rule(league: str) -> Callable[..., GameWins]:
    return games.find_solo_winners if league == "solo" else games.find_pairwise_winners


def compute_winning_rates(results: Results, league: str) -> dict[str, float]:
    """Return winning rates, %, by controller, the highest first."""
    made = games.compute_winning_rates(_get_winner_rule(league)(results, results.cells, PARTS))
    return dict(sorted(made.items(), key=lambda item: -item[1]))


def rank_league(results: Results, league: str) -> Report:
    """Rank controllers by their winning rates in a league, of flows alone (`solo`) or beside CUBIC (`friendly`)."""
    winners = _get_winner_rule(league)
    names, cells, won = winners(results, results.cells, PARTS)
    if not names:
        return Report([f"{league}: no controller has results in all worlds"], [], [Table("League", ["controller"], [])])
    wider = {margin: winners(results, results.cells, PARTS, margin)[2].mean(axis=1) * 100 for margin in (0.05, 0.2)}
    rate = 100 * won.mean(axis=1)
    groups = list(dict.fromkeys(cell.family for cell in cells))
    at = {group: np.repeat([cell.family == group for cell in cells], PARTS) for group in groups}
    order = sorted(range(len(names)), key=lambda k: -rate[k])
    rows = []
    for k in order:
        by_group, by_margin = ([100 * won[k][at[group]].mean() for group in groups], [one[k] for one in wider.values()])
        place = str(1 + sum(r > rate[k] for r in rate))
        rows.append([place, names[k], f"{rate[k]:.2f}", *(f"{one:.1f}" for one in (*by_group, *by_margin))])
    header = ["", "controller", "winning rate (%)", *groups, *(f"margin {m:.0%}" for m in wider)]
    says = f"{won.shape[1]} games of {len(names)} controllers; rates depend on all of them: {', '.join(sorted(names))}."
    first = [f"{names[order[0]]} wins most games of {league}: {rate[order[0]]:.2f} % of {won.shape[1]}."]
    spans = [f"{start} to {end} s" for start, end in (SEGMENTS if league == "solo" else WINDOWS)]
    by_part = [[names[k], *(f"{100 * won[k].reshape(-1, PARTS)[:, p].mean():.1f}" for p in range(PARTS))] for k in order]
    parts = Table("Winning rates by segment (%)", ["controller", *spans], by_part)
    return Report(first, [names[k] for k in order], [Table(f"League {league}", header, rows, says), parts])


def _find_best(found: dict[str, float], names: Iterable[str]) -> float:
    return max((found[name] for name in names if name in found), default=math.nan)


def _check_lead(results: Results, league: str, ahead: Sequence[str], behind: Sequence[str], says: str) -> Sign:
    found = compute_winning_rates(results, league)
    a, b = _find_best(found, ahead), _find_best(found, behind)
    known = math.isfinite(a) and math.isfinite(b)
    shown = ", ".join(f"{name} {found[name]:.1f} %" for name in found if name in (*ahead, *behind))
    return Sign(says, "recalled from arXiv 2307.10054 (its rates are plots)", a > b if known else None, shown)


def check_solo_signs(results: Results) -> list[Sign]:
    """Return what is recalled of the paper's first league."""
    rates, names = compute_winning_rates(results, "solo"), (*DELAY_BASED[:1], *LOSS_BASED, "bbr")
    classic = {name: rate for name, rate in rates.items() if name in names}
    vegas = next(iter(classic), "") == "vegas" if "vegas" in classic else None
    shown = ", ".join(f"{name} {rate:.1f} %" for name, rate in classic.items())
    says = "of vegas, cubic, bbr, newreno and westwood, vegas leads alone"
    lead = "delay-based controls are ahead of loss-based ones alone"
    return [
        _check_lead(results, "solo", DELAY_BASED, LOSS_BASED, lead),
        Sign(says, "recalled from arXiv 2307.10054", vegas, shown),
    ]


def check_friendly_signs(results: Results) -> list[Sign]:
    """Return what is recalled of the paper's second league."""
    says = "loss-based controls are ahead of delay-based ones beside CUBIC"
    return [_check_lead(results, "friendly", LOSS_BASED, DELAY_BASED, says)]


def _make_columns(spans: Sequence[tuple[int, int]], *keys: tuple[str, str, int]) -> tuple[Metric, ...]:
    """Return metrics of the segments or windows, by key: label and digits."""
    return tuple(
        Metric(f"{key}_{k}", f"{label}, {start} to {end} s", digits, f"{label} of the flow in that time")
        for key, label, digits in keys
        for k, (start, end) in enumerate(spans)
    )


_CHANGES = "a rate that is {} by {} at 7 and 21 s, and back at 14 s"
_SAID = {"constant": "one rate throughout"}
_SAID |= {one: _CHANGES.format("multiplied" if one.endswith("u") else "divided", one[0]) for one in list(SCHEDULES)[1:]}
_WINNERS = "The margin is the league's 10 %; those of 5 and 20 % are ours."
SOLO = FieldSuite(
    name="ccbench/solo",
    summary="660 worlds of a flow alone: throughput squared over delay, in four segments",
    load=make_loader(1, make_solo_cells),
    measure=lambda cell, record: cell.measure(record),
    sample_s=1.0,
    metrics=(
        Metric(
            "power", "power", 3, "share of the rate squared over delay / propagation, mean of the segments; 1: full, no queue"
        ),
        Metric("share", "share (%)", 1, "throughput over the rate, 0 to 24 s", 100),
        Metric("inflation", "delay / base", 2, "mean time in the queue and both propagations, over the latter"),
        *_make_columns(SEGMENTS, ("mbps", "throughput (Mbit/s)", 2), ("delay_ms", "delay (ms)", 1)),
    ),
    scatter=("inflation", "share"),
    families=_SAID,
    source=SOURCE,
    rules=(
        "Score of a segment: round(throughput in Mbit/s)² / round(mean one-way delay + one-way propagation, ms).",
        "Winners of a game (a world's segment): all whose score is at least 90 % of the best one's.",
        _WINNERS,
        "The way back carries ACKs alone and has no limit here; the first segment has the flow's start.",
    ),
    judge=partial(rank_league, league="solo"),
    signs=check_solo_signs,
)
FRIENDLY = FieldSuite(
    name="ccbench/friendly",
    summary="125 worlds beside an earlier CUBIC flow, of whose link about half is to be taken",
    load=make_loader(1, make_friendly_cells),
    measure=lambda cell, record: cell.measure(record),
    sample_s=5.0,
    metrics=(
        Metric("closeness", "closeness", 3, "1 less the distance of its throughput from half of the link, over that half"),
        Metric("share", "of its half (%)", 1, "throughput over half of the link, 5 to 120 s", 100),
        Metric("inflation", "RTT / base", 2, "mean round-trip time over the least possible one"),
        *_make_columns(WINDOWS, ("mbps", "throughput (Mbit/s)", 2)),
    ),
    scatter=("inflation", "share"),
    families={name: f"a buffer of {times} times what the path holds" for name, times in list(BUFFERS.items())[1:]},
    source=SOURCE,
    rules=(
        "T is the rounded throughput of the second flow in a window, m the least distance of any controller's T from half of "
        "the link.",
        "Winners of a game (a world's window): (L/2 - m) 0.9 <= T <= (L/2 + m) 1.1.",
        _WINNERS,
    ),
    judge=partial(rank_league, league="friendly"),
    signs=check_friendly_signs,
)
SUITES = (SOLO, FRIENDLY)
