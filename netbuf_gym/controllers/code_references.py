"""References to user code on the command line: `mine.py:Name`, `package.module:Name`, `mine.cc`."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from netbuf_gym.errors import ConfigError, ControlError, quote
from netbuf_gym.scenarios.compiled_control import SUFFIXES

PYTHON_REFERENCE = re.compile(r"(?P<where>[^:]+\.py|[A-Za-z_]\w*(\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_]\w*)")


def is_compiled(word: str) -> bool:
    """Return whether a word names a C++ file."""
    return Path(word).suffix in SUFFIXES


def is_python(word: str) -> bool:
    """Return whether a word names a member of a Python file or of an existing Python module."""
    match = PYTHON_REFERENCE.fullmatch(word)
    if match is None:
        return False
    if match["where"].endswith(".py"):
        return True
    with _ImportFromCurrentFolder():
        try:
            return importlib.util.find_spec(match["where"]) is not None
        except (ImportError, ValueError):
            return False


def require_file(word: str, field: str) -> None:
    """Raise ConfigError if a word names a missing file, or a Python file without a member.

    Raises:
        ConfigError: The word does so; the message names the field.
    """
    match = PYTHON_REFERENCE.fullmatch(word)
    where = Path(match["where"] if match else word)
    if match is None and where.suffix == ".py":
        raise ConfigError(f"{field} = {quote(word)} names nothing in its file; valid: {where}:NAME, a class or function there")
    if where.suffix in (".py", *SUFFIXES) and not where.is_file():
        raise ConfigError(f"{field} = {quote(word)}: there is no file {where}; valid: an existing file")


def load_object(word: str) -> Any:
    """Return the object that a word names (`is_python`); its module is run.

    Raises:
        ControlError: The file or name does not exist, or the module raises.
    """
    match = PYTHON_REFERENCE.fullmatch(word)
    assert match is not None, word
    where, name = match["where"], match["name"]
    with _ImportFromCurrentFolder():
        try:
            module = _load_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
        except FileNotFoundError:
            raise ControlError(f"{quote(word)}: there is no file {where}; valid: FILE.py:NAME") from None
        except (Exception, SystemExit) as error:
            said = f"{quote(word)}: {where} cannot be imported ({type(error).__name__}: {error})"
            raise ControlError(f"{said}; valid: a module that can be imported") from error
    if not hasattr(module, name):
        there = ", ".join(own for own, value in vars(module).items() if not own.startswith("_") and callable(value))
        raise ControlError(f"{quote(word)}: {where} has no {name!r}; valid: {there or 'a name that it defines'}")
    return getattr(module, name)


def _load_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"netbuf_gym_own_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class _ImportFromCurrentFolder:
    """A context in which modules of the current folder can be imported, as with `python -m`."""

    def __enter__(self) -> None:
        sys.path.insert(0, "")

    def __exit__(self, *error: object) -> None:
        sys.path.remove("")
