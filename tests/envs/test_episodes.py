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


def test_rows_start_with_what_arrays_held():
    matrix, flags, numbers = np.zeros((2, 2, 3), np.float32), np.ones(3, bool), np.array([7, 8, 9])
    matrix[1] = 5
    starts = _core.RowStarts([matrix, flags, numbers])
    matrix[:], flags[:], numbers[:] = 1, False, 0
    starts.restore(1, 3)
    assert matrix[0].tolist() == [[1, 0, 0]] * 2 and matrix[1].tolist() == [[1, 5, 5]] * 2
    assert flags.tolist() == [False, True, True] and numbers.tolist() == [0, 7, 7]


def test_rows_are_given_values_one_for_all_or_one_for_each():
    single, double, whole = np.zeros(3, np.float32), np.zeros(3), np.zeros(3, np.int64)
    _core.RowValues([single, double, whole]).write(1, 3, [0.1, [1.5, 2.5], (3, 4)])
    assert single.tolist() == [0, np.float32(0.1), np.float32(0.1)] and double.tolist() == [0, 1.5, 2.5]
    assert whole.tolist() == [0, 3, 4]


@pytest.mark.parametrize(
    ("mistake", "valid"),
    [
        (lambda: _core.RowStarts([np.zeros(3), np.zeros((2, 4))]), "the same number"),
        (lambda: _core.RowStarts([np.zeros(3)]).restore(1, 4), "within 0..3"),
        (lambda: _core.RowStarts([np.zeros(3, np.complex128)]), "8 bytes at most"),
        (lambda: _core.RowValues([np.zeros(3), np.zeros(4)]), "the same number of rows"),
        (lambda: _core.RowValues([np.zeros(3)]).write(2, 1, [0.0]), "within 0..3"),
        (lambda: _core.RowValues([np.zeros(3)]).write(0, 1, [0.0, 1.0]), "as many as there are arrays"),
        (lambda: _core.RowValues([np.zeros(3)]).write(0, 2, [[1.0]]), "one for each"),
    ],
)
def test_mistakes_in_rows_are_named(mistake, valid):
    with pytest.raises(ValueError, match=valid):
        mistake()


def test_copies_are_not_written_to_instead_of_arrays():
    with pytest.raises(TypeError):
        _core.RowStarts([np.zeros((3, 4))[:, ::2]])
    with pytest.raises(TypeError):
        _core.RowValues([np.zeros(8)[::2]])
