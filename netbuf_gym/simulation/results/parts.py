"""What parts of results have alike: they are found by name, are shown in a line, and hold their samples over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, SupportsIndex, TypeVar, overload

import numpy as np

from netbuf_gym.utils.tables import number

T = TypeVar("T")
NAN = float("nan")
SHOWN = 8
"""Parts that a repr shows before it says how many more there are."""


class Series(dict[str, np.ndarray]):
    """Samples by name; a KeyError says which names there are."""

    def __missing__(self, name: str) -> np.ndarray:
        there = f"there are {', '.join(self)}" if self else "the simulation took none: simulate(..., sample_interval_s=0.1)"
        raise KeyError(f"no series {name!r}; {there}")


class Sampled:
    """A result of something that was sampled over time."""

    @property
    def series(self) -> dict[str, np.ndarray]:
        """Its own samples by name, each of shape (samples,), `time_s` among them: what `pandas.DataFrame` takes. Empty when the
        simulation took none."""
        return self.__dict__.get("_series") or Series()

    def hold(self, series: dict[str, np.ndarray]) -> None:
        """Takes its samples; whoever makes the result does so."""
        self.__dict__["_series"] = Series(series)


class Named(tuple[T, ...]):
    """Results by index or by name."""

    __slots__ = ()
    what = "result"

    @overload
    def __getitem__(self, key: SupportsIndex | str, /) -> T: ...
    @overload
    def __getitem__(self, key: slice, /) -> tuple[T, ...]: ...
    def __getitem__(self, key: Any) -> Any:
        """One by its index or its name, several by a slice; KeyError or IndexError says which there are."""
        if isinstance(key, str):
            for item in self:
                if item.name == key:  # type: ignore[attr-defined]
                    return item
            raise KeyError(f"no {self.what} {key!r}; there are {', '.join(names_of(self))}")
        try:
            return super().__getitem__(key)
        except IndexError:
            there = f"valid: 0 to {len(self) - 1}" if self else "there are none"
            raise IndexError(f"no {self.what} {key}; {there}") from None

    def __repr__(self) -> str:
        """A line for each of the first, and how many more there are."""
        return "\n".join([f"{type(self).__name__} ({len(self)})", *some(self)])


def some(parts: tuple) -> Iterator[str]:
    """Lines that show the first of many results."""
    for part in parts[:SHOWN]:
        yield f"  {part!r}"
    if len(parts) > SHOWN:
        yield f"  ... and {len(parts) - SHOWN} more"


def names_of(parts: tuple) -> list[str]:
    """The names of results, made unique by their number where two are alike."""
    names = [part.name for part in parts]
    return [name if names.count(name) == 1 else f"{name}#{i}" for i, name in enumerate(names)]


def said(value: float, unit: str, factor: float = 1.0, digits: int = 3) -> str:
    """A measured value with its unit, e.g. `4.83 Mbit/s`; `- Mbit/s` where there is none."""
    return f"{number(value * factor, digits)} {unit}".rstrip()
