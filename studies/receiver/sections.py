"""Sections of the study's appendix, and what pages about receivers show besides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from studies.common.experiment import Section
from studies.common.kept import Kept
from studies.receiver.claims import survival_text, verdicts, worlds_text
from studies.receiver.measured import MEASUREMENTS


def _shown(table: Callable[[Sequence[Mapping[str, str]]], str]) -> Section:
    def section(kept: Kept) -> str:
        return table(kept.records)

    return section


SECTIONS: dict[str, Section] = {
    "worlds": worlds_text,
    "survival": survival_text,
    **{name: _shown(table) for name, (_, table) in MEASUREMENTS.items()},
}

__all__ = ["SECTIONS", "verdicts"]
