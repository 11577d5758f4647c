"""Simulations of the cells of a reference, kept as one row for each cell and seed.

    python -m studies.validation reference | mechanisms | marks | linux | laws [jobs=N]

* reference: the cells of `studies/validation/reference`, of the kernel and of ns-3.
* mechanisms, marks: ns-3's single mechanisms and its explicit congestion notification, of `tests/data`.
* linux: settings of hosts' buffers on this machine's kernel (root, some 8 minutes of real time) and in the simulator.
* laws: laws of networking in the worlds of `studies.validation.laws_catalogue`; `laws --only NAME ...` compares the named ones
  and keeps nothing.

Verdicts are not kept: they follow from the rows and the reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from netbuf_gym.errors import ConfigError, ReferenceDataError
from netbuf_gym.utils.arguments import check_choice, check_integer
from netbuf_gym.utils.overrides import read_overrides
from netbuf_gym.utils.progress import ProgressBar, print_line
from netbuf_gym.validation import Report, host_settings, read_folder, validate
from netbuf_gym.validation.cells import DISTRIBUTION
from netbuf_gym.validation.judging import choose_judging
from netbuf_gym.validation.report import judge_cells
from netbuf_gym.validation.runner import run_cells
from studies.common import kept, replay
from studies.common.campaign import describe_machine
from studies.validation.laws import SECTION, LawReport, build_law_report, find_stale_laws, keep_laws, run_laws
from studies.validation.laws_catalogue import BY_NAME

STUDY, LINUX, LAWS = "validation", "linux", SECTION
SOURCES = {
    "reference": Path("studies", "validation", "reference"),
    "mechanisms": Path("tests", "data", "ns3_mechanisms.csv"),
    "marks": Path("tests", "data", "ns3_marks.csv"),
}
"""Reference measurements by section, as paths below the checkout."""
SECTIONS = (*SOURCES, LINUX, LAWS)
ONLY = "--only"
SEEDS = 30
EXACT = 1e-9
"""Tolerated relative difference of a value from the kept one, as may occur between processors."""
CELL, SEED = "cell", "seed"
SETTING = ("cc", "maximum_bytes", "latency_ms")
MEASURED = ("throughput_mbps", "rtt_ms")
PLANTS = ("live", "sim")
CHECKOUT = Path(__file__).resolve().parents[2]


def keep_section(section: str, root: Path, jobs: int | None = None) -> Path:
    """Measure the cells of a section, keep the rows and return their file."""
    if section == LINUX:
        return keep_settings(host_settings.compare(LINUX, jobs=jobs, watch=print_line), root)
    if section == LAWS:
        return keep_laws(list(BY_NAME.values()), root, jobs)
    report = validate(root / SOURCES[section], seeds=SEEDS, jobs=jobs)
    header = {"command": f"python -m studies.validation {section}", "seeds": SEEDS, "machine": describe_machine()}
    quantities = list(dict.fromkeys(name for one in report.cells for name in one.cell.ours))
    rows = [
        {CELL: one.cell.setting.id, SEED: seed, **{name: repr(values[i]) for name, values in one.cell.ours.items()}}
        for one in report.cells
        for i, seed in enumerate(one.cell.our_seeds)
    ]
    return kept.write_rows(root, STUDY, section, header, kept.format_rows([CELL, SEED, *quantities], rows))


def keep_settings(report: host_settings.SettingsReport, root: Path) -> Path:
    """Keep the measurements of hosts' settings on both plants and return the file."""
    rows: list[dict[str, Any]] = []
    for one in report.cells:
        row: dict[str, Any] = {name: getattr(one.cell, name) for name in SETTING}
        for plant, measured in zip(PLANTS, (one.live, one.simulated), strict=True):
            row |= {f"{plant}_{name}": repr(getattr(measured, name)) for name in MEASURED}
        rows.append(row)
    header = {"command": f"python -m studies.validation {LINUX}", "kernel": report.kernel, "date": report.date}
    header["machine"] = describe_machine()
    return kept.write_rows(root, STUDY, LINUX, header, kept.format_rows(list(rows[0]), rows))


def find_stale_reason(rows: kept.KeptRows) -> str:
    """Return why rows are stale: some of their runs come out differently now; "": none do.

    Played again are a reference's cells, for the first two seeds, or each law in its first world.
    """
    if rows.section == LAWS:
        return find_stale_laws(BY_NAME.values(), rows, EXACT)
    cells = [cell for cell in read_folder(rows.root / SOURCES[rows.section]).cells if not cell.not_judged]
    cells = [cell for cell in cells if choose_judging(cell) != DISTRIBUTION]
    with ProgressBar(f"{STUDY} {rows.section}") as bar:
        run_cells(cells, 2, None, bar)
    before = {(row[CELL], int(row[SEED])): row for row in rows.records}
    differing: dict[str, tuple[float, str]] = {}
    runs = [(cell, index, seed) for cell in cells for index, seed in enumerate(cell.our_seeds)]
    for cell, index, seed in runs:
        was = before.get((cell.setting.id, seed), {})
        now = {name: values[index] for name, values in cell.ours.items()}
        if found := replay.find_largest_difference(was, now, now, EXACT):
            differing[f"{cell.setting.id} {seed}"] = found
    return replay.describe_differences(differing, len(runs), most=0)


def build_report(rows: kept.KeptRows) -> Report | host_settings.SettingsReport | LawReport:
    """Return the verdicts on a section's rows.

    Raises:
        ReferenceDataError: No rows are kept for a cell that is judged.
    """
    if rows.section == LAWS:
        return build_law_report(BY_NAME.values(), rows)
    return build_settings_report(rows) if rows.section == LINUX else build_reference_report(rows)


def build_reference_report(rows: kept.KeptRows) -> Report:
    """Return the verdicts on rows against the reference of their section; raises like `build_report`."""
    reference = read_folder(rows.root / SOURCES[rows.section])
    by_cell: dict[str, list[Mapping[str, str]]] = {}
    for row in rows.records:
        by_cell.setdefault(row[CELL], []).append(row)
    for cell in reference.cells:
        if cell.not_judged:
            continue
        own = by_cell.get(cell.setting.id)
        if own is None:
            valid = f"netbuf-gym results make studies/{STUDY}/{rows.section}"
            raise ReferenceDataError(f"has no rows of {cell.setting.id}; valid: rows of every cell, by {valid}", rows.path)
        cell.our_seeds = [int(row[SEED]) for row in own]
        cell.ours = {
            name: [float(row[name]) for row in own] for name in own[0] if name not in (CELL, SEED) and own[0][name] != ""
        }
    return judge_cells(reference, reference.cells, int(rows.header["seeds"]))


def build_settings_report(rows: kept.KeptRows) -> host_settings.SettingsReport:
    """Return the verdicts on hosts' settings."""
    compared = []
    for row in rows.records:
        cell = host_settings.Cell(row["cc"], int(row["maximum_bytes"]), float(row["latency_ms"]))
        both = [host_settings.Measurement(*(float(row[f"{plant}_{name}"]) for name in MEASURED)) for plant in PLANTS]
        compared.append(host_settings.CellComparison(cell, *both))
    return host_settings.SettingsReport(tuple(compared), LINUX, rows.header["kernel"], rows.header["date"])


def main(argv: Sequence[str]) -> int:
    """Measure a section, keep its rows and print the verdicts; return 0, or 1 if one is out of tolerance.

    Args:
        argv: Name of the section, then optionally `jobs=N`; for laws `--only NAME ...`.
    """
    section = check_choice("section", argv[0] if argv else "", SECTIONS)
    words, only = _split_names(argv[1:]) if section == LAWS else (argv[1:], None)
    given = read_overrides(words, ("jobs",))
    jobs = check_integer("jobs", given["jobs"], 1, 1024) if "jobs" in given else None
    if only is not None:
        named = run_laws([BY_NAME[check_choice("law", name, BY_NAME)] for name in only], jobs)
        print(named.text())
        return int(not named.within)
    keep_section(section, CHECKOUT, jobs)
    rows = kept.read_rows(CHECKOUT, STUDY, section)
    assert rows is not None
    report = build_report(rows)
    print(report.text())
    return int(not report.within)


def _split_names(words: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """Return the words before and after `--only`, those with "=" being none of its names; None without it."""
    words = [part for word in words for part in (word.split("=", 1) if word.startswith(f"{ONLY}=") else [word])]
    if ONLY not in words:
        return words, None
    at = words.index(ONLY)
    after = [word for word in words[at:] if word != ONLY]
    names = [word for word in after if "=" not in word]
    if not names:
        raise ConfigError(f"{ONLY} names no law; valid: {', '.join(BY_NAME)}")
    return words[:at] + [word for word in after if "=" in word], names
