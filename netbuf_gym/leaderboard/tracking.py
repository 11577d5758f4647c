"""Submissions on Weights & Biases: one run per training seed, with its config, measures, table and model.

Without an account the runs are written below a folder, and `wandb sync` sends them later. Each run holds its result as a file,
`result.json`, from which leaderboards are made, for runs of this machine and of a project alike.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from netbuf_gym.errors import ConfigError, require_extra
from netbuf_gym.evaluation.suites import Suite
from netbuf_gym.evaluation.suites.scoring import Result
from netbuf_gym.leaderboard import scores, submission
from netbuf_gym.training.config import to_plain
from netbuf_gym.version import __version__
from netbuf_gym.zoo import library

RESULT = "result.json"
PROJECT = "netbuf-gym"
MODES = ("offline", "online")


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
    with require_extra("handing in to the leaderboard", "leaderboard"):
        import wandb  # noqa: F401


def log_submission(
    one: submission.Submission, folder: Path, project: str = PROJECT, entity: str | None = None, mode: str = "offline"
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
        run.log({"families": _make_table(wandb, one), **submission.list_measures(one)})
        run.summary.update(submission.list_measures(one))
        run.log_artifact(_make_artifact(wandb, one, seed, about))
        written = Path(run.dir) / RESULT
        scores.write_result(written, one.data)
        run.save(str(written), base_path=run.dir, policy="now")
        return Path(run.dir).parent


def _make_table(wandb: Any, one: submission.Submission) -> Any:
    columns, rows = submission.tabulate_families(one)
    return wandb.Table(columns=columns, data=rows)


def _make_artifact(wandb: Any, one: submission.Submission, seed: int, about: dict[str, Any]) -> Any:
    """Return an artifact of the model and all files needed to use it, named by task, algorithm and seed."""
    saved = one.saved
    name = f"{one.task}-{saved.config.algo.name}-seed{seed}"
    known = scores.describe_agent(saved) | about | {"env": saved.env["id"], "model_sha256": one.result["model_sha256"]}
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


def read_handed_in(folder: Path, own: Suite) -> list[Result]:
    """Return results submitted to the suite's present edition, from the runs below a folder."""
    found: list[Result] = []
    for path in find_offline_results(folder):
        with suppress(ConfigError):  # of another edition, or damaged: `show` says so
            found += scores.collect_results([path], own, own.load())
    return scores.drop_duplicates(found)


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
