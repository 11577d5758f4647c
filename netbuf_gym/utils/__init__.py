"""Helpers that know nothing of networks or learning: files, checks of arguments, tables, plots, statistics, executors."""
