"""Normalisation of measured values by a fixed range, or by the range of the samples so far without outliers."""

from __future__ import annotations

from typing import Any

import numpy as np

from netbuf_gym.errors import CheckpointError, ConfigError, quote
from netbuf_gym.utils.arguments import check_integer, check_real

MAX_UNCLIPPED = 1e6
"""Bound on the absolute value of normalised values that are not clipped to [0, 1]."""


def in_range(values: Any, low: float, high: float, clip: bool = True) -> np.ndarray:
    """Return (values - low) / (high - low), as in TCP-PPCC's Eq. 8 and Auter's Eq. 3, float64.

    Args:
        values: Numbers of any shape.
        low, high: Range, `low` at most `high`; where both are equal all values become 0.
        clip: Whether to clip to [0, 1]; otherwise values beyond low and high give results outside, by at most `MAX_UNCLIPPED`.

    Raises:
        ConfigError: `low` is above `high`, or a bound is not a number in range.
    """
    low, high = check_real("low", low, -1e300, 1e300), check_real("high", high, -1e300, 1e300)
    if low > high:
        raise ConfigError(f"low = {quote(low)} is above high = {quote(high)}; valid: at most as high")
    values = np.asarray(values, np.float64)
    if low == high:
        return np.zeros(values.shape)
    with np.errstate(over="ignore"):
        scaled = (values / 2 - low / 2) / (high / 2 - low / 2)  # halves keep differences from overflowing
    return np.clip(scaled, *((0, 1) if clip else (-MAX_UNCLIPPED, MAX_UNCLIPPED)))


class ThreeSigmaRange:
    """Range of the samples so far without outliers, which are farther than three standard deviations from the mean.

    Mean and deviation (the square root of the mean squared distance) are those of all samples, outliers included, and are
    recomputed with each sample: an outlier may count later, and the other way round. Auter normalises throughput, latency and
    loss in this way in its reward.

    Args:
        memory: Number of latest samples that are remembered, 2 to 10 million. Time grows with it: some 40 microseconds for
            10,000.
        sigmas: Number of deviations, above 0 to 100.
    """

    def __init__(self, memory: int = 10_000, sigmas: float = 3.0):
        self.memory = check_integer("memory", memory, 2, 10_000_000)
        self.sigmas = check_real("sigmas", sigmas, 0, 100, low_open=True)
        self._samples = np.empty(0)
        self._next = 0  # index of the oldest sample, once the memory is full
        self._range: tuple[float, float] | None = None

    @property
    def count(self) -> int:
        """Number of remembered samples."""
        return len(self._samples)

    @property
    def low(self) -> float:
        """Least sample that is not an outlier; NaN without samples."""
        return self._bounds()[0]

    @property
    def high(self) -> float:
        """Greatest sample that is not an outlier; NaN without samples."""
        return self._bounds()[1]

    def update(self, values: Any) -> None:
        """Add samples, an array of any shape; values that are not finite were not measured and are left out."""
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
        """Return (values - low) / (high - low), float64; see `in_range`. 0 while all samples are equal, or there are none."""
        low, high = self._bounds()
        return in_range(values, low, high, clip) if self.count else np.zeros(np.shape(values))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able state."""
        samples = np.roll(self._samples, -self._next)
        return {"memory": self.memory, "sigmas": self.sigmas, "samples": samples.tolist()}

    def load(self, state: dict[str, Any]) -> None:
        """Restore the state returned by `to_dict`.

        Raises:
            CheckpointError: The state is damaged, or of another memory or number of deviations.
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
            raise CheckpointError(f"the saved range holds {quote(state['samples'])}; valid: up to {self.memory} numbers")
        self._samples, self._next, self._range = samples, 0, None

    def _bounds(self) -> tuple[float, float]:
        if self._range is None and self.count:
            mean = self._samples.mean()
            far = np.abs(self._samples - mean)
            kept = self._samples[far <= self.sigmas * np.sqrt(np.mean(far**2))]
            kept = kept if len(kept) else self._samples  # with `sigmas` below 1 none may be left
            self._range = float(kept.min()), float(kept.max())
        return self._range or (np.nan, np.nan)
