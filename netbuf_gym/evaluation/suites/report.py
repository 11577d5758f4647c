"""What a suite has found: tables by family, rows for a CSV file, the JSON, and how it compares with an earlier one."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.evaluation.suites.runner import Played
from netbuf_gym.evaluation.suites.suite import Edition, Metric, Suite
from netbuf_gym.utils import statistics
from netbuf_gym.utils.files import read_text
from netbuf_gym.utils.tables import csv_table, markdown_table
from netbuf_gym.version import __version__

SCHEMA = "netbuf-gym/suite/1"
ALL = "all"
"""Of the row that is over all worlds."""
WORST = 0.1
"""Share of the worlds below the value that the column of the worst ones gives."""


def summary(played: Played, suite: Suite, families: Sequence[str]) -> dict[str, dict[str, Any]]:
    """By family, and over all worlds: number of worlds, mean of each metric over those that have it, the score's interval and
    its value that a tenth of the worlds is below. None where nothing has a value."""
    made = {}
    for family in (*families, ALL):
        own: dict[str, Any] = {"worlds": len(played.of(suite.score.key, None if family == ALL else family))}
        for metric in suite.metrics:
            values = _known(played.of(metric.key, None if family == ALL else family))
            own[metric.key] = float(values.mean()) if len(values) else None
            if metric is suite.score and len(values):
                interval = statistics.mean_interval(values)
                own[f"{metric.key}_half"] = (interval.high - interval.low) / 2 if len(values) > 1 else None
                own[f"{metric.key}_worst_tenth"] = float(np.quantile(values, WORST))
        made[family] = own
    return made


def tables(
    suite: Suite, summaries: Mapping[str, Mapping[str, Mapping[str, Any]]], failed: Mapping[str, str] | None = None
) -> str:
    """Markdown: who failed and why, the score by family beside each other where there are several controllers, then each with
    all its metrics."""
    parts = []
    if failed:
        parts.append(markdown_table(["controller", "failed"], list(failed.items())))
    score = suite.score
    if len(summaries) > 1:
        families = list(next(iter(summaries.values())))
        rows = []
        for family in families:
            means = [one[family][score.key] for one in summaries.values()]
            best = max((mean for mean in means if mean is not None), default=None)
            cells = [f"**{_cell(mean, score)}**" if mean is not None and mean == best else _cell(mean, score) for mean in means]
            rows.append([family, str(next(iter(summaries.values()))[family]["worlds"]), *cells])
        parts.append(f"{score.label} by family, the best in bold\n\n{markdown_table(['family', 'worlds', *summaries], rows)}")
    for name, found in summaries.items():
        heads = ["family", "worlds", score.label, "worst tenth", *(metric.label for metric in suite.metrics[1:])]
        rows = [
            [
                family,
                str(own["worlds"]),
                _with_half(own, score),
                _cell(own.get(f"{score.key}_worst_tenth"), score),
                *(_cell(own[metric.key], metric) for metric in suite.metrics[1:]),
            ]
            for family, own in found.items()
        ]
        parts.append(f"{name}\n\n{markdown_table(heads, rows)}")
    return "\n\n".join(parts)


def notes(suite: Suite, families: Sequence[str]) -> str:
    """How the tables are to be read: columns and families in words."""
    said = [f"* {metric.label}: {metric.says}" for metric in suite.metrics]
    said.insert(
        1,
        f"* ±: half of the 95 % t interval over the worlds; worst tenth: what a tenth of the worlds is below in "
        f"{suite.score.label}",
    )
    return "\n".join([*said, "", *(f"* {family}: {suite.families[family]}" for family in families)])


def rows(played: Sequence[Played], suite: Suite, command: str) -> str:
    """CSV: a row a controller and world; what has no value is empty."""
    columns = ["controller", "family", "world", "agents", "seed", *(metric.key for metric in suite.metrics)]
    made = [
        {"controller": one.name, "family": cell.family, "world": cell.name, "agents": cell.agents, "seed": cell.seed}
        | {metric.key: "" if math.isnan(values[metric.key]) else values[metric.key] for metric in suite.metrics}
        for one in played
        for cell, values in zip(one.cells, one.values, strict=True)
    ]
    return csv_table(columns, made, command)


def to_dict(
    suite: Suite,
    edition: Edition,
    played: Sequence[Played],
    summaries: Mapping[str, Mapping[str, Mapping[str, Any]]],
    models: Mapping[str, str | None],
    command: str,
    failed: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """JSON-able: the edition, of each controller its summary and every world, and why some failed."""
    return {
        "schema": SCHEMA,
        "netbuf_gym": __version__,
        "suite": suite.name,
        "version": edition.version,
        "digest": edition.digest,
        "task": suite.task,
        "command": command,
        "score": suite.score.key,
        **({"failed": dict(failed)} if failed else {}),
        "controllers": {
            one.name: {
                "model_sha256": models.get(one.name),
                "seconds": one.seconds,
                "cpu_seconds": one.cpu_seconds,
                "families": summaries[one.name],
                "worlds": {cell.name: values for cell, values in zip(one.cells, one.values, strict=True)},
            }
            for one in played
        },
    }


def earlier(file: Path, suite: Suite, edition: Edition, families: Sequence[str]) -> dict[str, Any]:
    """The result of an earlier run, read from its result.json.

    Args:
        families: What it must have of each controller.

    Raises:
        ConfigError: It cannot be read, is of another version, or of a suite with other worlds, whose figures say nothing about
            these, or lacks a family.
    """
    try:
        data = json.loads(read_text(file))
        of = data["suite"], data["version"], data["digest"]
        schema, controllers = data["schema"], data["controllers"]
    except OSError as error:
        raise ConfigError(f"against = {file}: cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError) as error:
        why = f"without {error}" if isinstance(error, KeyError) else str(error)
        raise ConfigError(f"against = {file}: is no result.json of a suite ({why}); valid: what a suite wrote") from None
    if schema != SCHEMA or not isinstance(controllers, dict) or not controllers:
        raise ConfigError(f"against = {file}: schema {shown(schema)}, controllers {shown(controllers)}; valid: {SCHEMA!r}, one")
    ours = suite.name, edition.version, edition.digest
    if of[-1] != ours[-1] or (of[0] == ours[0] and of != ours):
        named = [f"suite {name}, version {version}, digest {digest}" for name, version, digest in (of, ours)]
        raise ConfigError(f"against = {file}: is of {named[0]}; valid: {named[1]}, as figures of others are of other worlds")
    for name, one in controllers.items():
        for family in families:
            worlds, where = len(edition.of([family])), f"against = {file}: controllers.{name}.families.{family}"
            try:
                found, value = one["families"][family]["worlds"], one["families"][family][suite.score.key]
            except (KeyError, TypeError):
                raise ConfigError(f"{where} is not there; valid: a result over all families that are run") from None
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if found != worlds or not (number or value is None):
                said = f"{where} has {shown(found)} worlds, {suite.score.key} {shown(value)}"
                raise ConfigError(f"{said}; valid: {worlds}, and a number, or null where none is known")
    return data


def compared(
    suite: Suite,
    summaries: Mapping[str, Mapping[str, Mapping[str, Any]]],
    before: Mapping[str, Any],
    tolerance: float,
) -> tuple[str, list[str]]:
    """The first controller beside an earlier result: a table of the score by family, and the families in which it is behind by
    more than `tolerance`. The earlier controller is the one of its name, or else the first one. `before` is of `earlier`.
    """
    name, score = next(iter(summaries)), suite.score
    then = name if name in before["controllers"] else next(iter(before["controllers"]))
    old = before["controllers"][then]["families"]
    lines, behind = [], []
    for family, own in summaries[name].items():
        if family not in old or old[family]["worlds"] != own["worlds"]:
            continue  # all of them, where they were other families
        was, now = old[family][score.key], own[score.key]
        lost = was is not None and (now is None or now < was - tolerance)
        behind += [family] * lost
        change = "-" if was is None or now is None else f"{now - was:+.{score.digits}f}"
        lines.append([family, _cell(was, score), _cell(now, score), change, "behind" if lost else ""])
    table = markdown_table(["family", f"{then}, then", f"{name}, now", "change", f"by more than {tolerance:g}"], lines)
    return table, behind


def standing(data: Mapping[str, Any], metric: Metric) -> str:
    """What a result says of its first controller: in how many families of its suite it is the best, where others are above it.

    Args:
        data: Of a result.json with several controllers.
        metric: The score.
    """
    (first, ours), *others = ((name, one["families"]) for name, one in data["controllers"].items())
    above: dict[str, list[str]] = {}
    for family, own in ours.items():
        for name, theirs in others:
            if theirs[family][metric.key] > own[metric.key]:
                by = theirs[family][metric.key] - own[metric.key]
                least = 10**-metric.digits
                said = f"by {by:.{metric.digits}f}" if by >= least else f"by less than {least:g}"
                above.setdefault(family, []).append(f"{name} {said}")
    families = [family for family in ours if family != ALL]
    behind = [family for family in families if family in above]
    where = "; ".join(f"in `{family}` {', '.join(above[family])}" for family in behind) or "nowhere"
    over_all = f"behind {', '.join(above[ALL])}" if ALL in above else "ahead of all of them"
    count = f"{len(families) - len(behind)} of {len(families)} families"
    best = f"of these {first} has the highest mean {metric.label} in {count}, and over all worlds is {over_all}"
    return f"On suite `{data['suite']}`, version {data['version']}, {best}. Above it are: {where}."


def by_family(data: Mapping[str, Any], suite: Suite) -> str:
    """Markdown of a result: its command, the scores by family, and `standing`."""
    table = tables(suite, {name: one["families"] for name, one in data["controllers"].items()}).partition("\n\n")[2]
    return f"`{data['command']}`:\n\n{table.partition(chr(10) * 2)[0]}\n\n{standing(data, suite.score)}"


def _known(values: Sequence[float]) -> np.ndarray:
    array = np.asarray(values, float)
    return array[np.isfinite(array)]


def _cell(value: float | None, metric: Metric) -> str:
    return "-" if value is None else f"{value * metric.factor:.{metric.digits}f}"


def _with_half(own: Mapping[str, Any], metric: Metric) -> str:
    half = own.get(f"{metric.key}_half")
    return _cell(own[metric.key], metric) + (f" ± {_cell(half, metric)}" if half is not None else "")
