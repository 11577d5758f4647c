"""What losses do to a window of the recipe `default`, by its rules."""

import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.tasks.congestion_window import CongestionWindow
from netbuf_gym.tasks.congestion_window.path_tracker import (
    GROWTH_COUNTED,
    GROWTH_ROUNDS,
    HEAVY_LOSS,
    HEAVY_ROUNDS,
    LEAST_COUNTED,
)
from tests.tasks.hand_made import MSS, acknowledged, decided, free, telemetry

KEEP, DOUBLE = [0.0], [1.0]


def lossy(made, task, lost, rounds, factor, acked=100, window=80.0):
    """The windows of so many round trips of one interval each, in which so much is lost of the window of `window` segments."""
    windows = []
    for _ in range(rounds):
        made.update(acknowledged(acked, cwnd_bytes=window * MSS, packets_lost=lost))
        windows += decided(task, made, factor)
        window = windows[-1]
        made.cwnd[0] = window * MSS
    return windows


@pytest.mark.parametrize(("lost", "window"), [(10, 80), (11, 80), (13, 70.8), (100, 40)])
def test_what_is_lost_by_more_than_a_tenth_on_end_holds_the_window_to_what_arrived(lost, window):
    """100 segments acknowledged: 11 of 111 are less than a tenth, 13 of 113 are more."""
    task, made = free()
    windows = lossy(made, task, lost, HEAVY_ROUNDS, KEEP)
    assert windows == pytest.approx([80.0] * (HEAVY_ROUNDS - 1) + [window], abs=0.01)
    assert (lost / (100 + lost) > HEAVY_LOSS) == (window < 80)


def test_a_burst_of_losses_holds_nothing():
    """Two heavy round trips, one without losses, and again."""
    task, made = free()
    for _ in range(3):
        assert lossy(made, task, 100, HEAVY_ROUNDS - 1, KEEP) == pytest.approx([80.0] * (HEAVY_ROUNDS - 1))
        assert lossy(made, task, 0, 1, KEEP) == pytest.approx([80.0])


def test_it_is_held_for_a_round_trip_whose_losses_do_not_count():
    """Round trips of three intervals in which half is lost: the third of them holds the window for three intervals."""
    task, made = free()
    windows, before = [], 3 * HEAVY_ROUNDS
    for index in range(before + 3):
        made.update(acknowledged(100, 0.3, cwnd_bytes=made.cwnd[0] if windows else 80 * MSS, packets_lost=100))
        windows += decided(task, made, KEEP if index < before else DOUBLE)
        made.cwnd[0] = windows[-1] * MSS
    assert windows == pytest.approx([80] * (before - 1) + [40, 40, 40, 80], rel=1e-5)


def test_few_segments_tell_no_share():
    """One segment lost of four: two round trips have the least number that is counted."""
    task, made = free()
    few = LEAST_COUNTED // 2
    windows = lossy(made, task, 1, 2 * HEAVY_ROUNDS, KEEP, acked=few - 1)
    assert windows == pytest.approx([80] * (2 * HEAVY_ROUNDS - 1) + [80 * (1 - 1 / few)])


def test_a_time_out_ends_it():
    _, made = free()
    for _ in range(3 * HEAVY_ROUNDS):
        made.update(acknowledged(100, 0.3, cwnd_bytes=80 * MSS, packets_lost=100))
    assert made.held_s[0] > 0
    made.update(acknowledged(100, 0.3, cwnd_bytes=MSS, timeouts=1))
    assert made.held_s[0] == 0


@pytest.mark.parametrize(("share", "lost", "grows"), [(0.2, 24, True), (0.2, 26, False), (1.0, 400, True)])
def test_a_window_grows_slowly_while_much_is_lost(share, lost, grows):
    """100 segments acknowledged: 24 of 124 are less than a fifth, 26 of 126 are more. A round trip that loses less ends it."""
    task, made = free(clamp="none", growth_loss=share)
    assert lossy(made, task, lost, GROWTH_ROUNDS - 1, KEEP) == pytest.approx([80.0] * (GROWTH_ROUNDS - 1))
    window = 160 if grows else 80 + 100 / 80  # a segment for each window that is acknowledged
    assert lossy(made, task, lost, 1, DOUBLE) == pytest.approx([window])
    assert lossy(made, task, 0, 1, DOUBLE, window=window) == pytest.approx([min(2 * window, window + 100)])


def test_what_a_time_out_left_grows_slowly_while_much_is_lost():
    task, made = free(clamp="none", growth_loss=0.2)
    lossy(made, task, 100, GROWTH_ROUNDS, KEEP)
    made.update(acknowledged(2, cwnd_bytes=MSS, timeouts=1, packets_lost=2))
    assert decided(task, made, DOUBLE) == pytest.approx([3])  # two segments, the least window, and one for the two acknowledged
    for counted in range(6, GROWTH_COUNTED + 1, 2):  # 2 lost and 2 acknowledged so far
        made.update(acknowledged(2, cwnd_bytes=4 * MSS))
        assert decided(task, made, DOUBLE) == pytest.approx([4.5 if counted < GROWTH_COUNTED else 6]), counted


def test_an_outage_is_no_crowd():
    """Windows lost in silence, to time-out after time-out: what comes back grows as it likes."""
    task, made = free(clamp="none", growth_loss=0.2)
    made.update(acknowledged(100, cwnd_bytes=80 * MSS))
    for _ in range(3 * GROWTH_ROUNDS):
        made.update(telemetry(cwnd_bytes=MSS, timeouts=1, packets_lost=80))
    made.update(acknowledged(20, cwnd_bytes=20 * MSS))
    assert decided(task, made, DOUBLE) == pytest.approx([40])


def test_few_segments_of_many_round_trips_count_as_one():
    """One lost of 31 a round trip: three of them have as many segments as are counted, and are one of the two that it takes."""
    task, made = free(clamp="none", growth_loss=0.02)
    counted = GROWTH_ROUNDS * -(-GROWTH_COUNTED // 31)
    windows = [lossy(made, task, 1, 1, DOUBLE, acked=30)[0] for _ in range(counted)]
    assert windows == pytest.approx([110] * (counted - 1) + [80 + 30 / 80])


@pytest.mark.parametrize(
    ("recipe", "given", "said"),
    [
        ("default", 0, "growth_loss = 0"),
        ("default", "much", "growth_loss = 'much'"),
        ("default", float("nan"), "growth_loss = nan"),
        ("ppcc", 0.2, 'growth_loss = 0.2 with recipe "ppcc"; valid: 1.0'),
    ],
)
def test_shares_of_losses_that_cannot_be_are_refused(recipe, given, said):
    with pytest.raises(ConfigError, match=said):
        CongestionWindow(recipe, growth_loss=given)


def test_models_know_at_what_losses_their_windows_grow():
    assert CongestionWindow(growth_loss=0.2).to_dict()["growth_loss"] == 0.2
    assert CongestionWindow(growth_loss=1).to_dict() == CongestionWindow().to_dict()
