"""Tables of pages that are generated from the code.

A short table stands between `<!-- table: NAME -->` and `<!-- end of table -->`; `netbuf-gym results pages` renews it. A long
one has `<!-- site table: NAME -->` in its place, which the site's build fills, so that the repository holds no copy.
Names are `environments`, `suites`, `files to write` (made from the page itself), of each task `spaces TASK`,
`telemetry TASK` and `features TASK RECIPE`, and those that the caller of `fill_tables` adds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from netbuf_gym import tasks
from netbuf_gym.envs.registration import environment_table
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation.suites.catalogue import format_catalogue
from studies.pages.blocks import files_table

TABLE = re.compile(r"(<!-- table: (?P<name>[^>]+?) -->\n).*?(<!-- end of table -->)", re.DOTALL)
SITE_TABLE = re.compile(r"^<!-- site table: (?P<name>.+?) -->$", re.MULTILINE)


def list_makers(page: str) -> dict[str, Callable[[], str]]:
    """Return the functions that make the tables of a page, by name."""
    made: dict[str, Callable[[], str]] = {
        "environments": partial(environment_table, linked=True),
        "suites": format_catalogue,
        "files to write": partial(files_table, page),
    }
    for record in tasks.records():
        made[f"spaces {record.name}"] = partial(tasks.spaces_table, record.rules)
        made[f"telemetry {record.name}"] = partial(tasks.telemetry_table, record.rules)
        for recipe in record.rules.recipes:
            made[f"features {record.name} {recipe}"] = partial(_make_feature_table, record.rules, recipe)
    return made


def renew_tables(page: str) -> str:
    """Return a page with its short tables updated; raises ConfigError for an unknown table."""
    return TABLE.sub(lambda found: f"{found[1]}{_make_table(page, found['name'], {})}\n{found[3]}", page)


def fill_tables(page: str, more: Mapping[str, Callable[[], str]] | None = None) -> str:
    """Return a page with its long tables, those of `more` included, in place of their marks; raises as `renew_tables`."""
    return SITE_TABLE.sub(lambda found: _make_table(page, found["name"], more or {}), page)


def _make_table(page: str, name: str, more: Mapping[str, Callable[[], str]]) -> str:
    known = {**list_makers(page), **more}
    if name not in known:
        raise ConfigError(f"there is no table {name!r}; valid: {', '.join(known)}")
    return known[name]()


def _make_feature_table(rules: type[tasks.Task], recipe: str) -> str:
    return rules.feature_tables()[recipe]
