"""Families in which controllers of the switch are judged, rows of their metrics, and the ratios and tables made from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import partial

import numpy as np

from netbuf_gym.errors import ReferenceDataError
from netbuf_gym.scenarios.switches import DROPS
from netbuf_gym.tasks.queue_threshold.families import SwitchFamily
from netbuf_gym.tasks.tables import markdown_table
from netbuf_gym.utils import statistics
from netbuf_gym.utils.statistics import Interval
from studies.common import kept

NAIVE, FAIR = "naive", "fq_codel"
LOSS_BASED = ("cubic", "newreno")

FAMILIES: Mapping[str, SwitchFamily] = {
    "random": SwitchFamily("10 Mbit/s, 20 ms", (10, 10), (20, 20), load=(0.2, 0.8), cc=LOSS_BASED),
    "plain": SwitchFamily("9 to 40 Mbit/s, 8 to 45 ms, also BBR", (9, 40), (8, 45), load=(0.2, 0.9)),
    "light": SwitchFamily("loads of 0.12 to 0.25", (9, 40), (8, 45), load=(0.12, 0.25)),
    "heavy": SwitchFamily("loads of 0.85 to 1", (9, 40), (8, 45), load=(0.85, 1.0)),
    "rtt_1": SwitchFamily("round trips of 0.7 to 1.5 ms", (9, 40), (0.7, 1.5)),
    "rtt_4": SwitchFamily("round trips of 3 to 5 ms", (9, 40), (3, 5)),
    "rtt_80": SwitchFamily("round trips of 70 to 90 ms", (9, 40), (70, 90)),
    "rtt_130": SwitchFamily("round trips of 120 to 145 ms", (9, 40), (120, 145)),
    "8_mbps": SwitchFamily("7.5 to 9 Mbit/s", (7.5, 9), (8, 45)),
    "25_mbps": SwitchFamily("22 to 28 Mbit/s", (22, 28), (8, 45)),
    "50_mbps": SwitchFamily("45 to 55 Mbit/s", (45, 55), (8, 45)),
    "100_mbps": SwitchFamily("90 to 110 Mbit/s", (90, 110), (8, 45)),
    "190_mbps": SwitchFamily("180 to 200 Mbit/s", (180, 200), (8, 45)),
    "bbr": SwitchFamily("all hosts BBR", (9, 40), (8, 45), cc=("bbr",)),
    "newreno": SwitchFamily("all hosts NewReno", (9, 40), (8, 45), cc=("newreno",)),
    "mice": SwitchFamily("two fifths of the load in flows of 1 to 30 kB", (9, 40), (8, 45), mice=0.4),
    "far_mice": SwitchFamily("the same at 70 to 90 ms", (9, 40), (70, 90), mice=0.4),
    "data_mining": SwitchFamily("sizes of data mining", (9, 40), (8, 45), sizes="data_mining"),
    "50_hosts": SwitchFamily("40 to 60 hosts", (9, 40), (8, 45), hosts=(40, 60)),
    "150_hosts": SwitchFamily("130 to 170 hosts", (9, 40), (8, 45), hosts=(130, 170)),
    "incast_12": SwitchFamily("bursts of 11 to 14 hosts", (9, 40), (8, 45), hosts=(11, 14), load=(0.2, 0.6), incast=True),
    "incast_40": SwitchFamily("bursts of 35 to 50 hosts", (9, 40), (8, 45), hosts=(35, 50), load=(0.2, 0.6), incast=True),
    "strict": SwitchFamily("strict priority", (9, 40), (8, 45), scheduler="strict_priority"),
}
"""Families by name: other rates, round trips, hosts and shares than those of `switch/families`."""
INCAST = tuple(name for name, one in FAMILIES.items() if one.incast)


@dataclass(frozen=True)
class Measured:
    """Metrics of a controller in the worlds of a family, `(worlds,)` each, NaN where nothing was to measure.

    Attributes:
        slowdown_p99_p0, slowdown_p99_p1: 99th percentiles of the slowdown of priority 0 and 1.
        goodput_mbps: Goodputs.
    """

    slowdown_p99_p0: np.ndarray
    slowdown_p99_p1: np.ndarray
    goodput_mbps: np.ndarray


METRICS = tuple(one.name for one in fields(Measured))
COLUMNS = ("drop", "family", "controller", *METRICS)
Key = tuple[str, str, str]
"""Key of a row: drop place, family, controller."""


def format_rows(found: Mapping[Key, Measured]) -> str:
    """Return the rows to be kept as CSV, six significant digits."""
    rows = []
    for key, one in found.items():
        values = {metric: " ".join(f"{value:.6g}" for value in getattr(one, metric)) for metric in METRICS}
        rows.append(dict(zip(COLUMNS, (*key, *values.values()), strict=True)))
    return kept.format_rows(COLUMNS, rows)


def parse_rows(rows: kept.KeptRows) -> dict[Key, Measured]:
    """Parse the kept rows.

    Raises:
        ReferenceDataError: A row is damaged; the error names it.
    """
    found, worlds = {}, rows.header["worlds"]
    for line, row in enumerate(rows.records, 3):
        try:
            one = Measured(*(np.array(row[metric].split(), float) for metric in METRICS))
        except ValueError as error:
            raise ReferenceDataError(f"{error}; valid: {worlds} numbers a column", rows.path, line) from None
        if row["drop"] not in DROPS or row["family"] not in FAMILIES:
            raise ReferenceDataError(f"is of {row['drop']} {row['family']}; valid: a drop place, a family", rows.path, line)
        if any(len(getattr(one, metric)) != worlds for metric in METRICS):
            raise ReferenceDataError(f"has another number of worlds than {worlds}", rows.path, line)
        found[row["drop"], row["family"], row["controller"]] = one
    return found


def compute_ratio(
    found: Mapping[Key, Measured], drop: str, families: Iterable[str], who: str, other: str, metric: str
) -> Interval:
    """Return the geometric mean of a metric over another controller's in the same worlds, families weighing the same.

    The interval is that of a bootstrap that draws the worlds of each family anew. Worlds where one of them has no value are
    left out; NaN without any.
    """
    groups = []
    for family in families:
        ours, theirs = (getattr(found[drop, family, name], metric) for name in (who, other))
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(ours / theirs)
        if (known := np.isfinite(logs)).any():
            groups.append(logs[known])
    if not groups:
        return Interval(math.nan, math.nan, math.nan)
    return Interval(*(math.exp(end) for end in statistics.grouped_interval(groups, middle=False)))


SUMMARY = (
    *("drop", "controller", "p99 over FQ-CoDel", "in incast", "long flows' p99 over naive"),
    *("goodput over naive's", "in the worst family", "misses"),
)


def format_tables(found: Mapping[Key, Measured]) -> str:
    """Return a table of all controllers over all families, and one of each family, as Markdown."""
    drops, families, players = (list(dict.fromkeys(key[place] for key in found)) for place in range(3))
    incast, summary, each = [name for name in families if name in INCAST], [], []
    for drop, who in ((drop, who) for drop in drops for who in players):
        ratio = partial(compute_ratio, found, drop)
        short = ratio(families, who, FAIR, "slowdown_p99_p0")
        bursts = ratio(incast, who, FAIR, "slowdown_p99_p0")
        long = ratio(families, who, NAIVE, "slowdown_p99_p1")
        goodput = ratio(families, who, NAIVE, "goodput_mbps")
        by_family = {family: ratio([family], who, NAIVE, "goodput_mbps") for family in families}
        worst = min(by_family, key=lambda family: np.nan_to_num(by_family[family].mean, nan=-math.inf))
        missed = {
            "p99": short.mean > 1,
            "incast": bursts.mean > 1.1,
            "long flows": long.mean > 1.1,
            "goodput": not by_family[worst].mean >= 0.99,
        }
        cells = [*map(_format_ratio, (short, bursts, long, goodput)), f"{worst} {_format_ratio(by_family[worst])}"]
        summary.append([drop, who, *cells, ", ".join(name for name, is_missed in missed.items() if is_missed) or "nothing"])
        for family in families:
            short, long = (
                ratio([family], who, other, metric) for other, metric in ((FAIR, "slowdown_p99_p0"), (NAIVE, "slowdown_p99_p1"))
            )
            each.append([drop, family, who, *map(_format_ratio, (short, long, by_family[family]))])
    heads = ("drop", "family", "controller", "p99 over FQ-CoDel", "long flows' p99 over naive", "goodput over naive's")
    order = sorted(each, key=lambda row: (drops.index(row[0]), families.index(row[1])))
    return f"{markdown_table(SUMMARY, summary)}\n\n{markdown_table(heads, order)}"


def _format_ratio(interval: Interval) -> str:
    return "-" if math.isnan(interval.mean) else str(interval)
