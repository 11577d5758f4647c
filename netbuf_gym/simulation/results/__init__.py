"""Results of a simulation: statistics of flows, links, switches, traffic and video, with their time series."""

from netbuf_gym.simulation.results.flows import FlowResult, LinkResult
from netbuf_gym.simulation.results.result import Result

__all__ = ["FlowResult", "LinkResult", "Result"]
