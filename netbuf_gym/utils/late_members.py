"""Members of a package that are imported when they are first asked for, so that the package's import costs little.

if TYPE_CHECKING:
    from package.reading import read, write

__getattr__, __dir__ = late_members(__name__, {"reading": ("read", "write")})
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any


def late_members(
    package: str, members: Mapping[str, Iterable[str]], other: Callable[[str, str], Any] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions `__getattr__` and `__dir__` of a package.

    Args:
        package: Name of the package.
        members: Names of the package's members by the module below it that has them.
        other: Function of package and name that finds members that are neither these nor modules below the package, or raises
            AttributeError; None: there are none.
    """
    modules = {name: module for module, names in members.items() for name in names}

    def get_member(name: str) -> Any:
        if name in modules:
            found = getattr(import_in_order(f"{package}.{modules[name]}"), name)
            setattr(sys.modules[package], name, found)
            return found
        if name.isidentifier() and not name.startswith("_"):
            try:
                return importlib.import_module(f"{package}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{package}.{name}":
                    raise
        if other is not None:
            return other(package, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def list_members() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return get_member, list_members


def import_in_order(module: str) -> ModuleType:
    """Import a module's packages, the outermost first, and the module; return it.

    Python locks a module before its packages, so that threads which import both at once could wait for each other.
    """
    parts = module.split(".")
    for end in range(1, len(parts)):
        importlib.import_module(".".join(parts[:end]))
    return importlib.import_module(module)
