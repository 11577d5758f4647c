"""Duplicates and corruption on links, as tc-netem(8) has them: shares, what they do to flows, and what is counted."""

import json
from dataclasses import replace

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import plants, scenarios
from netbuf_gym.errors import ConfigError
from netbuf_gym.scenarios import Flow, Link, Scenario, Sized, UdpSource
from tests.scenarios.test_packet_limits import WAYS


def world(way=None, senders=("cubic",), back=None, **changes):
    made = scenarios.dumbbell(senders=list(senders), rate_mbps=10, rtt_ms=20, duration_s=20)
    links = [replace(made.links[0], **(way or {})), replace(made.links[1], **(back or {}))]
    return replace(made, links=links, **changes)


def count(packets, event, **fields):
    chosen = packets["event"] == event
    for name, value in fields.items():
        chosen &= packets[name] == value
    return int(chosen.sum())


def datagrams(**way):
    link = Link(name="bottleneck", rate_mbps=100, **way)
    source = UdpSource(path=(0,), rate_mbps=12, packet_bytes=1500)
    flow = Flow(path=(0,), return_path=(1,), start_s=1e3)
    return Scenario(links=[link, Link(name="return")], flows=[flow], udp=[source], duration_s=20)


@pytest.mark.parametrize("discipline", WAYS.values(), ids=WAYS)
def test_shares_are_those_of_datagrams(discipline):
    share = 0.1
    twice = nb.simulate(datagrams(duplicate=share, discipline=discipline), 1).udp[0]
    sent = twice.packets_sent
    deviation = 4 * np.sqrt(share * (1 - share) * sent)
    assert sent > 19_000
    assert abs(twice.packets_received - 1.1 * sent) < deviation and twice.queue_drops == twice.random_losses == 0
    damaged = nb.simulate(datagrams(corrupt=share, discipline=discipline), 1).udp[0]
    assert abs(damaged.random_losses - share * sent) < deviation
    assert 0 <= sent - damaged.packets_received - damaged.random_losses <= 1  # one is on its way


def test_all_and_none():
    all_twice = nb.simulate(datagrams(duplicate=1), 1)
    sent = all_twice.udp[0].packets_sent
    assert all_twice.links[0].packets_in == 2 * sent and 0 <= 2 * sent - all_twice.udp[0].packets_received <= 2
    assert nb.simulate(datagrams(corrupt=1), 1).udp[0].packets_received == 0
    plain, none = datagrams(), datagrams(duplicate=0, corrupt=0.0)
    assert plain == none


def test_copies_are_damaged_too_and_each_by_itself():
    both = nb.simulate(datagrams(duplicate=1, corrupt=0.5), 1).udp[0]
    assert abs(both.random_losses - 20_000) < 4 * np.sqrt(40_000) / 2
    assert 0 <= 2 * both.packets_sent - both.packets_received - both.random_losses <= 2


def test_copies_and_damaged_packets_take_room_and_time():
    plain = nb.simulate(datagrams(), 1).links[0]
    twice = nb.simulate(datagrams(duplicate=1), 1).links[0]
    damaged = nb.simulate(datagrams(corrupt=1), 1).links[0]
    assert twice.throughput_mbps == pytest.approx(2 * plain.throughput_mbps)
    assert damaged.throughput_mbps == pytest.approx(plain.throughput_mbps)
    full = datagrams(duplicate=1, queue_packets=1)
    full = replace(full, links=[replace(full.links[0], rate_mbps=12.1), full.links[1]])
    assert nb.simulate(full, 1).udp[0].queue_drops > 15_000  # copies leave no room for the next


@pytest.mark.parametrize("stack", ["linux", "ns3"])
@pytest.mark.parametrize("cc", ["cubic", "newreno"])
def test_a_stream_is_delivered_once_over_a_bad_link(stack, cc):
    size = 3_000_000
    bad = {"duplicate": 0.05, "corrupt": 0.01}
    made = scenarios.dumbbell(senders=[cc], rtt_ms=20, duration_s=60, stack=stack, app=Sized(size_bytes=size))
    made = replace(made, links=[replace(link, **bad) if i < 2 else link for i, link in enumerate(made.links)])
    result = nb.simulate(made, 2, packets=True)
    flow, packets = result.flows[0], result.packets
    assert flow.delivered_bytes == size and flow.completion_s == flow.completion_s
    damaged = packets[(packets["event"] == "corrupted") & ~packets["to_sender"]]
    assert 0 < flow.random_losses == np.isin(damaged["kind"], ["data", "fin"]).sum()
    copies = count(packets, "duplicated", kind="data", to_sender=False)
    assert 0.03 < copies / flow.packets_sent < 0.07
    assert count(packets, "duplicated", to_sender=True) > 0 < count(packets, "corrupted", to_sender=True)


def test_duplicates_cost_a_linux_sender_nothing():
    """Copies are told by D-SACK (RFC 2883) and are no sign of loss: capacity is what they take."""
    clean, copied = (nb.simulate(world(way), 1).flows[0] for way in (None, {"duplicate": 0.02}))
    assert copied.packets_retransmitted <= clean.packets_retransmitted + clean.packets_sent * 0.01
    assert copied.goodput_mbps == pytest.approx(clean.goodput_mbps / 1.02, rel=0.03)


def test_corruption_is_a_loss_to_a_sender():
    damaged, lost = (nb.simulate(world(way), 1).flows[0] for way in ({"corrupt": 0.01}, {"loss": 0.01}))
    assert damaged.loss_rate == pytest.approx(lost.loss_rate, rel=0.3)
    assert damaged.goodput_mbps == pytest.approx(lost.goodput_mbps, rel=0.3)


def test_a_seed_gives_the_same_bits_and_files_the_same_world():
    bad = world({"duplicate": 0.1, "corrupt": 0.02, "loss": 0.01}, ["cubic", "bbr"], {"duplicate": 0.05})
    one, again, other = (json.dumps(nb.simulate(bad, seed).to_dict()["flows"]) for seed in (3, 3, 4))
    assert one == again != other
    assert Scenario.from_dict(bad.to_dict()) == bad


def test_ports_of_a_switch_have_it_too():
    made = scenarios.get("rlbm/default", hosts=4, load=0.9, duration_s=20)
    links = [replace(link, duplicate=0.1, corrupt=0.02) if i == made.bottleneck else link for i, link in enumerate(made.links)]
    result = nb.simulate(replace(made, links=links), 1, packets=True)
    assert count(result.packets, "duplicated") > 0 < count(result.packets, "corrupted")
    assert result.traffic.flows_completed > 0


def test_a_live_world_refuses_it():
    with pytest.raises(ConfigError, match=r"links\[0\].duplicate = 0.1"):
        plants.make_lone_world("linux", world({"duplicate": 0.1}), 1)
