"""What the page about the campaign shows of it: the campaigns of the traffic recipes, and the comparison."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from netbuf_gym.errors import ConfigError, ReferenceDataError
from netbuf_gym.files import csv_fields, csv_records, read_text, write_atomic
from studies.common.experiment import Section
from studies.common.results import Runs
from studies.common.showing import described, pictures, ran, write_means
from studies.rlbm.claims import at_interval, claims_table, means_table, sweep_claim, sweep_table
from studies.rlbm.figures import three
from studies.rlbm.measures import MEASURES
from studies.rlbm.settings import TRAFFIC
from studies.rlbm.work import KEYS

COMPARE = "compare"


def campaign(traffic: str, source: Path, folder: Path) -> str:
    """The Markdown of one campaign; copies its figures and its means."""
    description = described(source)
    settings = description["settings"]
    runs = Runs.read(source / "runs.csv", KEYS, ("scheme", "cc"), tuple(MEASURES))
    if settings["traffic"] != traffic:
        raise ConfigError(f"{source}: has traffic {settings['traffic']}, not {traffic}")
    main_runs = at_interval(runs, settings["interval_s"])
    write_means(runs, folder / f"means-{traffic}.csv.gz")
    lines = [ran(description), "", "### Claims", "", claims_table(main_runs), ""]
    if settings["intervals"]:
        cc = "cubic" if "cubic" in settings["ccs"] else settings["ccs"][0]
        table = sweep_table(runs, cc)
        lines += ["### Decision intervals", "", "Throughput in Mbit/s; 99th percentile of FCT - ideal in s.", "", table, ""]
        lines += [sweep_claim(runs, cc), ""]
    lines += ["### Means", "", means_table(main_runs, three(settings["sizes"])), "", "### Figures", ""]
    drawn = [path for path in sorted((source / "figures").glob("*.png")) if not path.stem.startswith("all_sizes")]
    lines += pictures(drawn, folder, f"{traffic}-", f", traffic {traffic}")  # all sizes are too large for a page
    return "\n".join(lines)


def comparison(source: Path, folder: Path) -> str:
    """The Markdown of a comparison; copies its files."""
    for name in ("comparison.csv", "cells.csv"):
        text = read_text(source / name)
        records = csv_records(text)
        width = len(csv_fields(records[1][1])) if len(records) > 1 else 0
        for line, record in records[2:]:
            if len(csv_fields(record)) != width:
                raise ReferenceDataError(f"holds another number of values than the header's {width}", source / name, line)
        if len(records) < 3 or not text.endswith("\n"):
            raise ReferenceDataError("is cut; valid: the whole table", source / name, len(records))
        write_atomic(folder / name, text)
    return (source / "table.md").read_text(encoding="utf-8")


SECTIONS: dict[str, Section] = {traffic: partial(campaign, traffic) for traffic in TRAFFIC} | {COMPARE: comparison}
