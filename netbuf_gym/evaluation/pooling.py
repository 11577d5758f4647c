"""Scores over many worlds: percentiles over the flows of all of them together, means over worlds of everything else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netbuf_gym.evaluation.rollout import View
from netbuf_gym.tasks.metrics import FlowPercentile, Score
from netbuf_gym.utils.statistics import compute_percentiles


@dataclass(frozen=True)
class WorldScore:
    """What one world gives to a score.

    Attributes:
        value: The metric, mean over the world's agents; NaN: none.
        flows: Values of the completed flows that the metric is a percentile of; None for other metrics.
    """

    value: float
    flows: np.ndarray | None = None


def measure_world(view: View, metric: str, percentile: FlowPercentile | None = None) -> WorldScore:
    """Return what a world that has ended gives to a score.

    Raises:
        PlantFault: The world has failed.
    """
    reports = view.whole_report()
    value = float(np.mean([float(report.get(metric, math.nan)) for report in reports]))
    if percentile is None:
        return WorldScore(value)
    flows = view.read_completions()
    if percentile.priority is not None:
        flows = flows[flows["priority"] == percentile.priority]
    return WorldScore(value, flows[percentile.of].copy())


def pool_scores(worlds: Sequence[WorldScore], score: Score, percentile: FlowPercentile | None = None) -> float:
    """Return a score over worlds: a percentile over all their flows, or the mean, geometric where the score says so.

    NaN if a world has no value of a mean, or no flow has completed of a percentile.
    """
    if percentile is not None:
        flows = [one.flows for one in worlds if one.flows is not None]
        return compute_percentiles(np.concatenate(flows) if flows else np.zeros(0), (percentile.share,))[0]
    values = np.array([one.value for one in worlds])
    if not len(values):
        return math.nan
    return float(np.exp(np.log(values).mean()) if score.geometric else values.mean())
