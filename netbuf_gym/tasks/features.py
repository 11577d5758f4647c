"""Features of observations, and their Markdown tables for the reference pages, which are built from docstrings of tasks."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T", bound=type[Any])


@dataclass(frozen=True)
class Feature:
    """One component of an observation.

    Attributes:
        name: Identifier.
        low, high: Raw range that is mapped onto the space.
        meaning: Phrase, which also names the scale of the mapping where it is not linear.
        floor: Value that `low` is mapped onto; `high` is mapped onto 1.
    """

    name: str
    low: float
    high: float
    meaning: str
    floor: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the properties that a saved model must agree with."""
        return {"name": self.name, "low": self.low, "high": self.high, "meaning": self.meaning}


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


def _feature_row(feature: Feature) -> list[str]:
    return [feature.name, feature.meaning.replace("|", r"\|"), f"{feature.floor:g}: {feature.low:g}", f"1: {feature.high:g}"]


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with columns of even width."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |" for line in lines)


def documented(cls: T) -> T:
    """Replace `{features of RECIPE}` in a class docstring by the table from `cls.feature_tables()`; done for every `Task`."""
    if cls.__doc__ is not None and "{features of " in cls.__doc__:
        page = inspect.cleandoc(cls.__doc__)
        for recipe, table in cls.feature_tables().items():
            page = page.replace(f"{{features of {recipe}}}", table)
        cls.__doc__ = page
    return cls
