"""Sections of the study's appendix: studies over generated networks, over real traces, and learning curves."""

from __future__ import annotations

from collections.abc import Mapping

from studies.common.experiment import Section
from studies.common.kept import KeptRows
from studies.common.results import Runs
from studies.common.showing import describe_rows_file, describe_run, show_figures
from studies.nuwa import nuwa_claims as claims
from studies.nuwa.nuwa_measures import MEASURES
from studies.nuwa.nuwa_settings import CHANGE, FAIRNESS, FOUR, GRID, LEARNING, MOBILE, VIDEO
from studies.nuwa.nuwa_work import KEYS, TEXTS

GENERATED, REAL = "generated", "real"
FIGURES = {
    MOBILE: ("mobile_bars", "mobile_scatter", "gain_boxes", "gain_series_5g", "robustness_5g"),
    FOUR: ("networks",),
    GRID: ("grid",),
    CHANGE: ("change",),
    FAIRNESS: ("fairness_own", "fairness_cubic"),
    VIDEO: ("video",),
    LEARNING: ("learning",),
}
"""Figures that the page shows of each study."""


VIDEOS = {
    "estimate_off": ("How far size / download time of a chunk is from what the link carried, %", 1, 100.0),
    "window_off": ("How far the receiver's window / RTT is from it, %", 1, 100.0),
    "bitrate_mbps": ("Mean bitrate, Mbit/s", 2, 1.0),
    "stalled_share": ("Share of the time that the video stalled, %", 2, 100.0),
}
"""Titles, digits and factors of the tables of video clients, by measure."""


def read_runs(kept: KeptRows) -> Runs:
    """Return the runs of a campaign's kept rows."""
    return kept.runs(KEYS, TEXTS, MEASURES)


def build_campaign_section(kept: KeptRows) -> str:
    """Return the Markdown of a campaign on generated or real networks.

    Real networks have no pictures, which would show the traces.
    """
    runs = read_runs(kept)
    lines = [describe_run(kept.header), "", describe_rows_file(kept), ""]

    def show(study: str) -> list[str]:
        return [] if kept.header["settings"]["traces"] else show_figures(kept, FIGURES[study])

    present = runs.values("study")
    if MOBILE in present:
        lines += [
            "### Table I: data, queueing delay, loss",
            "",
            claims.build_table_1(runs),
            "",
            claims.build_table_1_claims(runs),
            "",
        ]
        lines += show(MOBILE)
    if MOBILE in present or CHANGE in present:
        about = claims.build_claims_table(runs, claims.GAIN)
        lines += ["### The gain k", "", "Utility, bold where it is highest:", "", claims.build_gains_table(runs), ""]
        lines += ["Share of the capacity, %:", "", claims.build_gains_table(runs, "share", 1, 100), "", about, ""]
        lines += show(CHANGE) if CHANGE in present else []
    if "nuwa_rl" in runs.values("scheme"):
        lines += ["### Nuwa-RL", "", claims.build_claims_table(runs, claims.make_agent_claims()), ""]
    if FOUR in present:
        lines += ["### Four networks", "", "Utility:", "", claims.build_means_table(runs, FOUR, "utility", 3), ""]
        lines += show(FOUR)
    if GRID in present:
        lines += ["### Distance and bandwidth", "", claims.build_claims_table(runs, claims.SERVERS), ""]
        lines += ["Utility:", "", claims.build_means_table(runs, GRID, "utility", 3), "", *show(GRID)]
    if FAIRNESS in present:
        lines += ["### Fairness", "", claims.build_fairness_table(runs), "", *show(FAIRNESS)]
    if VIDEO in present:
        lines += ["### What a video client takes the path for", "", claims.build_estimates_table(runs), ""]
        for measure, (said, digits, factor) in VIDEOS.items():
            lines += [f"{said}:", "", claims.build_means_table(runs, VIDEO, measure, digits, factor), ""]
        lines += show(VIDEO)
    return "\n".join(lines)


def build_learning_section(kept: KeptRows) -> str:
    """Return the Markdown of the learning curves."""
    runs = read_runs(kept).where(study=LEARNING)
    shown = show_figures(kept, FIGURES[LEARNING])
    return "\n".join(
        [describe_run(kept.header), "", describe_rows_file(kept), "", claims.build_returns_table(runs), "", *shown]
    )


def build_verdicts(sections: Mapping[str, KeptRows]) -> str:
    """Return the verdicts on the paper's claims by the campaign on generated networks; "" without its rows."""
    return claims.build_verdicts_table(read_runs(sections[GENERATED])) if GENERATED in sections else ""


SECTIONS: dict[str, Section] = {
    GENERATED: build_campaign_section,
    REAL: build_campaign_section,
    LEARNING: build_learning_section,
}
