"""Suites: fixed sets of worlds, of a version, that any controller of a task is judged on by one command.

>>> from netbuf_gym.evaluation import suites
>>> edition = suites.SUITES["gate"].load()
>>> edition.version, len(edition.cells)
(1, 200)
"""

from netbuf_gym.evaluation.suites.catalogue import SUITES, suite
from netbuf_gym.evaluation.suites.suite import Cell, Edition, Metric, Suite

__all__ = ["SUITES", "Cell", "Edition", "Metric", "Suite", "suite"]
