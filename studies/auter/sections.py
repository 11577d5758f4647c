"""Sections of the study's appendix: simulated runs, a training session, live runs."""

from __future__ import annotations

from collections.abc import Mapping

from studies.auter import claims, long_paths, tables, trained
from studies.auter.measures import MEASURES
from studies.auter.settings import (
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
from studies.common.kept import Kept
from studies.common.results import Runs
from studies.common.showing import pictures, ran, where_rows_are

KEYS = ("study", "cell", "plant", "scheme", "step", "seed")
TEXTS = ("study", "cell", "plant", "scheme")
SIMULATED, TRAINED = "simulated", "trained"
LIVES = ("live", "live_tables", "live_sweeps", "live_flows", "live_long")
"""What a single live campaign has no time for stands in several: long paths, tables, sweeps, flows, and the long run."""
TITLES = {
    SETTINGS: "Table I: hand-tuned settings",
    REGIONS: "Table IV: three regions",
    MEMORY: "Fig. 9: memory",
    LONG_RUN: "Fig. 8: the long run",
    PATHS: "Long paths, from Linux's own settings on",
}


def runs_of(kept: Kept) -> Runs:
    """The runs of a campaign."""
    return kept.runs(KEYS, TEXTS, MEASURES)


def studies(kept: Kept) -> str:
    """The Markdown of a campaign on a plant."""
    runs = runs_of(kept)
    runs = runs.kept(runs.columns["study"] != TRAINING)
    present = runs.values("study")
    prefix = "" if kept.header["settings"]["plant"] == SIM else f"{kept.section}-"
    lines = [ran(kept.header), "", where_rows_are(kept), ""]

    def show(*names: str) -> None:
        lines.extend(pictures(kept, names, prefix))

    for said in (
        claims.about_auter(runs),
        claims.with_bbr(runs),
        claims.about_others(runs),
        claims.ours(runs),
    ):
        lines += [said, ""] if said else []
    if SETTINGS in present:
        lines += [f"### {TITLES[SETTINGS]}", "", tables.settings_table(runs), ""]
        show("settings")
    if REGIONS in present:
        lines += [f"### {TITLES[REGIONS]}", "", "Throughput over default's (the paper's, %):", "", tables.gains_table(runs), ""]
        lines += ["Throughput, Mbit/s (the paper's):", "", tables.regions_table(runs), ""]
        lines += ["Round-trip time, ms (the paper's):", "", tables.regions_table(runs, "latency_ms", 1), ""]
        lines += ["Memory, MB:", "", tables.regions_table(runs, "memory_mb", 2), ""]
        show("regions", "regions_scatter")
    if PATHS in present:
        lines += [f"### {TITLES[PATHS]}", "", long_paths.table(runs), ""]
        lines += ["Throughput, Mbit/s (RTT over the least possible):", "", long_paths.cells_table(runs), ""]
    if any(study in present for study in SWEEPS):
        lines += ["### Fig. 4 to 7: latency, bandwidth, loss, size of flows", "", "Throughput, Mbit/s:", ""]
        for study, table in tables.all_sweeps(runs):
            lines += [f"{STUDIES[study]}:", "", table, ""]
            show(f"sweep_{study}")
    if MEMORY in present:
        lines += [f"### {TITLES[MEMORY]}", "", "MB, by the number of connections:", "", tables.memory_table(runs), ""]
        show("memory")
    if LONG_RUN in present:
        lines += [f"### {TITLES[LONG_RUN]}", "", tables.long_table(runs), ""]
        show("long_run")
    return "\n".join(lines)


def training(kept: Kept) -> str:
    """The Markdown of training sessions."""
    runs = runs_of(kept).where(study=TRAINING)
    shown = pictures(kept, ["training"])
    return "\n".join([ran(kept.header), "", where_rows_are(kept), "", tables.training_table(runs), "", *shown])


def verdicts(sections: Mapping[str, Kept]) -> str:
    """The paper's claims, by the simulated campaign, for its own recipe."""
    return claims.verdicts_of(runs_of(sections[SIMULATED])) if SIMULATED in sections else ""


SECTIONS: dict[str, Section] = {
    SIMULATED: studies,
    TRAINING: training,
    TRAINED: trained.shown,
    **dict.fromkeys(LIVES, studies),
}
