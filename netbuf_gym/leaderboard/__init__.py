"""Leaderboard of controllers on suites: kept results, submissions, the gate of the package's agents, standings and pages."""
