"""Sections of the study's appendix: simulated runs, training sessions, live runs."""

from __future__ import annotations

from collections.abc import Mapping

from studies.auter import auter_claims as claims
from studies.auter import auter_tables as tables
from studies.auter import long_paths, trained
from studies.auter.auter_measures import MEASURES
from studies.auter.auter_settings import (
    LONG_RUN,
    MEMORY,
    PATHS,
    REGIONS,
    SETTINGS,
    SIM,
    STUDIES,
    SWEEPS,
    TRAINING,
)
from studies.common.experiment import Section
from studies.common.kept import KeptRows
from studies.common.results import Runs
from studies.common.showing import describe_rows_file, describe_run, show_figures

KEYS = ("study", "cell", "plant", "scheme", "step", "seed")
TEXTS = ("study", "cell", "plant", "scheme")
SIMULATED, TRAINED = "simulated", "trained"
LIVES = ("live", "live_tables", "live_sweeps", "live_flows", "live_long")
"""Sections of live runs, which exceed the time of one campaign: long paths, tables, sweeps, flows and the long run."""
TITLES = {
    SETTINGS: "Table I: hand-tuned settings",
    REGIONS: "Table IV: three regions",
    MEMORY: "Fig. 9: memory",
    LONG_RUN: "Fig. 8: the long run",
    PATHS: "Long paths, from Linux's own settings on",
}


def read_runs(kept: KeptRows) -> Runs:
    """Return the runs of a campaign's kept rows."""
    return kept.runs(KEYS, TEXTS, MEASURES)


def build_campaign_section(kept: KeptRows) -> str:
    """Return the Markdown of a campaign on one plant, without its training sessions."""
    runs = read_runs(kept)
    runs = runs.mask(runs.columns["study"] != TRAINING)
    present = runs.values("study")
    prefix = "" if kept.header["settings"]["plant"] == SIM else f"{kept.section}-"
    lines = [describe_run(kept.header), "", describe_rows_file(kept), ""]

    def show(*names: str) -> None:
        lines.extend(show_figures(kept, names, prefix))

    for said in (
        claims.build_auter_claims_table(runs),
        claims.build_bbr_claims_table(runs),
        claims.build_other_claims_table(runs),
        claims.build_own_claims_table(runs),
    ):
        lines += [said, ""] if said else []
    if SETTINGS in present:
        lines += [f"### {TITLES[SETTINGS]}", "", tables.build_settings_table(runs), ""]
        show("settings")
    if REGIONS in present:
        lines += [
            f"### {TITLES[REGIONS]}",
            "",
            "Throughput over default's (the paper's, %):",
            "",
            tables.build_gains_table(runs),
            "",
        ]
        lines += ["Throughput, Mbit/s (the paper's):", "", tables.build_regions_table(runs), ""]
        lines += ["Round-trip time, ms (the paper's):", "", tables.build_regions_table(runs, "latency_ms", 1), ""]
        lines += ["Memory, MB:", "", tables.build_regions_table(runs, "memory_mb", 2), ""]
        show("regions", "regions_scatter")
    if PATHS in present:
        lines += [f"### {TITLES[PATHS]}", "", long_paths.build_schemes_table(runs), ""]
        lines += ["Throughput, Mbit/s (RTT over the least possible):", "", long_paths.build_cells_table(runs), ""]
    if any(study in present for study in SWEEPS):
        lines += ["### Fig. 4 to 7: latency, bandwidth, loss, size of flows", "", "Throughput, Mbit/s:", ""]
        for study, table in tables.build_sweep_tables(runs):
            lines += [f"{STUDIES[study]}:", "", table, ""]
            show(f"sweep_{study}")
    if MEMORY in present:
        lines += [f"### {TITLES[MEMORY]}", "", "MB, by the number of connections:", "", tables.build_memory_table(runs), ""]
        show("memory")
    if LONG_RUN in present:
        lines += [f"### {TITLES[LONG_RUN]}", "", tables.build_long_run_table(runs), ""]
        show("long_run")
    return "\n".join(lines)


def build_training_section(kept: KeptRows) -> str:
    """Return the Markdown of the training sessions."""
    runs = read_runs(kept).where(study=TRAINING)
    shown = show_figures(kept, ["training"])
    return "\n".join(
        [describe_run(kept.header), "", describe_rows_file(kept), "", tables.build_training_table(runs), "", *shown]
    )


def build_verdicts(sections: Mapping[str, KeptRows]) -> str:
    """Return the verdicts on the paper's claims by the simulated campaign, for the paper's own recipe; "" without its rows."""
    return claims.build_verdicts_table(read_runs(sections[SIMULATED])) if SIMULATED in sections else ""


SECTIONS: dict[str, Section] = {
    SIMULATED: build_campaign_section,
    TRAINING: build_training_section,
    TRAINED: trained.format_section,
    **dict.fromkeys(LIVES, build_campaign_section),
}
