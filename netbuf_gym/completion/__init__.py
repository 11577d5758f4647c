"""Completion for shells: a table of all that may be typed, what answers from it, and the scripts that ask."""
