"""Comparison with reference measurements: their cells are rerun in the simulator, and the differences judged."""

from netbuf_gym.validation.cells import Cell, Reference, Setting, Skipped
from netbuf_gym.validation.judging import CellVerdict, Comparison, GroupVerdict, judge_cell, judge_groups
from netbuf_gym.validation.reference import read_folder
from netbuf_gym.validation.report import Report, validate

__all__ = [
    "Cell",
    "CellVerdict",
    "Comparison",
    "GroupVerdict",
    "Reference",
    "Report",
    "Setting",
    "Skipped",
    "judge_cell",
    "judge_groups",
    "read_folder",
    "validate",
]
