"""`netbuf-gym list`: named things as tables or JSON."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Sequence
from typing import Any

from netbuf_gym.cli.inventory import TOPICS, Entry
from netbuf_gym.utils import files
from netbuf_gym.utils.suggestions import suggest_valid
from netbuf_gym.utils.tables import format_number, text_table

HELP = f"list {', '.join(TOPICS)}"
FORMER = {"contenders": "controllers", "disciplines": "queue-disciplines"}
NOT_SHOWN = ("parameters", "scores", "lower_is_better", "environment", "compared_with")
"""Keys that are not columns of a topic's table, but shown below the table or in JSON only."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommand's arguments to its parser."""
    valid = f"{', '.join(TOPICS)} (default: all)"
    parser.add_argument("what", nargs="?", type=parse_topic, default="all", metavar="WHAT", help=valid)
    parser.add_argument("--json", action="store_true", help="as JSON: a list of objects; of all topics an object of lists")


def parse_topic(text: str) -> str:
    """Parse the name of a topic, with `-` or `_` between words."""
    name = text.replace("_", "-").lower()
    name = FORMER.get(name, name)
    if name == "all" or name in TOPICS:
        return name
    raise argparse.ArgumentTypeError(f"invalid choice: {text!r}; {suggest_valid(name, ['all', *TOPICS])}")


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    chosen = TOPICS if arguments.what == "all" else {arguments.what: TOPICS[arguments.what]}
    made = {name: make() for name, make in chosen.items()}
    if arguments.json:
        print(
            json.dumps(
                files.to_plain_values(made if arguments.what == "all" else made[arguments.what]), indent=1, allow_nan=False
            )
        )
    else:
        print("\n\n".join(format_topic(name, entries) for name, entries in made.items()))
    return 0


def format_topic(name: str, entries: Sequence[Entry]) -> str:
    """Format a topic as a table of its entries, and one of their parameters if there are any."""
    what = name.removesuffix("s").replace("-", " ")
    columns = list(dict.fromkeys(key for entry in entries for key in entry if key not in NOT_SHOWN))
    heads = {"name": what, "meaning": "", "task": "task", "trained_on": "trained on"}
    rows = [[_format_cell(entry.get(key)) for key in columns] for entry in entries]
    if "scores" in (entries[0] if entries else ()):
        columns.append("scores")
        for row, entry in zip(rows, entries, strict=True):
            row.append("; ".join(f"{scenario} {format_number(score)}" for scenario, score in entry["scores"].items()))
    parts = [text_table([heads.get(key, key.replace("_", " ")) for key in columns], rows)]
    taking = [entry for entry in entries if entry.get("parameters")]
    if name == "sizes":
        parts.append("or the path of a CSV file with rows of size_bytes,cumulative")
    if name == "scenarios":
        parts += [_format_defaults(taking), _format_distinct_parameters(taking)]
    elif taking:
        parts.append(_format_parameters(what, taking))
    return "\n\n".join(parts)


def _format_parameters(what: str, entries: Sequence[Entry]) -> str:
    """Format a table with one row per parameter of each entry."""
    rows = []
    for entry in entries:
        for one in entry["parameters"]:
            stacks = one.get("stacks", entry.get("stacks", []))
            only = "" if set(entry.get("stacks", [])) <= set(stacks) else f" ({', '.join(stacks)} only)"
            rows.append([entry["name"], one["name"], _format_default(one), one["unit"], one["range"], one["meaning"] + only])
    return text_table([what, "parameter", "default", "unit", "range", ""], rows)


def _format_defaults(entries: Sequence[Entry]) -> str:
    """Format the parameters of each entry as `name=default`."""
    lines = ["arguments with their defaults", "-----------------------------"]
    for entry in entries:
        words = " ".join(f"{one['name']}={_format_default(one, 'null')}".replace(" ", "") for one in entry["parameters"])
        wrapped = textwrap.wrap(words, 112, break_long_words=False, break_on_hyphens=False)
        lines += [entry["name"], *(f"    {line}" for line in wrapped)]
    return "\n".join(lines)


def _format_distinct_parameters(entries: Sequence[Entry]) -> str:
    """Format a table with one row per parameter; parameters that several entries share appear once."""
    rows = {}
    for entry in entries:
        for one in entry["parameters"]:
            row = [one["name"], one["unit"], one["range"], one["meaning"]]
            rows[tuple(row)] = row
    note = "Where worlds are drawn at random, an argument is a range [LOW, HIGH] or a list to draw from, or one such value."
    return f"{text_table(['argument', 'unit', 'range', ''], sorted(rows.values()))}\n{note}"


def _format_default(parameter: Entry, none: str = "auto") -> str:
    """Format a default; `none` if the default is derived from other parameters, or from the world."""
    if "default" not in parameter:
        return "required"
    value = parameter["default"]
    return none if value is None else value if isinstance(value, str) else json.dumps(value)


def _format_cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "-"
    if isinstance(value, dict):
        words = ", ".join(f"{key}={one}" for key, one in value.items() if key != "name")
        given = textwrap.shorten(words, 60, placeholder=" ...")
        return f"{value.get('name')}({given})" if "name" in value else given
    return f"{value:,.0f}" if isinstance(value, float) else str(value)
