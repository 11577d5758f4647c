"""Sections of the study's appendix and its table of verdicts."""

from __future__ import annotations

from collections.abc import Mapping

from netbuf_gym.utils.files import write_atomic
from studies.common.experiment import Section
from studies.common.kept import FIGURES, KeptRows
from studies.switch import judging_tables
from studies.switch import switch_tables as tables

RANDOM, FAMILIES, LONG, TOGETHER, JUDGING = "random", "families", "300 s", "together", "judging"


def format_table(kept: KeptRows) -> str:
    """Return the section's table as Markdown; copy the picture of the ratios, if drawn here, into the documentation."""
    if (drawn := kept.drawn_folder) is not None and (name := tables.PICTURES.get(kept.section)):
        write_atomic(kept.root / FIGURES / "rlbm" / name, (drawn / name).read_bytes())
    return tables.format_table(tables.parse_rows(kept))


def format_ratios(kept: KeptRows) -> str:
    """Return the agents' ratios over all families as Markdown."""
    return "\n".join(tables.format_summary(tables.parse_rows(kept)))


def format_judged(kept: KeptRows) -> str:
    """Return the tables of judged controllers as Markdown."""
    return judging_tables.format_tables(judging_tables.parse_rows(kept))


def verdicts(sections: Mapping[str, KeptRows]) -> str:
    """Return the verdicts on the targets of the package's agents; "" without one of the sections."""
    if not {RANDOM, FAMILIES, LONG} <= set(sections):
        return ""
    return tables.format_verdicts(*(tables.parse_rows(sections[name]) for name in (RANDOM, FAMILIES, LONG)))


SECTIONS: dict[str, Section] = {RANDOM: format_table, FAMILIES: format_table, LONG: format_table, JUDGING: format_judged}
