"""Training, evaluation and tuning of agents. Needs `pip install netbuf-gym[train]`."""

import os

# By default the learner's idle OpenMP threads spin for a millisecond on the cores that the simulator's threads need. Read when
# torch is loaded; a value set by the user stays.
os.environ.setdefault("GOMP_SPINCOUNT", "2000")
