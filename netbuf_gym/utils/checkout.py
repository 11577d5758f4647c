"""Location and import of a checkout's `studies`, which are not part of the installed package."""

from __future__ import annotations

import importlib
import importlib.util
import pickle
import sys
from configparser import ConfigParser, Error
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.utils.data import PACKAGE
from netbuf_gym.version import __version__

PROJECT, STUDIES = "netbuf-gym", "studies"


def is_checkout(folder: Path) -> bool:
    """Return whether a folder is a checkout of this project with studies."""
    if not (folder / STUDIES / "__init__.py").is_file():
        return False
    config = ConfigParser(interpolation=None)
    try:
        config.read(folder / "setup.cfg", encoding="utf-8")
    except (Error, OSError, UnicodeDecodeError):
        return False
    return config.get("metadata", "name", fallback="") == PROJECT


def find_checkout() -> Path | None:
    """Return the checkout that contains the current folder, else the one that the package is imported from, else None."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents, PACKAGE.parent) if is_checkout(folder)), None)


def require_checkout(given: str | None = None, option: str = "--studies") -> Path:
    """Return the checkout whose studies are to be run.

    Args:
        given: A checkout or the studies folder in it; None: the result of `find_checkout`.
        option: Command-line option that supplies `given`, for messages.

    Raises:
        ConfigError: No checkout was found; the message says how to get one.
    """
    if given is None:
        found = find_checkout()
        if found is None:
            valid = f"a folder in a clone ({describe_clone()}), or {option} DIR of one"
            raise ConfigError(f"{Path.cwd()} is in no checkout, and the installed package has no studies; valid: {valid}")
        return found
    folder = Path(given).absolute()
    for one in (folder, folder.parent):
        if is_checkout(one) and folder in (one, one / STUDIES):
            return one
    valid = f"a clone ({describe_clone()}), or its folder {STUDIES}"
    raise ConfigError(f"{option} {quote(given)} is no checkout of this project with studies; valid: {valid}")


def import_studies(checkout: Path, module: str = "") -> ModuleType:
    """Import a module of a checkout's studies, e.g. `catalogue`, or the package `studies` itself for "".

    Modules of another checkout's studies are unloaded first.

    Raises:
        ConfigError: The studies need another version of the package.
    """
    folder = checkout / STUDIES
    loaded = sys.modules.get(STUDIES)
    if loaded is None or str(folder) not in map(str, loaded.__path__):
        for name in [name for name in sys.modules if name.partition(".")[0] == STUDIES]:
            del sys.modules[name]
        spec = importlib.util.spec_from_file_location(STUDIES, folder / "__init__.py", submodule_search_locations=[str(folder)])
        assert spec is not None and spec.loader is not None
        sys.modules[STUDIES] = loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
    try:
        return importlib.import_module(f"{STUDIES}.{module}") if module else loaded
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("netbuf_gym", STUDIES):
            raise
        valid = f"those of netbuf-gym {__version__}, which is installed"
        raise ConfigError(f"the studies of {checkout} need another version of the package ({error}); valid: {valid}") from None


@dataclass(frozen=True)
class PickledWork:
    """A study's function, for other processes, in which studies cannot be imported by name alone; called with a pickled task.

    Args:
        checkout: Root of the checkout that holds the studies.
        function: Pickled function.
    """

    checkout: str
    function: bytes

    def __call__(self, task: bytes) -> Any:
        import_studies(Path(self.checkout))
        return pickle.loads(self.function)(pickle.loads(task))


def describe_clone() -> str:
    """Return the command that makes a clone of the project, as far as the installed package's metadata know it."""
    try:
        found = metadata(PROJECT)
    except PackageNotFoundError:
        return "git clone of the project's repository"
    links = dict(line.split(", ", 1) for line in found.get_all("Project-URL") or () if ", " in line)
    return f"git clone {links.get('Source') or (found.get_all('Home-page') or ['of the repository'])[0]}"
