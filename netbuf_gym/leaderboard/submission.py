"""Submission of an agent: played on the suite of its task, kept as rows, and logged to Weights & Biases.

What is kept are the figures of that play, and never those of a file that came with the model. A run is logged per
training seed, with its config, measures, table and model. Without an account the runs are written below a folder, and
`wandb sync` sends them later. Each run holds its result as a file, `result.json`, from which leaderboards are made, for runs of
this machine and of a project alike.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.errors import ConfigError, quote, require_extra
from netbuf_gym.evaluation.comparison import WorldProgress
from netbuf_gym.evaluation.suites import Cell, Edition, Suite
from netbuf_gym.evaluation.suites.frozen import round_floats
from netbuf_gym.leaderboard import controllers, handed_in, play, reports, results, rows, scoring, standings
from netbuf_gym.leaderboard.handed_in import RESULT
from netbuf_gym.leaderboard.results import DECISION_TOLERANCE
from netbuf_gym.leaderboard.scoring import Result
from netbuf_gym.training.checkpoints import checkpoint
from netbuf_gym.training.checkpoints.digest import is_same_sketch, sketch_parameters
from netbuf_gym.training.checkpoints.saved_agent import SavedAgent
from netbuf_gym.training.config import to_plain
from netbuf_gym.utils.files import to_plain_values
from netbuf_gym.utils.progress import ProgressBar
from netbuf_gym.version import __version__
from netbuf_gym.zoo import library

EVALUATION = "suite.json"
"""File of the evaluation, beside the model in a run's folder."""
NAME = re.compile(r"[A-Za-z0-9][\w.+-]*(/[A-Za-z0-9][\w.+-]*)*")
"""Valid names of rows."""
PROJECT = "netbuf-gym"
MODES = ("offline", "online")


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
        (one,) = standings.extract_results(self.data, self.suite, self.edition, str(self.evaluation))
        return one

    @property
    def group(self) -> str:
        """Group of runs of all training seeds: environment, algorithm, suite."""
        return "/".join((self.saved.env["id"], str(self.saved.config.algo.name), self.suite.name))


def prepare_submission(run: str, *, name: str | None = None, evaluation: Path | None = None, threads: int = 1) -> Submission:
    """Play an agent in all worlds of its suite, and check it together with the evaluation that came with it, if one did.

    Args:
        run: Run folder, model file, or name of an agent of the package.
        name: Name of the row, the same for all training seeds; None: that of the agent, or of the run's folder.
        evaluation: File that `netbuf-gym suite` has written; None: `suite.json` beside the model, written if there is none.
        threads: Number of threads that run the worlds.

    Raises:
        CheckpointError: No such agent, a damaged one, or one that does not fit.
        ConfigError: The name is that of a rule or of another agent; the evaluation is of another suite, version or model, or
            lacks worlds; or the model does not reproduce it.
        OSError: The new evaluation cannot be written.
    """
    saved = checkpoint.read_model(library.find_agent_path(run, "run"))
    task = str((saved.env.get("schema") or {}).get("task"))
    own = standings.get_ranking_suite(task)
    edition = own.load()
    packaged = run.strip("/") in library.names() and saved.path.is_relative_to(library.FOLDER)
    file = evaluation or (Path("runs", "leaderboard", run.strip("/")) if packaged else saved.path.parent) / EVALUATION
    row = name if name is not None else (run.strip("/") if packaged else f"{task}/{saved.path.parent.resolve().name}")
    _require_name(row, task, saved)
    said = None
    if evaluation is not None or file.is_file():
        said = _read_evaluation(file, row, saved, own, edition)
    with ProgressBar(f"{own.name}: {row}", line_seconds=None) as bar:
        played = play_controller(run, own, edition, threads, WorldProgress(bar, len(edition.cells), text=""))
    if said is None:
        rows.write_result(file, played)
    result = next(iter(played["controllers"].values()))
    result |= {"group": row, "parameters": sketch_parameters(saved.path)}
    made = Submission(saved, task, own, edition, row, {**played, "controllers": {row: result}}, file)
    if said is not None:
        require_reproduced(made, said)
    return made


def play_controller(
    word: str, own: Suite, edition: Edition, threads: int = 1, each: Callable[[Cell], None] = lambda cell: None
) -> dict[str, Any]:
    """Play a controller on all worlds of a suite and return its result, JSON-able.

    Raises:
        ConfigError, CheckpointError: No such controller, or one that does not fit a family.
    """
    one = controllers.resolve_controller(word, own)
    controllers.require_fit(one, edition.cells, own)
    played = play.run(own, edition.cells, one, threads=threads, each=each)
    found = {one.name: reports.summarise(played, own, edition.families)}
    command = f"netbuf-gym suite {own.name} {shlex.quote(f'controller={word}')}"
    models = {one.name: controllers.compute_model_digest(word)}
    data: Any = round_floats(to_plain_values(reports.to_dict(own, edition, [played], found, models, command)))
    about: dict[str, Any] = {"decision_us": play.measure_decision_us(own, edition.cells[0], one)}
    if isinstance(one, SavedAgent):
        about |= controllers.describe_agent(one.saved)
    data["controllers"][one.name] |= about
    return data


def _read_evaluation(
    file: Path, row: str, saved: checkpoint.SavedModel, own: Suite, edition: Edition
) -> dict[str, dict[str, float]]:
    """Return the metrics by world that a file has for a model.

    Raises:
        ConfigError: No result of this model, another edition, missing worlds, a world that lacks a metric, or no number.
    """
    data = rows.read_result(file)
    result = _find_own_result(data, saved, file)
    standings.extract_results({**data, "controllers": {row: result}}, own, edition, str(file))
    keys, found = [metric.key for metric in own.metrics], {}
    for cell in edition.cells:
        world, where = result["worlds"][cell.name], f"{file}: {row}, {cell.name}"
        lacking = [key for key in keys if not isinstance(world, dict) or key not in world]
        if lacking:
            raise ConfigError(f"{where}: lacks {lacking[0]}; valid: {', '.join(keys)}")
        found[cell.name] = {key: rows.read_value(world, key, where) for key in keys}
    return found


def keep_submission(one: Submission, folder: Path, runs: Path) -> Path:
    """Write an agent's result as rows below a folder, one file per training seed, and return the file.

    The file is recorded as checked beside the logged runs, below `runs`.

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
            said = f"name = {quote(one.name)}: {path} holds rows of another model, {there.controller}"
            raise ConfigError(f"{said}; valid: another name")
    rows.write(path, replace(found, about={**found.about, "machine": rows.read_processor_name()}), one.suite, one.edition)
    handed_in.mark_checked(path, runs)
    return path


def read_handed_in(own: Suite, folder: Path, runs: Path) -> list[Result]:
    """Return checked results submitted to the suite's present edition: rows kept below `folder`, and logged below `runs`."""
    edition, found = own.load(), list[Result]()
    for path in (*handed_in.find_rows(own, folder), *handed_in.find_offline_results(runs)):
        if handed_in.is_checked(path, runs):
            with suppress(ConfigError):  # of another edition, or damaged: `show` says so
                found += standings.collect_results([path], own, edition)
    return found


def require_seeds(handed: Sequence[Submission], before: Sequence[Result]) -> dict[str, int]:
    """Check the training seeds of agents that are submitted together.

    Args:
        handed: Agents to submit.
        before: Earlier submissions to their suites.

    Returns:
        Number of training seeds that each row then has, by name.

    Raises:
        ConfigError: Two models of one training seed share a name, one model has two names, or two training seeds share their
            parameters.
    """
    found, seeds = [*before], dict[str, int]()
    for one in handed:
        for other in found:
            if (digest := other.about.get("model_sha256")) and digest == one.result["model_sha256"] and other.name != one.name:
                raise ConfigError(f"name = {quote(one.name)}: {one.saved.path} is submitted as {other.name}; valid: that name")
            if standings.is_same_model(one.leaderboard_result, other):
                _require_same_seed(one.saved, other.about.get("seed"), other.row)
        standings.require_seed(one.leaderboard_result, found)
        found = standings.drop_duplicates([*found, one.leaderboard_result])
    for one in handed:
        seeds[one.name] = sum(other.about.get("group") == one.name for other in found)
    return seeds


def require_own_parameters(runs: Sequence[str]) -> None:
    """Check, before anything is played, that runs of different training seeds do not share their parameters.

    Raises:
        CheckpointError: No such agent, or a damaged one.
        ConfigError: Two of them do.
    """
    found: list[tuple[str, checkpoint.SavedModel, list[float]]] = []
    for run in runs:
        saved = checkpoint.read_model(library.find_agent_path(run, "run"))
        sketch = sketch_parameters(saved.path)
        for other, theirs, parameters in found:
            if is_same_sketch(sketch, parameters):
                _require_same_seed(saved, int(theirs.config.seed), other)
        found.append((run, saved, sketch))


def _require_same_seed(saved: checkpoint.SavedModel, seed: Any, other: str) -> None:
    """Raise ConfigError for a model that shares its parameters with that of another training seed."""
    if (own := int(saved.config.seed)) != seed:
        said = f"{saved.path}: its parameters, of training seed {own}, are those of training seed {seed} of {other}"
        raise ConfigError(f"{said}; valid: a training of its own for each seed")


def _require_name(name: str, task: str, saved: checkpoint.SavedModel) -> None:
    """Raise ConfigError unless a row of this agent may have this name."""
    if not NAME.fullmatch(name):
        raise ConfigError(f"name = {quote(name)}; valid: letters, digits and any of ._+-, in parts with / between them")
    if not standings.is_free_name(task, name):
        raise ConfigError(f"name = {quote(name)} is that of a controller of {task}; valid: a name of its own")
    if name in library.names() and controllers.compute_model_digest(name) != controllers.compute_model_digest(str(saved.path)):
        raise ConfigError(f"name = {quote(name)} is that of another agent, of the package; valid: a name of its own")


def find_packaged_twin(one: Submission) -> str | None:
    """Return the name of the package's agent that is the same model, whose row stands for both; None if there is none."""
    package = []
    for name in library.names():
        if name.partition("/")[0] == one.task and name != one.name:
            worlds: Mapping[str, float] = {}
            with suppress(ConfigError):  # no rows of this edition: compared by its parameters alone
                worlds = scoring.score_rows(rows.read(rows.get_file(one.suite, name)), one.suite, one.edition).worlds
            package.append(standings.add_parameters(Result(name, worlds)))
    return standings.find_twin(one.leaderboard_result, package)


def _find_own_result(data: dict[str, Any], saved: checkpoint.SavedModel, file: Path) -> dict[str, Any]:
    """Return the result of this model among those of a file.

    Raises:
        ConfigError: The file has no result of this model.
    """
    digest = controllers.compute_model_digest(str(saved.path))
    for one in data["controllers"].values():
        if digest is not None and one.get("model_sha256") == digest:
            return one
    found = ", ".join(f"{name} ({one.get('model_sha256')})" for name, one in data["controllers"].items())
    raise ConfigError(f"{file}: has results of {found}, not of {saved.path} ({digest}); valid: an evaluation of that model")


def require_reproduced(one: Submission, said: Mapping[str, Mapping[str, float]]) -> None:
    """Raise ConfigError unless the metrics by world that came with a model are those that it has just had.

    Each metric must recur in nearly all of the worlds, within `DECISION_TOLERANCE` (of the score absolutely), and the mean
    score must not be lower.
    """
    names = [*said]
    for metric in (*one.suite.metrics[1:], one.suite.score):
        key, scored = metric.key, metric is one.suite.score
        was, now = (
            np.array([rows.read_value(worlds[name], key, name) for name in names]) for worlds in (said, one.result["worlds"])
        )
        tolerance = (0.0, DECISION_TOLERANCE) if scored else (DECISION_TOLERANCE, 1e-6)
        off = np.flatnonzero(~np.isclose(was, now, *tolerance, equal_nan=True)).tolist()
        lower = float(np.nansum(was - now)) / len(names) if scored else 0.0
        if not results.is_reproduced(off, len(names)) or lower > DECISION_TOLERANCE:
            at = max(off, key=lambda k: np.nan_to_num(was[k]) - np.nan_to_num(now[k]))
            what = f"{one.evaluation}: {one.saved.path} does not reproduce its {key} in {len(off)} of {len(names)} worlds"
            values = f"in {names[at]} it has {now[at]:.4g}, not {was[at]:.4g}"
            raise ConfigError(f"{what}: {values}; valid: its own results, within {DECISION_TOLERANCE:g}")


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


def resolve_mode(asked: str | None) -> str:
    """Return how runs are logged: as asked, else by WANDB_MODE, else online if WANDB_API_KEY is set, else offline.

    Raises:
        ConfigError: A mode that is neither offline nor online.
    """
    mode = asked or os.environ.get("WANDB_MODE") or ("online" if os.environ.get("WANDB_API_KEY") else "offline")
    if mode not in MODES:
        raise ConfigError(f"mode = {mode!r}; valid: {', '.join(MODES)}")
    return mode


def require_wandb() -> None:
    """Raise MissingExtraError unless wandb is installed.

    An empty WANDB_MODE counts as unset (`resolve_mode`); since wandb would refuse it, the variable is removed.
    """
    if not os.environ.get("WANDB_MODE", "none"):
        del os.environ["WANDB_MODE"]
    with require_extra("a submission to the leaderboard", "leaderboard"):
        import wandb  # noqa: F401


def log_submission(
    one: Submission, folder: Path, project: str = PROJECT, entity: str | None = None, mode: str = "offline"
) -> Path:
    """Log an agent as a run, and return the folder that the run was written to.

    Raises:
        MissingExtraError: wandb is not installed.
        ConfigError: No account, or a project that cannot be written to.
        OSError: The folder cannot be written.
    """
    require_wandb()
    import wandb

    folder.mkdir(parents=True, exist_ok=True)
    seed, saved = int(one.saved.config.seed), one.saved
    try:
        run = wandb.init(
            project=project,
            entity=entity,
            dir=str(folder),
            mode="offline" if mode == "offline" else "online",
            group=one.group,
            job_type="leaderboard",
            name=f"{one.name}, seed {seed}",
            tags=[one.task, str(saved.config.algo.name), one.suite.name],
            config=to_plain(saved.config),
            settings=wandb.Settings(console="off", silent=True, disable_git=True, save_code=False, x_disable_stats=True),
        )
    except wandb.Error as error:
        raise ConfigError(f"wandb: {' '.join(str(error).split())}; valid: mode=offline, or an account (wandb login)") from None
    with run:
        about = {"suite": one.suite.name, "version": one.edition.version, "digest": one.edition.digest}
        about |= {"netbuf_gym": __version__}
        config: Any = run.config
        config.update({"leaderboard": {**about, **{k: v for k, v in one.result.items() if not isinstance(v, dict)}}})
        columns, table = tabulate_families(one)
        make_table: Any = wandb.Table
        run.log({"families": make_table(columns=columns, data=table), **list_measures(one)})
        run.summary.update(list_measures(one))
        run.log_artifact(_make_artifact(wandb, one, seed, about))
        written = Path(run.dir) / RESULT
        rows.write_result(written, one.data)
        handed_in.mark_checked(written, folder)
        run.save(str(written), base_path=run.dir, policy="now")
        return Path(run.dir).parent


def _make_artifact(wandb: Any, one: Submission, seed: int, about: dict[str, Any]) -> Any:
    """Return an artifact of the model and all files needed to use it, named by task, algorithm and seed."""
    saved = one.saved
    name = f"{one.task}-{saved.config.algo.name}-seed{seed}"
    known = controllers.describe_agent(saved) | about | {"env": saved.env["id"], "model_sha256": one.result["model_sha256"]}
    artifact = wandb.Artifact(name, type="model", metadata=known)
    artifact.add_file(str(saved.path), name=library.MODEL)
    for beside in ("config.yaml", "metrics.json", "card.md"):
        if (saved.path.parent / beside).is_file():
            artifact.add_file(str(saved.path.parent / beside), name=beside)
    with artifact.new_file(RESULT, encoding="utf-8") as file:
        json.dump(one.data, file)
    return artifact
