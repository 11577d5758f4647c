"""Markdown tables of the paper from a campaign's results, with the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from netbuf_gym.utils.tables import markdown_table
from studies.auter import paper
from studies.auter.auter_claims import CELLS, RATE
from studies.auter.auter_schemes import label
from studies.auter.auter_settings import LONG_RUN, MEMORY, REGIONS, SETTINGS, SWEEPS, TRAINING
from studies.common.judging import compute_change, format_change, format_spread
from studies.common.results import Runs

D = paper.DEFAULT


def format_gain(runs: Runs, scheme: str, digits: int = 0) -> str:
    """Return a scheme's gain in throughput over the default in all cells of `runs`, in % with interval; "" for the default."""
    if scheme == D:
        return ""
    found = compute_change(runs, scheme, D, RATE, CELLS)
    if found is None:
        return "-"
    if not np.isfinite(found.high - found.low):
        return f"{100 * np.expm1(found.mean):+.{digits}f} %"
    return format_change(found)


def build_settings_table(runs: Runs) -> str:
    """Return Table I: throughput of each setting in both regions, its gain, and the paper's throughput."""
    own = runs.where(study=SETTINGS)
    cells = own.values("cell")
    rows = []
    for scheme in own.values("scheme"):
        row = [label(scheme)]
        for cell in cells:
            here = own.where(cell=cell)
            row += [
                format_spread(here.where(scheme=scheme).columns[RATE], 3),
                format_gain(here, scheme),
                _format_value(paper.TABLE_1[cell], scheme),
            ]
        rows.append(row)
    header = [f"{cell.upper()}: {what}" for cell in cells for what in ("Mbit/s", "gain", "paper: Mbit/s")]
    return markdown_table(["setting", *header], rows)


def build_regions_table(runs: Runs, measure: str = RATE, digits: int = 3) -> str:
    """Return Table IV: a measure of each scheme by region and traffic, with the paper's value in brackets."""
    own = runs.where(study=REGIONS)
    papers = paper.THROUGHPUT if measure == RATE else paper.LATENCY_MS if measure == "latency_ms" else {}
    return _build_cell_table(own, measure, digits, papers)


def build_gains_table(runs: Runs) -> str:
    """Return the gains in throughput over the default in each cell of Table IV and over all cells; the paper's in brackets."""
    own = runs.where(study=REGIONS)
    cells = own.values("cell")
    rows = []
    for scheme in own.values("scheme"):
        if scheme == D:
            continue
        row = [label(scheme)]
        for cell in cells:
            row.append(format_gain(own.where(cell=cell), scheme) + _format_paper_gain(paper.THROUGHPUT[cell], scheme))
        said = f" ({100 * paper.GAIN_SAID[scheme]:.1f})" if scheme in paper.GAIN_SAID else ""
        rows.append([*row, format_gain(own, scheme) + said])
    return markdown_table(["scheme", *cells, "all"], rows)


def build_sweep_table(runs: Runs, study: str) -> str:
    """Return the table of a sweep: throughput by scheme and cell, mean gain over the default, added delay in ms."""
    own = runs.where(study=study)
    cells = own.values("cell")
    rows = []
    for scheme in own.values("scheme"):
        here = own.where(scheme=scheme)
        row = [
            label(scheme),
            *(format_spread(here.where(cell=cell).columns[RATE], 2) for cell in cells),
            format_gain(own, scheme),
        ]
        more = compute_change(own, scheme, D, "latency_ms", CELLS, "difference")
        rows.append([*row, "" if scheme == D or more is None else f"{more.mean:+.1f}"])
    return markdown_table(["scheme", *cells, f"gain (the paper's: {100 * paper.SWEEPS[study]:.4g} %)", "delay, ms more"], rows)


def build_memory_table(runs: Runs) -> str:
    """Return the table of Fig. 9: memory by scheme and number of connections, in MB."""
    return _build_cell_table(runs.where(study=MEMORY), "memory_mb", 1, {})


def build_long_run_table(runs: Runs) -> str:
    """Return the table of Fig. 8: throughput, gain, RTT, loss and memory of each scheme in the long run."""
    own = runs.where(study=LONG_RUN, step=0)
    rows = []
    for scheme in own.values("scheme"):
        here = own.where(scheme=scheme).columns
        rows.append(
            [
                label(scheme),
                format_spread(here[RATE], 3),
                format_gain(own, scheme),
                format_spread(here["latency_ms"], 0),
                format_spread(100 * here["loss"], 2),
                format_spread(here["memory_mb"], 2),
            ]
        )
    return markdown_table(["scheme", "Mbit/s", "gain", "RTT, ms", "loss, %", "memory, MB"], rows)


def build_training_table(runs: Runs) -> str:
    """Return the table of Fig. 3: throughput, reward and buffers in tenths of a training session; "" without one."""
    own = runs.where(study=TRAINING)
    if not len(own):
        return ""
    steps = np.array(sorted(own.values("step")))
    rows = []
    for part in np.array_split(steps, 10):
        here = own.mask(np.isin(own.columns["step"], part))
        cells = [format_spread(list(here.compute_seed_means(name).values()), digits) for name, digits in TRAINED]
        rows.append([f"{part[0]:.0f} to {part[-1]:.0f}", *cells])
    titles = ("Mbit/s", "reward", "ring, packets", "socket, kB", "TCP maximum, kB")
    return markdown_table(["epochs", *titles], rows)


TRAINED = ((RATE, 3), ("reward", 3), ("ring_packets", 0), ("socket_kb", 0), ("tcp_kb", 0))


def build_sweep_tables(runs: Runs) -> list[tuple[str, str]]:
    """Return `(study, table)` for each sweep in the runs."""
    return [(study, build_sweep_table(runs, study)) for study in SWEEPS if study in runs.values("study")]


def _build_cell_table(own: Runs, measure: str, digits: int, papers: Mapping[str, Mapping[str, float]]) -> str:
    cells: Sequence[str] = own.values("cell")
    rows = []
    for scheme in own.values("scheme"):
        here = own.where(scheme=scheme)
        row = [label(scheme)]
        for cell in cells:
            said = _format_value(papers.get(cell, {}), scheme)
            row.append(format_spread(here.where(cell=cell).columns[measure], digits) + (f" ({said})" if said else ""))
        rows.append(row)
    return markdown_table(["scheme", *cells], rows)


def _format_value(column: Mapping[str, float], scheme: str) -> str:
    return f"{column[scheme]:.4g}" if scheme in column else ""


def _format_paper_gain(column: Mapping[str, float], scheme: str) -> str:
    return f" ({100 * (column[scheme] / column[D] - 1):+.1f})" if scheme in column else ""
