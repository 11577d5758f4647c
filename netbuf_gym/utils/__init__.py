"""Helpers independent of networks and learning: files, argument checks, tables, plots, statistics, executors."""
