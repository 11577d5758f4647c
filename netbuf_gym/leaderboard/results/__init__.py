"""Kept results of the package's controllers: their entries, replays that tell whether they are current, and remaking."""
