"""Measurements of `families`, kept world by world, and the ratios, intervals, tables and picture derived from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from netbuf_gym.errors import ReferenceDataError, quote
from netbuf_gym.scenarios.switches import DROPS
from netbuf_gym.tasks.tables import markdown_table
from netbuf_gym.utils import statistics
from netbuf_gym.utils.statistics import Interval
from studies.common.kept import KeptRows
from studies.common.verdicts import format_verdicts_table
from studies.switch.switch_settings import FAMILIES

NAIVE, CONSTANT, FAIR, SLOW, FAST = "naive", "best constant", "fq_codel", "agent, 100 ms", "agent, 10 ms"
RIVALS = (NAIVE, CONSTANT, FAIR)
"""Controllers that ratios are relative to."""
BEGAN = {SLOW: "resting pulse, 100 ms", FAST: "sparing pulse, 10 ms"}
"""Rule that each agent begins with."""
AGENTS = tuple(BEGAN)
CONTROLLERS = (
    *(NAIVE, CONSTANT, SLOW, FAST, "brief_pulse, 100 ms", "brief_pulse, 10 ms"),
    *(*BEGAN.values(), "searched pulse, 10 ms", "pulse, 10 ms", "pulse_burst, 10 ms", "best constant, 10 ms"),
    *("dt", "abm", "codel", FAIR, "fair queueing"),
)
"""Controllers in the order of tables."""
PICTURES = {"random": "families_random.svg", "families": "families.svg"}
"""File names of pictures by section."""
COLUMNS = ("drop", "family", "controller", "slowdowns", "goodputs")
WORSE = 1.03
"""Ratio to the naive buffer above which an agent counts as worse."""
TICKS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.2, 1.5, 2, 3)
"""Labelled ticks of the plot's axis."""
HEADER = ("drop", "family", "controller", "slowdown", "over naive", "over constant", "over FQ-CoDel", "goodput over naive's")
Key = tuple[str, str, str]
"""Key of a row: drop place, family, controller."""


@dataclass(frozen=True)
class Measurements:
    """Measurements of a controller in the worlds of a family, in the order of their seeds.

    Attributes:
        slowdowns: 99th percentiles of the slowdown of priority 0; NaN where no such flow was completed.
        goodputs: Goodputs in Mbit/s.
    """

    slowdowns: np.ndarray
    goodputs: np.ndarray

    @property
    def slowdown(self) -> Interval:
        """Geometric mean of the slowdown over worlds."""
        return _exponentiate(statistics.mean_interval(np.log(self.slowdowns[np.isfinite(self.slowdowns)])))

    def compute_ratio(self, other: Measurements) -> Interval:
        """Return the ratio of the geometric means of the slowdowns, paired by world."""
        both = np.isfinite(self.slowdowns) & np.isfinite(other.slowdowns)
        return _exponentiate(statistics.mean_interval(np.log(self.slowdowns[both] / other.slowdowns[both])))

    def compute_goodput_ratio(self, other: Measurements) -> Interval:
        """Return the ratio of the mean goodputs, paired by world."""
        found, whole = statistics.mean_interval(self.goodputs - other.goodputs), float(other.goodputs.mean())
        return Interval(*(1 + value / whole for value in found))


FoundMeasurements = dict[Key, Measurements]


def format_rows(found: FoundMeasurements) -> str:
    """Return the rows to be kept as CSV, with four significant digits: the same bytes for the same measurements."""
    lines = [",".join(COLUMNS)]
    for key in sort_keys(found):
        values = (" ".join(f"{value:.4g}" for value in one) for one in (found[key].slowdowns, found[key].goodputs))
        lines.append(",".join((*(f'"{word}"' for word in key), *values)))
    return "\n".join([*lines, ""])


def parse_rows(kept: KeptRows) -> FoundMeasurements:
    """Parse the kept measurements.

    Raises:
        ReferenceDataError: A row is damaged; the error names the row.
    """
    found: FoundMeasurements = {}
    worlds = kept.header["worlds"]
    for line, row in enumerate(kept.records, 3):
        key = row["drop"], row["family"], row["controller"]
        if any(word not in valid for word, valid in zip(key, (DROPS, FAMILIES, CONTROLLERS), strict=True)):
            raise ReferenceDataError(f"is of {quote(list(key))}; valid: a drop place, a family, a controller", kept.path, line)
        try:
            one = Measurements(*(np.array(row[name].split(), float) for name in COLUMNS[3:]))
        except ValueError as error:
            raise ReferenceDataError(f"{error}; valid: {worlds} numbers, twice", kept.path, line) from None
        if not len(one.slowdowns) == len(one.goodputs) == worlds:
            raise ReferenceDataError(f"has {len(one.slowdowns)} worlds; valid: {worlds}", kept.path, line)
        found[key] = one
    return found


def sort_keys(found: Iterable[Key]) -> list[Key]:
    """Sort keys into the order of tables."""
    order = (DROPS, tuple(FAMILIES), CONTROLLERS)
    return sorted(found, key=lambda key: [names.index(one) for names, one in zip(order, key, strict=True)])


def format_table(found: FoundMeasurements) -> str:
    """Return a Markdown table with a row for each controller, family and drop place."""
    rows = []
    for drop, family, who in sort_keys(found):
        own, naive = found[drop, family, who], found[drop, family, NAIVE]
        ratios = [_format_interval(own.compute_ratio(found[drop, family, rival])) for rival in RIVALS]
        low, high = (f"{100 * (end - 1):+.2f}" for end in own.compute_goodput_ratio(naive)[1:])
        goodput = f"{100 * (own.compute_goodput_ratio(naive).mean - 1):+.2f} % [{low}, {high}]"
        rows.append([drop, family, who, _format_interval(own.slowdown), *ratios, goodput])
    return markdown_table(HEADER, rows)


def combine_families(found: FoundMeasurements, drop: str, who: str, rival: str) -> Interval:
    """Return the geometric mean of the ratios over all families, with equal weights.

    Worlds of one seed have much in common in all families (buffer, load, flows), so that each seed is one observation: the
    contribution of the seed's worlds, of those that have a value, to the mean over families of the means over worlds.
    """
    parts = []
    for family in dict.fromkeys(key[1] for key in found if key[0] == drop):
        own, other = found[drop, family, who].slowdowns, found[drop, family, rival].slowdowns
        logs = np.log(own / other)
        parts.append((float(np.nanmean(logs)), np.nan_to_num(logs - np.nanmean(logs)) / np.isfinite(logs).sum()))
    mean = math.fsum(one for one, _ in parts) / len(parts)
    influence = np.sum([one for _, one in parts], axis=0) / len(parts)
    return _exponentiate(statistics.mean_interval(mean + len(influence) * influence))


def format_summary(found: FoundMeasurements) -> list[str]:
    """Return Markdown lines: agents' ratios over all families of a drop place, and where the naive buffer is better."""
    lines = []
    for drop, who in ((drop, who) for drop in DROPS for who in AGENTS):
        count = sum(key[0] == drop and key[2] == who for key in found)
        if count > 1:
            named = {rival: rival.replace("_", "-") for rival in RIVALS}
            if (drop, "random", BEGAN[who]) in found:
                named[BEGAN[who]] = "the rule that it begins with"
            ratios = ", ".join(
                f"over {name} {_format_interval(combine_families(found, drop, who, rival))}" for rival, name in named.items()
            )
            lines.append(f"* {who}, drops at the {drop}, {count} families: {ratios}")
    worse = []
    for drop, family, who in sort_keys(found):
        ratio = found[drop, family, who].compute_ratio(found[drop, family, NAIVE])
        if who in AGENTS and ratio.mean > WORSE:
            worse.append(f"{who}, {family}, {drop} ({_format_interval(ratio)})")
    return [*lines, f"* Worse than the naive buffer by more than {100 * (WORSE - 1):.0f} %: {'; '.join(worse) or 'nowhere'}"]


def draw_ratios(found: FoundMeasurements, path: Path) -> None:
    """Draw the ratios to the naive buffer with their intervals: a panel for each drop place, a group for each family.

    Raises:
        OSError: The picture cannot be written.
    """
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    from netbuf_gym.utils.plots import COLOURS, make_figure, write_figure

    drops, families = (list(dict.fromkeys(key[place] for key in sort_keys(found))) for place in (0, 1))
    shown = [who for who in CONTROLLERS if who != NAIVE and any(key[2] == who for key in found)]
    figure = make_figure(10, (4 if len(families) > 1 else 3) * len(drops))
    axes = figure.subplots(len(drops), 1, squeeze=False, sharex=True)
    for axis, drop in zip(axes[:, 0], drops, strict=True):
        ends: list[float] = []
        for place, who in enumerate(shown):
            own = {family: found[drop, family, who] for family in families if (drop, family, who) in found}
            ratios = np.array([one.compute_ratio(found[drop, family, NAIVE]) for family, one in own.items()])
            if len(ratios):
                at = [families.index(family) + 0.8 * (place - (len(shown) - 1) / 2) / len(shown) for family in own]
                about = np.abs(ratios[:, 1:].T - ratios[:, 0])
                look = {"color": COLOURS[place % len(COLOURS)], "markersize": 4, "fmt": "D" if who in AGENTS else "o"}
                axis.errorbar(at, ratios[:, 0], about, label=who, **look)
                ends += [ratios[:, 1].min(), ratios[:, 2].max()]
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_yscale("log")
        axis.set_yticks([tick for tick in TICKS if 0.9 * min(ends) < tick < 1.1 * max(ends)])
        axis.yaxis.set_major_formatter(ScalarFormatter())
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set_ylabel(f"p99 slowdown, priority 0,\nover the naive buffer's; drops at the {drop}")
        axis.set_xticks(range(len(families)), [name.replace("_", " ") for name in families])
    axes[0, 0].legend(ncols=4, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1.01))  # above the panels
    write_figure(figure, path)


@dataclass(frozen=True)
class Target:
    """Target for the slowdown of an agent of the switch.

    Attributes:
        drop, family, who: Drop place, family and agent of the target.
        most: Upper limit of the geometric mean of the slowdown.
        beside: Rivals to whom the whole interval of the ratio is to be below 1.
    """

    drop: str
    family: str
    who: str
    most: float
    beside: tuple[str, ...] = ()


TARGETS = (
    Target("tail", "random", SLOW, 3.6),
    Target("tail", "random", FAST, 2.9),
    Target("head", "random", SLOW, 2.3, (CONSTANT, FAIR)),
    Target("head", "random", FAST, 2.3, (CONSTANT, FAIR)),
    Target("tail", "incast", SLOW, 25),
    Target("tail", "incast", FAST, 25),
    Target("head", "incast", SLOW, 15),
    Target("head", "incast", FAST, 15),
)


def format_verdicts(found: FoundMeasurements, others: FoundMeasurements, long: FoundMeasurements) -> str:
    """Return a Markdown table of the targets, the agents' and the best constant's values, and whether the targets hold.

    Args:
        found: Measurements in `rlbm/random`.
        others: Measurements in all families.
        long: Measurements in worlds of 300 s.
    """
    rows = []
    for target in TARGETS:
        of = found if target.family == "random" else others
        own, constant = (of[target.drop, target.family, who] for who in (target.who, CONSTANT))
        ratios = {rival: own.compute_ratio(of[target.drop, target.family, rival]) for rival in target.beside}
        holds = own.slowdown.mean <= target.most and all(ratio.high < 1 for ratio in ratios.values())
        wanted = f"at most {target.most:g}" + "".join(f", below {_format_rival(rival)}'s" for rival in target.beside)
        said = _format_interval(own.slowdown) + "".join(
            f"; {_format_interval(ratio)} of {_format_rival(rival)}'s" for rival, ratio in ratios.items()
        )
        where = "`rlbm/random`" if target.family == "random" else target.family
        what = f"slowdown, {where}, {target.drop} drops, {_get_interval_name(target.who)}"
        rows.append([what, wanted, f"{said}; best constant {_format_interval(constant.slowdown)}", _decide_verdict(holds)])
    for who in AGENTS:
        over = {key: others[key].compute_ratio(others[(*key[:2], NAIVE)]) for key in sort_keys(others) if key[2] == who}
        worst = max(over, key=lambda key: over[key].mean)
        said = f"at most {_format_interval(over[worst])}: {worst[1]}, {worst[0]}"
        what = f"slowdown, every family and drop place, {_get_interval_name(who)}"
        rows.append([what, f"at most {WORSE:g} of naive's", said, _decide_verdict(over[worst].mean <= WORSE)])
    for drop, who in ((drop, who) for drop in DROPS for who in AGENTS):
        ratio = combine_families(others, drop, who, CONSTANT)
        what = f"slowdown, all families, {drop} drops, {_get_interval_name(who)}"
        rows.append([what, "below best constant's", _format_interval(ratio), _decide_verdict(ratio.high < 1)])
    for drop, who in ((drop, who) for drop in DROPS for who in AGENTS):
        naive = long[drop, "random", NAIVE]
        goodput, best = (long[drop, "random", one].compute_goodput_ratio(naive) for one in (who, CONSTANT))
        what = f"goodput over 300 s, {drop} drops, {_get_interval_name(who)}"
        rows.append(
            [
                what,
                "at least 0.99 of naive's",
                f"{_format_interval(goodput)}; best constant {_format_interval(best)}",
                _decide_verdict(goodput.mean >= 0.99),
            ]
        )
    return format_verdicts_table(rows, ("claim", "target", "ours", "verdict"))


def _get_interval_name(who: str) -> str:
    return who.partition(", ")[2]


def _format_rival(rival: str) -> str:
    return rival.replace("_", "-")


def _decide_verdict(holds: bool) -> str:
    return "holds" if holds else "does not hold"


def _exponentiate(interval: Interval) -> Interval:
    return Interval(*(math.exp(value) for value in interval))


def _format_interval(interval: Interval | Sequence[float]) -> str:
    mean, low, high = interval
    return "-" if math.isnan(mean) else f"{mean:.3f} [{low:.3f}, {high:.3f}]"
