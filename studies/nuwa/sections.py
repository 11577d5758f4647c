"""Sections of the study's appendix: studies over generated networks, over real traces, and learning curves."""

from __future__ import annotations

from collections.abc import Mapping

from studies.common.experiment import Section
from studies.common.kept import Kept
from studies.common.results import Runs
from studies.common.showing import pictures, ran, where_rows_are
from studies.nuwa import claims
from studies.nuwa.measures import MEASURES
from studies.nuwa.settings import CHANGE, FAIRNESS, FOUR, GRID, LEARNING, MOBILE, VIDEO
from studies.nuwa.work import KEYS, TEXTS

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
"""Those that the page shows, of each study."""


VIDEOS = {
    "estimate_off": ("How far size / download time of a chunk is from what the link carried, %", 1, 100.0),
    "window_off": ("How far the receiver's window / RTT is from it, %", 1, 100.0),
    "bitrate_mbps": ("Mean bitrate, Mbit/s", 2, 1.0),
    "stalled_share": ("Share of the time that the video stalled, %", 2, 100.0),
}
"""Tables of video clients."""


def runs_of(kept: Kept) -> Runs:
    """The runs of a campaign."""
    return kept.runs(KEYS, TEXTS, MEASURES)


def studies(kept: Kept) -> str:
    """The Markdown of a campaign on generated or on measured networks; of these no pictures, which show the traces."""
    runs = runs_of(kept)
    lines = [ran(kept.header), "", where_rows_are(kept), ""]

    def show(study: str) -> list[str]:
        return [] if kept.header["settings"]["traces"] else pictures(kept, FIGURES[study])

    present = runs.values("study")
    if MOBILE in present:
        lines += ["### Table I: data, queueing delay, loss", "", claims.table_1(runs), "", claims.table_1_claims(runs), ""]
        lines += show(MOBILE)
    if MOBILE in present or CHANGE in present:
        about = claims.claims(runs, claims.GAIN)
        lines += ["### The gain k", "", "Utility, bold where it is highest:", "", claims.gains_table(runs), ""]
        lines += ["Share of the capacity, %:", "", claims.gains_table(runs, "share", 1, 100), "", about, ""]
        lines += show(CHANGE) if CHANGE in present else []
    if "nuwa_rl" in runs.values("scheme"):
        lines += ["### Nuwa-RL", "", claims.claims(runs, claims.agent_claims()), ""]
    if FOUR in present:
        lines += ["### Four networks", "", "Utility:", "", claims.means_table(runs, FOUR, "utility", 3), ""]
        lines += show(FOUR)
    if GRID in present:
        lines += ["### Distance and bandwidth", "", claims.claims(runs, claims.SERVERS), ""]
        lines += ["Utility:", "", claims.means_table(runs, GRID, "utility", 3), "", *show(GRID)]
    if FAIRNESS in present:
        lines += ["### Fairness", "", claims.fairness_table(runs), "", *show(FAIRNESS)]
    if VIDEO in present:
        lines += ["### What a video client takes the path for", "", claims.watched_table(runs), ""]
        for measure, (said, digits, factor) in VIDEOS.items():
            lines += [f"{said}:", "", claims.means_table(runs, VIDEO, measure, digits, factor), ""]
        lines += show(VIDEO)
    return "\n".join(lines)


def learning(kept: Kept) -> str:
    """The Markdown of learning curves."""
    runs = runs_of(kept).where(study=LEARNING)
    shown = pictures(kept, FIGURES[LEARNING])
    return "\n".join([ran(kept.header), "", where_rows_are(kept), "", claims.returns_table(runs), "", *shown])


def verdicts(sections: Mapping[str, Kept]) -> str:
    """The paper's claims, by the campaign on generated networks."""
    return claims.verdicts_of(runs_of(sections[GENERATED])) if GENERATED in sections else ""


SECTIONS: dict[str, Section] = {GENERATED: studies, REAL: studies, LEARNING: learning}
