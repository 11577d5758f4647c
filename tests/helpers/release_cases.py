"""Cases of parametrised tests that only `make release-check` runs."""

import pytest


def for_release(*cases):
    """Parameters marked so: `@pytest.mark.parametrize("seed", [0, *for_release(1, 2, 3)])`; a tuple is several of a case."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.release) for case in cases]


def sample(cases, count):
    """All cases, of which `count` that are spread evenly over their order run in CI, too."""
    cases = list(cases)
    chosen = {round(at * (len(cases) - 1) / max(count - 1, 1)) for at in range(count)}
    return [case if at in chosen else for_release(case)[0] for at, case in enumerate(cases)]
