"""Fixtures that several test modules use."""

import os
from pathlib import Path

import pytest
from hypothesis import settings
from processors import pin

pin()
settings.register_profile("by result", deadline=None)  # how long an example takes says how busy the machine is
settings.load_profile("by result")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session", autouse=True)
def logs_of_learners(tmp_path_factory) -> None:
    """stable-baselines3 makes a folder for each learner that learns without a logger: one that pytest removes."""
    os.environ.setdefault("SB3_LOGDIR", str(tmp_path_factory.mktemp("sb3")))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with reference measurements and recorded traces, beside the checkout."""
    if not (SHARED / "reference").is_dir():
        pytest.skip("../shared is not here")
    return SHARED
