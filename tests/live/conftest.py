"""Fixtures of the live tests: they change nothing outside of network namespaces of their own."""

import machines
import pytest
from namespaces import Namespace


@pytest.fixture
def namespace():
    machines.needs_live_worlds()
    machines.needs_program("unshare", "nsenter")
    with Namespace() as one:
        yield one
