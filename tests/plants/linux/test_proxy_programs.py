"""The programs behind a live world's proxy: what they do when something breaks, and how it is seen."""

import json

import pytest

from tests.helpers.namespaces import ROOT

pytestmark = pytest.mark.skipif(not ROOT, reason="enters network namespaces, which takes root")

SETUP = """
import json, os, signal, socket, subprocess, time
from netbuf_gym.plants.linux import system
from netbuf_gym.plants.linux.host_meter import HostMeter
from netbuf_gym.plants.linux.proxy.health import HealthProbe
from netbuf_gym.plants.linux.proxy.processes import start_script
from netbuf_gym.plants.linux.proxy.sockets import clamp_windows
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
here = os.open("/proc/self/ns/net", os.O_RDONLY)
TARGET, RELAY = ("127.0.0.1", 9000), ("127.0.0.1", 9001)

def load(**plan):
    plain = {"bulk": [], "arrivals_per_s": 0, "sizes": [[2000], [1]], "page": [1, 1], "think_s": 0, "seed": 1}
    return start_script("load", here, json.dumps({**plain, "connect": TARGET, "socks": None, "bind": None, **plan}))

def told(load):
    return json.loads(load.process.stdout.readline())

def pair():
    listener = socket.create_server(("127.0.0.1", 0))
    near = socket.create_connection(listener.getsockname())
    return near, listener.accept()[0]
"""


@pytest.mark.slow
def test_a_bulk_connection_that_breaks_is_opened_again(namespace):
    code = """
target = start_script("target", here, *TARGET)
clients = load(bulk=[{"start_s": 0.0}])
first = told(clients)
target.close()
time.sleep(0.2)
target = start_script("target", here, *TARGET)
for _ in range(4):
    last = told(clients)
print(json.dumps([first, last]))
"""
    first, last = json.loads(namespace.python(SETUP + code))
    assert first["failures"] == 0 < first["received_bytes"] and first["why"] == ""
    assert last["failures"] >= 1 and last["why"] and last["connections"] == 1
    assert last["received_bytes"] > 2 * first["received_bytes"]


@pytest.mark.slow
def test_clients_that_are_refused_say_so(namespace):
    code = "told_of = load(arrivals_per_s=50); told(told_of); print(json.dumps(told(told_of)))"
    said = json.loads(namespace.python(SETUP + code))
    assert said["failures"] > 20 and said["why"] == "Connection refused" and said["completed"] == 0
    assert said["connections"] <= 1  # one may just be on its way


@pytest.mark.release
def test_clients_go_on_when_nobody_reads_what_they_say(namespace):
    code = """
target = start_script("target", here, *TARGET)
clients = load(bulk=[{"start_s": 0.0}])
pipe = os.open(f"/proc/{clients.process.pid}/fd/1", os.O_WRONLY | os.O_NONBLOCK)
try:
    while True:
        os.write(pipe, b"x" * 64)
except BlockingIOError:
    pass
time.sleep(2.2)  # two times it says something
meter = HostMeter(local=True)
time.sleep(1)
print(meter.measure()["received_bytes"] > 1e6, clients.alive)
"""
    assert namespace.python(SETUP + code) == "True True\n"


@pytest.mark.slow
def test_a_proxy_that_has_stopped_is_found(namespace):
    code = """
def look(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        health.look(time.monotonic())
        time.sleep(0.02)
target, relay = start_script("target", here, *TARGET), start_script("relay", here, *RELAY, *TARGET)
health = HealthProbe("relay", here, RELAY, each_s=0.1, patience_s=1.0)
look(1.5)
with socket.create_connection(RELAY) as one:  # it outlives connections that say nothing
    one.sendall((1).to_bytes(8, "big"))
    print(one.recv(1))
relay.process.send_signal(signal.SIGSTOP)
try:
    look(5)
except RuntimeError as error:
    print(error)
relay.process.send_signal(signal.SIGCONT)
time.sleep(0.5)  # to take the connection that waits
look(1)
health.close()
"""
    assert namespace.python(SETUP + code) == "b'\\x00'\nrelay: it runs, but has taken no connection for 1 s\n"


@pytest.mark.slow
def test_windows_of_another_process_are_clamped(namespace):
    code = """
target, relay = start_script("target", here, *TARGET), start_script("relay", here, *RELAY, *TARGET)
client = socket.create_connection(RELAY)
time.sleep(0.3)
print(clamp_windows(relay.process.pid, 20_000), end=" ")
process, found = system.pidfd_open(relay.process.pid), []
for number in range(20):
    try:
        one = socket.socket(fileno=system.pidfd_getfd(process, number))
        one.getpeername()
    except OSError:
        continue
    found.append(one.getsockopt(socket.IPPROTO_TCP, 10))
print(found)
relay.close()
print(clamp_windows(relay.process.pid, 20_000) if os.path.exists(f"/proc/{relay.process.pid}") else "gone")
"""
    assert namespace.python(SETUP + code) == "2 [20000, 20000]\ngone\n"


def test_a_relays_own_ends_behind_it_are_memory_too(namespace):
    code = """
near, far = pair()
far.setblocking(False)
try:
    while True:
        far.send(bytes(50_000))  # until both ends hold all that they can
except BlockingIOError:
    time.sleep(0.5)
ports = [near.getpeername()[1]], [near.getsockname()[1]]
meters = HostMeter(), *(HostMeter(behind=port) for port in ports), HostMeter(local=True)
print(json.dumps([[found["memory_bytes"], found["connections"]] for found in (meter.measure() for meter in meters)]))
"""
    none, relay, target, both = json.loads(namespace.python(SETUP + code))
    assert none == [0, 0] and min(relay[0], target[0]) > 50_000 and relay[1] == 0
    assert both[0] == relay[0] + target[0] and both[1] == 2
