"""Fixtures of tests of rewards."""

import pytest

from netbuf_gym import tasks


@pytest.fixture
def rewards():
    """Those of the congestion-window task, which are as before afterwards."""
    own = tasks.get("congestion_window").rewards
    before = dict(own)
    yield own
    own.clear()
    own.update(before)
