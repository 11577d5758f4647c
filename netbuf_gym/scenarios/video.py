"""Video clients: adaptive streaming over HTTP (DASH)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from netbuf_gym import _core
from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios.fields import check_fields, choice, integer, number, rule
from netbuf_gym.traces.types import MAX_RATE_MBPS, MIN_RATE_MBPS
from netbuf_gym.utils import checks

BITRATE_RULES: dict[str, str] = _core.bitrate_rules()
"""Bitrate selection rules of clients: meanings by name."""
MAX_CHUNK_S, MAX_BUFFER_S, MAX_CHUNKS, MAX_SAFETY = 1000.0, 3600.0, 1000, 10.0
MAX_LADDER = 100
RESERVOIR, CUSHION = 90 / 240, 126 / 240
"""Reservoir and cushion of BBA-0, as shares of the buffer."""


def _check_ladder(label: str, value: object) -> tuple[float, ...]:
    ladder = checks.sequence(label, value, "bitrates")
    if len(ladder) > MAX_LADDER:
        raise ScenarioError(f"{label} has {len(ladder)} bitrates; valid: at most {MAX_LADDER}")
    ladder = tuple(checks.number(f"{label}[{i}]", one, MIN_RATE_MBPS, MAX_RATE_MBPS) for i, one in enumerate(ladder))
    for i in range(1, len(ladder)):
        if ladder[i] <= ladder[i - 1]:
            at = f"{label}[{i}] = {ladder[i]:g}"
            raise ScenarioError(f"{at} is not above {ladder[i - 1]:g}; valid: rising bitrates")
    return ladder


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

    bitrates_mbps: Sequence[float] = field(
        default=(0.3, 0.75, 1.2, 1.85, 2.85, 4.3),
        metadata=rule(_check_ladder, core="bitrate_bps", convert=lambda ladder: [bitrate * 1e6 for bitrate in ladder]),
    )
    chunk_s: float = field(default=4.0, metadata=number(0.1, MAX_CHUNK_S, core="chunk_ns"))
    buffer_s: float = field(default=30.0, metadata=rule(None, core="buffer_ns"))
    startup_s: float = field(default=4.0, metadata=rule(None, core="startup_ns"))
    abr: str = field(default="rate", metadata=choice(BITRATE_RULES, core="abr"))
    window_chunks: int = field(default=5, metadata=integer(1, MAX_CHUNKS, core="window_chunks"))
    safety: float = field(default=0.85, metadata=number(0, MAX_SAFETY, low_open=True, core="safety"))
    reservoir_s: float | None = field(default=None, metadata=number(0, MAX_BUFFER_S))
    cushion_s: float | None = field(default=None, metadata=number(0, MAX_BUFFER_S))
    kind: ClassVar[str] = "video"

    def __post_init__(self) -> None:
        put = object.__setattr__
        check_fields(self)
        put(self, "buffer_s", checks.number("buffer_s", self.buffer_s, self.chunk_s, MAX_BUFFER_S))
        put(self, "startup_s", checks.number("startup_s", self.startup_s, 0, self.buffer_s))

    @property
    def buffer_rule_s(self) -> tuple[float, float]:
        """Reservoir and cushion, seconds."""
        reservoir_s = RESERVOIR * self.buffer_s if self.reservoir_s is None else self.reservoir_s
        return reservoir_s, CUSHION * self.buffer_s if self.cushion_s is None else self.cushion_s
