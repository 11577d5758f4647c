"""The paper's tables from a campaign's results, with its own figures beside ours, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from netbuf_gym.utils.tables import markdown_table
from studies.auter import paper
from studies.auter.claims import CELLS, RATE
from studies.auter.schemes import label
from studies.auter.settings import LONG_RUN, MEMORY, REGIONS, SETTINGS, SWEEPS, TRAINING
from studies.common.judging import change, percent, spread
from studies.common.results import Runs

D = paper.DEFAULT


def gain(runs: Runs, scheme: str, digits: int = 0) -> str:
    """Of throughput, over the default's, over all cells of some runs: a percentage with its interval; "" of the default."""
    if scheme == D:
        return ""
    found = change(runs, scheme, D, RATE, CELLS)
    if found is None:
        return "-"
    if not np.isfinite(found.high - found.low):
        return f"{100 * np.expm1(found.mean):+.{digits}f} %"
    return percent(found)


def settings_table(runs: Runs) -> str:
    """Table I: throughput of each setting in both regions, its gain, and the paper's."""
    own = runs.where(study=SETTINGS)
    cells = own.values("cell")
    rows = []
    for scheme in own.values("scheme"):
        row = [label(scheme)]
        for cell in cells:
            here = own.where(cell=cell)
            row += [spread(here.where(scheme=scheme).columns[RATE], 3), gain(here, scheme), _of(paper.TABLE_1[cell], scheme)]
        rows.append(row)
    header = [f"{cell.upper()}: {what}" for cell in cells for what in ("Mbit/s", "gain", "paper: Mbit/s")]
    return markdown_table(["setting", *header], rows)


def regions_table(runs: Runs, measure: str = RATE, digits: int = 3) -> str:
    """Table IV: a measure of each scheme in each region with each traffic; the paper's in brackets."""
    own = runs.where(study=REGIONS)
    papers = paper.THROUGHPUT if measure == RATE else paper.LATENCY_MS if measure == "latency_ms" else {}
    return _by_cell(own, measure, digits, papers)


def gains_table(runs: Runs) -> str:
    """Gains of throughput over the default in each cell of Table IV, and over all of them; the paper's in brackets."""
    own = runs.where(study=REGIONS)
    cells = own.values("cell")
    rows = []
    for scheme in own.values("scheme"):
        if scheme == D:
            continue
        row = [label(scheme)]
        for cell in cells:
            row.append(gain(own.where(cell=cell), scheme) + _share(paper.THROUGHPUT[cell], scheme))
        said = f" ({100 * paper.GAIN_SAID[scheme]:.1f})" if scheme in paper.GAIN_SAID else ""
        rows.append([*row, gain(own, scheme) + said])
    return markdown_table(["scheme", *cells, "all"], rows)


def sweep_table(runs: Runs, study: str) -> str:
    """A sweep: throughput of each scheme in each cell, the mean gain over the default, the extra delay."""
    own = runs.where(study=study)
    cells = own.values("cell")
    rows = []
    for scheme in own.values("scheme"):
        here = own.where(scheme=scheme)
        row = [label(scheme), *(spread(here.where(cell=cell).columns[RATE], 2) for cell in cells), gain(own, scheme)]
        more = change(own, scheme, D, "latency_ms", CELLS, "difference")
        rows.append([*row, "" if scheme == D or more is None else f"{more.mean:+.1f}"])
    return markdown_table(["scheme", *cells, f"gain (the paper's: {100 * paper.SWEEPS[study]:.4g} %)", "delay, ms more"], rows)


def memory_table(runs: Runs) -> str:
    """Fig. 9: memory by scheme and number of connections, MB."""
    return _by_cell(runs.where(study=MEMORY), "memory_mb", 1, {})


def long_table(runs: Runs) -> str:
    """Fig. 8: what came of the long run."""
    own = runs.where(study=LONG_RUN, step=0)
    rows = []
    for scheme in own.values("scheme"):
        here = own.where(scheme=scheme).columns
        rows.append(
            [
                label(scheme),
                spread(here[RATE], 3),
                gain(own, scheme),
                spread(here["latency_ms"], 0),
                spread(100 * here["loss"], 2),
                spread(here["memory_mb"], 2),
            ]
        )
    return markdown_table(["scheme", "Mbit/s", "gain", "RTT, ms", "loss, %", "memory, MB"], rows)


def training_table(runs: Runs) -> str:
    """Fig. 3: throughput, reward and buffers in tenths of a training session."""
    own = runs.where(study=TRAINING)
    if not len(own):
        return ""
    steps = np.array(sorted(own.values("step")))
    rows = []
    for part in np.array_split(steps, 10):
        here = own.kept(np.isin(own.columns["step"], part))
        cells = [spread(list(here.by_seed(name).values()), digits) for name, digits in TRAINED]
        rows.append([f"{part[0]:.0f} to {part[-1]:.0f}", *cells])
    titles = ("Mbit/s", "reward", "ring, packets", "socket, kB", "TCP maximum, kB")
    return markdown_table(["epochs", *titles], rows)


TRAINED = ((RATE, 3), ("reward", 3), ("ring_packets", 0), ("socket_kb", 0), ("tcp_kb", 0))


def all_sweeps(runs: Runs) -> list[tuple[str, str]]:
    """The table of each sweep that there is, with its study."""
    return [(study, sweep_table(runs, study)) for study in SWEEPS if study in runs.values("study")]


def _by_cell(own: Runs, measure: str, digits: int, papers: Mapping[str, Mapping[str, float]]) -> str:
    cells: Sequence[str] = own.values("cell")
    rows = []
    for scheme in own.values("scheme"):
        here = own.where(scheme=scheme)
        row = [label(scheme)]
        for cell in cells:
            said = _of(papers.get(cell, {}), scheme)
            row.append(spread(here.where(cell=cell).columns[measure], digits) + (f" ({said})" if said else ""))
        rows.append(row)
    return markdown_table(["scheme", *cells], rows)


def _of(column: Mapping[str, float], scheme: str) -> str:
    return f"{column[scheme]:.4g}" if scheme in column else ""


def _share(column: Mapping[str, float], scheme: str) -> str:
    return f" ({100 * (column[scheme] / column[D] - 1):+.1f})" if scheme in column else ""
