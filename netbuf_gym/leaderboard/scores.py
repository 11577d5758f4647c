"""Results of controllers on the suites that they are ranked by: played, read, and held to a suite's edition.

Kept results are files of rows (`netbuf_gym.evaluation.suites.rows`). What is handed in is a suite's `result.json`
(`netbuf_gym.evaluation.suites.report`), of one controller or several; of an agent it also has its algorithm, training seed,
recipe and steps, and the group of runs that it belongs to.
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
from netbuf_gym.evaluation.suites import Cell, Edition, Suite, frozen, report, rows, runner, suite
from netbuf_gym.evaluation.suites.catalogue import CHOOSE_ON, V1
from netbuf_gym.evaluation.suites.runner import Played
from netbuf_gym.evaluation.suites.scoring import CHANCE, Result
from netbuf_gym.training.checkpoints import archive, checkpoint
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from netbuf_gym.utils.files import plain, read_text, write_atomic
from netbuf_gym.utils.progress import ProgressBar
from netbuf_gym.zoo import library, resolve


def ranked_by(task: str) -> Suite:
    """The suite that controllers of a task are ranked by."""
    return suite(f"{V1}/{tasks.get(task).name}")


def words_of(task: str, *constants: str) -> list[str]:
    """Everybody that a leaderboard holds: chance, the given constants, rules, other controls, and the package's agents."""
    measures = tasks.get(task).measures
    agents = [name for name in library.names() if name.partition("/")[0] == task]
    beside = (*measures.baselines, *measures.carded_beside, *measures.ranked_beside)
    return list(dict.fromkeys((CHANCE, *constants, *measures.heuristics, *agents, *beside)))


def play(
    word: str, own: Suite, edition: Edition, threads: int = 1, each: Callable[[Cell], None] = lambda cell: None
) -> dict[str, Any]:
    """A controller on all worlds of a suite, JSON-able.

    Raises:
        ConfigError, CheckpointError: There is no such controller, or it does not fit a family.
    """
    one = resolve.controller(word, own)
    resolve.require_fit(one, edition.cells, own)
    played = runner.run(own, edition.cells, one, threads=threads, each=each)
    found = {one.name: report.summary(played, own, edition.families)}
    command = f"netbuf-gym suite {own.name} {shlex.quote(f'controller={word}')}"
    models = {one.name: resolve.digest_of(word)}
    data: Any = frozen.rounded(plain(report.to_dict(own, edition, [played], found, models, command)))
    about = {"decision_us": frozen.rounded(runner.decision_us(own, edition.cells[0], one))}
    if isinstance(one, SavedAgent):
        about |= described(one.saved)
    data["controllers"][one.name] |= about
    return data


def described(saved: checkpoint.Saved) -> dict[str, Any]:
    """What an agent is, JSON-able: algo, seed, recipe, timesteps."""
    config, schema = saved.config, saved.env["schema"]
    known = {"algo": str(config.algo.name), "seed": int(config.seed), "recipe": schema.get("recipe")}
    return {**known, "timesteps": int(saved.progress["timesteps"])}


Play = Callable[[Suite, str], Played]
"""Plays a controller on all worlds of a suite."""


def choose_constant(task: str, play: Play) -> dict[str, Any]:
    """The constant of the highest mean score over the worlds that are there to choose on, JSON-able: edition, scores, best."""
    own = suite(CHOOSE_ON[task])
    words = tasks.get(task).measures.constants
    edition, scores = own.load(), {word: float(np.nanmean(play(own, word).of(own.score.key))) for word in words}
    best = max(scores, key=lambda word: scores[word])
    kept = {"suite": own.name, "version": edition.version, "digest": edition.digest}
    return {**kept, "scores": frozen.rounded(scores), "best": best}


def write(path: Path, data: Any) -> None:
    """Writes a result atomically, a world in a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(plain(data), indent=1)
    text = re.sub(r"\{\n([^{}]*?)\n *\}", lambda own: "{" + re.sub(r"\n? +", " ", own[1]).strip() + "}", text)
    write_atomic(path, f"{text}\n")


def read(path: Path) -> dict[str, Any]:
    """A result, as it was written.

    Raises:
        ConfigError: It cannot be read, or is none.
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


def results_of(data: dict[str, Any], own: Suite, edition: Edition, where: str) -> list[Result]:
    """The controllers of a `result.json`.

    Raises:
        ConfigError: It is of another edition, lacks worlds, or holds what is no number.
    """
    rows.require_edition(data, own, edition, where)
    return [result_of(rows.of_result(data, name, where), own, edition) for name in data["controllers"]]


def result_of(found: rows.Rows, own: Suite, edition: Edition) -> Result:
    """Score and price of a controller in every world; raises as `results_of`."""
    name, where = found.controller, f"{found.where}: {found.controller}"
    rows.require_edition(found.about, own, edition, found.where)
    missing = [cell.name for cell in edition.cells if cell.name not in found.worlds]
    if missing:
        raise ConfigError(f"{where} lacks {len(missing)} of {len(edition.cells)} worlds, {missing[0]!r} first; valid: all")
    key, price = own.score.key, tasks.get(own.task).measures.price
    worlds = {cell.name: _value(found.worlds[cell.name], key, f"{where}, {cell.name}") for cell in edition.cells}
    prices = {}
    if price is not None:
        told = {world: one for world, one in found.worlds.items() if isinstance(one, dict) and price.metric in one}
        prices = {world: _value(one, price.metric, f"{where}, {world}") for world, one in told.items()}
    return Result(name, worlds, {**found.about, "of": found.where}, prices)


def played_of(result: dict[str, Any], own: Suite, edition: Edition, where: str) -> Played:
    """What a controller measured, as if it had just played: of a result that holds all worlds of an edition.

    Raises:
        ConfigError: A world lacks a metric, or holds what is no number.
    """
    values = []
    for cell in edition.cells:
        world = result["worlds"][cell.name]
        lacking = [one.key for one in own.metrics if not isinstance(world, dict) or one.key not in world]
        if lacking:
            raise ConfigError(f"{where}, {cell.name}: lacks {lacking[0]}; valid: {', '.join(one.key for one in own.metrics)}")
        values.append({one.key: _value(world, one.key, f"{where}, {cell.name}") for one in own.metrics})
    return Played(where, edition.cells, values, math.nan, math.nan)


def _value(values: Any, key: str, where: str) -> float:
    value = values.get(key) if isinstance(values, dict) else values
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value):
        raise ConfigError(f"{where}: {key} = {shown(value)}; valid: a number, or null where there is none")
    return float(value)


def is_free(task: str, name: str) -> bool:
    """Whether an agent may have a name: whether it is that of no controller which there is without learning."""
    return name not in tasks.get(task).controllers and name not in tasks.get(task).measures.constants


def require_seed(one: Result, others: Iterable[Result]) -> None:
    """Holds an agent that was handed in to the seeds of its row, whose training seeds all count.

    Raises:
        ConfigError: It lacks its training seed, or another model of its name has the same one.
    """
    seed, name, where = one.about.get("seed"), _row(one), one.about["of"]
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ConfigError(f"{where}: {name} lacks its training seed (seed = {shown(seed)}); valid: a whole number from 0 on")
    for other in others:
        if (_row(other), other.about.get("seed")) == (name, seed) and _model(other) != _model(one):
            again = f"{name} has another model of training seed {seed}, from {other.about['of']}"
            raise ConfigError(f"{where}: {again}; valid: each training seed once, or another name")


def _row(one: Result) -> str:
    """Whose training seed it is."""
    return str(one.about.get("group") or one.name)


def _model(one: Result) -> str:
    return str(one.about.get("model_sha256") or one.name)


def distinct(results: Iterable[Result]) -> list[Result]:
    """Of one model, or one name without a model, the first."""
    found: dict[str, Result] = {}
    for one in results:
        found.setdefault(_model(one), one)
    return list(found.values())


def collect(files: Iterable[Path], own: Suite, edition: Edition) -> list[Result]:
    """All controllers of files (rows, or a suite's result.json), of this edition; of one model, or one name without a model,
    the first."""
    found: list[Result] = []
    for path in files:
        if path.suffix == ".csv":
            found.append(result_of(rows.read(path), own, edition))
        elif (data := read(path))["suite"] == own.name:
            found += results_of(data, own, edition, str(path))
    return distinct(found)


class Counted:
    """Shows how many worlds are done."""

    def __init__(self, bar: ProgressBar, total: int):
        self._bar, self._done, self._total = bar, 0, total

    def __call__(self, cell: object) -> None:
        self._done += 1
        self._bar(self._done, self._total, "")
