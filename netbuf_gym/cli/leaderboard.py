"""`netbuf-gym leaderboard`: submission, ranking and check of agents."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from netbuf_gym import tasks
from netbuf_gym.cli.common import format_keys
from netbuf_gym.controllers.code_references import is_compiled, is_python
from netbuf_gym.envs.engine import MAX_THREADS
from netbuf_gym.errors import ConfigError, quote, require_extra
from netbuf_gym.utils import overrides
from netbuf_gym.utils.arguments import check_choice, check_integer, check_text
from netbuf_gym.utils.progress import print_line
from netbuf_gym.utils.tables import markdown_table

KEYS = {
    "task": "one task (default: all with results)",
    "results": "folder of kept rows (default: the checkout's, or the package's)",
    "handed_in": "folder of submitted rows (default: results/handed_in)",
    "runs": "folder of wandb runs (default: runs/leaderboard)",
    "project": "wandb project ENTITY/PROJECT: read by show, written by submit (default: netbuf-gym of submit, none of show)",
    "mode": "submit: offline or online (default: WANDB_MODE; else online if WANDB_API_KEY is set, offline if not)",
    "name": "submit: name of the row, the same for all training seeds (default: the run's)",
    "partial": "submit: true accepts rows of fewer than three training seeds, and marks them (default: false)",
    "evaluation": "submit: result.json of `netbuf-gym suite v1/TASK` to compare with (default: suite.json beside it, if any)",
    "threads": "threads that run the worlds (default: one for each core)",
}
"""Settings with their meanings."""

EPILOG = f"""verbs:
  submit RUN...  check an agent and log it to wandb: config, metrics, table, model, result. RUN is a run folder, a model file
                 or an agent of the package. It is played in all worlds of the suite of its task, timed, and those figures are
                 kept; a copy of an agent of the package is said to be one. Refused, with the reason: an evaluation beside
                 the model that is of another version or model, lacks worlds, or is not reproduced; a second model of one
                 name and training seed; training seeds that share their parameters; fewer than three training seeds of a
                 name, earlier submissions included. To send offline runs later:
                 wandb sync runs/leaderboard/wandb/offline-run-*
  show           rank the kept results and what was submitted here; show apart, without a place, what lies in the folders
                 or a project and was not played here (unchecked); show places in the suites of the field; mark stale rows
  check          replay five worlds of each family with the agents of the package, and compare the scores with their rows:
                 exit status 1 if more than a tenth of an agent's scores differ, 2 if an agent has no rows. Changed worlds,
                 as controls without learning show them, are reported.

`netbuf-gym results make leaderboard` plays missing and stale rows, `netbuf-gym results pages` writes the pages.

settings, KEY=VALUE:
{format_keys(KEYS)}

Exit status: 0 done, 1 a result is not reproduced (check), 2 bad input or refused, 3 a fault of the simulator, 130 interrupted.

examples:
  netbuf-gym leaderboard show task=queue_threshold
  netbuf-gym leaderboard submit runs/mine/seed1 runs/mine/seed2 runs/mine/seed3 name=queue_threshold/mine
  netbuf-gym leaderboard show task=queue_threshold project=me/netbuf-gym
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    parser.add_argument("verb", choices=VERBS, help="action, see below")
    parser.add_argument("settings", metavar="RUN|KEY=VALUE", nargs="*", help="agents to submit, and settings, see below")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb and return its exit status."""
    runs = [one for one in arguments.settings if "=" not in one]
    if runs and arguments.verb != "submit":
        raise ConfigError(f"argument {quote(runs[0])} is unknown to {arguments.verb}; valid: KEY=VALUE")
    found = overrides.read_overrides([one for one in arguments.settings if "=" in one], KEYS)
    threads = found.pop("threads", min(len(os.sched_getaffinity(0)), MAX_THREADS))
    threads = check_integer("threads", threads, 1, MAX_THREADS)
    given = {key: str(value).lower() if isinstance(value, bool) else check_text(key, value) for key, value in found.items()}
    if arguments.verb != "show":  # which plays nothing
        with require_extra("the leaderboard", "train"):
            import netbuf_gym.leaderboard.submission  # noqa: F401
    names = tasks.names() if "task" not in given else [tasks.get(given["task"]).name]
    return VERBS[arguments.verb](runs, names, given, threads)


def _get_results_folder(given: dict[str, str]) -> Path | None:
    """Return the folder of kept rows; None: the package's."""
    return Path(given["results"]) if "results" in given else None


def _get_handed_in_folder(given: dict[str, str]) -> Path:
    return Path(given.get("handed_in", "results/handed_in"))


def _get_runs_folder(given: dict[str, str]) -> Path:
    return Path(given.get("runs", "runs/leaderboard"))


def _submit(runs: Sequence[str], names: Sequence[str], given: dict[str, str], threads: int) -> int:
    from netbuf_gym.leaderboard import submission
    from netbuf_gym.training.schema import MIN_TRAINING_SEEDS

    if not runs:
        raise ConfigError("missing: RUN, e.g. netbuf-gym leaderboard submit queue_threshold/ppo")
    for word in runs:
        if is_compiled(word) or is_python(word) or word.endswith(".py"):
            valid = "a trained agent; netbuf-gym suite evaluates code"
            raise ConfigError(f"RUN = {quote(word)} is code of one's own; valid: {valid}")
    partial = check_choice("partial", given.get("partial", "false"), ("true", "false")) == "true"
    mode = submission.resolve_mode(given.get("mode"))
    entity, _, project = given.get("project", submission.PROJECT).rpartition("/")
    submission.require_wandb()
    evaluation = Path(given["evaluation"]) if "evaluation" in given else None
    submission.require_own_parameters(runs)
    submissions = [
        submission.prepare_submission(word, name=given.get("name"), evaluation=evaluation, threads=threads) for word in runs
    ]
    earlier = [
        one
        for suite in {one.suite.name: one.suite for one in submissions}.values()
        for one in submission.read_handed_in(suite, _get_handed_in_folder(given), _get_runs_folder(given))
    ]
    incomplete = {
        name: f"{seeds} of at least {MIN_TRAINING_SEEDS} training seeds"
        for name, seeds in submission.require_seeds(submissions, earlier).items()
        if seeds < MIN_TRAINING_SEEDS
    }
    if not partial:
        for name, seeds in incomplete.items():
            valid = f"RUN of the others too, with name={name}, or partial=true, which marks the row"
            raise ConfigError(f"{name} has {seeds}; valid: {valid}")
    for one in submissions:
        submission.keep_submission(one, _get_handed_in_folder(given), _get_runs_folder(given))
        folder = submission.log_submission(one, _get_runs_folder(given), project or submission.PROJECT, entity or None, mode)
        sent = f"send it with: wandb sync {folder}" if mode == "offline" else "sent"
        print(f"{one.name}: submitted to {one.suite.name}, group {one.group}, {folder}; {sent}")
        if (packaged := submission.find_packaged_twin(one)) is not None:
            print(f"{one.name}: the same model as {packaged} of the package, whose row stands for both")
    for name, seeds in incomplete.items():
        print(f"{name}: has {seeds}, and its row is marked; submit the others with name={name}")
    return 0


def _show(runs: Sequence[str], names: Sequence[str], given: dict[str, str], threads: int) -> int:
    from netbuf_gym.leaderboard import field_reports, handed_in, standings

    runs_folder = _get_runs_folder(given)
    with tempfile.TemporaryDirectory() as fetched:
        more = handed_in.find_offline_results(runs_folder)
        if "project" in given:
            more += handed_in.download_project_results(given["project"], Path(fetched))
        held = [task for task in names if "task" in given or standings.has_results(task, _get_results_folder(given))]
        if not held:
            raise ConfigError(
                f"results = {_get_results_folder(given)} holds no results; valid: a folder of `netbuf-gym results make`"
            )
        for task in held:
            own = standings.get_ranking_suite(task)
            files = [*handed_in.find_rows(own, _get_handed_in_folder(given)), *more]
            standing = standings.compute_standings(
                task, _get_results_folder(given), files, lambda path: handed_in.is_checked(path, runs_folder)
            )
            print(f"{own.name}\n\n{standings.format_table(task, [one for one in standing if one.checked])}\n")
            if flows := standings.describe_flows(standing):
                print(f"{flows}\n")
            if unchecked := [one for one in standing if not one.checked]:
                print(f"unchecked: handed in, and not played here\n\n{standings.format_table(task, unchecked)}\n")
            if places := field_reports.tabulate_places(task):
                print(f"{places.title.lower()}\n\n{markdown_table(places.header, places.rows)}\n\n* {places.says}\n")
    print("\n".join(f"* {line}" for line in standings.READING))
    return 0


def _check(runs: Sequence[str], names: Sequence[str], given: dict[str, str], threads: int) -> int:
    from netbuf_gym.leaderboard import results
    from netbuf_gym.zoo import library

    agents = [name for name in library.names() if name.partition("/")[0] in names]
    held = results.check_agents(agents, _get_results_folder(given), threads, lambda name: print_line(f"replaying {name}"))
    print(results.format_gate(held))
    return int(not all(one.reproduces_rows for one in held))


VERBS: dict[str, Callable[[Sequence[str], Sequence[str], dict[str, str], int], int]] = {
    "submit": _submit,
    "show": _show,
    "check": _check,
}
