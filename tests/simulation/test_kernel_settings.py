"""Settings of the kernel as scenarios have them: what each changes, by hand and as Linux' sources have it."""

from dataclasses import replace
from statistics import median

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import _core, scenarios
from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.plants.linux.setup import Agents, Setup
from netbuf_gym.scenarios import (
    Flow,
    FlowList,
    Host,
    Jitter,
    Link,
    LossSchedule,
    OnOff,
    Relay,
    Scenario,
    Sender,
    Sized,
    Traffic,
)
from netbuf_gym.scenarios.native import build_world_config
from netbuf_gym.scenarios.tcp_settings import uses_option
from tests.simulation.test_packets import read_pcap


def world(**settings):
    made = scenarios.dumbbell(rate_mbps=50, rtt_ms=40, buffer_packets=1000, duration_s=10)
    return replace(made, **settings)


def read(result, name, time_s):
    return float(result.series[name][np.searchsorted(result.series["time_s"], time_s) - 1, 0])


@pytest.mark.parametrize("cc", ["cubic", "newreno", "bbr"])
def test_a_window_outlives_silence_where_it_does_not_start_anew(cc):
    app = OnOff(on_s=1, off_s=3)
    made = scenarios.dumbbell(senders=[cc], rate_mbps=50, rtt_ms=40, buffer_packets=1000, app=app, duration_s=4.06)
    anew, kept = (nb.simulate(replace(made, slow_start_after_idle=on), sample_interval_s=0.005) for on in (True, False))
    before = read(kept, "cwnd_packets", 4.0)
    assert read(anew, "cwnd_packets", 4.0) == before > 50
    assert read(kept, "cwnd_packets", 4.05) >= before
    if cc != "bbr":  # whose window is its own affair
        assert 10 <= read(anew, "cwnd_packets", 4.05) <= 20 < before  # the initial window, and what has grown since


@pytest.mark.parametrize(("max_rto_ms", "most"), [(None, 120), (2000, 2), (1000, 1), (7500, 7.5)])
def test_time_outs_double_up_to_the_largest(max_rto_ms, most):
    dead = LossSchedule([0, 1, 900], [0, 1, 0])  # from the first second on nothing passes
    made = world(duration_s=600, max_rto_ms=max_rto_ms)
    made = replace(made, links=[replace(made.links[0], loss=dead), made.links[1]])
    packets = nb.simulate(made, packets=True, sample_interval_s=None).packets
    sent_s = np.unique(packets["time_s"][(packets["event"] == "sent") & ~packets["to_sender"]])
    gaps = np.diff(sent_s[sent_s > 3])
    assert gaps.max() == pytest.approx(most, rel=0.07) and gaps.max() >= most  # timers are the coarser the later
    assert gaps[1] / gaps[0] == pytest.approx(2, rel=0.2) or gaps[0] > 0.9 * most


def test_windows_end_at_65535_without_scaling(tmp_path):
    plain, unscaled = (nb.simulate(world(window_scaling=scaled), packets=True) for scaled in (True, False))
    assert plain.flows[0].goodput_mbps > 45
    acks = unscaled.packets[unscaled.packets["to_sender"]]
    assert acks["window_bytes"].max() == 65535 and acks["window_bytes"].min() > 0
    # 45 segments of 1448 bytes fit, and take a round trip of 40 ms and a little
    assert unscaled.flows[0].goodput_mbps == pytest.approx(45 * 1448 * 8e-3 / 40.5, rel=0.05)
    unscaled.write_pcap(tmp_path / "a")
    found = read_pcap(tmp_path / "a")
    assert 3 not in found[0].options and found[0].length == 56 and max(one.window for one in found[3:]) == 65535


@pytest.mark.parametrize("hosts", [(), (Host(name="here"), Host(name="there"))], ids=["none", "hosts"])
@pytest.mark.parametrize("buffer", [None, 30_000, 200_000])
def test_no_receiver_offers_more_without_scaling(buffer, hosts):
    if hosts and buffer:
        return
    ends = {"sender_host": "here", "receiver_host": "there"} if hosts else {"receive_buffer_bytes": buffer}
    links = [Link(name="bottleneck", rate_mbps=50, delay_ms=20, queue_packets=1000), Link(name="return", delay_ms=20)]
    flow = Flow(path=(0,), return_path=(1,), **ends)
    made = Scenario(links=links, flows=[flow], hosts=hosts, duration_s=5, window_scaling=False)
    result = nb.simulate(made, packets=True)
    data = result.packets[~result.packets["to_sender"] & (result.packets["event"] == "sent")]
    acks = result.packets[result.packets["to_sender"] & (result.packets["event"] == "received")]
    assert acks["window_bytes"].max() <= min(65535, buffer or 65535) and len(data) > 100
    at = np.searchsorted(acks["time_s"], data["time_s"], side="right") - 1
    edge = (acks["acknowledgement"] + acks["window_bytes"])[np.maximum(at, 0)]
    assert (data["sequence"] + data["payload_bytes"] <= edge)[at >= 0].all()


def test_segments_without_time_stamps_are_longer_and_headers_shorter(tmp_path):
    made = world(timestamps=False)
    assert (made.mss, made.data_bytes, made.ack_bytes) == (1460, 1500, 40)
    assert (replace(made, mss_bytes=1000).mss, replace(made, mss_bytes=1000).data_bytes) == (1000, 1040)
    plain, bare = nb.simulate(world(), packets=True), nb.simulate(made, packets=True)
    assert bare.flows[0].goodput_mbps == pytest.approx(plain.flows[0].goodput_mbps * 1460 / 1448, rel=0.01)
    bare.write_pcap(tmp_path / "a")
    found = read_pcap(tmp_path / "a")
    assert not any(8 in one.options for one in found) and found[0].length == 52
    assert max(one.length for one in found) == 1500 and {one.payload for one in found if one.payload} == {1460}
    both = nb.simulate(world(timestamps=False, window_scaling=False), packets=True)
    assert both.packets["wire_bytes"][0] == 48


def lossy(**settings):
    made = world(**settings, flows=[Flow(path=(0,), return_path=(1,), app=Sized(size_bytes=2_000_000))], duration_s=60)
    return replace(made, links=[replace(made.links[0], loss=0.03), made.links[1]])


def test_without_time_stamps_only_what_was_sent_once_tells_the_round_trip(tmp_path):
    """Every sample is of a segment that was sent once: none exceeds the path's RTT by as much as a repair takes."""
    for seed in range(3):
        result = nb.simulate(lossy(timestamps=False), seed, packets=True)
        assert result.flows[0].delivered_bytes == 2_000_000 and result.flows[0].packets_retransmitted > 20
        result.write_pcap(tmp_path / "a")
        assert any(5 in one.options for one in read_pcap(tmp_path / "a"))


def test_a_repeated_syn_gives_no_sample_and_an_rto_of_3_s():
    """Without time stamps nobody knows which copy was answered: RFC 6298, 5.7. The tail is probed after 1 s (Linux 6.18)."""
    late = LossSchedule([0, 0.5, 1.03, 1.2, 30], [1, 0, 1, 1, 0])  # the first SYN is lost, the second passes, then nothing
    stamped, bare = (
        nb.simulate(
            replace(made, links=[replace(made.links[0], loss=late), made.links[1]], duration_s=20), packets=True
        ).packets
        for made in (world(), world(timestamps=False))
    )

    def repeats(packets):
        sent = packets[(packets["event"] == "sent") & (packets["kind"] == "data")]
        times = np.unique(sent["time_s"])
        return times[1] - times[0], times

    assert repeats(stamped)[0] < 0.5  # a tail loss probe or a time-out of a known RTT
    times = repeats(bare)[1]
    assert 1 <= times[1] - times[0] <= 1.05  # measured: 4.16 s from the window to the first copy, and 6.16 s to the next
    assert 4 <= times[2] - times[0] <= 4.25
    assert 6 <= times[3] - times[2] <= 6.3


@pytest.mark.parametrize("cc", sorted(set(scenarios.congestion_controls("linux")) - {"agent"}))
def test_every_congestion_control_does_without_time_stamps_and_scaling(cc):
    late = LossSchedule([0, 0.5], [1, 0.01])
    made = scenarios.dumbbell(senders=[cc], rate_mbps=5, rtt_ms=40, loss=late, duration_s=20)
    for settings in ({"timestamps": False, "window_scaling": False}, {"sack": False}, {"sack": False, "timestamps": False}):
        assert nb.simulate(replace(made, **settings), 2).flows[0].goodput_mbps > 0.2


def script(*lost, segments=400, **settings):
    """World of 50 Mbit/s and 40 ms whose link loses the packets of these numbers: SYN 0, the handshake's ACK 1, data from 2."""
    flow = Flow(path=(0,), return_path=(1,), cc="newreno", app=Sized(size_bytes=segments * 1448), **settings)
    made = world(flows=[flow], duration_s=60)
    links = [made.links[0], Link(name="return", delay_ms=20)]
    config = build_world_config(replace(made, links=links))
    lossy = config.links[0]
    lossy.loss_list = list(lost)
    config.links = [lossy, config.links[1]]
    return _core.World(config, 1)


def outcome(core):
    core.run(60 * 10**9)
    stat = core.flow_stats()[0]
    return stat["packets_retransmitted"], stat["timeouts"], stat["fast_recoveries"]


@pytest.mark.parametrize("ends", ["scenario", "flow", "host", "other host", "relay"])
def test_sack_is_off_where_one_end_is_without_it(ends, tmp_path):
    settings, flow = {}, {"path": (0,), "return_path": (1,), "app": Sized(size_bytes=3_000_000)}
    if ends == "scenario":
        settings["sack"] = False
    elif ends == "flow":
        flow["sack"] = False
    elif ends in ("host", "other host"):
        settings["hosts"] = (Host(name="a", sack=ends != "host"), Host(name="b", sack=ends == "host"))
        flow |= {"sender_host": "a", "receiver_host": "b"}
    made = world(flows=[Flow(**flow)], duration_s=30, **settings)
    if ends == "relay":
        relay = Relay(host="a", path=(0,), return_path=(1,), sack=False)
        sender = Sender(path=(0,), return_path=(1,), relay=relay)
        flows = FlowList(start_s=[0.0], sender=[0], size_bytes=[3_000_000], priority=[0])
        made = replace(made, flows=(), hosts=(Host(name="a"),), traffic=Traffic(senders=[sender], arrivals=[flows]))
    made = replace(made, links=[replace(made.links[0], loss=0.01), made.links[1]])
    packets = nb.simulate(made, 3, packets=True).packets
    blocks = (packets["sack"] > 0).any(axis=1)
    if ends == "relay":  # the first leg has it
        assert len(set(packets["flow"].tolist())) == 2 and len(set(packets["flow"][blocks].tolist())) == 1
        return
    assert not blocks.any()
    result = nb.simulate(made, 3, packets=True)
    result.write_pcap(tmp_path / "a")
    found = read_pcap(tmp_path / "a")
    assert not any(5 in one.options for one in found)
    assert (4 in found[0].options) == (ends == "other host") and 4 not in found[1].options  # SACK-permitted: SYN and its answer
    assert 8 in found[0].options and 3 in found[0].options and found[0].length == 60  # in the room beside the time stamp
    assert result.flows[0].delivered_bytes == 3_000_000


def test_syns_are_as_long_as_their_options():
    """RFC 7323, 2.2, 3.2; RFC 2018, 2: 4 bytes of MSS, 12 of a stamp with SACK in its padding, else 4 of SACK, 4 of scale."""
    for timestamps, scaling, sack, length in [
        (True, True, True, 60), (True, True, False, 60), (True, False, False, 56), (False, True, True, 52),
        (False, True, False, 48), (False, False, True, 48), (False, False, False, 44),
    ]:  # fmt: skip
        one = Flow(path=(0,), return_path=(1,), timestamps=timestamps, window_scaling=scaling, sack=sack)
        packets = nb.simulate(world(flows=[one], duration_s=0.2), packets=True).packets
        assert (
            packets["wire_bytes"][packets["kind"] == "syn"][0]
            == packets["wire_bytes"][packets["kind"] == "syn-ack"][0]
            == length
        )


def test_without_sack_the_repair_of_a_window_takes_a_round_trip_a_loss():
    """RFC 6582: each partial ACK shows one loss. Six losses: five round trips of 40 ms from the first repair to the last."""
    lost = [200, 202, 204, 206, 208, 210]
    assert outcome(script(*lost, segments=1000, sack=False)) == (6, 0, 1) == outcome(script(*lost, segments=1000))
    assert outcome(script(21, segments=20, sack=False)) == (1, 1, 0)  # no probe of the tail
    assert outcome(script(19, segments=20, sack=False))[1:] == (1, 0)  # two duplicates are too few
    assert outcome(script(18, segments=20, sack=False)) == (1, 0, 1)  # three are not
    assert outcome(script(21, segments=20))[1] == 0


def test_without_sack_and_time_stamps_no_needless_recovery_is_taken_back():
    """Eifel detection (RFC 3522) is all that tells without D-SACKs: reordering halves the window each time without stamps.

    The kernel, live for 12 s: 5.3 and 2.1 Mbit/s. In single runs the sender comes to expect reordering, and goes on.
    """

    def goodput(**settings):
        made = scenarios.dumbbell(senders=["newreno"], rate_mbps=20, rtt_ms=40, buffer_packets=100, duration_s=20)
        jitter = Jitter(scale_ms=6, reorder=True)
        made = replace(made, links=[replace(made.links[0], jitter=jitter), made.links[1]], **settings)
        return median(nb.simulate(made, seed).flows[0].goodput_mbps for seed in range(1, 8))

    assert goodput(sack=False) > 2 * goodput(sack=False, timestamps=False)


@pytest.mark.parametrize("usual", [True, False])
def test_each_flow_has_its_own_settings(usual):
    """Two flows of one world, one with what the scenario has, one with the contrary."""
    given = {"window_scaling": usual, "timestamps": usual}
    other = {name: not value for name, value in given.items()}
    flows = [Flow(path=(0,), return_path=(1,)), Flow(path=(2,), return_path=(1,), **other)]
    links = [
        Link(name="a", rate_mbps=50, delay_ms=20, queue_packets=1000),
        Link(name="return", delay_ms=20),
        Link(name="b", rate_mbps=50, delay_ms=20, queue_packets=1000),
    ]
    made = Scenario(links=links, flows=flows, duration_s=5, **given)
    result = nb.simulate(made, packets=True)
    segments = [max(result.packets["payload_bytes"][result.packets["flow"] == i]) for i in (0, 1)]
    assert segments == ([1448, 1460] if usual else [1460, 1448]) == [made.mss_of(0), made.mss_of(1)]
    bare, plain = (1, 0) if usual else (0, 1)
    # a packet of 1500 bytes there at 50 Mbit/s, an ACK back at once
    assert made.base_rtt_ms(bare) == made.base_rtt_ms(plain) == pytest.approx(40 + 1500 * 8e-3 / 50)
    slow_back = replace(made, links=[links[0], replace(links[1], rate_mbps=1), links[2]])
    assert [slow_back.base_rtt_ms(i) - made.base_rtt_ms(i) for i in (plain, bare)] == pytest.approx([52 * 8e-3, 40 * 8e-3])
    assert result.flows[plain].goodput_mbps > 45
    # 44 segments of 1460 bytes fit into 65535, and take a round trip of 40 ms and a little
    assert result.flows[bare].goodput_mbps == pytest.approx(44 * 1460 * 8e-3 / 40.5, rel=0.05)


def test_a_flows_time_outs_double_up_to_its_largest():
    dead = LossSchedule([0, 1, 900], [0, 1, 0])
    flows = [Flow(path=(0,), return_path=(1,)), Flow(path=(0,), return_path=(1,), max_rto_ms=1000)]
    hosts = (Host(name="a", max_rto_ms=2000),)
    flows.append(Flow(path=(0,), return_path=(1,), sender_host="a"))
    made = world(duration_s=400, flows=flows, hosts=hosts, max_rto_ms=8000)
    made = replace(made, links=[replace(made.links[0], loss=dead), made.links[1]])
    packets = nb.simulate(made, packets=True, sample_interval_s=None).packets
    for flow, most in enumerate([8, 1, 2]):
        mine = packets[(packets["event"] == "sent") & ~packets["to_sender"] & (packets["flow"] == flow)]
        gaps = np.diff(np.unique(mine["time_s"][mine["time_s"] > 3]))
        assert most <= gaps.max() == pytest.approx(most, rel=0.07)


def test_a_flows_window_outlives_silence():
    app = OnOff(on_s=1, off_s=3)
    flows = [Flow(path=(i,), return_path=(2,), app=app, slow_start_after_idle=on) for i, on in enumerate([None, False])]
    link = Link(name="a", rate_mbps=50, delay_ms=20, queue_packets=1000)
    made = Scenario(links=[link, replace(link, name="b"), Link(name="return", delay_ms=20)], flows=flows, duration_s=4.06)
    result = nb.simulate(made, sample_interval_s=0.005)
    window, time_s = result.series["cwnd_packets"], result.series["time_s"]
    before, after = (window[np.searchsorted(time_s, at) - 1] for at in (4.0, 4.05))
    assert 10 <= after[0] <= 20 < before[0] <= before[1] <= after[1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Flow(path=(0,), return_path=(1,), max_rto_ms=999),
            "flow.max_rto_ms = 999.0 is out of range; valid: 1000 to 120000",
        ),
        (lambda: Flow(path=(0,), return_path=(1,), sack=1), "flow.sack = 1"),
        (lambda: Host(name="a", timestamps="no"), "host.timestamps = 'no'"),
        (lambda: Sender(path=(0,), return_path=(1,), max_rto_ms=1e9), "sender.max_rto_ms = 1000000000"),
        (lambda: Relay(host="a", path=(0,), return_path=(1,), window_scaling=2), "relay.window_scaling = 2"),
        (lambda: one_flow(max_rto_ms=2000, of={"min_rto_ms": 3000}), r"flows\[0\].max_rto_ms = 2000 is below min_rto_ms"),
        (lambda: one_flow(sack=False, of={"stack": "ns3"}), r"flows\[0\].sack = False is not in the ns3 stack; valid: True"),
        (lambda: one_flow(timestamps=False, receiver="rledbat"), r"flows\[0\].timestamps = False beside flows\[0\].receiver"),
        (
            lambda: one_flow(receiver_host="a", receiver="rledbat", of={"hosts": [Host(name="a", timestamps=False)]}),
            r"hosts\[0\].timestamps = False beside flows\[0\].receiver",
        ),
    ],
)
def test_what_is_no_setting_of_a_flow_or_host_is_named(make, message):
    with pytest.raises(ScenarioError, match=message):
        make()


def one_flow(of=None, **settings):
    return world(flows=[Flow(path=(0,), return_path=(1,), **settings)], **(of or {}))


def test_settings_survive_a_file():
    made = one_flow(sack=False, max_rto_ms=2000.0, of={"hosts": [Host(name="a", sack=True)], "sack": False})
    assert Scenario.from_dict(made.to_dict()) == made
    assert "sack" not in world().to_dict() and "sack" not in world().to_dict()["flows"][0]


def test_defaults_are_the_kernels_and_change_nothing():
    assert world() == world(max_rto_ms=None, slow_start_after_idle=True, window_scaling=True, timestamps=True, sack=True)
    plain = nb.simulate(world(), 1).to_dict()["flows"][0]
    other = nb.simulate(world(max_rto_ms=120_000), 1).to_dict()["flows"][0]
    assert {k: v for k, v in plain.items() if v == v} == {k: v for k, v in other.items() if v == v}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_rto_ms": 999}, "max_rto_ms = 999.0 is out of range; valid: 1000 to 120000"),
        ({"max_rto_ms": 120_001}, "max_rto_ms = 120001"),
        ({"max_rto_ms": 2000, "min_rto_ms": 3000}, "min_rto_ms = 3000 exceeds max_rto_ms; valid: 1 to 2000"),
        ({"slow_start_after_idle": 1}, "slow_start_after_idle = 1"),
        ({"window_scaling": False, "stack": "ns3"}, "window_scaling = False is not in the ns3 stack; valid: True"),
        ({"timestamps": False, "stack": "ns3"}, "timestamps = False is not in the ns3 stack; valid: True"),
        ({"sack": False, "stack": "ns3"}, "sack = False is not in the ns3 stack; valid: True"),
        ({"sack": 0}, "sack = 0"),
        ({"timestamps": False, "flows": [Flow(path=(0,), return_path=(1,), receiver="rledbat")]}, "timestamps = False beside"),
    ],
)
def test_what_is_no_setting_is_named(settings, message):
    with pytest.raises(ScenarioError, match=message):
        world(**settings)


def test_a_live_world_has_the_same_sysctls():
    made = world(slow_start_after_idle=False, window_scaling=False, timestamps=False, sack=False)
    sysctls = Setup(made, Agents()).message["sysctls"]
    assert sysctls["net.ipv4.tcp_slow_start_after_idle"] == "0"
    assert sysctls["net.ipv4.tcp_window_scaling"] == "0" and sysctls["net.ipv4.tcp_timestamps"] == "0"
    assert sysctls["net.ipv4.tcp_sack"] == "0"
    usual = Setup(world(), Agents()).message
    assert usual["sysctls"]["net.ipv4.tcp_window_scaling"] == "1" and usual["mtu"] == 1500 and usual["mss"] == [1448]
    assert Setup(made, Agents()).message["mss"] == [1460]
    assert usual["sysctls"]["net.ipv4.tcp_slow_start_after_idle"] == "1" and usual["settings"] == []


@pytest.mark.parametrize("receiver", [None, "rledbat", "nuwa"])
def test_receivers_that_set_the_window_let_duplicates_be_seen_without_sack(receiver):
    lossy = scenarios.dumbbell(rate_mbps=20, rtt_ms=50, loss=0.002, buffer_packets=100, duration_s=60)
    flow = Flow(path=(0,), return_path=(1,), sack=False, receiver=receiver)
    (one,) = nb.simulate(replace(lossy, flows=[flow]), 1).flows
    assert one.timeouts <= 2 and one.fast_recoveries > 20


def test_flows_of_a_live_world_with_settings_of_their_own_have_nodes_of_their_own():
    flows = [Flow(path=(0,), return_path=(1,), **own) for own in ({}, {"sack": False}, {"sack": False}, {"max_rto_ms": 2000})]
    message = Setup(world(flows=flows), Agents()).message
    ends = [(route["sender_node"], route["receiver_node"]) for route in message["routes"]]
    assert ends == [(0, 1), (2, 3), (2, 3), (4, 5)] and message["nodes"] == 6
    assert [one["sysctls"] for one in message["settings"]][:2] == [{"net.ipv4.tcp_sack": "0"}] * 2
    hosts = [Host(name="a", sack=False), Host(name="b")]
    at_hosts = {"path": (0,), "return_path": (1,), "sender_host": "a", "receiver_host": "b"}
    message = Setup(world(flows=[Flow(**at_hosts)], hosts=hosts), Agents()).message
    assert message["hosts"][0]["sysctls"]["net.ipv4.tcp_sack"] == "0" and message["settings"] == []
    with pytest.raises(ConfigError, match=r"flows\[0\].sack = False; valid on plant 'linux': None"):
        Setup(world(flows=[Flow(**at_hosts, sack=False)], hosts=hosts), Agents())
    sends = Flow(path=(0,), return_path=(1,), sender_host="b", sack=True)
    assert uses_option("sack", sends, (hosts[1],), False)
    with pytest.raises(ConfigError, match=r"flows\[0\].sack = True; valid on plant 'linux': None: host 'b' is without it"):
        Setup(world(flows=[sends], hosts=hosts, sack=False), Agents())
    Setup(world(flows=[replace(sends, sack=None)], hosts=hosts, sack=False), Agents())
    with pytest.raises(ConfigError, match=r"flows\[0\].timestamps = False; valid on plant 'linux': None beside mss_bytes"):
        Setup(one_flow(timestamps=False, of={"mss_bytes": 1000}), Agents())
