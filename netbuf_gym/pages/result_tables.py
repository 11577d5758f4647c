"""Pages of results: every table and figure that is made of kept rows, written into the pages that hold it.

A page has a table between the lines `<!-- results: NAME -->` and `<!-- end of results -->`, for instance
`leaderboard congestion_window`, `field suites` or `rlbm default` (of the checkout's studies); whole pages are the appendix's
leaderboard and the reports on the suites of the field. Tables of what the code is (`netbuf_gym.pages.code_tables`) are renewed
with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.evaluation.suites import field as suites_of_the_field
from netbuf_gym.evaluation.suites import paths, report, rows, scoring, suite
from netbuf_gym.evaluation.suites.config import read
from netbuf_gym.evaluation.suites.field import overview
from netbuf_gym.evaluation.suites.field.ranking import Field
from netbuf_gym.evaluation.suites.field.suite import FieldSuite
from netbuf_gym.leaderboard import page as leaderboard_page
from netbuf_gym.leaderboard import scores, tables
from netbuf_gym.leaderboard import standings as leaderboard
from netbuf_gym.leaderboard.results import entries
from netbuf_gym.pages import code_tables
from netbuf_gym.training.tuning import compare_tuned
from netbuf_gym.utils import plots
from netbuf_gym.utils.files import write_atomic
from netbuf_gym.version import __version__

BEGIN, END = "<!-- results: {name} -->", "<!-- end of results -->"
"""The lines between which a table stands."""
MARKED = re.compile(r"<!-- results: (?P<name>[^>]+?) -->\n.*?^<!-- end of results -->$", re.DOTALL | re.MULTILINE)
STAMP = f"*Written by netbuf-gym {__version__}.*"
APPENDIX = Path("docs", "appendix")
GATE = (
    *("congestion_window/sender", "congestion_window/ppo", "queue_target", "keep"),
    *("newreno", "cubic", "bbr", "vegas", "westwood", "copa", "vivace"),
)
"""Controllers of the gate's table, beside the best constant."""
Section = Callable[[Path], str]
"""Markdown of a table, from the folder of the page that it stands on, below the checkout's root."""


@dataclass(frozen=True)
class Pages:
    """The pages of a checkout.

    Attributes:
        root: Of the checkout.
        studies: Sections of the studies, by name.
    """

    root: Path
    studies: Mapping[str, str] = field(default_factory=dict)

    def write(self) -> list[Path]:
        """Write all pages, those alone that change; returns them.

        Raises:
            ConfigError: Kept rows that do not fit, or a mark without its end; names the file. Nothing is written then.
            MissingExtraError: matplotlib is not installed.
            OSError: A page cannot be written.
        """
        for one in entries.ranking_suites():
            if unfit := rows.kept(one)[1]:
                raise ConfigError(f"{unfit[0]}; `netbuf-gym results make {one.name}` plays what does not fit again")
        plots.require()
        new = {path: self._made(path) for path in self.files()}
        written = [path for path, text in new.items() if text != path.read_text(encoding="utf-8")]
        for path in written:
            write_atomic(path, new[path])
        if self.standings:
            folders = self.root / APPENDIX, self.root / "docs" / "figures"
            written += leaderboard_page.write(self.standings, *folders)
        written += [self._write_report(one) for one in suites_of_the_field.SUITES if overview.kept(one).names]
        return written

    def _made(self, path: Path) -> str:
        text = self.renew(path.read_text(encoding="utf-8"), path.relative_to(self.root))
        return code_tables.renew(text) if path.is_relative_to(self.root / "docs") else text

    def files(self) -> Iterator[Path]:
        """Markdown of the repository's front, of the zoo with its cards, and of the documentation."""
        yield from (path for path in (self.root / "README.md", self.root / "zoo" / "README.md") if path.is_file())
        yield from sorted((self.root / "zoo" / "agents").glob("*/*/card.md"))
        yield from sorted((self.root / "docs").rglob("*.md"))

    def renew(self, text: str, page: Path) -> str:
        """A page with its tables as they are now, each with the program's version; those that nothing is kept of stay.

        Args:
            page: Path of the page below the root.

        Raises:
            ConfigError: A mark without its end.
        """
        marks = re.findall(r"<!-- results: ([^>]+?) -->", text)
        if len(MARKED.findall(text)) != len(marks) or text.count(END) != len(marks):
            raise ConfigError(f"{page}: {len(marks)} marks of results, {text.count(END)} ends; valid: {END} after each")

        def replace(found: re.Match[str]) -> str:
            name = found["name"]
            if name in self.studies:
                new = self.studies[name]
            elif name in self.sections:
                new = self.sections[name](page.parent)
            else:
                return found[0]
            return f"{BEGIN.format(name=name)}\n{new.strip()}\n\n{STAMP}\n{END}"

        return MARKED.sub(replace, text)

    @cached_property
    def standings(self) -> dict[str, list[scoring.Standing]]:
        """By task everybody on the suite that controllers are ranked by."""
        return {task: leaderboard.standings(task) for task in tasks.names() if leaderboard.held(task)}

    @cached_property
    def sections(self) -> dict[str, Section]:
        """What makes each table of the package's own results, by its name."""
        made: dict[str, Section] = {name: _anywhere(make) for name, make in overview.TABLES.items()}
        for task, standing in self.standings.items():
            made[f"leaderboard {task}"] = _anywhere(partial(leaderboard.short_table, standing))
            made[f"leaderboard claims {task}"] = _anywhere(partial(_claims, standing))
            made[f"leaderboard families {task}"] = _anywhere(partial(leaderboard.families, standing))
            made[f"zoo {task}"] = partial(tables.agents_table, task, standing)
            for one in standing:
                made[card_section(one.name)] = _anywhere(partial(_card, standing, one.name))
            if task == paths.TASK:
                made["gate"] = _anywhere(_gate)
        if compared := sorted(self.root.glob("results/tuned/*/*.json")):
            made["tuned"] = _anywhere(partial(compare_tuned.table, compared))
        return made

    def unknown(self) -> list[str]:
        """Names of marks that nothing is kept of, with their pages."""
        found = []
        for path in self.files():
            for name in re.findall(r"<!-- results: ([^>]+?) -->", path.read_text(encoding="utf-8")):
                if name not in self.sections and name not in self.studies:
                    found.append(f"{path.relative_to(self.root)}: {name}")
        return found

    def _write_report(self, suite: FieldSuite) -> Path:
        folder = self.root / APPENDIX / overview.report_of(suite)
        results, edition = overview.kept(suite), suite.load()
        teller = Field(suite, edition, edition.families, read(suite, ["controller=kept"]))
        teller.report(folder.parent, results, results.names, {}, f"netbuf-gym results make {suite.name}")
        return folder


def card_section(agent: str) -> str:
    """Name of the section of an agent's card."""
    return f"card {agent}"


def _card(standing: list[scoring.Standing], agent: str) -> str:
    place, one = next((place, one) for place, one in enumerate(standing, 1) if one.name == agent)
    rule, constant = (leaderboard.signed(over) for over in (one.over_heuristic, one.over_constant))
    over = f"{rule} over the best rule, {constant} over the best constant"
    stale = f" {leaderboard.STALE}" if leaderboard.is_stale(one) else ""
    said = f"Number {place} of {len(standing)}{stale}, score {one.middle}; {over}."
    return f"{said} Mean scores by family, the best in bold:\n\n{leaderboard.families(standing, agent)}"


def _anywhere(make: Callable[[], str]) -> Section:
    """A section that has no links."""
    return lambda folder: make()


def _claims(standing: list[scoring.Standing]) -> str:
    return f"On suite v1: {' '.join(leaderboard_page.claims(standing))}"


def _gate() -> str:
    """Scores by family on the gate, of the sender and who is shown beside it."""
    gate, own = suite("gate"), scores.ranked_by(paths.TASK)
    edition, found = gate.load(), rows.kept(own)[0]
    constants = [name for name in found if name.startswith(rollout.CONSTANT)]
    shown = [name for name in (*GATE, *constants) if name in found]
    summaries = {name: {"families": report.summary(found[name].played(edition), gate, edition.families)} for name in shown}
    command = f"netbuf-gym suite gate controller=[{','.join(shown)}]"
    data = {"suite": gate.name, "version": edition.version, "command": command, "controllers": summaries}
    return report.by_family(data, gate)
