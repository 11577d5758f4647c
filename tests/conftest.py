"""Fixtures that several test modules use."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with reference measurements and recorded traces, beside the checkout."""
    if not (SHARED / "reference").is_dir():
        pytest.skip("../shared is not here")
    return SHARED
