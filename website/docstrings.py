"""Docstrings as the reference shows them; an extension of Griffe, which reads them from the sources.

* Where the sources have a place holder for a table that is made when the package is loaded, the loaded docstring is taken.
* An entry for several names, `low, high: ...`, becomes one for each.
* A session of the interpreter becomes a block of code.
"""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

import griffe

MADE = re.compile(r"\{(features of [^}]+|environments)\}")
SECTION = re.compile(r"(Args|Attributes|Raises|Warns):$")
SEVERAL = re.compile(r"    (\w+(?:, \w+)+):(.*)")
SESSION = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Changes the docstring of each object when it has been read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Griffe calls this for every module, class, function and attribute."""
        if obj.docstring is None:
            return
        text = obj.docstring.value
        if obj.is_class and MADE.search(text):
            text = inspect.getdoc(getattr(importlib.import_module(obj.module.path), obj.name)) or text
        obj.docstring.value = SESSION.sub(lambda found: f"```pycon\n{found[0]}\n```", one_by_one(text))


def one_by_one(text: str) -> str:
    """The text with an entry for each name of its sections."""
    lines, made, within, at = text.split("\n"), [], False, 0
    while at < len(lines):
        line, at = lines[at], at + 1
        if line and not line.startswith(" "):
            within = bool(SECTION.match(line))
        found = SEVERAL.match(line) if within else None
        if found is None:
            made.append(line)
            continue
        end = at
        while end < len(lines) and lines[end].startswith("     "):
            end += 1
        for name in found[1].split(", "):
            made += [f"    {name}:{found[2]}", *lines[at:end]]
        at = end
    return "\n".join(made)
