"""Reports on suites of the field: their own ranking among all kept results, as Markdown and HTML; tables of all suites."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from netbuf_gym.errors import ConfigError, require_extra
from netbuf_gym.evaluation.suites import Edition, Metric
from netbuf_gym.evaluation.suites.config import RunConfig
from netbuf_gym.evaluation.suites.field import SUITES, ccbench, games
from netbuf_gym.evaluation.suites.field.suite import SENDER, FieldCell, FieldSuite, Report, Results, Sign, Table
from netbuf_gym.leaderboard import reports, rows
from netbuf_gym.leaderboard.play import SuiteRun
from netbuf_gym.utils import plots
from netbuf_gym.utils.files import write_atomic, write_json
from netbuf_gym.utils.tables import NUMBER, markdown_table

PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title><style>
:root { --ink: #1b1f24; --line: #d9dee4; --back: #fff; --band: #f4f6f8; --bad: #b3541e; --good: #0a6b3d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --line: #3a4049; --back: #16191d; --band: #1f2429; } }
body { margin: 0 auto; max-width: 1180px; padding: 1.2rem; font: 15px/1.5 system-ui, sans-serif; color: var(--ink);
       background: var(--back); }
p, ul { max-width: 80ch; } .scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .88rem; }
th, td { padding: .25rem .55rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { background: var(--band); } td.n { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0; } img { max-width: 100%; background: #fff; } code { background: var(--band); padding: 0 .25em; }
tr.flag td { color: var(--bad); font-weight: 600; }
</style></head><body>
$body
</body></html>
""")
FLAGS = ("FLAG", "no", "failed")
"""Texts that highlight the row of a table in which a cell has one of them."""


@dataclass(frozen=True)
class Heading:
    """Heading of a section."""

    text: str
    depth: int = 2


@dataclass(frozen=True)
class Lines:
    """Paragraphs, or items of a list; `code` in backquotes."""

    lines: Sequence[str]
    listed: bool = False


@dataclass(frozen=True)
class Picture:
    """Image, linked from the Markdown and embedded in the HTML page."""

    path: Path
    caption: str


Block = Heading | Lines | Picture | Table


def render_markdown(blocks: Sequence[Block], folder: Path) -> str:
    """Return the report as Markdown; images are linked relative to the folder that holds the report."""
    return "\n\n".join(_render_block(block, folder) for block in blocks) + "\n"


def _render_block(block: Block, folder: Path) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.depth} {block.text}"
    if isinstance(block, Lines):
        return "\n".join(f"* {line}" for line in block.lines) if block.listed else "\n\n".join(block.lines)
    if isinstance(block, Picture):
        return f"![{block.caption}]({block.path.relative_to(folder).as_posix()})"
    parts = [f"### {block.title}", block.says, markdown_table(block.header, block.rows)]
    return "\n\n".join(part for part in parts if part)


def render_page(title: str, blocks: Sequence[Block]) -> str:
    """Return the report as an HTML page with embedded images."""
    return PAGE.substitute(title=html.escape(title), body="\n".join(map(_render_html, blocks)))


def _render_html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.depth}>{_render_inline(block.text)}</h{block.depth}>"
    if isinstance(block, Lines):
        if block.listed:
            return "<ul>" + "".join(f"<li>{_render_inline(line)}</li>" for line in block.lines) + "</ul>"
        return "\n".join(f"<p>{_render_inline(line)}</p>" for line in block.lines)
    if isinstance(block, Picture):
        data = base64.b64encode(block.path.read_bytes()).decode()
        caption = _render_inline(block.caption)
        return f'<figure><img alt="{caption}" src="data:image/png;base64,{data}"><figcaption>{caption}</figcaption></figure>'
    head = "".join(f"<th>{_render_inline(cell)}</th>" for cell in block.header)
    body = "".join(_render_row(row) for row in block.rows)
    said = f"<p>{_render_inline(block.says)}</p>" if block.says else ""
    table = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    return f"<h3>{_render_inline(block.title)}</h3>{said}{table}"


def _render_row(row: Sequence[str]) -> str:
    flag = ' class="flag"' if any(cell in FLAGS for cell in row) else ""
    cells = "".join(
        f'<td class="n">{_render_inline(c)}</td>' if NUMBER.fullmatch(c) else f"<td>{_render_inline(c)}</td>" for c in row
    )
    return f"<tr{flag}>{cells}</tr>"


def _render_inline(text: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text, quote=True))


NO_RESULTS = "no controller has results"
MAX_DRAWN, ALWAYS = 8, ("cubic", "bbr", SENDER)
"""Most controllers in a figure: those of the run if they are few, the first ones of the ranking, and those of `ALWAYS`."""


class FieldReport:
    """Writer of a ranking's files; see `netbuf_gym.leaderboard.reports.ReportWriter`."""

    def __init__(self, suite: FieldSuite, edition: Edition, families: Sequence[str], order: RunConfig):
        if order.against is not None:
            raise ConfigError(f"against = {order.against}: {suite.name} ranks its controllers; valid: beside=[.../worlds.csv]")
        self._suite, self._edition, self._families, self._order = suite, edition, families, order
        self._beside, self._says = _read_kept_worlds(suite, edition) if order.beside is None else ({}, [])
        for path in order.beside or ():
            self._beside |= rows.read_worlds(path, suite, edition)
        if order.beside:
            _require_all_worlds(self._beside, select_cells(edition, families))
        self.needs: Sequence[str] = [name for name in suite.reference if name not in (*order.controllers, *self._beside)]

    def write(self, played: Sequence[SuiteRun], failed: Mapping[str, str], models: Mapping[str, str | None]) -> tuple[str, str]:
        """Write worlds.csv, report.md, report.html, figures/ and result.json; see `ReportWriter`."""
        suite, edition, order = self._suite, self._edition, self._order
        own = {one.name: one.worlds for one in played}
        results = Results(select_cells(edition, self._families), {**self._beside, **own})
        (order.output / "result.json").unlink(missing_ok=True)
        said = f"{order.command}; {rows.describe_edition(suite.name, edition.version, edition.digest)}"
        write_atomic(order.output / "worlds.csv", reports.format_rows(played, suite, said))
        judged, signs, blocks = self.report(order.output, results, list(own), failed, order.command)
        write_atomic(order.output / "report.html", render_page(f"{suite.name}, version {edition.version}", blocks))
        summaries = {one.name: reports.summarise(one, suite, self._families) for one in played}
        data: dict[str, Any] = reports.to_dict(suite, edition, played, summaries, models, order.command, failed)
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
    ) -> tuple[Report, list[Sign], list[Block]]:
        """Write report.md and its figures, over all results; the controllers of `run` were run by `command`."""
        judged, signs = _append_failed(self._judge_results(results), failed), list(self._suite.signs(results))
        pictures = self._draw_figures(folder / "figures", results, judged, run) if self._order.figures else []
        blocks = self._make_blocks(results, judged, signs, run, failed, pictures, command)
        write_atomic(folder / "report.md", render_markdown(blocks, folder))
        return judged, signs, blocks

    def _judge_results(self, results: Results) -> Report:
        if results.names:
            return self._suite.judge(results)
        return Report([NO_RESULTS], [], [Table("Ranking", ["controller", ""], [])])

    def _make_blocks(
        self,
        results: Results,
        judged: Report,
        signs: Sequence[Sign],
        run: Sequence[str],
        failed: Mapping[str, str],
        pictures: Sequence[Picture],
        command: str,
    ) -> list[Block]:
        suite, edition = self._suite, self._edition
        others = [name for name in results.names if name not in run]
        about = [
            f"{suite.summary[0].upper()}{suite.summary[1:]}. Source: {suite.source}.",
            f"Version {edition.version}, digest {edition.digest}, {len(results.cells)} worlds; run: {', '.join(run)}"
            + (f"; beside kept results of {', '.join(others)}." if others else "."),
            f"`{command}`",
        ]
        made: list[Block] = [
            Heading(suite.name, 1),
            Lines(self._get_opening_lines(judged, run, failed)),
            Lines(about),
            *judged.tables,
            Heading("Ranking rule"),
            Lines(suite.rules, listed=True),
        ]
        if signs:
            made += [Heading("Published properties, and the results here"), tabulate_signs(signs)]
        made += [Heading("Figures"), *pictures] if pictures else []
        made += [Heading("By family"), self._tabulate_families(results, suite.score)]
        made.append(Lines([f"{one.label}: {one.says}" for one in suite.metrics[:8]], listed=True))
        made.append(Lines([f"{name}: {suite.families[name]}" for name in self._families], listed=True))
        if suite.not_run:
            rows = [[one.worlds, one.feature] for one in suite.not_run]
            made += [Heading("Not run"), Table("Worlds that need a missing feature", ["worlds", "feature"], rows)]
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

    def _draw_figures(self, folder: Path, results: Results, judged: Report, run: Sequence[str]) -> list[Picture]:
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
            Picture(ellipses, says),
            Picture(folder / "distributions.png", f"Distribution of {score.label} over worlds: {score.says}"),
        ]


def select_cells(edition: Edition, families: Sequence[str]) -> list[FieldCell]:
    """Return the worlds of some families, or of all if none is named."""
    return [cell for cell in edition.select_cells(families) if isinstance(cell, FieldCell)]


def _require_all_worlds(beside: rows.ControllerWorlds, cells: Sequence[FieldCell]) -> None:
    """Raise ConfigError for controllers that would be ranked on other worlds than the rest."""
    for name, worlds in beside.items():
        lacking = [cell.name for cell in cells if cell.name not in worlds]
        if lacking:
            said = f"beside has {name} without {len(lacking)} of the {len(cells)} worlds, {lacking[0]} among them"
            raise ConfigError(f"{said}; valid: results of all of them, or families=[...] that they cover")


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
    return Table("Rank orders and signs", ["property", "source", "here", "reason", "holds"], rows)


CLASSIC = ("vegas", "cubic", "bbr", "newreno", "westwood")


def read_kept(suite: FieldSuite) -> Results:
    """Return the results that the package keeps of a suite's worlds."""
    edition = suite.load()
    return Results(select_cells(edition, ()), _read_kept_worlds(suite, edition)[0])


def _read_kept_worlds(suite: FieldSuite, edition: Edition) -> tuple[rows.ControllerWorlds, list[str]]:
    """Return the kept results of a suite, and sentences about those that are stale, or left out because they do not fit."""
    found, unfit = rows.read_kept(suite, edition)
    says = [f"Kept results that are not ranked: {error}." for error in unfit]
    stale = [f"{name} ({one.stale})" for name, one in found.items() if one.stale]
    says += [f"Stale: {', '.join(stale)}."] if stale else []
    return {name: {world: dict(own) for world, own in one.worlds.items()} for name, one in found.items()}, says


def tabulate_suites() -> str:
    """Return a table with a row per suite: number of worlds, simulated time, worlds that are not run."""
    rows = []
    for suite in SUITES:
        cells = suite.load().cells
        missing = "; ".join(f"{one.worlds} ({one.feature})" for one in suite.not_run)
        simulated = f"{sum(cell.scenario.duration_s for cell in cells):.0f}"
        rows.append([f"`{suite.name}`", str(len(cells)), simulated, suite.summary, suite.source, missing or "-"])
    return markdown_table(["suite", "runs", "simulated s", "description", "source", "not run"], rows)


def tabulate_all_signs() -> str:
    """Return a table of all suites' rank orders and signs, with whether each holds and why not."""
    rows = [["`ccbench`", *row] for row in tabulate_signs([_check_both_tops()]).rows]
    for suite in SUITES:
        rows += [[f"`{suite.name}`", *row] for row in tabulate_signs(suite.signs(read_kept(suite))).rows]
    return markdown_table(["suite", "property", "source", "here", "reason", "holds"], rows)


def _compute_league_rates() -> tuple[dict[str, float], dict[str, float]]:
    """Return the winning rates of both of ccBench's leagues, %."""
    return ccbench.compute_winning_rates(read_kept(ccbench.SOLO), "solo"), ccbench.compute_winning_rates(
        read_kept(ccbench.FRIENDLY), "friendly"
    )


def _check_both_tops() -> Sign:
    """Return the sign whether a classic control has half of the best classic's rate or more in both leagues."""
    solo, friendly = ({name: rate for name, rate in one.items() if name in CLASSIC} for one in _compute_league_rates())
    tops = [name for name in solo if all(one.get(name, 0) >= 0.5 * max(one.values()) for one in (solo, friendly))]
    shown = ", ".join(f"{name} {solo[name]:.1f} and {friendly.get(name, 0):.1f} %" for name in solo)
    says = f"of {', '.join(CLASSIC)} none is near the top of both leagues (half of the best one's rate or more)"
    why = "; ".join(f"{name} is; beside CUBIC it wins in buffers of {_describe_buffers(name)}" for name in tops)
    return Sign(says, "recalled from arXiv 2307.10054", not tops if solo and friendly else None, shown, why)


def _describe_buffers(name: str) -> str:
    """Return a controller's winning rates beside CUBIC, buffer by buffer."""
    results = read_kept(ccbench.FRIENDLY)
    own = {
        buffer: games.compute_winning_rates(
            games.find_pairwise_winners(results, results.select_cells(family=buffer), len(ccbench.WINDOWS))
        )
        for buffer in ccbench.FRIENDLY.families
    }
    return ", ".join(f"{buffer} {found.get(name, 0):.0f} %" for buffer, found in own.items())


def tabulate_leagues() -> str:
    """Return a table of ccBench's winning rates and their sum, the highest first."""
    solo, friendly = _compute_league_rates()
    both = {name: rate + friendly[name] for name, rate in solo.items() if name in friendly}
    order = sorted(both, key=lambda name: -both[name])
    rows = [[str(k), name, *(f"{x[name]:.2f}" for x in (solo, friendly, both))] for k, name in enumerate(order, 1)]
    return markdown_table(["", "controller", "solo (%)", "friendly (%)", "sum"], rows)


def list_first_lines() -> str:
    """Return the first lines of every suite's report over kept results, with a link relative to the documentation folder."""
    lines = []
    for suite in SUITES:
        results = read_kept(suite)
        if results.names:
            judged = suite.judge(results)
            ours = [name for name in judged.ranking if name.startswith(f"{suite.task}/")]
            own = [line for line in judged.first if any(line.startswith(f"{name}:") for name in ours)]
            places = [f"{name} is number {judged.ranking.index(name) + 1} of {len(judged.ranking)}." for name in ours]
            lines.append(
                f"* [{suite.name}]({get_report_path(suite)}): {' '.join(dict.fromkeys([judged.first[0], *own, *places]))}"
            )
    return "\n".join(lines)


def get_report_path(suite: FieldSuite) -> str:
    """Return the path of a suite's report, relative to the documentation folder."""
    return f"field/{suite.name.replace('/', '-')}/report.md"


RANKINGS = "rankings.json"
"""File beside the suites' folders of rows: each suite's ranking of its rows, which takes longer than to read it."""


def collect_rankings(task: str) -> list[tuple[FieldSuite, list[str]]]:
    """Return the suites that evaluate a task's controllers and have kept results of two or more, each with its ranking.

    Rankings are those of `RANKINGS` where the rows are still those that it was written for.
    """
    kept, found = _read_rankings(), []
    for suite in SUITES:
        if suite.task == task:
            one = kept.get(suite.name, {})
            ranking = one["ranking"] if one.get("rows") == _compute_rows_digest(suite) else _rank_kept(suite)
            found += [(suite, ranking)] if len(ranking) > 1 else []
    return found


def write_rankings() -> None:
    """Rank the kept rows of all suites of the field, and write `RANKINGS`; rankings of the present rows are taken over.

    Raises:
        OSError: The file cannot be written.
    """
    kept = _read_rankings()
    for suite in SUITES:
        digest = _compute_rows_digest(suite)
        if kept.get(suite.name, {}).get("rows") != digest:
            kept[suite.name] = {"rows": digest, "ranking": _rank_kept(suite)}
    write_json(rows.FOLDER / RANKINGS, kept)


def _rank_kept(suite: FieldSuite) -> list[str]:
    results = read_kept(suite)
    return list(suite.judge(results).ranking) if results.names else []


def _compute_rows_digest(suite: FieldSuite) -> str:
    """Return a digest of the kept rows of a suite, 16 hexadecimal digits, without the first lines of their files."""
    digest = hashlib.sha256()
    for path in sorted(rows.get_folder(suite).glob("*.csv")):
        digest.update(path.name.encode() + b"\n" + path.read_bytes().partition(b"\n")[2])
    return digest.hexdigest()[:16]


def _read_rankings() -> dict[str, Any]:
    """Return the kept rankings by suite; none if there is no file, or a damaged one."""
    with suppress(OSError, ValueError):
        found = json.loads((rows.FOLDER / RANKINGS).read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    return {}


def tabulate_places(task: str) -> Table | None:
    """Return the places of all controllers in every suite of the field for a task; None if there are no rankings."""
    rankings = collect_rankings(task)
    if not rankings:
        return None
    behind: dict[str, list[float]] = {}
    for suite, ranking in rankings:
        for place, name in enumerate(ranking):
            shares = behind.setdefault(name, [])
            shares += [(len(ranking) - 1 - place) / (len(ranking) - 1)] if suite.compares else []
    ahead = {name: sum(shares) / len(shares) if shares else 0.0 for name, shares in behind.items()}
    rows = []
    for place, name in enumerate(sorted(ahead, key=lambda name: (-ahead[name], name)), 1):
        cells = [str(own.index(name) + 1) if name in own else "-" for _, own in rankings]
        rows.append([str(place), name, f"{ahead[name]:.2f}", *cells])
    header = ["", "controller", "ahead of", *(f"{suite.name} ({len(own)})" for suite, own in rankings)]
    alike = [suite.name for suite, _ in rankings if not suite.compares]
    says = (
        "Places in the suites' own rankings of the results that the package keeps (how many there are of each); ahead of: the "
        "share of the others that a controller is ahead of, mean over the suites that it was in."
        + "".join(f" {name} ranks by likeness to a reference, and is not in the mean." for name in alike)
    )
    return Table("Suites of the field", header, rows, says)


TABLES = {
    "field suites": tabulate_suites,
    "field signs": tabulate_all_signs,
    "field leagues": tabulate_leagues,
    "field firsts": list_first_lines,
}
"""Functions by the names of their tables in documentation pages."""
