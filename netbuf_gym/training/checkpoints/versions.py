"""Versions of a run's software and machine: versions.json in its folder, and a short form in the files of its models.

Beside an agent of the zoo they are in its metrics.json, as `versions`. For a folder with neither, such as those of older
agents, they are the ones in the model's file; all others are reported as not recorded.
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from netbuf_gym import version
from netbuf_gym.errors import ConfigError
from netbuf_gym.utils.data import PACKAGE
from netbuf_gym.utils.files import read_text, write_json
from netbuf_gym.zoo import library

NAME, KEY = "versions.json", "versions"
"""Name of the file, and key of the same values in an agent's metrics."""
TEXT = "system_info.txt"
"""Member of a model's file with stable-baselines3's description of the machine."""
IN_TEXT = {"OS": "platform", "Python": "python", "Gymnasium": "gymnasium"}
"""Names in that description, and the corresponding keys here."""
NOT_RECORDED = "not recorded"
MAX_TEXT = 1 << 12
LEARNERS = ("torch", "stable-baselines3", "sb3-contrib")
LIBRARIES = ("numpy", "scipy", "gymnasium", *LEARNERS, "hydra-core", "omegaconf", "optuna", "wandb")


def write_versions(folder: Path, seed: int) -> None:
    """Write versions.json into a folder.

    Raises:
        OSError: The file cannot be written.
    """
    write_json(folder / NAME, {**collect_versions(), "seed": seed})


def collect_versions() -> dict[str, Any]:
    """Return the versions of package, dependencies (null: not installed), Python and machine, and a checkout's revision."""
    return {
        "netbuf_gym": version.__version__,
        "packages": {name: _find_package_version(name) for name in LIBRARIES},
        "git_revision": _find_git_revision(),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }


def collect_file_versions() -> dict[str, str]:
    """Return the versions for a model's file, by the keys of `collect_versions`, packages with `_` for `-`."""
    packages = {
        name.replace("-", "_"): _find_package_version(name) for name in ("stable-baselines3", "torch", "numpy", "gymnasium")
    }
    own = {"netbuf_gym": version.__version__, "python": platform.python_version(), "platform": platform.platform()}
    return own | {name: said for name, said in packages.items() if said is not None}


def parse_system_info(text: bytes) -> dict[str, str]:
    """Parse the versions in stable-baselines3's description, by the keys of `collect_file_versions`."""
    lines = (line.removeprefix("- ").partition(": ") for line in text[:MAX_TEXT].decode(errors="replace").splitlines())
    return select_known_versions({IN_TEXT[key]: said.partition(" #")[0] for key, _, said in lines if key in IN_TEXT})


def select_known_versions(given: Any) -> dict[str, str]:
    """Return the known keys of a possibly untrusted mapping, with short texts, by the keys of `collect_file_versions`."""
    known = {"netbuf_gym", "python", "platform", *(name.replace("-", "_") for name in LIBRARIES)}
    said = given if isinstance(given, dict) else {}
    return {key: " ".join(str(value)[:MAX_TEXT].split())[:80] for key, value in said.items() if key in known}


def read_versions_beside(model: Path) -> dict[str, Any] | None:
    """Return the versions in metrics.json, or else versions.json, beside a model (null: not installed).

    Returns:
        Mapping as of `collect_versions`, with the training's `seed`; None if neither file has any.

    Raises:
        ConfigError: The file cannot be read, or is invalid.
    """
    path = model.parent / "metrics.json"
    try:
        said = library.read_metrics(model.parent).get(KEY)
        if said is None:
            path = model.parent / NAME
            if not path.is_file():
                return None
            said = json.loads(read_text(path))
        return {**said, "packages": dict(said["packages"])}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        found = f"{path}: does not say what was used ({error})"
        raise ConfigError(f"{found}; valid: what training wrote, or no such file") from None


def resolve_versions(model: Path, in_file: Mapping[str, str], seed: int) -> dict[str, Any]:
    """Return the versions of a model, from the files beside it, or else from its own file.

    Args:
        model: File of the model.
        in_file: Versions in that file, as of `collect_file_versions`; all others are `NOT_RECORDED`.
        seed: Seed of the training.

    Raises:
        ConfigError: As `read_versions_beside`.
    """
    if (said := read_versions_beside(model)) is not None:
        return said
    packages = {name: in_file.get(name.replace("-", "_"), NOT_RECORDED) for name in LIBRARIES}
    others = {name: in_file.get(name, NOT_RECORDED) for name in ("netbuf_gym", "git_revision", "python", "platform")}
    return {**others, "packages": packages, "seed": seed}


def format_versions(said: Mapping[str, Any]) -> str:
    """Format the result of `resolve_versions` as a sentence."""
    named = {"netbuf-gym": said.get("netbuf_gym"), **said["packages"], "Python": said.get("python")}
    named |= {"platform": said.get("platform"), "git revision": said.get("git_revision")}
    return f"Made with {', '.join(f'{name} {value}' for name, value in named.items() if value is not None)}."


@lru_cache(maxsize=1)
def compute_program_digest() -> str:
    """Return a digest of the package's code, including native core and learners: 16 hexadecimal digits of a SHA-256."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.[ps][yo]")):
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _find_package_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _find_git_revision() -> str | None:
    """Return the git revision of the package's checkout, with `+` if tracked files were changed; None outside of a checkout."""
    here = PACKAGE.parent
    try:
        _run_git(here, "ls-files", "--error-unmatch", "netbuf_gym/__init__.py")
        return _run_git(here, "rev-parse", "HEAD") + ("+" if _run_git(here, "status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _run_git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
