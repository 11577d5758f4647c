"""Tests whose figures depend on the clock, on a machine that may be busy with something else."""

from contextlib import suppress
from functools import wraps

import pytest


def undisturbed(test):
    """A test that has the machine for itself among the tests, and is tried up to three times, for others may have had the cores
    meanwhile; a wrong figure stays wrong."""

    @pytest.mark.alone
    @wraps(test)
    def tried(*args, **kwargs):
        for _ in range(2):
            with suppress(AssertionError):
                return test(*args, **kwargs)
        return test(*args, **kwargs)

    return tried
