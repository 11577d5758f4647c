"""What a run was made with: versions.json in its folder."""

from __future__ import annotations

import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from netbuf_gym.files import write_json
from netbuf_gym.version import __version__

NAME = "versions.json"
LEARNERS = ("torch", "stable-baselines3", "sb3-contrib")
PACKAGES = ("numpy", "scipy", "gymnasium", *LEARNERS, "hydra-core", "omegaconf", "optuna", "wandb")


def write(folder: Path, seed: int) -> None:
    """Writes it.

    Raises:
        OSError: it cannot be written.
    """
    write_json(folder / NAME, {**found(), "seed": seed})


def found() -> dict[str, Any]:
    """Of the package, what it stands on (null: not installed), Python and machine; the git revision where it is a checkout."""
    return {
        "netbuf_gym": __version__,
        "packages": {name: _version(name) for name in PACKAGES},
        "git_revision": _revision(),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _revision() -> str | None:
    """Of the checkout that the package is in; with `+` where files that git knows were changed."""
    here = Path(__file__).resolve().parents[1]
    try:
        _git(here, "ls-files", "--error-unmatch", "zoo/__init__.py")
        return _git(here, "rev-parse", "HEAD") + ("+" if _git(here, "status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
