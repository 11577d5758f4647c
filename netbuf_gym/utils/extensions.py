"""Extension packages, which register tasks, plants and the like and are imported with `netbuf_gym` in each process.

Such a package declares an entry point of the group `netbuf_gym` whose value is the module that registers. In its
`pyproject.toml`:

    [project.entry-points.netbuf_gym]
    short_wait = "short_wait"
"""

from __future__ import annotations

import functools
import warnings

GROUP = "netbuf_gym"


@functools.cache
def load() -> None:
    """Import the extension modules, once; a module that fails is skipped with a warning."""
    import importlib.metadata  # takes longer than all else of a help

    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            entry.load()
        except Exception as error:
            of = "" if entry.dist is None else f" of {entry.dist.name}"
            said = f"entry point {entry.name!r}{of}, {entry.value}, was not imported: {type(error).__name__}: {error}"
            warnings.warn(said, RuntimeWarning, stacklevel=3)
