"""Parts of the documentation's pages that are made from what they describe: `python -m netbuf_gym.pages docs [--check]`.

A page has them between `<!-- table: NAME -->` and `<!-- end of table -->`, NAME being `environments`, `commands`,
`suites`, `gate` (the committed result of the gate), `spaces TASK`, `features TASK RECIPE`, `telemetry TASK`, one of
`netbuf_gym.suites.field.overview.TABLES`, or `files to write`, which is made from the page itself. With `--check` nothing is
written, and the exit status is 1 where a table is not up to date.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from netbuf_gym import tasks
from netbuf_gym.cli import parser
from netbuf_gym.commands.page import commands
from netbuf_gym.errors import ConfigError
from netbuf_gym.files import write_atomic
from netbuf_gym.page_blocks import files_table
from netbuf_gym.registration import environment_table
from netbuf_gym.suites import report, suite
from netbuf_gym.suites.catalogue import catalogue_table
from netbuf_gym.suites.field import overview

TABLE = re.compile(r"(<!-- table: (?P<name>[^>]+?) -->\n).*?(<!-- end of table -->)", re.DOTALL)


GATE = Path("benchmarks", "results", "gate", "result.json")
"""Beside the folder of pages: the committed result of the gate."""


def tables(page: str, folder: Path = Path("docs")) -> dict[str, str]:
    """Every table by its name, those of the page's own text among them.

    Args:
        folder: Of the pages.
    """
    made = {"environments": environment_table(linked=True), "files to write": files_table(page)}
    for record in tasks.records():
        made[f"spaces {record.name}"] = tasks.spaces_table(record.rules)
        made[f"telemetry {record.name}"] = tasks.telemetry_table(record.rules)
        for recipe, table in record.rules.feature_tables().items():
            made[f"features {record.name} {recipe}"] = table
    if "<!-- table: commands -->" in page:
        made["commands"] = commands(parser())
    if "<!-- table: suites -->" in page:
        made["suites"] = catalogue_table()
    if "<!-- table: gate -->" in page:
        data = json.loads((folder.parent / GATE).read_text(encoding="utf-8"))
        made["gate"] = report.by_family(data, suite(data["suite"]))
    return made | {name: make() for name, make in overview.TABLES.items() if f"<!-- table: {name} -->" in page}


def renewed(page: str, folder: Path = Path("docs")) -> str:
    """A page of a folder with its tables as they are now; raises ConfigError for a table that there is not."""
    made = tables(page, folder)

    def table(found: re.Match) -> str:
        if found["name"] not in made:
            raise ConfigError(f"there is no table {found['name']!r}; valid: {', '.join(made)}")
        return f"{found[1]}{made[found['name']]}\n{found[3]}"

    return TABLE.sub(table, page)


def main(argv: Sequence[str] | None = None) -> int:
    """Renews the pages of a folder, or says which are out of date."""
    arguments = argparse.ArgumentParser(prog="python -m netbuf_gym.pages", description=__doc__.split("\n")[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--check", action="store_true", help="write nothing")
    options = arguments.parse_args(argv)
    stale = 0
    for path in sorted(options.folder.rglob("*.md")):
        page = path.read_text(encoding="utf-8")
        now = renewed(page, options.folder)
        if now != page:
            stale += 1
            print(f"{path}: {'not up to date' if options.check else 'renewed'}")
            if not options.check:
                write_atomic(path, now.encode())
    return int(options.check and stale > 0)


if __name__ == "__main__":
    sys.exit(main())
