"""Wi-Fi beside arithmetic, Bianchi's model and ns-3's runs; cells beside arithmetic and the theory of proportional fairness."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from netbuf_gym.scenarios import Cellular, Flow, Link, Probe, Scenario, Sized, UdpSource, Wifi, cellular, dumbbell, wifi
from netbuf_gym.simulation import simulate

NS3 = Path(__file__).resolve().parents[1] / "data" / "ns3_wifi.csv"
IP_BYTES, UDP_BYTES, ETHERNET_BYTES = 1500, 1472, 1514


def run(links, seed=1, duration_s=10.0, **parts):
    """A world of one-way traffic over links; its one flow, which a world must have, is far away and small."""
    aside = [Link(name="aside", rate_mbps=1, delay_ms=1)]
    flow = Flow(path=["aside"], return_path=["aside"], app=Sized(size_bytes=1))
    return simulate(Scenario(links=[*links, *aside], flows=[flow], duration_s=duration_s, **parts), seed=seed)


def saturate(medium, links=1, mbps=2000, gains=None, packet_bytes=1500, **world):
    """Mbit/s on the wire of each of several downlinks that always have something to send."""
    gains = gains or [0.0] * links
    made = [Link(name=f"l{i}", medium=medium, queue_packets=1000, gain_db=gain) for i, gain in enumerate(gains)]
    sources = [UdpSource(path=[link.name], rate_mbps=mbps, packet_bytes=packet_bytes) for link in made]
    return np.array([udp.received_mbps for udp in run(made, udp=sources, **world).udp])


def probe_ms(medium, interval_s, up=False, size=1500, duration_s=100.0, seed=1, **link):
    probe = Probe(path=["l"], interval_s=interval_s, bytes=size)
    made = Link(name="l", medium=medium, uplink=up, **link)
    return run([made], probes=[probe], duration_s=duration_s, seed=seed).probes[0].delays_s * 1e3


# ---- Wi-Fi


def ppdu_us(frame_bytes, rate=65.0, preamble=36.0, symbol=4.0):
    """IEEE 802.11-2020, 19.4.3: service and tail bits, whole symbols."""
    return preamble + symbol * math.ceil((16 + 6 + 8 * frame_bytes) / (rate * symbol))


ACK_US = 20 + 4 * math.ceil((22 + 8 * 14) / 96)
BLOCK_ACK_US = 20 + 4 * math.ceil((22 + 8 * 32) / 96)


@pytest.mark.parametrize("size", [64, 500, 1500])
def test_who_finds_the_channel_idle_sends_at_once(size):
    delays_ms = probe_ms(Wifi(), 0.1, size=size, delay_ms=3)
    assert delays_ms == pytest.approx(3 + ppdu_us(size + 24) / 1e3, abs=1e-6)


@pytest.mark.parametrize("packets", [1, 2, 7, 16])
def test_without_backoff_exchanges_follow_each_other(packets):
    medium = Wifi(cw_min=0, cw_max=0, ampdu_packets=packets)
    length = 1524 if packets == 1 else packets * 1528  # delimiters of 4 bytes
    cycle_us = ppdu_us(length) + 16 + (ACK_US if packets == 1 else BLOCK_ACK_US) + 16 + 3 * 9
    assert saturate(medium)[0] == pytest.approx(packets * 1500 * 8 / cycle_us, rel=1e-3)
    assert medium.capacity_mbps() == pytest.approx(packets * 1500 * 8 / cycle_us, rel=1e-6)


@pytest.mark.parametrize(
    ("limit", "packets"), [({"ampdu_bytes": 10_000}, 6), ({"ppdu_us": 36 + 4 * 200}, 4), ({"ampdu_packets": 3}, 3)]
)
def test_limits_of_aggregates(limit, packets):
    limited, counted = Wifi(cw_min=0, cw_max=0, **limit), Wifi(cw_min=0, cw_max=0, ampdu_packets=packets)
    assert limited.capacity_mbps() == pytest.approx(counted.capacity_mbps(), rel=1e-9)
    assert saturate(limited)[0] == pytest.approx(saturate(counted)[0], rel=1e-9)


@pytest.mark.parametrize("packets", [1, 16])
@pytest.mark.parametrize("stations", [0, 1, 2, 4, 9, 19])
def test_saturation_is_bianchis(stations, packets):
    medium = Wifi(ampdu_packets=packets, stations=stations, station_packets=1)
    found = np.mean([saturate(medium, mbps=80, duration_s=20, seed=seed)[0] for seed in range(1, 5)])
    # Bianchi's counters go on in busy slots, and who has just sent is not favoured.
    assert found == pytest.approx(medium.capacity_mbps(), rel=0.04 if stations < 9 else 0.06)


def test_links_of_an_access_point_take_turns_and_stations_contend():
    medium = Wifi(ampdu_packets=1)
    down = [Link(name=f"down{i}", medium=medium, queue_packets=100) for i in range(2)]
    up = [Link(name=f"up{i}", medium=medium, uplink=True, queue_packets=100) for i in range(2)]
    sources = [UdpSource(path=[link.name], rate_mbps=80, packet_bytes=1500) for link in (*down, *up)]
    first, second, *stations = [udp.received_mbps for udp in run([*down, *up], udp=sources, duration_s=30).udp]
    assert first == pytest.approx(second, rel=0.01)
    for station in stations:  # a station has as many turns as the access point
        assert station == pytest.approx(first + second, rel=0.05)


def test_errors_are_repaired_in_order_or_given_up():
    error = 0.3
    found = saturate(Wifi(packet_error=error))[0]
    assert found == pytest.approx(Wifi(packet_error=error).capacity_mbps(), rel=0.08)  # the window waits for the last
    delays_ms = probe_ms(Wifi(packet_error=error, cw_min=0, cw_max=0, retries=2), 0.01, duration_s=300)
    tries = np.round((delays_ms * 1e3 - ppdu_us(1524)) / (ppdu_us(1524) + 16 + ACK_US + 16 + 27)).astype(int)
    shares = np.bincount(tries, minlength=3) / 30_000
    assert shares == pytest.approx([0.7, 0.21, 0.063], abs=0.01) and len(shares) == 3  # the rest is lost


def test_acks_take_their_turns_on_the_same_channel():
    world = dumbbell(medium=Wifi(ampdu_packets=1), duration_s=6, rtt_ms=20, buffer_packets=300)
    shared = simulate(world, seed=1, warmup_s=2).flows[0].goodput_mbps
    datagrams = saturate(Wifi(ampdu_packets=1), mbps=80)[0] * 1448 / 1500
    assert 0.7 * datagrams < shared < 0.85 * datagrams  # half as many ACKs as packets


def read_ns3():
    lines = [line for line in NS3.read_text().splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def mean_ns3(label):
    """Cells of a label with the mean goodput of their seeds."""
    cells: dict[tuple, list[dict]] = {}
    for row in read_ns3():
        if row["label"] == label:
            cells.setdefault((row["standard"], row["cc"], row["ampdu_packets"], row["stations"]), []).append(row)
    return [(rows[0], *(np.mean([float(r[name]) for r in rows]) for name in GOODPUTS)) for rows in cells.values()]


GOODPUTS = ("goodput_w_mbps", "goodput_up_w_mbps")


def standard_of(row, **changes):
    return wifi(row["standard"].removeprefix("802.11"), ampdu_packets=int(row["ampdu_packets"]), **changes)


@pytest.mark.parametrize("cell", mean_ns3("udp"), ids=lambda cell: f"{cell[0]['standard']}-{cell[0]['ampdu_packets']}")
def test_saturation_is_that_of_ns3(cell):
    row, ns3_mbps, _ = cell
    found = saturate(standard_of(row), packet_bytes=ETHERNET_BYTES, duration_s=4)[0] * UDP_BYTES / ETHERNET_BYTES
    assert found == pytest.approx(ns3_mbps, rel=0.02)


@pytest.mark.parametrize("cell", mean_ns3("stations"), ids=lambda cell: f"{cell[0]['stations']}-{cell[0]['ampdu_packets']}")
def test_stations_contend_as_in_ns3(cell):
    row, down, up = cell
    n, packets = int(row["stations"]), int(row["ampdu_packets"])
    medium = standard_of(row, stations=n, station_packets=packets)
    runs = [saturate(medium, mbps=80, packet_bytes=ETHERNET_BYTES, duration_s=20, seed=seed)[0] for seed in range(1, 4)]
    assert np.mean(runs) * UDP_BYTES / ETHERNET_BYTES == pytest.approx((down + up) / (n + 1), rel=0.05)


@pytest.mark.parametrize("cell", mean_ns3("tcp"), ids=lambda cell: f"{cell[0]['cc']}-{cell[0]['ampdu_packets']}")
def test_tcp_goodput_is_that_of_ns3(cell):
    row, ns3_mbps, _ = cell
    cc = {"Cubic": "cubic", "LinuxReno": "newreno"}[row["cc"]]
    world = dumbbell(medium=standard_of(row), senders=cc, rtt_ms=20, buffer_packets=300, duration_s=6, stack="ns3")
    found = np.mean([simulate(world, seed=seed, warmup_s=2).flows[0].goodput_mbps for seed in (1, 2)])
    assert found == pytest.approx(ns3_mbps, rel=0.06)


# ---- cells

THEORY = {"linear": True, "bler": 0.0, "fading_ms": 5.0, "pf_ms": 2000.0}


@pytest.mark.parametrize("users", [1, 2, 4, 8])
def test_gain_by_multi_user_diversity_is_the_harmonic_number(users):
    shares = saturate(cellular(**THEORY), users, mbps=100, duration_s=60)
    in_turn = saturate(cellular(round_robin=True, **THEORY), users, mbps=100, duration_s=60)
    assert shares == pytest.approx(np.full(users, shares.mean()), rel=0.05)
    assert in_turn == pytest.approx(np.full(users, in_turn.mean()), rel=0.05)
    assert shares.sum() / in_turn.sum() == pytest.approx(sum(1 / k for k in range(1, users + 1)), rel=0.03)
    assert shares.mean() == pytest.approx(Cellular(users=users - 1, **THEORY).capacity_mbps(), rel=0.03)


def test_time_is_shared_alike_whatever_the_channels():
    steady = {"fading_ms": 0.0, "bler": 0.0}
    near, far = saturate(cellular(**steady), 2, mbps=100, gains=[6.0, -6.0], duration_s=20)
    for found, gain_db in ((near, 6.0), (far, -6.0)):
        alone = Cellular(**steady).capacity_mbps(gain_db=gain_db)
        assert found == pytest.approx(alone / 2, rel=0.01)


def test_further_users_count_like_links():
    beside = saturate(cellular(users=3, **THEORY), 1, mbps=100, duration_s=60)[0]
    assert beside == pytest.approx(saturate(cellular(**THEORY), 4, mbps=100, duration_s=60).mean(), rel=0.05)


@pytest.mark.parametrize(("snr_db", "efficiency"), [(-8, 0), (0, 0.2344), (10, 1.4766), (20, 3.9023), (40, 5.5547)])
def test_rates_are_those_of_the_cqi_table(snr_db, efficiency):
    medium = cellular(snr_db=snr_db, fading_ms=0, bler=0)
    gap = -math.log(5 * 5e-5) / 1.5
    assert efficiency <= math.log2(1 + 10 ** (snr_db / 10) / gap)
    mbps = math.floor(efficiency * 50 * 168 * 0.75 / 8) * 8e-3
    assert saturate(medium, mbps=100, duration_s=20)[0] == pytest.approx(mbps, rel=2e-3, abs=1e-9)


@pytest.mark.parametrize("bler", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("harq_ms", [8.0, 5.0])
def test_failed_blocks_come_a_harq_round_trip_later(bler, harq_ms):
    delays_ms = probe_ms(cellular(fading_ms=0, bler=bler, harq_ms=harq_ms), 0.047, size=64, duration_s=400)
    shares = np.bincount(np.round((delays_ms - 1) / harq_ms).astype(int), minlength=4) / len(delays_ms)
    assert np.allclose((delays_ms - 1) % harq_ms, 0, atol=1e-6)
    assert shares[:3] == pytest.approx([(1 - bler) * bler**k for k in range(3)], abs=0.02)


def test_what_comes_later_waits_for_what_failed():
    held = probe_ms(cellular(fading_ms=0, bler=0.3, harq_retries=20), 0.002, size=64, duration_s=60)
    arrivals_ms = 2.0 * np.arange(len(held)) + held
    # In order, and in bunches behind a failed block.
    assert (np.diff(arrivals_ms) >= -1e-6).all() and (np.diff(arrivals_ms) < 1e-6).mean() > 0.2


def test_lost_blocks_take_their_packets_with_them():
    medium = cellular(fading_ms=0, bler=0.3, harq_retries=1, snr_db=40)
    link = Link(name="l", medium=medium)
    result = run([link], udp=[UdpSource(path=["l"], rate_mbps=0.2, packet_bytes=64)], duration_s=100)
    assert result.udp[0].random_losses / result.udp[0].packets_sent == pytest.approx(0.09, abs=0.01)


@pytest.mark.parametrize(("sr_ms", "grant_ms"), [(10.0, 8.0), (5.0, 3.0), (40.0, 8.0), (0.0, 4.0)])
def test_the_uplink_waits_for_its_turn_to_ask_and_for_the_grant(sr_ms, grant_ms):
    medium = cellular(fading_ms=0, bler=0, sr_ms=sr_ms, grant_ms=grant_ms)
    delays_ms = probe_ms(medium, 0.0973, up=True, size=64, duration_s=200)
    least = grant_ms + 1  # and a TTI
    assert least <= delays_ms.min() + 1e-6 and delays_ms.max() <= least + sr_ms + 1 + 1e-6
    assert delays_ms.mean() == pytest.approx(least + sr_ms / 2 + 0.5, abs=0.7)


def test_acks_leave_in_bunches_after_a_grant():
    medium = cellular(fading_ms=0, bler=0, snr_db=40, sr_ms=20)
    probe = Probe(path=["l"], interval_s=0.001, bytes=64, start_s=0.0)
    delays_ms = run([Link(name="l", medium=medium, uplink=True)], probes=[probe], duration_s=2).probes[0].delays_s * 1e3
    arrivals_ms = np.arange(len(delays_ms)) + delays_ms
    first = arrivals_ms < arrivals_ms[0] + 1e-6
    assert first.sum() == pytest.approx(delays_ms[0], abs=1.5)  # all that came until the grant


def test_a_longer_queue_of_one_user_delays_no_other():
    medium = cellular(fading_ms=0, bler=0)
    links = [Link(name="full", medium=medium, queue_packets=1000), Link(name="thin", medium=medium)]
    sources = [
        UdpSource(path=["full"], rate_mbps=100, packet_bytes=1500),
        UdpSource(path=["thin"], rate_mbps=0.1, packet_bytes=500),
    ]
    full, thin = run(links, udp=sources).udp
    assert thin.delay_mean_ms < 10 < full.delay_mean_ms
