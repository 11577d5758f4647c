"""Common parts of results: access by name, one-line representations, and samples over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, SupportsIndex, TypeVar, overload

import numpy as np

from netbuf_gym.utils.tables import format_number

T = TypeVar("T")
NAN = float("nan")
SHOWN = 8
"""Number of items in a repr before the count of the remaining ones."""


class Series(dict[str, np.ndarray]):
    """Samples by name; a KeyError lists the available names."""

    def __missing__(self, name: str) -> np.ndarray:
        there = f"there are {', '.join(self)}" if self else "the simulation took none: simulate(..., sample_interval_s=0.1)"
        raise KeyError(f"no series {name!r}; {there}")


class SampledResult:
    """Base class of results with samples over time."""

    @property
    def series(self) -> dict[str, np.ndarray]:
        """Samples of this result by name, each of shape (samples,), with `time_s`, as `pandas.DataFrame` takes them.

        Empty when the simulation took none.
        """
        return self.__dict__.get("_series") or Series()

    def attach_series(self, series: dict[str, np.ndarray]) -> None:
        """Attach the samples, while the complete result is being built."""
        self.__dict__["_series"] = Series(series)


class NamedResults(tuple[T, ...]):
    """Tuple of results, by index or by name."""

    __slots__ = ()
    what = "result"

    @overload
    def __getitem__(self, key: SupportsIndex | str, /) -> T: ...
    @overload
    def __getitem__(self, key: slice, /) -> tuple[T, ...]: ...
    def __getitem__(self, key: Any) -> Any:
        """Return one result by index or name, several by a slice; a KeyError or IndexError lists the valid keys."""
        if isinstance(key, str):
            for item in self:
                if item.name == key:  # type: ignore[attr-defined]
                    return item
            raise KeyError(f"no {self.what} {key!r}; there are {', '.join(unique_names(self))}")
        try:
            return super().__getitem__(key)
        except IndexError:
            there = f"valid: 0 to {len(self) - 1}" if self else "there are none"
            raise IndexError(f"no {self.what} {key}; {there}") from None

    def __repr__(self) -> str:
        """Return a line for each of the first results, and the number of the others."""
        return "\n".join([f"{type(self).__name__} ({len(self)})", *format_first(self)])


def format_first(parts: tuple) -> Iterator[str]:
    """Yield lines that show the first of many results."""
    for part in parts[:SHOWN]:
        yield f"  {part!r}"
    if len(parts) > SHOWN:
        yield f"  ... and {len(parts) - SHOWN} more"


def unique_names(parts: tuple) -> list[str]:
    """Return the names of results; equal names get their index appended."""
    names = [part.name for part in parts]
    return [name if names.count(name) == 1 else f"{name}#{i}" for i, name in enumerate(names)]


def format_quantity(value: float, unit: str, factor: float = 1.0) -> str:
    """Return a measured value with its unit, e.g. `4.83 Mbit/s`; `- Mbit/s` for NaN."""
    return f"{format_number(value * factor, 3)} {unit}".rstrip()
