"""Wrappers for scalar and vector environments."""

from netbuf_gym.wrappers.duration import DurationLimit
from netbuf_gym.wrappers.normalize import NormalizeObservation, VectorNormalizeObservation
from netbuf_gym.wrappers.rewards import (
    AlphaFairReward,
    LogUtilityReward,
    VectorAlphaFairReward,
    VectorLogUtilityReward,
)

__all__ = [
    "AlphaFairReward",
    "DurationLimit",
    "LogUtilityReward",
    "NormalizeObservation",
    "VectorAlphaFairReward",
    "VectorLogUtilityReward",
    "VectorNormalizeObservation",
]
