"""Report of a run on a suite of the field: a ranking among all results, with the suite's own tables and signs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.errors import ConfigError, require_extra
from netbuf_gym.evaluation.suites import report
from netbuf_gym.evaluation.suites.config import RunConfig
from netbuf_gym.evaluation.suites.field import document, league
from netbuf_gym.evaluation.suites.field.suite import FieldCell, FieldSuite, Report, Results, Sign, Table
from netbuf_gym.evaluation.suites.runner import SuiteRun
from netbuf_gym.evaluation.suites.suite import Edition, Metric
from netbuf_gym.utils import plots
from netbuf_gym.utils.files import write_atomic, write_json
from netbuf_gym.utils.tables import markdown_table

SENDER = "congestion_window/sender"
"""The package's agent, `netbuf_gym.zoo.library.SENDER`, named here without importing the learners' dependencies."""

MAX_DRAWN, ALWAYS = 8, ("cubic", "bbr", SENDER)
"""Most controllers in a figure: those of the run if they are few, the first ones of the ranking, and those of `ALWAYS`."""


class FieldReport:
    """Writer of a ranking's files; see `netbuf_gym.evaluation.suites.report_files.ReportWriter`."""

    def __init__(self, suite: FieldSuite, edition: Edition, families: Sequence[str], order: RunConfig):
        if order.against is not None:
            raise ConfigError(f"against = {order.against}: {suite.name} ranks its controllers; valid: beside=[.../worlds.csv]")
        self._suite, self._edition, self._families, self._order = suite, edition, families, order
        named = order.beside
        self._beside, self._says = (
            league.read_kept(suite, edition) if named is None else (league.read_files(suite, edition, named), [])
        )
        if order.beside:
            _require_all_worlds(self._beside, select_cells(edition, families))
        self.needs = [name for name in suite.reference if name not in (*order.controllers, *self._beside)]

    def write(self, played: Sequence[SuiteRun], failed: Mapping[str, str], models: Mapping[str, str | None]) -> tuple[str, str]:
        """Write worlds.csv, report.md, report.html, figures/ and result.json; see `ReportWriter`."""
        suite, edition, order = self._suite, self._edition, self._order
        own = {one.name: {c.name: v for c, v in zip(one.cells, one.values, strict=True)} for one in played}
        results = Results(select_cells(edition, self._families), league.merge_results(self._beside, own))
        (order.output / "result.json").unlink(missing_ok=True)
        write_atomic(
            order.output / "worlds.csv",
            report.format_rows(played, suite, f"{order.command}; {league.describe_edition(suite, edition)}"),
        )
        judged, signs, blocks = self.report(order.output, results, list(own), failed, order.command)
        write_atomic(order.output / "report.html", document.render_page(f"{suite.name}, version {edition.version}", blocks))
        summaries = {one.name: report.summarise(one, suite, self._families) for one in played}
        data: dict[str, Any] = report.to_dict(suite, edition, played, summaries, models, order.command, failed)
        data |= {"first": list(judged.first), "ranking": list(judged.ranking)}
        data["tables"] = [
            {"title": one.title, "header": list(one.header), "rows": [list(r) for r in one.rows]} for one in judged.tables
        ]
        data["signs"] = [vars(sign) for sign in signs]
        write_json(order.output / "result.json", data)
        table = judged.tables[0]
        lines = self._get_opening_lines(judged, list(own), failed)
        return "\n".join([*lines, "", markdown_table(table.header, table.rows)]), ""

    def report(
        self, folder: Path, results: Results, run: Sequence[str], failed: Mapping[str, str], command: str
    ) -> tuple[Report, list[Sign], list[document.Block]]:
        """Write report.md and its figures, over all results; the controllers of `run` were run by `command`."""
        judged, signs = _append_failed(self._judge_results(results), failed), list(self._suite.signs(results))
        pictures = self._draw_figures(folder / "figures", results, judged, run) if self._order.figures else []
        blocks = self._make_blocks(results, judged, signs, run, failed, pictures, command)
        write_atomic(folder / "report.md", document.render_markdown(blocks, folder))
        return judged, signs, blocks

    def _judge_results(self, results: Results) -> Report:
        if results.names:
            return self._suite.judge(results)
        return Report(["nobody has played"], [], [Table("Ranking", ["controller", ""], [])])

    def _make_blocks(
        self,
        results: Results,
        judged: Report,
        signs: Sequence[Sign],
        run: Sequence[str],
        failed: Mapping[str, str],
        pictures: Sequence[document.Picture],
        command: str,
    ) -> list[document.Block]:
        suite, edition = self._suite, self._edition
        others = [name for name in results.names if name not in run]
        about = [
            f"{suite.summary[0].upper()}{suite.summary[1:]}. Source: {suite.source}.",
            f"Version {edition.version}, digest {edition.digest}, {len(results.cells)} worlds; run: {', '.join(run)}"
            + (f"; beside kept results of {', '.join(others)}." if others else "."),
            f"`{command}`",
        ]
        made: list[document.Block] = [
            document.Heading(suite.name, 1),
            document.Lines(self._get_opening_lines(judged, run, failed)),
            document.Lines(about),
            *judged.tables,
            document.Heading("How it ranks"),
            document.Lines(suite.rules, listed=True),
        ]
        if signs:
            made += [document.Heading("Published, and here"), tabulate_signs(signs)]
        made += [document.Heading("Pictures"), *pictures] if pictures else []
        made += [document.Heading("By family"), self._tabulate_families(results, suite.score)]
        made.append(document.Lines([f"{one.label}: {one.says}" for one in suite.metrics[:8]], listed=True))
        made.append(document.Lines([f"{name}: {suite.families[name]}" for name in self._families], listed=True))
        if suite.not_run:
            rows = [[one.worlds, one.feature] for one in suite.not_run]
            made += [document.Heading("Not run"), Table("Worlds that need what is not built", ["worlds", "feature"], rows)]
        return made

    def _get_opening_lines(self, judged: Report, run: Sequence[str], failed: Mapping[str, str]) -> list[str]:
        """Return a report's opening lines: the first controller, places of the run's controllers and of agents, failures."""
        about = [name for name in judged.ranking if name in (run if len(run) <= MAX_DRAWN // 2 else ()) or "/" in name]
        places = [f"{name} is number {judged.ranking.index(name) + 1} of {len(judged.ranking)}." for name in about]
        return [*judged.first, *places, *self._says, *(f"{name} failed: {why}" for name, why in failed.items())]

    def _tabulate_families(self, results: Results, metric: Metric) -> Table:
        rows = []
        for family in self._families:
            means = [results.mean(name, metric.key, family=family) * metric.factor for name in results.names]
            shown = [f"{mean:.{metric.digits}f}" if math.isfinite(mean) else "-" for mean in means]
            rows.append([family, str(len(results.select_cells(family=family))), *shown])
        return Table(f"Mean {metric.label} by family", ["family", "worlds", *results.names], rows)

    def _draw_figures(self, folder: Path, results: Results, judged: Report, run: Sequence[str]) -> list[document.Picture]:
        """Draw the trade-off of two metrics, as ellipses over worlds, and the distributions of the score."""
        suite = self._suite
        folder.mkdir(parents=True, exist_ok=True)
        first = [
            *(run if len(run) <= MAX_DRAWN // 2 else ()),
            *suite.reference,
            *judged.ranking[: MAX_DRAWN // 2],
            *ALWAYS,
            *judged.ranking,
        ]
        names = [name for name in dict.fromkeys(first) if name in results.names][:MAX_DRAWN]
        x, y = (suite.metric(key) for key in suite.scatter)
        points = {
            name: (
                x.factor * results.get_values(name, x.key, results.cells),
                y.factor * results.get_values(name, y.key, results.cells),
            )
            for name in names
        }
        title = f"{suite.name}, version {self._edition.version}"
        with require_extra("a plot", "plots"):
            ellipses = folder / "ellipses.png"
            plots.plot_throughput_delay(points, ellipses, title, xlabel=x.label, ylabel=y.label)
        score, figure = suite.score, plots.make_figure(6.4, 4.4)
        axes = figure.add_subplot()
        for number, name in enumerate(names):
            values = np.sort(results.get_values(name, score.key, results.cells))
            values = values[np.isfinite(values)] * score.factor
            colour, _, dashes = plots.get_style(number)
            share = np.arange(1, len(values) + 1) / max(len(values), 1)
            axes.step(values, share, where="post", color=colour, linestyle=dashes, linewidth=plots.LINE, label=name)
        axes.set_ylim(0, 1)
        plots.format_axes(axes, score.label, "share of the worlds below", title)
        plots.add_legend_below(figure, [axes], 4)
        plots.write_figure(figure, folder / "distributions.png")
        says = f"{y.label} against {x.label}: means over worlds, one standard deviation, every world faintly"
        return [
            document.Picture(ellipses, says),
            document.Picture(folder / "distributions.png", f"Distribution of {score.label} over worlds: {score.says}"),
        ]


def select_cells(edition: Edition, families: Sequence[str]) -> list[FieldCell]:
    """Return the worlds of some families, or of all if none is named."""
    return [cell for cell in edition.of(families) if isinstance(cell, FieldCell)]


def _require_all_worlds(beside: league.ControllerWorlds, cells: Sequence[FieldCell]) -> None:
    """Raise ConfigError for controllers that would be ranked on other worlds than the rest."""
    for name, worlds in beside.items():
        lacking = [cell.name for cell in cells if cell.name not in worlds]
        if lacking:
            said = f"beside has {name} without {len(lacking)} of the {len(cells)} worlds, {lacking[0]} among them"
            raise ConfigError(f"{said}; valid: whoever has played them all, or families=[...] that it has played")


def _append_failed(judged: Report, failed: Mapping[str, str]) -> Report:
    """Return the report with a row at the end of the ranking for each failed controller."""
    ranking, *others = judged.tables
    place = ranking.header.index("controller")
    behind = len(ranking.header) - place - 2
    rows = [*ranking.rows, *([*[""] * place, name, "failed", *[""] * behind] for name in failed)]
    return replace(judged, tables=[replace(ranking, rows=rows), *others])


def tabulate_signs(signs: Sequence[Sign]) -> Table:
    """Return a table of signs, with whether each holds and why not."""
    words = {True: "yes", False: "no", None: "not known"}
    rows = []
    for one in signs:
        shown = "-" if "nan" in one.shown else one.shown
        rows.append([one.says, one.source, shown, one.reason if one.holds is False else "", words[one.holds]])
    return Table("Rank orders and signs", ["what", "source", "here", "reason", "holds"], rows)
