"""Which constant action of a task is the best: as `netbuf-gym leaderboard fill` found it, on worlds that are there for that."""

from __future__ import annotations

import json
from pathlib import Path

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.files import read_text
from netbuf_gym.suites import suite
from netbuf_gym.suites.catalogue import CHOOSE_ON, V1

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" if (HERE / "results").is_dir() else HERE.parent / "benchmarks" / "results" / V1
"""Committed results: as they were installed, or those of the checkout."""
CONSTANTS = "constants.json"
"""What says which constant is the best."""


def constant_of(folder: Path, task: str) -> str:
    """The best constant, as `fill` found it.

    Raises:
        ConfigError: It has not, or on other worlds.
    """
    path, again = folder / task / CONSTANTS, f"valid: what `netbuf-gym leaderboard fill task={task}` writes"
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
    """The action that, always taken, is best on the worlds of validation, as the package's leaderboard found it."""
    return constant_of(RESULTS, task)
