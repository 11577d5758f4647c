"""Submission of an agent: its evaluation on the suite of its task, checked, kept as rows, and logged to Weights & Biases.

A run is logged per training seed, with its config, measures, table and model. Without an account the runs are written below a
folder, and `wandb sync` sends them later. Each run holds its result as a file, `result.json`, from which leaderboards are made,
for runs of this machine and of a project alike.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.errors import ConfigError, require_extra, shown
from netbuf_gym.evaluation.comparison import WorldProgress
from netbuf_gym.evaluation.suites import Cell, Edition, Suite
from netbuf_gym.evaluation.suites.frozen import round_floats
from netbuf_gym.leaderboard import controllers, play, reports, results, rows, standings
from netbuf_gym.leaderboard.results import DECISION_TOLERANCE
from netbuf_gym.leaderboard.scoring import Result
from netbuf_gym.training.checkpoints import checkpoint
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
SAMPLED = 2
"""Number of replayed worlds per family, drawn anew each time so that nobody knows them beforehand."""
RESULT = "result.json"
"""File of the result in a logged run."""
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
    own = standings.get_ranking_suite(task)
    edition = own.load()
    packaged = run.strip("/") in library.names() and saved.path.is_relative_to(library.FOLDER)
    file = evaluation or (Path("runs", "leaderboard", run.strip("/")) if packaged else saved.path.parent) / EVALUATION
    row = name if name is not None else (run.strip("/") if packaged else f"{task}/{saved.path.parent.resolve().name}")
    _require_name(row, task, saved)
    if evaluation is None and not file.is_file():
        with ProgressBar(f"{own.name}: {row}", line_seconds=None) as bar:
            data = play_controller(run, own, edition, threads, WorldProgress(bar, len(edition.cells), text=""))
        rows.write_result(file, data)
    data = rows.read_result(file)
    result, digest = _find_own_result(data, saved, file)
    standings.extract_results({**data, "controllers": {row: result}}, own, edition, str(file))
    about = controllers.describe_agent(saved) | {"group": row, "model_sha256": digest}
    about["decision_us"] = play.measure_decision_us(own, edition.cells[0], SavedAgent(saved, row))  # on this machine
    played = _restore_played(result, own, edition, f"{file}: {row}")
    about["families"] = reports.summarise(played, own, edition.families)
    made = Submission(saved, task, own, edition, row, {**data, "controllers": {row: {**result, **about}}}, file)
    require_reproduced(made, draw_worlds(edition, np.random.default_rng()))
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


def _restore_played(result: dict[str, Any], own: Suite, edition: Edition, where: str) -> play.SuiteRun:
    """Return a kept result that holds all worlds of an edition as if the controller had just played.

    Raises:
        ConfigError: A world lacks a metric, or holds a value that is no number.
    """
    keys, values = [metric.key for metric in own.metrics], []
    for cell in edition.cells:
        world = result["worlds"][cell.name]
        lacking = [key for key in keys if not isinstance(world, dict) or key not in world]
        if lacking:
            raise ConfigError(f"{where}, {cell.name}: lacks {lacking[0]}; valid: {', '.join(keys)}")
        values.append({key: rows.read_value(world, key, f"{where}, {cell.name}") for key in keys})
    return play.SuiteRun(where, edition.cells, values, np.nan, np.nan)


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


def read_handed_in(own: Suite, folder: Path, runs: Path) -> list[Result]:
    """Return results submitted to the suite's present edition: kept rows below a folder, and runs logged below another."""
    edition, found = own.load(), list[Result]()
    for path in (*sorted(rows.get_folder(own, folder).glob("*.csv")), *find_offline_results(runs)):
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
        ConfigError: Two models of one training seed share a name, or one model has two names.
    """
    found, seeds = [*before], dict[str, int]()
    for one in handed:
        for other in found:
            if (digest := other.about.get("model_sha256")) and digest == one.result["model_sha256"] and other.name != one.name:
                raise ConfigError(f"name = {shown(one.name)}: {one.saved.path} is submitted as {other.name}; valid: that name")
        standings.require_seed(one.leaderboard_result, found)
        found = standings.drop_duplicates([*found, one.leaderboard_result])
    for one in handed:
        seeds[one.name] = sum(other.about.get("group") == one.name for other in found)
    return seeds


def _require_name(name: str, task: str, saved: checkpoint.SavedModel) -> None:
    """Raise ConfigError unless a row of this agent may have this name."""
    if not NAME.fullmatch(name):
        raise ConfigError(f"name = {shown(name)}; valid: letters, digits and any of ._+-, in parts with / between them")
    if not standings.is_free_name(task, name):
        raise ConfigError(f"name = {shown(name)} is that of a controller of {task}; valid: a name of its own")
    if name in library.names() and controllers.compute_model_digest(name) != controllers.compute_model_digest(str(saved.path)):
        raise ConfigError(f"name = {shown(name)} is that of another agent, of the package; valid: a name of its own")


def find_packaged_twin(one: Submission) -> str | None:
    """Return the name of the package's agent that is the same model, whose row stands for both; None if there is none."""
    digest = one.result["model_sha256"]
    return next(
        (name for name in library.names() if name != one.name and controllers.compute_model_digest(name) == digest), None
    )


def _find_own_result(data: dict[str, Any], saved: checkpoint.SavedModel, file: Path) -> tuple[dict[str, Any], str]:
    """Return the result of this model among those of a file, and the model's digest.

    Raises:
        ConfigError: The file has no result of this model.
    """
    digest = controllers.compute_model_digest(str(saved.path))
    for one in data["controllers"].values():
        if digest is not None and one.get("model_sha256") == digest:
            return one, digest
    found = ", ".join(f"{name} ({one.get('model_sha256')})" for name, one in data["controllers"].items())
    raise ConfigError(f"{file}: has results of {found}, not of {saved.path} ({digest}); valid: an evaluation of that model")


def draw_worlds(edition: Edition, rng: np.random.Generator) -> list[Cell]:
    """Draw the worlds to replay at random, `SAMPLED` of each family."""
    picked = []
    for family in edition.families:
        cells = edition.of([family])
        picked += [cells[k] for k in rng.permutation(len(cells))[:SAMPLED]]
    return picked


def require_reproduced(one: Submission, cells: Sequence[Cell]) -> None:
    """Raise ConfigError unless the model reproduces its submitted figures.

    Each metric must recur in nearly all of the worlds, within `DECISION_TOLERANCE` (of the score absolutely), and the mean
    score must not be lower.
    """
    controller = SavedAgent(one.saved, one.name)
    controllers.require_fit(controller, cells, one.suite)
    played = play.run(one.suite, cells, controller)
    for metric in (*one.suite.metrics[1:], one.suite.score):
        key, scored = metric.key, metric is one.suite.score
        said = np.array([rows.read_value(one.result["worlds"][cell.name], key, cell.name) for cell in cells])
        now, tolerance = np.array(played.of(key)), (0.0, DECISION_TOLERANCE) if scored else (DECISION_TOLERANCE, 1e-6)
        off = np.flatnonzero(~np.isclose(said, now, *tolerance, equal_nan=True)).tolist()
        lower = float(np.nansum(said - now)) / len(cells) if scored else 0.0
        if not results.is_reproduced(off, len(cells)) or lower > DECISION_TOLERANCE:
            at = max(off, key=lambda k: np.nan_to_num(said[k]) - np.nan_to_num(now[k]))
            what = f"{one.evaluation}: {one.saved.path} does not reproduce its {key} in {len(off)} of {len(cells)} worlds"
            values = f"in {cells[at].name} it has {now[at]:.4g}, not {said[at]:.4g}"
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


def find_offline_results(folder: Path) -> list[Path]:
    """Return the result files of runs that were written below a folder, the newest first."""
    return sorted(folder.glob(f"wandb/*run-*/files/{RESULT}"), reverse=True)


def download_project_results(path: str, folder: Path, api: Any = None) -> Iterator[Path]:
    """Download the result of each run of a project.

    Args:
        path: ENTITY/PROJECT.
        folder: Folder that results are downloaded into.
        api: API object to use; None: `wandb.Api()`.

    Yields:
        Downloaded result files.

    Raises:
        MissingExtraError: wandb is not installed.
        ConfigError: No account, or no such project.
    """
    with require_extra("a project's leaderboard", "leaderboard"):
        import wandb
    try:
        runs = list((wandb.Api() if api is None else api).runs(path, filters={"jobType": "leaderboard"}))
        for run in runs:
            own = folder / str(run.id)
            run.file(RESULT).download(root=str(own), replace=True)
            yield own / RESULT
    except (wandb.Error, ValueError) as error:
        said = f"project = {path!r}: {' '.join(str(error).split())}"
        raise ConfigError(f"{said}; valid: ENTITY/PROJECT that your account (wandb login) can read") from None
