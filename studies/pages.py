"""Sections of the studies' pages, as Markdown, from the rows that are kept of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from netbuf_gym.errors import ReferenceDataError
from studies.catalogue import EXPERIMENTS
from studies.common import kept
from studies.common.experiment import Section
from studies.receiver import sections as receiver
from studies.switch import sections as switch
from studies.validation import sections as validation

VERDICTS = "verdicts"
STUDIES: dict[str, tuple[Mapping[str, Section], Callable[[Mapping[str, kept.Kept]], str]]] = {
    **{name: (one.sections, one.verdicts) for name, one in EXPERIMENTS.items()},
    "switch": (switch.SECTIONS, switch.verdicts),
    "receiver": (receiver.SECTIONS, receiver.verdicts),
    "validation": (validation.SECTIONS, validation.verdicts),
}
"""Of each study the sections that follow from rows of the same name, and the table of verdicts from all of them."""
ALSO: dict[str, dict[str, tuple[str, Section]]] = {
    "switch": {switch.TOGETHER: (switch.FAMILIES, switch.together)},
    "validation": {validation.IN_SHORT: ("reference", validation.in_short)},
}
"""Sections that follow from another's rows, whose name is first."""
NAMES = tuple(
    f"{study} {section}" for study, (sections, _) in STUDIES.items() for section in (*sections, *ALSO.get(study, ()), VERDICTS)
)
"""What stands in the marks of pages."""


def make_sections(root: Path) -> dict[str, str]:
    """The Markdown of every section whose rows a checkout has, by its name; pictures that were drawn here go to docs/figures.

    Raises:
        ReferenceDataError: Rows are damaged; names the file.
        ConfigError: Rows that a section needs besides its own are not there.
    """
    made: dict[str, str] = {}
    for study, (sections, verdicts) in STUDIES.items():
        found = {section: rows for section in sections if (rows := kept.read(root, study, section)) is not None}
        try:
            made |= {f"{study} {section}": sections[section](rows) + _stale(rows) for section, rows in found.items()}
            for section, (source, make) in ALSO.get(study, {}).items():
                if source in found:
                    made[f"{study} {section}"] = make(found[source])
            if table := verdicts(found):
                made[f"{study} {VERDICTS}"] = table
        except (ValueError, KeyError) as error:
            folder = root / kept.FOLDER / study
            raise ReferenceDataError(f"holds rows that cannot be read: {error}; valid: rows of its campaigns", folder) from None
    return made


def _stale(rows: kept.Kept) -> str:
    """What a section says of rows that are marked as stale."""
    return f"\n\n*Stale: {rows.header[kept.STALE]}.*" if kept.STALE in rows.header else ""
