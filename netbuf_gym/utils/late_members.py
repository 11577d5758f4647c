"""Members of a package that are imported when they are first asked for, so that the package's import costs little.

    if TYPE_CHECKING:
        from package.reading import read, write

    __getattr__, __dir__ = late_members(__name__, {"reading": ("read", "write")})

`LateMember` does the same for a field of a dataclass.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar, cast, overload

T = TypeVar("T")


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
            found = getattr(importlib.import_module(f"{package}.{modules[name]}"), name)
            setattr(sys.modules[package], name, found)
            return found
        if not name.startswith("_"):
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


class LateMember(Generic[T]):
    """Field of a dataclass, given as a value or as `"module:NAME"`, which is imported when the field is first read.

    Args:
        default: Returns the field's default.
    """

    def __init__(self, default: Callable[[], T]):
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, record: None, owner: type) -> T | str: ...

    @overload
    def __get__(self, record: object, owner: type) -> T: ...

    def __get__(self, record: object | None, owner: type) -> T | str:
        if record is None:  # dataclasses ask for the default
            return ""
        value = vars(record)[self._name]
        if isinstance(value, str):
            module, _, name = value.partition(":")
            value = vars(record)[self._name] = getattr(importlib.import_module(module), name) if module else self._default()
        return cast(T, value)

    def __set__(self, record: object, value: T | str) -> None:
        vars(record)[self._name] = value
