"""Writes the benchmark tables of zoo/README.md and of the project's README.md from the metrics of all committed agents.

    python -m netbuf_gym.zoo.tables

Reads zoo/agents/*/*/metrics.json, as `netbuf_gym.zoo.campaign` wrote them, and replaces what stands between the marker
lines of either page, of which each task has its own (`markers`). A page has at least one task's, zoo/README.md those of every
task that has agents. Between those of `TUNED` comes what tuned settings are worth, from benchmarks/results/tuned/*/*.json
(`netbuf_gym.zoo.beside_defaults`). With `--check` nothing is written, and the exit status is 1 where a page would change.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import stats, tasks
from netbuf_gym.errors import ConfigError, NetbufError
from netbuf_gym.files import write_atomic
from netbuf_gym.tasks.measures import Column
from netbuf_gym.zoo import beside_defaults

ZOO = Path(__file__).resolve().parent
TUNED = "<!-- tuned settings: begin (python -m netbuf_gym.zoo.tables) -->", "<!-- tuned settings: end -->"
"""The lines between which the table of tuned settings stands."""


def markers(task: str) -> tuple[str, str]:
    """The lines between which a task's tables stand."""
    return f"<!-- agents of {task}: begin (python -m netbuf_gym.zoo.tables) -->", f"<!-- agents of {task}: end -->"


def main(argv: Sequence[str], folder: Path = ZOO) -> int:
    """Runs the command on a zoo's folder; returns 0, or 1 when `--check` finds a difference.

    Raises:
        ConfigError: an unknown argument, no markers in a README.md, or metrics that cannot be read.
    """
    if any(argument not in ("--check",) for argument in argv):
        raise ConfigError(f"arguments {list(argv)} are unknown; valid: --check")
    pages = {folder / "README.md": ""}
    if (folder.parent / "README.md").exists():  # in a checkout, not where the package is installed
        pages[folder.parent / "README.md"] = f"{folder.name}/"
    changed = {}
    for page, prefix in pages.items():
        text = page.read_text(encoding="utf-8")
        new = text
        for task in tasks.names():
            if (page.parent == folder and _agents(folder, task)) or _stands(markers(task), text):
                new = _filled(page, new, markers(task), tables(folder, prefix, task))
        if _stands(TUNED, text) and (compared := sorted(folder.parent.glob("benchmarks/results/tuned/*/*.json"))):
            new = _filled(page, new, TUNED, f"{beside_defaults.table(compared)}\n")
        if not any(_stands(markers(task), text) for task in tasks.names()):
            raise ConfigError(f"{page}: must hold the lines between which tables stand, e.g. {markers(tasks.names()[0])}")
        if new != text:
            changed[page] = new
    if "--check" in argv:
        return int(bool(changed))
    for page, new in changed.items():
        write_atomic(page, new)
    return 0


def _stands(lines: tuple[str, str], text: str) -> bool:
    return any(line in text for line in lines)


def _filled(page: Path, text: str, lines: tuple[str, str], table: str) -> str:
    """A page's text with a table between two marker lines."""
    begin, end = lines
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ConfigError(f"{page}: must hold each of the lines {begin!r} and {end!r} once")
    head, _, rest = text.partition(begin)
    return f"{head}{begin}\n\n{table}\n{end}{rest.partition(end)[2]}"


def tables(folder: Path, prefix: str, task: str) -> str:
    """The tables of a task's agents under a zoo's folder, one for each set of evaluation scenarios, in Markdown.

    `prefix` stands before the links, for a page that lies elsewhere.
    """
    groups: dict[tuple[str, ...], list[tuple[Path, dict[str, Any]]]] = {}
    for where, metrics in _agents(folder, task):
        groups.setdefault(tuple(metrics["scenarios"]), []).append((where, metrics))
    measures = tasks.get(task).measures
    columns = measures.benchmark_columns or [
        one for one in measures.columns if isinstance(one, Column) and one.metric == measures.score
    ]
    made = [_table(scenarios, members, prefix, columns) for scenarios, members in groups.items()]
    made += ["\n".join(f"* {line}" for line in measures.said(columns))] if made and measures.said(columns) else []
    return ("\n\n".join(made) or "No agent yet.") + "\n"


def _agents(folder: Path, task: str) -> list[tuple[Path, dict[str, Any]]]:
    """Where a task's agents are, and their metrics."""
    agents = [(path.parent.relative_to(folder), _read(path)) for path in sorted(folder.glob("agents/*/*/metrics.json"))]
    return [(where, metrics) for where, metrics in agents if metrics.get("task", where.parts[1]) == task]


def _table(
    scenarios: tuple[str, ...], members: list[tuple[Path, dict[str, Any]]], prefix: str, columns: Sequence[Column]
) -> str:
    pairs = [(one, column) for one in scenarios for column in columns]
    heads = [one if len(columns) == 1 else f"{one}: {column.label}" for one, column in pairs]
    lines = [
        f"| agent | recipe | trained on | steps | minutes | {' | '.join(heads)} |",
        f"|:--|:--|:--|--:|--:|{'--:|' * len(heads)}",
    ]
    for where, metrics in members:
        trained_on = metrics["training_scenario"]
        name = trained_on["name"] if isinstance(trained_on, dict) else trained_on
        steps, seconds = np.mean(metrics["training_timesteps"]), np.mean(metrics["training_seconds"])
        cells = [_spread(metrics["scenarios"][one]["agent"][c.metric], c) for one, c in pairs]
        lines.append(
            f"| [{where.name}]({prefix}{where}/card.md) | {metrics['recipe']} | {name} "
            f"| {steps / 1e6:.1f} M | {seconds / 60:.1f} | {' | '.join(cells)} |"
        )
    first = members[0][1]
    for control in first["scenarios"][scenarios[0]]["baselines"]:
        cells = [_spread([first["scenarios"][one]["baselines"][control][c.metric]], c) for one, c in pairs]
        lines.append(f"| {control} | | | | | {' | '.join(cells)} |")
    return "\n".join(lines)


def _spread(values: Sequence[float | None], column: Column) -> str:
    """Mean of what was measured with half its interval; `-` where nothing was."""
    known = [column.factor * value for value in values if value is not None and np.isfinite(value)]
    digits = column.digits
    if not known:
        return "-"
    mean, low, high = stats.mean_interval(np.array(known))
    return f"{mean:.{digits}f} ± {(high - low) / 2:.{digits}f}" if np.isfinite(high) else f"{mean:.{digits}f}"


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{path}: is not JSON: {error}") from None


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (NetbufError, OSError) as error:
        print(f"tables: error: {error}", file=sys.stderr)
        sys.exit(2)
