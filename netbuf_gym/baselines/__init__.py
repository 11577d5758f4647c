"""Controllers without learning, to compare agents with: rules, and the congestion controls of the simulator.

>>> from netbuf_gym import baselines
>>> reports = baselines.CongestionControl("cubic").evaluate("ppcc/2", seeds=range(5))
>>> reports = baselines.QueueTarget().evaluate("ppcc/2", seeds=range(5))

Both give the reports of `netbuf_gym.plants.sim.episode_report`, over the same worlds for the same seeds.
"""

from netbuf_gym.baselines.congestion_controls import CongestionControl
from netbuf_gym.baselines.controller import Controller
from netbuf_gym.baselines.rules import FixedAction, QueueTarget, RandomAction

CONTROLLERS = {
    **{name: (CongestionControl, (name,)) for name in ("newreno", "cubic", "bbr", "vegas", "westwood")},
    "keep": (FixedAction, ()),
    "random": (RandomAction, ()),
    "queue_target": (QueueTarget, ()),
}
"""Every controller by name: its class and positional arguments."""


def make(name: str) -> Controller | CongestionControl:
    """The controller of a name in `CONTROLLERS`; raises `ConfigError` for another."""
    from netbuf_gym.arguments import choice

    kind, arguments = CONTROLLERS[choice("controller", name, CONTROLLERS)]
    return kind(*arguments)


__all__ = ["CONTROLLERS", "CongestionControl", "Controller", "FixedAction", "QueueTarget", "RandomAction", "make"]
