"""What the page about the campaign shows of it."""

from __future__ import annotations

from pathlib import Path

from studies.common.cells import KEYS, TEXTS
from studies.common.experiment import Section
from studies.common.results import Runs
from studies.common.showing import described, kept, pictures, ran, write_means, write_rows
from studies.ppcc import claims, paper, tables
from studies.ppcc.measures import MEASURES
from studies.ppcc.settings import CONSTANTS, NS3, SENDERS, SERIES, TABLE

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


def read(source: Path) -> Runs:
    """The runs of a finished campaign."""
    return Runs.read(source / "runs.csv", KEYS, TEXTS, tuple(MEASURES))


def tables_of(runs: Runs, study: str) -> list[str]:
    """What is said of a study's runs, as the page has it."""
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


def simulated(source: Path, folder: Path) -> str:
    """The Markdown of a campaign; copies its runs, those over time apart, their means and its figures."""
    description, runs = described(source), read(source)
    over_time = runs.columns["study"] == SERIES
    whole = write_rows(runs.kept(~over_time), TEXTS, folder / "rows.csv.gz")
    series = write_rows(runs.kept(over_time), TEXTS, folder / "rows-series.csv.gz")
    write_means(whole, folder / "means.csv.gz")
    lines = [ran(description), "", kept(folder, "rows.csv.gz", "rows-series.csv.gz"), ""]
    for study in runs.values("study"):
        lines += [f"### {TITLES[study]}", ""]
        for said in tables_of(series if study == SERIES else whole, study):
            lines += [said, ""]
        drawn = [path for name in FIGURES[study] if (path := source / "figures" / f"{name}.png").is_file()]
        lines += pictures(drawn, folder)
    return "\n".join(lines)


SECTIONS: dict[str, Section] = {"simulated": simulated}
