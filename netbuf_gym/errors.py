"""What the package raises when it is given something that it cannot use.

Every message names the field, the value it had and what would be valid. All errors for bad input derive from
`NetbufError`, so that the command line prints them as one line and a program can catch them in one place.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


class NetbufError(Exception):
    """Base of all errors that this package raises on purpose."""


class ScenarioError(NetbufError, ValueError):
    """A scenario, or a field of one, that cannot be simulated."""


class ScenarioTypeError(ScenarioError, TypeError):
    """A field of a scenario whose value has the wrong type; a `ScenarioError` and a `TypeError`."""


class TraceError(NetbufError, ValueError):
    """A trace file that cannot be read or written. Names the file and, where there is one, the line."""

    def __init__(self, message: str, path: str | os.PathLike[str] | None = None, line: int | None = None):
        super().__init__(located(message, path, line))


class ReferenceDataError(NetbufError, ValueError):
    """Reference measurements that cannot be read. Names the file and, where there is one, the line."""

    def __init__(self, message: str, path: str | os.PathLike[str] | None = None, line: int | None = None):
        super().__init__(located(message, path, line))


class ConfigError(NetbufError, ValueError):
    """An argument of an environment, a wrapper, a training job or a command that cannot be used."""


class CheckpointError(NetbufError, ValueError):
    """A saved model that is damaged, or that belongs to another environment or telemetry schema."""


class SimulatorFault(NetbufError, RuntimeError):
    """The simulator found its own state inconsistent. Never answered with made-up numbers."""


class PlantFault(NetbufError, RuntimeError):
    """A plant that cannot go on: a world that does not start, or one that was closed."""


class WorkerError(NetbufError, RuntimeError):
    """Work that was done in another process was lost: the process has died, or raised what is no error of ours."""


class BusyError(NetbufError, RuntimeError):
    """Something that one thread at a time may use, while another thread (or the same one, further up) is at it."""


class CopyError(NetbufError, TypeError):
    """Something that cannot be copied or pickled, because it holds running worlds."""


class ControlError(NetbufError, ValueError):
    """A congestion control of the user's that is none, or that gave what is no window. Names it and the value."""


class SlowWorldWarning(UserWarning):
    """A world that takes long to simulate for a reason that does not show in what was asked for; names the cause."""


class MissingExtraError(NetbufError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str, package: str | None = None):
        needed = f" ({package} is not installed)" if package else ""
        super().__init__(f"{what} needs more than the light install{needed}: pip install netbuf-gym[{extra}]")
        self._made_of, self.extra = (what, extra, package), extra

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._made_of


@contextmanager
def needing(what: str, extra: str) -> Iterator[None]:
    """Makes the lack of a module that is none of ours, in what is imported here, a `MissingExtraError`."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "netbuf_gym":
            raise
        raise MissingExtraError(what, extra, error.name) from None


def located(message: str, path: str | os.PathLike[str] | None, line: int | None) -> str:
    """`message` with the file and the line in front, as compilers print them."""
    if path is None:
        return message
    return f"{path}:{line}: {message}" if line is not None else f"{path}: {message}"


def shown(value: object, limit: int = 60) -> str:
    """`value` as it is shown in a message: its repr, shortened, numpy scalars as plain numbers."""
    if isinstance(value, np.generic):
        value = value.item()
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def one_line(text: object) -> str:
    """A message, which may be of the user's code, as a line."""
    return " ".join(str(text).split())


def called(scenario: Any) -> str:
    """How messages call a scenario: by its name, if it has one."""
    return f"scenario {scenario.name!r}" if scenario.name else "the scenario"
