"""Sections of the study's appendix: a campaign for each traffic recipe, and the comparison."""

from __future__ import annotations

from collections.abc import Mapping

from studies.common.experiment import Section
from studies.common.kept import KeptRows
from studies.common.results import Runs
from studies.common.showing import describe_rows_file, describe_run, find_figure_names, show_figures
from studies.rlbm.comparison import format_comparison
from studies.rlbm.rlbm_claims import (
    describe_sweep,
    format_claims_table,
    format_means_table,
    format_sweep_table,
    format_verdicts,
    select_interval,
)
from studies.rlbm.rlbm_figures import choose_sizes
from studies.rlbm.rlbm_measures import MEASURES
from studies.rlbm.rlbm_settings import TRAFFIC
from studies.rlbm.rlbm_work import KEYS

COMPARE, PAPERS = "compare", "thesis-code"
TEXTS = ("scheme", "cc")
KEPT = (
    *("throughput_mbps", "difference_p99_s", "slowdown_p99_p0", "fct_mean_s", "flows_completed", "occupancy_p99"),
    *("queue_mean_packets", "queue_mean_packets_0", "queue_mean_packets_1", "ping_mean_ms"),
)
"""Measures that tables use."""


def read_runs(kept: KeptRows) -> Runs:
    """Return the runs of a campaign."""
    return kept.runs(KEYS, TEXTS, MEASURES)


def format_campaign(kept: KeptRows) -> str:
    """Return the section of one campaign as Markdown."""
    settings, runs, traffic = kept.header["settings"], read_runs(kept), kept.section
    main_runs = select_interval(runs, settings["interval_s"])
    lines = [describe_run(kept.header), "", describe_rows_file(kept), "", "### Claims", "", format_claims_table(main_runs), ""]
    if settings["intervals"]:
        cc = "cubic" if "cubic" in settings["ccs"] else settings["ccs"][0]
        table = format_sweep_table(runs, cc)
        lines += ["### Decision intervals", "", "Throughput in Mbit/s; 99th percentile of FCT - ideal in s.", "", table, ""]
        lines += [describe_sweep(runs, cc), ""]
    lines += ["### Means", "", format_means_table(main_runs, choose_sizes(settings["sizes"])), "", "### Figures", ""]
    drawn = [name for name in find_figure_names(kept, "*.png", f"{traffic}-") if not name.startswith("all_sizes")]
    lines += show_figures(kept, drawn, f"{traffic}-", f", traffic {traffic}")  # figures of all sizes are too large for a page
    return "\n".join(lines)


def verdicts(sections: Mapping[str, KeptRows]) -> str:
    """Return the verdicts on the thesis' claims, by the campaign with the thesis' traffic; "" without that campaign."""
    if PAPERS not in sections:
        return ""
    kept = sections[PAPERS]
    return format_verdicts(select_interval(read_runs(kept), kept.header["settings"]["interval_s"]))


SECTIONS: dict[str, Section] = {**dict.fromkeys(TRAFFIC, format_campaign), COMPARE: format_comparison}
