"""What the page about the campaign shows of it."""

from __future__ import annotations

from pathlib import Path

from netbuf_gym.reproduce.experiment import Section
from netbuf_gym.reproduce.results import Runs
from netbuf_gym.reproduce.sender import claims, tables
from netbuf_gym.reproduce.sender.measures import MEASURES
from netbuf_gym.reproduce.sender.settings import (
    AGENTS,
    DELAY_STEP,
    GRID,
    OUTAGE,
    PPCC,
    REVERSE,
    RIVALS,
    START,
    STUDIES,
    TRACES,
)
from netbuf_gym.reproduce.sender.work import KEYS, TEXTS
from netbuf_gym.reproduce.showing import described, pictures, ran, write_means

TITLES = {
    PPCC: "TCP-PPCC's scenarios",
    GRID: "Links of all sizes",
    START: "The start on a fast link",
    TRACES: "Measured traces",
    OUTAGE: "Outages",
    DELAY_STEP: "Round trips that change",
    REVERSE: "Traffic on the way back",
    RIVALS: "Beside other controls",
    AGENTS: "Several of a kind",
}
FIGURES = {
    GRID: ("grid",),
    START: ("start",),
    TRACES: ("traces",),
    OUTAGE: ("outage",),
    DELAY_STEP: ("delay_step",),
    RIVALS: ("rivals",),
    AGENTS: ("agents", "joining"),
}


def read(source: Path) -> Runs:
    """The runs of a finished campaign."""
    return Runs.read(source / "runs.csv", KEYS, TEXTS, tuple(MEASURES))


def simulated(source: Path, folder: Path) -> str:
    """The Markdown of a campaign; copies its means and figures."""
    description, runs = described(source), read(source)
    write_means(runs.where(step=0), folder / "means.csv.gz")
    lines = [ran(description), ""]
    for study in runs.values("study"):
        said = STUDIES[study]
        lines += [f"### {TITLES[study]}", "", f"{said[0].upper()}{said[1:]}.", ""]
        lines += [table, ""] if (table := claims.claims_table(runs, study)) else []
        for table in tables.tables(runs, study):
            lines += [table, ""]
        drawn = [path for name in FIGURES.get(study, ()) if (path := source / "figures" / f"{name}.png").is_file()]
        lines += pictures(drawn, folder)
    return "\n".join(lines)


SECTIONS: dict[str, Section] = {"simulated": simulated}
