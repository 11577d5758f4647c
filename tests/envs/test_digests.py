"""Nothing changes a bit of what the environments and the simulator give but on purpose (see tests/envs/digests.py)."""

import json

import pytest

from tests.envs import digests

RECORDED = json.loads(digests.RECORDED.read_text())


def test_every_case_is_recorded():
    assert digests.cases().keys() == RECORDED["cases"].keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", digests.cases())
def test_digest(name):
    keys = digests.comparable(RECORDED, name)
    if not keys:
        pytest.skip("needs numpy's sums as recorded")
    then, now = RECORDED["cases"][name], digests.cases()[name]()
    for key in then.keys() & set(keys):
        assert now[key] == then[key], key
