"""What a switch's actions stand for: alphas by a scale, by limits in time or their changes, or from a grid."""

from __future__ import annotations

import itertools

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

KINDS = ("continuous", "limits", "changes", "grid", "limit_grid", "pulse_grid")
"""What actions can be; all but `"continuous"` and `"grid"` name times, in recipe default alone."""

DROP_AGENT = "agent"
"""With `drop="agent"` an action chooses the drop place, with `congested="agent"` whether to mark or to drop, too."""

CHANGE = 4.0
"""With `actions="changes"`: the factor by which an action of 1 widens a queue's limit, and one of -1 narrows it."""

CUT_TO_S = 0.005
"""The limit of a queue during a pulse of `actions="pulse_grid"`; after it the queue is open until the next decision."""

LIMIT_LEVELS_S = (0.001, 0.005, 0.01, 0.02, 0.05, 0.2, 1.0)
"""The limits in seconds that a queue can have with `actions="limit_grid"`."""

PULSE_LEVELS_S = ((0.001, 0), (0.01, 0), (0.02, 0), (0.05, 0), (1.0, 0), (1.0, 0.001), (1.0, 0.003), (1.0, 0.01))
"""Those with `actions="pulse_grid"`, each with the time of its pulse, 0 without one."""

LEVELS_S = {"limit_grid": tuple((limit_s, 0.0) for limit_s in LIMIT_LEVELS_S), "pulse_grid": PULSE_LEVELS_S}
"""Limits and times of pulses of each grid that names times."""


def levels_of(kind: str, queues: int) -> np.ndarray:
    """Limits and times of pulses in seconds of a grid's actions, float64 `(actions, 2, queues)`; times are 0 without a pulse.

    Args:
        kind: a key of `LEVELS_S`.
        queues: queue 0 varies slowest.
    """
    one = np.array(LEVELS_S[kind])
    return np.array([one[list(chosen)].T for chosen in itertools.product(range(len(one)), repeat=queues)])


def grid_size(kind: str, recipe: str) -> int:
    """How many actions a grid has for each queue."""
    return len(LEVELS_S.get(kind, GRIDS[recipe]))


def alphas_default(action: np.ndarray) -> np.ndarray:
    """2^-8 to 2^3, equal steps of actions from -1 to 1 being equal factors."""
    return _power_of_two(action, *LOG2_ALPHA)


def alphas_thesis_text(action: np.ndarray) -> np.ndarray:
    """0.001 to 1, linearly."""
    return np.maximum((np.clip(action, -1.0, 1.0) + 1) / 2, LEAST_ALPHA)


def alphas_thesis_code(action: np.ndarray) -> np.ndarray:
    """2^a, a linearly from -3 to 3."""
    return _power_of_two(action, *CODE_EXPONENT)


def limits_of(action: np.ndarray) -> np.ndarray:
    """Limits in seconds of actions that name them, 1 ms to 1 s."""
    low, high = LIMIT_S
    return low * (high / low) ** ((np.clip(action, -1.0, 1.0) + 1) / 2)


def alphas_of_limits(limit_s: np.ndarray, tracker: SwitchTracker) -> np.ndarray:
    """The alphas `(rows, queues)` with which queues are limited, as the buffer is now, to what the ports send in this time."""
    free_s = tracker.free * tracker.service_s / tracker.packet_units
    return np.minimum(alpha_of(limit_s, tracker.betas.T, free_s[:, None], least=1e-9), MAX_ALPHA)


def changed(action: np.ndarray, limit_s: np.ndarray) -> np.ndarray:
    """Limits in seconds, `(rows, queues)`, after changes of those that there were."""
    return np.clip(np.minimum(limit_s, LIMIT_S[1]) * CHANGE ** np.clip(action, -1.0, 1.0), *LIMIT_S)


def action_of_limits(limit_s: np.ndarray | float) -> np.ndarray:
    """The actions that name these limits, in seconds, with `actions="limits"`: float32; beyond `LIMIT_S`, its nearest end."""
    low, high = LIMIT_S
    within = np.clip(np.asarray(limit_s, np.float64), low, high)
    return (2 * np.log(within / low) / np.log(high / low) - 1).astype(np.float32)


def _power_of_two(action: np.ndarray, low: float, high: float) -> np.ndarray:
    exponent = low + (high - low) * (np.clip(action, -1.0, 1.0) + 1) / 2
    return np.exp2(np.round(exponent * OCTAVE_STEPS) / OCTAVE_STEPS)
