"""Parts of pages that commands write: what stands between two lines of marks."""

from __future__ import annotations

from pathlib import Path

from netbuf_gym.errors import ConfigError


def replaced(page: str | Path, text: str, begin: str, end: str, new: str) -> str:
    """A page's text with what stands between its marks replaced.

    Args:
        page: its name, for the message.

    Raises:
        ConfigError: the page does not hold both marks, once each and in order.
    """
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ConfigError(f"{page}: must hold the lines {begin!r} and {end!r} once each, in this order")
    head, _, rest = text.partition(begin)
    return f"{head}{begin}\n\n{new.strip()}\n\n{end}{rest.partition(end)[2]}"
