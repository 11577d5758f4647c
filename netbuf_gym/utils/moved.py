"""Former module names, which import the present modules with a DeprecationWarning.

Version 0.1 had `netbuf_gym.stats`, for example, which is `netbuf_gym.utils.statistics` now.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, cast

from netbuf_gym.errors import NetbufError

PACKAGE, STUDIES = "netbuf_gym", "studies"
MOVED: dict[str, str] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
"""Present module names by former ones, relative to the package or, for studies, to the checkout.

Submodules of a former name are found below the present one.
"""
RENAMED = {name: {"Contender": "Controller"} for name in ("controllers", "controllers.protocol")} | {
    "evaluation.baselines": {"usual": "list_defaults"},
    "evaluation.rollout": {"check": "check_controller", "draw": "draw_worlds", "player": "as_controller"},
    "plants": {"lone": "make_lone_world"},
    "utils.executors": {"executor": "get_executor"},
}
"""Present names of a module's attributes by former ones."""
GONE = dict.fromkeys(("zoo.tables", "reproduce.page"), "netbuf-gym results pages")
"""Commands in place of modules that `python -m` ran."""


def _look_up(table: dict[str, str], name: str) -> str | None:
    """Return the present name by the longest former one that `name` is, or is below."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        present = table.get(".".join(parts[:end]))
        if present is not None:
            return ".".join([present, *parts[end:]])
    return None


def _list_children() -> dict[str, str]:
    """Return present names by the child's former name below its parent's present one.

    `from netbuf_gym.suites import running` asks for `evaluation.suites.running` once `netbuf_gym.suites` is imported.
    """
    found = {}
    for name, present in MOVED.items():
        parent, _, child = name.rpartition(".")
        below = f"{_look_up(MOVED, parent)}.{child}"
        if below != present and not below.startswith("None."):
            found[below] = present
    return found


KNOWN = {**_list_children(), **MOVED}
"""Present names by all that may be asked for."""


def find_present_name(name: str) -> str | None:
    """Return the present name of a module by its former one, both fully qualified; None if it has not moved."""
    package, _, rest = name.partition(".")
    if package not in (PACKAGE, STUDIES):
        return None
    found = _look_up(KNOWN, rest if package == PACKAGE else name)
    return found if found is None or found.partition(".")[0] == STUDIES else f"{PACKAGE}.{found}"


def warn(name: str, present: str, stacklevel: int = 3) -> None:
    """Warn the caller's caller that it uses a former name."""
    warnings.warn(f"{name} is {present} now", DeprecationWarning, stacklevel=stacklevel)


def import_present(present: str) -> ModuleType:
    """Import a module by its present name, a study's from the checkout.

    Raises:
        ImportError: There is no such module, or no checkout that has it.
    """
    top, _, rest = present.partition(".")
    if top != STUDIES:
        return importlib.import_module(present)
    from netbuf_gym.utils.checkout import import_studies, require_checkout

    try:
        return import_studies(require_checkout(), rest)
    except NetbufError as error:
        raise ImportError(str(error), name=present) from None


def find_renamed(module: str, name: str) -> Any:
    """Return a module's attribute by its former name, with a DeprecationWarning; for the `__getattr__` of modules in `RENAMED`.

    Raises:
        AttributeError: The module has no attribute of this name.
    """
    present = RENAMED.get(module.partition(".")[2], {}).get(name)
    if present is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warn(f"{module}.{name}", f"{module}.{present}", stacklevel=4)
    return getattr(sys.modules[module], present)


class MovedFinder(MetaPathFinder):
    """Finder of modules by former names; first in `sys.meta_path`, so that no module is loaded under two names."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec that loads a former name, or None if `name` is not one."""
        present = find_present_name(name)
        if present is None or present == name:
            return None
        loader = MovedLoader(present)
        loader.spec = ModuleSpec(name, loader)
        return loader.spec


class MovedLoader(Loader):
    """Loader that binds a former name to the present module."""

    spec: ModuleSpec

    def __init__(self, present: str):
        self.present = present

    def exec_module(self, module: ModuleType) -> None:
        """Warn, and put the present module in the place of the former one."""
        name = module.__name__
        warn(name, self.present)
        sys.modules[name] = import_present(self.present)

    def get_code(self, name: str) -> CodeType | None:
        """Return the present module's code, for `python -m` with a former name.

        Raises:
            ImportError: The module cannot be run any more; names the command in its place.
        """
        former = name.partition(".")[2]
        if former in GONE:
            raise ImportError(f"{name} has gone; valid: {GONE[former]}")
        package = hasattr(import_present(self.present), "__path__")
        found = importlib.util.find_spec(f"{self.present}.__main__" if package else self.present)
        if found is None or found.loader is None:
            raise ImportError(f"{name} is {self.present} now, a package that cannot be run")
        print(f"{name} is {self.present} now", file=sys.stderr)
        self.spec.origin = found.origin
        return cast(InspectLoader, found.loader).get_code(found.name)


def install() -> None:
    """Add the finder of former names to Python's import system; further calls change nothing."""
    if not any(isinstance(one, MovedFinder) for one in sys.meta_path):
        sys.meta_path.insert(0, MovedFinder())
