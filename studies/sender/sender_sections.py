"""Sections of the study's appendix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from studies.common.cells import KEYS, TEXTS
from studies.common.experiment import Section
from studies.common.kept import KeptRows
from studies.common.results import Runs
from studies.common.showing import describe_rows_file, describe_run, show_figures
from studies.sender import bounds, seeds, strangers, trace_cells
from studies.sender import sender_claims as claims
from studies.sender import sender_tables as tables
from studies.sender import sender_worlds as worlds
from studies.sender.sender_measures import MEASURES
from studies.sender.sender_settings import (
    AGENTS,
    DELAY_STEP,
    ELSEWHERE,
    GRID,
    OUTAGE,
    PPCC,
    REVERSE,
    RIVALS,
    START,
    STRANGERS,
    STUDIES,
    TRACES,
)
from studies.sender.studies import ALL


def _format_list(values: Iterable[object]) -> str:
    words = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _format_start_range(from_s: float) -> str:
    """Return in words the range from which a seed draws the start of an event."""
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
    STRANGERS: "Among strangers",
}
FIGURES = {
    GRID: ("grid",),
    START: ("start",),
    TRACES: ("traces",),
    OUTAGE: ("outage",),
    DELAY_STEP: ("delay_step",),
    RIVALS: ("rivals",),
    AGENTS: ("agents", "joining"),
    STRANGERS: ("strangers",),
}


LINKS = f"propagation of {worlds.RTT_MS:g} ms there and back"
WORLDS = {
    PPCC: "As [TCP-PPCC](../ppcc.md) has them.",
    GRID: (
        f"{len(worlds.GRID_CELLS)} links: {_format_list(worlds.RATES_MBPS)} Mbit/s, {_format_list(worlds.RTTS_MS)} ms, buffers"
        f" of {_format_list(worlds.BUFFERS_BDP)} BDP, {_format_list([100 * loss for loss in worlds.LOSSES])} % lost at"
        f" random. Runs of {worlds.GRID_S:g} s, halved while a link carries more than {worlds.GRID_MBIT:g} Mbit, but not below"
        f" {worlds.GRID_LEAST_S:g} s or {worlds.GRID_LEAST_RTTS} round trips."
    ),
    START: f"{worlds.START_MBPS:g} Mbit/s and {worlds.START_RTT_MS:g} ms.",
    TRACES: (
        f"{_format_list([f'{len(names)} of {trace_cells.SAID[family]}' for family, names in trace_cells.FILES.items()])};"
        f" windows of {ALL[TRACES].usual_s:g} s, {LINKS}, buffers of 1 BDP, 4 BDP and 250 packets. Utility is that with a"
        " trace's mean capacity. Bounds are controls that are told the capacity: the *oracle* that of the round trip that"
        f" begins now, the *causal bound* that of the {bounds.INTERVAL_MS} ms, the usual interval of decisions, that ended a"
        " round trip ago (who decides more often may have heard of what is newer); each"
        f" with the best of the scales {_format_list(bounds.SCALES)} in each world. The best classic is the one with the"
        " highest mean over a family."
    ),
    OUTAGE: (
        f"Of {ALL[OUTAGE].usual_s * worlds.OUTAGE_LASTS:g} s after"
        f" {_format_start_range(ALL[OUTAGE].usual_s * worlds.OUTAGE_AT)} s, {LINKS}, a buffer of 1 BDP."
    ),
    DELAY_STEP: (
        f"After {_format_start_range(ALL[DELAY_STEP].usual_s * worlds.STEP_AT)} s of {ALL[DELAY_STEP].usual_s:g}, from"
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
    STRANGERS: (
        f"{len(strangers.CELLS)} worlds of {len(strangers.ROWS)} kinds, most on a grid of rates, round trips and buffers; runs"
        f" of {strangers.LASTS_S:g} s, of which the last three quarters count. Of two senders of a kind, one has"
        f" {strangers.SPREAD:g} times the round trip of the other. A policer passes a fifth of the link's rate, with bursts of"
        " 0.1 to 2 BDP. Random shared worlds have one to three flows of CUBIC, NewReno, BBR, BBRv3, Vegas or Copa besides."
    ),
}
"""Worlds of each study in words."""


def read_runs(kept: KeptRows) -> Runs:
    """Return the runs of a campaign."""
    return kept.runs(KEYS, TEXTS, MEASURES)


def format_tables(runs: Runs, study: str) -> list[str]:
    """Return the tables of a study's runs, claims first."""
    claimed = claims.format_claims_table(runs, study)
    return [*([claimed] if claimed else []), *tables.format_tables(runs, study)]


def format_campaign(kept: KeptRows) -> str:
    """Return the section of a campaign as Markdown."""
    runs = read_runs(kept)
    lines = [describe_run(kept.header), "", describe_rows_file(kept), ""]
    for study in runs.values("study"):
        said = STUDIES[study]
        lines += [f"### {TITLES[study]}", "", f"{said[0].upper()}{said[1:]}. {WORLDS[study]}", ""]
        for table in format_tables(runs, study):
            lines += [table, ""]
        lines += show_figures(kept, FIGURES.get(study, ()))
    return "\n".join(lines)


def format_seeds(kept: KeptRows) -> str:
    """Return the section of the claims by training seed as Markdown, with other schemes' runs from the other sections."""
    others = [seeds.read_other_runs(kept.root, part) for part in seeds.PARTS]
    lines = [f"{kept.header['command']}, and likewise of seeds {kept.header['others']}.", "", describe_rows_file(kept), ""]
    return "\n".join([*lines, seeds.format_seeds_table(read_runs(kept), seeds.concatenate_runs(others)), ""])


def verdicts(sections: Mapping[str, KeptRows]) -> str:
    """Return the verdicts on the targets of a sender for real paths; "" without the campaigns of links and of events."""
    if not set(seeds.PARTS) <= set(sections):
        return ""
    parts = [part for part in (*seeds.PARTS, STRANGERS) if part in sections]
    return claims.format_verdicts(seeds.concatenate_runs([read_runs(sections[part]) for part in parts]), TITLES)


SECTIONS: dict[str, Section] = {**dict.fromkeys((*seeds.PARTS, STRANGERS), format_campaign), seeds.SECTION: format_seeds}
"""Studies of many links and traces; of events on a few links, with more seeds; among strangers; and claims by training seed."""
