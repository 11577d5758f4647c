"""What a run was made with: versions.json in its folder."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from netbuf_gym import version
from netbuf_gym.files import write_json

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
        "netbuf_gym": version.__version__,
        "packages": {name: _version(name) for name in PACKAGES},
        "git_revision": _revision(),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }


@lru_cache(maxsize=1)
def program() -> str:
    """A digest of the package's code, the native core and the learners among it: 16 hexadecimal digits of a SHA-256."""
    own = Path(__file__).resolve().parent
    files = {path for folder in (own, Path(version.__file__).resolve().parent) for path in folder.rglob("*.[ps][yo]")}
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


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
