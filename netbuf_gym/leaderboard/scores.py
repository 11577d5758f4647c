"""Results of controllers on their ranking suites: played, written, read, and checked against a suite's edition.

Kept results are files of rows (`netbuf_gym.evaluation.suites.rows`). Submissions are a suite's `result.json`
(`netbuf_gym.evaluation.suites.report`) of one controller or several; for an agent it also has algorithm, training seed,
recipe and steps, and the group of runs that the agent belongs to.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.evaluation.suites import Cell, Edition, Suite, frozen, get_suite, report, rows, runner
from netbuf_gym.evaluation.suites.catalogue import CHOOSE_ON, V1
from netbuf_gym.evaluation.suites.runner import SuiteRun
from netbuf_gym.evaluation.suites.scoring import CHANCE, Result
from netbuf_gym.training.checkpoints import archive, checkpoint
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from netbuf_gym.utils.files import read_text, to_plain_values, write_atomic
from netbuf_gym.utils.progress import ProgressBar
from netbuf_gym.zoo import library, resolve


def get_ranking_suite(task: str) -> Suite:
    """Return the suite that controllers of a task are ranked by."""
    return get_suite(f"{V1}/{tasks.get(task).name}")


def list_controllers(task: str, *constants: str) -> list[str]:
    """Return the controllers of a leaderboard: chance, the given constants, rules, agents of the package, other controls."""
    measures = tasks.get(task).measures
    agents = [name for name in library.names() if name.partition("/")[0] == task]
    beside = (*measures.baselines, *measures.carded_beside, *measures.ranked_beside)
    return list(dict.fromkeys((CHANCE, *constants, *measures.heuristics, *agents, *beside)))


def play_controller(
    word: str, own: Suite, edition: Edition, threads: int = 1, each: Callable[[Cell], None] = lambda cell: None
) -> dict[str, Any]:
    """Play a controller on all worlds of a suite and return its result, JSON-able.

    Raises:
        ConfigError, CheckpointError: No such controller, or one that does not fit a family.
    """
    one = resolve.resolve_controller(word, own)
    resolve.require_fit(one, edition.cells, own)
    played = runner.run(own, edition.cells, one, threads=threads, each=each)
    found = {one.name: report.summarise(played, own, edition.families)}
    command = f"netbuf-gym suite {own.name} {shlex.quote(f'controller={word}')}"
    models = {one.name: resolve.compute_model_digest(word)}
    data: Any = frozen.round_floats(to_plain_values(report.to_dict(own, edition, [played], found, models, command)))
    about = {"decision_us": frozen.round_floats(runner.measure_decision_us(own, edition.cells[0], one))}
    if isinstance(one, SavedAgent):
        about |= describe_agent(one.saved)
    data["controllers"][one.name] |= about
    return data


def describe_agent(saved: checkpoint.SavedModel) -> dict[str, Any]:
    """Return the facts of an agent, JSON-able: algo, seed, recipe, timesteps."""
    config, schema = saved.config, saved.env["schema"]
    known = {"algo": str(config.algo.name), "seed": int(config.seed), "recipe": schema.get("recipe")}
    return {**known, "timesteps": int(saved.progress["timesteps"])}


PlayFunction = Callable[[Suite, str], SuiteRun]
"""Callable that plays a controller on all worlds of a suite."""


def choose_constant(task: str, play: PlayFunction) -> dict[str, Any]:
    """Return the constant of highest mean score over the worlds for that choice, JSON-able: edition, scores, best."""
    own = get_suite(CHOOSE_ON[task])
    words = tasks.get(task).measures.constants
    edition, scores = own.load(), {word: float(np.nanmean(play(own, word).of(own.score.key))) for word in words}
    best = max(scores, key=lambda word: scores[word])
    kept = {"suite": own.name, "version": edition.version, "digest": edition.digest}
    return {**kept, "scores": frozen.round_floats(scores), "best": best}


def write_result(path: Path, data: Any) -> None:
    """Write a result atomically, one line per world."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(to_plain_values(data), indent=1)
    text = re.sub(r"\{\n([^{}]*?)\n *\}", lambda own: "{" + re.sub(r"\n? +", " ", own[1]).strip() + "}", text)
    write_atomic(path, f"{text}\n")


def read_result(path: Path) -> dict[str, Any]:
    """Read a suite's result.json.

    Raises:
        ConfigError: The file cannot be read, or is no such result.
    """
    try:
        if path.stat().st_size > archive.MAX_JSON_BYTES:
            raise ValueError(f"larger than {archive.MAX_JSON_BYTES:,} bytes")
        data = json.loads(read_text(path))
        if data["schema"] != report.SCHEMA or not all(isinstance(one["worlds"], dict) for one in data["controllers"].values()):
            raise ValueError(f"schema {shown(data['schema'])}")
        for key in ("suite", "version", "digest", "task", "score", "command"):
            data[key]
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{path}: is no result.json of a suite ({error})") from None
    return data


def extract_results(data: dict[str, Any], own: Suite, edition: Edition, where: str) -> list[Result]:
    """Return the results of all controllers of a `result.json`.

    Raises:
        ConfigError: A result of another edition, missing worlds, or a value that is no number.
    """
    rows.require_edition(data, own, edition, where)
    return [score_rows(rows.parse_result(data, name, where), own, edition) for name in data["controllers"]]


def score_rows(found: rows.Rows, own: Suite, edition: Edition) -> Result:
    """Return score and price of a controller in every world.

    Raises:
        ConfigError: See `extract_results`.
    """
    name, where = found.controller, f"{found.where}: {found.controller}"
    rows.require_edition(found.about, own, edition, found.where)
    missing = [cell.name for cell in edition.cells if cell.name not in found.worlds]
    if missing:
        raise ConfigError(f"{where} lacks {len(missing)} of {len(edition.cells)} worlds, {missing[0]!r} first; valid: all")
    key, price = own.score.key, tasks.get(own.task).measures.price
    worlds = {cell.name: _read_value(found.worlds[cell.name], key, f"{where}, {cell.name}") for cell in edition.cells}
    prices = {}
    if price is not None:
        told = {world: one for world, one in found.worlds.items() if isinstance(one, dict) and price.metric in one}
        prices = {world: _read_value(one, price.metric, f"{where}, {world}") for world, one in told.items()}
    return Result(name, worlds, {**found.about, "of": found.where}, prices)


def restore_played(result: dict[str, Any], own: Suite, edition: Edition, where: str) -> SuiteRun:
    """Return a kept result that holds all worlds of an edition as if the controller had just played.

    Raises:
        ConfigError: A world lacks a metric, or holds a value that is no number.
    """
    values = []
    for cell in edition.cells:
        world = result["worlds"][cell.name]
        lacking = [one.key for one in own.metrics if not isinstance(world, dict) or one.key not in world]
        if lacking:
            raise ConfigError(f"{where}, {cell.name}: lacks {lacking[0]}; valid: {', '.join(one.key for one in own.metrics)}")
        values.append({one.key: _read_value(world, one.key, f"{where}, {cell.name}") for one in own.metrics})
    return SuiteRun(where, edition.cells, values, math.nan, math.nan)


def _read_value(values: Any, key: str, where: str) -> float:
    value = values.get(key) if isinstance(values, dict) else values
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value):
        raise ConfigError(f"{where}: {key} = {shown(value)}; valid: a number, or null where there is none")
    return float(value)


def is_free_name(task: str, name: str) -> bool:
    """Return whether an agent may have a name, i.e. no unlearned controller of the task has it."""
    return name not in tasks.get(task).controllers and name not in tasks.get(task).measures.constants


def require_seed(one: Result, others: Iterable[Result]) -> None:
    """Check that a submitted agent has a training seed of its own within its row, whose training seeds all count.

    Raises:
        ConfigError: No training seed, or another model of the same name has the same one.
    """
    seed, name, where = one.about.get("seed"), _get_row_name(one), one.about["of"]
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ConfigError(f"{where}: {name} lacks its training seed (seed = {shown(seed)}); valid: a whole number from 0 on")
    for other in others:
        if (_get_row_name(other), other.about.get("seed")) == (name, seed) and _get_model_key(other) != _get_model_key(one):
            again = f"{name} has another model of training seed {seed}, from {other.about['of']}"
            raise ConfigError(f"{where}: {again}; valid: each training seed once, or another name")


def _get_row_name(one: Result) -> str:
    """Return the name of the row that a result belongs to."""
    return str(one.about.get("group") or one.name)


def _get_model_key(one: Result) -> str:
    return str(one.about.get("model_sha256") or one.name)


def drop_duplicates(results: Iterable[Result]) -> list[Result]:
    """Return the first result of each model, or of each name without a model."""
    found: dict[str, Result] = {}
    for one in results:
        found.setdefault(_get_model_key(one), one)
    return list(found.values())


def collect_results(files: Iterable[Path], own: Suite, edition: Edition) -> list[Result]:
    """Read the results of all controllers of files (rows, or a suite's result.json) of this edition.

    Returns:
        The first result of each model, or of each name without a model.
    """
    found: list[Result] = []
    for path in files:
        if path.suffix == ".csv":
            found.append(score_rows(rows.read(path), own, edition))
        elif (data := read_result(path))["suite"] == own.name:
            found += extract_results(data, own, edition, str(path))
    return drop_duplicates(found)


class WorldCounter:
    """Callback that counts finished worlds on a progress bar."""

    def __init__(self, bar: ProgressBar, total: int):
        self._bar, self._done, self._total = bar, 0, total

    def __call__(self, cell: object) -> None:
        self._done += 1
        self._bar(self._done, self._total, "")
