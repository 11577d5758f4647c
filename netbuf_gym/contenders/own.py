"""Contenders that are code of the user's, by the words that name it (`netbuf_gym.contenders.words`).

What plays such a contender runs it in a process beside (`netbuf_gym.isolated`), where it finds the word again.
"""

from __future__ import annotations

from typing import Any

from netbuf_gym.contenders.contender import Contender
from netbuf_gym.contenders.deciding import Callback
from netbuf_gym.contenders.words import is_compiled, python
from netbuf_gym.errors import ConfigError, shown


def decider(word: str) -> Contender:
    """What decides in a task's agents' place: a `Contender`, its class, or a function of observations.

    Raises:
        ConfigError: it is no such thing, or a congestion control in C++.
    """
    if is_compiled(word):
        raise ConfigError(f"{shown(word)} plays congestion_window alone; valid: MODULE:NAME or FILE.py:NAME, in Python")
    found = python(word)
    made = as_contender(found)
    if made is not None:
        return made
    if not callable(found):
        raise ConfigError(f"{shown(word)} = {shown(found)}; valid: a Contender, or a function of observations")
    return Callback(found() if isinstance(found, type) else found, word)


def as_contender(found: Any) -> Contender | None:
    """A contender, or one of a class of them; None of anything else."""
    if isinstance(found, type) and issubclass(found, Contender):
        return found()
    return found if isinstance(found, Contender) else None
