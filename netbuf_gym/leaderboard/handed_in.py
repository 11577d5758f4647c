"""Results that were handed in: rows that `netbuf-gym leaderboard submit` keeps, and results of logged runs. Needs no learner.

Nobody vouches for a file of figures. A result counts as checked if this machine has played the model's worlds and written the
file, whose digest it keeps beside the logged runs. Whatever else lies in a folder or a project is unchecked, and not ranked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from netbuf_gym.errors import ConfigError, require_extra
from netbuf_gym.evaluation.suites import Suite
from netbuf_gym.leaderboard import rows
from netbuf_gym.utils.files import make_folder, write_json

RESULT = "result.json"
"""File of the result in a logged run."""
CHECKED = "checked.json"
"""File beside logged runs: SHA-256 digests of the files whose figures this machine has played itself."""


def mark_checked(path: Path, runs: Path) -> None:
    """Record that the figures of a file are those that this machine has just played.

    Raises:
        OSError: The record cannot be written.
    """
    make_folder(runs, "runs")
    write_json(runs / CHECKED, sorted({*_read_checked(runs), _compute_digest(path)}))


def is_checked(path: Path, runs: Path) -> bool:
    """Return whether this machine has played the figures of a file, which has not changed since."""
    with suppress(OSError):
        return _compute_digest(path) in _read_checked(runs)
    return False


def _compute_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read_checked(runs: Path) -> set[str]:
    """Return the recorded digests; none if the record is missing or damaged."""
    with suppress(OSError, ValueError, TypeError):
        return {str(one) for one in json.loads((runs / CHECKED).read_text(encoding="utf-8"))}
    return set()


def find_rows(own: Suite, folder: Path) -> list[Path]:
    """Return the files of rows that were handed in for a suite, sorted."""
    return sorted(rows.get_folder(own, folder).glob("*.csv"))


def find_offline_results(folder: Path) -> list[Path]:
    """Return the result files of runs that were written below a folder, the newest first."""
    return sorted(folder.glob(f"wandb/*run-*/files/{RESULT}"), reverse=True)


def download_project_results(path: str, folder: Path, api: Any = None) -> Iterator[Path]:
    """Download the result of each run of a project.

    Args:
        path: ENTITY/PROJECT.
        folder: Folder that results are downloaded into.
        api: API object to use; None: `wandb.Api()`.

    Yields:
        Downloaded result files.

    Raises:
        MissingExtraError: wandb is not installed.
        ConfigError: No account, or no such project.
    """
    with require_extra("a project's leaderboard", "leaderboard"):
        import wandb
    try:
        runs = list((wandb.Api() if api is None else api).runs(path, filters={"jobType": "leaderboard"}))
        for run in runs:
            own = folder / str(run.id)
            run.file(RESULT).download(root=str(own), replace=True)
            yield own / RESULT
    except (wandb.Error, ValueError) as error:
        said = f"project = {path!r}: {' '.join(str(error).split())}"
        raise ConfigError(f"{said}; valid: ENTITY/PROJECT that your account (wandb login) can read") from None
