"""What a receiver's actions stand for: factors of the window, of Nuwa's gain k, of its target delay."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import gymnasium as gym
import numpy as np

from netbuf_gym.tasks.receiver_window.observations import K_RANGE, TARGET_RANGE_S
from netbuf_gym.tasks.receiver_window.telemetry import RECEIVER
from netbuf_gym.tasks.receiver_window.tracker import MSS, RTT_MIN, Tracker

NUWA_FACTORS = (0.25, 1.0, 1.05, 1.25, 2.85)
"""The paper's actions: k <- k * factor."""

NUWA_K = (1.0, 9.0)
"""The paper's range of k."""

WINDOW_FACTORS = (0.5, 0.7, 0.85, 0.94, 0.98, 1.005, 1.02, 1.06, 1.18, 1.4, 2.0)
"""None is 1: at a window that fits the path and at one that is too small for it a receiver sees the same empty queue."""

BDP_GAINS = (0.4, 0.6, 0.75, 0.87, 0.95, 1.0, 1.05, 1.13, 1.25, 1.5, 2.0, 2.8)
"""What the window is in products of the receive rate lately and the round trip without its queue here."""

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
"""By what the agent acts on: what is multiplied, and by which factors; with several of them by every combination."""

LARGEST_FACTOR = 2.0
"""With continuous actions -1 to 1 stand for factors of 1/2 to 2, log-scaled."""

LEAST_SEGMENTS = 2

_K, _TARGET, _WINDOW, _BDP = (
    [control.name for control in RECEIVER.controls].index(name) for name in ("k", "target_delay_s", "window_bytes", "bdp_gain")
)


@dataclass(frozen=True)
class Acting:
    """How actions become controls.

    Attributes:
        names: what is multiplied: of `"window"`, `"k"`, `"target"`.
        levels: float64 (actions, names), the factors of each action; None: actions are continuous.
        space: of one agent's actions.
    """

    names: tuple[str, ...]
    levels: np.ndarray | None
    space: gym.Space

    @classmethod
    def on(cls, factors: dict[str, tuple[float, ...]], continuous: bool) -> Acting:
        """Acting on what `factors` names."""
        if continuous:
            return cls(tuple(factors), None, gym.spaces.Box(-1.0, 1.0, (len(factors),), np.float32))
        levels = np.array(list(itertools.product(*factors.values())))
        return cls(tuple(factors), levels, gym.spaces.Discrete(len(levels)))

    def factors(self, action: np.ndarray) -> dict[str, np.ndarray]:
        """By name, float64 `(rows,)`, for checked actions."""
        chosen = LARGEST_FACTOR**action if self.levels is None else self.levels[action]
        return {name: chosen[:, column] for column, name in enumerate(self.names)}

    @property
    def keep(self) -> np.ndarray | int:
        """The action that leaves things as they are, or most nearly so."""
        if self.levels is None:
            return np.zeros(len(self.names), np.float32)
        return int(np.argmin(np.abs(np.log(self.levels)).sum(axis=1)))


def decode_nuwa(factors: dict[str, np.ndarray], tracker: Tracker, out: np.ndarray) -> np.ndarray:
    """The paper's: k times the factor, within 1 and 9. Nuwa's rule alone moves the window."""
    np.clip(tracker.k * factors["k"], *NUWA_K, out=out[:, _K])
    out[:, _TARGET] = tracker.target_s
    out[:, _WINDOW] = np.nan
    out[:, _BDP] = np.nan
    return out


def decode_default(factors: dict[str, np.ndarray], tracker: Tracker, out: np.ndarray, ruled: bool) -> np.ndarray:
    """Controls by rules that a real receiver can keep.

    Nothing changes before the first packet, nor after an interval in which none arrived. A window grows by what arrived in the
    interval at most, and up to the cap that was measured (`Tracker.highest_window`); while a drain lasts it is half of what it
    was.

    Args:
        factors: by name, `(rows,)`.
        tracker: what is known of each receiver.
        out: float64 `(rows, controls)`, written to.
        ruled: whether Nuwa's rule runs on every ACK; if not, k is 0.
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
