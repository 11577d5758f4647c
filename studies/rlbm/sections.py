"""Sections of the study's appendix: the campaigns of the traffic recipes, and the comparison."""

from __future__ import annotations

from collections.abc import Mapping

from studies.common.experiment import Section
from studies.common.kept import Kept
from studies.common.results import Runs
from studies.common.showing import names_drawn, pictures, ran, where_rows_are
from studies.rlbm.claims import at_interval, claims_table, means_table, sweep_claim, sweep_table, verdicts_of
from studies.rlbm.comparison import comparison
from studies.rlbm.figures import three
from studies.rlbm.measures import MEASURES
from studies.rlbm.settings import TRAFFIC
from studies.rlbm.work import KEYS

COMPARE, PAPERS = "compare", "thesis-code"
TEXTS = ("scheme", "cc")
KEPT = (
    *("throughput_mbps", "difference_p99_s", "slowdown_p99_p0", "fct_mean_s", "flows_completed", "occupancy_p99"),
    *("queue_mean_packets", "queue_mean_packets_0", "queue_mean_packets_1", "ping_mean_ms"),
)
"""What tables are made of, of all that is measured."""


def runs_of(kept: Kept) -> Runs:
    """The runs of a campaign."""
    return kept.runs(KEYS, TEXTS, MEASURES)


def campaign(kept: Kept) -> str:
    """The Markdown of one campaign."""
    settings, runs, traffic = kept.header["settings"], runs_of(kept), kept.section
    main_runs = at_interval(runs, settings["interval_s"])
    lines = [ran(kept.header), "", where_rows_are(kept), "", "### Claims", "", claims_table(main_runs), ""]
    if settings["intervals"]:
        cc = "cubic" if "cubic" in settings["ccs"] else settings["ccs"][0]
        table = sweep_table(runs, cc)
        lines += ["### Decision intervals", "", "Throughput in Mbit/s; 99th percentile of FCT - ideal in s.", "", table, ""]
        lines += [sweep_claim(runs, cc), ""]
    lines += ["### Means", "", means_table(main_runs, three(settings["sizes"])), "", "### Figures", ""]
    drawn = [name for name in names_drawn(kept, "*.png", f"{traffic}-") if not name.startswith("all_sizes")]
    lines += pictures(kept, drawn, f"{traffic}-", f", traffic {traffic}")  # all sizes are too large for a page
    return "\n".join(lines)


def verdicts(sections: Mapping[str, Kept]) -> str:
    """The thesis' claims, by the campaign with its own traffic."""
    if PAPERS not in sections:
        return ""
    kept = sections[PAPERS]
    return verdicts_of(at_interval(runs_of(kept), kept.header["settings"]["interval_s"]))


SECTIONS: dict[str, Section] = dict.fromkeys(TRAFFIC, campaign) | {COMPARE: comparison}
