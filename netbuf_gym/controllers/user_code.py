"""Controllers that are user code, by the words that name them (`netbuf_gym.controllers.code_references`).

Such a controller runs in a separate process (`netbuf_gym.utils.sandbox`), which resolves the word again.
"""

from __future__ import annotations

from typing import Any

from netbuf_gym.controllers.code_references import is_compiled, load_object
from netbuf_gym.controllers.policies import Callback
from netbuf_gym.controllers.protocol import Controller
from netbuf_gym.errors import ConfigError, ControlError, quote


def make_controller(word: str) -> Controller:
    """Return the controller for a word that names a `Controller`, a class of one, or a function of observations.

    Raises:
        ConfigError: The word names a congestion control in C++.
        ControlError: The object cannot be imported, or is none of these.
    """
    if is_compiled(word):
        what = f"{quote(word)} is a congestion control, for task congestion_window only"
        raise ConfigError(f"{what}; valid: MODULE:NAME or FILE.py:NAME, in Python")
    found = load_object(word)
    made = as_controller(found)
    if made is not None:
        return made
    if not callable(found):
        raise ControlError(f"{quote(word)} = {quote(found)}; valid: a Controller, or a function of observations")
    decides = _instantiate(found) if isinstance(found, type) else found
    if not callable(decides):
        raise ControlError(f"{quote(word)} = {quote(found)}: its objects cannot be called; valid: __call__(self, observations)")
    return Callback(decides, word)


def as_controller(found: Any) -> Controller | None:
    """Return a controller, or an instance of a class of controllers; None for anything else.

    Raises:
        ControlError: The class cannot be instantiated without arguments, or raises.
    """
    if isinstance(found, type) and issubclass(found, Controller):
        return _instantiate(found)
    return found if isinstance(found, Controller) else None


def _instantiate(kind: type) -> Any:
    try:
        return kind()
    except Exception as error:
        said = f"{kind.__name__}() raised {type(error).__name__}: {error}"
        raise ControlError(f"{said}; valid: a class that is made without arguments") from error
