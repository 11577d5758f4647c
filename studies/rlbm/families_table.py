"""What `families` measured: kept world by world, and the ratios, intervals, tables and the picture that follow of it."""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from netbuf_gym import stats
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.files import write_atomic
from netbuf_gym.scenarios.switches import DROPS
from netbuf_gym.stats import Interval
from netbuf_gym.tasks.pages import markdown_table
from studies.rlbm.tune_limits import FAMILIES

NAIVE, CONSTANT, FAIR, SLOW, FAST = "naive", "best constant", "fq_codel", "agent, 100 ms", "agent, 10 ms"
RIVALS = (NAIVE, CONSTANT, FAIR)
"""Whom ratios are over."""
BEGAN = {SLOW: "resting pulse, 100 ms", FAST: "sparing pulse, 10 ms"}
"""The rule that each agent begins with."""
AGENTS = tuple(BEGAN)
CONTENDERS = (
    *(NAIVE, CONSTANT, SLOW, FAST, "brief_pulse, 100 ms", "brief_pulse, 10 ms"),
    *(*BEGAN.values(), "searched pulse, 10 ms", "pulse, 10 ms", "pulse_burst, 10 ms", "best constant, 10 ms"),
    *("dt", "abm", "codel", FAIR, "fair queueing"),
)
"""In the order of tables."""
COLUMNS = ("drop", "family", "contender", "slowdowns", "goodputs")
WORSE = 1.03
"""A ratio to the naive buffer above which an agent is worse."""
TICKS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.2, 1.5, 2, 3)
"""Where the plot's axis has numbers."""
HEADER = ("drop", "family", "contender", "slowdown", "over naive", "over constant", "over FQ-CoDel", "goodput over naive's")
Key = tuple[str, str, str]
"""Drop place, family, contender."""


@dataclass(frozen=True)
class Measured:
    """A contender in the worlds of a family, in the order of their seeds.

    Attributes:
        slowdowns: 99th percentiles of the slowdown of priority 0; NaN where no such flow was completed.
        goodputs: in Mbit/s.
    """

    slowdowns: np.ndarray
    goodputs: np.ndarray

    @property
    def slowdown(self) -> Interval:
        """The geometric mean over worlds."""
        return _exp(stats.mean_interval(np.log(self.slowdowns[np.isfinite(self.slowdowns)])))

    def over(self, other: Measured) -> Interval:
        """The ratio of the geometric means, paired by world."""
        both = np.isfinite(self.slowdowns) & np.isfinite(other.slowdowns)
        return _exp(stats.mean_interval(np.log(self.slowdowns[both] / other.slowdowns[both])))

    def goodput_over(self, other: Measured) -> Interval:
        """The ratio of the mean goodputs, paired by world."""
        found, whole = stats.mean_interval(self.goodputs - other.goodputs), float(other.goodputs.mean())
        return Interval(*(1 + value / whole for value in found))


Found = dict[Key, Measured]


def write(path: Path, found: Found, comment: str) -> None:
    """Keeps what was found, four significant digits of it: the same bytes for the same figures."""
    lines = [f"# {comment}", ",".join(COLUMNS)]
    for key in in_order(found):
        values = (" ".join(f"{value:.4g}" for value in one) for one in (found[key].slowdowns, found[key].goodputs))
        lines.append(",".join((*(f'"{word}"' for word in key), *values)))
    write_atomic(path, gzip.compress("\n".join([*lines, ""]).encode(), 9, mtime=0))


def read(path: Path, comment: str, worlds: int) -> Found:
    """What another run has left; nothing where there is no file.

    Raises:
        ConfigError: it cannot be read, is of another command, or damaged.
    """
    if not path.exists():
        return {}
    where = f"output = {str(path)!r}"
    try:
        first, columns, *lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    except (OSError, EOFError, ValueError) as error:
        raise ConfigError(f"{where} cannot be read: {error}; valid: a file of this command, or none") from None
    if first != f"# {comment}" or columns != ",".join(COLUMNS):
        raise ConfigError(f"{where} begins with {shown(first)}; valid: {f'# {comment}'!r}, or no such file")
    found: Found = {}
    for number, line in enumerate(lines, 3):
        words = line.split('"')
        key, rest = tuple(words[1::2]), words[-1].removeprefix(",").split(",")
        if len(key) != 3 or any(word not in valid for word, valid in zip(key, (DROPS, FAMILIES, CONTENDERS), strict=False)):
            raise ConfigError(f"{where}, line {number}: is of {shown(list(key))}; valid: a drop place, a family, a contender")
        try:
            one = Measured(*(np.array(values.split(), float) for values in rest))
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{where}, line {number}: {error}; valid: {worlds} numbers, twice") from None
        if not len(one.slowdowns) == len(one.goodputs) == worlds:
            raise ConfigError(f"{where}, line {number}: has {len(one.slowdowns)} worlds; valid: {worlds}")
        found[key] = one
    return found


def in_order(found: Iterable[Key]) -> list[Key]:
    """Keys as tables have them, whenever they were measured."""
    order = (DROPS, tuple(FAMILIES), CONTENDERS)
    return sorted(found, key=lambda key: [names.index(one) for names, one in zip(order, key, strict=True)])


def table(found: Found) -> str:
    """Markdown: a row a contender, family and drop place."""
    rows = []
    for drop, family, who in in_order(found):
        own, naive = found[drop, family, who], found[drop, family, NAIVE]
        ratios = [_said(own.over(found[drop, family, rival])) for rival in RIVALS]
        low, high = (f"{100 * (end - 1):+.2f}" for end in own.goodput_over(naive)[1:])
        goodput = f"{100 * (own.goodput_over(naive).mean - 1):+.2f} % [{low}, {high}]"
        rows.append([drop, family, who, _said(own.slowdown), *ratios, goodput])
    return markdown_table(HEADER, rows)


def together(found: Found, drop: str, who: str, rival: str) -> Interval:
    """The geometric mean of the ratios of all families, which count alike.

    Worlds of one seed have much in common in all families (its buffer, its load, its flows), so that each seed is one
    observation: what its worlds, of those that have a value, add to the mean over families of the means over worlds.
    """
    parts = []
    for family in dict.fromkeys(key[1] for key in found if key[0] == drop):
        own, other = found[drop, family, who].slowdowns, found[drop, family, rival].slowdowns
        logs = np.log(own / other)
        parts.append((float(np.nanmean(logs)), np.nan_to_num(logs - np.nanmean(logs)) / np.isfinite(logs).sum()))
    mean = math.fsum(one for one, _ in parts) / len(parts)
    influence = np.sum([one for _, one in parts], axis=0) / len(parts)
    return _exp(stats.mean_interval(mean + len(influence) * influence))


def summary(found: Found) -> list[str]:
    """Markdown: each agent's ratios over all families of a drop place together, and where it is worse than the naive buffer."""
    lines = []
    for drop, who in ((drop, who) for drop in DROPS for who in AGENTS):
        count = sum(key[0] == drop and key[2] == who for key in found)
        if count > 1:
            named = {rival: rival.replace("_", "-") for rival in RIVALS}
            if (drop, "random", BEGAN[who]) in found:
                named[BEGAN[who]] = "the rule that it begins with"
            ratios = ", ".join(f"over {name} {_said(together(found, drop, who, rival))}" for rival, name in named.items())
            lines.append(f"* {who}, drops at the {drop}, {count} families: {ratios}")
    named = []
    for drop, family, who in in_order(found):
        ratio = found[drop, family, who].over(found[drop, family, NAIVE])
        if who in AGENTS and ratio.mean > WORSE:
            named.append(f"{who}, {family}, {drop} ({_said(ratio)})")
    return [*lines, f"* Worse than the naive buffer by more than {100 * (WORSE - 1):.0f} %: {'; '.join(named) or 'nowhere'}"]


def draw(found: Found, path: Path) -> None:
    """A picture of the ratios to the naive buffer with their intervals: a panel for each drop place, a group for each family.

    Raises:
        OSError: it cannot be written.
    """
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    from netbuf_gym.plots import COLOURS, figure_of, write

    drops, families = (list(dict.fromkeys(key[place] for key in in_order(found))) for place in (0, 1))
    shown = [who for who in CONTENDERS if who != NAIVE and any(key[2] == who for key in found)]
    figure = figure_of(10, (4 if len(families) > 1 else 3) * len(drops))
    axes = figure.subplots(len(drops), 1, squeeze=False, sharex=True)
    for axis, drop in zip(axes[:, 0], drops, strict=True):
        ends: list[float] = []
        for place, who in enumerate(shown):
            own = {family: found[drop, family, who] for family in families if (drop, family, who) in found}
            ratios = np.array([one.over(found[drop, family, NAIVE]) for family, one in own.items()])
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
    axes[0, 0].legend(ncols=4, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1.01))  # above what it names
    write(figure, path)


@dataclass(frozen=True)
class Must:
    """A figure that agents of the switch are to have.

    Attributes:
        what: it is, a phrase.
        drop, family, who: of whom.
        most: the geometric mean of the slowdown is at most this.
        beside: of whose ratios the intervals must leave 1 out.
    """

    what: str
    drop: str
    family: str
    who: str
    most: float
    beside: tuple[str, ...] = ()


MUSTS = (
    Must("tail drops, 100 ms, `rlbm/random`", "tail", "random", SLOW, 3.6),
    Must("tail drops, 10 ms, `rlbm/random`", "tail", "random", FAST, 2.9),
    Must("head drops, 100 ms, `rlbm/random`", "head", "random", SLOW, 2.3, (CONSTANT, FAIR)),
    Must("head drops, 10 ms, `rlbm/random`", "head", "random", FAST, 2.3, (CONSTANT, FAIR)),
    Must("incast, tail drops, 100 ms", "tail", "incast", SLOW, 25),
    Must("incast, tail drops, 10 ms", "tail", "incast", FAST, 25),
    Must("incast, head drops, 100 ms", "head", "incast", SLOW, 15),
    Must("incast, head drops, 10 ms", "head", "incast", FAST, 15),
)


def musts(found: Found, others: Found, long: Found) -> str:
    """Markdown: what was asked of the agents, what they have, what the best constant has, and whether it holds.

    Args:
        found: `rlbm/random`.
        others: all families.
        long: worlds of 300 s.
    """
    rows = []
    for must in MUSTS:
        of = found if must.family == "random" else others
        own, constant = (of[must.drop, must.family, who] for who in (must.who, CONSTANT))
        ratios = {rival: own.over(of[must.drop, must.family, rival]) for rival in must.beside}
        holds = own.slowdown.mean <= must.most and all(ratio.high < 1 for ratio in ratios.values())
        asked = f"at most {must.most:g}" + "".join(f", below {rival.replace('_', '-')}'s" for rival in must.beside)
        said = "".join(f"; {_said(ratio)} of {rival.replace('_', '-')}'s" for rival, ratio in ratios.items())
        rows.append([must.what, asked, f"{_said(own.slowdown)}{said}", _said(constant.slowdown), _verdict(holds)])
    short = {who: who.partition(", ")[2] for who in AGENTS}
    for who in AGENTS:
        ratios = {key: others[key].over(others[(*key[:2], NAIVE)]) for key in in_order(others) if key[2] == who}
        worst = max(ratios, key=lambda key: ratios[key].mean)
        said = f"at most {_said(ratios[worst])}: {worst[1]}, {worst[0]}"
        asked = f"at most {WORSE:g} of naive's"
        rows.append([f"every family and drop place, {short[who]}", asked, said, "", _verdict(ratios[worst].mean <= WORSE)])
    for drop, who in ((drop, who) for drop in DROPS for who in AGENTS):
        ratio = together(others, drop, who, CONSTANT)
        what = f"all families, {drop} drops, {short[who]}"
        rows.append([what, "below best constant's", _said(ratio), "1", _verdict(ratio.high < 1)])
    for drop, who in ((drop, who) for drop in DROPS for who in AGENTS):
        goodput = long[drop, "random", who].goodput_over(long[drop, "random", NAIVE])
        constant = long[drop, "random", CONSTANT].goodput_over(long[drop, "random", NAIVE])
        what = f"goodput over 300 s, {drop} drops, {short[who]}"
        rows.append([what, "at least 0.99 of naive's", _said(goodput), _said(constant), _verdict(goodput.mean >= 0.99)])
    return markdown_table(("what", "asked", "the agent", "best constant", ""), rows)


def _verdict(holds: bool) -> str:
    return "holds" if holds else "**missed**"


def _exp(interval: Interval) -> Interval:
    return Interval(*(math.exp(value) for value in interval))


def _said(interval: Interval | Sequence[float]) -> str:
    mean, low, high = interval
    return "-" if math.isnan(mean) else f"{mean:.3f} [{low:.3f}, {high:.3f}]"
