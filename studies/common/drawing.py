"""What figures of experiments draw alike: bars of a scheme, and means with their intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from netbuf_gym.utils import statistics


def bar(colour: str, line: str) -> dict[str, Any]:
    """How the bars of a scheme look, by its colour and the style of its lines: hatched where these are dashed."""
    return {"color": colour} if line == "-" else {"facecolor": colour, "edgecolor": "white", "hatch": "////", "linewidth": 0}


def mean_and_half(values: np.ndarray) -> tuple[float, float]:
    """Mean and half of the 95 % interval; 0 for the half of one value, NaN for both of none."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return np.nan, np.nan
    mean, low, high = statistics.mean_interval(finite)
    return mean, (high - low) / 2 if np.isfinite(high - low) else 0.0
