import numpy as np
import pytest

from netbuf_gym.tasks.history import History


@pytest.mark.parametrize("depth", [1, 2, 4, 7])
def test_reads_the_last_vectors_oldest_first(depth):
    rng = np.random.default_rng(0)
    history = History(5, depth, 3)
    first = rng.random((3, 5), np.float32)
    history.fill(slice(0, 5), first)
    seen = [first] * depth
    out = np.empty((5, depth * 3), np.float32)
    np.testing.assert_array_equal(history.read(out), np.concatenate(seen, axis=0).T)
    for step in range(60):
        features = rng.random((3, 5), np.float32)
        history.push(features)
        seen = [*seen, features][-depth:]
        if step % 13 == 5:  # row 2 starts afresh
            fresh = rng.random((3, 1), np.float32)
            history.fill(slice(2, 3), fresh)
            seen = [vector.copy() for vector in seen]
            for vector in seen:
                vector[:, 2] = fresh[:, 0]
        expected = np.concatenate(seen, axis=0).T
        np.testing.assert_array_equal(history.read(out), expected)
        np.testing.assert_array_equal(history.read_rows(np.array([1, 2])), expected[[1, 2]])


def test_what_was_read_is_a_copy():
    history = History(2, 2, 1)
    out = history.read_rows(slice(None))
    history.push(np.ones((1, 2), np.float32))
    assert (out == 0).all()
