"""Sections of the study's appendix."""

from __future__ import annotations

from collections.abc import Mapping

from studies.common.cells import KEYS, TEXTS
from studies.common.experiment import Section
from studies.common.kept import Kept
from studies.common.results import Runs
from studies.common.showing import pictures, ran, where_rows_are
from studies.ppcc import claims, paper, tables
from studies.ppcc.measures import MEASURES
from studies.ppcc.settings import CONSTANTS, NS3, SENDERS, SERIES, TABLE

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


def runs_of(kept: Kept) -> Runs:
    """The runs of a campaign."""
    return kept.runs(KEYS, TEXTS, MEASURES)


def tables_of(runs: Runs, study: str) -> list[str]:
    """Claims and tables of a study's runs."""
    parts = [claims.claims_table(runs, study)]
    if study in (TABLE, NS3):
        for number in paper.SCENARIOS:
            parts += [f"Scenario {number}:", tables.table_3(runs, study, number)]
    elif study == SENDERS:
        parts.append(tables.silent_said(runs))
        for measure, digits, said in tables.OF_SENDERS:
            parts += [f"{said}, by rate in Mbit/s and number of senders:", tables.senders_table(runs, measure, digits)]
    elif study == CONSTANTS:
        parts.append(tables.constants_table(runs))
    return [part for part in parts if part]


def simulated(kept: Kept) -> str:
    """The Markdown of a campaign."""
    runs = runs_of(kept)
    lines = [ran(kept.header), "", where_rows_are(kept), ""]
    for study in runs.values("study"):
        lines += [f"### {TITLES[study]}", ""]
        for said in tables_of(runs, study):
            lines += [said, ""]
        lines += pictures(kept, FIGURES[study])
    return "\n".join(lines)


def verdicts(sections: Mapping[str, Kept]) -> str:
    """The paper's claims, for its recipe as it was trained."""
    return claims.verdicts_of(runs_of(sections[SIMULATED])) if SIMULATED in sections else ""


SECTIONS: dict[str, Section] = {SIMULATED: simulated}
