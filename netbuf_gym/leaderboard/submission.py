"""Submission of an agent: its evaluation on the suite of its task, or a new one, checked before anything is logged."""

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
"""File of the evaluation, beside the model in a run's folder."""
NAME = re.compile(r"[A-Za-z0-9][\w.+-]*(/[A-Za-z0-9][\w.+-]*)*")
"""Valid names of rows."""
SAMPLED = 2
"""Number of replayed worlds per family, drawn anew each time so that nobody knows them beforehand."""


@dataclass(frozen=True)
class Submission:
    """An agent that has been checked for submission.

    Attributes:
        saved: The agent.
        task: Name of the agent's task.
        suite, edition: Suite and edition of the evaluation.
        name: Name of the agent's row.
        data: Result as it is kept.
        evaluation: File that the result was read from, or written to.
    """

    saved: checkpoint.SavedModel
    task: str
    suite: Suite
    edition: Edition
    name: str
    data: dict[str, Any]
    evaluation: Path

    @property
    def result(self) -> dict[str, Any]:
        """The agent's entry in `data`, with `worlds` and `families`."""
        return self.data["controllers"][self.name]

    @property
    def leaderboard_result(self) -> Result:
        """The agent's result as leaderboards use it."""
        (one,) = scores.extract_results(self.data, self.suite, self.edition, str(self.evaluation))
        return one

    @property
    def group(self) -> str:
        """Group of runs of all training seeds: environment, algorithm, suite."""
        return "/".join((self.saved.env["id"], str(self.saved.config.algo.name), self.suite.name))


def prepare_submission(run: str, *, name: str | None = None, evaluation: Path | None = None, threads: int = 1) -> Submission:
    """Check an agent with its evaluation; if there is none, evaluate the agent and keep the evaluation beside the model.

    Args:
        run: Run folder, model file, or name of an agent of the package.
        name: Name of the row, the same for all training seeds; None: that of the agent, or of the run's folder.
        evaluation: File that `netbuf-gym suite` has written; None: `suite.json` beside the model.
        threads: Number of threads that run the worlds.

    Raises:
        CheckpointError: No such agent, a damaged one, or one that does not fit.
        ConfigError: The name is that of a rule or of another agent; the evaluation is of another suite, version or model, or
            lacks worlds; or the model does not reproduce it.
        OSError: The new evaluation cannot be written.
    """
    saved = checkpoint.read_model(library.find_agent_path(run, "run"))
    task = str((saved.env.get("schema") or {}).get("task"))
    own = scores.get_ranking_suite(task)
    edition = own.load()
    packaged = run.strip("/") in library.names() and saved.path.is_relative_to(library.FOLDER)
    file = evaluation or (Path("runs", "leaderboard", run.strip("/")) if packaged else saved.path.parent) / EVALUATION
    row = name if name is not None else (run.strip("/") if packaged else f"{task}/{saved.path.parent.resolve().name}")
    _require_name(row, task, saved)
    if evaluation is None and not file.is_file():
        with ProgressBar(f"{own.name}: {row}", line_seconds=None) as bar:
            data = scores.play_controller(run, own, edition, threads, scores.WorldCounter(bar, len(edition.cells)))
        scores.write_result(file, data)
    data = scores.read_result(file)
    result, digest = _find_own_result(data, saved, file)
    scores.extract_results({**data, "controllers": {row: result}}, own, edition, str(file))
    about = scores.describe_agent(saved) | {"group": row, "model_sha256": digest}
    about["decision_us"] = frozen.round_floats(
        runner.measure_decision_us(own, edition.cells[0], SavedAgent(saved, row))
    )  # on this machine
    about["families"] = report.summarise(scores.restore_played(result, own, edition, f"{file}: {row}"), own, edition.families)
    made = Submission(saved, task, own, edition, row, {**data, "controllers": {row: {**result, **about}}}, file)
    require_reproduced(made, sample_worlds(edition, np.random.default_rng()))
    return made


def keep_submission(one: Submission, folder: Path) -> Path:
    """Write an agent's result as rows below a folder, one file per training seed, and return the file.

    Raises:
        ConfigError: The file exists with rows of another model or name.
        OSError: The file cannot be written.
    """
    found = rows.parse_result(one.data, one.name)
    name = f"{one.name.replace('/', '-')}-seed{one.saved.config.seed}"
    path = rows.get_folder(one.suite, folder) / f"{name}.csv"
    if path.is_file():
        there = rows.read(path)
        if (there.controller, there.about.get("model_sha256")) != (one.name, found.about.get("model_sha256")):
            said = f"name = {shown(one.name)}: {path} holds rows of another model, {there.controller}"
            raise ConfigError(f"{said}; valid: another name")
    rows.write(path, replace(found, about={**found.about, "machine": rows.read_processor_name()}), one.suite, one.edition)
    return path


def read_handed_in(own: Suite, folder: Path) -> list[Result]:
    """Return kept results of agents submitted to the suite's present edition."""
    found: list[Result] = []
    for path in sorted(rows.get_folder(own, folder).glob("*.csv")):
        with suppress(ConfigError):  # of another edition, or damaged: `show` says so
            found += scores.collect_results([path], own, own.load())
    return found


def require_seeds(handed: Sequence[Submission], before: Sequence[Result]) -> dict[str, int]:
    """Check the training seeds of agents that are submitted together.

    Args:
        handed: Agents to submit.
        before: Earlier submissions to their suites.

    Returns:
        Number of training seeds that each row then has, by name.

    Raises:
        ConfigError: Two models of one training seed share a name, or one model has two names.
    """
    found, rows = [*before], {}
    for one in handed:
        for other in found:
            if (digest := other.about.get("model_sha256")) and digest == one.result["model_sha256"] and other.name != one.name:
                raise ConfigError(f"name = {shown(one.name)}: {one.saved.path} is handed in as {other.name}; valid: that name")
        scores.require_seed(one.leaderboard_result, found)
        found = scores.drop_duplicates([*found, one.leaderboard_result])
    for one in handed:
        rows[one.name] = sum(other.about.get("group") == one.name for other in found)
    return rows


def _require_name(name: str, task: str, saved: checkpoint.SavedModel) -> None:
    """Raise ConfigError unless a row of this agent may have this name."""
    if not NAME.fullmatch(name):
        raise ConfigError(f"name = {shown(name)}; valid: letters, digits and any of ._+-, in parts with / between them")
    if not scores.is_free_name(task, name):
        raise ConfigError(f"name = {shown(name)} is that of a controller of {task}; valid: a name of its own")
    if name in library.names() and resolve.compute_model_digest(name) != resolve.compute_model_digest(str(saved.path)):
        raise ConfigError(f"name = {shown(name)} is that of another agent, of the package; valid: a name of its own")


def find_packaged_twin(one: Submission) -> str | None:
    """Return the name of the package's agent that is the same model, whose row stands for both; None if there is none."""
    digest = one.result["model_sha256"]
    return next((name for name in library.names() if name != one.name and resolve.compute_model_digest(name) == digest), None)


def _find_own_result(data: dict[str, Any], saved: checkpoint.SavedModel, file: Path) -> tuple[dict[str, Any], str]:
    """Return the result of this model among those of a file, and the model's digest.

    Raises:
        ConfigError: The file has no result of this model.
    """
    digest = resolve.compute_model_digest(str(saved.path))
    for one in data["controllers"].values():
        if digest is not None and one.get("model_sha256") == digest:
            return one, digest
    found = ", ".join(f"{name} ({one.get('model_sha256')})" for name, one in data["controllers"].items())
    raise ConfigError(f"{file}: has results of {found}, not of {saved.path} ({digest}); valid: an evaluation of that model")


def sample_worlds(edition: Edition, rng: np.random.Generator) -> list[Cell]:
    """Draw the worlds to replay at random, `SAMPLED` of each family."""
    picked = []
    for family in edition.families:
        cells = edition.of([family])
        picked += [cells[k] for k in rng.permutation(len(cells))[:SAMPLED]]
    return picked


def require_reproduced(one: Submission, cells: Sequence[Cell]) -> None:
    """Raise ConfigError unless the model reproduces its submitted figures.

    They must recur in nearly all of the worlds, and the mean score must not be lower.
    """
    controller = SavedAgent(one.saved, one.name)
    resolve.require_fit(controller, cells, one.suite)
    played = runner.run(one.suite, cells, controller)
    for metric in one.suite.metrics:
        _require_same_metric(one, cells, metric.key, np.array(played.of(metric.key)))
    key = one.suite.score.key
    again = played.of(key)
    said = [np.nan if (was := one.result["worlds"][cell.name][key]) is None else was for cell in cells]
    off = gate.find_changed_scores(cells, said, again)
    better = float(np.nansum(np.array(said) - np.array(again))) / len(cells)
    if not gate.is_reproduced(off, len(cells)) or better > gate.TOLERANCE:
        world, (was, now) = max(off.items(), key=lambda entry: (entry[1][0] or 0) - entry[1][1])
        what = f"{one.evaluation}: {one.saved.path} does not reproduce its {key} in {len(off)} of {len(cells)} worlds"
        raise ConfigError(f"{what}: in {world} it has {now:.4g}, not {was}; valid: its own results, within {gate.TOLERANCE:g}")


def _require_same_metric(one: Submission, cells: Sequence[Cell], key: str, again: np.ndarray) -> None:
    """Raise ConfigError unless a metric other than the score recurs within a share of `gate.TOLERANCE` in nearly all worlds."""
    said = np.array([np.nan if (was := one.result["worlds"][cell.name][key]) is None else was for cell in cells], float)
    same = np.isclose(said, again, rtol=gate.TOLERANCE, atol=1e-6, equal_nan=True)
    off = [at for at, held in enumerate(same) if not held]
    if key != one.suite.score.key and not gate.is_reproduced(off, len(cells)):
        what = f"{one.evaluation}: {one.saved.path} does not reproduce its {key} in {len(off)} of {len(cells)} worlds"
        world, was, now = cells[off[0]].name, said[off[0]], again[off[0]]
        raise ConfigError(f"{what}: in {world} it has {now:.4g}, not {was:.4g}; valid: its own results")


def tabulate_families(one: Submission) -> tuple[list[str], list[list[Any]]]:
    """Return header and rows of the table of a submission's metrics by family."""
    metrics = one.suite.metrics
    rows = [
        [family, found["worlds"], *(found.get(metric.key) for metric in metrics)]
        for family, found in one.result["families"].items()
    ]
    return ["family", "worlds", *(metric.key for metric in metrics)], rows


def list_measures(one: Submission) -> dict[str, float]:
    """Return a submission's metrics, JSON-able: `score/FAMILY`, `cpu_seconds`, `decision_us` and the like."""
    key = one.suite.score.key
    found = {f"{key}/{family}": row[key] for family, row in one.result["families"].items() if row[key] is not None}
    costs = {name: one.result[name] for name in ("seconds", "cpu_seconds", "decision_us") if one.result.get(name) is not None}
    return found | costs | {"timesteps": int(one.saved.progress["timesteps"])}


def resolve_tasks(task: str | None) -> list[str]:
    """Return the named task, or all tasks for None.

    Raises:
        ConfigError: An unknown task.
    """
    return tasks.names() if task is None else [tasks.get(task).name]
