"""What the page about the campaign shows of it: studies over generated networks, over real traces, and learning curves."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from netbuf_gym.errors import ConfigError
from studies.common.experiment import Section
from studies.common.results import Runs
from studies.common.showing import described, pictures, ran, write_means
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


def read(source: Path) -> Runs:
    """The runs of a finished campaign."""
    return Runs.read(source / "runs.csv", KEYS, TEXTS, tuple(MEASURES))


def studies(name: str, measured: bool, source: Path, folder: Path) -> str:
    """The Markdown of a campaign on generated or on measured networks; copies its means and, of the former, its figures."""
    description = described(source)
    settings = description["settings"]
    if bool(settings["traces"]) != measured:
        raise ConfigError(f"{source}: has traces = {settings['traces']!r}; valid for the section {name}: the other kind")
    runs = read(source)
    write_means(runs, folder / f"means-{name}.csv.gz")
    lines = [ran(description), ""]

    def show(study: str) -> list[str]:
        if measured:
            return []  # they would show the traces
        return pictures([source / "figures" / f"{name}.png" for name in FIGURES[study]], folder)

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


def learning(source: Path, folder: Path) -> str:
    """The Markdown of learning curves; copies them."""
    description, runs = described(source), read(source).where(study=LEARNING)
    if not len(runs):
        raise ConfigError(f"{source}: has no study {LEARNING!r}")
    shown = pictures([source / "figures" / f"{name}.png" for name in FIGURES[LEARNING]], folder)
    return "\n".join([ran(description), "", claims.returns_table(runs), "", *shown])


SECTIONS: dict[str, Section] = {
    GENERATED: partial(studies, GENERATED, False),
    REAL: partial(studies, REAL, True),
    LEARNING: learning,
}
