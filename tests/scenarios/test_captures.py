import struct

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios import Link, PacketReplay, Scenario, UdpSource
from netbuf_gym.scenarios.captures import read_capture

PACKETS = [(1_700_000_000, 250_000, 1500), (1_700_000_000, 250_001, 40), (1_700_000_002, 0, 9000)]


def classic(packets=PACKETS, order="<", magic=0xA1B2C3D4, version=(2, 4), unit=1):
    data = struct.pack(order + "IHHiIII", magic, *version, 0, 0, 64, 1)
    for second, micro, length in packets:
        data += struct.pack(order + "IIII", second, micro * unit, min(length, 64), length) + bytes(min(length, 64))
    return data


def block(kind, body, order="<"):
    body += bytes(-len(body) % 4)
    size = 12 + len(body)
    return struct.pack(order + "II", kind, size) + body + struct.pack(order + "I", size)


def pcapng(packets=PACKETS, order="<", resolution=b"", per_s=10**6, offset_s=0):
    data = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)
    options = b""
    if resolution:
        options += struct.pack(order + "HH", 9, 1) + resolution + bytes(3)
    if offset_s:
        options += struct.pack(order + "HHq", 14, 8, offset_s)
    data += block(1, struct.pack(order + "HHI", 1, 0, 64) + options + struct.pack(order + "HH", 0, 0), order)
    data += block(4, b"name", order)  # to be passed over
    for second, micro, length in packets:
        ticks = (second - offset_s) * per_s + micro * per_s // 10**6
        body = struct.pack(order + "IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, min(length, 64), length)
        data += block(6, body + bytes(min(length, 64)), order)
    return data


@pytest.mark.parametrize(
    "data",
    [
        classic(),
        classic(order=">"),
        classic(magic=0xA1B23C4D, unit=1000),
        pcapng(),
        pcapng(order=">"),
        pcapng(resolution=b"\x09", per_s=10**9, offset_s=1_699_999_999),
        pcapng(resolution=b"\x94", per_s=2**20),
        classic(PACKETS[::-1]),  # in order of time
    ],
)
def test_captures(tmp_path, data):
    (tmp_path / "c.cap").write_bytes(data)
    time_s, lengths = read_capture(tmp_path / "c.cap")
    assert time_s == pytest.approx([0, 1e-6, 1.75], abs=1e-6 if b"\x94" in data else 2e-9) and lengths.tolist() == [
        1500,
        40,
        9000,
    ]
    replay = PacketReplay.read(tmp_path / "c.cap", path=[0], header_bytes=14, start_s=1)
    assert replay.packet_bytes.tolist() == [1486, 26, 8986] and replay.start_s == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (classic()[:-1], "ends within a packet, or holds a damaged one"),
        (classic()[:23], "ends within its header; valid: 24 bytes or more"),
        (classic()[:6], "ends within its header; valid: 24 bytes or more"),
        (classic([]), "holds no packets; valid: at least one"),
        (classic(version=(1, 0)), "is pcap of version 1.0; valid: 2.4"),
        (classic([(1, 2_000_000, 60)]), "ends within a packet, or holds a damaged one"),
        (pcapng()[:-4], "has a block of 96 bytes at byte"),
        (pcapng([]), "holds no packets"),
        (pcapng()[:28] + block(6, bytes(20)), "has a packet of interface 0; valid: one that the section describes"),
        (pcapng()[:28] + block(6, bytes(4)), "ends within a block"),
        (pcapng([]) + block(3, bytes(8)), "has packets without time stamps"),
        (pcapng([]) + struct.pack("<III", 5, 0, 0), "has a block of 0 bytes at byte"),
        (pcapng(resolution=b"\xff"), "resolution of time is 255"),
        (b"\x0a\x0d\x0d\x0a" + bytes(20), "has a section without a byte order"),
        (classic([(1, 0, 0)]), r"replay.packet_bytes\[0\] = 0 is out of range; valid: 1 to 65535"),
        (classic([(0, 0, 60), (2_000_000, 0, 60)]), r"replay.time_s\[1\] = 2e\+06 is out of range"),
        (b"time_s,size\n1,2\n", "header = 'time_s,size'; valid: time_s,packet_bytes"),
        (b"time_s,packet_bytes\n1,x\n", ":2: packet_bytes = 'x' is not a number"),
        (b"time_s,packet_bytes\n1\n", ":2: has 1 fields; valid: 2"),
        (b"\xff\xfe\x00", "is not text"),
    ],
)
def test_damaged(tmp_path, data, message):
    (tmp_path / "c.cap").write_bytes(data)
    with pytest.raises(ScenarioError, match=message) as raised:
        PacketReplay.read(tmp_path / "c.cap", path=[0])
    assert "c.cap" in str(raised.value) and "\n" not in str(raised.value)


def test_no_file(tmp_path):
    for name in ("none.pcap", "."):
        with pytest.raises(ScenarioError, match="cannot be read"):
            PacketReplay.read(tmp_path / name, path=[0])


def one_link(*udp, duration_s=1.0, **link):
    return Scenario(links=[Link(name="bottleneck", **{"rate_mbps": 8} | link)], udp=udp, duration_s=duration_s)


def test_replay_of_a_csv(tmp_path):
    (tmp_path / "p.csv").write_text("packet_bytes,time_s\n1000,5.5\n500,5.25\n2000,5.5\n")
    replay = PacketReplay.read(tmp_path / "p.csv", path=["bottleneck"], start_s=0.1, name="r")
    assert replay.time_s.tolist() == [0, 0.25, 0.25] and replay.packet_bytes.tolist() == [500, 1000, 2000]
    assert replay.mean_mbps == pytest.approx(3500 * 8e-6 / 0.25)
    result = nb.simulate(one_link(replay, delay_ms=5), packets=True)
    got = result.packets[result.packets["event"] == "received"]
    assert got["time_s"] == pytest.approx([0.1055, 0.356, 0.358], abs=1e-9) and got["wire_bytes"].tolist() == [500, 1000, 2000]
    source = result.udp["r"]
    assert source.sent_mbps == pytest.approx(3500 * 8e-6) and source.delay_mean_ms == pytest.approx((5.5 + 6 + 8) / 3)


def test_replay_starts_again():
    replay = PacketReplay(path=[0], time_s=[0, 0.1], packet_bytes=[100, 200], period_s=0.3, stop_s=0.95)
    result = nb.simulate(one_link(replay), packets=True)
    sent = result.packets[result.packets["event"] == "sent"]
    assert sent["time_s"] == pytest.approx([0, 0.1, 0.3, 0.4, 0.6, 0.7, 0.9])
    assert sent["wire_bytes"].tolist() == [100, 200, 100, 200, 100, 200, 100]


def test_own_capture_replays(tmp_path):
    first = nb.simulate(one_link(UdpSource(path=[0], rate_mbps=2, packet_bytes="imix", arrivals="poisson")), packets=True)
    first.write_pcap(tmp_path / "own.pcap")
    replay = PacketReplay.read(tmp_path / "own.pcap", path=[0])
    sent = first.packets[first.packets["event"] == "sent"]
    assert np.allclose(replay.time_s, sent["time_s"] - sent["time_s"][0], atol=2e-9)
    assert (replay.packet_bytes == sent["wire_bytes"]).all() and len(replay.time_s) > 500


def test_json_keeps_replays():
    made = one_link(PacketReplay(path=[0], time_s=[0, 0.1], packet_bytes=[100, 200], period_s=0.3, name="again"))
    data = made.to_dict()
    assert data["udp"][0]["kind"] == "replay" and data["udp"][0]["time_s"] == [0, 0.1]
    assert Scenario.from_dict(data) == made and hash(made.udp[0]) == hash(Scenario.from_dict(data).udp[0])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"time_s": [1, 0]}, r"replay.time_s\[1\] = 0 is before 1; valid: times that do not fall"),
        ({"time_s": [0]}, "replay.packet_bytes has 2 values for 1 in time_s"),
        ({"time_s": []}, "replay.time_s has 0 values; valid: 1 to 5000000"),
        ({"time_s": [0, float("nan")]}, r"replay.time_s\[1\] = nan is out of range"),
        ({"packet_bytes": [1, 1.5]}, r"replay.packet_bytes\[1\] = 1.5; valid: whole numbers"),
        ({"packet_bytes": "12"}, "replay.packet_bytes = '12' is not a list of numbers"),
        ({"period_s": 1}, "replay.period_s = 1 is not above the last time_s, 1"),
        (
            {"time_s": [0, 0], "period_s": 1e-9},
            "replay.period_s = 1e-09 for 2 packets is more than 1e9 packets a second; valid: 2e-09 or more",
        ),
    ],
)
def test_refused(fields, message):
    with pytest.raises(ScenarioError, match=message):
        PacketReplay(**{"path": [0], "time_s": [0, 1], "packet_bytes": [1, 2]} | fields)
