"""Replays of some runs of a campaign, compared with its kept rows."""

from __future__ import annotations

import math
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from netbuf_gym.version import __version__
from studies.common.experiment import Chunk, Experiment, Work
from studies.common.kept import DIGITS, KeptRows

SAME, MOST_DIFFERING = 0.02, 0.1
"""Relative difference that counts as none, and the tolerated share of runs with a larger one: agents now and then decide
differently on another machine, where sums differ in the last bit (`netbuf_gym.leaderboard.results`)."""


def find_stale_reason(experiment: Experiment[Any], settings: Any, kept: KeptRows) -> str:
    """Return why a section's rows are stale: runs of a scheme, some of each study, come out differently now; "": none do."""
    before = {_make_key(row, experiment.keys): row for row in kept.records}
    work = experiment.work(settings)
    differing: dict[str, dict[str, tuple[float, str]]] = defaultdict(dict)
    played = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for chunk in choose_sample(work, experiment.keys):
            for row in work.run(chunk, Path(folder), threading.Event()):
                was = before.get(_make_key(row, experiment.keys))
                if was is None:
                    continue
                scheme = str(row.get("scheme", ""))
                played[scheme] += 1
                if found := find_largest_difference(was, row, experiment.measures):
                    differing[scheme][" ".join(_make_key(row, experiment.keys))] = found
    if not played:
        return f"has no row of the runs that netbuf-gym {__version__} plays again"
    return "; ".join(said for scheme in played if (said := describe_differences(differing[scheme], played[scheme])))


def choose_sample(work: Work[Any], keys: tuple[str, ...]) -> Iterable[Chunk]:
    """Return the first chunk of each scheme in each study of a campaign."""
    columns = [keys.index(name) for name in ("study", "scheme") if name in keys]
    chosen: dict[tuple[Any, ...], Chunk] = {}
    for chunk in work.chunks(work.parts):
        chosen.setdefault(tuple(chunk.runs[0][column] for column in columns), chunk)
    return chosen.values()


def find_largest_difference(
    was: Mapping[str, str], now: Mapping[str, Any], measures: Iterable[str], same: float = SAME
) -> tuple[float, str] | None:
    """Return the largest relative difference among a run's kept measures, with its description; None: none exceeds `same`."""
    found = []
    for name in measures:
        if name not in was:
            continue
        old = float(was[name]) if was[name] else math.nan
        new = math.nan if now.get(name) is None else float(now[name])
        if (math.isnan(old) and math.isnan(new)) or math.isclose(old, new, rel_tol=same, abs_tol=10**-DIGITS):
            continue
        size = abs(new - old) / max(abs(old), abs(new)) if math.isfinite(new - old) else math.inf
        found.append((size, f"{name} {old:.{DIGITS}g}, now {new:.{DIGITS}g}"))
    return max(found, default=None)


def describe_differences(differing: Mapping[str, tuple[float, str]], played: int, most: float = MOST_DIFFERING) -> str:
    """Describe the differing runs in words; "" if their share is at most `most`."""
    if len(differing) <= most * played:
        return ""
    worst = max(differing, key=lambda run: differing[run][0])
    said = f"differs in {len(differing)} of {played} runs played again by netbuf-gym {__version__}"
    return f"{said}, most in {worst}: {differing[worst][1]}"


def _make_key(row: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[str, ...]:
    values = (row.get(name) for name in keys)
    return tuple("" if value is None or value != value else _normalise_number(value) for value in values)


def _normalise_number(value: Any) -> str:
    try:
        return f"{float(value):.12g}"
    except ValueError:
        return str(value)
