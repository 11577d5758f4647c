"""What the page about campaigns shows of them: simulated runs, a training session, live runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from netbuf_gym.errors import ConfigError
from studies.auter import claims, long_paths, tables, trained
from studies.auter.measures import MEASURES
from studies.auter.settings import (
    LINUX,
    LONG_RUN,
    MEMORY,
    PATHS,
    PLANTS,
    REGIONS,
    SETTINGS,
    SIM,
    STUDIES,
    SWEEPS,
    TRAINING,
)
from studies.common.experiment import Section
from studies.common.results import Runs
from studies.common.showing import described, pictures, ran, write_means

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


def read(source: Path) -> Runs:
    """The runs of a finished campaign."""
    return Runs.read(source / "runs.csv", KEYS, TEXTS, tuple(MEASURES))


def studies(name: str, plant: str, source: Path, folder: Path) -> str:
    """The Markdown of a campaign on a plant; copies its means and figures."""
    description = described(source)
    found = description["settings"]["plant"]
    if found != plant:
        raise ConfigError(f"{source}: has plant = {found!r}, {PLANTS[found]}; valid for the section {name}: {plant!r}")
    runs = read(source)
    write_means(runs, folder / f"means-{name}.csv.gz")
    runs = runs.kept(runs.columns["study"] != TRAINING)
    present = runs.values("study")
    prefix = "" if plant == SIM else f"{name}-"
    lines = [ran(description), ""]

    def show(*names: str) -> None:
        drawn = [path for one in names if (path := source / "figures" / f"{one}.png").is_file()]
        lines.extend(pictures(drawn, folder, prefix))

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


def training(source: Path, folder: Path) -> str:
    """The Markdown of training sessions; copies their figure."""
    description, runs = described(source), read(source).where(study=TRAINING)
    if not len(runs):
        raise ConfigError(f"{source}: has no study {TRAINING!r}")
    shown = pictures([source / "figures" / "training.png"], folder)
    return "\n".join([ran(description), "", tables.training_table(runs), "", *shown])


SECTIONS: dict[str, Section] = {
    SIMULATED: partial(studies, SIMULATED, SIM),
    TRAINING: training,
    TRAINED: trained.shown,
    **{name: partial(studies, name, LINUX) for name in LIVES},
}
