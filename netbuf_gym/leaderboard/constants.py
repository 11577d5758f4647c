"""Best constant action of a task, as chosen by `netbuf-gym results make` on worlds reserved for that choice."""

from __future__ import annotations

import json
from pathlib import Path

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.evaluation.suites import get_suite, rows
from netbuf_gym.evaluation.suites.catalogue import CHOOSE_ON, V1
from netbuf_gym.utils.files import read_text

CONSTANTS = "constants.json"
"""File beside the rows of the ranking suite."""


def get_constants_file(task: str, folder: Path | None = None) -> Path:
    """Return the file that states the best constant of a task, below a folder of results."""
    return rows.get_folder(f"{V1}/{task}", folder) / CONSTANTS


def read_best_constant(task: str, folder: Path | None = None) -> str:
    """Read the best constant of a task from a folder of results.

    Raises:
        ConfigError: No readable file, or one for other worlds.
    """
    path, again = get_constants_file(task, folder), f"valid: the file that `netbuf-gym results make {V1}/{task}` writes"
    try:
        data = json.loads(read_text(path))
        edition = get_suite(CHOOSE_ON[task]).load()
        if data["digest"] != edition.digest or data["best"] not in tasks.get(task).measures.constants:
            raise ConfigError(f"{path}: is of other worlds, digest {shown(data['digest'])}; {again}")
        return str(data["best"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{path}: does not say which constant is the best ({error}); {again}") from None


def best_constant(task: str) -> str:
    """Return the constant action that is best on the validation worlds, according to the package's results."""
    return read_best_constant(task)
