"""Decoding of a host's actions: the paper's additive steps, factors of a layer's buffers, or the settings themselves."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import gymnasium as gym
import numpy as np

from netbuf_gym.tasks.actions import FactorActions
from netbuf_gym.tasks.host_buffers.settings import CHOICES, RING_RANGE, SOCKET_RANGE, TCP_RANGE
from netbuf_gym.tasks.host_buffers.tracker import CONTROL, Tracker

RING_STEP, BYTES_STEP = 8, 1024
"""The paper's scales: packets of the ring, bytes of the socket and the TCP buffers."""

STEPS = np.array(list(itertools.product((-1, 0, 1), repeat=3)))
"""Steps of ring, socket and TCP buffer by flat action: flat = 9 (ring + 1) + 3 (socket + 1) + (TCP + 1)."""

FACTORS: dict[str, tuple[float, ...]] = {
    "tcp": (1 / 4, 1 / 1.5, 1 / 1.1, 1.1, 1.5, 4.0),
    "socket": (1 / 4, 4.0),
    "ring": (1 / 2, 2.0),
    "limit_output": (1 / 2, 2.0),
    "notsent_lowat": (1 / 2, 2.0),
    "window_clamp": (1 / 1.6, 1.6),
}
"""Factors of each layer's buffer; 1, the action that leaves everything as it is, is not listed."""

LAYERS = ("tcp", "socket", "ring")
"""Layers that are acted on by default."""

RANGES: dict[str, tuple[float, float]] = {
    "ring_packets": RING_RANGE,
    "socket_bytes": SOCKET_RANGE,
    **{f"tcp_{side}_{which}_bytes": TCP_RANGE for side in ("rmem", "wmem") for which in ("default", "max")},
    "limit_output_bytes": (16_384.0, 67_108_864.0),
    "notsent_lowat_bytes": (4096.0, 67_108_864.0),
    "window_clamp_bytes": (4096.0, 67_108_864.0),
    "congestion_control": (0.0, len(CHOICES) - 1.0),
    "slow_start": (0.0, 1.0),
}
"""Range of each control."""

INITIAL_VALUES: dict[str, float] = {
    "limit_output_bytes": 1_048_576.0,
    "notsent_lowat_bytes": 67_108_864.0,
    "window_clamp_bytes": 67_108_864.0,
}
"""Initial values of layers that are acted on where the host sets none: Linux's default, or a value that never binds."""

TCP_FLOOR = 16_384.0
"""Least TCP maximum of geometric steps: a few segments with the kernel's overhead of holding them."""

LAYER_CONTROLS = {
    "socket": "socket_bytes",
    "ring": "ring_packets",
    "limit_output": "limit_output_bytes",
    "notsent_lowat": "notsent_lowat_bytes",
    "window_clamp": "window_clamp_bytes",
}

_CONGESTION = CONTROL["congestion_control"]
_RING, _SOCKET = CONTROL["ring_packets"], CONTROL["socket_bytes"]
_TCP = [CONTROL[f"tcp_{side}_{which}_bytes"] for side in ("rmem", "wmem") for which in ("default", "max")]
_SIDES = [(_TCP[0], _TCP[1]), (_TCP[2], _TCP[3])]


@dataclass(frozen=True)
class ControlActions:
    """Mapping of actions to factors of layers' buffers, and to a choice of the congestion control.

    Attributes:
        factors: Mapping of the first part: of a flat action below `len(factors.levels)`, or of all but the last number.
        choices: Names that are chosen among, of `CHOICES`.
        space: `Discrete`: the factors', then each choice, then a slow start of the present control; or `MultiDiscrete`: the
            factors', then 0 for the present control, 1 + i for choice i, the last for a slow start of the present one.
    """

    factors: FactorActions
    choices: tuple[str, ...]
    space: gym.Space

    @property
    def neutral_action(self) -> np.ndarray | int:
        """Action that keeps everything as it is."""
        own = self.factors.neutral_action
        return own if isinstance(own, int) else np.append(own, 0)

    def decode(self, action: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the factors by layer, and what is chosen, int64 `(rows,)`: 0: as it is; 1 + i: `choices[i]`; then: anew."""
        if self.factors.levels is None:
            return self.factors.decode(action[:, :-1]), action[:, -1]
        chosen = np.maximum(action - (len(self.factors.levels) - 1), 0)
        return self.factors.decode(np.where(chosen > 0, self.factors.neutral_action, action)), chosen


def make_control_actions(layers: tuple[str, ...], choices: tuple[str, ...], flat: bool) -> ControlActions:
    """Return the mapping of actions to factors of these layers and a choice among these congestion controls."""
    factors = make_factor_actions(layers, flat)
    if factors.levels is not None:
        return ControlActions(factors, choices, gym.spaces.Discrete(len(factors.levels) + len(choices) + 1))
    sizes = [*(len(one) for one in factors.choices), len(choices) + 2]
    return ControlActions(factors, choices, gym.spaces.MultiDiscrete(sizes))


def make_factor_actions(layers: tuple[str, ...], flat: bool) -> FactorActions:
    """Return the mapping of actions to factors of these layers: flat ones change one layer each, or none."""
    if not flat:
        choices = tuple(np.array(sorted((*FACTORS[layer], 1.0))) for layer in layers)
        return FactorActions(layers, gym.spaces.MultiDiscrete([len(factors) for factors in choices]), choices=choices)
    rows = [[1.0] * len(layers)]
    for column, layer in enumerate(layers):
        rows += [[factor if k == column else 1.0 for k in range(len(layers))] for factor in FACTORS[layer]]
    return FactorActions(layers, gym.spaces.Discrete(len(rows)), np.array(rows))


def request_ring(steps: np.ndarray, tracker: Tracker, requests: int, connections: float) -> np.ndarray:
    """Count requests for ring sizes and return whether rings may be resized, bool `(rows,)`, by Algorithm 1.

    A request for a larger ring counts and clears the count of those for a smaller one, and the other way round; no request
    leaves both as they are. A ring is resized when more than `requests` of a kind were counted and at most `connections` are
    alive.

    Args:
        steps: Sign of the requested change, `(rows,)`.
        tracker: Tracker whose `requests` are updated.
        requests, connections: The paper's n and m.
    """
    up, down = tracker.requests
    up[:] = np.where(steps > 0, up + 1, np.where(steps < 0, 0, up))
    down[:] = np.where(steps < 0, down + 1, np.where(steps > 0, 0, down))
    return ((up > requests) | (down > requests)) & (tracker["connections"] <= connections) & (steps != 0)


def decode_auter(steps: np.ndarray, tracker: Tracker, out: np.ndarray, requests: int, connections: float) -> np.ndarray:
    """Write the paper's settings into `out` and return it: b + scale * a, or b outside the range; the ring by Algorithm 1.

    The TCP default and maximum of both directions move together; a default that would pass its maximum raises the maximum.

    Args:
        steps: -1, 0 or 1 for ring, socket and TCP buffer, `(rows, 3)`.
        tracker: Tracker of the hosts.
        out: Array that is written to, float64 `(rows, controls)`.
        requests, connections: See `request_ring`.
    """
    out.fill(np.nan)
    now = tracker.settings
    out[:, _SOCKET] = _add_step(now[:, _SOCKET], BYTES_STEP * steps[:, 1], SOCKET_RANGE)
    for default, most in _SIDES:
        out[:, default] = _add_step(now[:, default], BYTES_STEP * steps[:, 2], TCP_RANGE)
        out[:, most] = np.maximum(_add_step(now[:, most], BYTES_STEP * steps[:, 2], TCP_RANGE), out[:, default])
    allowed = request_ring(steps[:, 0], tracker, requests, connections)
    out[:, _RING] = _add_step(now[:, _RING], RING_STEP * steps[:, 0] * allowed, RING_RANGE)
    return out


def _add_step(now: np.ndarray, step: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    then = now + step
    return np.where((then >= bounds[0]) & (then <= bounds[1]), then, now)


def decode_default(
    factors: dict[str, np.ndarray], tracker: Tracker, out: np.ndarray, requests: int, connections: float
) -> np.ndarray:
    """Write buffers scaled by factors, each kept within its range, into `out` and return it.

    The TCP factor applies to the maxima of both directions; the defaults stay at the host's initial ones, or at the maximum
    where that is less.

    Args:
        factors: Factors by layer, `(rows,)` each.
        tracker, out, requests, connections: As in `decode_auter`.
    """
    out.fill(np.nan)
    now = tracker.settings
    if "tcp" in factors:
        for default, most in _SIDES:
            out[:, most] = _scale(now[:, most], factors["tcp"], (TCP_FLOOR, TCP_RANGE[1]))
            out[:, default] = np.minimum(tracker.first[:, default], out[:, most])
    for layer, control in LAYER_CONTROLS.items():
        if layer in factors:
            column = CONTROL[control]
            out[:, column] = _scale(now[:, column], factors[layer], RANGES[control])
    if "ring" in factors:
        allowed = request_ring(np.sign(factors["ring"] - 1), tracker, requests, connections)
        out[:, _RING] = np.where(allowed, out[:, _RING], now[:, _RING])
    return remember_unreported(tracker, out)


def decode_choice(chosen: np.ndarray, choices: tuple[str, ...], tracker: Tracker, out: np.ndarray) -> np.ndarray:
    """Write the chosen congestion controls into `out` and return it; a slow start of what was never chosen is none.

    Args:
        chosen: As `ControlActions.decode` returns it.
        choices: Names that are chosen among.
        tracker: Tracker of the hosts, which remembers what was chosen and when.
        out: Array that is written to, float64 `(rows, controls)`.
    """
    numbers = np.array([math.nan, *(float(CHOICES.index(name)) for name in choices), math.nan])
    now = tracker.settings[:, _CONGESTION]
    anew = (chosen == len(choices) + 1) & np.isin(now, numbers[1:-1])  # what the host had may be none of the choices
    wanted = np.where(anew, now, numbers[chosen])
    changes = ~np.isnan(wanted) & ((wanted != now) | anew)
    out[:, _CONGESTION] = wanted
    out[:, CONTROL["slow_start"]] = np.where(anew, 1.0, math.nan)
    tracker.chosen_ago_s[changes] = 0
    np.copyto(now, wanted, where=changes)
    return out


def _scale(now: np.ndarray, factor: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    """Return whole numbers within a range; values with a factor of 1 stay as they are, even outside it."""
    return np.where(factor == 1, now, np.clip(np.rint(now * factor), *bounds))


def decode_direct(action: np.ndarray, tracker: Tracker, out: np.ndarray) -> np.ndarray:
    """Write the settings themselves into `out` and return it.

    The actions are ring, socket cap, TCP default and TCP maximum, -1 to 1 each on the log scale of its range. A default above
    its maximum is set to the maximum.
    """
    out.fill(np.nan)
    ring, socket, default, most = (
        _from_unit(action[:, column], bounds) for column, bounds in enumerate((RING_RANGE, SOCKET_RANGE, TCP_RANGE, TCP_RANGE))
    )
    has_ring = ~np.isnan(tracker.settings[:, _RING])
    out[:, _RING] = np.where(has_ring, ring, np.nan)
    out[:, _SOCKET] = socket
    for first, last in _SIDES:
        out[:, last] = most
        out[:, first] = np.minimum(default, most)
    return out


def _from_unit(value: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    low, high = bounds
    return np.rint(low * (high / low) ** ((value + 1) / 2))


def to_unit(ring: float, socket: float, default: float, most: float) -> np.ndarray:
    """Return the action of recipe `"direct"` for these settings, clipped to their ranges; float32 `(4,)`."""
    values = zip((ring, socket, default, most), (RING_RANGE, SOCKET_RANGE, TCP_RANGE, TCP_RANGE), strict=True)
    unit = [2 * np.log(np.clip(value, low, high) / low) / np.log(high / low) - 1 for value, (low, high) in values]
    return np.clip(unit, -1, 1).astype(np.float32)


def remember_unreported(tracker: Tracker, out: np.ndarray) -> np.ndarray:
    """Copy decided settings that telemetry does not report into `tracker.settings`, and return `out`."""
    for column in _UNREPORTED:
        np.copyto(tracker.settings[:, column], out[:, column], where=~np.isnan(out[:, column]))
    return out


_UNREPORTED = [CONTROL[name] for name in INITIAL_VALUES]
