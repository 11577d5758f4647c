"""The outcome of the mutations as text: a table, and every survivor with its explanation."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tools.mutation.sites import Mutation

JUDGED = ("survived", "killed")
COLUMNS = ("operator", "mutations", "digests and another test", "digests only", "another test only", "survived")


def find_explanation(explained: dict[str, str], one: Mutation) -> str | None:
    """Find what is said of a survivor, by its file's name and its line, or by the line alone when that has moved elsewhere."""
    if one.identity in explained:
        return explained[one.identity]
    line = one.identity.partition(": ")[2]
    return next((why for key, why in explained.items() if key.partition(": ")[2] == line), None)


def _row(entries: list[dict[str, Any]]) -> list[int]:
    count = Counter((one["status"], bool(one["digests"]), bool(one["other"])) for one in entries)
    killed = [count[("killed", *by)] for by in ((True, True), (True, False), (False, True))]
    return [len(entries), *killed, sum(one["status"] == "survived" for one in entries)]


def make_table(entries: list[dict[str, Any]]) -> list[list[str]]:
    """Make a row for each operator and one for all; what was replaced does not count."""
    judged = [one for one in entries if one["status"] in JUDGED]
    kinds: dict[str, list] = {}
    for one in judged:
        kinds.setdefault(one["mutation"].operator.split(":")[0], []).append(one)
    rows = [[kind, *map(str, _row(found))] for kind, found in sorted(kinds.items())]
    return [*rows, ["all", *map(str, _row(judged))]]


def list_survivors(entries: list[dict[str, Any]]) -> list[Any]:
    return [one["mutation"] for one in entries if one["status"] == "survived"]


def format_replaced(entries: list[dict[str, Any]]) -> str:
    count = Counter(one["status"] for one in entries if one["status"] not in JUDGED)
    wrong, same = count["does not compile"], count["same code"]
    return f"Replaced by the next one drawn: {wrong} that did not compile, {same} with the same code."


def format_summary(entries: list[dict[str, Any]], explained: dict[str, str], seed: int, seconds: float) -> str:
    """Format for the terminal the table, and every survivor with what is said of it."""
    rows = [list(COLUMNS), *make_table(entries)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    lines = []
    for row in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([f"{row[0]:<{widths[0]}}", *cells]))
    lines.append(format_replaced(entries))
    for one in list_survivors(entries):
        lines += [f"\n{one.path}:{one.line}: {one.operator} survived", f"    {one.before}", f"    {one.after}"]
        lines.append(f"    {find_explanation(explained, one) or 'not explained in tools/mutation/explanations.json'}")
    judged = [one for one in entries if one["status"] in JUDGED]
    alive = len(list_survivors(entries))
    share = 100 * alive / max(1, len(judged))
    lines.append(f"\nseed {seed}: {alive} of {len(judged)} survived, {share:.1f} %, in {seconds / 60:.0f} minutes")
    return "\n".join(lines)
