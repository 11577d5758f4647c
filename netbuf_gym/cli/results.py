"""`netbuf-gym results`: check of the kept results by replay, update of stale ones, pages that show them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netbuf_gym.cli.common import make_whole_parser
from netbuf_gym.cli.program import add_verb
from netbuf_gym.envs.engine import MAX_THREADS
from netbuf_gym.errors import ConfigError, require_extra
from netbuf_gym.utils.executors import LOCAL, get_executor, list_executors
from netbuf_gym.utils.progress import ProgressBar, print_line
from netbuf_gym.utils.suggestions import did_you_mean
from netbuf_gym.utils.tables import text_table

STUDIES = "studies"
NEEDS = {
    "live": "needs root and real time on the kernel of this machine; valid: --live",
    "train": "needs trainings of its agents; valid: --train",
    "traces": "needs measured traces; valid: --traces DIR",
}
"""Needs of campaigns, each with the option that grants it."""
FOLDERS = {"results": "rows, such as results/suites", "traces": "measured traces"}
VERBS = {
    "status": "replay a world of each family for every controller, report differences, and mark those rows as stale",
    "make": "play missing and stale results, and keep the rows",
    "pages": "write the tables and figures of results into the pages of the checkout",
}
"""Verbs with their help."""
EPILOG = f"""Rows are in results/suites/SUITE/CONTROLLER.csv, one for each world. The first line has the edition of the suite,
the digest of the model, and the program, machine and command of the run. Rows are current as long as a replay of their worlds
gives their figures: to six digits; of agents and rules within 2 % in nine of ten worlds, since the last bits of sums depend
on the machine. Stale rows keep their figures, and are marked.

WHAT: leaderboard, field, a suite (rfc9743), a task, a controller (cubic); of a suite and a controller, the rows of both. In
a checkout also a campaign of a study (studies/rlbm, studies/rlbm/default), whose status is a replay of a run of each scheme.
Default: all that is simulated.

executors:
{list_executors()}

Exit status: 0 done, or all current; 1 stale or missing rows of suites (status; campaigns without rows are reported and do not
count); 2 bad input; 3 a fault of the simulator; 130 interrupted, the same command continues.

examples:
  netbuf-gym results status
  netbuf-gym results status cubic
  netbuf-gym results status rfc9743 --all
  netbuf-gym results make --dry-run
  netbuf-gym results make leaderboard
  netbuf-gym results make studies/nuwa --traces ../traces
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, text in VERBS.items():
        own = add_verb(verbs, verb, text, formatter_class=argparse.RawDescriptionHelpFormatter)
        own.epilog = EPILOG if verb != "pages" else None
        if verb == "pages":
            own.add_argument("--checkout", metavar="DIR", help="checkout with the pages (default: that of the current folder)")
            continue
        own.add_argument("what", metavar="WHAT", nargs="*", help="results, see below (default: all simulated ones)")
        own.add_argument("--all", action="store_true", help="replay all worlds, not one of each family")
        own.add_argument("--results", metavar="DIR", type=Path, help="folder of rows (default: the package's)")
        own.add_argument("--executor", default=LOCAL.name, help="where worlds are played, see below (default: %(default)s)")
        own.add_argument(
            "--jobs",
            metavar="N",
            type=make_whole_parser(1, 1024),
            help="concurrent controllers, 1 to 1024 (default: one for each core)",
        )
        if verb == "make":
            own.add_argument("--dry-run", action="store_true", help="print the plan and its duration only")
            own.add_argument("--anew", action="store_true", help="play current results too")
            own.add_argument(
                "--live", action="store_true", help="include campaigns on the kernel; needs root and an idle machine"
            )
            own.add_argument("--train", action="store_true", help="include campaigns with trainings")
            own.add_argument("--traces", metavar="DIR", help="include campaigns on measured traces, of this folder")


def run(arguments: argparse.Namespace) -> int:
    """Run the verb and return its exit status."""
    with require_extra("kept results", "train"):
        import torch  # noqa: F401
    return {"status": _print_status, "make": _make_results, "pages": _write_pages}[arguments.verb](arguments)


def _print_status(arguments: argparse.Namespace) -> int:
    from netbuf_gym.leaderboard import results

    selected, campaigns, _ = _resolve_selection(arguments)
    orphans = [] if arguments.what else results.find_orphans(_get_folder(arguments))
    replays = _replay_entries(arguments, selected)
    stale = [one for one in replays if not one.is_current]
    if stale:
        rows = [[*one.entry.key, f"{len(one.differences)} of {one.worlds}", one.reason] for one in stale]
        print(text_table(["suite", "controller", "worlds", "reason"], rows))
    for one in replays:
        if one.is_current and one.differences:
            print(f"{' '.join(one.entry.key)}: current, and {results.describe_differences(one.differences, one.worlds)}")
    if replays:
        played = sum(one.worlds for one in replays)
        print(f"{len(replays) - len(stale)} of {len(replays)} results are current, by a replay of {played:,} worlds")
    found = [(campaign, campaign.find_stale()) for campaign in campaigns]
    for campaign, reason in found:
        campaign.update_stale_mark(reason)
        if reason:
            print(f"{campaign.name}: {reason}")
    if found:
        unplayed = [campaign.name for campaign, reason in found if not reason and not campaign.has_sample]
        current = sum(not reason for _, reason in found) - len(unplayed)
        line = f"{current} of {len(found)} campaigns of the studies are current"
        print(f"{line}; not replayed: {', '.join(unplayed)}" if unplayed else line)
    for path in orphans:
        print(f"{path}: holds rows of no ranked controller; valid: delete it")
    return int(bool(stale) or any(campaign.is_stale(reason) for campaign, reason in found))


def _make_results(arguments: argparse.Namespace) -> int:
    from netbuf_gym.evaluation.suites.field.suite import FieldSuite
    from netbuf_gym.leaderboard import field_reports, results, rows

    selected, campaigns, left_out = _resolve_selection(arguments)
    if selected and not arguments.dry_run and _get_folder(arguments) == rows.INSTALLED:
        raise ConfigError(f"{rows.INSTALLED} belongs to the installed package; valid: --results DIR, or an editable install")
    for campaign in left_out:
        print_line(f"{campaign.name}: left out; {NEEDS[campaign.needs]}")
    jobs = _count_jobs(arguments)
    maker = results.ResultMaker(get_executor(arguments.executor), jobs, jobs if arguments.executor == LOCAL.name else 1)
    replays = _replay_entries(arguments, selected, timed=True)
    stale = [one for one in replays if arguments.anew or not one.is_current]
    unchosen = _find_unchosen(selected, _get_folder(arguments))
    results.print_plan(stale, jobs, unchosen)
    wanted = [
        (one, reason) for one in campaigns if (reason := one.find_stale() or ("asked for anew" if arguments.anew else ""))
    ]
    for campaign, reason in wanted:
        print_line(f"{campaign.name}: about {campaign.minutes:g} min; {reason}")
    if arguments.dry_run:
        return 0
    for task in unchosen:
        maker.make_best_constant(task, _get_folder(arguments))
    for one in stale:
        maker.make(one.entry)
    if any(isinstance(one.entry.suite, FieldSuite) for one in stale) and arguments.results is None:
        field_reports.write_rankings()
    for campaign, _ in wanted:
        print_line(f"{campaign.name}: {campaign.command}")
        campaign.run(jobs=jobs, executor=arguments.executor, traces=arguments.traces)
    current = len(replays) + len(campaigns) - len(stale) - len(wanted)
    print(f"{len(stale) + len(wanted) + len(unchosen)} results made, {current} were current")
    return 0


def _write_pages(arguments: argparse.Namespace) -> int:
    from netbuf_gym.leaderboard import field_reports, rows
    from netbuf_gym.utils import checkout

    root = checkout.require_checkout(arguments.checkout, "--checkout")
    if rows.FOLDER != root.resolve() / "results" / "suites":
        raise ConfigError(f"{root}: the rows of this program are in {rows.FOLDER}; valid: pip install -e {root}")
    pages = checkout.import_studies(root, "pages.result_tables").Pages(root)
    field_reports.write_rankings()
    for path in pages.write():
        print(f"written: {path.relative_to(root)}")
    for name in pages.find_unknown():
        print_line(f"{name}: no results are kept; unchanged")
    return 0


def _resolve_selection(arguments: argparse.Namespace) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the selected entries, the campaigns to run, and those that `--live`, `--train` or `--traces` would add.

    Raises:
        ConfigError: A word that names nothing, a campaign named in full whose needs are not granted, or a missing folder.
    """
    from netbuf_gym.leaderboard import results

    for option in ("results", "traces"):
        given = getattr(arguments, option, None)
        if given is not None and (option == "traces" or arguments.verb == "status") and not Path(given).is_dir():
            raise ConfigError(f"--{option} {given}: no such folder; valid: a folder of {FOLDERS[option]}")
    words = [word for word in arguments.what if word == STUDIES or word.startswith(f"{STUDIES}/")]
    others = [word for word in arguments.what if word not in words]
    selected = [] if words and not others else results.select_entries(results.list_entries(_get_folder(arguments)), others)
    if others and not words:
        return selected, [], []
    campaigns = _select_campaigns(words)
    if arguments.verb == "status":
        return selected, campaigns, []
    given = {"live": arguments.live, "train": arguments.train, "traces": arguments.traces is not None, "": True}
    left_out = [one for one in campaigns if not given[one.needs]]
    for one in left_out:
        if one.name in words:
            raise ConfigError(f"WHAT = {one.name!r}: {NEEDS[one.needs]}")
    return selected, [one for one in campaigns if given[one.needs]], left_out


def _select_campaigns(words: Sequence[str]) -> list[Any]:
    """Return campaigns of the checkout's studies, all or those that words name; none without words and checkout.

    Raises:
        ConfigError: A word that names no campaign, or no checkout for words.
    """
    from netbuf_gym.utils import checkout

    root = checkout.require_checkout() if words else checkout.find_checkout()
    if root is None:
        return []
    known = checkout.import_studies(root, "campaigns").CAMPAIGNS
    chosen = {word: [one for one in known if word in (STUDIES, one.name) or one.name.startswith(f"{word}/")] for word in words}
    for word, own in chosen.items():
        if not own:
            names = [one.name for one in known]
            raise ConfigError(f"WHAT = {word!r} names no campaign; {did_you_mean(word, names)}valid: {', '.join(names)}")
    return [one for one in known if not words or any(one in own for own in chosen.values())]


def _replay_entries(arguments: argparse.Namespace, selected: Sequence[Any], timed: bool = False) -> list[Any]:
    """Replay the worlds of the selected rows, and mark rows that differ, except those of an installed package."""
    from netbuf_gym.leaderboard import results, rows

    found: list[Any] = []
    marks = _get_folder(arguments) != rows.INSTALLED and not getattr(arguments, "dry_run", False)
    with ProgressBar("results") as bar:

        def handle_replay(one: Any) -> None:
            found.append(one)
            bar(len(found), len(selected), " ".join(one.entry.key))
            if not one.is_current:
                print_line(f"stale: {' '.join(one.entry.key)}: {one.reason}")
            if marks:
                try:
                    results.mark_rows(one)
                except OSError as error:
                    print_line(f"{one.entry.file}: cannot be marked ({error.strerror})")

        where: dict[str, Any] = {"executor": get_executor(arguments.executor), "jobs": _count_jobs(arguments)}
        return results.replay_entries(selected, every=arguments.all, timed=timed, each=handle_replay, **where)


def _find_unchosen(selected: Sequence[Any], folder: Path) -> list[str]:
    """Return tasks of unknown best constant whose leaderboards are selected as a whole."""
    from netbuf_gym.leaderboard import standings

    tasks = []
    for task in dict.fromkeys(one.suite.task for one in selected):
        own = standings.get_ranking_suite(task)
        if len(standings.list_controllers(task)) == sum(one.suite.name == own.name for one in selected):
            try:
                standings.read_best_constant(task, folder)
            except ConfigError:
                tasks.append(task)
    return tasks


def _get_folder(arguments: argparse.Namespace) -> Path:
    from netbuf_gym.leaderboard import rows

    return arguments.results or rows.FOLDER


def _count_jobs(arguments: argparse.Namespace) -> int:
    if arguments.jobs is None:
        return min(len(os.sched_getaffinity(0)), MAX_THREADS)
    return int(arguments.jobs)
