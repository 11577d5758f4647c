"""Reinforcement-learning environments for network buffers and congestion windows, on a fast packet-level simulator.

>>> import netbuf_gym as nb
>>> world = nb.scenarios.dumbbell(rate_mbps=10, rtt_ms=48, buffer_packets=150, senders=["cubic", "bbr"])
>>> result = nb.simulate(world, seed=1)
>>> result.flows[0].goodput_mbps, result.links["bottleneck"].queue_delay_mean_ms
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from netbuf_gym import baselines, contenders, errors, extensions, plants, rewards, rollout, scenarios, tasks, traces, wrappers
from netbuf_gym.registration import register_environments
from netbuf_gym.results import FlowResult, LinkResult, Result
from netbuf_gym.simulation import simulate
from netbuf_gym.version import __version__

if TYPE_CHECKING:
    import netbuf_gym.zoo as zoo
    from netbuf_gym import multiagent as multiagent
    from netbuf_gym import stats as stats
    from netbuf_gym import vector as vector

LATE = ("multiagent", "stats", "vector", "zoo")
"""Modules that need an extra, or take long to load."""

register_environments()


def __getattr__(name: str) -> Any:
    """The modules of `LATE`, loaded when they are first asked for."""
    if name in LATE:
        return importlib.import_module(f"netbuf_gym.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The modules of `LATE` too, loaded or not."""
    return sorted({*globals(), *__all__, *LATE})


extensions.load()  # last: they import this package, whole

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
