"""What a switch's actions stand for: alphas by a scale, by limits in time, or from a grid."""

from __future__ import annotations

import numpy as np

from netbuf_gym.scenarios.switches import alpha_of
from netbuf_gym.tasks.queue_threshold.tracker import SwitchTracker

LOG2_ALPHA = (-8.0, 3.0)
"""Recipe default: the range of log2(alpha) that actions -1 to 1 stand for."""

CODE_EXPONENT = (-3.0, 3.0)
"""Recipe thesis-code: the range of the exponent a in 2^a. The code's own is a Gaussian's, unbounded."""

LIMIT_S = (1e-3, 1.0)
"""With `actions="limits"`: the range of limits in seconds that actions -1 to 1 stand for, log-scaled."""

MAX_ALPHA = 1e3
"""What alpha is at most where a limit is more than the free buffer can hold."""

OCTAVE_STEPS = 1024
"""log2(alpha) is rounded to steps of 1/1024, so that alpha = 1 and alpha = 8 are exactly reached from float32 actions."""

LEAST_ALPHA = 1e-3
"""Recipe thesis-text: alpha lies in (0, 1], so that the lowest action stands for this."""

GRIDS: dict[str, tuple[float, ...]] = {
    "default": (2.0**-8, 2.0**-4, 0.25, 0.5, 1.0, 2.0, 8.0),
    "thesis-text": tuple(k / 8 for k in range(1, 9)),
    "thesis-code": tuple(2.0**k for k in range(-3, 4)),
}
"""The alphas that a queue can have with `actions="grid"`."""

MAX_GRID = 4096


def alphas_default(action: np.ndarray) -> np.ndarray:
    """2^-8 to 2^3, equal steps of actions from -1 to 1 being equal factors."""
    return _power_of_two(action, *LOG2_ALPHA)


def alphas_thesis_text(action: np.ndarray) -> np.ndarray:
    """0.001 to 1, linearly."""
    return np.maximum((np.clip(action, -1.0, 1.0) + 1) / 2, LEAST_ALPHA)


def alphas_thesis_code(action: np.ndarray) -> np.ndarray:
    """2^a, a linearly from -3 to 3."""
    return _power_of_two(action, *CODE_EXPONENT)


def alphas_of_limits(action: np.ndarray, tracker: SwitchTracker) -> np.ndarray:
    """The alphas with which queues are limited, as the buffer is now, to what the ports send in 1 ms to 1 s."""
    low, high = LIMIT_S
    limit_s = low * (high / low) ** ((np.clip(action, -1.0, 1.0) + 1) / 2)
    free_s = tracker.free * tracker.service_s / tracker.packet_units
    return np.minimum(alpha_of(limit_s, tracker.betas.T, free_s[:, None], least=1e-9), MAX_ALPHA)


def action_of_limits(limit_s: np.ndarray | float) -> np.ndarray:
    """The actions that name these limits, in seconds, with `actions="limits"`: float32; beyond `LIMIT_S`, its nearest end."""
    low, high = LIMIT_S
    within = np.clip(np.asarray(limit_s, np.float64), low, high)
    return (2 * np.log(within / low) / np.log(high / low) - 1).astype(np.float32)


def _power_of_two(action: np.ndarray, low: float, high: float) -> np.ndarray:
    exponent = low + (high - low) * (np.clip(action, -1.0, 1.0) + 1) / 2
    return np.exp2(np.round(exponent * OCTAVE_STEPS) / OCTAVE_STEPS)
