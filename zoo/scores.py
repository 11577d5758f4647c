"""Results of contenders on the suites that they are ranked by: played, kept in files, and read again.

A file is a suite's `result.json` (`netbuf_gym.suites.report`), of one contender or several; of an agent it also says what it
is: its algorithm, training seed, recipe and steps, and the group of runs that it belongs to.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.errors import CheckpointError, ConfigError, shown
from netbuf_gym.files import plain, read_text, write_atomic
from netbuf_gym.progress import ProgressBar
from netbuf_gym.suites import Cell, Edition, Suite, frozen, report, running, suite
from netbuf_gym.suites.catalogue import CHOOSE_ON, V1
from netbuf_gym.suites.running import Played
from netbuf_gym.suites.scoring import CHANCE, Result
from netbuf_gym.zoo import archive, checkpoint, contending, library
from netbuf_gym.zoo.constants import CONSTANTS
from netbuf_gym.zoo.saved import SavedAgent


def ranked_by(task: str) -> Suite:
    """The suite that contenders of a task are ranked by."""
    return suite(f"{V1}/{tasks.get(task).name}")


def words_of(task: str, constant: str) -> list[str]:
    """Everybody that a leaderboard holds: chance, the best constant, rules, other controls, and the package's agents."""
    measures = tasks.get(task).measures
    agents = [name for name in library.names() if name.partition("/")[0] == task]
    beside = (*measures.baselines, *measures.carded_beside, *measures.ranked_beside)
    return list(dict.fromkeys((CHANCE, constant, *measures.heuristics, *agents, *beside)))


def play(
    word: str, own: Suite, edition: Edition, threads: int = 1, each: Callable[[Cell], None] = lambda cell: None
) -> dict[str, Any]:
    """A contender on all worlds of a suite, JSON-able.

    Raises:
        ConfigError, CheckpointError: There is no such contender, or it does not fit a family.
    """
    one = contending.contender(word, own)
    contending.require_fit(one, edition.cells, own)
    played = running.run(own, edition.cells, one, threads=threads, each=each)
    found = {one.name: report.summary(played, own, edition.families)}
    command = f"netbuf-gym suite {own.name} {shlex.quote(f'controller={word}')}"
    models = {one.name: contending.digest_of(word)}
    data: Any = frozen.rounded(plain(report.to_dict(own, edition, [played], found, models, command)))
    about = {"decision_us": frozen.rounded(running.decision_us(own, edition.cells[0], one))}
    if isinstance(one, SavedAgent):
        about |= described(one.saved)
    data["controllers"][one.name] |= about
    return data


def described(saved: checkpoint.Saved) -> dict[str, Any]:
    """What an agent is, JSON-able: algo, seed, recipe, timesteps."""
    config, schema = saved.config, saved.env["schema"]
    known = {"algo": str(config.algo.name), "seed": int(config.seed), "recipe": schema.get("recipe")}
    return {**known, "timesteps": int(saved.progress["timesteps"])}


def choose_constant(task: str, threads: int = 1, each: Callable[[Cell], None] = lambda cell: None) -> dict[str, Any]:
    """The constant of the highest mean score over the worlds that are there to choose on, JSON-able: edition, scores, best."""
    own = suite(CHOOSE_ON[task])
    edition, scores = own.load(), {}
    for word in tasks.get(task).measures.constants:
        played = running.run(own, edition.cells, contending.contender(word, own), threads=threads, each=each)
        scores[word] = float(np.nanmean(played.of(own.score.key)))
    best = max(scores, key=lambda word: scores[word])
    kept = {"suite": own.name, "version": edition.version, "digest": edition.digest}
    return {**kept, "scores": frozen.rounded(scores), "best": best}


def file_of(folder: Path, task: str, name: str) -> Path:
    """Where the results of a contender are kept: `constant:9` as constant-9, of `TASK/AGENT` the agent's name."""
    return folder / task / f"{re.sub(r'[^A-Za-z0-9_.+-]', '-', name.removeprefix(f'{task}/'))}.json"


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


def require_edition(data: dict[str, Any], own: Suite, edition: Edition, where: str) -> None:
    """Raises ConfigError for a result of another suite, or another version of it."""
    was, now = (data["suite"], data["version"], data["digest"]), (own.name, edition.version, edition.digest)
    if was != now:
        named = [f"suite {name}, version {version}, digest {digest}" for name, version, digest in (was, now)]
        raise ConfigError(f"{where}: was evaluated on {named[0]}; valid: {named[1]}, as scores of others are of other worlds")


def results_of(data: dict[str, Any], own: Suite, edition: Edition, where: str) -> list[Result]:
    """The contenders of a result.

    Raises:
        ConfigError: It is of another edition, lacks worlds, or holds what is no number.
    """
    require_edition(data, own, edition, where)
    made = []
    for name, one in data["controllers"].items():
        missing = [cell.name for cell in edition.cells if cell.name not in one["worlds"]]
        if missing:
            total = len(edition.cells)
            raise ConfigError(f"{where}: {name} lacks {len(missing)} of {total} worlds, {missing[0]!r} first; valid: all")
        at = f"{where}: {name}"
        worlds = {cell.name: _value(one["worlds"][cell.name], own.score.key, f"{at}, {cell.name}") for cell in edition.cells}
        about = {key: value for key, value in one.items() if key not in ("worlds", "families")}
        about |= {"command": data["command"], "of": where}
        made.append(Result(name, worlds, about, _prices(own.task, one["worlds"], at)))
    return made


def _prices(task: str, worlds: dict[str, Any], where: str) -> dict[str, float]:
    """The task's `Measures.price` in each world that says it."""
    price = tasks.get(task).measures.price
    if price is None:
        return {}
    told = {name: world for name, world in worlds.items() if isinstance(world, dict) and price.metric in world}
    return {name: _value(world, price.metric, f"{where}, {name}") for name, world in told.items()}


def played_of(result: dict[str, Any], own: Suite, edition: Edition, where: str) -> Played:
    """What a contender measured, as if it had just played: of a result that holds all worlds of an edition.

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
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value):
        raise ConfigError(f"{where}: {key} = {shown(value)}; valid: a number, or null where there is none")
    return float(value)


def is_free(task: str, name: str) -> bool:
    """Whether an agent may have a name: whether it is that of no contender which there is without learning."""
    return name not in tasks.get(task).contenders and name not in tasks.get(task).measures.constants


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
    """All contenders of files, of this edition; of one model, or one name without a model, the first."""
    found: list[Result] = []
    for path in files:
        data = read(path)
        if data["suite"] == own.name:
            found += results_of(data, own, edition, str(path))
    return distinct(found)


def is_current(path: Path, word: str, edition: Edition) -> bool:
    """Whether a file holds a contender's results on this edition, and of the model that it has now."""
    try:
        data = read(path)
        (one,) = data["controllers"].values()
        return bool(data["digest"] == edition.digest and one.get("model_sha256") == contending.digest_of(word))
    except (ConfigError, CheckpointError, ValueError):
        return False


class Counted:
    """Shows how many worlds are done."""

    def __init__(self, bar: ProgressBar, total: int):
        self._bar, self._done, self._total = bar, 0, total

    def __call__(self, cell: object) -> None:
        self._done += 1
        self._bar(self._done, self._total, "")


def found_below(folder: Path, names: Sequence[str] = ("*.json",)) -> list[Path]:
    """Files of results below a folder, by name."""
    return sorted({path for name in names for path in folder.rglob(name) if path.name != CONSTANTS})
