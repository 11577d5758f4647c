"""The log of packets: it changes nothing, counts what results count, and its capture holds right headers."""

import csv
import io
import ipaddress
import json
import shutil
import struct
import subprocess
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import scenarios
from netbuf_gym.errors import ConfigError
from netbuf_gym.scenarios import Sized, UdpSource

FIN, SYN, RST, PSH, ACK, ECE, CWR = 1, 2, 4, 8, 16, 64, 128


class Captured(NamedTuple):
    time_ns: int
    length: int
    tos: int
    source: str
    target: str
    protocol: int
    ports: tuple = ()
    sequence: int = 0
    ack: int = 0
    bits: int = 0
    window: int = 0
    options: dict = {}
    payload: int = 0


def words(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total >> 16) + (total & 0xFFFF)
    return total


def read_pcap(path):
    """Read a capture of raw IPv4 strictly, checksums and lengths included (payloads are zeros)."""
    data = path.read_bytes()
    magic, major, minor, zone, digits, snap, link = struct.unpack_from("<IHHiIII", data)
    assert (magic, major, minor, zone, digits, link) == (0xA1B23C4D, 2, 4, 0, 0, 101)
    at, found = 24, []
    while at < len(data):
        seconds, nanoseconds, stored, length = struct.unpack_from("<IIII", data, at)
        packet = data[at + 16 : at + 16 + stored]
        at += 16 + stored
        assert stored == len(packet) <= snap and stored <= length and nanoseconds < 10**9
        assert packet[0] == 0x45 and words(packet[:20]) == 0xFFFF and struct.unpack_from(">H", packet, 2)[0] == length
        source, target = (str(ipaddress.ip_address(packet[i : i + 4])) for i in (12, 16))
        head = (seconds * 10**9 + nanoseconds, length, packet[1], source, target, packet[9])
        if packet[9] == 17:
            found.append(Captured(*head, ports=struct.unpack_from(">HH", packet, 20)))
            assert struct.unpack_from(">H", packet, 24)[0] == length - 20
            continue
        tcp = packet[20:]
        assert words(packet[12:20] + struct.pack(">HH", 6, length - 20) + tcp) == 0xFFFF
        near, far, sequence, ack, offset, bits, window = struct.unpack_from(">HHIIBBH", tcp)
        assert (offset >> 4) * 4 == len(tcp)
        head += ((near, far), sequence, ack, bits, window, read_options(tcp[20:]), length - stored)
        found.append(Captured(*head))
    return found


def read_options(data):
    found = {}
    while data and data[0] != 0:
        if data[0] == 1:
            data = data[1:]
            continue
        kind, size = data[0], data[1]
        assert 2 <= size <= len(data)
        found[kind] = data[2:size]
        data = data[size:]
    return found


def run(scenario, seed=1):
    plain, logged = nb.simulate(scenario, seed), nb.simulate(scenario, seed, packets=True)
    assert json.dumps(plain.to_dict()) == json.dumps(logged.to_dict())
    assert not len(plain.packets)
    return logged


def data_of(packets, flow, event):
    mine = packets[(packets["flow"] == flow) & ~packets["to_sender"] & (packets["event"] == event)]
    return mine[np.isin(mine["kind"], ["data", "fin"])]


WORLDS = {
    "one link": {"senders": ["cubic"], "buffer_packets": 20},
    "both ways": {"senders": ["cubic", "bbr"], "reverse": ["newreno"], "loss": 0.01},
    "access": {"senders": ["cubic"] * 2, "access_mbps": 100, "access_delay_ms": 1, "buffer_packets": 15},
    "ns3": {"senders": ["newreno", "cubic"], "stack": "ns3", "buffer_packets": 20, "loss": 0.002},
    "codel": {"senders": ["cubic", "newreno"], "discipline": "codel", "ecn": True},
    "prague": {"senders": ["prague"], "discipline": {"name": "dualpi2"}},
}


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_the_log_changes_nothing_and_counts_what_results_count(world):
    result = run(scenarios.dumbbell(**world, duration_s=6))
    packets = result.packets
    assert (np.diff(packets["time_s"]) >= 0).all()
    for i, flow in enumerate(result.flows):
        sent, arrived = data_of(packets, i, "sent"), data_of(packets, i, "received")
        lost, dropped = data_of(packets, i, "lost"), data_of(packets, i, "dropped")
        assert (len(sent), len(lost), len(dropped)) == (flow.packets_sent, flow.random_losses, flow.queue_drops)
        assert len(set(sent["sequence"].tolist())) == flow.packets_sent - flow.packets_retransmitted
        delay_s = arrived["time_s"] - arrived["stamp_s"]
        assert delay_s.min() >= result.scenario.propagation_rtt_ms(i) * 0.5e-3
        acks = packets[(packets["flow"] == i) & packets["to_sender"] & (packets["event"] == "received")]
        assert abs(len(acks) - flow.acks_received) <= 1  # but for the SYN-ACK
        assert acks["acknowledgement"].max() <= 1 + flow.delivered_bytes
    for index, link in enumerate(result.links):
        at = packets[packets["link"] == index]
        assert (at["event"] == "dropped").sum() == link.queue_drops
        assert (at["event"] == "lost").sum() == link.random_losses
    if world.get("ecn"):
        marks = sum(flow.marks for flow in result.flows)
        assert marks == sum((data_of(packets, i, "received")["ecn"] == "CE").sum() for i in range(2)) > 0


@pytest.mark.parametrize("point", ["sender", "receiver"])
@pytest.mark.parametrize("stack", ["linux", "ns3"])
def test_a_capture_holds_a_whole_connection(tmp_path, stack, point):
    size = 100_000
    world = scenarios.dumbbell(app=Sized(size_bytes=size), rate_mbps=5, rtt_ms=40, loss=0.03, stack=stack, duration_s=30)
    result = run(world, seed=3)
    assert result.flows[0].completion_s is not None and result.flows[0].random_losses
    result.write_pcap(tmp_path / "a.pcap", point)
    found = read_pcap(tmp_path / "a.pcap")
    assert [one.time_ns for one in found] == sorted(one.time_ns for one in found)
    there = [one for one in found if one.source == "10.0.0.1"]
    back = [one for one in found if one.source == "10.128.0.1"]
    assert len(there) + len(back) == len(found) and {one.ports for one in there} == {(40000, 5001)}
    assert there[0].bits == SYN and there[0].sequence == 0 and back[0].bits == SYN | ACK and back[0].ack == 1
    for opening in (there[0], back[0]):
        assert opening.options[3] == b"\x07" and 4 in opening.options and len(opening.options[8]) == 8
        assert stack == "ns3" or opening.options[2] == struct.pack(">H", 1460)
    data = [one for one in there if one.payload]
    covered = np.zeros(size, bool)
    for one in data:
        covered[one.sequence - 1 : one.sequence - 1 + one.payload] = True
        assert one.bits & ACK and one.ack == 1 and one.payload <= 1448
    assert covered.all() or point == "receiver"
    assert any(one.bits & FIN and one.sequence + one.payload == size + 1 for one in data)
    assert max(one.ack for one in back) == size + 2  # the FIN takes a number
    assert any(5 in one.options for one in back)
    for one in back:
        if blocks := one.options.get(5):
            ends = struct.unpack(f">{len(blocks) // 4}I", blocks)
            assert all(a < b for a, b in zip(ends[::2], ends[1::2], strict=True)) and min(ends) >= one.ack
    sent = {struct.unpack(">II", one.options[8])[0] for one in there if 8 in one.options}
    echoes = {struct.unpack(">II", one.options[8])[1] for one in back if 8 in one.options}
    assert echoes <= sent or point == "sender"
    for one in there[1:]:
        assert 8 not in one.options or struct.unpack(">II", one.options[8])[1] > 0


def test_marks_show_in_headers(tmp_path):
    result = run(scenarios.dumbbell(senders=["cubic"], discipline="codel", ecn=True, rate_mbps=5, duration_s=8))
    for point in ("sender", "receiver"):
        result.write_pcap(tmp_path / point, point)
    here, there = read_pcap(tmp_path / "sender"), read_pcap(tmp_path / "receiver")
    assert {one.tos for one in here if one.payload} == {2} and {one.tos for one in there if one.payload} == {2, 3}
    opening, others = here[:2], here[2:]
    assert [one.bits for one in opening] == [SYN | ECE | CWR, SYN | ACK | ECE]  # RFC 3168, 6.1.1
    assert any(one.bits & ECE for one in others) and any(one.bits & CWR for one in others)


def test_finite_flows_and_datagrams_are_logged(tmp_path):
    world = scenarios.get("rlbm/default", hosts=4, load=0.9, duration_s=20)
    port = world.links[world.bottleneck].name
    source = UdpSource(path=(port,), rate_mbps=1, packet_bytes=200)
    result = run(replace(world, udp=[source]))
    packets = result.packets
    assert result.traffic.flows_started > 10  # more than there are at a time
    opened = packets[(packets["kind"] == "syn") & (packets["event"] == "sent")]
    flows = len(result.scenario.flows)
    assert sorted(set(opened["flow"].tolist())) == list(range(flows, flows + result.traffic.flows_started))
    sent = packets[(packets["event"] == "sent") & ~packets["to_sender"] & np.isin(packets["kind"], ["data", "fin"])]
    assert len(sent) == result.traffic.packets_sent + sum(flow.packets_sent for flow in result.flows)
    datagrams = packets[packets["udp"] == 0]
    assert (datagrams["event"] == "sent").sum() == result.udp[0].packets_sent
    assert (datagrams["event"] == "received").sum() == result.udp[0].packets_received
    result.write_pcap(tmp_path / "a")
    found = read_pcap(tmp_path / "a")
    assert sum(one.protocol == 17 and one.length == 200 for one in found) == result.udp[0].packets_sent


def test_the_commands_files_are_those_of_the_result(tmp_path, capsys):
    from netbuf_gym.cli.program import main

    given = ["simulate", "--set", "loss=0.01", "--duration", "2", "--seed", "5"]
    assert main([*given, "--pcap", str(tmp_path / "a.pcap"), "--packets", str(tmp_path / "a.csv")]) == 0
    result = nb.simulate(scenarios.dumbbell(loss=0.01, duration_s=2), 5, packets=True)
    result.write_pcap(tmp_path / "b.pcap")
    assert (tmp_path / "a.pcap").read_bytes() == (tmp_path / "b.pcap").read_bytes()
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text())))
    assert len(rows) == len(result.packets)
    for row, one in zip(rows, result.packets, strict=True):
        assert row["event"] == one["event"] and float(row["time_s"]) == pytest.approx(one["time_s"], abs=1e-9)
        assert row["link"] == ("bottleneck" if one["event"] == "lost" else "") and row["udp"] == ""


def test_what_cannot_be_logged_is_refused(tmp_path):
    world = scenarios.dumbbell(duration_s=1)
    with pytest.raises(ConfigError, match="packets = True on plant 'linux'"):
        nb.simulate(world, plant="linux", packets=True)
    with pytest.raises(ConfigError, match="packets = False"):
        nb.simulate(world).write_pcap(tmp_path / "a")
    with pytest.raises(ConfigError, match="point = 'middle'"):
        nb.simulate(world, packets=True).write_pcap(tmp_path / "a", "middle")


@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")
def test_tshark_reads_the_capture(tmp_path):
    nb.simulate(scenarios.dumbbell(loss=0.01, duration_s=3), packets=True).write_pcap(tmp_path / "a.pcap")
    read = ["tshark", "-r", str(tmp_path / "a.pcap"), "-o", "ip.check_checksum:TRUE", "-T", "fields", "-e"]
    lengths = subprocess.run([*read, "ip.len"], capture_output=True, text=True, check=True).stdout.split()
    assert lengths == [str(one.length) for one in read_pcap(tmp_path / "a.pcap")]
    bad = subprocess.run([*read, "_ws.malformed"], capture_output=True, text=True, check=True).stdout.split()
    assert not bad
