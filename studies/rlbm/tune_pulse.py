"""Searches settings of the rule `brief_pulse` in the worlds that agents learn from.

    python -m studies.rlbm.tune_pulse [interval_s=0.01] [candidates=81] [worlds=200] [jobs=N]
        [executor=local] [output=FILE]

Candidates are drawn from `RANGES`, evenly in what each range says. Every one plays the same `worlds` worlds of
`scenario=rlbm/families`; the better third goes on, in twice as many worlds that nobody has played, and so on while
more than three are left. What a candidate is judged by is the geometric mean over worlds of the 99th percentile of the
slowdown of priority 0, over that of the rule with its own settings in the same worlds; one that delivers more than 0.2 % less
than the rule comes after all that do not. No round judges by worlds of an earlier one, so that only the last choice, of one
from three, flatters. `executor=joblib` uses processes, which do not wait for each other.

Writes the table of the search (FILE, by default studies/rlbm/pulse_search.csv) and prints the last round. What a
run has found is written as it goes; another run with the same arguments takes it up from there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netbuf_gym import scripts, stats
from netbuf_gym.arguments import real, whole
from netbuf_gym.errors import ConfigError, needing
from netbuf_gym.executors import executor
from netbuf_gym.files import write_atomic
from netbuf_gym.progress import ProgressBar
from netbuf_gym.rollout import evaluate
from netbuf_gym.tables import csv_table, number, percent, read_table, text_table
from netbuf_gym.tasks.queue_threshold import BriefPulse, QueueThreshold
from netbuf_gym.version import __version__

RANGES: dict[str, tuple[float, float, bool]] = {
    "tail_ms": (12.0, 40.0, True),
    "head_ms": (9.0, 30.0, True),
    "every_ms": (50.0, 600.0, True),
    "packets": (0.7, 4.0, True),
    "shut_ms": (3.0, 10.0, True),
    "bursts": (0.0, 1.5, False),
}
"""From, to, and whether equal factors are equally likely, instead of equal steps."""

SEED = 0
LEAST_GOODPUT = 0.998
TABLE = Path(__file__).resolve().parent / "pulse_search.csv"
MEASURED = ("over_rule", "over_rule_low", "over_rule_high", "goodput_over_rule", "worlds")
COLUMNS = ("first_seed", "candidate", *RANGES, *MEASURED)

Key = tuple[int, int]
"""The round's first seed, and the candidate's number."""
Row = dict[str, float]


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns 0.

    Raises:
        ConfigError: an argument that is unknown or out of range; a table that another version or other arguments have made.
        OSError: the table cannot be written.
    """
    if any(argument in ("-h", "--help") for argument in argv):
        print(__doc__)
        return 0
    known = {"interval_s": "0.01", "candidates": "81", "worlds": "200", "output": str(TABLE)}
    known |= {"jobs": str(len(os.sched_getaffinity(0))), "executor": "local"}
    given = scripts.given(argv, known)
    lowest = {"candidates": 3, "worlds": 2, "jobs": 1}
    candidates, worlds, jobs = (whole(name, scripts.number(given[name]), low, 10_000) for name, low in lowest.items())
    engine = executor(given["executor"])
    interval_s = real("interval_s", scripts.number(given["interval_s"]), 0.001, 1)

    output = scripts.to_write("output", given["output"])
    command = (
        f"python -m studies.rlbm.tune_pulse interval_s={interval_s:g} candidates={candidates} worlds={worlds}"
    )
    comment = f"netbuf-gym {__version__}: {command}"
    found = read(output, comment)
    settings, scenario = drawn(candidates), _scenario()
    left, first, rows = list(range(candidates)), 0, rounds(candidates)
    total = sum(rows)

    def keep() -> None:
        write_atomic(output, csv_table(COLUMNS, [found[key] for key in sorted(found)], comment))

    keep()  # refuses what could not be written before the work is done
    with ProgressBar("tune_pulse") as bar:
        done = 0
        for k in range(len(rows)):
            seeds = range(first, first + worlds * 2**k)
            missing = [candidate for candidate in left if (first, candidate) not in found]
            bar(done + len(left) - len(missing), total)
            if missing:
                rule = played(BriefPulse(), scenario, seeds, interval_s)
                work = [(settings[candidate], scenario, seeds, interval_s) for candidate in missing]
                for (values, *_), own in engine.run(_played, work, jobs):
                    candidate = settings.index(values)
                    found[first, candidate] = {"first_seed": first, "candidate": candidate, **values, **judged(own, rule)}
                    keep()
                    bar(done + sum((first, candidate) in found for candidate in left), total)
            done += len(left)
            ranked = sorted(left, key=lambda candidate: rank(found[first, candidate]))
            last, left = [found[first, candidate] for candidate in ranked], ranked[: max(3, len(ranked) // 3)]
            first = seeds.stop
    print(text_table(("over the rule", "goodput", *RANGES), [_line(row) for row in last]))
    print(f"over the rule's own settings, {last[0]['worlds']:.0f} worlds\nwritten to {output}")
    return 0


def drawn(candidates: int) -> list[dict[str, float]]:
    """The settings of each candidate, to three digits."""
    generator = np.random.default_rng(SEED)
    unit = generator.random((candidates, len(RANGES)))
    found = []
    for row in unit.tolist():
        ends = zip(row, RANGES.values(), strict=True)
        values = [low * (high / low) ** u if factors else low + u * (high - low) for u, (low, high, factors) in ends]
        found.append({name: float(f"{value:.3g}") for name, value in zip(RANGES, values, strict=True)})
    return found


def rounds(candidates: int) -> list[int]:
    """How many candidates play in each round: a third of those before, until three have played."""
    found = [candidates]
    while found[-1] > 3:
        found.append(max(3, found[-1] // 3))
    return found


def played(contender: BriefPulse, scenario: dict[str, Any], seeds: range, interval_s: float) -> tuple[np.ndarray, float]:
    """Logarithms of slowdowns, NaN in worlds where no flow of priority 0 completed, and the mean goodput."""
    reports = evaluate(contender, QueueThreshold.name, scenario, seeds, interval_s=interval_s)
    slowdowns = np.array([one["slowdown_p99_p0"] for one in reports])
    return np.log(slowdowns), float(np.mean([one["goodput_mbps"] for one in reports]))


def _played(work: tuple[dict[str, float], dict[str, Any], range, float]) -> tuple[np.ndarray, float]:
    settings, *rest = work
    return played(BriefPulse(**settings), *rest)


def judged(own: tuple[np.ndarray, float], rule: tuple[np.ndarray, float]) -> Row:
    """`MEASURED` of a candidate, over the rule in the same worlds."""
    ratios = (own[0] - rule[0])[np.isfinite(own[0]) & np.isfinite(rule[0])]
    between = map(float, np.exp(stats.mean_interval(ratios)))
    return dict(zip(MEASURED, (*between, own[1] / rule[1], len(ratios)), strict=True))


def rank(row: Row) -> tuple[bool, float]:
    """What rows are sorted by, the best first."""
    return row["goodput_over_rule"] < LEAST_GOODPUT, row["over_rule"]


def best() -> dict[str, float]:
    """The settings that the search of the package ended with.

    Raises:
        ConfigError: its table is none, or that of a search that has not ended.
        OSError: it was taken away.
    """
    comment = TABLE.read_text(encoding="utf-8", errors="replace").partition("\n")[0].removeprefix("# ")
    found = read(TABLE, comment)
    firsts = sorted({first for first, _ in found})
    by_round = [sum(first == one for first, _ in found) for one in firsts]
    if not by_round or by_round != rounds(by_round[0]):
        raise ConfigError(f"{TABLE} has {by_round} rows by round; valid: those of a search that has ended, e.g. {rounds(81)}")
    row = min((row for (first, _), row in found.items() if first == firsts[-1]), key=rank)
    return {name: row[name] for name in RANGES}


def read(path: Path, comment: str) -> dict[Key, Row]:
    """The rows of a table that another run has left, by what they are of; none where there is no file.

    Raises:
        ConfigError: as `read_table`: made by another version or by other arguments, or damaged.
    """
    kinds = {**dict.fromkeys(COLUMNS, float), "first_seed": int, "candidate": int, "worlds": int}
    return {(row["first_seed"], row["candidate"]): row for row in read_table(path, comment, kinds)}


def _scenario() -> dict[str, Any]:
    with needing("the scenarios that agents learn from", "train"):
        from netbuf_gym.zoo import config
    found = config.scenario_spec(config.load("train", ["experiment=queue_threshold_10ms"]).scenario)
    assert isinstance(found, dict)
    return found


def _line(row: Row) -> list[str]:
    ratio = f"{row['over_rule']:.3f} [{row['over_rule_low']:.3f}, {row['over_rule_high']:.3f}]"
    return [ratio, percent(row["goodput_over_rule"] - 1), *(number(row[name]) for name in RANGES)]


if __name__ == "__main__":
    scripts.run("tune_pulse", main)
