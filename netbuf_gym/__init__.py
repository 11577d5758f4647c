"""Reinforcement-learning environments for network buffers and congestion windows, on a fast packet-level simulator.

>>> import netbuf_gym as nb
>>> world = nb.scenarios.dumbbell(rate_mbps=10, rtt_ms=48, buffer_packets=150, senders=["cubic", "bbr"])
>>> result = nb.simulate(world, seed=1)
>>> result.flows[0].goodput_mbps, result.links["bottleneck"].queue_delay_mean_ms
"""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False  # not from `typing`, which takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any

    import netbuf_gym.zoo as zoo
    from netbuf_gym import controllers, errors, plants, rewards, scenarios, tasks, traces, wrappers
    from netbuf_gym.evaluation import baselines, rollout
    from netbuf_gym.simulation import simulate
    from netbuf_gym.simulation.results import FlowResult, LinkResult, Result
    from netbuf_gym.utils import statistics as stats
    from netbuf_gym.version import __version__

LATE = {
    "FlowResult": "simulation.results:FlowResult",
    "LinkResult": "simulation.results:LinkResult",
    "Result": "simulation.results:Result",
    "__version__": "version:__version__",
    "baselines": "evaluation.baselines",
    "rollout": "evaluation.rollout",
    "simulate": "simulation:simulate",
    "stats": "utils.statistics",
    **{name: name for name in ("controllers", "envs", "errors", "evaluation", "plants", "rewards", "scenarios", "simulation")},
    **{name: name for name in ("tasks", "traces", "utils", "wrappers", "zoo")},
}
"""Modules and their members, imported on first use, by the names under which the package offers them."""

_word = next(iter(sys.argv), "")
STARTED_AS_PROGRAM = (__name__ if _word == "-m" else _word if _word.endswith("/netbuf-gym") else None) in sys.orig_argv
"""Whether this process is the command `netbuf-gym`, which prepares the package itself once an interruption is looked after."""


def __getattr__(name: str) -> Any:
    """Import a name of `LATE`, or a module of a former name, on first access."""
    if name in LATE:
        module, _, member = LATE[name].partition(":")
        found = importlib.import_module(f"netbuf_gym.{module}")
        globals()[name] = getattr(found, member) if member else found
        return globals()[name]
    from netbuf_gym.utils import moved

    if (present := moved.find_present_name(f"netbuf_gym.{name}")) is not None:
        moved.warn(f"netbuf_gym.{name}", present)
        try:
            return moved.import_present(present)
        except ImportError as error:
            raise AttributeError(str(error)) from None
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the package's names, with those of `LATE`, loaded or not."""
    return sorted({*globals(), *__all__, *LATE})


if not STARTED_AS_PROGRAM:
    from netbuf_gym.utils import extensions, startup

    startup.prepare()
    extensions.load()  # last: extensions import the complete package

__all__ = [
    "FlowResult",
    "LinkResult",
    "Result",
    "__version__",
    "baselines",
    "controllers",
    "errors",
    "plants",
    "rewards",
    "rollout",
    "scenarios",
    "simulate",
    "stats",
    "tasks",
    "traces",
    "wrappers",
    "zoo",
]
