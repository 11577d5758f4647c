"""Extension packages, which register tasks, plants and the like and are imported with `netbuf_gym` in each process.

Such a package declares an entry point of the group `netbuf_gym` whose value is the module that registers. In its
`pyproject.toml`:

    [project.entry-points.netbuf_gym]
    short_wait = "short_wait"
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from contextlib import suppress
from importlib.machinery import PathFinder

GROUP = "netbuf_gym"


@functools.cache
def load() -> None:
    """Import the extension modules, once; a module that fails is skipped with a warning."""
    if not may_be_installed():
        return
    import importlib.metadata  # takes longer than all else of a help

    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            entry.load()
        except Exception as error:
            of = "" if entry.dist is None else f" of {entry.dist.name}"
            said = f"entry point {entry.name!r}{of}, {entry.value}, was not imported: {type(error).__name__}: {error}"
            warnings.warn(said, RuntimeWarning, stacklevel=3)


def may_be_installed() -> bool:
    """Return whether an extension may be installed: entry points name the group, or Python finds packages in other ways too."""
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder):
        return True
    for folder in sys.path:
        if os.path.isfile(folder):  # an archive
            return True
        with suppress(OSError):
            infos = [name for name in os.listdir(folder or ".") if name.lower().endswith(("-info", "egg-info"))]
            if any(_names_group(os.path.join(folder, name, "entry_points.txt")) for name in infos):
                return True
    return False


def _names_group(path: str) -> bool:
    with suppress(OSError), open(path, "rb") as file:
        return f"[{GROUP}]".encode() in file.read()
    return False
