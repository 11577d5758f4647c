"""Pages of results: every table and figure made from stored rows, written into the pages that hold it.

A page has a table between the lines `<!-- results: NAME -->` and `<!-- end of results -->`, for instance
`leaderboard congestion_window`, `field suites` or `rlbm default` (of the checkout's studies); whole pages are the appendix's
leaderboard and the reports on the suites of the field. Tables generated from the code (`studies.pages.code_tables`) are
renewed with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.evaluation.suites import field as suites_of_the_field
from netbuf_gym.evaluation.suites import get_suite, paths
from netbuf_gym.evaluation.suites.config import parse_arguments
from netbuf_gym.evaluation.suites.field.suite import FieldSuite
from netbuf_gym.leaderboard import field_reports, reports, results, rows, scoring
from netbuf_gym.leaderboard import standings as leaderboard
from netbuf_gym.utils import plots
from netbuf_gym.utils.files import write_atomic
from netbuf_gym.version import __version__
from studies.pages import code_tables, leaderboard_page, practice_table, study_tables
from studies.zoo import compare_tuned

BEGIN, END = "<!-- results: {name} -->", "<!-- end of results -->"
"""Lines between which a table stands."""
MARKED = re.compile(r"<!-- results: (?P<name>[^>]+?) -->\n.*?^<!-- end of results -->$", re.DOTALL | re.MULTILINE)
STAMP = f"*Written by netbuf-gym {__version__}.*"
APPENDIX = Path("docs", "appendix")
GATE = (
    *("congestion_window/sender", "congestion_window/ppo", "queue_target", "keep"),
    *("newreno", "cubic", "bbr", "vegas", "westwood", "copa", "vivace"),
)
"""Controllers of the gate's table, beside the best constant."""
Section = Callable[[Path], str]
"""Function that returns the Markdown of a table, given the folder of its page relative to the checkout's root."""


@dataclass(frozen=True)
class Pages:
    """The pages of a checkout.

    Attributes:
        root: Root folder of the checkout.
    """

    root: Path

    @cached_property
    def studies(self) -> dict[str, str]:
        """Sections of the studies, by name."""
        return study_tables.make_sections(self.root)

    def write(self) -> list[Path]:
        """Write the pages that change and return their paths.

        Raises:
            ConfigError: Stored rows that do not fit, or a mark without its end; names the file. Nothing is written then.
            MissingExtraError: matplotlib is not installed.
            OSError: A page cannot be written.
        """
        for one in results.list_ranking_suites():
            if unfit := rows.read_kept(one)[1]:
                raise ConfigError(f"{unfit[0]}; `netbuf-gym results make {one.name}` plays what does not fit again")
        plots.require_matplotlib()
        new = {path: self._renew_page(path) for path in self.files()}
        written = [path for path, text in new.items() if text != path.read_text(encoding="utf-8")]
        for path in written:
            write_atomic(path, new[path])
        if self.standings:
            folders = self.root / APPENDIX, self.root / "docs" / "figures"
            written += leaderboard_page.write_pages(self.standings, *folders)
        written += [self._write_report(one) for one in suites_of_the_field.SUITES if field_reports.read_kept(one).names]
        return written

    def _renew_page(self, path: Path) -> str:
        text = self.renew(path.read_text(encoding="utf-8"), path.relative_to(self.root))
        return code_tables.renew_tables(text) if path.is_relative_to(self.root / "docs") else text

    def files(self) -> Iterator[Path]:
        """Yield the Markdown files of the repository's front, of the zoo with its cards, and of the documentation."""
        yield from (path for path in (self.root / "README.md", self.root / "zoo" / "README.md") if path.is_file())
        yield from sorted((self.root / "zoo" / "agents").glob("*/*/card.md"))
        yield from sorted((self.root / "docs").rglob("*.md"))

    def renew(self, text: str, page: Path) -> str:
        """Return a page with its tables updated, each with the program's version; tables without stored rows stay as they are.

        Args:
            text: Text of the page.
            page: Path of the page relative to the root.

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
        """Standings by task on the suite that ranks controllers."""
        return {task: leaderboard.compute_standings(task) for task in tasks.names() if leaderboard.has_results(task)}

    @cached_property
    def sections(self) -> dict[str, Section]:
        """Functions that make the tables of the package's own results, by section name."""
        made: dict[str, Section] = {name: _without_links(make) for name, make in field_reports.TABLES.items()}
        for task, standing in self.standings.items():
            made[f"leaderboard {task}"] = _without_links(partial(leaderboard.format_short_table, standing))
            made[f"leaderboard claims {task}"] = _without_links(partial(_format_claims, standing))
            made[f"leaderboard families {task}"] = _without_links(partial(leaderboard.format_families, standing))
            made[f"zoo {task}"] = partial(leaderboard_page.format_agents_table, task, standing)
            for one in standing:
                made[card_section(one.name)] = _without_links(partial(_make_card, standing, one.name))
            if task == paths.TASK:
                made["gate"] = _without_links(_make_gate_table)
        if self.standings:
            made["practice"] = _without_links(partial(practice_table.format_table, self.standings))
            made["practice advice"] = _without_links(partial(practice_table.format_advice, self.standings))
        if compared := sorted(self.root.glob("results/tuned/*/*.json")):
            made["tuned"] = _without_links(partial(compare_tuned.format_table, compared))
        return made

    def find_unknown(self) -> list[str]:
        """Return the names of marks without stored rows, with their pages."""
        found = []
        for path in self.files():
            for name in re.findall(r"<!-- results: ([^>]+?) -->", path.read_text(encoding="utf-8")):
                if name not in self.sections and name not in self.studies:
                    found.append(f"{path.relative_to(self.root)}: {name}")
        return found

    def _write_report(self, suite: FieldSuite) -> Path:
        folder = self.root / APPENDIX / field_reports.get_report_path(suite)
        found, edition = field_reports.read_kept(suite), suite.load()
        report = field_reports.FieldReport(suite, edition, edition.families, parse_arguments(suite, ["controller=kept"]))
        report.report(folder.parent, found, found.names, {}, f"netbuf-gym results make {suite.name}")
        return folder


def card_section(agent: str) -> str:
    """Return the section name of an agent's card."""
    return f"card {agent}"


def _make_card(standing: list[scoring.Standing], agent: str) -> str:
    place, one = next((place, one) for place, one in enumerate(standing, 1) if one.name == agent)
    rule, constant = (leaderboard.format_difference(over) for over in (one.over_heuristic, one.over_constant))
    over = f"{rule} over the best rule, {constant} over the best constant"
    stale = f" {leaderboard.STALE}" if leaderboard.is_stale(one) else ""
    said = f"Number {place} of {len(standing)}{stale}, score {one.middle}; {over}. {leaderboard.describe_flows([one])}".rstrip()
    return f"{said} Mean scores by family, the best in bold:\n\n{leaderboard.format_families(standing, agent)}"


def _without_links(make: Callable[[], str]) -> Section:
    """Adapt a function of no arguments to a section, for tables without links."""
    return lambda folder: make()


def _format_claims(standing: list[scoring.Standing]) -> str:
    return f"On suite v1: {' '.join(leaderboard_page.list_claims(standing))}"


def _make_gate_table() -> str:
    """Return the scores by family on the gate, of the sender and the controllers shown beside it."""
    gate, own = get_suite("gate"), leaderboard.get_ranking_suite(paths.TASK)
    edition, found = gate.load(), rows.read_kept(own)[0]
    constants = [name for name in found if name.startswith(rollout.CONSTANT)]
    shown = [name for name in (*GATE, *constants) if name in found]
    summaries = {
        name: {"families": reports.summarise(found[name].to_suite_run(edition), gate, edition.families)} for name in shown
    }
    command = f"netbuf-gym suite gate controller=[{','.join(shown)}]"
    data = {"suite": gate.name, "version": edition.version, "command": command, "controllers": summaries}
    return reports.format_families(data, gate)
