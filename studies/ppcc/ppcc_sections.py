"""Sections of the study's appendix."""

from __future__ import annotations

from collections.abc import Mapping

from studies.common.cells import KEYS, TEXTS
from studies.common.experiment import Section
from studies.common.kept import KeptRows
from studies.common.results import Runs
from studies.common.showing import describe_rows_file, describe_run, show_figures
from studies.ppcc import paper
from studies.ppcc import ppcc_claims as claims
from studies.ppcc import ppcc_tables as tables
from studies.ppcc.ppcc_measures import MEASURES
from studies.ppcc.ppcc_settings import CONSTANTS, NS3, SENDERS, SERIES, TABLE

SIMULATED = "simulated"
TITLES = {
    TABLE: "Table III: one sender",
    NS3: "Table III with ns-3's TCP",
    SERIES: "Figure 4a to c: over time",
    SENDERS: "Figures 4d and 5: several senders",
    CONSTANTS: "Constant windows",
}
FIGURES = {
    TABLE: ("table_scatter",),
    NS3: ("ns3_scatter",),
    SERIES: ("series_2", "series_2_others", "series_fluctuating", "series_fluctuating_others"),
    SENDERS: ("senders",),
    CONSTANTS: ("constants",),
}


def read_runs(kept: KeptRows) -> Runs:
    """Return the runs of a campaign."""
    return kept.runs(KEYS, TEXTS, MEASURES)


def format_tables(runs: Runs, study: str) -> list[str]:
    """Return the claims and tables of a study's runs, without empty ones."""
    parts = [claims.format_claims_table(runs, study)]
    if study in (TABLE, NS3):
        for number in paper.SCENARIOS:
            parts += [f"Scenario {number}:", tables.format_table_3(runs, study, number)]
    elif study == SENDERS:
        parts.append(tables.describe_silent_senders(runs))
        for measure, digits, said in tables.OF_SENDERS:
            parts += [f"{said}, by rate in Mbit/s and number of senders:", tables.format_senders_table(runs, measure, digits)]
    elif study == CONSTANTS:
        parts.append(tables.format_constants_table(runs))
    return [part for part in parts if part]


def format_campaign(kept: KeptRows) -> str:
    """Return the section of a campaign as Markdown."""
    runs = read_runs(kept)
    lines = [describe_run(kept.header), "", describe_rows_file(kept), ""]
    for study in runs.values("study"):
        lines += [f"### {TITLES[study]}", ""]
        for said in format_tables(runs, study):
            lines += [said, ""]
        lines += show_figures(kept, FIGURES[study])
    return "\n".join(lines)


def verdicts(sections: Mapping[str, KeptRows]) -> str:
    """Return the verdicts on the paper's claims, for the paper's recipe as trained; "" without the campaign."""
    return claims.format_verdicts(read_runs(sections[SIMULATED])) if SIMULATED in sections else ""


SECTIONS: dict[str, Section] = {SIMULATED: format_campaign}
