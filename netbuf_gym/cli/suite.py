"""`netbuf-gym suite`: evaluation of controllers on a fixed set of worlds."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace

from netbuf_gym import tasks
from netbuf_gym.cli.common import format_keys
from netbuf_gym.controllers import Controller
from netbuf_gym.errors import ConfigError, ControlError, NetbufError, one_line, quote
from netbuf_gym.evaluation.comparison import WorldProgress
from netbuf_gym.evaluation.suites import SUITES, Suite, get_suite
from netbuf_gym.evaluation.suites.config import KEYS, parse_arguments
from netbuf_gym.evaluation.suites.field.suite import FieldSuite
from netbuf_gym.utils.files import make_folder
from netbuf_gym.utils.plots import require_matplotlib
from netbuf_gym.utils.progress import ProgressBar
from netbuf_gym.utils.tables import text_table


def _format_epilog() -> str:
    return f"""suites:
{format_keys({one.name: f"{one.task}: {one.summary}" for one in SUITES.values()})}

settings, KEY=VALUE in the grammar of `netbuf-gym train` (lists in brackets, no sweeps):
{format_keys(KEYS)}

Suites of the field (ccbench/solo to bbr3/conformance) have a ranking rule of their own, and rank among the kept results of
the package. The output folder receives report.md, report.html, worlds.csv, figures/ and result.json. Suites of the package
write worlds.csv (a row for each controller and world), table.md, figures/ and, last, result.json with version and digest of
the suite; results of different versions are from different worlds and are not compared. A failed controller is marked, and
the others continue. Finished worlds are kept in parts/: the same command continues an interrupted one, and replays nothing
unless the program or something else that determines the results has changed; user code is always run.

Exit status: 0 done, 1 worse than the result of `against`, or user code failed, 2 bad input (also a missing file of user
code), 3 a fault of the simulator, 130 interrupted.

examples:
  netbuf-gym suite gate controller=cubic
  netbuf-gym suite rfc9743 --families
  netbuf-gym suite gate controller=[congestion_window/sender,queue_target,bbr] output=runs/gate
  netbuf-gym suite gate controller=runs/mine/model.zip families=[cellular,jitter] figures=false
  netbuf-gym suite gate controller=congestion_window/ppo against=runs/gate/result.json
  netbuf-gym suite ccbench/solo controller=runs/mine/model.zip
  netbuf-gym suite rfc9743 controller=[bbr3,copa] families=[mixed,short]
  netbuf-gym suite gate controller=[mine.cc,mine.py:Gentle,cubic]
  netbuf-gym suite validation/queue_threshold controller=best
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.epilog, parser.formatter_class = _format_epilog(), argparse.RawDescriptionHelpFormatter
    parser.add_argument("suite", metavar="SUITE", help="name of the suite, see below")
    parser.add_argument("settings", metavar="KEY=VALUE", nargs="*", help="controllers and settings, see below")
    parser.add_argument(
        "--families", action="store_true", help="list the families of the suite, valid values of families=, and exit"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from netbuf_gym.leaderboard.best import resolve_best
    from netbuf_gym.leaderboard.controllers import compute_model_digest, require_fit, resolve_controller
    from netbuf_gym.leaderboard.field_reports import FieldReport
    from netbuf_gym.leaderboard.play import SuiteRun, SuiteRunner
    from netbuf_gym.leaderboard.reports import FamilyReport, ReportWriter
    from netbuf_gym.zoo import library

    suite = get_suite(arguments.suite)
    if arguments.families:
        print(_format_families(suite))
        return 0
    config = parse_arguments(suite, arguments.settings)
    config = replace(config, controllers=tuple(resolve_best(word, suite.task) for word in config.controllers))
    if config.figures:
        require_matplotlib()  # before any work is done
    edition = suite.load()
    cells = edition.select_cells(config.families)
    families = [family for family in edition.families if not config.families or family in config.families]
    report: ReportWriter
    if isinstance(suite, FieldSuite):
        report = FieldReport(suite, edition, families, config)
    else:
        report = FamilyReport(suite, edition, families, config)
    make_folder(config.output, "output")
    failed: dict[str, str] = {}
    words, controllers = [], []
    for word in (*config.controllers, *report.needs):
        try:
            controllers.append(resolve_controller(word, suite))
            words.append(word)
        except ControlError as error:
            failed[word] = one_line(error)
    _require_names(controllers, {*tasks.get(suite.task).controllers, *library.names()})
    for one in controllers:
        require_fit(one, cells, suite)
    print(f"{config.command}: version {edition.version}, digest {edition.digest}, {len(cells)} worlds", flush=True)
    played: list[SuiteRun] = []
    play = SuiteRunner(suite, edition, config.output, config.executor, config.jobs, config.threads).play
    with ProgressBar("suite", line_seconds=None) as bar:
        for number, (word, one) in enumerate(zip(words, controllers, strict=True)):
            counter = WorldProgress(bar, len(cells) * len(controllers), number * len(cells), one.name)
            try:
                played.append(play(word, one, cells, counter))
            except Exception as error:  # the user's code may raise anything
                if one.own_code is None and (isinstance(error, OSError) or len(failed) + 1 == len(controllers)):
                    raise  # a full disk rather than a controller, or all controllers have failed
                failed[one.name] = one_line(error if isinstance(error, NetbufError) else f"{type(error).__name__}: {error}")
                print(f"netbuf-gym: {one.name} failed: {failed[one.name]}", file=sys.stderr, flush=True)
    text, behind = report.write(played, failed, {word: compute_model_digest(word) for word in words})
    print(text)
    for done in played:
        print(f"\n{done.name}: {done.seconds:.1f} s, {done.cpu_seconds:.1f} s of processor time")
    print(f"written to {shlex.quote(str(config.output))}")
    if behind:
        print(behind)
    return 1 if behind or failed else 0


def _format_families(suite: Suite) -> str:
    cells = suite.load().cells
    rows = [[family, str(sum(cell.family == family for cell in cells)), text] for family, text in suite.families.items()]
    return text_table(["family", "worlds", suite.name], rows)


def _require_names(controllers: Sequence[Controller], known: Collection[str]) -> None:
    """Check that names are unique, and that user code has no name of the package, whose results it would replace.

    Raises:
        ConfigError: Two controllers of one name, or user code with a known name.
    """
    names = [one.name for one in controllers]
    for one in controllers:
        if names.count(one.name) > 1:
            valid = "different names, of files of C++ and of classes of Python, whatever their folders and files"
            raise ConfigError(f"controller has two of the name {quote(one.name)}; valid: {valid}")
        if one.own_code is not None and one.name in known:
            problem = f"controller = {quote(one.own_code)} has the name {quote(one.name)} of one of the package"
            raise ConfigError(f"{problem}; valid: another name")
