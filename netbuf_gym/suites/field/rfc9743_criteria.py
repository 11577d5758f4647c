"""The rows of RFC 9743's page: what is measured over which worlds, for which of its sections, and when it is flagged."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from netbuf_gym.suites.field.suite import Results

REFERENCE = "cubic"
MUST, SHOULD, TOLD = "MUST", "SHOULD", "i"
Flag = Callable[[float, float], bool]
"""Whether a value is flagged, CUBIC's given."""


def more(factor: float, least: float = 0.0) -> Flag:
    """More than so many times CUBIC's value, and than `least`."""
    return lambda value, cubic: value > max(factor * cubic, least)


def less(factor: float) -> Flag:
    """Less than so many times CUBIC's value."""
    return lambda value, cubic: value < factor * cubic


@dataclass(frozen=True)
class Criterion:
    """A row of the page.

    Attributes:
        sections: Of the RFC.
        level: MUST, SHOULD, or i: informative.
        says: What is measured, with the unit.
        value: Of a contender, over its worlds; NaN: it has none.
        flag: When it is flagged; None: never.
        words: The flag in words.
        digits: Behind the point.
    """

    sections: str
    level: str
    says: str
    value: Callable[[Results, str], float]
    flag: Flag | None
    words: str
    digits: int = 2


def _mean(family: str, key: str, factor: float = 1.0, **about: Any) -> Callable[[Results, str], float]:
    return lambda results, name: factor * results.mean(name, key, family=family, **about)


def _worst(family: str, key: str, factor: float = 1.0, **about: Any) -> Callable[[Results, str], float]:
    def value(results: Results, name: str) -> float:
        found = results.values(name, key, family=family, **about)
        return factor * float(found.max()) if len(found) else math.nan

    return value


def _bad(results: Results, name: str) -> float:
    """Worlds of the grid that lose more than 5 % or use less than half."""
    cells = results.chosen(family="grid")
    use, drops = (results.at(name, key, cells) for key in ("utilisation", "drops"))
    return float(((drops > 0.05) | (use < 0.5)).sum()) if np.isfinite(use).any() else math.nan


def _excess_harm(results: Results, name: str) -> float:
    """Mean harm over that of CUBIC in the same place, over pairs of one against one and few against many."""
    cells = results.chosen(family="mixed")
    own, cubic = (results.at(one, "harm", cells) for one in (name, REFERENCE))
    known = np.isfinite(own) & np.isfinite(cubic)
    return float((own - cubic)[known].mean()) if known.any() else math.nan


def _excess_starved(results: Results, name: str) -> float:
    """Worlds in which somebody else has less than a tenth of a fair share, less those in which CUBIC does that too."""
    cells = results.chosen(family="mixed")
    own, cubic = (results.at(one, "starved", cells) for one in (name, REFERENCE))
    return float(((own > 0) & ~(cubic > 0)).sum()) if np.isfinite(own).any() else math.nan


def _all_worst(key: str) -> Callable[[Results, str], float]:
    def value(results: Results, name: str) -> float:
        found = results.values(name, key)
        return 100 * float(found.max()) if len(found) else math.nan

    return value


CRITERIA: Sequence[Criterion] = (
    Criterion(
        "5.1.2, 5.1.3, 6, 6.1",
        MUST,
        "grid of rates, RTTs and queues, drop-tail: worlds of 144 with over 5 % drops or under half of the link",
        _bad,
        more(1.0),
        "more than CUBIC",
        0,
    ),
    Criterion(
        "5.1.1, 5.2",
        MUST,
        "packets sent in 9 s in which no data arrive",
        _mean("collapse", "sends", lost="data"),
        more(2, 20),
        "over twice CUBIC's and over 20",
        1,
    ),
    Criterion(
        "5.1.1, 5.2",
        MUST,
        "packets sent in 9 s in which no ACK arrives",
        _mean("collapse", "sends", lost="acks"),
        more(2, 20),
        "over twice CUBIC's and over 20",
        1,
    ),
    Criterion(
        "5.1.1",
        MUST,
        "64 and 200 flows on 1 Mbit/s: drops (%)",
        _mean("collapse", "drops", 100, flows=[64, 200]),
        more(1.5, 5),
        "over 1.5 times CUBIC's and over 5 %",
        1,
    ),
    Criterion(
        "5.1.1",
        MUST,
        "64 and 200 flows on 1 Mbit/s: arrivals that were there before (%)",
        _mean("collapse", "duplicates", 100, flows=[64, 200]),
        more(1.5, 5),
        "over 1.5 times CUBIC's and over 5 %",
        1,
    ),
    Criterion(
        "5.1.5",
        MUST,
        "short flows of its own beside a long one: slowdown, 99th percentile",
        _mean("short", "slowdown_p99"),
        more(1.5),
        "over 1.5 times all-CUBIC's",
        1,
    ),
    Criterion(
        "5.1.5", MUST, "the same: slowdown, median", _mean("short", "slowdown_p50"), more(1.5), "over 1.5 times all-CUBIC's", 1
    ),
    Criterion(
        "5.1.5",
        MUST,
        "the same: goodput of the long flow (Mbit/s)",
        _mean("short", "long_mbps"),
        less(0.67),
        "under 0.67 of all-CUBIC's",
        2,
    ),
    Criterion(
        "5.2.3",
        MUST,
        "short CUBIC flows beside a long one of its own: slowdown, 99th percentile",
        _mean("short-cubic", "slowdown_p99"),
        more(1.5),
        "over 1.5 times CUBIC's",
        1,
    ),
    Criterion(
        "5.2, 5.2.1",
        MUST,
        "beside CUBIC, NewReno and BBR, 1:1, 1:8, 8:1: harm over CUBIC's in its place",
        _excess_harm,
        lambda value, cubic: value > 0.1,
        "over 0.1",
        3,
    ),
    Criterion(
        "5.2",
        MUST,
        "the same: worlds of 216 in which others starve that do not beside CUBIC",
        _excess_starved,
        lambda value, cubic: value > 0,
        "any",
        0,
    ),
    Criterion(
        "7.9",
        MUST,
        "path changes of rate and delay: least use of the link in a phase (%)",
        _mean("path", "phase_use", 100),
        less(0.67),
        "under 0.67 of CUBIC's",
        1,
    ),
    Criterion(
        "7.9",
        MUST,
        "the same: longest time to 80 % of a new path (s)",
        _mean("path", "reach_s"),
        more(2, 5),
        "over twice CUBIC's and over 5 s",
        1,
    ),
    Criterion(
        "7.9", MUST, "the same: queue, 95th percentile (ms)", _mean("path", "queue_ms"), more(1.5), "over 1.5 times CUBIC's", 0
    ),
    Criterion(
        "5.1.2",
        SHOULD,
        "standing queue on the grid, 95th percentile over RTT, buffers of 1 and 4 BDP",
        _mean("grid", "queue_rtt", q=[1, 4]),
        more(1.25),
        "over 1.25 times CUBIC's",
        2,
    ),
    Criterion(
        "5.1.3",
        SHOULD,
        "2, 8, 32 flows in shallow buffers, under 1.5 BDP: drops (%)",
        _mean("shallow", "drops", 100, q=[0.1, 0.25, 0.5, 1]),
        more(3),
        "over 3 times CUBIC's",
        2,
    ),
    Criterion(
        "5.1.4",
        SHOULD,
        "2, 4, 16 flows of its own: Jain's index of the last minute",
        _mean("intra", "jain"),
        less(0.9),
        "under 0.9 of CUBIC's",
        3,
    ),
    Criterion(
        "5.1.4",
        SHOULD,
        "the same: time to converge (s)",
        _mean("intra", "converge_s"),
        more(2, 10),
        "over twice CUBIC's and over 10 s",
        1,
    ),
    Criterion(
        "5.1.4",
        SHOULD,
        "RTTs of 20 against 40, 100, 200 ms: goodput of the longer over the shorter",
        _mean("rtt", "ratio"),
        less(0.5),
        "under half of CUBIC's",
        2,
    ),
    Criterion(
        "5.2.2",
        SHOULD,
        "beside real-time datagrams: delay of small packets, 99th percentile (ms)",
        _mean("realtime", "probe_p99_ms"),
        more(1.25),
        "over 1.25 times CUBIC's",
        1,
    ),
    Criterion(
        "5.2.2",
        SHOULD,
        "the same: datagrams lost (%)",
        _mean("realtime", "cross_loss", 100),
        more(1.5, 0.5),
        "over 1.5 times CUBIC's and over 0.5 %",
        2,
    ),
    Criterion(
        "6.3",
        SHOULD,
        "wired, one flow: use of the link on the grid (%)",
        _mean("grid", "utilisation", 100),
        less(0.8),
        "under 0.8 of CUBIC's",
        1,
    ),
    Criterion(
        "6.4",
        SHOULD,
        "wireless: random and bursty loss, recorded kinds of paths: use of the link (%)",
        _mean("wireless", "utilisation", 100),
        less(0.8),
        "under 0.8 of CUBIC's",
        1,
    ),
    Criterion(
        "6.4",
        SHOULD,
        "the same: queue, 95th percentile (ms)",
        _mean("wireless", "queue_ms"),
        more(1.5),
        "over 1.5 times CUBIC's",
        1,
    ),
    Criterion(
        "7.1",
        SHOULD,
        "behind RED, CoDel, FQ-CoDel, PIE: use of the link (%)",
        _mean("aqm", "utilisation", 100),
        less(0.8),
        "under 0.8 of CUBIC's",
        1,
    ),
    Criterion(
        "7.1", SHOULD, "the same: queue, 95th percentile (ms)", _mean("aqm", "queue_ms"), more(2), "over twice CUBIC's", 1
    ),
    Criterion(
        "7.1",
        SHOULD,
        "the same, as many CUBIC flows beside: Jain's index",
        _mean("aqm", "jain", cubic=True),
        less(0.8),
        "under 0.8 of CUBIC's",
        3,
    ),
    Criterion(
        "7.2",
        SHOULD,
        "most dropped by queues over 10 s, in all worlds (%)",
        _all_worst("loss_10s"),
        lambda value, cubic: value > max(50, cubic),
        "over 50 %, and CUBIC's",
        1,
    ),
    Criterion(
        "7.3",
        SHOULD,
        "a minimum delay that changes, jitter: least use of the link in a phase (%)",
        _mean("delay", "phase_use", 100),
        less(0.8),
        "under 0.8 of CUBIC's",
        1,
    ),
    Criterion(
        "7.3",
        SHOULD,
        "the same: longest time to 80 % (s)",
        _mean("delay", "reach_s"),
        more(2, 5),
        "over twice CUBIC's and over 5 s",
        1,
    ),
    Criterion(
        "7.8",
        SHOULD,
        "outages, a crowd, a flood: time to 80 % afterwards (s)",
        _mean("transient", "recover_s"),
        more(2, 5),
        "over twice CUBIC's and over 5 s",
        1,
    ),
    Criterion(
        "7.8",
        SHOULD,
        "the same: cross traffic lost (%)",
        _mean("transient", "cross_loss", 100),
        more(1.5, 1),
        "over 1.5 times CUBIC's and over 1 %",
        2,
    ),
    Criterion(
        "7.4",
        TOLD,
        "64 and 250 kbit/s, 4 packets of buffer: use of the link (%)",
        _mean("iot", "utilisation", 100),
        None,
        "",
        1,
    ),
    Criterion("7.4", TOLD, "the same: time-outs in 120 s", _mean("iot", "timeouts"), None, "", 1),
    Criterion("7.4", TOLD, "the same: ACKs a kilobyte", _mean("iot", "acks_per_kb"), None, "", 2),
    Criterion("7.5", TOLD, "satellite, 600 ms: time to 90 % of the link (s)", _mean("satellite", "reach_s"), None, "", 1),
    Criterion("7.5", TOLD, "the same: use of the link (%)", _mean("satellite", "utilisation", 100), None, "", 1),
    Criterion(
        "7.11", TOLD, "data centre, 10 Gbit/s, 0.1 ms, 2 flows: drops (%)", _mean("dc", "drops", 100, flows=2), None, "", 3
    ),
    Criterion(
        "7.11", TOLD, "the same, incast of 16: slowdown, 99th percentile", _mean("dc", "slowdown_p99", incast=16), None, "", 1
    ),
)
