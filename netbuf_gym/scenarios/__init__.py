"""Scenarios: typed descriptions of worlds, named ones, and distributions over them.

>>> world = netbuf_gym.scenarios.dumbbell(rate_mbps=10, rtt_ms=48, buffer_packets=150, senders=["cubic", "bbr"])
>>> world = netbuf_gym.scenarios.get("ppcc/2", n=4)
"""

from netbuf_gym.scenarios.distributions import Distribution, Mixture, RandomDumbbell, flows_of
from netbuf_gym.scenarios.named import describe, get, names, parameters_of, register
from netbuf_gym.scenarios.topologies import dumbbell, last_hop
from netbuf_gym.scenarios.types import (
    AGENT,
    Application,
    Bulk,
    Flow,
    GilbertElliott,
    Link,
    OnOff,
    Scenario,
    Sized,
    congestion_controls,
)
from netbuf_gym.traces.types import DeliveryTrace, RateTrace

__all__ = [
    "AGENT",
    "Application",
    "Bulk",
    "DeliveryTrace",
    "Distribution",
    "Flow",
    "GilbertElliott",
    "Link",
    "Mixture",
    "OnOff",
    "RandomDumbbell",
    "RateTrace",
    "Scenario",
    "Sized",
    "congestion_controls",
    "describe",
    "dumbbell",
    "flows_of",
    "get",
    "last_hop",
    "names",
    "parameters_of",
    "register",
]
