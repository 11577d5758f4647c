"""Video clients: adaptive streaming over HTTP (DASH)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from netbuf_gym import _core
from netbuf_gym.errors import ScenarioError
from netbuf_gym.traces.types import MAX_RATE_MBPS, MIN_RATE_MBPS
from netbuf_gym.utils import checks

BITRATE_RULES: dict[str, str] = _core.bitrate_rules()
"""Bitrate selection rules of clients: meanings by name."""
MAX_CHUNK_S, MAX_BUFFER_S, MAX_CHUNKS, MAX_SAFETY = 1000.0, 3600.0, 1000, 10.0
MAX_LADDER = 100
RESERVOIR, CUSHION = 90 / 240, 126 / 240
"""Reservoir and cushion of BBA-0, as shares of the buffer."""


@dataclass(frozen=True, kw_only=True)
class Video:
    """Video client that requests chunks over one persistent connection; the flow's sender is the server.

    The client requests a chunk when the previous one has arrived and the buffer has room. The request takes the return path,
    has the size of an ACK on the wire, and is repeated if unanswered. Between chunks nothing is sent. `Result.videos` has the
    playback and the client's estimates of the path.

    Args:
        bitrates_mbps: Bitrate ladder, rising, each 1e-6 to 1e6 Mbit/s, at most 100 (default: 300 kbit/s to 4.3 Mbit/s, those of
            Mao et al., "Neural adaptive video streaming with Pensieve", SIGCOMM 2017, section 5.1).
        chunk_s: Length of a chunk, 0.1 to 1000 s of video.
        buffer_s: Size of the client's buffer, `chunk_s` to 3600 s of video.
        startup_s: Buffered video required to start playing, and to resume after a stall, 0 to `buffer_s`.
        abr: Bitrate selection: "rate": from the throughputs of the last chunks; "buffer": from the buffer level (BBA-0).
        window_chunks: For "rate": number of chunks in the harmonic mean of the throughput, 1 to 1000.
        safety: For "rate": largest bitrate as a share of that mean, above 0 to 10.
        reservoir_s, cushion_s: For "buffer": buffer level up to which the bitrate is the lowest, and further level at which it
            is the highest, 0 to 3600 s; None: 37.5 and 52.5 % of the buffer, as in BBA-0 with its 240 s.
    """

    bitrates_mbps: Sequence[float] = (0.3, 0.75, 1.2, 1.85, 2.85, 4.3)
    chunk_s: float = 4.0
    buffer_s: float = 30.0
    startup_s: float = 4.0
    abr: str = "rate"
    window_chunks: int = 5
    safety: float = 0.85
    reservoir_s: float | None = None
    cushion_s: float | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        ladder = checks.sequence("bitrates_mbps", self.bitrates_mbps, "bitrates")
        if len(ladder) > MAX_LADDER:
            raise ScenarioError(f"bitrates_mbps has {len(ladder)} bitrates; valid: at most {MAX_LADDER}")
        ladder = tuple(checks.number(f"bitrates_mbps[{i}]", one, MIN_RATE_MBPS, MAX_RATE_MBPS) for i, one in enumerate(ladder))
        for i in range(1, len(ladder)):
            if ladder[i] <= ladder[i - 1]:
                at = f"bitrates_mbps[{i}] = {ladder[i]:g}"
                raise ScenarioError(f"{at} is not above {ladder[i - 1]:g}; valid: rising bitrates")
        put(self, "bitrates_mbps", ladder)
        put(self, "chunk_s", checks.number("chunk_s", self.chunk_s, 0.1, MAX_CHUNK_S))
        put(self, "buffer_s", checks.number("buffer_s", self.buffer_s, self.chunk_s, MAX_BUFFER_S))
        put(self, "startup_s", checks.number("startup_s", self.startup_s, 0, self.buffer_s))
        checks.choice("abr", self.abr, BITRATE_RULES)
        put(self, "window_chunks", checks.integer("window_chunks", self.window_chunks, 1, MAX_CHUNKS))
        put(self, "safety", checks.number("safety", self.safety, 0, MAX_SAFETY, low_open=True))
        for field in ("reservoir_s", "cushion_s"):
            if getattr(self, field) is not None:
                put(self, field, checks.number(field, getattr(self, field), 0, MAX_BUFFER_S))

    @property
    def buffer_rule_s(self) -> tuple[float, float]:
        """Reservoir and cushion, seconds."""
        reservoir_s = RESERVOIR * self.buffer_s if self.reservoir_s is None else self.reservoir_s
        return reservoir_s, CUSHION * self.buffer_s if self.cushion_s is None else self.cushion_s
