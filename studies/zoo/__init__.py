"""Making of the trained agents: studies of settings, trainings, comparison with the defaults."""
