"""Kept results of the package's controllers: what there is, whether it is current, how it is made again, and pages of it."""
