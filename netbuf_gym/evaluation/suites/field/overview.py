"""Documentation tables over all suites of the field, from the results that the package keeps."""

from __future__ import annotations

from netbuf_gym.evaluation.suites.field import SUITES, ccbench, games, league
from netbuf_gym.evaluation.suites.field.ranking import select_cells, tabulate_signs
from netbuf_gym.evaluation.suites.field.suite import FieldSuite, Results, Sign, Table
from netbuf_gym.utils.tables import markdown_table

CLASSIC = ("vegas", "cubic", "bbr", "newreno", "westwood")


def read_kept(suite: FieldSuite) -> Results:
    """Return the results that the package keeps of a suite's worlds."""
    edition = suite.load()
    return Results(select_cells(edition, ()), league.read_kept(suite, edition)[0])


def tabulate_suites() -> str:
    """Return a table with a row per suite: number of worlds, simulated time, worlds that are not run."""
    rows = []
    for suite in SUITES:
        cells = suite.load().cells
        missing = "; ".join(f"{one.worlds} ({one.feature})" for one in suite.not_run)
        simulated = f"{sum(cell.scenario.duration_s for cell in cells):.0f}"
        rows.append([f"`{suite.name}`", str(len(cells)), simulated, suite.summary, suite.source, missing or "-"])
    return markdown_table(["suite", "runs", "simulated s", "what", "source", "not run"], rows)


def tabulate_all_signs() -> str:
    """Return a table of all suites' rank orders and signs, with whether each holds and why not."""
    rows = [["`ccbench`", *row] for row in tabulate_signs([_check_both_tops()]).rows]
    for suite in SUITES:
        rows += [[f"`{suite.name}`", *row] for row in tabulate_signs(suite.signs(read_kept(suite))).rows]
    return markdown_table(["suite", "what", "source", "here", "reason", "holds"], rows)


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


def collect_rankings(task: str) -> list[tuple[FieldSuite, list[str]]]:
    """Return the suites that evaluate a task's controllers and have kept results of two or more, each with its ranking."""
    own = [(suite, read_kept(suite)) for suite in SUITES if suite.task == task]
    return [(suite, list(suite.judge(results).ranking)) for suite, results in own if len(results.names) > 1]


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
        + "".join(f" {name}, which says who is like a control, is not in the mean." for name in alike)
    )
    return Table("Suites of the field", header, rows, says)


TABLES = {
    "field suites": tabulate_suites,
    "field signs": tabulate_all_signs,
    "field leagues": tabulate_leagues,
    "field firsts": list_first_lines,
}
"""Functions by the names of their tables in documentation pages."""
