"""Long tables of pages that are made from the package when the site is built.

A page has `<!-- site table: NAME -->` in their place, so that the repository does not hold a copy of what the code says.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from netbuf_gym import tasks
from netbuf_gym.cli import parser
from netbuf_gym.commands.page import commands
from netbuf_gym.suites.catalogue import catalogue_table

MARK = re.compile(r"^<!-- site table: (.+?) -->$", re.MULTILINE)


def makers() -> dict[str, Callable[[], str]]:
    """Return the functions that make tables, by name: `commands`, `suites`, `telemetry TASK`."""
    made: dict[str, Callable[[], str]] = {"commands": lambda: commands(parser()), "suites": catalogue_table}
    for record in tasks.records():
        made[f"telemetry {record.name}"] = lambda rules=record.rules: tasks.telemetry_table(rules)
    return made


def fill(markdown: str) -> str:
    """Put the tables of a page in the place of their marks.

    Raises:
        KeyError: A mark names no table.
    """
    known = makers()
    return MARK.sub(lambda found: known[found[1]](), markdown)
