"""Rows of RFC 9743's table: what is measured over which worlds, for which section, and when it is flagged."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from netbuf_gym.evaluation.suites.field import rfc9743_worlds as worlds
from netbuf_gym.evaluation.suites.field.suite import Results

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
    """

    sections: str
    level: str
    says: str
    value: Callable[[Results, str], float]
    flag: Flag | None
    digits: int = 2


def _count_worlds(settings: Sequence[Any]) -> int:
    """Return the number of worlds of these settings."""
    return len(settings) * len(worlds.SEEDS)


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
        own, honest = (results.mean(name, key, family="misbehave", receiver=one) for one in (list(receivers), worlds.HONEST))
        return own / honest if honest else math.nan

    return value


def _worst(key: str) -> Callable[[Results, str], float]:
    """Return a function for the highest value over worlds in which CUBIC stays below `BREAKS` and no receiver misbehaves."""

    def value(results: Results, name: str) -> float:
        cells = results.select_cells(where=lambda cell: cell.about.get("receiver", worlds.HONEST) == worlds.HONEST)
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
              f"{_count_worlds(worlds.GRID)} with over {100 * MOST_DROPS:g} % drops or under {100 * LEAST_USE:g} % of the link",
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
              _mean("short", "slowdown_p99"), Flag(1.5), 1),
    Criterion("5.1.5", MUST, "the same: slowdown, median", _mean("short", "slowdown_p50"), Flag(1.5), 1),
    Criterion("5.1.5", MUST, "the same: goodput of the long flow (Mbit/s)",
              _mean("short", "long_mbps"), flag_less(0.67), 2),
    Criterion("5.2.3", MUST, "short CUBIC flows beside a long one of its own: slowdown, 99th percentile",
              _mean("short-cubic", "slowdown_p99"), Flag(1.5), 1),
    Criterion("5.2.3", MUST, "the same: slowdown, median", _mean("short-cubic", "slowdown_p50"), Flag(1.5), 1),
    Criterion("5.2.3", MUST, "short flows of its own beside a long CUBIC one: goodput of the CUBIC flow (Mbit/s)",
              _mean("long-cubic", "long_mbps"), flag_less(0.67), 2),
    Criterion("5.2, 5.2.1", MUST, "beside CUBIC, NewReno and BBR, 1:1, 1:8, 8:1: harm over CUBIC's in its place",
              _excess_harm, Flag(1, 0.1), 3),
    Criterion("5.2", MUST, f"the same: worlds of {_count_worlds(worlds.MIXED)} in which others starve that do not beside CUBIC",
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
    Criterion("7.1", SHOULD, "the same, nobody else there: packets marked (%)",
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
              _mean("dc", "slowdown_p99", incast=16), None, 1),
)  # fmt: skip
