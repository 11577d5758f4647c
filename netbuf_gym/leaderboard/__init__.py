"""Standings of controllers on suites: kept results, hand-ins, the gate of the package's agents, and pages."""
