"""`netbuf-gym leaderboard`: submits, ranks and checks agents."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from netbuf_gym.controllers.code_references import is_compiled, is_python
from netbuf_gym.envs.engine import MAX_THREADS
from netbuf_gym.errors import ConfigError, require_extra, shown
from netbuf_gym.utils import overrides
from netbuf_gym.utils.arguments import check_choice, check_integer, check_text
from netbuf_gym.utils.progress import print_line
from netbuf_gym.utils.tables import markdown_table

HELP = "rank agents of all tasks on suite v1: hand in, show, check"

INTERMIXED = True
"""Options may stand among the settings."""

KEYS = {
    "task": "one task; default: all that there are results of",
    "results": "folder of kept rows; default: the checkout's, or the package's",
    "handed_in": "folder of rows that were handed in; default: results/handed_in",
    "runs": "folder of wandb's runs; default: runs/leaderboard",
    "project": "wandb's ENTITY/PROJECT: read by show, written by submit (default there: netbuf-gym)",
    "mode": "submit: offline or online; default: WANDB_MODE, online where WANDB_API_KEY is set, else offline",
    "name": "submit: of the row, the same for all training seeds; default: the run's",
    "partial": "submit: true hands in rows of fewer than three training seeds, too, which then say so; default: false",
    "evaluation": "submit: result.json of `netbuf-gym suite v1/TASK`; default: suite.json beside the model, or a new one",
    "threads": "that run the worlds; default: one for each core",
}

EPILOG = """verbs:
  submit RUN...  looks an agent through and logs it to wandb: config, measures, table, model, result. RUN is a run's folder, a
                 model's file or an agent of the package, evaluated on the suite of its task unless it was. Refused with the
                 reason: another suite version, worlds that lack, another model, a model that does not reproduce its scores
                 in worlds of every family, another model of the same training seed under the same name, or fewer than three
                 training seeds of a name together with those that were handed in before. Offline runs are sent later:
                 wandb sync runs/leaderboard/wandb/offline-run-*
  show           ranks what the results, the rows and runs that were handed in and a project hold, and says who stands where
                 in the suites of the field; rows that are not current are marked as stale
  check          the package's agents play five worlds of each family again, and are held to their rows: exit status 1 where
                 an agent has another score in more than a tenth of them; worlds that are not what they were, as controls that
                 do not learn show, are told of; 2 where an agent has no rows

`netbuf-gym results make leaderboard` plays what is missing or stale, `netbuf-gym results pages` writes the pages.

settings are KEY=VALUE:
{keys}

Exit status: 0 done, 1 a result does not stand (check), 2 bad input or refused, 3 a fault of the simulator, 130 interrupted.

examples:
  netbuf-gym leaderboard show task=queue_threshold
  netbuf-gym leaderboard submit runs/mine/seed1 runs/mine/seed2 runs/mine/seed3 name=queue_threshold/mine
  netbuf-gym leaderboard show task=queue_threshold project=me/netbuf-gym
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommand's arguments to its parser."""
    wide = max(map(len, KEYS))
    parser.epilog = EPILOG.format(keys="\n".join(f"  {key:{wide}}  {said}" for key, said in KEYS.items()))
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("verb", metavar="VERB", help=f"one of: {', '.join(VERBS)}")
    parser.add_argument("settings", metavar="RUN|KEY=VALUE", nargs="*", help="agents to hand in, and settings, see below")


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    verb = check_choice("verb", arguments.verb, VERBS)
    words = [one for one in arguments.settings if "=" not in one]
    found = overrides.read_overrides([one for one in arguments.settings if "=" in one], KEYS)
    given = {key: str(value).lower() if isinstance(value, bool) else check_text(key, value) for key, value in found.items()}
    if words and verb != "submit":
        raise ConfigError(f"argument {shown(words[0])} is unknown to {verb}; valid: KEY=VALUE")
    threads = given.pop("threads", str(min(len(os.sched_getaffinity(0)), MAX_THREADS)))
    if not threads.isdigit():
        raise ConfigError(f"threads = {threads!r}; valid: a whole number from 1 to {MAX_THREADS}")
    with require_extra("the leaderboard", "train"):
        from netbuf_gym.leaderboard import submission
    tasks = submission.resolve_tasks(given.get("task"))
    return VERBS[verb](words, tasks, given, check_integer("threads", int(threads), 1, MAX_THREADS))


def _get_results_folder(given: dict[str, str]) -> Path | None:
    """Return the folder of kept rows; None: the package's."""
    return Path(given["results"]) if "results" in given else None


def _get_handed_in_folder(given: dict[str, str]) -> Path:
    return Path(given.get("handed_in", "results/handed_in"))


def _get_runs_folder(given: dict[str, str]) -> Path:
    return Path(given.get("runs", "runs/leaderboard"))


def _submit(words: Sequence[str], tasks: Sequence[str], given: dict[str, str], threads: int) -> int:
    from netbuf_gym.leaderboard import submission, tracking
    from netbuf_gym.training.schema import MIN_TRAINING_SEEDS

    if not words:
        raise ConfigError("missing: RUN, e.g. netbuf-gym leaderboard submit queue_threshold/ppo")
    for word in words:
        if is_compiled(word) or is_python(word) or word.endswith(".py"):
            valid = "a trained agent; netbuf-gym suite judges code beside everybody"
            raise ConfigError(f"RUN = {shown(word)} is code of one's own; valid: {valid}")
    partial = check_choice("partial", given.get("partial", "false"), ("true", "false")) == "true"
    mode, evaluation = tracking.resolve_mode(given.get("mode")), given.get("evaluation")
    entity, _, project = given.get("project", tracking.PROJECT).rpartition("/")
    tracking.require_wandb()
    own = None if evaluation is None else Path(evaluation)
    handed = [submission.prepare_submission(word, name=given.get("name"), evaluation=own, threads=threads) for word in words]
    suites = {one.suite.name: one.suite for one in handed}
    before = [
        one
        for own in suites.values()
        for one in (
            *submission.read_handed_in(own, _get_handed_in_folder(given)),
            *tracking.read_handed_in(_get_runs_folder(given), own),
        )
    ]
    rows = submission.require_seeds(handed, before)
    few = {
        name: f"{seeds} of at least {MIN_TRAINING_SEEDS} training seeds"
        for name, seeds in rows.items()
        if seeds < MIN_TRAINING_SEEDS
    }
    if not partial:
        for name, lacking in few.items():
            said = f"{name} has {lacking}, and one alone may be luck"
            raise ConfigError(f"{said}; valid: RUN of the others, too, under name={name}, or partial=true, and its row says so")
    for one in handed:
        submission.keep_submission(one, _get_handed_in_folder(given))
        folder = tracking.log_submission(one, _get_runs_folder(given), project or tracking.PROJECT, entity or None, mode)
        sent = f"send it with: wandb sync {folder}" if mode == "offline" else "sent"
        print(f"{one.name}: handed in to {one.suite.name}, group {one.group}, {folder}; {sent}")
        if (packaged := submission.find_packaged_twin(one)) is not None:
            print(f"{one.name}: the very model of {packaged}, of the package, which has the row of both")
    for name, lacking in few.items():
        print(f"{name}: has {lacking}, and its row says so; hand in the others by name={name}")
    return 0


def _show(words: Sequence[str], tasks: Sequence[str], given: dict[str, str], threads: int) -> int:
    from netbuf_gym.evaluation.suites import rows
    from netbuf_gym.evaluation.suites.field import overview
    from netbuf_gym.leaderboard import scores, standings, tracking

    with tempfile.TemporaryDirectory() as fetched:
        more = tracking.find_offline_results(_get_runs_folder(given))
        if "project" in given:
            more += tracking.download_project_results(given["project"], Path(fetched))
        held = [task for task in tasks if "task" in given or standings.has_results(task, _get_results_folder(given))]
        if not held:
            raise ConfigError(
                f"results = {_get_results_folder(given)} holds none; valid: a folder that `netbuf-gym results make` filled"
            )
        for task in held:
            own = scores.get_ranking_suite(task)
            handed_in = sorted(rows.get_folder(own, _get_handed_in_folder(given)).glob("*.csv"))
            standing = standings.compute_standings(task, _get_results_folder(given), [*handed_in, *more])
            print(f"{own.name}\n\n{standings.format_table(task, standing)}\n")
            if places := overview.tabulate_places(task):
                print(f"{places.title.lower()}\n\n{markdown_table(places.header, places.rows)}\n\n* {places.says}\n")
    print("\n".join(f"* {line}" for line in standings.READING))
    return 0


def _check(words: Sequence[str], tasks: Sequence[str], given: dict[str, str], threads: int) -> int:
    from netbuf_gym.leaderboard import gate
    from netbuf_gym.zoo import library

    names = [name for name in library.names() if name.partition("/")[0] in tasks]
    held = gate.check_agents(names, _get_results_folder(given), threads, lambda name: print_line(f"playing {name} again"))
    print(gate.format_table(held))
    return int(not all(one.reproduces_rows for one in held))


VERBS: dict[str, Callable[[Sequence[str], Sequence[str], dict[str, str], int], int]] = {
    "submit": _submit,
    "show": _show,
    "check": _check,
}
