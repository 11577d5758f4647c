"""Tables of features for the reference pages, which are the docstrings of tasks: made from the features."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TypeVar

from netbuf_gym.tasks.task import Feature, Task

T = TypeVar("T", bound=type[Task])


def feature_table(features: Sequence[Feature], each: Sequence[Feature] = (), times: int = 1) -> str:
    """A Markdown table of the components of a feature vector.

    Args:
        features: those that there are once.
        each: those that come after them, each of them `times` times side by side.
        times: see `each`.
    """
    rows = [[str(num), *_told(feature)] for num, feature in enumerate(features)]
    for k, feature in enumerate(each):
        first = len(features) + k * times
        rows.append([f"{first}-{first + times - 1}" if times > 1 else str(first), *_told(feature)])
    return markdown_table(["Num", "Feature", "Meaning", "Low", "High"], rows)


def spaces_table(task: type[Task]) -> str:
    """A Markdown table of what agents of each recipe see and decide, where nothing else is asked for."""
    made = {recipe: task(recipe) for recipe in task.recipes}
    observed = [f"{one.width} features, the last {one.history} vectors of them" for one in made.values()]
    rows = [["Observation", *observed], ["Action", *(f"`{one.action_space}`" for one in made.values())]]
    return markdown_table(["", *(f"`{recipe}`" for recipe in made)], rows)


def telemetry_table(task: type[Task] | Task) -> str:
    """A Markdown table of what rewards of a task can ask telemetry for: the fields, then the quantities."""
    rules = task() if isinstance(task, type) else task
    rows = [[f"`{one.name}`", one.unit, one.meaning] for one in rules.telemetry.fields]
    rows += [[f"`{one.name}`", one.unit, f"{one.meaning} (quantity)"] for one in rules.make_tracker(1, 1.0).quantities]
    return markdown_table(["Name", "Unit", "Meaning"], rows)


def _told(feature: Feature) -> list[str]:
    return [feature.name, feature.meaning.replace("|", r"\|"), f"{feature.floor:g}: {feature.low:g}", f"1: {feature.high:g}"]


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with columns of even width."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |" for line in lines)


def documented(cls: T) -> T:
    """A class decorator: `{features of RECIPE}` in the docstring becomes the table that `cls.feature_tables()` has for it."""
    if cls.__doc__ is not None:  # it is with python -OO
        page = inspect.cleandoc(cls.__doc__)
        for recipe, table in cls.feature_tables().items():
            page = page.replace(f"{{features of {recipe}}}", table)
        cls.__doc__ = page
    return cls
