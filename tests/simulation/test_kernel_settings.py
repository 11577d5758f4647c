"""Settings of the kernel as scenarios have them: what each changes, by hand and as Linux' sources have it."""

from dataclasses import replace

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import scenarios
from netbuf_gym.errors import ScenarioError
from netbuf_gym.plants.linux.setup import Agents, Setup
from netbuf_gym.scenarios import Flow, Host, Link, LossSchedule, OnOff, Scenario, Sized
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


def test_a_repeated_syn_gives_no_sample_and_its_time_out_stays():
    """tcp_ack_update_rtt: without time stamps nobody knows which copy was answered; the RTO stays at 2 s (icsk_rto)."""
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
    assert 1 <= repeats(bare)[0] <= 2.1


@pytest.mark.parametrize("cc", sorted(set(scenarios.congestion_controls("linux")) - {"agent"}))
def test_every_congestion_control_does_without_time_stamps_and_scaling(cc):
    late = LossSchedule([0, 0.5], [1, 0.01])
    made = scenarios.dumbbell(senders=[cc], rate_mbps=5, rtt_ms=40, loss=late, duration_s=20)
    result = nb.simulate(replace(made, timestamps=False, window_scaling=False), 2)
    assert result.flows[0].goodput_mbps > 0.2


def test_defaults_are_the_kernels_and_change_nothing():
    assert world() == world(max_rto_ms=None, slow_start_after_idle=True, window_scaling=True, timestamps=True)
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
        ({"timestamps": False, "flows": [Flow(path=(0,), return_path=(1,), receiver="rledbat")]}, "timestamps = False beside"),
    ],
)
def test_what_is_no_setting_is_named(settings, message):
    with pytest.raises(ScenarioError, match=message):
        world(**settings)


def test_a_live_world_has_the_same_sysctls():
    made = world(slow_start_after_idle=False, window_scaling=False, timestamps=False)
    sysctls = Setup(made, Agents()).message["sysctls"]
    assert sysctls["net.ipv4.tcp_slow_start_after_idle"] == "0"
    assert sysctls["net.ipv4.tcp_window_scaling"] == "0" and sysctls["net.ipv4.tcp_timestamps"] == "0"
    usual = Setup(world(), Agents()).message
    assert usual["sysctls"]["net.ipv4.tcp_window_scaling"] == "1" and usual["mtu"] == 1500 and usual["headers"] == 52
    assert Setup(made, Agents()).message["headers"] == 40
    assert "net.ipv4.tcp_slow_start_after_idle" not in usual["sysctls"]
