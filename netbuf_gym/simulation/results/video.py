"""Results of video clients: playback statistics, and each chunk with the client's estimates of the path's rate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from netbuf_gym.scenarios.types import Scenario
from netbuf_gym.scenarios.video import Video
from netbuf_gym.simulation.results.parts import NAN, NamedResults, format_quantity
from netbuf_gym.utils.arguments import check_choice

CORE_SCALES = {"begun_s": 1.0, "first_byte_s": 1.0, "ended_s": 1.0, "size_bytes": 1.0, "bitrate_mbps": 1e-6, "buffered_s": 1.0}
"""The core's first columns of a chunk, with the factors from its units."""
CHUNK = np.dtype(
    {
        "names": [*CORE_SCALES, "estimate_mbps", "window_mbps", "capacity_mbps"],
        "formats": ["f8", "f8", "f8", "i8", "f8", "f8", "f8", "f8", "f8"],
    }
)
"""A chunk that arrived: times of its request, first byte and last byte, its size and bitrate, and the video buffered at the
request. At its end, all in Mbit/s of payload: the client's estimate (size / download time), the receiver's (its controlled
window / last round-trip time; NaN without a receiver control) and the true value, the mean of what the bottleneck could
carry during the download, less headers (NaN without a rate).
"""

ESTIMATES = ("estimate_mbps", "window_mbps")


@dataclass(frozen=True, kw_only=True, repr=False)
class VideoResult:
    """Playback of a flow's video client over the whole run, or up to the flow's `stop_s`.

    Played and buffered video add up to the chunks that arrived.

    Attributes:
        name, abr: The flow's name, and the rule by which bitrates were chosen.
        startup_s: Time from the flow's start to the first frame; NaN: there was none.
        played_s, buffered_s: Seconds of video that were played, and that are left.
        stalled_s, stalls: Rebuffering after the first frame: time and count; the last may be unfinished.
        asked_bytes: Bytes of all requested chunks, one in transit included.
        chunks: Chunks that arrived, a structured array (`CHUNK`), shape (chunks,).
    """

    name: str
    abr: str
    startup_s: float
    played_s: float
    buffered_s: float
    stalled_s: float
    stalls: int
    asked_bytes: int
    chunks: np.ndarray = field(default_factory=lambda: np.zeros(0, CHUNK))

    def chunk_table(self) -> dict[str, list[Any]]:
        """Return the chunks by columns, JSON-able."""
        return {name: self.chunks[name].tolist() for name in CHUNK.names or ()}

    def __repr__(self) -> str:
        """Return name, rule, bitrate and stalls."""
        stalled = f"stalled {format_quantity(self.stalled_s, 's')} in {self.stalls}"
        return f"<{self.name} (video, {self.abr}): {format_quantity(self.bitrate_mean_mbps, 'Mbit/s')}, {stalled}>"

    @property
    def bitrate_mean_mbps(self) -> float:
        """Mean bitrate over the chunks that arrived; NaN without any."""
        return float(self.chunks["bitrate_mbps"].mean()) if len(self.chunks) else NAN

    @property
    def switches(self) -> int:
        """Number of bitrate changes between successive chunks."""
        return int(np.count_nonzero(np.diff(self.chunks["bitrate_mbps"])))

    @property
    def stalled_share(self) -> float:
        """Stalled share of the time since the first frame; NaN before there was one."""
        watched_s = self.played_s + self.stalled_s
        return self.stalled_s / watched_s if watched_s > 0 else NAN

    def error(self, estimate: str = "estimate_mbps") -> np.ndarray:
        """Return an estimate's relative error at each chunk's end, (estimate - capacity) / capacity; NaN if either is unknown.

        Args:
            estimate: "estimate_mbps" or "window_mbps".

        Returns:
            Errors, shape (chunks,).

        Raises:
            ConfigError: Another name.
        """
        check_choice("estimate", estimate, ESTIMATES)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.chunks[estimate] / self.chunks["capacity_mbps"] - 1

    def error_median(self, estimate: str = "estimate_mbps", absolute: bool = True) -> float:
        """Return the median over the chunks of the relative error, or of its magnitude; NaN where it is unknown for all.

        Args:
            estimate: As for `error`.
            absolute: Whether to take magnitudes.

        Raises:
            ConfigError: Another name.
        """
        errors = self.error(estimate)
        known = errors[np.isfinite(errors)]
        return float(np.median(np.abs(known) if absolute else known)) if len(known) else NAN

    def summary(self) -> dict[str, Any]:
        """Return everything but the chunks, as values by name."""
        names = ("bitrate_mean_mbps", "switches", "startup_s", "played_s", "buffered_s", "stalled_s", "stalls", "stalled_share")
        return {
            "name": self.name,
            "abr": self.abr,
            "chunks": len(self.chunks),
            **{name: getattr(self, name) for name in names},
            **{f"{name.removesuffix('_mbps')}_error_median": self.error_median(name) for name in ESTIMATES},
        }


class Videos(NamedResults[VideoResult]):
    """Results of the video clients, by index or by their flow's name."""

    __slots__ = ()
    what = "video client"


def build_video_results(scenario: Scenario, stats: list[dict[str, Any] | None]) -> Videos:
    """Return the results of the flows with a video client, from the core's statistics of each flow."""
    found = []
    payload = scenario.mss / scenario.data_bytes
    for i, (flow, one) in enumerate(zip(scenario.flows, stats, strict=True)):
        if one is None or not isinstance(flow.app, Video):
            continue
        rows = np.array(one["chunks"])
        chunks = np.zeros(len(rows), CHUNK)
        for k, (name, scale) in enumerate(CORE_SCALES.items()):
            chunks[name] = rows[:, k] * scale
        with np.errstate(divide="ignore", invalid="ignore"):
            chunks["estimate_mbps"] = rows[:, 3] * 8e-6 / (rows[:, 2] - rows[:, 0])
            chunks["window_mbps"] = rows[:, 6] * 8e-6 / rows[:, 7]
        chunks["capacity_mbps"] = rows[:, 8] * 1e-6 * payload
        rest = {name: one[name] for name in ("startup_s", "played_s", "buffered_s", "stalled_s", "stalls", "asked_bytes")}
        found.append(VideoResult(name=flow.name or f"flow-{i}", abr=flow.app.abr, chunks=chunks, **rest))
    return Videos(found)
