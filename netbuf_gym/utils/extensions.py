"""Packages that add tasks, plants or whatever else is registered: imported with `netbuf_gym`, in each of its processes.

Such a package says so itself, by an entry point of the group `netbuf_gym` whose value is the module that registers. In its
`pyproject.toml`:

    [project.entry-points.netbuf_gym]
    short_wait = "short_wait"
"""

from __future__ import annotations

import importlib.metadata
import warnings

GROUP = "netbuf_gym"


def load() -> None:
    """Imports the modules; one that fails is warned of, and left out."""
    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            entry.load()
        except Exception as error:
            of = "" if entry.dist is None else f" of {entry.dist.name}"
            said = f"entry point {entry.name!r}{of}, {entry.value}, was not imported: {type(error).__name__}: {error}"
            warnings.warn(said, RuntimeWarning, stacklevel=3)
