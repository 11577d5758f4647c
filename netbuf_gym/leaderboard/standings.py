"""`netbuf-gym leaderboard`: who is ahead on the suites that controllers of all tasks are ranked by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation.suites import rows, scoring
from netbuf_gym.leaderboard import constants, scores
from netbuf_gym.tasks import get
from netbuf_gym.training.schema import LEAST_SEEDS
from netbuf_gym.utils.progress import say
from netbuf_gym.utils.statistics import Interval
from netbuf_gym.utils.tables import markdown_table, number

HEADER = ("", "controller", "kind", "score", "P(> best rule)", "over best rule", "over best constant", "seeds", "CPU s", "us")
"""Of the table of a task, before the price of its score if it has one."""
NOT_BETTER = "(not above the best constant)"
STALE = "(stale)"
"""Of rows that `netbuf-gym results status` found not to be current."""
READING = (
    "score: of each world what a controller has more than chance there, over what the best control that was not learned has "
    "more in the mean of the family: chance 0, the best rule or constant of the family 1; the mean of the middle half of all "
    "worlds, families weighing alike, with its 95 % interval (bootstrap, stratified by family)",
    "P(> best rule): share of the worlds in which it is ahead of the best rule, ties half",
    "over best rule, over best constant: mean of the differences in the same worlds, of utility or of the logarithm of the "
    "slowdown as they are, families weighing alike; an interval above 0 is surely ahead",
    "kind: agent (learned), rule (acts through the agents' control), constant (the best one, chosen on other worlds), random "
    "(chance), other control (another congestion control, AQM or the like, beside)",
    "rules and constants decide at the task's usual intervals (switches: 100 ms), an agent at the one that it was trained for; "
    "intervals are over worlds, of the model that ships, and not over training seeds, which the cards have",
    f"seeds: of training; '1 of {LEAST_SEEDS}': of at least {LEAST_SEEDS} that it takes to tell what was learned from what one "
    "training happened upon; CPU s: of the evaluation; us: microseconds that a decision takes alone, on one core",
    "goodput (the price of a score): of switches, whose slowdowns can be bought with it, in per cent of naive's, mean of the "
    "same worlds, families weighing alike",
)


def standings(task: str, folder: Path | None = None, more: Sequence[Path] = ()) -> list[scoring.Standing]:
    """Everybody of a task, the best first.

    Args:
        folder: Of kept results; None: the package's.
        more: Files of agents that were handed in; those of other suites, what is none, lacks its training seed or has the seed
            of another model under its name are passed over, all but the first said.

    Raises:
        ConfigError: As `scoring.standings` and `scores.collect` do.
    """
    own = scores.ranked_by(task)
    edition, constant = own.load(), constants.constant_of(task, folder)
    files = sorted(rows.file_of(own, name, folder) for name in scores.words_of(task, constant))
    found = scores.collect([path for path in files if path.is_file()], own, edition)
    for path in more:
        try:
            given = scores.collect([path], own, edition)
            if any(not scores.is_free(task, str(one.about.get("group"))) for one in given):
                raise ConfigError(f"{path}: has the name of a controller of {task}; valid: a name of its own")
            for one in given:
                scores.require_seed(one, found)
            found = scores.distinct([*found, *given])
        except ConfigError as error:
            say(f"passed over: {error}")
    return scoring.standings(own, edition, found, constant)


def held(task: str, folder: Path | None = None) -> bool:
    """Whether a folder of results holds those of a task."""
    return constants.file_of(task, folder).is_file()


def table(task: str, standing: Sequence[scoring.Standing]) -> str:
    """Everybody of a task in a Markdown table; agents that do not surely beat the best constant are marked so."""
    made, price = [], get(task).measures.price
    for place, one in enumerate(standing, 1):
        improvement = f"{one.improvement.mean:.2f} [{one.improvement.low:.2f}, {one.improvement.high:.2f}]"
        made.append(
            [
                str(place),
                _marked_name(one),
                one.role,
                str(one.middle),
                improvement if one.over_heuristic else "the best rule",
                signed(one.over_heuristic),
                signed(one.over_constant),
                seeds(one),
                number(one.mean_of("cpu_seconds"), 2),
                number(one.mean_of("decision_us"), 3),
                *([] if price is None else [per_cent(one.price)]),
            ]
        )
    return markdown_table([*HEADER, *([] if price is None else [price.label])], made)


def short_table(standing: Sequence[scoring.Standing]) -> str:
    """Agents of a task and the first two of every other kind in a Markdown table: place, score, difference to the best rule."""
    made, others = [], Counter[str]()
    for place, one in enumerate(standing, 1):
        others[one.role] += one.role != scoring.AGENT
        if others[one.role] <= 2:
            made.append([str(place), _marked_name(one), one.role, str(one.middle), signed(one.over_heuristic)])
    return markdown_table(["", "controller", "kind", "score", "over best rule"], made)


def _marked_name(one: scoring.Standing) -> str:
    bold = "**" if one.role == scoring.AGENT else ""
    marks = [NOT_BETTER] * one.behind_constant + [STALE] * is_stale(one)
    return " ".join([f"{bold}{one.name}{bold}", *marks])


def is_stale(one: scoring.Standing) -> bool:
    """Whether a row of a controller is marked as stale."""
    return any(result.about.get(rows.STALE) for result in one.results)


def per_cent(share: float | None) -> str:
    """A price; nothing where it is not known."""
    return "" if share is None else f"{100 * share:.1f}"


def seeds(one: scoring.Standing) -> str:
    """An agent's training seeds, `1 of 3` where they are fewer than it takes; nothing of others, who do not learn."""
    if one.role != scoring.AGENT:
        return ""
    number = len(one.results)
    return str(number) if number >= LEAST_SEEDS else f"{number} of {LEAST_SEEDS}"


def signed(interval: Interval | None) -> str:
    """A difference with its interval; nothing of what is compared with itself."""
    return "" if interval is None else f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"


def families(standing: Sequence[scoring.Standing], agent: str | None = None) -> str:
    """Mean scores by family in a Markdown table: agents, the best rule, the best constant and the best other control.

    The last column is of whoever else has most in a family.

    Args:
        agent: The only agent to have a column; None: all have one.
    """
    shown = [one for one in standing if (one.role == scoring.AGENT if agent is None else one.name == agent)]
    shown += [one for one in standing if one.over_heuristic is None or one.over_constant is None]
    shown += [one for one in standing if one.role == scoring.OTHER][:1]
    rest = [one for one in standing if one not in shown]
    made = []
    for family in standing[0].scores:
        means = {one.name: float(one.scores[family].mean()) for one in shown}
        others = {one.name: float(one.scores[family].mean()) for one in rest}
        most = max([*means.values(), *others.values()])
        cells = [f"**{mean:.2f}**" if mean == most else f"{mean:.2f}" for mean in means.values()]
        if others:
            first = max(others, key=others.__getitem__)
            cells.append(f"**{first} {others[first]:.2f}**" if others[first] == most else f"{first} {others[first]:.2f}")
        made.append([family, str(len(standing[0].scores[family])), *cells])
    return markdown_table(["family", "worlds", *(one.name for one in shown), *(["best of the others"] if rest else [])], made)


def command_of(one: scoring.Standing) -> str:
    """Command that makes a row again."""
    return str(one.results[0].about["command"])
