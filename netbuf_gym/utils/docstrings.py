"""What is said about arguments where they are documented: their meanings in docstrings, their units in their names."""

from __future__ import annotations

import inspect
import re

UNITS = {
    "_per_s": "1/s",
    "_per_minute": "1/min",
    "_mbps": "Mbit/s",
    "_bps": "bit/s",
    "_ms": "ms",
    "_s": "s",
    "_packets": "packets",
    "_bytes": "bytes",
    "_bdp": "bandwidth-delay products",
}
"""By the end of a name, the longer ones first."""

ENTRY = re.compile(r"    (\w+(?:, \w+)*): (.+)")
NUMBER = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+|\*\*\d+| million)?"
RANGE = re.compile(rf"(?:above |below )?{NUMBER} to (?:below )?{NUMBER}|(?:at least|above) {NUMBER}|{NUMBER} or more")


def unit_of(name: str) -> str:
    """The unit that a name ends in; "" where it says none."""
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), "")


def range_of(meaning: str) -> str:
    """The range that a meaning speaks of, in its words; "" where it speaks of none."""
    found = RANGE.search(meaning)
    return found[0] if found else ""


def headline(documented: object) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join((inspect.getdoc(documented) or "").split("\n\n")[0].split())


def arguments_of(documented: object, section: str = "Args") -> dict[str, str]:
    """The meanings of arguments, by name, from a section of a docstring; several names together have the same."""
    found: dict[str, str] = {}
    names: list[str] = []
    inside = False
    for line in (inspect.getdoc(documented) or "").splitlines():
        if not line.startswith(" "):
            inside = line.strip() == f"{section}:" or (inside and not line.strip())
            continue
        entry = ENTRY.fullmatch(line) if inside else None
        if entry:
            names = entry[1].split(", ")
            found |= dict.fromkeys(names, entry[2])
        elif inside and names:
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return found
