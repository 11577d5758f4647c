"""Nothing changes a bit of what the environments and the simulator give but on purpose (see tests/digests.py)."""

import json

import digests
import pytest

RECORDED = json.loads(digests.RECORDED.read_text())


def test_every_case_is_recorded():
    assert digests.cases().keys() == RECORDED["cases"].keys()


@pytest.mark.parametrize("name", digests.cases())
def test_digest(name):
    then, now = RECORDED["cases"][name], digests.cases()[name]()
    same_numpy = (RECORDED["processor"], RECORDED["numpy"]) == (digests.processor(), digests.np.__version__)
    for key in then.keys() if same_numpy else {"core"}:
        assert now[key] == then[key], key
