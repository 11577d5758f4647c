"""Normalisation of measured values by a range: a fixed one, or that of the samples so far without outliers."""

from __future__ import annotations

from typing import Any

import numpy as np

from netbuf_gym.errors import CheckpointError, ConfigError, shown
from netbuf_gym.utils.arguments import real, whole

FARTHEST = 1e6
"""What normalised values are at most, and minus it at least, where they are not clipped to [0, 1]."""


def in_range(values: Any, low: float, high: float, clip: bool = True) -> np.ndarray:
    """(values - low) / (high - low), as TCP-PPCC's Eq. 8 and Auter's Eq. 3 have it, float64.

    Args:
        values: numbers of any shape.
        low, high: the range, `low` at most `high`; one without extent makes all values 0.
        clip: to [0, 1]; else values outside the range are below 0 or above 1, by at most `FARTHEST`.

    Raises:
        ConfigError: the range is none.
    """
    low, high = real("low", low, -1e300, 1e300), real("high", high, -1e300, 1e300)
    if low > high:
        raise ConfigError(f"low = {shown(low)} is above high = {shown(high)}; valid: at most as high")
    values = np.asarray(values, np.float64)
    if low == high:
        return np.zeros(values.shape)
    with np.errstate(over="ignore"):
        scaled = (values / 2 - low / 2) / (high / 2 - low / 2)  # halves: no difference is beyond any float
    return np.clip(scaled, *((0, 1) if clip else (-FARTHEST, FARTHEST)))


class ThreeSigmaRange:
    """The least and the greatest sample so far that is no outlier: none farther than three deviations from the mean.

    Mean and deviation (the square root of the mean squared distance) are those of all samples, outliers included, and are
    computed anew with each sample: what was an outlier may count later, and the other way round. This is how Auter
    normalises throughput, latency and loss in its reward.

    Args:
        memory: how many samples are remembered, the latest ones, 2 to 10 million. Time goes with it: some 40 microseconds for
            10,000.
        sigmas: how many deviations, above 0 to 100.
    """

    def __init__(self, memory: int = 10_000, sigmas: float = 3.0):
        self.memory = whole("memory", memory, 2, 10_000_000)
        self.sigmas = real("sigmas", sigmas, 0, 100, low_open=True)
        self._samples = np.empty(0)
        self._next = 0  # where the oldest one lies, once there are as many as are remembered
        self._range: tuple[float, float] | None = None

    @property
    def count(self) -> int:
        """How many samples are remembered."""
        return len(self._samples)

    @property
    def low(self) -> float:
        """The least sample that is no outlier; NaN without samples."""
        return self._bounds()[0]

    @property
    def high(self) -> float:
        """The greatest sample that is no outlier; NaN without samples."""
        return self._bounds()[1]

    def update(self, values: Any) -> None:
        """Takes in samples, an array of any shape; those that are not finite were not measured, and are left out."""
        values = np.asarray(values, np.float64).ravel()
        values = values[np.isfinite(values)][-self.memory :]
        if not len(values):
            return
        self._range = None
        room = min(self.memory - len(self._samples), len(values))
        if room:
            self._samples = np.concatenate([self._samples, values[:room]])
        late = values[room:]
        self._samples[(self._next + np.arange(len(late))) % self.memory] = late
        self._next = (self._next + len(late)) % self.memory

    def normalize(self, values: Any, clip: bool = True) -> np.ndarray:
        """(values - low) / (high - low), float64; see `in_range`. 0 as long as all samples are alike, or there are none."""
        low, high = self._bounds()
        return in_range(values, low, high, clip) if self.count else np.zeros(np.shape(values))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able state."""
        samples = np.roll(self._samples, -self._next)
        return {"memory": self.memory, "sigmas": self.sigmas, "samples": samples.tolist()}

    def load(self, state: dict[str, Any]) -> None:
        """Goes on from what `to_dict` gave.

        Raises:
            CheckpointError: it is damaged, or of another memory.
        """
        try:
            own = ThreeSigmaRange(state["memory"], state["sigmas"])
            samples = np.asarray(state["samples"], np.float64)
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"not the state of a range: {error}") from error
        if (own.memory, own.sigmas) != (self.memory, self.sigmas):
            raise CheckpointError(
                f"the saved range remembers {own.memory} samples within {own.sigmas:g} deviations, this one {self.memory} "
                f"within {self.sigmas:g}"
            )
        if samples.ndim != 1 or len(samples) > self.memory or not np.isfinite(samples).all():
            raise CheckpointError(f"the saved range holds {shown(state['samples'])}; valid: up to {self.memory} numbers")
        self._samples, self._next, self._range = samples, 0, None

    def _bounds(self) -> tuple[float, float]:
        if self._range is None and self.count:
            mean = self._samples.mean()
            far = np.abs(self._samples - mean)
            kept = self._samples[far <= self.sigmas * np.sqrt(np.mean(far**2))]
            kept = kept if len(kept) else self._samples  # fewer than one deviation may leave none
            self._range = float(kept.min()), float(kept.max())
        return self._range or (np.nan, np.nan)
