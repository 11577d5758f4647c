"""What the page about the campaign shows of it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from studies.common.cells import KEYS, TEXTS
from studies.common.experiment import Section
from studies.common.results import Runs
from studies.common.showing import described, kept, pictures, ran, write_means, write_rows
from studies.sender import bounds, claims, seeds, tables, trace_cells, worlds
from studies.sender.measures import MEASURES
from studies.sender.settings import (
    AGENTS,
    DELAY_STEP,
    ELSEWHERE,
    GRID,
    OUTAGE,
    PPCC,
    REVERSE,
    RIVALS,
    START,
    STUDIES,
    TRACES,
)
from studies.sender.studies import ALL


def _listed(values: Iterable[object]) -> str:
    words = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _drawn(from_s: float) -> str:
    """When something begins that the seed says."""
    return f"{from_s:g} to {from_s + worlds.DRAWN_S:g}"


TITLES = {
    PPCC: "TCP-PPCC's scenarios",
    GRID: "Links of all sizes",
    START: "The start on a fast link",
    TRACES: "Measured traces",
    OUTAGE: "Outages",
    DELAY_STEP: "Round trips that change",
    REVERSE: "Traffic on the way back",
    RIVALS: "Beside other controls",
    AGENTS: "Several of a kind",
    ELSEWHERE: "On other paths",
}
FIGURES = {
    GRID: ("grid",),
    START: ("start",),
    TRACES: ("traces",),
    OUTAGE: ("outage",),
    DELAY_STEP: ("delay_step",),
    RIVALS: ("rivals",),
    AGENTS: ("agents", "joining"),
}


LINKS = f"propagation of {worlds.RTT_MS:g} ms there and back"
WORLDS = {
    PPCC: "As [TCP-PPCC](ppcc.md) has them.",
    GRID: (
        f"{len(worlds.GRID_CELLS)} links: {_listed(worlds.RATES_MBPS)} Mbit/s, {_listed(worlds.RTTS_MS)} ms, buffers of"
        f" {_listed(worlds.BUFFERS_BDP)} BDP, {_listed([100 * loss for loss in worlds.LOSSES])} % lost at random. Runs of"
        f" {worlds.GRID_S:g} s, halved while a link carries more than {worlds.GRID_MBIT:g} Mbit, but not below"
        f" {worlds.GRID_LEAST_S:g} s or {worlds.GRID_LEAST_RTTS} round trips."
    ),
    START: f"{worlds.START_MBPS:g} Mbit/s and {worlds.START_RTT_MS:g} ms.",
    TRACES: (
        f"{_listed([f'{len(names)} of {trace_cells.SAID[family]}' for family, names in trace_cells.FILES.items()])}; windows of"
        f" {ALL[TRACES].usual_s:g} s, {LINKS}, buffers of 1 BDP, 4 BDP and 250 packets. Utility is that with a trace's mean"
        " capacity. Bounds are controls that are told the capacity: the *oracle* that of the round trip that begins now, the"
        f" *causal bound* that of the {bounds.INTERVAL_MS} ms, the usual interval of decisions, that ended a round trip ago"
        " (who decides more often may have heard of what is newer); each"
        f" with the best of the scales {_listed(bounds.SCALES)} in each world. The best classic is the one with the highest"
        " mean over a family."
    ),
    OUTAGE: (
        f"Of {ALL[OUTAGE].usual_s * worlds.OUTAGE_LASTS:g} s after {_drawn(ALL[OUTAGE].usual_s * worlds.OUTAGE_AT)} s, {LINKS},"
        " a buffer of 1 BDP."
    ),
    DELAY_STEP: (
        f"After {_drawn(ALL[DELAY_STEP].usual_s * worlds.STEP_AT)} s of {ALL[DELAY_STEP].usual_s:g}, from"
        f" {worlds.STEP_RTT_MS['up']:g} ms on up and from {worlds.STEP_RTT_MS['down']:g} ms on down; a buffer of 1 BDP of the"
        " shorter."
    ),
    REVERSE: f"The way back has the bottleneck's rate and buffer; {LINKS}.",
    RIVALS: f"{worlds.RIVALS_MBPS:g} Mbit/s, {LINKS}; either begins, and the other within {worlds.DRAWN_S:g} s.",
    AGENTS: (
        f"{worlds.AGENTS_MBPS:g} Mbit/s, {LINKS}; all begin within {worlds.DRAWN_S:g} s, or {worlds.JOINERS} one after the"
        f" other every {ALL[AGENTS].usual_s / (worlds.JOINERS + 1):g} s. Where it is said, {worlds.SLOW_MBPS:g} Mbit/s and"
        f" {worlds.SLOW_RTT_MS:g} ms."
    ),
    ELSEWHERE: "Buffers are in BDP of each path; a round trip that changes is said as it is before.",
}
"""The worlds of each study in words."""


def read(source: Path) -> Runs:
    """The runs of a finished campaign."""
    return Runs.read(source / "runs.csv", KEYS, TEXTS, tuple(MEASURES))


def tables_of(runs: Runs, study: str) -> list[str]:
    """What is said of a study's runs, as the page has it."""
    claimed = claims.claims_table(runs, study)
    return [*([claimed] if claimed else []), *tables.tables(runs, study)]


def shown(name: str, source: Path, folder: Path) -> str:
    """The Markdown of a campaign; copies its runs and their means, into files of the section's name, and its figures."""
    description, runs = described(source), read(source)
    runs = write_rows(runs.where(step=0), TEXTS, folder / f"rows-{name}.csv.gz")
    write_means(runs, folder / f"means-{name}.csv.gz")
    lines = [ran(description), "", kept(folder, f"rows-{name}.csv.gz"), ""]
    for study in runs.values("study"):
        said = STUDIES[study]
        lines += [f"### {TITLES[study]}", "", f"{said[0].upper()}{said[1:]}. {WORLDS[study]}", ""]
        for table in tables_of(runs, study):
            lines += [table, ""]
        drawn = [path for name in FIGURES.get(study, ()) if (path := source / "figures" / f"{name}.png").is_file()]
        lines += pictures(drawn, folder)
    return "\n".join(lines)


SECTIONS: dict[str, Section] = {name: partial(shown, name) for name in seeds.PARTS} | {"seeds": seeds.shown}
"""Studies of many links and traces; of more seeds, those of what happens on a few; and the musts by training seed."""
