"""Results of a suite: tables by family, rows of a CSV file, the JSON, and the comparison with an earlier result."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.evaluation.suites.runner import SuiteRun
from netbuf_gym.evaluation.suites.suite import Edition, Metric, Suite
from netbuf_gym.utils import statistics
from netbuf_gym.utils.files import read_text
from netbuf_gym.utils.tables import csv_table, markdown_table
from netbuf_gym.version import __version__

SCHEMA = "netbuf-gym/suite/1"
ALL = "all"
"""Name of the row over all worlds."""
WORST = 0.1
"""Share of the worlds below the value in the column of the worst ones."""


def summarise(played: SuiteRun, suite: Suite, families: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the statistics of each family, and of all worlds; None where nothing has a value.

    These are the number of worlds, the mean of each metric over the worlds that have it, the half-width of the score's
    interval, and the score that a tenth of the worlds is below.
    """
    made = {}
    for family in (*families, ALL):
        own: dict[str, Any] = {"worlds": len(played.of(suite.score.key, None if family == ALL else family))}
        for metric in suite.metrics:
            values = _finite_values(played.of(metric.key, None if family == ALL else family))
            own[metric.key] = float(values.mean()) if len(values) else None
            if metric is suite.score and len(values):
                interval = statistics.mean_interval(values)
                own[f"{metric.key}_half"] = (interval.high - interval.low) / 2 if len(values) > 1 else None
                own[f"{metric.key}_worst_tenth"] = float(np.quantile(values, WORST))
        made[family] = own
    return made


def format_tables(
    suite: Suite, summaries: Mapping[str, Mapping[str, Mapping[str, Any]]], failed: Mapping[str, str] | None = None
) -> str:
    """Return Markdown: failed controllers with reasons, a table of scores by family if there are several controllers, and then
    each controller with all its metrics."""
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
            cells = [
                f"**{_format_cell(mean, score)}**" if mean is not None and mean == best else _format_cell(mean, score)
                for mean in means
            ]
            rows.append([family, str(next(iter(summaries.values()))[family]["worlds"]), *cells])
        parts.append(f"{score.label} by family, the best in bold\n\n{markdown_table(['family', 'worlds', *summaries], rows)}")
    for name, found in summaries.items():
        heads = ["family", "worlds", score.label, "worst tenth", *(metric.label for metric in suite.metrics[1:])]
        rows = [
            [
                family,
                str(own["worlds"]),
                _format_interval(own, score),
                _format_cell(own.get(f"{score.key}_worst_tenth"), score),
                *(_format_cell(own[metric.key], metric) for metric in suite.metrics[1:]),
            ]
            for family, own in found.items()
        ]
        parts.append(f"{name}\n\n{markdown_table(heads, rows)}")
    return "\n\n".join(parts)


def format_notes(suite: Suite, families: Sequence[str]) -> str:
    """Return the notes on the tables: columns and families in words."""
    said = [f"* {metric.label}: {metric.says}" for metric in suite.metrics]
    said.insert(
        1,
        f"* ±: half of the 95 % t interval over the worlds; worst tenth: what a tenth of the worlds is below in "
        f"{suite.score.label}",
    )
    return "\n".join([*said, "", *(f"* {family}: {suite.families[family]}" for family in families)])


def format_rows(played: Sequence[SuiteRun], suite: Suite, command: str) -> str:
    """Return CSV with a row per controller and world; missing values are empty."""
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
    played: Sequence[SuiteRun],
    summaries: Mapping[str, Mapping[str, Mapping[str, Any]]],
    models: Mapping[str, str | None],
    command: str,
    failed: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return a JSON-able form: the edition, each controller's summary and values of every world, and reasons of failures."""
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


def read_earlier(file: Path, suite: Suite, edition: Edition, families: Sequence[str]) -> dict[str, Any]:
    """Return the result of an earlier run, read from its result.json.

    Args:
        families: Families that the result must have for each controller.

    Raises:
        ConfigError: If the file cannot be read, is of another version, or of a suite with other worlds, whose figures cannot be
            compared with these, or lacks a family.
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


def compare_results(
    suite: Suite,
    summaries: Mapping[str, Mapping[str, Mapping[str, Any]]],
    before: Mapping[str, Any],
    tolerance: float,
) -> tuple[str, list[str]]:
    """Compare the first controller with an earlier result.

    Args:
        before: Earlier result, from `read_earlier`; its controller of the same name is used, or else its first one.
        tolerance: Difference of the score up to which the controller is not behind.

    Returns:
        A table of the score by family, and the families in which the controller is behind by more than `tolerance`.
    """
    name, score = next(iter(summaries)), suite.score
    then = name if name in before["controllers"] else next(iter(before["controllers"]))
    old = before["controllers"][then]["families"]
    lines, behind = [], []
    for family, own in summaries[name].items():
        if family not in old or old[family]["worlds"] != own["worlds"]:
            continue  # the row over all worlds, if the families differ
        was, now = old[family][score.key], own[score.key]
        lost = was is not None and (now is None or now < was - tolerance)
        behind += [family] * lost
        change = "-" if was is None or now is None else f"{now - was:+.{score.digits}f}"
        lines.append([family, _format_cell(was, score), _format_cell(now, score), change, "behind" if lost else ""])
    table = markdown_table(["family", f"{then}, then", f"{name}, now", "change", f"by more than {tolerance:g}"], lines)
    return table, behind


def describe_standing(data: Mapping[str, Any], metric: Metric) -> str:
    """Return a sentence on a result's first controller: in how many families it is the best, and where others are above it.

    Args:
        data: Contents of a result.json with several controllers. A score may be None; a family without any is not counted.
        metric: The score.
    """
    (first, ours), *others = ((name, one["families"]) for name, one in data["controllers"].items())
    above: dict[str, list[str]] = {}
    least = 10**-metric.digits
    for family, scores in ours.items():
        own = scores[metric.key]
        for name, theirs in others:
            their = theirs[family][metric.key]
            if their is None or (own is not None and their <= own):
                continue
            said = (
                f"({first} has no score)"
                if own is None
                else f"by {their - own:.{metric.digits}f}"
                if their - own >= least
                else f"by less than {least:g}"
            )
            above.setdefault(family, []).append(f"{name} {said}")
    families = [family for family in ours if family != ALL and (family in above or ours[family][metric.key] is not None)]
    behind = [family for family in families if family in above]
    where = "; ".join(f"in `{family}` {', '.join(above[family])}" for family in behind) or "nowhere"
    over_all = f"behind {', '.join(above[ALL])}" if ALL in above else "ahead of all of them"
    count = f"{len(families) - len(behind)} of {len(families)} families"
    best = f"of these {first} has the highest mean {metric.label} in {count}, and over all worlds is {over_all}"
    return f"On suite `{data['suite']}`, version {data['version']}, {best}. Above it are: {where}."


def format_families(data: Mapping[str, Any], suite: Suite) -> str:
    """Return a result as Markdown: its command, the scores by family, and `describe_standing`."""
    table = format_tables(suite, {name: one["families"] for name, one in data["controllers"].items()}).partition("\n\n")[2]
    return f"`{data['command']}`:\n\n{table.partition(chr(10) * 2)[0]}\n\n{describe_standing(data, suite.score)}"


def _finite_values(values: Sequence[float]) -> np.ndarray:
    array = np.asarray(values, float)
    return array[np.isfinite(array)]


def _format_cell(value: float | None, metric: Metric) -> str:
    return "-" if value is None else f"{value * metric.factor:.{metric.digits}f}"


def _format_interval(own: Mapping[str, Any], metric: Metric) -> str:
    half = own.get(f"{metric.key}_half")
    return _format_cell(own[metric.key], metric) + (f" ± {_format_cell(half, metric)}" if half is not None else "")
