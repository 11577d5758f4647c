"""Games: windows of worlds that ccBench's rule gives to whoever is about as good as the best. ccBench's and Sage's worlds are
measured, scored and won here.

The grid and the scores are those of Soheil-ab/ccBench (49b5ada, August 2023): `solo_runall.sh`, `multi_runall.sh`,
`league-piecewise.py`, `league-piecewise-2flows.py`, `league.sh`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netbuf_gym.evaluation.suites.field.suite import FieldCell, Results
from netbuf_gym.evaluation.suites.recorder import Record

SOURCE = "Soheil-ab/ccBench, commit 49b5ada (August 2023); arXiv 2307.10054"
RATES_MBPS, DELAYS_MS, BUFFERS = (12, 24, 48, 96, 192), (5, 10, 20, 40, 80), (1, 2, 4, 8, 16)
"""The grid: delays are one way; buffers are times what the path holds."""
MARGIN = 0.1
Won = tuple[list[str], list[FieldCell], np.ndarray]
"""Who has played everything, the worlds, and who won which game: bool, `(controllers, games)`, world by world."""


@dataclass(frozen=True)
class Alone:
    """A flow alone, window by window.

    Attributes:
        mbps: Throughput on the wire, `(windows,)`.
        delay_ms: Mean time in the queue and in transmission, and both propagations; NaN where nothing came, `(windows,)`.
        rate_mbps: Of the link, `(windows,)`.
        propagation_ms: There and back.
    """

    mbps: np.ndarray
    delay_ms: np.ndarray
    rate_mbps: np.ndarray
    propagation_ms: float

    @classmethod
    def of(cls, record: Record, times: Sequence[float]) -> Alone:
        """The windows from each time to the next."""
        rtt_ms = record.scenario.propagation_rtt_ms()
        return cls(record.wire_mbps(0, times), record.queue_ms(times) + rtt_ms, record.capacity_mbps(times), rtt_ms)

    @property
    def score(self) -> float:
        """Share of the rate squared over delay / propagation, mean of the windows; 1: full, no queue."""
        delay = np.where(np.isfinite(self.delay_ms), self.delay_ms, np.inf)
        return float(np.mean((self.mbps / self.rate_mbps) ** 2 * self.propagation_ms / delay))

    @property
    def columns(self) -> dict[str, float]:
        """What games are won by."""
        return _numbered("mbps", self.mbps) | _numbered("delay_ms", self.delay_ms)


@dataclass(frozen=True)
class Beside:
    """A flow beside another, window by window.

    Attributes:
        mbps: Throughput on the wire, `(windows,)`.
        fair_mbps: Half of the link.
    """

    mbps: np.ndarray
    fair_mbps: float

    @classmethod
    def of(cls, record: Record, flow: int, windows: Sequence[tuple[float, float]]) -> Beside:
        """The windows, s, of the flow of this index."""
        return cls(np.array([record.wire_mbps(flow, one)[0] for one in windows]), record.scenario.capacity_mbps / 2)

    @property
    def score(self) -> float:
        """1 less the distance of its throughput from half of the link, over that half, mean of the windows."""
        return float(1 - np.abs(self.mbps / self.fair_mbps - 1).mean())

    @property
    def columns(self) -> dict[str, float]:
        """What games are won by."""
        return _numbered("mbps", self.mbps)


def _numbered(key: str, values: np.ndarray) -> dict[str, float]:
    return {f"{key}_{number}": float(value) for number, value in enumerate(values)}


def power(mbps: np.ndarray, delay_ms: np.ndarray) -> np.ndarray:
    """The score of a game alone: both rounded to whole numbers, throughput squared over delay; 0 where nothing arrived."""
    delay = np.round(np.where(np.isfinite(delay_ms), delay_ms, np.inf))
    return np.round(mbps) ** 2 / np.maximum(delay, 1.0)


def solo_wins(scores: np.ndarray, margin: float = MARGIN) -> np.ndarray:
    """Who wins each game: whose score is within the margin of the best one's.

    Args:
        scores: `(controllers, games)`.

    Returns:
        bool, of the same shape; nobody wins a game in which all scores are 0.
    """
    return (scores >= (1 - margin) * scores.max(axis=0)) & (scores > 0)


def friendly_wins(mbps: np.ndarray, fair: np.ndarray, margin: float = MARGIN) -> np.ndarray:
    """Who wins each game: whose rounded throughput is about as near to the fair share as the nearest one's.

    Args:
        mbps: `(controllers, games)`.
        fair: Half of the link, `(games,)`.
    """
    rounded = np.round(mbps)
    least = np.abs(fair - rounded).min(axis=0)
    return ((fair - least) * (1 - margin) <= rounded) & (rounded <= (fair + least) * (1 + margin))


def won_alone(results: Results, cells: Sequence[FieldCell], windows: int, margin: float = MARGIN) -> Won:
    """Who wins the games of worlds of a flow alone, so many windows a world."""
    names, played = _present(results, cells)
    if not names:
        return names, played, np.zeros((0, 0), bool)
    mbps, delay = (_values(results, names, key, played, windows) for key in ("mbps", "delay_ms"))
    return names, played, solo_wins(power(np.nan_to_num(mbps), delay), margin)


def won_beside(results: Results, cells: Sequence[FieldCell], windows: int, margin: float = MARGIN) -> Won:
    """Who wins the games of worlds beside another flow, whose rates are `about["rate"]`."""
    names, played = _present(results, cells)
    if not names:
        return names, played, np.zeros((0, 0), bool)
    fair = np.repeat([cell.about["rate"] / 2 for cell in played], windows)
    return names, played, friendly_wins(np.nan_to_num(_values(results, names, "mbps", played, windows)), fair, margin)


def rates(won: Won) -> dict[str, float]:
    """Winning rates, %, by controller."""
    return {name: float(100 * row.mean()) for name, row in zip(won[0], won[2], strict=True)}


def _present(results: Results, cells: Sequence[FieldCell]) -> tuple[list[str], list[FieldCell]]:
    """Who has played all worlds that are played, and these."""
    there = {name: np.isfinite(results.at(name, "mbps_0", cells)) for name in results.names}
    by_any = np.any(list(there.values()), axis=0) if there else np.zeros(len(cells), bool)
    if not by_any.any():
        return [], []
    return [name for name, own in there.items() if own[by_any].all()], [cells[int(k)] for k in np.flatnonzero(by_any)]


def _values(results: Results, names: Sequence[str], key: str, cells: Sequence[FieldCell], windows: int) -> np.ndarray:
    """One metric of each controller in each game, world by world: `(controllers, windows * worlds)`."""
    own = [[results.at(name, f"{key}_{k}", cells) for k in range(windows)] for name in names]
    return np.array([np.stack(one, axis=1).ravel() for one in own])
