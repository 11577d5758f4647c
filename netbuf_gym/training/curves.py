"""Learning curve of a run, from the rows that training logged."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from netbuf_gym.errors import MissingExtraError
from netbuf_gym.utils import plots

STEPS, RETURN = "time/total_timesteps", "rollout/ep_rew_mean"
PICTURE = "learning_curve.png"


def read_curve(run_dir: Path, column: str = RETURN) -> tuple[list[float], list[float]]:
    """Return the steps and values of a column, over all sessions of a run."""
    points: dict[float, float] = {}
    path = run_dir / "progress.csv"
    if path.is_file():
        with path.open(newline="", encoding="utf-8", errors="replace") as file:
            for row in csv.DictReader(file):
                steps, value = _parse_number(row.get(STEPS)), _parse_number(row.get(column))
                if math.isfinite(steps) and math.isfinite(value):
                    points[steps] = value
    return sorted(points), [points[steps] for steps in sorted(points)]


def draw_curve(run_dir: Path, name: str, title: str = "", window: int | None = None) -> str:
    """Draw the curve into the run directory; return a line with its path, or the reason why there is none.

    Args:
        run_dir: Run directory.
        name: Name of the learner.
        title: Title of the picture.
        window: Episodes that each logged return is the mean of; None: not known.
    """
    try:
        steps, values = read_curve(run_dir)
        if not steps:
            return "no learning curve: no episode has ended yet"
        path = run_dir / PICTURE
        last = "last ones" if window is None else f"last {window:,}"
        plots.plot_learning_curves({name: [(steps, values)]}, path, f"return of an episode (mean of the {last})", title=title)
        return f"learning curve: {path}"
    except MissingExtraError as error:
        return f"no learning curve: {error}"
    except OSError as error:
        return f"no learning curve: {error.filename}: {error.strerror}" if error.filename else f"no learning curve: {error}"


def _parse_number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan
