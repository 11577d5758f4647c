"""What all suites of the field come to together, from the results that the package keeps: tables for the documentation."""

from __future__ import annotations

from netbuf_gym.evaluation.suites.field import SUITES, ccbench, games, league
from netbuf_gym.evaluation.suites.field.ranking import cells_of, signs_table
from netbuf_gym.evaluation.suites.field.suite import FieldSuite, Results, Sign, Table
from netbuf_gym.utils.tables import markdown_table

CLASSIC = ("vegas", "cubic", "bbr", "newreno", "westwood")


def kept(suite: FieldSuite) -> Results:
    """The results that the package keeps of a suite; of nobody where there are none of these worlds."""
    edition = suite.load()
    return Results(cells_of(edition, ()), league.kept(suite, edition)[0])


def suites() -> str:
    """A row a suite: how many worlds, how long, what is not run."""
    rows = []
    for suite in SUITES:
        cells = suite.load().cells
        missing = "; ".join(f"{one.worlds} ({one.feature})" for one in suite.not_run)
        simulated = f"{sum(cell.scenario.duration_s for cell in cells):.0f}"
        rows.append([f"`{suite.name}`", str(len(cells)), simulated, suite.summary, suite.source, missing or "-"])
    return markdown_table(["suite", "runs", "simulated s", "what", "source", "not run"], rows)


def signs() -> str:
    """Every rank order and sign of every suite, whether it holds, and why not."""
    rows = [["`ccbench`", *row] for row in signs_table([_both_tops()]).rows]
    for suite in SUITES:
        rows += [[f"`{suite.name}`", *row] for row in signs_table(suite.signs(kept(suite))).rows]
    return markdown_table(["suite", "what", "source", "here", "reason", "holds"], rows)


def _rates() -> tuple[dict[str, float], dict[str, float]]:
    """Winning rates of both of ccBench's leagues, %."""
    return ccbench.rates(kept(ccbench.SOLO), "solo"), ccbench.rates(kept(ccbench.FRIENDLY), "friendly")


def _both_tops() -> Sign:
    """Whether a classic control has half of the best classic's rate or more in both leagues."""
    solo, friendly = ({name: rate for name, rate in one.items() if name in CLASSIC} for one in _rates())
    tops = [name for name in solo if all(one.get(name, 0) >= 0.5 * max(one.values()) for one in (solo, friendly))]
    shown = ", ".join(f"{name} {solo[name]:.1f} and {friendly.get(name, 0):.1f} %" for name in solo)
    says = f"of {', '.join(CLASSIC)} none is near the top of both leagues (half of the best one's rate or more)"
    why = "; ".join(f"{name} is; beside CUBIC it wins in buffers of {_by_buffer(name)}" for name in tops)
    return Sign(says, "recalled from arXiv 2307.10054", not tops if solo and friendly else None, shown, why)


def _by_buffer(name: str) -> str:
    """Its winning rates beside CUBIC, buffer by buffer."""
    results = kept(ccbench.FRIENDLY)
    own = {
        buffer: games.rates(games.won_beside(results, results.chosen(family=buffer), len(ccbench.WINDOWS)))
        for buffer in ccbench.FRIENDLY.families
    }
    return ", ".join(f"{buffer} {found.get(name, 0):.0f} %" for buffer, found in own.items())


def leagues() -> str:
    """Both winning rates of ccBench and their sum, the highest first."""
    solo, friendly = _rates()
    both = {name: rate + friendly[name] for name, rate in solo.items() if name in friendly}
    order = sorted(both, key=lambda name: -both[name])
    rows = [[str(k), name, *(f"{x[name]:.2f}" for x in (solo, friendly, both))] for k, name in enumerate(order, 1)]
    return markdown_table(["", "controller", "solo (%)", "friendly (%)", "sum"], rows)


def firsts() -> str:
    """The first lines of every suite's report, over the kept results, with its place from the folder of the documentation."""
    lines = []
    for suite in SUITES:
        results = kept(suite)
        if results.names:
            told = suite.judge(results)
            ours = [name for name in told.ranking if name.startswith(f"{suite.task}/")]
            own = [line for line in told.first if any(line.startswith(f"{name}:") for name in ours)]
            places = [f"{name} is number {told.ranking.index(name) + 1} of {len(told.ranking)}." for name in ours]
            lines.append(f"* [{suite.name}]({report_of(suite)}): {' '.join(dict.fromkeys([told.first[0], *own, *places]))}")
    return "\n".join(lines)


def report_of(suite: FieldSuite) -> str:
    """Where the documentation has the report of a suite, from its own folder."""
    return f"field/{suite.name.replace('/', '-')}/report.md"


def ranked(task: str) -> list[tuple[FieldSuite, list[str]]]:
    """Suites that judge controllers of a task, with whose results of two and more are kept of each, the best first."""
    own = [(suite, kept(suite)) for suite in SUITES if suite.task == task]
    return [(suite, list(suite.judge(results).ranking)) for suite, results in own if len(results.names) > 1]


def places(task: str) -> Table | None:
    """Where everybody stands in every suite of the field that judges controllers of a task; None: none does."""
    rankings = ranked(task)
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


TABLES = {"field suites": suites, "field signs": signs, "field leagues": leagues, "field firsts": firsts}
"""By their names in pages of documentation."""
