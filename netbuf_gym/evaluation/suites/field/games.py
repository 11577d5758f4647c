"""Games: windows of worlds that ccBench's rule awards to all controllers about as good as the best; for ccBench and Sage.

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
"""The grid: one-way delays; buffers in multiples of what the path holds."""
MARGIN = 0.1
GameWins = tuple[list[str], list[FieldCell], np.ndarray]
"""Controllers that have run in all worlds, the worlds, and the winners: bool, `(controllers, games)`, world by world."""


@dataclass(frozen=True)
class SoloMetric:
    """Metrics of a flow that is alone, window by window.

    Attributes:
        mbps: Throughput on the wire, `(windows,)`.
        delay_ms: Mean time in the queue and in transmission, plus propagation both ways; NaN if nothing arrived, `(windows,)`.
        rate_mbps: Rate of the link, `(windows,)`.
        propagation_ms: Round-trip propagation.
    """

    mbps: np.ndarray
    delay_ms: np.ndarray
    rate_mbps: np.ndarray
    propagation_ms: float

    @classmethod
    def from_record(cls, record: Record, times: Sequence[float]) -> SoloMetric:
        """Return the metrics of the windows from each time to the next."""
        rtt_ms = record.scenario.propagation_rtt_ms()
        return cls(record.wire_mbps(0, times), record.queue_ms(times) + rtt_ms, record.capacity_mbps(times), rtt_ms)

    @property
    def score(self) -> float:
        """Share of the rate squared over delay / propagation, mean over the windows; 1: full link, no queue."""
        delay = np.where(np.isfinite(self.delay_ms), self.delay_ms, np.inf)
        return float(np.mean((self.mbps / self.rate_mbps) ** 2 * self.propagation_ms / delay))

    @property
    def columns(self) -> dict[str, float]:
        """Metrics that decide games."""
        return _number_columns("mbps", self.mbps) | _number_columns("delay_ms", self.delay_ms)


@dataclass(frozen=True)
class PairwiseMetric:
    """Metrics of a flow beside another one, window by window.

    Attributes:
        mbps: Throughput on the wire, `(windows,)`.
        fair_mbps: Half of the link's rate.
    """

    mbps: np.ndarray
    fair_mbps: float

    @classmethod
    def from_record(cls, record: Record, flow: int, windows: Sequence[tuple[float, float]]) -> PairwiseMetric:
        """Return the metrics of the flow of this index in these windows, s."""
        return cls(np.array([record.wire_mbps(flow, one)[0] for one in windows]), record.scenario.capacity_mbps / 2)

    @property
    def score(self) -> float:
        """Mean over the windows of 1 less the relative distance of the throughput from half of the link's rate."""
        return float(1 - np.abs(self.mbps / self.fair_mbps - 1).mean())

    @property
    def columns(self) -> dict[str, float]:
        """Metrics that decide games."""
        return _number_columns("mbps", self.mbps)


def _number_columns(key: str, values: np.ndarray) -> dict[str, float]:
    return {f"{key}_{number}": float(value) for number, value in enumerate(values)}


def compute_power(mbps: np.ndarray, delay_ms: np.ndarray) -> np.ndarray:
    """Return the score of a game alone: throughput squared over delay, both rounded to whole numbers; 0 if nothing arrived."""
    delay = np.round(np.where(np.isfinite(delay_ms), delay_ms, np.inf))
    return np.round(mbps) ** 2 / np.maximum(delay, 1.0)


def decide_solo_games(scores: np.ndarray, margin: float = MARGIN) -> np.ndarray:
    """Return the winners of each game: the controllers whose score is within the margin of the best one's.

    Args:
        scores: Scores, `(controllers, games)`.

    Returns:
        bool, of the same shape; a game in which all scores are 0 has no winner.
    """
    return (scores >= (1 - margin) * scores.max(axis=0)) & (scores > 0)


def decide_friendly_games(mbps: np.ndarray, fair: np.ndarray, margin: float = MARGIN) -> np.ndarray:
    """Return the winners of each game: controllers whose rounded throughput is about as near to the fair share as the best."""
    rounded = np.round(mbps)
    least = np.abs(fair - rounded).min(axis=0)
    return ((fair - least) * (1 - margin) <= rounded) & (rounded <= (fair + least) * (1 + margin))


def find_solo_winners(results: Results, cells: Sequence[FieldCell], windows: int, margin: float = MARGIN) -> GameWins:
    """Return the winners of the games in worlds of a flow alone, with this number of windows per world."""
    names, played = _find_complete(results, cells)
    if not names:
        return names, played, np.zeros((0, 0), bool)
    mbps, delay = (_collect_values(results, names, key, played, windows) for key in ("mbps", "delay_ms"))
    return names, played, decide_solo_games(compute_power(np.nan_to_num(mbps), delay), margin)


def find_pairwise_winners(results: Results, cells: Sequence[FieldCell], windows: int, margin: float = MARGIN) -> GameWins:
    """Return the winners of the games in worlds beside another flow, whose link rates are `about["rate"]`."""
    names, played = _find_complete(results, cells)
    if not names:
        return names, played, np.zeros((0, 0), bool)
    fair = np.repeat([cell.about["rate"] / 2 for cell in played], windows)
    return (
        names,
        played,
        decide_friendly_games(np.nan_to_num(_collect_values(results, names, "mbps", played, windows)), fair, margin),
    )


def compute_winning_rates(won: GameWins) -> dict[str, float]:
    """Return winning rates, %, by controller."""
    return {name: float(100 * row.mean()) for name, row in zip(won[0], won[2], strict=True)}


def _find_complete(results: Results, cells: Sequence[FieldCell]) -> tuple[list[str], list[FieldCell]]:
    """Return the worlds that any controller has run in, and the controllers that have run in all of these."""
    there = {name: np.isfinite(results.get_values(name, "mbps_0", cells)) for name in results.names}
    by_any = np.any(list(there.values()), axis=0) if there else np.zeros(len(cells), bool)
    if not by_any.any():
        return [], []
    return [name for name, own in there.items() if own[by_any].all()], [cells[int(k)] for k in np.flatnonzero(by_any)]


def _collect_values(results: Results, names: Sequence[str], key: str, cells: Sequence[FieldCell], windows: int) -> np.ndarray:
    """Return one metric of each controller in each game, world by world: `(controllers, windows * worlds)`."""
    own = [[results.get_values(name, f"{key}_{k}", cells) for k in range(windows)] for name in names]
    return np.array([np.stack(one, axis=1).ravel() for one in own])
