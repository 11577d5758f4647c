"""`netbuf-gym live check`: reports what this machine can do, and what to install."""

from __future__ import annotations

import argparse
import json

from netbuf_gym.host import capabilities
from netbuf_gym.utils.tables import text_table


def add(verbs: argparse._SubParsersAction) -> None:
    """Add the verb's parser."""
    verb = verbs.add_parser("check", help="say what this machine can do, and what to install; exit status 1: no live plants")
    verb.add_argument("--json", action="store_true", help="as JSON: a list of objects")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb and return its exit status."""
    found = capabilities.collect_findings()
    if arguments.json:
        print(json.dumps([one.to_dict() for one in found], indent=1))
    else:
        rows = [[one.name, "yes" if one.ok else "NO", one.found] for one in found]
        print(text_table(["", "there", ""], rows))
        for one in found:
            if not one.ok:
                print(f"\n{one.name}: needed for {one.needed_for}" + (f"\n  {one.remedy}" if one.remedy else ""))
    return 1 if any(one.required and not one.ok for one in found) else 0
