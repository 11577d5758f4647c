"""TCP sockets as the kernel lists them."""

import socket
import struct
import time

import numpy as np
import pytest

from netbuf_gym import _core
from netbuf_gym.plants.linux import diag, tcp_info
from tests.helpers import machines
from tests.plants.linux import alone


@pytest.fixture
def connection():
    """Two ends of a connection over loopback, 3000 bytes of which nobody has read."""
    listener = socket.create_server(("127.0.0.1", 0))
    sender = socket.create_connection(listener.getsockname())
    receiver, _ = listener.accept()
    sender.send(bytes(3000))
    while len(receiver.recv(3000, socket.MSG_PEEK)) < 3000:
        time.sleep(0.001)
    yield sender, receiver
    for sock in (sender, receiver, listener):
        sock.close()


def test_tcp_info_is_the_kernels(connection):
    sender, receiver = connection
    rows = tcp_info.tcp_info([sender, receiver.fileno()])
    assert rows.shape == (2, len(tcp_info.COLUMNS))
    raw = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)
    told = dict(zip(tcp_info.COLUMNS, rows[0], strict=True))
    assert told["state"] == diag.ESTABLISHED
    assert told["mss_bytes"] == struct.unpack_from("=I", raw, 16)[0]
    assert told["cwnd_packets"] == struct.unpack_from("=I", raw, 80)[0]
    assert told["acked_bytes"] == 3001  # the SYN counts
    assert np.isnan(told["ssthresh_packets"])  # infinite yet
    assert rows[1, tcp_info.INDEX["received_bytes"]] == 3000
    one = dict(zip(tcp_info.COLUMNS, _core.tcp_info_row(sender.fileno()), strict=True))
    assert {name: one[name] for name in ("mss_bytes", "acked_bytes")} == {"mss_bytes": told["mss_bytes"], "acked_bytes": 3001}
    assert 0 < told["rtt_s"] < 1
    ends = {"sent_bytes": 208, "receive_window_bytes": 236, "timeouts": 244}
    late = [name for name, end in ends.items() if end > len(raw)]
    assert {name for name in late if not np.isnan(told[name])} == set()


def test_what_is_no_tcp_socket_is_unknown():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        assert np.isnan(tcp_info.tcp_info([sock, 10_000])).all()
        assert _core.tcp_info_row(sock.fileno()) == []


def test_a_listing_holds_both_ends(connection):
    sender, receiver = connection
    sockets = diag.TcpSockets()
    rows = sockets.list(remote_port=receiver.getsockname()[1]).rows
    assert rows.shape == (1, len(diag.COLUMNS))
    told = dict(zip(diag.COLUMNS, rows[0], strict=True))
    (cookie,) = struct.unpack("=Q", sender.getsockopt(socket.SOL_SOCKET, 57, 8))
    assert told["cookie"] == cookie
    assert told["local_address"] == 0x7F000001 and told["loopback"] == 1
    assert (told["local_port"], told["remote_port"]) == (sender.getsockname()[1], receiver.getsockname()[1])
    assert told["send_buffer_bytes"] == sender.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    other = sockets.list(local_port=receiver.getsockname()[1])
    assert other["receive_queue_bytes"][0] == 3000
    assert other["receive_queued_bytes"][0] >= 3000  # with overhead
    same = [i for name, i in diag.INDEX.items() if name in ("acked_bytes", "mss_bytes", "sent_bytes", "rtt_min_s")]
    names = [diag.COLUMNS[i] for i in same]
    direct = tcp_info.tcp_info([sender])[0, [tcp_info.INDEX[name] for name in names]]
    np.testing.assert_array_equal(rows[0, same], direct)
    assert len(sockets.list(local_port=1)) == 0
    sockets.close()


def test_connections_that_end_are_told_of_once():
    with diag.TcpSockets() as sockets:
        listener = socket.create_server(("127.0.0.1", 0))
        sender = socket.create_connection(listener.getsockname())
        receiver, _ = listener.accept()
        port = sender.getsockname()[1]
        sender.send(bytes(3000))
        assert receiver.recv(3000, socket.MSG_WAITALL)
        assert port not in sockets.ended()["local_port"]
        receiver.close()  # first, so that it is the sender's end that is not left to wait
        sender.close()
        rows = [table.select_rows(table["local_port"] == port) for table in (until_told(sockets, port), sockets.ended())]
        assert rows[0]["acked_bytes"][-1] == 3002 and len(rows[1]) == 0  # SYN and FIN count
        listener.close()


def until_told(sockets, port):
    """What ended, once a connection from this port did."""
    for _ in range(200):
        table = sockets.ended()
        if port in table["local_port"]:
            return table
        time.sleep(0.01)
    raise AssertionError("nothing is told of a connection that ended")


def test_a_socket_that_is_closed():
    sockets = diag.TcpSockets()
    sockets.close()
    with pytest.raises(OSError, match="cannot be asked for its TCP sockets"):
        sockets.list()


def sockstat() -> dict:
    """What is told of a namespace with two ends of a connection."""
    listener = socket.create_server(("127.0.0.1", 0))
    ends = [socket.create_connection(listener.getsockname()), listener.accept()[0]]
    stat = diag.Sockstat()
    told = stat.read()
    stat.close()
    return {**told, "ends": len(ends)}


def test_memory_of_the_namespace():
    machines.needs_live_worlds()
    told = alone.run(__name__, "sockstat")
    assert told["connections"] == told["ends"] + 1
    assert told["memory_bytes"] >= 0 and told["memory_bytes"] % diag.PAGE_BYTES == 0
