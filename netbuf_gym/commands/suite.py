"""`netbuf-gym suite`: a contender over a fixed set of worlds."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from netbuf_gym.errors import ConfigError, ControlError, NetbufError, needing, shown
from netbuf_gym.files import write_atomic, write_json
from netbuf_gym.plots import require
from netbuf_gym.progress import ProgressBar
from netbuf_gym.suites import SUITES, suite
from netbuf_gym.suites.settings import KEYS, read

HELP = "judge contenders on a fixed set of worlds: tables by family, plots, tidy results"

INTERMIXED = True
"""Options may stand among the settings."""


def _epilog() -> str:
    width = max(map(len, SUITES))
    listed = "\n".join(f"  {one.name:{width}}  {one.task}: {one.summary}" for one in SUITES.values())
    wide = max(map(len, KEYS))
    keys = "\n".join(f"  {key:{wide}}  {said}" for key, said in KEYS.items())
    return f"""suites:
{listed}

settings are KEY=VALUE in the grammar of `netbuf-gym train`, lists in brackets, but no sweeps:
{keys}

The output folder gets worlds.csv (a row a controller and world), table.md, figures/ and, last, result.json with the suite's
version and digest: results of different versions are of different worlds, and are not compared.

Exit status: 0 done, 1 behind the result that `against` names, or code of one's own failed, 2 bad input, 3 a fault of the
simulator, 130 interrupted.

examples:
  netbuf-gym suite gate controller=cubic
  netbuf-gym suite gate controller=[congestion_window/ppo,queue_target,bbr] output=runs/gate
  netbuf-gym suite gate controller=runs/mine/model.zip families=[cellular,jitter] figures=false
  netbuf-gym suite gate controller=congestion_window/ppo against=runs/gate/result.json
  netbuf-gym suite gate controller=[mine.cc,mine.py:Gentle,cubic]
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the arguments."""
    parser.epilog, parser.formatter_class = _epilog(), argparse.RawDescriptionHelpFormatter
    parser.add_argument("suite", metavar="SUITE", help=f"one of: {', '.join(SUITES)}")
    parser.add_argument("settings", metavar="KEY=VALUE", nargs="*", help="what is to be done, see below")


def run(arguments: argparse.Namespace) -> int:
    """Does it."""
    from netbuf_gym.suites import report, running
    from netbuf_gym.zoo import contending

    own = suite(arguments.suite)
    order = read(own, arguments.settings)
    if order.figures:
        require()  # refuses, before any work is done, where there is none
    edition = own.load()
    cells = edition.of(order.families)
    families = [family for family in edition.families if not order.families or family in order.families]
    before = None if order.against is None else report.earlier(order.against, own, edition, families)
    _make(order.output)
    failed: dict[str, str] = {}
    contenders = []
    for word in order.controllers:
        try:
            contenders.append(contending.contender(word, own))
        except ControlError as error:
            failed[word] = str(error)
    _require_names([one.name for one in contenders])
    for one in contenders:
        contending.require_fit(one, cells, own)
    command = order.command
    print(f"{command}: version {edition.version}, digest {edition.digest}, {len(cells)} worlds", flush=True)
    played: list[running.Played] = []
    with ProgressBar("suite", line_seconds=None) as bar:
        total = len(cells) * len(contenders)
        for number, one in enumerate(contenders):
            done = number * len(cells)
            counted = _Counted(bar, done, total, one.name)
            try:
                played.append(running.run(own, cells, one, threads=order.threads, each=counted))
            except NetbufError as error:
                if one.own_code is None:
                    raise
                failed[one.name] = str(error)
    summaries = {one.name: report.summary(one, own, families) for one in played}
    table = report.tables(own, summaries, failed)
    behind: list[str] = []
    if before is not None and played:
        beside, behind = report.compared(own, summaries, before, order.tolerance)
        table += f"\n\nagainst {order.against}\n\n{beside}"
    # The result says that the folder is whole, and all of it of one run: it goes first and comes last.
    (order.output / "result.json").unlink(missing_ok=True)
    write_atomic(order.output / "worlds.csv", report.rows(played, own, command))
    title = f"suite {own.name}, version {edition.version}"
    write_atomic(order.output / "table.md", f"{title}\n\n{table}\n\n{report.notes(own, families)}\n")
    if order.figures and played:
        with needing("a plot", "plots"):
            from netbuf_gym.suites import figures
        figures.draw(own, played, families, order.output / "figures", title)
    models = {word: contending.digest_of(word) for word in order.controllers}
    write_json(order.output / "result.json", report.to_dict(own, edition, played, summaries, models, command, failed))
    print(table)
    for one in played:
        print(f"\n{one.name}: {one.seconds:.1f} s, {one.cpu_seconds:.1f} s of processors")
    print(f"written to {shlex.quote(str(order.output))}")
    if behind:
        print(f"behind {order.against} by more than {order.tolerance:g}: {', '.join(behind)}")
    return 1 if behind or failed else 0


def _require_names(names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"controller has two that are called {shown(name)}; valid: files of different names")


def _make(output: Path) -> None:
    """Makes the folder of the results before any work is done."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        said = f"output = '{output}' is no folder and cannot become one: {error.strerror or error}"
        raise ConfigError(f"{said}; valid: a folder, new or not") from None


class _Counted:
    """Shows how many worlds are done."""

    def __init__(self, bar: ProgressBar, done: int, total: int, name: str):
        self._bar, self._done, self._total, self._name = bar, done, total, name

    def __call__(self, cell: object) -> None:
        self._done += 1
        self._bar(self._done, self._total, self._name)
