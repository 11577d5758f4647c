"""Did you mean: the valid word that is most like one that is not."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

LIKE = 0.6
"""From which similarity on, 0 to 1, a word is taken for a misspelling of another."""


def nearest(word: str, valid: Iterable[str]) -> str | None:
    """The valid word most like `word`, of dotted ones also by their last part; None: none is like it."""
    best, found = LIKE, None
    for one in valid:
        similar = _similar(word, one)
        if "." in one:
            last, own = one.rpartition(".")[2], word.rpartition(".")[2]
            if min(len(last), len(own)) > 2:
                similar = max(similar, 0.9 * _similar(own, last))
        if similar > best:
            best, found = similar, one
    return found


def did_you_mean(word: object, valid: Iterable[str]) -> str:
    """`did you mean 'x'?` with a space behind; "" where nothing is like it."""
    found = nearest(word, valid) if isinstance(word, str) and len(word) < 200 else None
    return "" if found is None else f"did you mean {found!r}? "


def instead(word: object, valid: Iterable[str]) -> str:
    """What is said of a name that there is not: the one that was probably meant, and all that are valid."""
    names = list(valid)
    return f"{did_you_mean(word, names)}valid: {', '.join(names) or 'none'}"


def _similar(word: str, other: str) -> float:
    word, other = word.lower(), other.lower()
    return max(SequenceMatcher(None, word, other).ratio(), SequenceMatcher(None, other, word).ratio())
