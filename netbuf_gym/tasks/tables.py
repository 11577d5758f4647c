"""Markdown tables of features for the reference pages, which are built from the docstrings of tasks."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TypeVar

from netbuf_gym.tasks.task import Feature, Task

T = TypeVar("T", bound=type[Task])


def feature_table(features: Sequence[Feature], each: Sequence[Feature] = (), times: int = 1) -> str:
    """Return a Markdown table of the components of a feature vector.

    Args:
        features: Features that occur once.
        each: Features after these, each occurring `times` times side by side.
        times: Number of occurrences of each of `each`.
    """
    rows = [[str(num), *_feature_row(feature)] for num, feature in enumerate(features)]
    for k, feature in enumerate(each):
        first = len(features) + k * times
        rows.append([f"{first}-{first + times - 1}" if times > 1 else str(first), *_feature_row(feature)])
    return markdown_table(["Num", "Feature", "Meaning", "Low", "High"], rows)


def spaces_table(task: type[Task]) -> str:
    """Return a Markdown table of the default observation and action spaces of each recipe."""
    made = {recipe: task(recipe) for recipe in task.recipes}
    observed = [f"{one.width} features, the last {one.history} vectors of them" for one in made.values()]
    rows = [["Observation", *observed], ["Action", *(f"`{one.action_space}`" for one in made.values())]]
    return markdown_table(["", *(f"`{recipe}`" for recipe in made)], rows)


def telemetry_table(task: type[Task] | Task) -> str:
    """Return a Markdown table of the telemetry available to a task's rewards: the fields, then the quantities."""
    rules = task() if isinstance(task, type) else task
    rows = [[f"`{one.name}`", one.unit, one.meaning] for one in rules.telemetry.fields]
    rows += [[f"`{one.name}`", one.unit, f"{one.meaning} (quantity)"] for one in rules.make_tracker(1, 1.0).quantities]
    return markdown_table(["Name", "Unit", "Meaning"], rows)


def _feature_row(feature: Feature) -> list[str]:
    return [feature.name, feature.meaning.replace("|", r"\|"), f"{feature.floor:g}: {feature.low:g}", f"1: {feature.high:g}"]


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with columns of even width."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |" for line in lines)


def documented(cls: T) -> T:
    """Replace `{features of RECIPE}` in a class docstring by the table from `cls.feature_tables()` (class decorator)."""
    if cls.__doc__ is not None:  # None under python -OO
        page = inspect.cleandoc(cls.__doc__)
        for recipe, table in cls.feature_tables().items():
            page = page.replace(f"{{features of {recipe}}}", table)
        cls.__doc__ = page
    return cls
