"""Reinforcement-learning environments for network buffers and congestion windows, on a fast packet-level simulator.

>>> import netbuf_gym as nb
>>> world = nb.scenarios.dumbbell(rate_mbps=10, rtt_ms=48, buffer_packets=150, senders=["cubic", "bbr"])
>>> result = nb.simulate(world, seed=1)
>>> result.flows[0].goodput_mbps, result.links["bottleneck"].queue_delay_mean_ms
"""

from netbuf_gym import errors, scenarios, traces
from netbuf_gym.version import __version__

__all__ = ["__version__", "errors", "scenarios", "traces"]
