"""Sections of the study's appendix, and of other pages about receivers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from studies.common.experiment import Section
from studies.common.kept import KeptRows
from studies.receiver.goal import SECTION, format_goal
from studies.receiver.measured import MEASUREMENTS
from studies.receiver.receiver_claims import format_survival, format_worlds, verdicts


def _make_section(table: Callable[[Sequence[Mapping[str, str]]], str]) -> Section:
    def section(kept: KeptRows) -> str:
        return table(kept.records)

    return section


SECTIONS: dict[str, Section] = {
    "worlds": format_worlds,
    "survival": format_survival,
    SECTION: format_goal,
    **{name: _make_section(table) for name, (_, table) in MEASUREMENTS.items()},
}

__all__ = ["SECTIONS", "verdicts"]
