"""Reproductions of papers' experiments and experiments of our own; run from a checkout, not part of the wheel."""
