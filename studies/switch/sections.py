"""Sections of the study's appendix and its table of verdicts."""

from __future__ import annotations

from collections.abc import Mapping

from netbuf_gym.utils.files import write_atomic
from studies.common.experiment import Section
from studies.common.kept import FIGURES, Kept
from studies.switch import tables

RANDOM, FAMILIES, LONG, TOGETHER = "random", "families", "300 s", "together"


def table(kept: Kept) -> str:
    """A row a controller, family and drop place; puts the picture of the ratios that was drawn here into the documentation."""
    if (drawn := kept.drawn) is not None and (name := tables.PICTURES.get(kept.section)):
        write_atomic(kept.root / FIGURES / "rlbm" / name, (drawn / name).read_bytes())
    return tables.table(tables.read(kept))


def together(kept: Kept) -> str:
    """The agents' ratios over all families."""
    return "\n".join(tables.summary(tables.read(kept)))


def verdicts(sections: Mapping[str, Kept]) -> str:
    """The targets of the package's agents."""
    if not {RANDOM, FAMILIES, LONG} <= set(sections):
        return ""
    return tables.verdicts_of(*(tables.read(sections[name]) for name in (RANDOM, FAMILIES, LONG)))


SECTIONS: dict[str, Section] = {RANDOM: table, FAMILIES: table, LONG: table}
