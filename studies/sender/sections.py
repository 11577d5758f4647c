"""Sections of the study's appendix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from studies.common.cells import KEYS, TEXTS
from studies.common.experiment import Section
from studies.common.kept import Kept
from studies.common.results import Runs
from studies.common.showing import pictures, ran, where_rows_are
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
    PPCC: "As [TCP-PPCC](../ppcc.md) has them.",
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


def runs_of(kept: Kept) -> Runs:
    """The runs of a campaign."""
    return kept.runs(KEYS, TEXTS, MEASURES)


def tables_of(runs: Runs, study: str) -> list[str]:
    """Tables of a study's runs."""
    claimed = claims.claims_table(runs, study)
    return [*([claimed] if claimed else []), *tables.tables(runs, study)]


def shown(kept: Kept) -> str:
    """The Markdown of a campaign."""
    runs = runs_of(kept)
    lines = [ran(kept.header), "", where_rows_are(kept), ""]
    for study in runs.values("study"):
        said = STUDIES[study]
        lines += [f"### {TITLES[study]}", "", f"{said[0].upper()}{said[1:]}. {WORLDS[study]}", ""]
        for table in tables_of(runs, study):
            lines += [table, ""]
        lines += pictures(kept, FIGURES.get(study, ()))
    return "\n".join(lines)


def of_seeds(kept: Kept) -> str:
    """The Markdown of the claims by training seed, beside the others' runs of the other sections."""
    others = [seeds.others(kept.root, part) for part in seeds.PARTS]
    lines = [f"{kept.header['command']}, and likewise of seeds {kept.header['others']}.", "", where_rows_are(kept), ""]
    return "\n".join([*lines, seeds.table(runs_of(kept), seeds.together(others)), ""])


def verdicts(sections: Mapping[str, Kept]) -> str:
    """The targets of a sender for real paths, by the campaigns of links and of events."""
    if not set(seeds.PARTS) <= set(sections):
        return ""
    return claims.verdicts_of(seeds.together([runs_of(sections[part]) for part in seeds.PARTS]), TITLES)


SECTIONS: dict[str, Section] = dict.fromkeys(seeds.PARTS, shown) | {seeds.SECTION: of_seeds}
"""Studies of many links and traces; of more seeds, those of what happens on a few; and the claims by training seed."""
