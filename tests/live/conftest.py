"""Fixtures of the live tests: they change nothing outside of network namespaces of their own."""

import pytest
from namespaces import Namespace, why_not


@pytest.fixture
def namespace():
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Namespace() as one:
        yield one
