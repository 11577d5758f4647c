"""Writes the benchmark tables of zoo/README.md from the metrics of all committed agents.

    python -m netbuf_gym.zoo.tables

Reads zoo/agents/*/*/metrics.json, as `netbuf_gym.zoo.campaign` wrote them, and replaces what stands between the marker
lines of each task that has agents (`markers`). Rows without learning are of the campaign that most agents of a table agree
with; an agent whose campaign has none of them as they are there, in worlds or by a simulator of another version, has a mark,
and a line below says what it has. Between those of `TUNED` comes what tuned settings are worth, from
benchmarks/results/tuned/*/*.json (`netbuf_gym.zoo.beside_defaults`). With `--check` nothing is written, and the exit status is
1 where the page would change.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import scripts, sections, stats, tasks
from netbuf_gym.errors import ConfigError
from netbuf_gym.files import write_atomic
from netbuf_gym.suites.scoring import CHANCE
from netbuf_gym.tasks.measures import Column
from netbuf_gym.zoo import beside_defaults

ZOO = Path(__file__).resolve().parent
TUNED = "<!-- tuned settings: begin (python -m netbuf_gym.zoo.tables) -->", "<!-- tuned settings: end -->"
"""The lines between which the table of tuned settings stands."""
MARK = "†"
"""Of an agent whose row is of other worlds than the rows without learning."""
SAME = 1e-6
"""How far what does not learn may be apart in the same worlds, as a share of what it came to."""


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
    page = folder / "README.md"
    text = new = page.read_text(encoding="utf-8")
    for task in tasks.names():
        if _agents(folder, task) or markers(task)[0] in text:
            new = sections.replaced(page, new, *markers(task), tables(folder, task))
    if compared := sorted(folder.parent.glob("benchmarks/results/tuned/*/*.json")):  # in a checkout, not in a package
        new = sections.replaced(page, new, *TUNED, beside_defaults.table(compared))
    if "--check" in argv:
        return int(new != text)
    write_atomic(page, new)
    return 0


def tables(folder: Path, task: str) -> str:
    """The tables of a task's agents under a zoo's folder, one for each set of evaluation scenarios, in Markdown."""
    groups: dict[tuple[str, ...], list[tuple[Path, dict[str, Any]]]] = {}
    for where, metrics in _agents(folder, task):
        groups.setdefault(tuple(metrics["scenarios"]), []).append((where, metrics))
    measures = tasks.get(task).measures
    columns = measures.benchmark_columns or [
        one for one in measures.columns if isinstance(one, Column) and one.metric == measures.score
    ]
    made = []
    for scenarios, members in groups.items():
        found = [_found(metrics, scenarios, measures.score) for _, metrics in members]
        usual = max(range(len(found)), key=lambda k: sum(not _apart(found[k], one) for one in found))
        apart = {where: _apart(found[usual], one) for (where, _), one in zip(members, found, strict=True)}
        others = [where for where, named in apart.items() if named]
        made.append(_table(scenarios, members, columns, members[usual][1], others))
        of = dict(zip(apart, found, strict=True))
        notes = [_note(where, apart[where], found[usual], of[where], measures.score) for where in others]
        made += ["\n".join(f"* {line}" for line in notes)] if notes else []
    made += ["\n".join(f"* {line}" for line in measures.said(columns))] if made and measures.said(columns) else []
    return ("\n\n".join(made) or "No agent yet.") + "\n"


def _agents(folder: Path, task: str) -> list[tuple[Path, dict[str, Any]]]:
    """Where a task's agents are, and their metrics."""
    agents = [(path.parent.relative_to(folder), _read(path)) for path in sorted(folder.glob("agents/*/*/metrics.json"))]
    return [(where, metrics) for where, metrics in agents if metrics.get("task", where.parts[1]) == task]


Found = Mapping[str, Mapping[str, float]]
"""What controls that do not learn came to: by scenario and name, without the agent's recipe, by which some of them play."""


def _found(metrics: dict[str, Any], scenarios: Sequence[str], score: str) -> Found:
    found: dict[str, dict[str, float]] = {}
    for scenario in scenarios:
        for name, values in metrics["scenarios"][scenario]["baselines"].items():
            own = name.partition(" (")[0]
            if own != CHANCE and values.get(score) is not None:
                found.setdefault(scenario, {})[own] = values[score]
    return found


def _apart(one: Found, other: Found) -> list[str]:
    """The scenarios in which nobody came to the same in two campaigns; who plays by the agent's intervals may differ alone."""
    apart = []
    for scenario, values in one.items():
        both = [(value, other[scenario][name]) for name, value in values.items() if name in other.get(scenario, {})]
        if both and not any(math.isclose(then, now, rel_tol=SAME) for then, now in both):
            apart.append(scenario)
    return apart


def _note(where: Path, scenarios: Sequence[str], usual: Found, own: Found, score: str) -> str:
    scenario = scenarios[0]
    name = next(one for one in usual[scenario] if one in own[scenario])
    then, now = (f"{found[scenario][name]:.4g}" for found in (own, usual))
    said = f"{name} has {score} {then} on {scenario} there, and {now} in the other rows"
    return f"{MARK} {where.name}: worlds or simulator of another version on {', '.join(scenarios)}; {said}"


def _table(
    scenarios: tuple[str, ...],
    members: list[tuple[Path, dict[str, Any]]],
    columns: Sequence[Column],
    first: dict[str, Any],
    others: Collection[Path],
) -> str:
    pairs = [(one, column) for one in scenarios for column in columns]
    heads = [one if len(columns) == 1 else f"{one}: {column.label}" for one, column in pairs]
    lines = [
        f"| agent | recipe | trained on | seeds | steps | minutes | {' | '.join(heads)} |",
        f"|:--|:--|:--|--:|--:|--:|{'--:|' * len(heads)}",
    ]
    for where, metrics in members:
        trained_on = metrics["training_scenario"]
        name = trained_on["name"] if isinstance(trained_on, dict) else trained_on
        before = [one or {} for one in metrics.get("begun_with", [])]
        steps, seconds = (
            np.mean(metrics[f"training_{key}"]) + np.mean([one.get(key, 0.0) for one in before] or [0.0])
            for key in ("timesteps", "seconds")
        )
        cells = [_spread(metrics["scenarios"][one]["agent"][c.metric], c) for one, c in pairs]
        lines.append(
            f"| [{where.name}]({where}/card.md){f' {MARK}' if where in others else ''} | {metrics['recipe']} | {name} "
            f"| {len(metrics['training_seeds'])} | {steps / 1e6:.1f} M | {seconds / 60:.1f} | {' | '.join(cells)} |"
        )
    for control in first["scenarios"][scenarios[0]]["baselines"]:
        cells = [_spread([first["scenarios"][one]["baselines"][control][c.metric]], c) for one, c in pairs]
        lines.append(f"| {control} | | | | | | {' | '.join(cells)} |")
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
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{path}: is not JSON: {error}") from None
    if not isinstance(found, dict) or not found.get("scenarios"):
        raise ConfigError(f"{path}: lacks scenarios; valid: what netbuf_gym.zoo.campaign wrote")
    return found


if __name__ == "__main__":
    scripts.run("tables", main)
