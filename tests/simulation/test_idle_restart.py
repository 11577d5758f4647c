"""Restart after silence: RFC 5681, 4.1, as Linux does it (tcp_cwnd_restart, tcp_current_ssthresh).

For every retransmission time-out for which nothing was sent the window halves, down to the initial one, and the slow-start
threshold becomes at least three quarters of what the window was. ns-3 keeps its window.
"""

import numpy as np
import pytest

import netbuf_gym as nb

ON_S, WAITS = 0.001, 135  # segments that are written at once besides a first window (see Sender::serve_source)
CONNECTED_S = 0.02  # the round trip of the path; the application is served from then on
SENT_S = 0.141  # the last segment, in the seventh round trip from a window of 2


def resumed(silence_s, *, on_s=ON_S, sent_s=SENT_S, queue_packets=1000, rate_mbps=100, stack="linux", cwnd=2, cc="newreno"):
    """Window, threshold (packets) and smoothed RTT (s) at the end of a silence, and the first two at the restart."""
    links = [
        nb.scenarios.Link(name="bottleneck", rate_mbps=rate_mbps, delay_ms=10, queue_packets=queue_packets),
        nb.scenarios.Link(name="back", delay_ms=10),
    ]
    restart_s = sent_s + silence_s
    app = nb.scenarios.OnOff(on_s=on_s, off_s=restart_s - on_s - CONNECTED_S)
    flow = nb.scenarios.Flow(cc=cc, path=(0,), return_path=(1,), initial_cwnd_packets=cwnd, app=app)
    world = nb.scenarios.Scenario(
        links=links, flows=[flow], duration_s=restart_s + 0.02, delayed_ack=1, hystart=False, stack=stack
    )
    series = nb.simulate(world, seed=1, sample_interval_s=0.001).series
    time_s = series["time_s"]

    def at(name, moment_s):
        return float(np.asarray(series[name]).reshape(len(time_s), -1)[np.searchsorted(time_s, moment_s), 0])

    before, after = restart_s - 0.005, restart_s + 0.01
    assert at("in_flight_packets", before) == 0 and at("in_flight_packets", after) > 0
    names = ("cwnd_packets", "ssthresh_packets")
    return [at(name, before) for name in names], [at(name, after) for name in names], at("srtt_ms", before) * 1e-3


def time_out_s():
    """Of these worlds: Linux's smoothed RTT and 200 ms."""
    return resumed(0.1)[2] + 0.2


@pytest.mark.parametrize(
    ("time_outs", "left"), [(0.9, 139), (1.1, 69), (1.9, 69), (2.1, 34), (2.9, 34), (3.1, 17), (5.5, 4), (6.5, 2), (20, 2)]
)
def test_the_window_halves_for_every_time_out_of_silence(time_outs, left):
    """Slow start from 2: a segment for each ACK; then 1, 2, 3 halvings, and no less than the initial window."""
    before, after, _ = resumed(time_outs * time_out_s())
    assert before[0] == 2 + 2 + WAITS
    assert after[0] == left
    assert np.isnan(after[1])  # infinite, and so it stays


@pytest.mark.parametrize(("cwnd", "sent_s"), [(10, 0.085), (50, 0.055), (33, 0.065)])
def test_down_to_the_initial_window_and_no_further(cwnd, sent_s):
    for halvings in range(6):
        before, after, _ = resumed((halvings + 0.5) * time_out_s(), cwnd=cwnd, sent_s=sent_s)
        assert before[0] == cwnd + cwnd + WAITS
        assert after[0] == max(before[0] // 2**halvings, cwnd)


def test_the_threshold_remembers_three_quarters():
    """After a loss the window grows past the threshold; at the restart this is 3/4 of the window where that is more."""
    higher = 0
    for on_s in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0):
        # What was written before the silence leaves within 0.1 s.
        before, after, _ = resumed(0.43, on_s=on_s, sent_s=CONNECTED_S + on_s, queue_packets=60, rate_mbps=20)
        assert 2 <= before[1] <= before[0]
        assert after[0] == before[0] // 2
        assert after[1] == pytest.approx(max(before[1], int(before[0] * 1448 * 3 / 4) / 1448), abs=1e-9)
        higher += after[1] > before[1]
    assert 0 < higher


def test_a_halved_window_grows_by_slow_start_again():
    """Below the threshold: an ACK for each of the 69 segments makes 138 in a round trip."""
    there = nb.scenarios.Link(name="there", rate_mbps=100, delay_ms=10, queue_packets=1000)
    links = [there, nb.scenarios.Link(name="back", delay_ms=10)]
    app = nb.scenarios.OnOff(on_s=ON_S, off_s=SENT_S + 0.3 - ON_S - CONNECTED_S)
    flow = nb.scenarios.Flow(cc="newreno", path=(0,), return_path=(1,), initial_cwnd_packets=2, app=app)
    world = nb.scenarios.Scenario(links=links, flows=[flow], duration_s=0.5, delayed_ack=1, hystart=False)
    series = nb.simulate(world, seed=1, sample_interval_s=0.001).series
    window = np.asarray(series["cwnd_packets"]).reshape(len(series["time_s"]), -1)[:, 0]
    grown = window[np.searchsorted(series["time_s"], SENT_S + 0.3 + 0.02 + 69 * 0.00012 + 0.001)]
    assert grown == 138


def test_ns3_keeps_its_window():
    for time_outs in (0.9, 3.1, 20):
        before, after, _ = resumed(time_outs * 1.1, on_s=0.12, stack="ns3")
        assert after[0] >= before[0] > 60
