"""Families of worlds, the best constant limits of each, and settings of rules: found by searches over training seeds."""

from __future__ import annotations

from typing import Any

FAMILIES: dict[str, dict[str, Any]] = {
    "random": {"name": "rlbm/random"},
    "high_load": {"name": "rlbm/random", "load": [0.8, 0.95]},
    "light_load": {"name": "rlbm/random", "load": [0.1, 0.3]},
    "strict_priority": {"name": "rlbm/random", "scheduler": "strict_priority"},
    "25_mbps": {"name": "rlbm/random", "rate_mbps": 25.0},
    "50_mbps": {"name": "rlbm/random", "rate_mbps": 50.0},
    "bbr": {"name": "rlbm/random", "cc": ["bbr"]},
    "incast": {"name": "rlbm/random", "incast_probability": 1.0},
    "data_mining": {"name": "rlbm/random", "sizes": "data_mining"},
}
"""Worlds of each family, except for the drop place."""

BEST_LIMITS_MS: dict[str, dict[str, tuple[float, float]]] = {
    "tail": {
        "random": (20.0, 200.0),
        "high_load": (20.0, 200.0),
        "light_load": (20.0, 20.0),
        "strict_priority": (20.0, 20.0),
        "25_mbps": (10.0, 200.0),
        "50_mbps": (1000.0, 200.0),
        "bbr": (1000.0, 10.0),
        "incast": (1000.0, 10.0),
        "data_mining": (200.0, 20.0),
    },
    "head": {
        "random": (20.0, 1000.0),
        "high_load": (10.0, 200.0),
        "light_load": (20.0, 200.0),
        "strict_priority": (20.0, 50.0),
        "25_mbps": (10.0, 20.0),
        "50_mbps": (5.0, 50.0),
        "bbr": (1000.0, 20.0),
        "incast": (1000.0, 10.0),
        "data_mining": (20.0, 100.0),
    },
}
"""Limits of both queues by drop place and family: of the 49 pairs from 5, 10, 20, 50, 100, 200 and 1000 ms those with the
least slowdown over 200 worlds (seeds 0 to 199), at 99 % of the naive buffer's goodput or more."""

RESTING: dict[str, Any] = {"tail_ms": 17, "head_ms": 10, "bursts": 1, "head_rest_ms": 20, "many": 4, "shut_flows": 1}
SPARING: dict[str, Any] = {"tail_ms": 18, "head_ms": 11.4, "shut_ms": 3, "bursts": 1, "bursts_from": 5, "shut_flows": 2}
"""Settings of `brief_pulse` from which the agents begin: `RESTING` every 100 ms, `SPARING` every 10 ms."""
SEARCHED: dict[str, Any] = {"tail_ms": 19.5, "head_ms": 11.4, "every_ms": 62.6, "packets": 1.92, "shut_ms": 4.3, "bursts": 1.01}
"""Settings of `brief_pulse` every 10 ms, found by successive halving over 81 settings drawn at random."""
