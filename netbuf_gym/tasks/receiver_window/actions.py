"""Decoding of a receiver's actions: factors of the window, of Nuwa's gain k, of its target delay."""

from __future__ import annotations

import itertools

import gymnasium as gym
import numpy as np

from netbuf_gym.tasks.actions import FactorActions
from netbuf_gym.tasks.receiver_window.telemetry import RECEIVER
from netbuf_gym.tasks.receiver_window.tracker import K_RANGE, MSS, RTT_MIN, TARGET_RANGE_S, Tracker

NUWA_FACTORS = (0.25, 1.0, 1.05, 1.25, 2.85)
"""The paper's actions: k <- k * factor."""

NUWA_K = (1.0, 9.0)
"""The paper's range of k."""

WINDOW_FACTORS = (0.5, 0.7, 0.85, 0.94, 0.98, 1.005, 1.02, 1.06, 1.18, 1.4, 2.0)
"""Factors of the window. None is 1: windows that fit the path and those that are too small show the same empty queue."""

BDP_GAINS = (0.4, 0.6, 0.75, 0.87, 0.95, 1.0, 1.05, 1.13, 1.25, 1.5, 2.0, 2.8)
"""Windows in products of the recent receive rate and the round trip without its queueing delay towards the receiver."""

COARSE_WINDOW_FACTORS = (0.5, 0.8, 0.95, 1.0, 1.05, 1.25, 2.0)
GAIN_FACTORS = (0.5, 0.8, 1.0, 1.25, 2.0)
COARSE_FACTORS = (0.8, 1.0, 1.25)

FACTORS: dict[str, dict[str, tuple[float, ...]]] = {
    "window": {"window": WINDOW_FACTORS},
    "k": {"k": GAIN_FACTORS},
    "target": {"target": GAIN_FACTORS},
    "target_and_k": {"target": GAIN_FACTORS, "k": GAIN_FACTORS},
    "bdp": {"bdp": BDP_GAINS},
    "window_and_target": {"window": COARSE_WINDOW_FACTORS, "target": COARSE_FACTORS},
}
"""Factors of each controlled quantity, by the value of `acts_on`; several quantities are multiplied in every combination."""

LEAST_SEGMENTS = 2

_K, _TARGET, _WINDOW, _BDP = (
    [control.name for control in RECEIVER.controls].index(name) for name in ("k", "target_delay_s", "window_bytes", "bdp_gain")
)


def make_factor_actions(factors: dict[str, tuple[float, ...]], continuous: bool) -> FactorActions:
    """Return the mapping of actions to all combinations of these factors, or to any factors of 1/2 to 2."""
    if continuous:
        return FactorActions(tuple(factors), gym.spaces.Box(-1.0, 1.0, (len(factors),), np.float32))
    levels = np.array(list(itertools.product(*factors.values())))
    return FactorActions(tuple(factors), gym.spaces.Discrete(len(levels)), levels)


def decode_nuwa(factors: dict[str, np.ndarray], tracker: Tracker, out: np.ndarray) -> np.ndarray:
    """Write the paper's controls to `out`: k times the factor, within 1 and 9. Nuwa's rule alone moves the window."""
    np.clip(tracker.k * factors["k"], *NUWA_K, out=out[:, _K])
    out[:, _TARGET] = tracker.target_s
    out[:, _WINDOW] = np.nan
    out[:, _BDP] = np.nan
    return out


def decode_default(factors: dict[str, np.ndarray], tracker: Tracker, out: np.ndarray, ruled: bool) -> np.ndarray:
    """Write controls to `out` by rules that a real receiver can keep.

    Nothing changes before the first packet, nor after an interval in which none arrived. A window grows by at most what arrived
    in the interval, and up to the measured cap (`Tracker.highest_window`); during a drain it is half of the window before.

    Args:
        factors: Factors by name, each `(rows,)`.
        tracker: Memory of each receiver's telemetry.
        out: float64 `(rows, controls)`, written to.
        ruled: Whether Nuwa's rule runs on every ACK; if not, k is 0.
    """
    live = tracker.received > 0
    for name, column, now, bounds in (
        ("k", _K, tracker.k, K_RANGE),
        ("target", _TARGET, tracker.target_s, TARGET_RANGE_S),
    ):
        out[:, column] = now
        if name in factors:
            np.copyto(out[:, column], np.clip(now * factors[name], *bounds), where=live)
    if not ruled:
        out[:, _K] = 0
    out[:, _BDP] = np.where(live, factors["bdp"], np.nan) if "bdp" in factors else np.nan
    if "window" not in factors:
        out[:, _WINDOW] = np.nan
        return out

    mss, window = np.asarray(tracker.last[MSS], np.float64), tracker.window
    known = tracker.last[RTT_MIN] > 0
    cap = np.where(known, tracker.highest_window, window)
    least = LEAST_SEGMENTS * mss
    wanted = np.minimum(np.minimum(tracker.resumed * factors["window"], window + tracker.received), cap)
    wanted = np.where(tracker.draining > 0, tracker.resumed / 2, wanted)
    out[:, _WINDOW] = np.where(live, np.maximum(wanted, least), np.nan)
    return out
