"""What a host's actions stand for: the paper's additive steps, factors of a layer's buffers, or the settings themselves."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from netbuf_gym.tasks.host_buffers.settings import RING_RANGE, SOCKET_RANGE, TCP_RANGE
from netbuf_gym.tasks.host_buffers.tracker import CONTROL, Tracker

RING_STEP, BYTES_STEP = 8, 1024
"""The paper's scales: packets of the ring, bytes of the socket and the TCP buffers."""

STEPS = np.array(list(itertools.product((-1, 0, 1), repeat=3)))
"""By the flat action, the steps of ring, socket and TCP buffer: flat = 9 (ring + 1) + 3 (socket + 1) + (TCP + 1)."""

FACTORS: dict[str, tuple[float, ...]] = {
    "tcp": (1 / 4, 1 / 1.5, 1 / 1.1, 1.1, 1.5, 4.0),
    "socket": (1 / 4, 4.0),
    "ring": (1 / 2, 2.0),
    "limit_output": (1 / 2, 2.0),
    "notsent_lowat": (1 / 2, 2.0),
    "window_clamp": (1 / 1.6, 1.6),
}
"""By layer, what its buffer is multiplied by; 1 is the one action that leaves all as it is."""

LAYERS = ("tcp", "socket", "ring")
"""Those that are acted on unless others are asked for."""

RANGES: dict[str, tuple[float, float]] = {
    "ring_packets": RING_RANGE,
    "socket_bytes": SOCKET_RANGE,
    **{f"tcp_{side}_{which}_bytes": TCP_RANGE for side in ("rmem", "wmem") for which in ("default", "max")},
    "limit_output_bytes": (16_384.0, 67_108_864.0),
    "notsent_lowat_bytes": (4096.0, 67_108_864.0),
    "window_clamp_bytes": (4096.0, 67_108_864.0),
}
"""What each control stays within."""

BEGINNING: dict[str, float] = {
    "limit_output_bytes": 1_048_576.0,
    "notsent_lowat_bytes": 67_108_864.0,
    "window_clamp_bytes": 67_108_864.0,
}
"""What a layer that is acted on starts from where the host does not say: Linux's default, or what never binds."""

TCP_FLOOR = 16_384.0
"""Least TCP maximum of geometric steps: a few segments with what the kernel needs to hold them."""

OWN_CONTROL = {
    "socket": "socket_bytes",
    "ring": "ring_packets",
    "limit_output": "limit_output_bytes",
    "notsent_lowat": "notsent_lowat_bytes",
    "window_clamp": "window_clamp_bytes",
}

_RING, _SOCKET = CONTROL["ring_packets"], CONTROL["socket_bytes"]
_TCP = [CONTROL[f"tcp_{side}_{which}_bytes"] for side in ("rmem", "wmem") for which in ("default", "max")]
_SIDES = [(_TCP[0], _TCP[1]), (_TCP[2], _TCP[3])]


@dataclass(frozen=True)
class Acting:
    """How actions of the default recipe become factors.

    Attributes:
        layers: that are acted on.
        flat: whether an action changes one layer, or each by a factor of its own.
        space: of one agent's actions.
        levels: float64 (actions, layers): of flat actions, the factors.
        choices: of others, by layer the factors, 1 in their middle.
    """

    layers: tuple[str, ...]
    flat: bool
    space: gym.Space
    levels: np.ndarray
    choices: tuple[np.ndarray, ...]

    @classmethod
    def on(cls, layers: tuple[str, ...], flat: bool) -> Acting:
        """Acting on these layers."""
        choices = tuple(np.array(sorted((*FACTORS[layer], 1.0))) for layer in layers)
        rows = [np.ones(len(layers))]
        for column, layer in enumerate(layers):
            for factor in FACTORS[layer]:
                rows.append(np.ones(len(layers)))
                rows[-1][column] = factor
        space: Any = gym.spaces.Discrete(len(rows)) if flat else gym.spaces.MultiDiscrete([len(one) for one in choices])
        return cls(layers, flat, space, np.array(rows), choices)

    def factors(self, action: np.ndarray) -> dict[str, np.ndarray]:
        """By layer, float64 `(rows,)`, for checked actions."""
        if self.flat:
            return dict(zip(self.layers, self.levels[action].T, strict=True))
        return {layer: self.choices[k][action[:, k]] for k, layer in enumerate(self.layers)}

    @property
    def keep(self) -> Any:
        """The action that leaves all as it is."""
        if self.flat:
            return 0
        return np.array([int(np.argmax(one == 1.0)) for one in self.choices])


def request_ring(steps: np.ndarray, tracker: Tracker, requests: int, connections: float) -> np.ndarray:
    """Algorithm 1: whether a ring may be resized, bool `(rows,)`, and what is remembered of requests.

    A request for a larger ring counts, and forgets those for a smaller one; likewise the other way; none leaves both as they
    are. A ring is resized when more than `requests` of a kind were counted, where at most `connections` are alive.

    Args:
        steps: sign of what is asked for, `(rows,)`.
        tracker: whose `requests` are counted on.
        requests, connections: the paper's n and m.
    """
    up, down = tracker.requests
    up[:] = np.where(steps > 0, up + 1, np.where(steps < 0, 0, up))
    down[:] = np.where(steps < 0, down + 1, np.where(steps > 0, 0, down))
    return ((up > requests) | (down > requests)) & (tracker["connections"] <= connections) & (steps != 0)


def decode_auter(steps: np.ndarray, tracker: Tracker, out: np.ndarray, requests: int, connections: float) -> np.ndarray:
    """The paper's: b + scale * a, or b where that leaves the range; the ring by Algorithm 1.

    The TCP default and maximum move together, of both directions; a default that would pass its maximum takes it along.

    Args:
        steps: -1, 0 or 1 of ring, socket and TCP buffer, `(rows, 3)`.
        tracker: what is known of each host.
        out: float64 `(rows, controls)`, written to.
        requests, connections: see `request_ring`.
    """
    out.fill(np.nan)
    now = tracker.settings
    out[:, _SOCKET] = _stepped(now[:, _SOCKET], BYTES_STEP * steps[:, 1], SOCKET_RANGE)
    for default, most in _SIDES:
        out[:, default] = _stepped(now[:, default], BYTES_STEP * steps[:, 2], TCP_RANGE)
        out[:, most] = np.maximum(_stepped(now[:, most], BYTES_STEP * steps[:, 2], TCP_RANGE), out[:, default])
    allowed = request_ring(steps[:, 0], tracker, requests, connections)
    out[:, _RING] = _stepped(now[:, _RING], RING_STEP * steps[:, 0] * allowed, RING_RANGE)
    return out


def _stepped(now: np.ndarray, step: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    then = now + step
    return np.where((then >= bounds[0]) & (then <= bounds[1]), then, now)


def decode_default(
    factors: dict[str, np.ndarray], tracker: Tracker, out: np.ndarray, requests: int, connections: float
) -> np.ndarray:
    """Factors of buffers, each kept within its range.

    The TCP factor is of the maxima of both directions; the defaults stay at what the host started with, or at the maximum
    where that is less.

    Args:
        factors: by layer, `(rows,)`.
        tracker, out, requests, connections: as in `decode_auter`.
    """
    out.fill(np.nan)
    now = tracker.settings
    if "tcp" in factors:
        for default, most in _SIDES:
            out[:, most] = _scaled(now[:, most], factors["tcp"], (TCP_FLOOR, TCP_RANGE[1]))
            out[:, default] = np.minimum(tracker.first[:, default], out[:, most])
    for layer, control in OWN_CONTROL.items():
        if layer in factors:
            column = CONTROL[control]
            out[:, column] = _scaled(now[:, column], factors[layer], RANGES[control])
    if "ring" in factors:
        allowed = request_ring(np.sign(factors["ring"] - 1), tracker, requests, connections)
        out[:, _RING] = np.where(allowed, out[:, _RING], now[:, _RING])
    return remembered(tracker, out)


def _scaled(now: np.ndarray, factor: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    """Whole numbers within a range; what is not changed stays, wherever it is."""
    return np.where(factor == 1, now, np.clip(np.rint(now * factor), *bounds))


def decode_direct(action: np.ndarray, tracker: Tracker, out: np.ndarray) -> np.ndarray:
    """The settings themselves: ring, socket cap, TCP default and TCP maximum, -1 to 1 each on its range's log scale.

    A default above its maximum is the maximum.
    """
    out.fill(np.nan)
    ring, socket, default, most = (
        _of_unit(action[:, column], bounds) for column, bounds in enumerate((RING_RANGE, SOCKET_RANGE, TCP_RANGE, TCP_RANGE))
    )
    has_ring = ~np.isnan(tracker.settings[:, _RING])
    out[:, _RING] = np.where(has_ring, ring, np.nan)
    out[:, _SOCKET] = socket
    for first, last in _SIDES:
        out[:, last] = most
        out[:, first] = np.minimum(default, most)
    return out


def _of_unit(value: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    low, high = bounds
    return np.rint(low * (high / low) ** ((value + 1) / 2))


def to_unit(ring: float, socket: float, default: float, most: float) -> np.ndarray:
    """The action of recipe `"direct"` that stands for these settings, clipped to their ranges; float32 `(4,)`."""
    values = zip((ring, socket, default, most), (RING_RANGE, SOCKET_RANGE, TCP_RANGE, TCP_RANGE), strict=True)
    unit = [2 * np.log(np.clip(value, low, high) / low) / np.log(high / low) - 1 for value, (low, high) in values]
    return np.clip(unit, -1, 1).astype(np.float32)


def remembered(tracker: Tracker, out: np.ndarray) -> np.ndarray:
    """`out`; what telemetry does not tell of settings is in force as it was decided."""
    for column in _UNTOLD:
        np.copyto(tracker.settings[:, column], out[:, column], where=~np.isnan(out[:, column]))
    return out


_UNTOLD = [CONTROL[name] for name in BEGINNING]
