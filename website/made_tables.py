"""Long tables of pages that are made from the package when the site is built.

A page has `<!-- site table: NAME -->` in their place, so that the repository does not hold a copy of what the code says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from netbuf_gym import tasks
from netbuf_gym.cli import parser
from netbuf_gym.commands.page import commands
from netbuf_gym.suites.catalogue import catalogue_table

MARK = re.compile(r"^<!-- site table: (.+?) -->$", re.MULTILINE)


def makers() -> dict[str, Callable[[], str]]:
    """Return the functions that make tables, by name.

    They are `commands`, `suites`, and of each task `telemetry TASK`, `spaces TASK` and `features TASK RECIPE`.
    """
    made: dict[str, Callable[[], str]] = {"commands": lambda: commands(parser()), "suites": catalogue_table}
    for record in tasks.records():
        made[f"telemetry {record.name}"] = partial(tasks.telemetry_table, record.rules)
        made[f"spaces {record.name}"] = partial(tasks.spaces_table, record.rules)
        for recipe in record.rules.recipes:
            made[f"features {record.name} {recipe}"] = partial(features, record.rules, recipe)
    return made


def features(rules: type[tasks.Task], recipe: str) -> str:
    """Make the table of what agents of a recipe observe."""
    return rules.feature_tables()[recipe]


def fill(markdown: str) -> str:
    """Put the tables of a page in the place of their marks.

    Raises:
        KeyError: A mark names no table.
    """
    known = makers()
    return MARK.sub(lambda found: known[found[1]](), markdown)
