"""Descriptions, ranges and units of arguments, read from docstrings and from argument names."""

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
"""Units by name suffix, longer suffixes first."""

ENTRY = re.compile(r"    (\w+(?:, \w+)*): (.+)")
NUMBER = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+|\*\*\d+| million)?"
RANGE = re.compile(rf"(?:above |below )?{NUMBER} to (?:below )?{NUMBER}|(?:at least|above) {NUMBER}|{NUMBER} or more")


def find_unit(name: str) -> str:
    """Return the unit given by a name's suffix, or "" without one."""
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), "")


def find_range(meaning: str) -> str:
    """Return the range stated in an argument's description, verbatim, or "" without one."""
    found = RANGE.search(meaning)
    return found[0] if found else ""


def extract_headline(documented: object) -> str:
    """Return the first paragraph of a docstring as one line."""
    return " ".join((inspect.getdoc(documented) or "").split("\n\n")[0].split())


def parse_arguments(documented: object, section: str = "Args") -> dict[str, str]:
    """Return the descriptions of arguments, by name, from a docstring section; names listed together share one."""
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
