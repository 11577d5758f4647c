"""Decoding of a switch's actions: alphas on a scale, limits in time, changes of limits, or the levels of a grid."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from netbuf_gym.scenarios.switches import DRR, DRR_QUANTUM_BYTES, Scheduler, compute_alpha
from netbuf_gym.scenarios.switches import SCHEDULERS as KINDS_OF_SCHEDULERS
from netbuf_gym.tasks.queue_threshold.tracker import SwitchTracker

LOG2_ALPHA = (-8.0, 3.0)
"""Range of log2(alpha) that actions -1 to 1 are mapped to, with the recipe default."""

LEVERS = "levers"
"""Recipe in which the agent also has the scheduler and tables of flows; all else is as in the recipe default."""

EXPONENTS = {"default": LOG2_ALPHA, LEVERS: LOG2_ALPHA, "thesis-code": (-3.0, 3.0)}
"""Ranges of log2(alpha) by recipe. The thesis' code has a Gaussian exponent, which is unbounded."""

LIMIT_S = (1e-3, 1.0)
"""Range of limits in seconds that actions -1 to 1 are mapped to on a log scale, with `actions="limits"`."""

MAX_ALPHA = 1e3
"""Largest alpha, used where a limit is more than the free buffer can hold."""

OCTAVE_STEPS = 1024
"""Steps per unit of log2(alpha), which is rounded so that float32 actions reach alpha = 1 and alpha = 8 exactly."""

LEAST_ALPHA = 1e-3
"""Alpha of the lowest action with the recipe thesis-text, whose alphas lie in (0, 1]."""

GRIDS: dict[str, tuple[float, ...]] = {
    "default": (2.0**-8, 2.0**-4, 0.25, 0.5, 1.0, 2.0, 8.0),
    LEVERS: (2.0**-8, 2.0**-4, 0.25, 0.5, 1.0, 2.0, 8.0),
    "thesis-text": tuple(k / 8 for k in range(1, 9)),
    "thesis-code": tuple(2.0**k for k in range(-3, 4)),
}
"""Alphas that a queue can have with `actions="grid"`, by recipe."""

MAX_GRID = 4096

KINDS = ("continuous", "limits", "changes", "grid", "limit_grid", "pulse_grid")
"""Valid values of `actions`; all but `"continuous"` and `"grid"` name times and need the recipe default or levers."""

DROP_AGENT = "agent"
"""Value of `drop` and `congested` that adds the choice to the action: the drop place, and whether to mark or to drop.

So do `scheduler` and `victims` with the recipe levers."""

SCHEDULERS = ("round_robin", "drr", "weighted", "strict_priority")
"""Schedulers that an action chooses from, in the order of its levels: turns by packet, by bytes, weighted ones, and strict."""

WEIGHT = 4
"""Bytes of a queue's turn over those of the next queue's, with the scheduler "weighted"."""

SCHEDULER_CODES = {"round_robin": 0.0, "drr": 1.0, "strict_priority": 2.0}
"""Values of the plant's control `scheduler` by kind of scheduler."""


@dataclass(frozen=True)
class Choice:
    """One choice that an action makes beside the thresholds: a digit of a grid's numbers, or a further component of a box.

    Attributes:
        name: Argument of the environment that is `"agent"`.
        levels: Number of levels, of which a component in -1 to 1 names equal parts, lowest first.
        meaning: The choice, for messages.
    """

    name: str
    levels: int
    meaning: str

    def read(self, component: np.ndarray) -> np.ndarray:
        """Return the levels that components of a box name."""
        bounds = np.linspace(-1, 1, self.levels + 1)[1:-1]
        return (component[:, None] > bounds).sum(axis=1)


CHOICES = (
    Choice("scheduler", len(SCHEDULERS), "the scheduler"),
    Choice("victims", 2, "the victims"),
    Choice("drop", 2, "the drop place"),
    Choice("congested", 2, "marks"),
)
"""All choices, in the order of components; the last one varies fastest in a grid's numbers."""


def make_scheduler(name: str, queues: int) -> Scheduler:
    """Return the scheduler of a name in `SCHEDULERS` for a number of queues."""
    if name == "weighted":
        least = DRR_QUANTUM_BYTES // WEIGHT
        return DRR(quanta_bytes=tuple(max(DRR_QUANTUM_BYTES * WEIGHT // WEIGHT**q, least) for q in range(queues)))
    return KINDS_OF_SCHEDULERS[name].make_default(queues)


def scheduler_controls(queues: int) -> np.ndarray:
    """Return the plant's controls of each of `SCHEDULERS`: its code and the quanta, `(schedulers, 1 + queues)`; NaN: none."""
    made = [make_scheduler(name, queues) for name in SCHEDULERS]
    nothing = (np.nan,) * queues
    return np.array([(SCHEDULER_CODES[one.kind], *(one.quanta_bytes if isinstance(one, DRR) else nothing)) for one in made])


CHANGE_FACTOR = 4.0
"""Factor by which an action of 1 widens a queue's limit and one of -1 narrows it, with `actions="changes"`."""

PULSE_LIMIT_S = 0.005
"""Limit of a queue in seconds during a pulse of `actions="pulse_grid"`; after it the queue is open until the next decision."""

LIMIT_LEVELS_S = (0.001, 0.005, 0.01, 0.02, 0.05, 0.2, 1.0)
"""Limits in seconds that a queue can have with `actions="limit_grid"`."""

PULSE_LEVELS_S = ((0.001, 0), (0.01, 0), (0.02, 0), (0.05, 0), (1.0, 0), (1.0, 0.001), (1.0, 0.003), (1.0, 0.01))
"""Limits in seconds with `actions="pulse_grid"`, each with the duration of its pulse in seconds, 0 without a pulse."""

LEVELS_S = {"limit_grid": tuple((limit_s, 0.0) for limit_s in LIMIT_LEVELS_S), "pulse_grid": PULSE_LEVELS_S}
"""Pairs of limit and pulse duration in seconds, by kind of grid that names times."""


def grid_levels(kind: str, queues: int) -> np.ndarray:
    """Return the limits and pulse durations in seconds of a grid's actions, float64 `(actions, 2, queues)`.

    Args:
        kind: A key of `LEVELS_S`. Durations are 0 without a pulse.
        queues: Number of queues; queue 0 varies slowest.
    """
    one = np.array(LEVELS_S[kind])
    return np.array([one[list(chosen)].T for chosen in itertools.product(range(len(one)), repeat=queues)])


def count_levels(kind: str, recipe: str) -> int:
    """Return the number of levels that a grid has for each queue."""
    return len(LEVELS_S.get(kind, GRIDS[recipe]))


def decode_alphas(action: np.ndarray, recipe: str) -> np.ndarray:
    """Return the alphas of actions: log-scaled over `EXPONENTS`, or with recipe thesis-text linear from 0.001 to 1."""
    share = (np.clip(action, -1.0, 1.0) + 1) / 2
    if recipe == "thesis-text":
        return np.maximum(share, LEAST_ALPHA)
    low, high = EXPONENTS[recipe]
    return np.exp2(np.round((low + (high - low) * share) * OCTAVE_STEPS) / OCTAVE_STEPS)


def encode_alphas(alphas: np.ndarray, recipe: str) -> np.ndarray:
    """Return the float32 actions of `decode_alphas` for alphas; beyond what actions express the nearest end of the range."""
    if recipe == "thesis-text":
        share = alphas
    else:
        low, high = EXPONENTS[recipe]
        share = (np.log2(alphas) - low) / (high - low)
    return np.clip(2 * share - 1, -1, 1).astype(np.float32)


def decode_limits(action: np.ndarray) -> np.ndarray:
    """Return the limits in seconds, 1 ms to 1 s, of actions that name limits."""
    low, high = LIMIT_S
    return low * (high / low) ** ((np.clip(action, -1.0, 1.0) + 1) / 2)


def convert_limits_to_alphas(limit_s: np.ndarray, tracker: SwitchTracker) -> np.ndarray:
    """Return the alphas `(rows, queues)` that limit queues, given the free buffer now, to what the ports send in `limit_s`."""
    free_s = tracker.free * tracker.service_s / tracker.packet_units
    return np.minimum(compute_alpha(limit_s, tracker.betas.T, free_s[:, None], least=1e-9), MAX_ALPHA)


def apply_changes(action: np.ndarray, limit_s: np.ndarray) -> np.ndarray:
    """Return limits in seconds, `(rows, queues)`, after the actions have changed the previous limits `limit_s`."""
    return np.clip(np.minimum(limit_s, LIMIT_S[1]) * CHANGE_FACTOR ** np.clip(action, -1.0, 1.0), *LIMIT_S)


def encode_limits(limit_s: np.ndarray | float) -> np.ndarray:
    """Return the float32 actions of `actions="limits"` for limits in seconds; beyond `LIMIT_S` the nearest end of the range."""
    low, high = LIMIT_S
    within = np.clip(np.asarray(limit_s, np.float64), low, high)
    return (2 * np.log(within / low) / np.log(high / low) - 1).astype(np.float32)
