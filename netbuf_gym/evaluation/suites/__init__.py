"""Suites: fixed, versioned sets of worlds, on which one command evaluates any controller of a task.

>>> from netbuf_gym.evaluation import suites
>>> edition = suites.SUITES["gate"].load()
>>> edition.version, len(edition.cells)
(1, 200)
"""

from netbuf_gym.evaluation.suites.catalogue import SUITES, get_suite
from netbuf_gym.evaluation.suites.suite import Cell, Edition, Metric, Suite

__all__ = ["SUITES", "Cell", "Edition", "Metric", "Suite", "get_suite"]
