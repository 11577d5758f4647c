"""Simulation without an agent: statistics and time series from a scenario and a seed."""

from netbuf_gym.simulation.runner import simulate

__all__ = ["simulate"]
