"""Tables of pages that follow from what the code is.

A short table stands between `<!-- table: NAME -->` and `<!-- end of table -->`; `netbuf-gym results pages` renews it. A long
one has `<!-- site table: NAME -->` in its place, which the site's build fills: the repository has no copy of what the code has.
Names are `environments`, `suites`, `files to write` (made from the page itself), of each task `spaces TASK`,
`telemetry TASK` and `features TASK RECIPE`, and those that whoever fills a page brings along.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from netbuf_gym import tasks
from netbuf_gym.envs.registration import environment_table
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation.suites.catalogue import catalogue_table
from netbuf_gym.pages.blocks import files_table

TABLE = re.compile(r"(<!-- table: (?P<name>[^>]+?) -->\n).*?(<!-- end of table -->)", re.DOTALL)
SITE_TABLE = re.compile(r"^<!-- site table: (?P<name>.+?) -->$", re.MULTILINE)


def makers(page: str) -> dict[str, Callable[[], str]]:
    """The functions that make the tables of a page, by name."""
    made: dict[str, Callable[[], str]] = {
        "environments": partial(environment_table, linked=True),
        "suites": catalogue_table,
        "files to write": partial(files_table, page),
    }
    for record in tasks.records():
        made[f"spaces {record.name}"] = partial(tasks.spaces_table, record.rules)
        made[f"telemetry {record.name}"] = partial(tasks.telemetry_table, record.rules)
        for recipe in record.rules.recipes:
            made[f"features {record.name} {recipe}"] = partial(_features, record.rules, recipe)
    return made


def renew(page: str) -> str:
    """A page with its short tables as they are now; raises ConfigError for a table that there is not."""
    return TABLE.sub(lambda found: f"{found[1]}{_make(page, found['name'], {})}\n{found[3]}", page)


def fill(page: str, more: Mapping[str, Callable[[], str]] | None = None) -> str:
    """A page with its long tables in the place of their marks, those of `more` among them; raises as `renew`."""
    return SITE_TABLE.sub(lambda found: _make(page, found["name"], more or {}), page)


def _make(page: str, name: str, more: Mapping[str, Callable[[], str]]) -> str:
    known = {**makers(page), **more}
    if name not in known:
        raise ConfigError(f"there is no table {name!r}; valid: {', '.join(known)}")
    return known[name]()


def _features(rules: type[tasks.Task], recipe: str) -> str:
    return rules.feature_tables()[recipe]
