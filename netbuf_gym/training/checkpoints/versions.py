"""Versions of what a run was made with: versions.json in its folder, and in short in the files of its models.

Beside an agent of the zoo they stand in its metrics.json, as `versions`. A folder that has neither, as those of agents that
were made before there was one, has what the model's file says; all else was not recorded, and is said to be so.
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
"""Of the file, and of the same among an agent's metrics."""
TEXT = "system_info.txt"
"""Of a model's file: what stable-baselines3 says in words of the machine that has written it."""
IN_TEXT = {"OS": "platform", "Python": "python", "Gymnasium": "gymnasium"}
"""Its words for what we have of them."""
NOT_RECORDED = "not recorded"
MAX_TEXT = 1 << 12
LEARNERS = ("torch", "stable-baselines3", "sb3-contrib")
LIBRARIES = ("numpy", "scipy", "gymnasium", *LEARNERS, "hydra-core", "omegaconf", "optuna", "wandb")


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
        "packages": {name: _version(name) for name in LIBRARIES},
        "git_revision": _revision(),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }


def of_file() -> dict[str, str]:
    """What a model's file says of what it is made with, by what `found` calls it, packages with `_` for `-`."""
    packages = {name.replace("-", "_"): _version(name) for name in ("stable-baselines3", "torch", "numpy", "gymnasium")}
    own = {"netbuf_gym": version.__version__, "python": platform.python_version(), "platform": platform.platform()}
    return own | {name: said for name, said in packages.items() if said is not None}


def in_text(text: bytes) -> dict[str, str]:
    """As `of_file`, what stable-baselines3's words say; nothing of what they do not."""
    lines = (line.removeprefix("- ").partition(": ") for line in text[:MAX_TEXT].decode(errors="replace").splitlines())
    return in_names({IN_TEXT[key]: said.partition(" #")[0] for key, _, said in lines if key in IN_TEXT})


def in_names(given: Any) -> dict[str, str]:
    """As `of_file`, what was read from a file that may be anyone's: names that we have, with short texts."""
    known = {"netbuf_gym", "python", "platform", *(name.replace("-", "_") for name in LIBRARIES)}
    said = given if isinstance(given, dict) else {}
    return {key: " ".join(str(value)[:MAX_TEXT].split())[:80] for key, value in said.items() if key in known}


def beside(model: Path) -> dict[str, Any] | None:
    """What metrics.json, or versions.json, beside a model says of what it was made with (null: not installed).

    Returns:
        as `found`, with the training's `seed`; None where neither says anything.

    Raises:
        ConfigError: it cannot be read, or is something else.
    """
    path = model.parent / "metrics.json"
    try:
        said = library.metrics_of(model.parent).get(KEY)
        if said is None:
            path = model.parent / NAME
            if not path.is_file():
                return None
            said = json.loads(read_text(path))
        return {**said, "packages": dict(said["packages"])}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        found = f"{path}: does not say what was used ({error})"
        raise ConfigError(f"{found}; valid: what training wrote, or no such file") from None


def of(model: Path, in_file: Mapping[str, str], seed: int) -> dict[str, Any]:
    """What a model was made with, as it is said `beside` it, or else as its own file does.

    Args:
        in_file: what the file says, as `of_file`; of all else `NOT_RECORDED` is said.
        seed: of the training.

    Raises:
        ConfigError: as `beside`.
    """
    if (said := beside(model)) is not None:
        return said
    packages = {name: in_file.get(name.replace("-", "_"), NOT_RECORDED) for name in LIBRARIES}
    others = {name: in_file.get(name, NOT_RECORDED) for name in ("netbuf_gym", "git_revision", "python", "platform")}
    return {**others, "packages": packages, "seed": seed}


def in_words(said: Mapping[str, Any]) -> str:
    """What `of` gives, in a sentence."""
    named = {"netbuf-gym": said.get("netbuf_gym"), **said["packages"], "Python": said.get("python")}
    named |= {"platform": said.get("platform"), "git revision": said.get("git_revision")}
    return f"Made with {', '.join(f'{name} {value}' for name, value in named.items() if value is not None)}."


@lru_cache(maxsize=1)
def program() -> str:
    """A digest of the package's code, the native core and the learners among it: 16 hexadecimal digits of a SHA-256."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.[ps][yo]")):
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _revision() -> str | None:
    """Of the checkout that the package is in; with `+` where files that git knows were changed."""
    here = PACKAGE.parent
    try:
        _git(here, "ls-files", "--error-unmatch", "netbuf_gym/__init__.py")
        return _git(here, "rev-parse", "HEAD") + ("+" if _git(here, "status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
