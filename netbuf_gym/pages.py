"""Tables of pages that are made from what the code is: between `<!-- table: NAME -->` and `<!-- end of table -->`.

NAME is `environments`, `suites`, `spaces TASK`, `features TASK RECIPE`, `telemetry TASK` or `files to write`, which
is made from the page itself. `netbuf-gym results pages` renews them in the repository, the site's build in what it shows.
"""

from __future__ import annotations

import re

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError
from netbuf_gym.page_blocks import files_table
from netbuf_gym.registration import environment_table
from netbuf_gym.suites.catalogue import catalogue_table

TABLE = re.compile(r"(<!-- table: (?P<name>[^>]+?) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def tables(page: str) -> dict[str, str]:
    """Every table by its name, those of the page's own text among them."""
    made = {"environments": environment_table(linked=True), "files to write": files_table(page)}
    for record in tasks.records():
        made[f"spaces {record.name}"] = tasks.spaces_table(record.rules)
        made[f"telemetry {record.name}"] = tasks.telemetry_table(record.rules)
        for recipe, table in record.rules.feature_tables().items():
            made[f"features {record.name} {recipe}"] = table
    if "<!-- table: suites -->" in page:
        made["suites"] = catalogue_table()
    return made


def renewed(page: str) -> str:
    """A page with its tables as they are now; raises ConfigError for a table that there is not."""
    made = tables(page)

    def table(found: re.Match) -> str:
        if found["name"] not in made:
            raise ConfigError(f"there is no table {found['name']!r}; valid: {', '.join(made)}")
        return f"{found[1]}{made[found['name']]}\n{found[3]}"

    return TABLE.sub(table, page)
