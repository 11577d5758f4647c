"""Common parts of experiments' figures: bars of a scheme, and means with their intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from netbuf_gym.utils import statistics


def make_bar_style(colour: str, line: str) -> dict[str, Any]:
    """Return the bar style of a scheme from its line colour and line style; dashed lines give hatched bars."""
    return {"color": colour} if line == "-" else {"facecolor": colour, "edgecolor": "white", "hatch": "////", "linewidth": 0}


def compute_mean_and_half(values: np.ndarray) -> tuple[float, float]:
    """Return the mean and half the width of the 95 % interval; the half is 0 for one value, both are NaN for none."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return np.nan, np.nan
    mean, low, high = statistics.mean_interval(finite)
    return mean, (high - low) / 2 if np.isfinite(high - low) else 0.0
