"""How a run of a suite of the field is told: ranked among whoever else has results, with the suite's own tables and signs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym.errors import ConfigError, needing
from netbuf_gym.evaluation.suites import report
from netbuf_gym.evaluation.suites.config import Order
from netbuf_gym.evaluation.suites.field import document, league
from netbuf_gym.evaluation.suites.field.suite import FieldCell, FieldSuite, Results, Sign, Table, Told
from netbuf_gym.evaluation.suites.runner import Played
from netbuf_gym.evaluation.suites.suite import Edition, Metric
from netbuf_gym.utils import plots
from netbuf_gym.utils.files import write_atomic, write_json
from netbuf_gym.utils.tables import markdown_table

SENDER = "congestion_window/sender"
"""The package's, `netbuf_gym.zoo.library.SENDER`, which is told of without what learners need."""

DRAWN, ALWAYS = 8, ("cubic", "bbr", SENDER)
"""Controllers at most in a picture: those that were run if they are few, the first ones of the ranking, and these."""


class Field:
    """See `netbuf_gym.evaluation.suites.report_files.Teller`."""

    def __init__(self, suite: FieldSuite, edition: Edition, families: Sequence[str], order: Order):
        if order.against is not None:
            raise ConfigError(f"against = {order.against}: {suite.name} ranks its controllers; valid: beside=[.../worlds.csv]")
        self._suite, self._edition, self._families, self._order = suite, edition, families, order
        named = order.beside
        self._beside, self._says = league.kept(suite, edition) if named is None else (league.beside(suite, edition, named), [])
        if order.beside:
            _require_all(self._beside, cells_of(edition, families))
        self.needs = [name for name in suite.reference if name not in (*order.controllers, *self._beside)]

    def tell(self, played: Sequence[Played], failed: Mapping[str, str], models: Mapping[str, str | None]) -> tuple[str, str]:
        """Writes worlds.csv, report.md, report.html, figures/ and result.json; see `Teller`."""
        suite, edition, order = self._suite, self._edition, self._order
        own = {one.name: {c.name: v for c, v in zip(one.cells, one.values, strict=True)} for one in played}
        results = Results(cells_of(edition, self._families), league.merged(self._beside, own))
        (order.output / "result.json").unlink(missing_ok=True)
        write_atomic(
            order.output / "worlds.csv", report.rows(played, suite, f"{order.command}; {league.stamp(suite, edition)}")
        )
        told, signs, blocks = self.report(order.output, results, list(own), failed, order.command)
        write_atomic(order.output / "report.html", document.page(f"{suite.name}, version {edition.version}", blocks))
        summaries = {one.name: report.summary(one, suite, self._families) for one in played}
        data: dict[str, Any] = report.to_dict(suite, edition, played, summaries, models, order.command, failed)
        data |= {"first": list(told.first), "ranking": list(told.ranking)}
        data["tables"] = [
            {"title": one.title, "header": list(one.header), "rows": [list(r) for r in one.rows]} for one in told.tables
        ]
        data["signs"] = [vars(sign) for sign in signs]
        write_json(order.output / "result.json", data)
        table = told.tables[0]
        lines = self._first(told, list(own), failed)
        return "\n".join([*lines, "", markdown_table(table.header, table.rows)]), ""

    def report(
        self, folder: Path, results: Results, run: Sequence[str], failed: Mapping[str, str], command: str
    ) -> tuple[Told, list[Sign], list[document.Block]]:
        """Writes report.md and its pictures, of everybody's results; the controllers of `run` were played by `command`."""
        told, signs = _with_failed(self._told(results), failed), list(self._suite.signs(results))
        pictures = self._draw(folder / "figures", results, told, run) if self._order.figures else []
        blocks = self._blocks(results, told, signs, run, failed, pictures, command)
        write_atomic(folder / "report.md", document.markdown(blocks, folder))
        return told, signs, blocks

    def _told(self, results: Results) -> Told:
        if results.names:
            return self._suite.judge(results)
        return Told(["nobody has played"], [], [Table("Ranking", ["controller", ""], [])])

    def _blocks(
        self,
        results: Results,
        told: Told,
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
            document.Lines(self._first(told, run, failed)),
            document.Lines(about),
            *told.tables,
            document.Heading("How it ranks"),
            document.Lines(suite.rules, listed=True),
        ]
        if signs:
            made += [document.Heading("Published, and here"), signs_table(signs)]
        made += [document.Heading("Pictures"), *pictures] if pictures else []
        made += [document.Heading("By family"), self._by_family(results, suite.score)]
        made.append(document.Lines([f"{one.label}: {one.says}" for one in suite.metrics[:8]], listed=True))
        made.append(document.Lines([f"{name}: {suite.families[name]}" for name in self._families], listed=True))
        if suite.not_run:
            rows = [[one.worlds, one.feature] for one in suite.not_run]
            made += [document.Heading("Not run"), Table("Worlds that need what is not built", ["worlds", "feature"], rows)]
        return made

    def _first(self, told: Told, run: Sequence[str], failed: Mapping[str, str]) -> list[str]:
        """What a report begins with: who is first, where those stand that it is about, and who failed."""
        about = [name for name in told.ranking if name in (run if len(run) <= DRAWN // 2 else ()) or "/" in name]
        places = [f"{name} is number {told.ranking.index(name) + 1} of {len(told.ranking)}." for name in about]
        return [*told.first, *places, *self._says, *(f"{name} failed: {why}" for name, why in failed.items())]

    def _by_family(self, results: Results, metric: Metric) -> Table:
        rows = []
        for family in self._families:
            means = [results.mean(name, metric.key, family=family) * metric.factor for name in results.names]
            shown = [f"{mean:.{metric.digits}f}" if math.isfinite(mean) else "-" for mean in means]
            rows.append([family, str(len(results.chosen(family=family))), *shown])
        return Table(f"Mean {metric.label} by family", ["family", "worlds", *results.names], rows)

    def _draw(self, folder: Path, results: Results, told: Told, run: Sequence[str]) -> list[document.Picture]:
        """What is bought with what, as ellipses over worlds, and the distributions of the score."""
        suite = self._suite
        folder.mkdir(parents=True, exist_ok=True)
        first = [
            *(run if len(run) <= DRAWN // 2 else ()),
            *suite.reference,
            *told.ranking[: DRAWN // 2],
            *ALWAYS,
            *told.ranking,
        ]
        names = [name for name in dict.fromkeys(first) if name in results.names][:DRAWN]
        x, y = (suite.metric(key) for key in suite.scatter)
        points = {
            name: (x.factor * results.at(name, x.key, results.cells), y.factor * results.at(name, y.key, results.cells))
            for name in names
        }
        title = f"{suite.name}, version {self._edition.version}"
        with needing("a plot", "plots"):
            ellipses = folder / "ellipses.png"
            plots.throughput_delay(points, ellipses, title, xlabel=x.label, ylabel=y.label)
        score, figure = suite.score, plots.figure_of(6.4, 4.4)
        axes = figure.add_subplot()
        for number, name in enumerate(names):
            values = np.sort(results.at(name, score.key, results.cells))
            values = values[np.isfinite(values)] * score.factor
            colour, _, dashes = plots.style(number)
            share = np.arange(1, len(values) + 1) / max(len(values), 1)
            axes.step(values, share, where="post", color=colour, linestyle=dashes, linewidth=plots.LINE, label=name)
        axes.set_ylim(0, 1)
        plots.dress(axes, score.label, "share of the worlds below", title)
        plots.legend_below(figure, [axes], 4)
        plots.write(figure, folder / "distributions.png")
        says = f"{y.label} against {x.label}: means over worlds, one standard deviation, every world faintly"
        return [
            document.Picture(ellipses, says),
            document.Picture(folder / "distributions.png", f"Distribution of {score.label} over worlds: {score.says}"),
        ]


def cells_of(edition: Edition, families: Sequence[str]) -> list[FieldCell]:
    """The worlds of some families, of all where none is named."""
    return [cell for cell in edition.of(families) if isinstance(cell, FieldCell)]


def _require_all(beside: league.Worlds, cells: Sequence[FieldCell]) -> None:
    """Refuses whoever would be ranked by other worlds than the rest."""
    for name, worlds in beside.items():
        lacking = [cell.name for cell in cells if cell.name not in worlds]
        if lacking:
            said = f"beside has {name} without {len(lacking)} of the {len(cells)} worlds, {lacking[0]} among them"
            raise ConfigError(f"{said}; valid: whoever has played them all, or families=[...] that it has played")


def _with_failed(told: Told, failed: Mapping[str, str]) -> Told:
    """The same with a row, behind everybody's, of each that failed."""
    ranking, *others = told.tables
    place = ranking.header.index("controller")
    behind = len(ranking.header) - place - 2
    rows = [*ranking.rows, *([*[""] * place, name, "failed", *[""] * behind] for name in failed)]
    return replace(told, tables=[replace(ranking, rows=rows), *others])


def signs_table(signs: Sequence[Sign]) -> Table:
    """Each sign with whether it holds, and why not."""
    words = {True: "yes", False: "no", None: "not known"}
    rows = []
    for one in signs:
        shown = "-" if "nan" in one.shown else one.shown
        rows.append([one.says, one.source, shown, one.reason if one.holds is False else "", words[one.holds]])
    return Table("Rank orders and signs", ["what", "source", "here", "reason", "holds"], rows)
