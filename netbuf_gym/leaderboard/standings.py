"""Standings of controllers on the ranking suites of all tasks, from kept results and submissions, and their tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError, quote
from netbuf_gym.evaluation.suites import Edition, Suite, get_suite
from netbuf_gym.evaluation.suites.catalogue import CHOOSE_ON, V1
from netbuf_gym.evaluation.summary import format_range
from netbuf_gym.leaderboard import rows, scoring
from netbuf_gym.leaderboard.scoring import CHANCE, Result
from netbuf_gym.simulation.results.traffic import ENOUGH
from netbuf_gym.training.checkpoints import digest
from netbuf_gym.training.schema import MIN_TRAINING_SEEDS
from netbuf_gym.utils.files import read_text
from netbuf_gym.utils.progress import print_line
from netbuf_gym.utils.statistics import Interval
from netbuf_gym.utils.tables import format_number, markdown_table
from netbuf_gym.zoo import library

CONSTANTS = "constants.json"
"""File beside the rows of a ranking suite: the best constant, as `netbuf-gym results make` chooses it on other worlds."""
HEADER = ("", "controller", "kind", "score", "P(> best rule)", "over best rule", "over best constant", "seeds", "CPU s", "us")
"""Columns of a task's table, before the price of the score if there is one."""
SCORE = HEADER.index("score") + 1
"""Place behind the score."""
NOT_BETTER = "(not above the best constant)"
TWIN_SHARE = 0.9
"""Share of the worlds in which an agent that is another one under a new name has its scores."""
STALE = "(stale)"
"""Mark of rows that `netbuf-gym results status` found not to be current."""
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
    f"seeds: of training; '1 of {MIN_TRAINING_SEEDS}': of at least {MIN_TRAINING_SEEDS} that it takes to tell what was learned "
    "from what one training happened upon; CPU s: of the evaluation; us: microseconds that a decision takes alone, on one core",
    "unchecked: figures of a file that this machine has not played, which have no place; `netbuf-gym leaderboard submit RUN` "
    "plays the model, and ranks what it then has",
    "flows: of switches, the least and the largest number of flows in a world that the percentile behind a score is of",
    "goodput (the price of a score): of switches, whose slowdowns can be bought with it, in per cent of naive's, mean of the "
    "same worlds, families weighing alike",
)


def get_ranking_suite(task: str) -> Suite:
    """Return the suite that controllers of a task are ranked by."""
    return get_suite(f"{V1}/{tasks.get(task).name}")


def list_controllers(task: str, *constants: str) -> list[str]:
    """Return the controllers of a leaderboard: chance, the given constants, rules, agents of the package, other controls."""
    measures = tasks.get(task).measures
    agents = [name for name in library.names() if name.partition("/")[0] == task]
    beside = (*measures.baselines, *measures.carded_beside, *measures.ranked_beside)
    return list(dict.fromkeys((CHANCE, *constants, *measures.heuristics, *agents, *beside)))


def get_constants_file(task: str, folder: Path | None = None) -> Path:
    """Return the file that states the best constant of a task, below a folder of results."""
    return rows.get_folder(f"{V1}/{task}", folder) / CONSTANTS


def read_best_constant(task: str, folder: Path | None = None) -> str:
    """Read the best constant of a task from a folder of results.

    Raises:
        ConfigError: No readable file, or one for other worlds.
    """
    path, again = get_constants_file(task, folder), f"valid: the file that `netbuf-gym results make {V1}/{task}` writes"
    try:
        data = json.loads(read_text(path))
        edition = get_suite(CHOOSE_ON[task]).outline()
        if data["digest"] != edition.digest or data["best"] not in tasks.get(task).measures.constants:
            raise ConfigError(f"{path}: is of other worlds, digest {quote(data['digest'])}; {again}")
        return str(data["best"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{path}: does not say which constant is the best ({error}); {again}") from None


def has_results(task: str, folder: Path | None = None) -> bool:
    """Return whether a folder of results holds those of a task."""
    return get_constants_file(task, folder).is_file()


def extract_results(data: dict[str, Any], own: Suite, edition: Edition, where: str) -> list[Result]:
    """Return the results of all controllers of a `result.json`.

    Raises:
        ConfigError: A result of another edition, missing worlds, or a value that is no number.
    """
    return [scoring.score_rows(rows.parse_result(data, name, where), own, edition) for name in data["controllers"]]


def collect_results(files: Iterable[Path], own: Suite, edition: Edition) -> list[Result]:
    """Read the results of all controllers of files (rows, or a suite's result.json) of this edition.

    Returns:
        The first result of each model, or of each name without a model.
    """
    found: list[Result] = []
    for path in files:
        if path.suffix == ".csv":
            found.append(scoring.score_rows(rows.read(path), own, edition))
        elif (data := rows.read_result(path))["suite"] == own.name:
            found += extract_results(data, own, edition, str(path))
    return drop_duplicates(found)


def is_free_name(task: str, name: str) -> bool:
    """Return whether an agent may have a name, i.e. no unlearned controller of the task has it."""
    return name not in tasks.get(task).controllers and name not in tasks.get(task).measures.constants


def require_seed(one: Result, others: Iterable[Result]) -> None:
    """Check that a submitted agent has a training seed of its own within its row, whose training seeds all count.

    Raises:
        ConfigError: No training seed, or another model of the same name has the same one.
    """
    seed, name, where = one.about.get("seed"), one.row, one.about["of"]
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ConfigError(f"{where}: {name} lacks its training seed (seed = {quote(seed)}); valid: a whole number from 0 on")
    for other in others:
        if (other.row, other.about.get("seed")) == (name, seed) and other.model != one.model:
            again = f"{name} has another model of training seed {seed}, from {other.about['of']}"
            raise ConfigError(f"{where}: {again}; valid: each training seed once, or another name")


def is_same_model(one: Result, other: Result) -> bool:
    """Return whether two results are of one model, by its digest or its parameters, or of one name without a model."""
    return one.model == other.model or bool(
        one.parameters and other.parameters and digest.is_same_sketch(one.parameters, other.parameters)
    )


def drop_duplicates(results: Iterable[Result]) -> list[Result]:
    """Return the first result of each model, or of each name without a model."""
    found: list[Result] = []
    for one in results:
        if not any(is_same_model(one, other) for other in found):
            found.append(one)
    return found


def add_parameters(one: Result) -> Result:
    """Return the result of an agent of the package with a sketch of its parameters."""
    return replace(one, about={**one.about, "parameters": digest.sketch_parameters(library.FOLDER / one.name / library.MODEL)})


def find_twin(one: Result, package: Iterable[Result]) -> str | None:
    """Return the name of the package's agent whose parameters, or whose scores in nearly all worlds, a result has; or None."""
    return next((other.name for other in package if is_same_model(one, other) or _has_scores_of(one, other)), None)


def _has_scores_of(one: Result, other: Result) -> bool:
    names = [name for name in other.worlds if name in one.worlds]
    ours, theirs = (np.array([worlds[name] for name in names], float) for worlds in (one.worlds, other.worlds))
    return bool(names) and float(np.isclose(ours, theirs, rtol=1e-5, atol=1e-9, equal_nan=True).mean()) >= TWIN_SHARE


def compute_standings(
    task: str,
    folder: Path | None = None,
    more: Sequence[Path] = (),
    is_checked: Callable[[Path], bool] = lambda path: False,
) -> list[scoring.Standing]:
    """Return the standings of all controllers of a task, the best first, and unchecked ones after all others.

    Args:
        task: Name of the task.
        folder: Folder of kept results; None: the package's.
        more: Files of submitted agents. Results of other suites are passed over in silence; invalid files, agents without a
            training seed or with the seed of another model under their name, and those that are an agent of the package, with
            a message.
        is_checked: Whether the figures of such a file were played on this machine (`handed_in.is_checked`).

    Raises:
        ConfigError: See `scoring.compute_standings` and `collect_results`.
    """
    own = get_ranking_suite(task)
    edition, constant = own.outline(), read_best_constant(task, folder)
    files = sorted(rows.get_file(own, name, folder) for name in list_controllers(task, constant))
    found = collect_results([path for path in files if path.is_file()], own, edition)
    package = [add_parameters(one) for one in found if one.name in library.names()] if more else []
    for checked, path in sorted(((is_checked(path), path) for path in more), key=lambda one: not one[0]):
        try:
            given = [replace(one, checked=checked) for one in collect_results([path], own, edition)]
            if any(not is_free_name(task, str(one.about.get("group"))) for one in given):
                raise ConfigError(f"{path}: has the name of a controller of {task}; valid: a name of its own")
            for one in given:
                require_seed(one, found)
                if (twin := find_twin(one, package)) is None:
                    found = drop_duplicates([*found, one])
                elif twin != one.row:
                    print_line(f"{one.row} is {twin} of the package, whose row stands for both: {path}")
        except ConfigError as error:
            print_line(f"passed over: {error}")
    return scoring.compute_standings(own, edition, found, constant)


def format_table(task: str, standing: Sequence[scoring.Standing]) -> str:
    """Format a task's standings as a Markdown table; agents that do not surely beat the best constant are marked."""
    made, price, counted = [], tasks.get(task).measures.price, any(one.flows for one in standing)
    for place, one in number_places(standing):
        improvement = f"{one.improvement.mean:.2f} [{one.improvement.low:.2f}, {one.improvement.high:.2f}]"
        made.append(
            [
                place,
                _marked_name(one),
                one.role,
                str(one.middle),
                *[format_flow_range([one])] * counted,
                improvement if one.over_heuristic else "the best rule",
                format_difference(one.over_heuristic),
                format_difference(one.over_constant),
                format_seeds(one),
                format_number(one.average_entry("cpu_seconds"), 2),
                format_number(one.average_entry("decision_us"), 3),
                *([] if price is None else [format_price(one.price)]),
            ]
        )
    header = [*HEADER[:SCORE], *["flows"] * counted, *HEADER[SCORE:], *([] if price is None else [price.label])]
    return markdown_table(header, made)


def format_short_table(standing: Sequence[scoring.Standing]) -> str:
    """Format agents and the first two of every other kind as a Markdown table: place, score, difference to the best rule."""
    made, others, counted = [], Counter[str](), any(one.flows for one in standing)
    for place, one in number_places(standing):
        others[one.role] += one.role != scoring.AGENT
        if others[one.role] <= 2:
            flows = [format_flow_range([one])] * counted
            made.append([place, _marked_name(one), one.role, str(one.middle), *flows, format_difference(one.over_heuristic)])
    return markdown_table(["", "controller", "kind", "score", *["flows"] * counted, "over best rule"], made)


def number_places(standing: Sequence[scoring.Standing]) -> list[tuple[str, scoring.Standing]]:
    """Return standings with their places; unchecked ones have none."""
    return [(str(place) if one.checked else "-", one) for place, one in enumerate(standing, 1)]


def _marked_name(one: scoring.Standing) -> str:
    bold = "**" if one.role == scoring.AGENT else ""
    marks = [NOT_BETTER] * one.behind_constant + [STALE] * is_stale(one)
    return " ".join([f"{bold}{one.name}{bold}", *marks])


def is_stale(one: scoring.Standing) -> bool:
    """Return whether a row of a controller is marked as stale."""
    return any(result.about.get(rows.STALE) for result in one.results)


def format_price(share: float | None) -> str:
    """Format a price in per cent; "" if unknown."""
    return "" if share is None else f"{100 * share:.1f}"


def format_seeds(one: scoring.Standing) -> str:
    """Format an agent's number of training seeds, `1 of 3` if fewer than required; "" for controllers that do not learn."""
    if one.role != scoring.AGENT:
        return ""
    number = len(one.results)
    return str(number) if number >= MIN_TRAINING_SEEDS else f"{number} of {MIN_TRAINING_SEEDS}"


def format_difference(interval: Interval | None) -> str:
    """Format a difference with its interval; "" for None, where a controller would be compared with itself."""
    return "" if interval is None else f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"


def format_families(standing: Sequence[scoring.Standing], agent: str | None = None) -> str:
    """Format mean scores by family as a Markdown table: agents, the best rule, the best constant, the best other control.

    The last column names the best of the remaining controllers in each family.

    Args:
        standing: Standings of the task, the best first.
        agent: The only agent to have a column; None: all have one.
    """
    shown = [one for one in standing if (one.role == scoring.AGENT if agent is None else one.name == agent)]
    shown += [one for one in standing if one.over_heuristic is None or one.over_constant is None]
    shown += [one for one in standing if one.role == scoring.OTHER][:1]
    rest, counted = [one for one in standing if one not in shown], any(one.flows for one in standing)
    made = []
    for family in standing[0].scores:
        means = {one.name: float(one.scores[family].mean()) for one in shown}
        others = {one.name: float(one.scores[family].mean()) for one in rest}
        most = max([*means.values(), *others.values()])
        cells = [f"**{mean:.2f}**" if mean == most else f"{mean:.2f}" for mean in means.values()]
        if counted:
            cells.insert(0, format_flow_range(standing, [family]))
        if others:
            first = max(others, key=others.__getitem__)
            cells.append(f"**{first} {others[first]:.2f}**" if others[first] == most else f"{first} {others[first]:.2f}")
        made.append([family, str(len(standing[0].scores[family])), *cells])
    heads = ["family", "worlds", *["flows"] * counted, *(one.name for one in shown), *(["best of the others"] if rest else [])]
    return markdown_table(heads, made)


def format_flow_range(standing: Sequence[scoring.Standing], families: Sequence[str] | None = None) -> str:
    """Return the least and the largest number of flows in a world that scores are percentiles of; "" if they are of none.

    Args:
        standing: Standings of a task, or some of them.
        families: Families of worlds; None: all.
    """
    known = [
        bound
        for one in standing
        for family, own in one.flows.items()
        if families is None or family in families
        for bound in own
    ]
    return format_range((min(known), max(known))) if known else ""


def describe_flows(standing: Sequence[scoring.Standing]) -> str:
    """Return a sentence on the number of flows that scores are percentiles of, and a warning if few; "" if they are of none."""
    if not (flows := format_flow_range(standing)):
        return ""
    few = min(bound for one in standing for own in one.flows.values() for bound in own) < ENOUGH
    warning = f"; below {ENOUGH}, one or two of them decide a 99th percentile" if few else ""
    return f"Scores are of percentiles over {flows} flows in a world{warning}."


def get_command(one: scoring.Standing) -> str:
    """Return the command that makes a row again."""
    return str(one.results[0].about["command"])
