"""Saved models: their archives, what else a run needs to go on, and saved agents ready to play."""
