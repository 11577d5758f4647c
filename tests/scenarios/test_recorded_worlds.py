"""Named scenarios are what they were (see tests/scenarios/recorded_worlds.py)."""

import json

import pytest

from tests.scenarios import recorded_worlds

THEN = json.loads(recorded_worlds.RECORDED.read_text())


@pytest.fixture(scope="module")
def now():
    return recorded_worlds.made()


@pytest.mark.parametrize("label", THEN)
def test_world(now, label):
    assert not recorded_worlds.differing(now.get(label), THEN[label]), (now.get(label), THEN[label])


def test_differences_are_seen():
    then = {"a": {"b": [1, 2]}, "c": 1}
    assert not recorded_worlds.differing({"a": {"b": [1, 2], "new": 0}, "c": 1, "d": 2}, then)
    for now in ({"a": {"b": [1, 3]}, "c": 1}, {"a": {"b": [1, 2]}}, {"a": None, "c": 1}, None):
        assert recorded_worlds.differing(now, then)
