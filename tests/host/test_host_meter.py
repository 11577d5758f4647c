"""What is measured of a host's connections, those that come and go between two looks too."""

import json

import pytest

SETUP = """
import json, socket, time
from netbuf_gym.plants.linux.host_meter import HostMeter
listener = socket.create_server(("127.0.0.1", 0), backlog=600)
def pair():
    near = socket.create_connection(listener.getsockname())
    return near, listener.accept()[0]
def pass_on(near, far, count):
    near.sendall(b"x" * count)
    while count:
        count -= len(far.recv(count))
"""


@pytest.mark.slow
def test_lasting_and_passing_connections(namespace):
    code = """
meter = HostMeter(local=True)
near, far = pair()
pass_on(near, far, 50_000)
meter.look()
for _ in range(5):
    one, other = pair(); pass_on(one, other, 3_000); one.close(); other.close()
time.sleep(0.1)
first = meter.measure()
pass_on(near, far, 20_000); near.close(); far.close()
time.sleep(0.1)
second, third = meter.measure(), meter.measure()
meter.close()
print(json.dumps([first, second, third]))
"""
    first, second, third = json.loads(namespace.python(SETUP + code))
    assert abs(first["sent_bytes"] - 65_000) < 30 and abs(first["received_bytes"] - 65_000) < 30  # SYN and FIN count as bytes
    assert (first["connections"], first["connections_opened"], first["connections_closed"]) == (2, 12, 10)
    assert first["flows_sending"] == 6 and first["packets_retransmitted"] == 0 and first["loss"] == 0
    assert abs(second["sent_bytes"] - 20_000) < 30 and second["connections_closed"] == 2 and second["connections"] == 0
    assert third["sent_bytes"] == 0 and third["connections_closed"] == 0 and third["flows_sending"] == 0


def test_the_loopback_device_is_left_out(namespace):
    code = """
meter = HostMeter()
near, far = pair(); pass_on(near, far, 1000)
found = meter.measure()
print(found["connections"], found["sent_bytes"])
"""
    assert namespace.python(SETUP + code) == "0.0 0.0\n"


@pytest.mark.release
def test_a_thousand_connections(namespace):
    code = """
pairs = [pair() for _ in range(500)]
meter = HostMeter(local=True)
for near, far in pairs: pass_on(near, far, 100)
found = meter.measure()
def best(what):
    took = []
    for _ in range(20):
        begin = time.thread_time(); what(); took.append(time.thread_time() - begin)
    return min(took)
print(found["connections"], found["flows_sending"], best(meter.look), best(meter.measure))
"""
    connections, sending, look_s, measure_s = map(float, namespace.python(SETUP + code).split())
    assert (connections, sending) == (1000, 500)
    assert look_s < 0.01 and measure_s < 0.015  # of the processor; 1 to 4 ms on two slow cores
