"""Reinforcement-learning environments for network buffers and congestion windows, on a fast packet-level simulator.

>>> import netbuf_gym as nb
>>> world = nb.scenarios.dumbbell(rate_mbps=10, rtt_ms=48, buffer_packets=150, senders=["cubic", "bbr"])
>>> result = nb.simulate(world, seed=1)
>>> result.flows[0].goodput_mbps, result.links["bottleneck"].queue_delay_mean_ms
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from netbuf_gym import baselines, contenders, errors, plants, rewards, rollout, scenarios, tasks, traces, wrappers
from netbuf_gym.registration import register_environments
from netbuf_gym.results import FlowResult, LinkResult, Result
from netbuf_gym.simulation import simulate
from netbuf_gym.version import __version__

if TYPE_CHECKING:
    import netbuf_gym.zoo as zoo

register_environments()


def __getattr__(name: str) -> Any:
    """`netbuf_gym.zoo`, loaded when it is first asked for."""
    if name == "zoo":
        return importlib.import_module("netbuf_gym.zoo")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """`zoo` too, loaded or not."""
    return sorted({*globals(), *__all__})


__all__ = [
    "FlowResult",
    "LinkResult",
    "Result",
    "__version__",
    "baselines",
    "contenders",
    "errors",
    "plants",
    "rewards",
    "rollout",
    "scenarios",
    "simulate",
    "tasks",
    "traces",
    "wrappers",
    "zoo",
]
