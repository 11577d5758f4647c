"""`netbuf-gym suite`: judges controllers on a fixed set of worlds."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Collection, Sequence

from netbuf_gym import tasks
from netbuf_gym.controllers import Controller
from netbuf_gym.errors import ConfigError, ControlError, NetbufError, one_line, shown
from netbuf_gym.evaluation.suites import SUITES, get_suite
from netbuf_gym.evaluation.suites.config import KEYS, parse_arguments
from netbuf_gym.evaluation.suites.suite import Suite
from netbuf_gym.utils.files import make_folder
from netbuf_gym.utils.plots import require_matplotlib
from netbuf_gym.utils.progress import ProgressBar
from netbuf_gym.utils.tables import text_table

HELP = "judge controllers on a fixed set of worlds, of the package's own or of the field: tables, ranks, plots, tidy results"

INTERMIXED = True
"""Options may stand among the settings."""


def _format_epilog() -> str:
    width = max(map(len, SUITES))
    listed = "\n".join(f"  {one.name:{width}}  {one.task}: {one.summary}" for one in SUITES.values())
    wide = max(map(len, KEYS))
    keys = "\n".join(f"  {key:{wide}}  {said}" for key, said in KEYS.items())
    return f"""suites:
{listed}

settings are KEY=VALUE in the grammar of `netbuf-gym train`, lists in brackets, but no sweeps:
{keys}

Suites of the field (ccbench/solo to bbr3/conformance) rank by their own rule, among the package's kept results; the folder
gets report.md, report.html, worlds.csv, figures/ and result.json. Of suites of the package's own it gets worlds.csv (a row
a controller and world), table.md, figures/ and, last, result.json with the suite's version and digest: results of different
versions are of different worlds, and are not compared. A controller that fails is marked, and the others go on. What is
played is kept in parts/: an interrupted command goes on when it is given again, and who has played is not played again
while nothing that decides the results has changed, the program among it; code of one's own is always played.

Exit status: 0 done, 1 behind the result that `against` names, or code of one's own failed, 2 bad input (a file of such code
that is not there, too), 3 a fault of the simulator, 130 interrupted.

examples:
  netbuf-gym suite gate controller=cubic
  netbuf-gym suite rfc9743 --families
  netbuf-gym suite gate controller=[congestion_window/sender,queue_target,bbr] output=runs/gate
  netbuf-gym suite gate controller=runs/mine/model.zip families=[cellular,jitter] figures=false
  netbuf-gym suite gate controller=congestion_window/ppo against=runs/gate/result.json
  netbuf-gym suite ccbench/solo controller=runs/mine/model.zip
  netbuf-gym suite rfc9743 controller=[bbr3,copa] families=[mixed,short]
  netbuf-gym suite gate controller=[mine.cc,mine.py:Gentle,cubic]
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommand's arguments to its parser."""
    parser.epilog, parser.formatter_class = _format_epilog(), argparse.RawDescriptionHelpFormatter
    parser.add_argument("suite", metavar="SUITE", help=f"one of: {', '.join(SUITES)}")
    parser.add_argument("settings", metavar="KEY=VALUE", nargs="*", help="what is to be done, see below")
    parser.add_argument("--families", action="store_true", help="list the suite's families, which families= takes, and end")


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    from netbuf_gym.evaluation.suites import runner
    from netbuf_gym.zoo import library, resolve, suite_runs

    own = get_suite(arguments.suite)
    if arguments.families:
        print(_format_families(own))
        return 0
    order = parse_arguments(own, arguments.settings)
    if order.figures:
        require_matplotlib()  # before any work is done
    edition = own.load()
    cells = edition.of(order.families)
    families = [family for family in edition.families if not order.families or family in order.families]
    teller = own.report_writer(own, edition, families, order)
    make_folder(order.output, "output")
    failed: dict[str, str] = {}
    words, controllers = [], []
    for word in (*order.controllers, *teller.needs):
        try:
            controllers.append(resolve.resolve_controller(word, own))
            words.append(word)
        except ControlError as error:
            failed[word] = one_line(error)
    _require_names(controllers, {*tasks.get(own.task).controllers, *library.names()})
    for one in controllers:
        resolve.require_fit(one, cells, own)
    print(f"{order.command}: version {edition.version}, digest {edition.digest}, {len(cells)} worlds", flush=True)
    played: list[runner.SuiteRun] = []
    play = suite_runs.SuiteRunner(own, edition, order.output, order.executor, order.jobs, order.threads).play
    with ProgressBar("suite", line_seconds=None) as bar:
        for number, (word, one) in enumerate(zip(words, controllers, strict=True)):
            counted = _WorldCounter(bar, number * len(cells), len(cells) * len(controllers), one.name)
            try:
                played.append(play(word, one, cells, counted))
            except Exception as error:  # the user's code may raise anything
                if one.own_code is None and (isinstance(error, OSError) or len(failed) + 1 == len(controllers)):
                    raise  # a full disk rather than a controller, or all controllers have failed
                failed[one.name] = one_line(error if isinstance(error, NetbufError) else f"{type(error).__name__}: {error}")
                print(f"netbuf-gym: {one.name} failed: {failed[one.name]}", file=sys.stderr, flush=True)
    text, behind = teller.write(played, failed, {word: resolve.compute_model_digest(word) for word in words})
    print(text)
    for done in played:
        print(f"\n{done.name}: {done.seconds:.1f} s, {done.cpu_seconds:.1f} s of processors")
    print(f"written to {shlex.quote(str(order.output))}")
    if behind:
        print(behind)
    return 1 if behind or failed else 0


def _format_families(own: Suite) -> str:
    cells = own.load().cells
    rows = [[family, str(sum(cell.family == family for cell in cells)), said] for family, said in own.families.items()]
    return text_table(["family", "worlds", own.name], rows)


def _require_names(controllers: Sequence[Controller], known: Collection[str]) -> None:
    """Check that names are unique, and that the user's code has no name of the package's, whose results it would replace.

    Raises:
        ConfigError: Two controllers of one name, or the user's code under a known name.
    """
    names = [one.name for one in controllers]
    for one in controllers:
        if names.count(one.name) > 1:
            valid = "different names of files in C++, whatever their folders, and of NAMEs in Python, whatever their files"
            raise ConfigError(f"controller has two that are called {shown(one.name)}; valid: {valid}")
        if one.own_code is not None and one.name in known:
            said = f"controller = {shown(one.own_code)} is called {shown(one.name)}, as one of the package's is"
            raise ConfigError(f"{said}; valid: another name")


class _WorldCounter:
    """Callback that counts finished worlds on a progress bar."""

    def __init__(self, bar: ProgressBar, done: int, total: int, name: str):
        self._bar, self._done, self._total, self._name = bar, done, total, name

    def __call__(self, cell: object) -> None:
        self._done += 1
        self._bar(self._done, self._total, self._name)
