"""Training, evaluation and tuning of agents. Needs `pip install netbuf-gym[train]`."""

import os

# The learner's idle OpenMP threads would spin for a millisecond on the cores that the simulator's threads are to use. Read when
# torch is loaded; a value that the user has set stays.
os.environ.setdefault("GOMP_SPINCOUNT", "2000")
