"""Saved models: their archives, the state that a run resumes from, and saved agents as controllers."""
