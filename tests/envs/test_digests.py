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


def test_what_is_compared(monkeypatch):
    same = {"processor": digests.processor(), "numpy": digests.np.__version__, "sums": digests.sums()}
    switch, sender = "netbuf/QueueThreshold-v0 limits", "netbuf/CongestionWindow-v0 ns3"
    assert digests.comparable(same, switch) == digests.comparable(same, sender) == ("core", "numpy")
    older = {**same, "numpy": "1.0"}
    assert digests.comparable(older, switch) == digests.comparable(older, sender) == ("core",)
    monkeypatch.setattr(digests, "sums", lambda: "0x0p+0")
    assert digests.comparable(older, switch) == () and digests.comparable(older, sender) == ("core",)
