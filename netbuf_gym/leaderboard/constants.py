"""The best constant action of a task: as `netbuf-gym results make` found it, on worlds that are there for that."""

from __future__ import annotations

import json
from pathlib import Path

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.evaluation.suites import rows, suite
from netbuf_gym.evaluation.suites.catalogue import CHOOSE_ON, V1
from netbuf_gym.utils.files import read_text

CONSTANTS = "constants.json"
"""Beside the rows of the suite that controllers are ranked by."""


def file_of(task: str, folder: Path | None = None) -> Path:
    """File that says which constant of a task is the best, below a folder of results."""
    return rows.folder_of(f"{V1}/{task}", folder) / CONSTANTS


def constant_of(task: str, folder: Path | None = None) -> str:
    """The best constant of a task, as a folder of results has it.

    Raises:
        ConfigError: It does not say so, or of other worlds.
    """
    path, again = file_of(task, folder), f"valid: the file that `netbuf-gym results make {V1}/{task}` writes"
    try:
        data = json.loads(read_text(path))
        edition = suite(CHOOSE_ON[task]).load()
        if data["digest"] != edition.digest or data["best"] not in tasks.get(task).measures.constants:
            raise ConfigError(f"{path}: is of other worlds, digest {shown(data['digest'])}; {again}")
        return str(data["best"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{path}: does not say which constant is the best ({error}); {again}") from None


def best_constant(task: str) -> str:
    """The action that, always taken, is best on the worlds of validation, as the package's results have it."""
    return constant_of(task)
