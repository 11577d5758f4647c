"""What is kept for an object is that object's alone."""

import numpy as np

from netbuf_gym import scenarios
from netbuf_gym.utils import identity_cache
from netbuf_gym.utils.identity_cache import IdentityCache


def test_results_are_kept_by_object_and_arguments():
    calls = []

    def function(key, *others):
        calls.append((key, *others))
        return [key, *others]

    kept = IdentityCache(function)
    one, equal = (1, [2]), (1, [2])
    assert kept(one) is kept(one) and kept(one) is not kept(equal)
    assert kept(one, 3) is kept(one, 3) is not kept(one, 4)
    assert calls == [(one,), (equal,), (one, 3), (one, 4)]


def test_no_other_object_gets_the_result_of_one_that_had_its_id(monkeypatch):
    monkeypatch.setattr(identity_cache, "SIZE", 3)
    kept = IdentityCache(list)
    for number in range(200):  # each dies after its call, and its id is taken anew
        assert kept((number, number + 1)) == [number, number + 1]


def test_long_tuples_are_not_kept():
    kept = IdentityCache(list)
    long, short = (0,) * (identity_cache.LONGEST + 1), (0,) * identity_cache.LONGEST
    assert kept(long) is not kept(long) and kept(short) is kept(short)


def test_worlds_of_one_distribution_share_their_flows():
    world, rng = scenarios.get("ppcc/random"), np.random.default_rng(1)
    first, second = (world.sample(rng).with_agents(1) for _ in range(2))
    assert first.flows is second.flows and first.flows[0].cc == scenarios.AGENT
    assert first.links != second.links
    assert world.sample(rng).flows[0].cc == "cubic"
