"""The simulator without an agent: a scenario and a seed in, statistics and time series out."""

from netbuf_gym.simulation.runner import simulate

__all__ = ["simulate"]
