"""Sections of the studies' pages, as Markdown, from kept rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from netbuf_gym.errors import ReferenceDataError
from studies.catalogue import EXPERIMENTS
from studies.common import kept
from studies.common.experiment import Section
from studies.receiver import receiver_sections as receiver
from studies.switch import switch_sections as switch
from studies.validation import trust
from studies.validation import validation_sections as validation

VERDICTS = "verdicts"
STUDIES: dict[str, tuple[Mapping[str, Section], Callable[[Mapping[str, kept.KeptRows]], str]]] = {
    **{name: (one.sections, one.verdicts) for name, one in EXPERIMENTS.items()},
    "switch": (switch.SECTIONS, switch.verdicts),
    "receiver": (receiver.SECTIONS, receiver.verdicts),
    "validation": (validation.SECTIONS, validation.verdicts),
}
"""For each study the sections made from rows of the same name, and the function for the table of verdicts from all of these."""
DERIVED_SECTIONS: dict[str, dict[str, tuple[str, Section]]] = {
    "switch": {switch.TOGETHER: (switch.FAMILIES, switch.format_ratios)},
    "validation": {
        validation.IN_SHORT: ("reference", validation.format_short_table),
        trust.SECTION: ("laws", trust.format_trust_table),
    },
}
"""Sections made from another section's rows; the first item is that section's name."""
NAMES = tuple(
    f"{study} {section}"
    for study, (sections, _) in STUDIES.items()
    for section in (*sections, *DERIVED_SECTIONS.get(study, ()), VERDICTS)
)
"""Names of sections, as in the markers of pages."""


def make_sections(root: Path) -> dict[str, str]:
    """Return the Markdown of every section whose rows a checkout has, by name; figures drawn here are moved to docs/figures.

    Raises:
        ReferenceDataError: Rows are damaged; names the file.
        ConfigError: Further rows that a section needs are missing.
    """
    made: dict[str, str] = {}
    for study, (sections, verdicts) in STUDIES.items():
        found = {section: rows for section in sections if (rows := kept.read_rows(root, study, section)) is not None}
        try:
            made |= {
                f"{study} {section}": sections[section](rows) + _format_stale_note(rows) for section, rows in found.items()
            }
            for section, (source, make) in DERIVED_SECTIONS.get(study, {}).items():
                if source in found:
                    made[f"{study} {section}"] = make(found[source])
            if table := verdicts(found):
                made[f"{study} {VERDICTS}"] = table
        except (ValueError, KeyError) as error:
            folder = root / kept.FOLDER / study
            raise ReferenceDataError(f"holds rows that cannot be read: {error}; valid: rows of its campaigns", folder) from None
    return made


def _format_stale_note(rows: kept.KeptRows) -> str:
    """Return the note that a section with rows marked as stale ends with; "" for current rows."""
    return f"\n\n*Stale: {rows.header[kept.STALE]}.*" if kept.STALE in rows.header else ""
