"""What crosses a link that flows of one sender share counts when it gets there."""

import numpy as np
import pytest

import netbuf_gym as nb

Link = nb.scenarios.Link


def two_flows(starts_s=(0.0, 0.001)):
    """Two finite flows of one sender over links that nobody else uses: 10 ms, then 10 ms, and 5 ms back.

    8 Mbit/s: a byte a microsecond. Their SYNs (60 bytes) leave at 0 and 1 ms, reach the second link at 10.06 and 11.06 ms
    and the receiver at 20.12 and 21.12 ms; the answers are on the way back at once.
    """
    links = [Link(name="first", rate_mbps=8, delay_ms=10), Link(name="second", rate_mbps=8, delay_ms=10)]
    links += [Link(name="back", rate_mbps=8, delay_ms=5), Link(name="last", rate_mbps=8, delay_ms=5)]
    columns = {"start_s": list(starts_s), "sender": [0, 0], "size_bytes": [1448, 1448], "priority": [0, 0]}
    sender = nb.scenarios.Sender(path=(0, 1), return_path=(2, 3))
    traffic = nb.scenarios.Traffic(senders=[sender], arrivals=[nb.scenarios.FlowList(**columns)])
    return nb.scenarios.Scenario(links=links, traffic=traffic, duration_s=0.03)


def bytes_by_ms(world, link):
    """Bytes that a link has sent by the end of each millisecond."""
    series = nb.simulate(world, seed=1, sample_interval_s=0.001).series
    rates = np.asarray(series["throughput_mbps"]).reshape(len(series["time_s"]), -1)[:, link]
    return np.rint(np.cumsum(rates * 1e6 / 8 * 0.001)).astype(int)


@pytest.mark.parametrize(("link", "first_ms", "second_ms"), [(0, 1, 2), (1, 11, 12), (2, 21, 22), (3, 26, 27)])
def test_a_link_carries_what_has_reached_it(link, first_ms, second_ms):
    """By the end of which millisecond the first and the second packet of 60 bytes have been sent."""
    sent = bytes_by_ms(two_flows(), link)
    expected = [60 * ((ms >= first_ms) + (ms >= second_ms)) for ms in range(1, 26)]
    assert sent[:25].tolist() == expected


def test_flows_of_one_sender_wait_for_each_other():
    """Both at once: the second SYN waits 60 us at the first link only, so that it is 60 us late."""
    late = nb.simulate(two_flows((0.0, 0.0)), seed=1)
    assert late.links["first"].queue_delay_mean_ms * late.links["first"].packets_out == pytest.approx(0.06, rel=1e-6)
    assert late.links["second"].queue_delay_mean_ms == 0
