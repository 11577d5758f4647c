"""Exceptions and warnings of the package.

Every message names the field, the value it had and what would be valid. All errors for bad input derive from
`NetbufError`, so that the command line prints them as one line and a program can catch them in one place.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class NetbufError(Exception):
    """Base of all errors that this package raises on purpose."""


class ScenarioError(NetbufError, ValueError):
    """A scenario, or a field of a scenario, that cannot be simulated."""


class ScenarioTypeError(ScenarioError, TypeError):
    """A scenario field whose value has the wrong type; a `ScenarioError` and a `TypeError`."""


class FileFormatError(NetbufError, ValueError):
    """A file that cannot be read or written; the message names the file and, where there is one, the line."""

    def __init__(self, message: str, path: str | os.PathLike[str] | None = None, line: int | None = None):
        super().__init__(prefix_location(message, path, line))


class TraceError(FileFormatError):
    """A trace file that cannot be read or written."""


class ReferenceDataError(FileFormatError):
    """Reference measurements that cannot be read."""


class ConfigError(NetbufError, ValueError):
    """An invalid argument of an environment, a wrapper, a training job or a command."""


class ConfigTypeError(ConfigError, TypeError):
    """An argument that does not exist, or whose value has the wrong type; a `ConfigError` and a `TypeError`."""


class CheckpointError(NetbufError, ValueError):
    """A saved model that is damaged, or that belongs to another environment or telemetry schema."""


class SimulatorFault(NetbufError, RuntimeError):
    """An inconsistent simulator state, detected by the simulator; made-up numbers are never returned instead."""


class PlantFault(NetbufError, RuntimeError):
    """A plant that cannot continue: a world that does not start, or one that was closed."""


class WorkerError(NetbufError, RuntimeError):
    """Work lost in another process: the process died, or raised an exception that is not one of this package's."""


class BusyError(NetbufError, RuntimeError):
    """Concurrent or re-entrant use of an object that only one thread may use at a time."""


class CopyError(NetbufError, TypeError):
    """An attempt to copy or pickle an object that holds running worlds."""


class ControlError(NetbufError, ValueError):
    """A user's congestion control that is invalid or returned an invalid window; names the control and the value."""


class SlowWorldWarning(UserWarning):
    """A world that takes long to simulate for a reason that its arguments do not show; the message names the cause."""


class LateDecisionsWarning(UserWarning):
    """A live world whose agents decide less often than they are to; the message names both intervals."""


class ScenarioWarning(UserWarning):
    """A scenario that can be simulated but hardly be meant; the message names field, value and what would be valid."""


def warn_caller(text: str, category: type[Warning]) -> None:
    """Issue a warning that names the first line outside this package (and `dataclasses`, whose `replace` makes records)."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("netbuf_gym", "dataclasses")):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


class MissingExtraError(NetbufError, ImportError):
    """A missing optional dependency."""

    def __init__(self, what: str, extra: str, package: str | None = None):
        needed = f" ({package} is not installed)" if package else ""
        super().__init__(f"{what} needs more than the light install{needed}: pip install netbuf-gym[{extra}]")
        self._made_of, self.extra = (what, extra, package), extra

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._made_of


@contextmanager
def require_extra(what: str, extra: str) -> Iterator[None]:
    """Convert the ModuleNotFoundError of a third-party module in the `with` block into a `MissingExtraError`."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "netbuf_gym":
            raise
        raise MissingExtraError(what, extra, error.name) from None


def prefix_location(message: str, path: str | os.PathLike[str] | None, line: int | None) -> str:
    """Return `message` prefixed with the file and the line, as compilers print them."""
    if path is None:
        return message
    return f"{path}:{line}: {message}" if line is not None else f"{path}: {message}"


def quote(value: object, limit: int = 60) -> str:
    """Return the repr of `value` for a message: shortened to `limit` characters, numpy scalars as plain numbers."""
    numpy = sys.modules.get("numpy")  # not imported for this: commands that print a help start without
    if numpy is not None and isinstance(value, numpy.generic):
        value = value.item()
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def one_line(text: object) -> str:
    """Return a message, possibly from the user's code, as one line."""
    return " ".join(str(text).split())


def escape_surrogates(text: str) -> str:
    """Return a text with escapes for lone surrogates, which no encoding has: those of file names that are not UTF-8."""
    return text.encode(errors="backslashreplace").decode()


def describe_scenario(scenario: Any) -> str:
    """Return how messages refer to a scenario: by its name, if it has one."""
    return f"scenario {scenario.name!r}" if scenario.name else "the scenario"
