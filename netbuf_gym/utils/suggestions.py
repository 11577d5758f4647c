"""Suggestions for misspelt names ("did you mean")."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

LIKE = 0.6
"""Similarity, 0 to 1, above which a word is taken for a misspelling of another."""


def find_nearest(word: str, valid: Iterable[str]) -> str | None:
    """Return the valid word most similar to `word`, comparing dotted ones also by their last part; None if none is similar."""
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
    """Return `did you mean 'x'?` with a trailing space, or "" if no valid word is similar."""
    found = find_nearest(word, valid) if isinstance(word, str) and len(word) < 200 else None
    return "" if found is None else f"did you mean {found!r}? "


def suggest_valid(word: object, valid: Iterable[str]) -> str:
    """Return the rest of a message about an unknown name: the likely intended name, and all valid ones."""
    names = list(valid)
    return f"{did_you_mean(word, names)}valid: {', '.join(names) or 'none'}"


def _similar(word: str, other: str) -> float:
    word, other = word.lower(), other.lower()
    return max(SequenceMatcher(None, word, other).ratio(), SequenceMatcher(None, other, word).ratio())
