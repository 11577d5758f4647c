"""The ends of decisions in the core: the same as in numpy, and what it refuses."""

import numpy as np
import pytest

from netbuf_gym import _core

FOREVER = (1 << 63) - 1


def make(worlds, rows):
    time_ns, end_ns, steps = np.zeros((3, worlds), np.int64)
    over = np.zeros((3, worlds), bool)
    rewards = np.ones(rows, np.float32)
    return time_ns, end_ns, steps, rewards, over, _core.Episodes(time_ns, end_ns, steps, rewards, over)


def test_worlds_end_when_their_time_is_up_or_they_have_terminated():
    time_ns, end_ns, steps, _, over, episodes = make(3, 3)
    end_ns[:] = [100, 101, FOREVER]
    over[0, 2] = True  # terminated, by its task
    episodes.pass_time(np.array([100, 100, 5]))
    episodes.end_decision(np.zeros((1, 3), np.float32), FOREVER)
    assert time_ns.tolist() == [100, 100, 5] and steps.tolist() == [1, 1, 1]
    assert over.tolist() == [[False, False, True], [True, False, False], [True, False, True]]


def test_worlds_end_at_the_limit_of_decisions():
    _, end_ns, steps, _, over, episodes = make(2, 2)
    end_ns[:], steps[:] = FOREVER, [3, 4]
    episodes.end_decision(np.zeros((1, 2), np.float32), 5)
    assert over[1].tolist() == over[2].tolist() == [False, True]


@pytest.mark.parametrize(("terms", "worlds", "agents"), [(1, 1, 1), (3, 1, 1), (7, 1, 1), (3, 5, 2), (12, 4, 1)])
def test_rewards_are_the_sums_of_their_terms(terms, worlds, agents):
    rows = worlds * agents
    *_, rewards, _, episodes = make(worlds, rows)
    values = (np.random.default_rng(terms).normal(size=(terms, rows)) * 1e3).astype(np.float32)
    episodes.end_decision(values, FOREVER)
    assert np.array_equal(rewards, np.add.reduce(values, axis=0))


def test_a_sum_of_many_terms_is_the_same_for_one_agent_as_beside_others():
    values = np.random.default_rng(1).normal(size=(20, 2)).astype(np.float32)
    *_, alone, _, one = make(1, 1)
    *_, beside, _, two = make(2, 2)
    one.end_decision(np.ascontiguousarray(values[:, :1]), FOREVER)
    two.end_decision(values, FOREVER)
    assert alone[0] == beside[0]


def test_other_shapes_are_refused():
    *_, episodes = make(2, 2)
    with pytest.raises(ValueError, match=r"elapsed_ns must have shape \(worlds,\)"):
        episodes.pass_time(np.ones(3, np.int64))
    with pytest.raises(ValueError, match=r"terms must have shape \(terms, rows\)"):
        episodes.end_decision(np.ones((1, 3), np.float32), 1)
    with pytest.raises(ValueError, match=r"over \(3, worlds\)"):
        _core.Episodes(*np.zeros((3, 2), np.int64), np.zeros(2, np.float32), np.zeros((2, 2), bool))


def test_whether_all_are_positive():
    assert _core.all_positive(np.array([1, 2])) and _core.all_positive(np.zeros(0, np.int64))
    assert not _core.all_positive(np.array([1, 0])) and not _core.all_positive(np.array([-1, 3]))
