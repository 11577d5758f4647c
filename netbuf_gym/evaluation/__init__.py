"""Evaluation of controllers: rollouts, baselines, statistics over worlds, and suites of fixed worlds."""
