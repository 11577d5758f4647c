"""A tuner from its start to its end: alone on the host, what a former one left brought back first, and its own at the end."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from netbuf_gym import plots
from netbuf_gym.errors import ConfigError
from netbuf_gym.live.host import HostSettings, setting_of
from netbuf_gym.live.journal import Journal, Place, Restored, default_path, restore
from netbuf_gym.live.lock import alone
from netbuf_gym.live.settings import KINDS, Setting
from netbuf_gym.live.tuner import Step

Say = Callable[[str], object]


def journal_path(given: str | None) -> Path:
    """Where the journal is: as given, or where it is for this user in this network namespace."""
    return default_path(Place.here()) if given is None else Path(given).absolute()


def leftovers(path: Path) -> list[str]:
    """Names of settings that a run which did not end well has left changed; raises ConfigError for a damaged journal."""
    journal = Journal.read(path)
    return [] if journal is None else list(journal.entries)


def restore_left(path: Path, make: Callable[[str], Setting] = setting_of) -> list[Restored]:
    """Brings back what a journal tells of; nothing where there is none. The caller holds the lock."""
    journal = Journal.read(path)
    return [] if journal is None else restore(journal, make)


@contextmanager
def changing(path: Path, say: Say, make: Callable[[str], Setting] = setting_of) -> Iterator[Journal]:
    """A journal to change settings by: alone, after what a former run left, and with everything back at the end.

    Raises:
        Busy: somebody tunes already. ConfigError: a former run's settings cannot be brought back, or, at the end, one's own.
    """
    with alone(path):
        _say_all(restore_left(path, make), say, "left by a former run: ")
        journal = Journal(path, Place.here())
        try:
            yield journal
        finally:
            if journal.entries:
                _say_all(restore(journal, make), say)


def _say_all(found: Sequence[Restored], say: Say, before: str = "") -> None:
    for one in found:
        say(before + one.words)
    failed = [one.name for one in found if one.outcome == "failed"]
    if failed:
        raise ConfigError(f"not restored: {', '.join(failed)}; they stay in the journal, for netbuf-gym live restore")


class Log:
    """A CSV file with a row for each step, there as soon as the step is over.

    Args:
        path: of the file; None: nothing is written.
    """

    def __init__(self, path: str | None):
        self._path = path
        self._head: list[str] = []

    def add(self, step: Step) -> None:
        """One more row; raises OSError."""
        if self._path is None:
            return
        row: dict[str, Any] = {"time_s": round(step.time_s, 3), **step.telemetry}
        for name, value in step.values.items():
            row |= dict(zip(_columns(name, len(value)), value, strict=True))
        row["changes"] = "; ".join(map(str, step.changes))
        row["notes"] = "; ".join(step.notes)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        first = not self._head
        if first:
            self._head = list(row)
            writer.writerow(self._head)
        writer.writerow("" if isinstance(one, float) and math.isnan(one) else one for one in map(row.get, self._head))
        with open(self._path, "w" if first else "a") as file:
            file.write(text.getvalue())


def _columns(name: str, count: int) -> list[str]:
    labels = KINDS[name].labels if name in KINDS else ("",) * count
    return [f"{name} {label}".rstrip() for label in labels]


def plot(steps: Sequence[Step], host: HostSettings, path: str | os.PathLike, title: str) -> None:
    """Draws a run: throughput, latency, memory, and what was set, over time."""
    time_s = [step.time_s for step in steps]
    panels: list[tuple[str, list[tuple[str, list[float]]]]] = [
        ("Mbit/s", [("throughput", [step.telemetry["total_throughput_bps"] * 1e-6 for step in steps])]),
        ("ms", [("latency", [step.telemetry["latency_s"] * 1e3 for step in steps])]),
        ("MB", [("TCP memory", [step.telemetry["memory_bytes"] * 1e-6 for step in steps])]),
    ]
    turned = [
        (name, [step.telemetry.get(name, math.nan) for step in steps]) for name in host.knobs if name in steps[0].telemetry
    ]
    panels.append(("set", turned))
    figure = plots.figure_of(7.2, 1.7 * len(panels) + 0.6)
    drawn = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    changes = [step.time_s for step in steps if step.changes]
    index = 0
    for axes, (label, lines) in zip(drawn, panels, strict=True):
        for name, values in lines:
            colour, _, dashes = plots.style(index)
            axes.plot(time_s, values, color=colour, linestyle=dashes, linewidth=plots.LINE, label=name, drawstyle="default")
            index += 1
        for at in changes:
            axes.axvline(at, color="0.8", linewidth=plots.THIN, zorder=0)
        if label == "set":
            axes.set_yscale("log")
        else:
            plots.from_zero(axes)
        plots.dress(axes, "time (s)" if axes is drawn[-1] else "", label, title if axes is drawn[0] else "", legend=2)
    plots.write(figure, path)
