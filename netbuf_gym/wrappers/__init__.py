"""Wrappers for scalar and vector environments."""

from netbuf_gym.wrappers.duration import DurationLimit
from netbuf_gym.wrappers.normalize import NormalizeObservation, VectorNormalizeObservation
from netbuf_gym.wrappers.rewards import (
    AlphaFairReward,
    ExchangeReward,
    LogUtilityReward,
    NormalizedReward,
    VectorAlphaFairReward,
    VectorExchangeReward,
    VectorLogUtilityReward,
    VectorNormalizedReward,
    exchange_reward,
)

__all__ = [
    "AlphaFairReward",
    "DurationLimit",
    "ExchangeReward",
    "LogUtilityReward",
    "NormalizeObservation",
    "NormalizedReward",
    "VectorAlphaFairReward",
    "VectorExchangeReward",
    "VectorLogUtilityReward",
    "VectorNormalizeObservation",
    "VectorNormalizedReward",
    "exchange_reward",
]
