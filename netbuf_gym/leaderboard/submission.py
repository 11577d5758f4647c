"""Handing an agent in: its evaluation on the suite of its task, or a new one, looked through before anything is logged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError, shown
from netbuf_gym.evaluation.suites import Cell, Edition, Suite, frozen, report, rows, runner
from netbuf_gym.evaluation.suites.scoring import Result
from netbuf_gym.leaderboard import gate, scores
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from netbuf_gym.utils.progress import ProgressBar
from netbuf_gym.zoo import library, resolve

EVALUATION = "suite.json"
"""Of a run's folder, beside its model."""
NAME = re.compile(r"[A-Za-z0-9][\w.+-]*(/[A-Za-z0-9][\w.+-]*)*")
"""What rows may be called."""
SAMPLED = 2
"""Worlds of each family that are played again, others every time: nobody knows beforehand which."""


@dataclass(frozen=True)
class Submission:
    """An agent that has been looked through.

    Attributes:
        saved: The agent.
        task: Its task.
        suite, edition: What it was evaluated on.
        name: Of its row.
        data: Its result, as it is kept.
        evaluation: The file that it came from, or was written to.
    """

    saved: checkpoint.Saved
    task: str
    suite: Suite
    edition: Edition
    name: str
    data: dict[str, Any]
    evaluation: Path

    @property
    def result(self) -> dict[str, Any]:
        """What is known of the agent, `worlds` and `families` among it."""
        return self.data["controllers"][self.name]

    @property
    def scored(self) -> Result:
        """As a leaderboard has it."""
        (one,) = scores.results_of(self.data, self.suite, self.edition, str(self.evaluation))
        return one

    @property
    def group(self) -> str:
        """What its runs of other training seeds have in common: environment, algorithm, suite."""
        return "/".join((self.saved.env["id"], str(self.saved.config.algo.name), self.suite.name))


def prepare(run: str, *, name: str | None = None, evaluation: Path | None = None, threads: int = 1) -> Submission:
    """An agent with its evaluation, looked through; without one it is evaluated, which is kept beside the model.

    Args:
        run: A run's folder, a model's file, or the name of an agent of the package.
        name: Of its row, the same for all training seeds; None: that of the agent, or of the run's folder.
        evaluation: The file that `netbuf-gym suite` has written; None: `suite.json` beside the model.
        threads: That run the worlds.

    Raises:
        CheckpointError: There is no such agent, it is damaged, or does not fit.
        ConfigError: The name is that of a rule or of another agent; the evaluation is of another suite or version, of another
            model, or lacks worlds; or the model does not reproduce it.
        OSError: The new evaluation cannot be written.
    """
    saved = checkpoint.read(library.path_of(run, "run"))
    task = str((saved.env.get("schema") or {}).get("task"))
    own = scores.ranked_by(task)
    edition = own.load()
    packaged = run.strip("/") in library.names() and saved.path.is_relative_to(library.FOLDER)
    file = evaluation or (Path("runs", "leaderboard", run.strip("/")) if packaged else saved.path.parent) / EVALUATION
    row = name if name is not None else (run.strip("/") if packaged else f"{task}/{saved.path.parent.resolve().name}")
    _require_name(row, task, saved)
    if evaluation is None and not file.is_file():
        with ProgressBar(f"{own.name}: {row}", line_seconds=None) as bar:
            data = scores.play(run, own, edition, threads, scores.Counted(bar, len(edition.cells)))
        scores.write(file, data)
    data = scores.read(file)
    result, digest = _own_result(data, saved, file)
    scores.results_of({**data, "controllers": {row: result}}, own, edition, str(file))
    about = scores.described(saved) | {"group": row, "model_sha256": digest}
    about["decision_us"] = frozen.rounded(runner.decision_us(own, edition.cells[0], SavedAgent(saved, row)))  # on this machine
    about["families"] = report.summary(scores.played_of(result, own, edition, f"{file}: {row}"), own, edition.families)
    made = Submission(saved, task, own, edition, row, {**data, "controllers": {row: {**result, **about}}}, file)
    require_reproduced(made, sample(edition, np.random.default_rng()))
    return made


def keep(one: Submission, folder: Path) -> Path:
    """Keep an agent's result as rows below a folder, a file a training seed; returns the file.

    Raises:
        ConfigError: Rows of another model or name are there.
        OSError: It cannot be written.
    """
    found = rows.of_result(one.data, one.name)
    name = f"{one.name.replace('/', '-')}-seed{one.saved.config.seed}"
    path = rows.folder_of(one.suite, folder) / f"{name}.csv"
    if path.is_file():
        there = rows.read(path)
        if (there.controller, there.about.get("model_sha256")) != (one.name, found.about.get("model_sha256")):
            said = f"name = {shown(one.name)}: {path} holds rows of another model, {there.controller}"
            raise ConfigError(f"{said}; valid: another name")
    rows.write(path, replace(found, about={**found.about, "machine": rows.machine()}), one.suite, one.edition)
    return path


def handed_in(own: Suite, folder: Path) -> list[Result]:
    """What is kept of agents that were handed in to a suite as it is now."""
    found: list[Result] = []
    for path in sorted(rows.folder_of(own, folder).glob("*.csv")):
        with suppress(ConfigError):  # of another edition, or damaged: `show` says so
            found += scores.collect([path], own, own.load())
    return found


def require_seeds(handed: Sequence[Submission], before: Sequence[Result]) -> dict[str, int]:
    """Holds agents that are handed in together to the seeds of their rows.

    Args:
        before: what was handed in on their suites.

    Returns:
        how many training seeds each row then has, by its name.

    Raises:
        ConfigError: two models of one training seed have one name, or one model has two.
    """
    found, rows = [*before], {}
    for one in handed:
        for other in found:
            if (digest := other.about.get("model_sha256")) and digest == one.result["model_sha256"] and other.name != one.name:
                raise ConfigError(f"name = {shown(one.name)}: {one.saved.path} is handed in as {other.name}; valid: that name")
        scores.require_seed(one.scored, found)
        found = scores.distinct([*found, one.scored])
    for one in handed:
        rows[one.name] = sum(other.about.get("group") == one.name for other in found)
    return rows


def _require_name(name: str, task: str, saved: checkpoint.Saved) -> None:
    """Raises ConfigError where a row of this agent cannot be called so."""
    if not NAME.fullmatch(name):
        raise ConfigError(f"name = {shown(name)}; valid: letters, digits and any of ._+-, in parts with / between them")
    if not scores.is_free(task, name):
        raise ConfigError(f"name = {shown(name)} is that of a controller of {task}; valid: a name of its own")
    if name in library.names() and resolve.digest_of(name) != resolve.digest_of(str(saved.path)):
        raise ConfigError(f"name = {shown(name)} is that of another agent, of the package; valid: a name of its own")


def same_in_package(one: Submission) -> str | None:
    """The agent of the package that is this very model, which has the row of both."""
    digest = one.result["model_sha256"]
    return next((name for name in library.names() if name != one.name and resolve.digest_of(name) == digest), None)


def _own_result(data: dict[str, Any], saved: checkpoint.Saved, file: Path) -> tuple[dict[str, Any], str]:
    """The result of this very model among those of a file, and the model's digest."""
    digest = resolve.digest_of(str(saved.path))
    for one in data["controllers"].values():
        if digest is not None and one.get("model_sha256") == digest:
            return one, digest
    found = ", ".join(f"{name} ({one.get('model_sha256')})" for name, one in data["controllers"].items())
    raise ConfigError(f"{file}: has results of {found}, not of {saved.path} ({digest}); valid: an evaluation of that model")


def sample(edition: Edition, rng: np.random.Generator) -> list[Cell]:
    """The worlds that are played again: some of each family, drawn at random."""
    picked = []
    for family in edition.families:
        cells = edition.of([family])
        picked += [cells[k] for k in rng.permutation(len(cells))[:SAMPLED]]
    return picked


def require_reproduced(one: Submission, cells: Sequence[Cell]) -> None:
    """Raises ConfigError unless the model has the figures again that it was handed in with: in nearly all of the worlds, and
    of its score in their mean no less."""
    controller = SavedAgent(one.saved, one.name)
    resolve.require_fit(controller, cells, one.suite)
    played = runner.run(one.suite, cells, controller)
    for metric in one.suite.metrics:
        _require_same(one, cells, metric.key, np.array(played.of(metric.key)))
    key = one.suite.score.key
    again = played.of(key)
    said = [np.nan if (was := one.result["worlds"][cell.name][key]) is None else was for cell in cells]
    off = gate.others(cells, said, again)
    better = float(np.nansum(np.array(said) - np.array(again))) / len(cells)
    if not gate.reproduced(off, len(cells)) or better > gate.TOLERANCE:
        world, (was, now) = max(off.items(), key=lambda entry: (entry[1][0] or 0) - entry[1][1])
        what = f"{one.evaluation}: {one.saved.path} does not reproduce its {key} in {len(off)} of {len(cells)} worlds"
        raise ConfigError(f"{what}: in {world} it has {now:.4g}, not {was}; valid: its own results, within {gate.TOLERANCE:g}")


def _require_same(one: Submission, cells: Sequence[Cell], key: str, again: np.ndarray) -> None:
    """Holds a metric beside the score to itself, but for a share of `gate.TOLERANCE`, in nearly all of the worlds."""
    said = np.array([np.nan if (was := one.result["worlds"][cell.name][key]) is None else was for cell in cells], float)
    same = np.isclose(said, again, rtol=gate.TOLERANCE, atol=1e-6, equal_nan=True)
    off = [at for at, held in enumerate(same) if not held]
    if key != one.suite.score.key and not gate.reproduced(off, len(cells)):
        what = f"{one.evaluation}: {one.saved.path} does not reproduce its {key} in {len(off)} of {len(cells)} worlds"
        world, was, now = cells[off[0]].name, said[off[0]], again[off[0]]
        raise ConfigError(f"{what}: in {world} it has {now:.4g}, not {was:.4g}; valid: its own results")


def table(one: Submission) -> tuple[list[str], list[list[Any]]]:
    """Header and rows of its table: what it measured, family by family."""
    metrics = one.suite.metrics
    rows = [
        [family, found["worlds"], *(found.get(metric.key) for metric in metrics)]
        for family, found in one.result["families"].items()
    ]
    return ["family", "worlds", *(metric.key for metric in metrics)], rows


def measures_of(one: Submission) -> dict[str, float]:
    """Its metrics in a line each, JSON-able: `score/FAMILY`, `cpu_seconds`, `decision_us` and the like."""
    key = one.suite.score.key
    found = {f"{key}/{family}": row[key] for family, row in one.result["families"].items() if row[key] is not None}
    costs = {name: one.result[name] for name in ("seconds", "cpu_seconds", "decision_us") if one.result.get(name) is not None}
    return found | costs | {"timesteps": int(one.saved.progress["timesteps"])}


def known_tasks(task: str | None) -> list[str]:
    """The task that is named, or all that have a suite; raises ConfigError for another."""
    return tasks.names() if task is None else [tasks.get(task).name]
