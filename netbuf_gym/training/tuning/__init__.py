"""Search for the settings of a learner, by Optuna."""
