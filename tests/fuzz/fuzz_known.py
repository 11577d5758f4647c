"""Findings that are known and being mended: patterns of their text. Empty, when all is well."""

KNOWN: tuple[str, ...] = (
    r"Config group override must be a string",  # train env=1
    r"multiply sequence by non-int",  # train algo.kwargs.target_kl=abc
)
