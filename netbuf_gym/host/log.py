"""Records of a tuner's run: a row of CSV for each step, and a plot."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netbuf_gym.host.targets import HostSettings
from netbuf_gym.host.tuner import Step
from netbuf_gym.plants.linux.sysctls import KINDS
from netbuf_gym.utils import plots


class Log:
    """A CSV file with a row for each step, written as soon as the step is over.

    Existing contents stay: rows of a former run with the same columns are continued, with time beginning at 0 again;
    a file with other columns is first renamed, FILE.1, FILE.2 and so on.

    Args:
        path: path of the file; None: nothing is written.
    """

    def __init__(self, path: str | None):
        self._path = None if path is None else Path(path)
        self._head: list[str] = []

    def add(self, step: Step) -> None:
        """Append a row; raises OSError."""
        if self._path is None:
            return
        row: dict[str, Any] = {"time_s": round(step.time_s, 3), **step.telemetry}
        for name, value in step.values.items():
            row |= dict(zip(_column_names(name, len(value)), value, strict=True))
        row["changes"] = "; ".join(map(str, step.changes))
        row["notes"] = "; ".join(step.notes)
        text = "" if self._head else self._begin(list(row))
        text += _format_row(["" if isinstance(one, float) and math.isnan(one) else one for one in map(row.get, self._head)])
        with open(self._path, "a") as file:
            file.write(text)

    def _begin(self, head: list[str]) -> str:
        """Return the text to write before the first row."""
        assert self._path is not None
        self._head = head
        try:
            if not self._path.is_file() or not self._path.stat().st_size:
                return _format_row(head)
            with open(self._path, "rb") as file:
                first = file.readline()
                file.seek(-1, os.SEEK_END)
                whole = file.read() == b"\n"
        except FileNotFoundError:
            return _format_row(head)
        if first == _format_row(head).encode():
            return "" if whole else "\n"
        self._path.rename(_free_path(self._path))
        return _format_row(head)


def _format_row(fields: Sequence[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(fields)
    return text.getvalue()


def _free_path(path: Path) -> Path:
    """Return the first of PATH.1, PATH.2, ... that does not exist."""
    number = 1
    while (found := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    return found


class ThinnedSteps:
    """Steps of a run to be plotted: all of a short one, every second, fourth, ... of a long one.

    Args:
        most: greatest number of steps that are kept, 2 or more.
    """

    def __init__(self, most: int = 5000):
        self.steps: list[Step] = []
        self._most, self._every, self._count = most, 1, 0

    def add(self, step: Step) -> None:
        """Add a step."""
        if self._count % self._every == 0:
            self.steps.append(step)
        self._count += 1
        if len(self.steps) > self._most:
            self.steps, self._every = self.steps[::2], 2 * self._every


def _column_names(name: str, count: int) -> list[str]:
    labels = KINDS[name].labels if name in KINDS else ("",) * count
    return [f"{name} {label}".rstrip() for label in labels]


def plot_run(steps: Sequence[Step], host: HostSettings, path: str | os.PathLike, title: str) -> None:
    """Plot throughput, latency, memory and settings of a run over time."""
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
    figure = plots.make_figure(7.2, 1.7 * len(panels) + 0.6)
    drawn = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    changes = [step.time_s for step in steps if step.changes]
    index = 0
    for axes, (label, lines) in zip(drawn, panels, strict=True):
        for name, values in lines:
            colour, _, dashes = plots.get_style(index)
            axes.plot(time_s, values, color=colour, linestyle=dashes, linewidth=plots.LINE, label=name, drawstyle="default")
            index += 1
        for at in changes:
            axes.axvline(at, color="0.8", linewidth=plots.THIN, zorder=0)
        if label == "set":
            axes.set_yscale("log")
        else:
            plots.start_at_zero(axes)
        plots.format_axes(axes, "time (s)" if axes is drawn[-1] else "", label, title if axes is drawn[0] else "", legend=2)
    plots.write_figure(figure, path)
