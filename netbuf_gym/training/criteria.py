"""Criteria by which models, seeds and settings are chosen; needs none of the learner's libraries."""

from __future__ import annotations

from dataclasses import dataclass

from omegaconf import DictConfig

from netbuf_gym import tasks
from netbuf_gym.tasks.metrics import Measures, Score
from netbuf_gym.training.constraints import Constraint, read_constraints


@dataclass(frozen=True)
class Criterion:
    """Criterion by which models, seeds and settings are chosen.

    Attributes:
        score: Score of the task.
        worst_weight: Weight of the worst family, as for `compute_score`.
        constraints: Constraints, whose violations cost score.
    """

    score: Score
    worst_weight: float = 0.0
    constraints: tuple[Constraint, ...] = ()

    def is_usual(self, measures: Measures) -> bool:
        """Return whether it is the score that ranks the task's controllers, without constraints."""
        return self.score == measures.get_score() and not self.constraints


def resolve_criterion(config: DictConfig) -> Criterion:
    """Return the criterion of a job's configuration.

    Raises:
        ConfigError: A score that the task does not have, or constraints as in `read_constraints`.
    """
    score = tasks.get(config.env.name).measures.get_score(config.validation.score, "validation.score")
    return Criterion(score, float(config.validation.worst_weight), read_constraints(config))
