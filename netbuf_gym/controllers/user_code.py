"""Controllers that are code of the user's, by the words that name it (`netbuf_gym.controllers.code_references`).

What plays such a controller runs it in a process beside (`netbuf_gym.utils.sandbox`), where it finds the word again.
"""

from __future__ import annotations

from typing import Any

from netbuf_gym.controllers.code_references import is_compiled, python
from netbuf_gym.controllers.policies import Callback
from netbuf_gym.controllers.protocol import Controller
from netbuf_gym.errors import ConfigError, ControlError, shown


def decider(word: str) -> Controller:
    """What decides in a task's agents' place: a `Controller`, its class, or a function of observations.

    Raises:
        ConfigError: it is a congestion control in C++.
        ControlError: it cannot be imported, or is no such thing.
    """
    if is_compiled(word):
        raise ConfigError(f"{shown(word)} plays congestion_window alone; valid: MODULE:NAME or FILE.py:NAME, in Python")
    found = python(word)
    made = as_controller(found)
    if made is not None:
        return made
    if not callable(found):
        raise ControlError(f"{shown(word)} = {shown(found)}; valid: a Controller, or a function of observations")
    decides = _made(found) if isinstance(found, type) else found
    if not callable(decides):
        raise ControlError(f"{shown(word)} = {shown(found)}: its objects cannot be called; valid: __call__(self, observations)")
    return Callback(decides, word)


def as_controller(found: Any) -> Controller | None:
    """A controller, or one of a class of them; None of anything else.

    Raises:
        ControlError: the class cannot be made without arguments, or raises.
    """
    if isinstance(found, type) and issubclass(found, Controller):
        return _made(found)
    return found if isinstance(found, Controller) else None


def _made(kind: type) -> Any:
    try:
        return kind()
    except Exception as error:
        said = f"{kind.__name__}() raised {type(error).__name__}: {error}"
        raise ControlError(f"{said}; valid: a class that is made without arguments") from error
