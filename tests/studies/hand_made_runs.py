"""Results of campaigns, made by hand."""

import math

import numpy as np

from studies.common.results import Runs


def make_runs(experiment, rows: list[dict]) -> Runs:
    """Results of which only some columns matter."""
    columns = {name: np.array([row.get(name, math.nan) for row in rows]) for name in experiment.columns}
    return Runs("made by hand", columns, experiment.keys, tuple(experiment.measures))
