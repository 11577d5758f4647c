"""Leaderboard pages: Markdown, and self-contained HTML; and tables of the package's agents, with facts of their training."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.leaderboard import field_reports, scoring
from netbuf_gym.leaderboard import standings as leaderboard
from netbuf_gym.utils import plots, statistics
from netbuf_gym.utils.files import make_folder, write_atomic
from netbuf_gym.utils.tables import format_number, markdown_table
from netbuf_gym.version import __version__
from netbuf_gym.zoo import library

TEMPLATE = Path(__file__).with_name("leaderboard_page.html")
COLOURS = {"agent": "#0072b2", "rule": "#009e73", "constant": "#e69f00", "other control": "#767676", "random": "#a33"}
LOWEST = -1.0
"""Lower end of the pictures' score axes; scores below are in the table only."""
LINES = 6
"""Number of lines of a profile that can be told apart."""
DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4", "4 2")
MADE_BY = "netbuf-gym results pages"
PICTURE = "leaderboard.png"
KINDS = (scoring.AGENT, scoring.HEURISTIC, scoring.CONSTANT, scoring.OTHER)
"""Kinds of controllers whose best the picture shows, in this order."""


def write_pages(standings: dict[str, list[scoring.Standing]], output: Path, figures: Path) -> list[Path]:
    """Write leaderboard.md and leaderboard.html into a folder, leaderboard.png into another; return their paths.

    Raises:
        MissingExtraError: matplotlib is not installed.
        OSError: A page cannot be written.
    """
    for folder in (output, figures):
        make_folder(folder, "docs")
    pages = {output / "leaderboard.md": format_markdown(standings), output / "leaderboard.html": format_html(standings)}
    for path, text in pages.items():
        write_atomic(path, text)
    plots.write_figure(draw_standings(standings), figures / PICTURE)
    return [*pages, figures / PICTURE]


def select_firsts(standing: Sequence[scoring.Standing]) -> dict[str, scoring.Standing]:
    """Return the first of each kind except chance."""
    ranked = {one.role: one for one in reversed(standing) if one.checked}
    return {role: ranked[role] for role in KINDS if role in ranked}


def draw_standings(standings: dict[str, list[scoring.Standing]]) -> Any:
    """Draw scores with intervals, of the best of each kind and of further agents above chance; one axes per task."""
    columns = min(2, len(standings))
    rows = -(-len(standings) // columns)
    figure = plots.make_figure(4.6 * columns, 0.7 + 1.6 * rows)
    for at, (task, standing) in enumerate(standings.items()):
        axes = figure.add_subplot(rows, columns, at + 1)
        best = [*select_firsts(standing).values()]
        shown = [one for one in standing if one in best or (one.role == scoring.AGENT and one.middle.mean > 0)]
        for place, one in enumerate(shown):
            score = one.middle
            reach = [[score.mean - score.low], [score.high - score.mean]]
            look = {"color": COLOURS[one.role], "label": one.role, "height": 0.66, "error_kw": {"elinewidth": plots.LINE}}
            axes.barh(place, score.mean, xerr=reach, **look)
        names = ["best constant" if one.role == scoring.CONSTANT else one.name.rpartition("/")[2] for one in shown]
        axes.set_yticks(range(len(shown)), names)
        for label, one in zip(axes.get_yticklabels(), shown, strict=True):
            label.set_fontweight("bold" if one.role == scoring.AGENT else "normal")
        axes.invert_yaxis()
        axes.set_xlim(0, max(1.2, *(one.middle.high for one in shown)) + 0.05)
        axes.axvline(1.0, **plots.LIMIT)
        below = "score (chance 0, best rule or constant of each family 1)" if at >= len(standings) - columns else ""
        plots.format_axes(axes, below, title=tasks.get(task).ids[0].partition("/")[2], grid="x")
    plots.add_legend_below(figure, figure.axes, len(KINDS))
    return figure


def format_markdown(standings: dict[str, list[scoring.Standing]]) -> str:
    """Return the leaderboard as Markdown."""
    parts = [
        "# Leaderboard",
        f"Written by `{MADE_BY}` (netbuf-gym {__version__}) from the rows in `results/suites`, which "
        "`netbuf-gym results make` plays; [the same with pictures](leaderboard.html), to sort and filter. "
        "[How to read it, and how to submit an agent of your own](../leaderboard.md).",
        "\n".join(f"* {line}" for line in leaderboard.READING),
    ]
    for task, standing in standings.items():
        own = leaderboard.get_ranking_suite(task)
        edition, best = own.load(), scoring.best_heuristic(standing)
        parts += [
            f"## {tasks.get(task).ids[0].partition('/')[2]}",
            f"`{own.name}`, version {edition.version}, digest {edition.digest}: {len(edition.cells)} worlds of "
            f"{len(edition.families)} families. {' '.join(list_claims(standing))} The best rule is {best}. "
            f"{leaderboard.describe_flows(standing)}".rstrip(),
            leaderboard.format_table(task, standing),
            "Mean score by family, the best in bold:",
            leaderboard.format_families(standing),
            *format_field_places(task),
            "Each row again:",
            "\n".join(f"* {one.name}: `{leaderboard.get_command(one)}`" for one in standing),
        ]
    return "\n\n".join(parts) + "\n"


def format_field_places(task: str) -> list[str]:
    """Return places of a task's controllers in suites of the field, as parts of a page; [] if there are none."""
    places = field_reports.tabulate_places(task)
    if places is None:
        return []
    reports = ", ".join(
        f"[{suite.name}]({field_reports.get_report_path(suite)})" for suite, _ in field_reports.collect_rankings(task)
    )
    return [
        f"### {places.title}",
        f"{places.says} Their reports: {reports}; made again by `netbuf-gym results make SUITE`.",
        markdown_table(places.header, places.rows),
    ]


def list_claims(standing: Sequence[scoring.Standing]) -> list[str]:
    """Return sentences on who is first, and on agents ahead of every rule, not ahead of the best constant, or below chance."""
    ranked = [one for one in standing if one.checked]
    agents = [one for one in ranked if one.role == scoring.AGENT]
    said = [f"{ranked[0].name} ({ranked[0].role}) is first"]
    if agents and agents[0] is not ranked[0]:
        said[0] += f"; the best agent, {agents[0].name}, is number {ranked.index(agents[0]) + 1}"
    said[0] += "."
    ahead = [one.name for one in agents if one.over_rules is not None and one.over_rules.low > 0]
    named = ", ".join(ahead) or "no agent"
    said.append(f"Surely ahead of every rule, and of all else that decides without having learned: {named}.")
    if behind := [one.name for one in agents if one.behind_constant]:
        said.append(f"Not surely ahead of the best constant: {', '.join(behind)}.")
    if worse := [one.name for one in agents if one.middle.high < 0]:
        said.append(f"Worse than chance: {', '.join(worse)}.")
    return said


def format_html(standings: dict[str, list[scoring.Standing]]) -> str:
    """Return the leaderboard as HTML."""
    rows = "\n".join(_format_row(task, place, one) for task, own in standings.items() for place, one in enumerate(own, 1))
    filters = "".join(f'<option value="{task}">{_format_title(task)}</option>' for task in standings)
    reading = "".join(f"<li>{html.escape(line)}</li>" for line in leaderboard.READING)
    sections = "\n".join(_format_section(task, own) for task, own in standings.items())
    prices = [tasks.get(task).measures.price for task in standings]
    labels = sorted({price.label for price in prices if price is not None})
    price = html.escape(", ".join(labels) or "price (%)")
    text = Template(TEMPLATE.read_text(encoding="utf-8"))
    return text.substitute(price=price, rows=rows, filters=filters, reading=reading, sections=sections, made_by=MADE_BY)


def _format_title(task: str) -> str:
    return html.escape(task.replace("_", " "))


def _format_short_name(name: str) -> str:
    """Return an agent's name without its task."""
    return html.escape(name.rpartition("/")[2])


def _format_row(task: str, place: int, one: scoring.Standing) -> str:
    """Return a row of the table; `data-v` holds sort keys."""

    def cell(value: float | None, text: str, kind: str = "n") -> str:
        return f'<td class="{kind}" data-v="{"" if value is None else f"{value:.6g}"}">{text}</td>'

    def spread(interval: statistics.Interval | None, sign: str = "") -> str:
        if interval is None:
            return cell(None, "–")
        sure = " sure" if sign and interval.low > 0 else ""
        text = f"{interval.mean:{sign}.3f} <small>[{interval.low:{sign}.3f}, {interval.high:{sign}.3f}]</small>"
        return cell(interval.mean, text, "n" + sure)

    mark = ' <span class="mark" title="not surely above the best constant">≤ constant</span>' if one.behind_constant else ""
    cpu, took = one.average_entry("cpu_seconds"), one.average_entry("decision_us")
    mark += " (stale)" if leaderboard.is_stale(one) else ""
    most_flows = max((bound for own in one.flows.values() for bound in own), default=None)
    name, command = _format_short_name(one.name), html.escape(leaderboard.get_command(one))
    cells = [
        f"<td>{_format_title(task)}</td>",
        cell(place, str(place) if one.checked else "-"),
        f'<td class="name"><details><summary>{name}{mark}</summary><code>{command}</code></details></td>',
        f'<td><span class="dot" style="background:{COLOURS[one.role]}"></span>{one.role}</td>',
        spread(one.middle),
        cell(most_flows, leaderboard.format_flow_range([one]) or "–"),
        spread(one.improvement) if one.over_heuristic else cell(None, "–"),
        spread(one.over_heuristic, "+"),
        spread(one.over_constant, "+"),
        cell(len(one.results), leaderboard.format_seeds(one)) if one.role == scoring.AGENT else cell(None, ""),
        cell(cpu, format_number(cpu, 2)),
        cell(took, format_number(took, 3)),
        cell(one.price, leaderboard.format_price(one.price)),
    ]
    return f'<tr data-task="{task}" data-kind="{one.role}">{"".join(cells)}</tr>'


def _format_section(task: str, standing: Sequence[scoring.Standing]) -> str:
    own = leaderboard.get_ranking_suite(task)
    edition = own.load()
    said = f"{own.name}, version {edition.version}, digest {edition.digest}: {len(edition.cells)} worlds"
    said = f"{said}. {' '.join(list_claims(standing))} The best rule is {scoring.best_heuristic(standing)}."
    said = f"{said} {leaderboard.describe_flows(standing)}".rstrip()
    scores_plot, profiles_plot, field = draw_intervals(standing), draw_profiles(standing), _format_field(task)
    return f"""<section data-task="{task}"><h2>{_format_title(task)}</h2>
<p>{html.escape(said)}</p>
<div class="plots"><figure>{scores_plot}<figcaption>Score: mean of the middle half, 95 % interval</figcaption></figure>
<figure>{profiles_plot}<figcaption>Share of the worlds above a score</figcaption></figure></div>{field}</section>"""


def _format_field(task: str) -> str:
    """Return HTML of a task's places in suites of the field; "" if there are none."""
    places = field_reports.tabulate_places(task)
    if places is None:
        return ""
    head = "".join(f"<th>{html.escape(one)}</th>" for one in places.header)
    rows = "\n".join("<tr>" + "".join(f"<td>{html.escape(one)}</td>" for one in row) + "</tr>" for row in places.rows)
    table = f'<div class="scroll"><table class="places"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    return f"<h3>{html.escape(places.title)}</h3><p>{html.escape(places.says)}</p>{table}"


def _scale_value(low: float, high: float, start: float, end: float, value: float) -> float:
    return start + (end - start) * (min(max(value, low), high) - low) / (high - low)


def _list_ticks(low: float, high: float) -> list[float]:
    step = 0.5 if high - low > 1.2 else 0.25
    return [k * step for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]


def draw_intervals(standing: Sequence[scoring.Standing]) -> str:
    """Draw scores with their intervals as SVG, one line per controller."""
    left, width, height = 172, 560, 20
    high = max(1.1, *(one.middle.high for one in standing)) + 0.05
    low = max(LOWEST, min(0.0, *(one.middle.low for one in standing))) - 0.05
    bottom = 10 + height * len(standing)

    def x(value: float) -> float:
        return round(_scale_value(low, high, left, width - 12, value), 1)

    parts = [_draw_axis(x, low, high, 6, bottom)]
    for k, one in enumerate(standing):
        y, colour = 10 + height * k + height / 2, COLOURS[one.role]
        bold = ' font-weight="600"' if one.role == scoring.AGENT else ""
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end"{bold}>{_format_short_name(one.name)}</text>')
        if one.middle.mean < low:  # outside the picture
            parts.append(f'<text x="{left + 2}" y="{y + 4}" fill="{colour}">◂ {one.middle.mean:.2f}</text>')
            continue
        parts.append(f'<path d="M{x(one.middle.low)} {y}H{x(one.middle.high)}" stroke="{colour}" stroke-width="2.5"/>')
        said = html.escape(f"{one.name}: {one.middle}")
        parts.append(f'<circle cx="{x(one.middle.mean)}" cy="{y}" r="4.5" fill="{colour}"><title>{said}</title></circle>')
    return _wrap_svg(width, bottom + 24, "scores with intervals", parts)


def draw_profiles(standing: Sequence[scoring.Standing]) -> str:
    """Draw performance profiles of agents, the best rule and constant, and chance as SVG."""
    chosen = [one for one in standing if one.role == scoring.AGENT][: LINES - 3]
    chosen += [one for one in standing if one.over_heuristic is None or one.over_constant is None or one.role == scoring.CHANCE]
    left, width, top, bottom = 42, 560, 10, 250
    thresholds = np.linspace(LOWEST, 2.0, 121)

    def x(value: float) -> float:
        return round(_scale_value(LOWEST, 2.0, left, width - 12, value), 1)

    parts = [_draw_axis(x, LOWEST, 2.0, top, bottom)]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _scale_value(0, 1, bottom, top, share)
        parts.append(f'<path d="M{left} {y}H{width - 12}" class="grid"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{share:g}</text>')
    for k, one in enumerate(chosen):
        shares = scoring.profile(one, thresholds)
        pairs = zip(thresholds.tolist(), shares.tolist(), strict=True)
        points = " ".join(f"{x(at)},{_scale_value(0, 1, bottom, top, share):.1f}" for at, share in pairs)
        look = f'stroke="{COLOURS[one.role]}" stroke-dasharray="{DASHES[k % len(DASHES)]}"'
        parts.append(f'<polyline points="{points}" fill="none" stroke-width="2" {look}/>')
        y = bottom + 42 + 17 * k
        parts.append(f'<path d="M{left} {y - 4}h34" fill="none" stroke-width="2" {look}/>')
        parts.append(f'<text x="{left + 42}" y="{y}">{_format_short_name(one.name)} ({one.role})</text>')
    return _wrap_svg(width, bottom + 42 + 17 * len(chosen), "performance profiles", parts)


def _draw_axis(x: Callable[[float], float], low: float, high: float, top: float, bottom: float) -> str:
    parts = []
    for tick in _list_ticks(low, high):
        at = x(tick)
        strong = " strong" if tick in (0.0, 1.0) else ""
        parts.append(f'<path d="M{at} {top}V{bottom}" class="grid{strong}"/>')
        parts.append(f'<text x="{at}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>')
    return "".join(parts)


def _wrap_svg(width: float, height: float, label: str, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


# ---- tables of agents

TRAINING = ("algorithm", "recipe", "trained on", "seeds", "steps", "minutes")
"""Columns of `format_training_facts`."""


def format_agents_table(task: str, standing: Sequence[scoring.Standing], page: Path) -> str:
    """Format a Markdown table of the package's agents of a task, the best first.

    Args:
        task: Name of the task.
        standing: Standings of the task, the best first.
        page: Folder that links to the agents' cards start from, below the root of the checkout.

    Raises:
        ConfigError: metrics.json of an agent cannot be read.
    """
    made, counted = [], any(one.flows for one in standing)
    for one in standing:
        if one.name in library.names():
            card = library.FOLDER / one.name / "card.md"
            link = os.path.relpath(card, library.FOLDER.parents[1] / page)
            agent = f"[{one.name.removeprefix(f'{task}/')}]({link})"
            agent += f" {leaderboard.STALE}" if leaderboard.is_stale(one) else ""
            over = (leaderboard.format_difference(one.over_heuristic), leaderboard.format_difference(one.over_constant))
            score = [str(one.middle), *[leaderboard.format_flow_range([one])] * counted]
            made.append([agent, *format_training_facts(library.read_metrics(card.parent)), *score, *over])
    header = ["agent", *TRAINING, "score", *["flows"] * counted, "over best rule", "over best constant"]
    return markdown_table(header, made) if made else "No agent yet."


def format_training_facts(metrics: dict[str, Any]) -> list[str]:
    """Return the cells of columns `TRAINING`; steps and minutes are means per seed, including the agents it began with."""
    trained_on = metrics["training_scenario"]
    before = [one or {} for one in metrics.get("begun_with", [])]
    steps, seconds = (
        np.mean(metrics[f"training_{key}"]) + np.mean([one.get(key, 0.0) for one in before] or [0.0])
        for key in ("timesteps", "seconds")
    )
    return [
        metrics["algo"],
        metrics["recipe"],
        trained_on["name"] if isinstance(trained_on, dict) else trained_on,
        str(len(metrics["training_seeds"])),
        f"{steps / 1e6:.1f} M",
        f"{seconds / 60:.1f}",
    ]
