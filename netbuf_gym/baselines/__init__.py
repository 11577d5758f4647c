"""Controllers without learning, to compare agents with: rules, and what the simulator has in the agents' place.

>>> from netbuf_gym import baselines
>>> reports = baselines.CongestionControl("cubic").evaluate("ppcc/2", seeds=range(5))
>>> reports = baselines.QueueTarget().evaluate("ppcc/2", seeds=range(5))

>>> reports = baselines.BufferScheme("abm").evaluate("rlbm/default", seeds=range(5))
>>> reports = baselines.RandomThresholds().evaluate("rlbm/default", seeds=range(5))

All give the reports that agents get (`netbuf_gym.tasks.congestion_window.episode_report` of senders,
`netbuf_gym.tasks.queue_threshold.switch_report` of switches), over the same worlds for the same seeds.
"""

from netbuf_gym.arguments import choice
from netbuf_gym.baselines.congestion_controls import CongestionControl
from netbuf_gym.baselines.controller import Controller
from netbuf_gym.baselines.rules import FixedAction, QueueTarget, RandomAction
from netbuf_gym.baselines.schemes import NAMES, BufferScheme, draw_worlds
from netbuf_gym.baselines.thresholds import FixedThresholds, RandomThresholds

CONTROLLERS = {
    "congestion_window": {
        **{name: (CongestionControl, (name,)) for name in ("newreno", "cubic", "bbr", "vegas", "westwood")},
        "keep": (FixedAction, ()),
        "random": (RandomAction, ()),
        "queue_target": (QueueTarget, ()),
    },
    "queue_threshold": {
        **{name: (BufferScheme, (name,)) for name in NAMES},
        "random": (RandomThresholds, ()),
    },
}
"""Every controller by task and name: its class and positional arguments."""


def make(name: str, task: str = "congestion_window") -> Controller | CongestionControl | BufferScheme:
    """The controller of a name in `CONTROLLERS[task]`; raises `ConfigError` for another."""
    controllers = CONTROLLERS[choice("task", task, CONTROLLERS)]
    kind, arguments = controllers[choice("controller", name, controllers)]
    return kind(*arguments)


__all__ = [
    "CONTROLLERS",
    "BufferScheme",
    "CongestionControl",
    "Controller",
    "FixedAction",
    "FixedThresholds",
    "QueueTarget",
    "RandomAction",
    "RandomThresholds",
    "draw_worlds",
    "make",
]
