"""Results of a function, kept by the very tuple that it was called with, for tuples that are costly to compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")

SIZE = 256
"""Number of results that a cache keeps; one more, and it forgets them all."""
LONGEST = 64
"""Items of the longest tuple whose results are kept."""


class IdentityCache(Generic[T]):
    """Function of a tuple of what does not change, and of further arguments that are hashed, whose results are kept."""

    def __init__(self, function: Callable[..., T]):
        self._function = function
        self._kept: dict[tuple[Any, ...], tuple[Sequence[Any], T]] = {}

    def __call__(self, key: Sequence[Any], *others: Any) -> T:
        """Return the function's result, the same one each time for the same short tuple `key` and equal `others`."""
        if len(key) > LONGEST:
            return self._function(key, *others)
        at = (id(key), *others)
        found = self._kept.get(at)
        if found is not None and found[0] is key:  # else another tuple had this id
            return found[1]
        made = self._function(key, *others)
        if len(self._kept) >= SIZE:
            self._kept.clear()
        self._kept[at] = (key, made)
        return made
