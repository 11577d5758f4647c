"""Locations of the package's data: agents (`zoo`), configuration (`conf`), stored results (`results`)."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def find_data(name: str) -> Path:
    """Return the folder of a kind of data, in the installed package or at the top of the checkout.

    Args:
        name: `zoo`, `conf` or `results`.
    """
    installed = PACKAGE / "data" / name
    return installed if installed.is_dir() else PACKAGE.parent / name
