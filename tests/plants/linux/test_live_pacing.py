"""Senders by parameters on the kernel: packets that are paced, decisions that take time."""

import math
import os
import socket
import struct
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from netbuf_gym.plants.linux.kinds import sender as senders
from netbuf_gym.plants.linux.world import LiveWorld
from netbuf_gym.tasks.congestion_window.telemetry import sender
from tests.helpers import machines
from tests.helpers.busy_machine import undisturbed
from tests.plants.linux import alone
from tests.plants.linux.test_live_windows import BDP, path, run

MS = 1_000_000


def low_and_high(step):
    """Windows that grow threefold every third interval: of 24 packets two thirds may leave at once."""
    return {"cwnd_bytes": (0.6 if step % 3 == 2 else 0.2) * BDP}


def drops(plant, paced):
    """Packets that a queue of 8 drops while windows grow, and shrink, by two thirds."""
    _, told, about = run(plant, path(buffer_packets=8), sender(paced), low_and_high, 18)
    return told["queue_drops"], about


@pytest.mark.slow
@undisturbed
def test_the_kernel_paces_where_the_simulator_does():
    machines.needs_bpf()
    assert drops("linux", True)[0] == drops("sim", True)[0] == 0
    burst, simulated = drops("linux", False)[0], drops("sim", False)[0]
    assert burst >= 8 and simulated >= 8


def paced_from_user_space():
    """What drops and windows are without privileges, a line each."""
    for paced in (True, False):
        dropped, about = drops("linux", paced)
        print(about["window"], dropped, sep="\t")


@pytest.mark.release
@undisturbed
def test_windows_kept_from_user_space_are_paced_too():
    machines.needs_user_namespaces()
    code = "from tests.plants.linux import test_live_pacing as t; t.paced_from_user_space()"
    command = ["unshare", "-Ur", sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(alone.CHECKOUT)}
    child = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert child.returncode == 0, child.stderr
    (window, paced), (_, unpaced) = (line.split("\t") for line in child.stdout.splitlines()[-2:])
    assert window.startswith("from user space")
    assert int(paced) < int(unpaced) / 2


@pytest.mark.slow
@undisturbed
def test_a_decision_that_takes_time_is_in_force_that_much_later():
    machines.needs_bpf()

    def in_flight(plant, late_s):
        """Mean of the interval in which a window of 1.2 products is doubled; acknowledgements come all the time."""
        kind = sender(latency_s=(late_s, late_s))
        rows, *_ = run(plant, path(), kind, lambda step: {"cwnd_bytes": (2.4 if step == 8 else 1.2) * BDP}, 9)
        return rows["bytes_in_flight_mean"][8] / BDP

    at_once, late = in_flight("linux", 0.0), in_flight("linux", 0.07)
    assert at_once == pytest.approx(in_flight("sim", 0.0), abs=0.1)
    assert late == pytest.approx(in_flight("sim", 0.07), abs=0.1)
    assert late < at_once - 0.4


@pytest.mark.slow
@undisturbed
def test_windows_below_two_segments_are_kept_by_their_pace_on_the_kernel_as_in_the_simulator():
    machines.needs_bpf()

    def acknowledged(plant, segments):
        """Mean of segments acknowledged in a mean round trip, and round trip in ms, of a window of so many segments."""
        kind = sender(True, fine=True)
        rows, *_ = run(plant, path(), kind, lambda step: {"cwnd_bytes": segments * 1448 if step > 3 else math.nan}, 60)
        assert rows["cwnd_bytes"][-1] == pytest.approx(segments * 1448, abs=1)
        rtt_s = np.nanmean(rows["rtt_mean_s"][20:])
        return rows["segments_acked_sum"][20:].sum() / rows["elapsed_s"][20:].sum() * rtt_s, rtt_s * 1e3

    for segments in (0.25, 0.75):  # the latter meets delayed ACKs: a packet a round trip
        (simulated, simulated_ms), (kernel, kernel_ms) = (acknowledged(plant, segments) for plant in ("sim", "linux"))
        assert simulated == pytest.approx(segments, rel=0.1) and kernel == pytest.approx(segments, rel=0.25)
        assert kernel_ms == pytest.approx(simulated_ms, rel=0.25)


def test_fine_windows_from_user_space_are_whole_segments_at_their_pace():
    def make(window, **changed):
        kind = senders.Kind.__new__(senders.Kind)
        kind.places, kind._paced, kind._fine, kind._windows = [0], True, True, [window]
        kind.world = SimpleNamespace(setup={"mss": [1000]})
        kind._then = [{"mss_bytes": 1000, "unacked_packets": 1, "rtt_min_s": 0.05, "rtt_s": 0.08} | changed]
        return kind

    assert [make(window)._fill_segments(0, window) for window in (250, 1000, 1500, 2500)] == [1000, 1000, 2000, 2500]
    assert [make(window)._find_window(0, 9000, 1000, False) for window in (10, 250, 1500, 9000)] == [62.5, 250, 1500, 9000]
    assert [make(window)._find_window(0, 1000, 1000, True) for window in (250, 9000, math.nan)] == [250, 1000, 1000]
    with socket.socket() as sock:
        kind = make(250)
        kind.world.flows = SimpleNamespace(sender_fd=lambda flow: os.dup(sock.fileno()))
        kind._pace(0)
        assert struct.unpack("=Q", sock.getsockopt(socket.SOL_SOCKET, senders.SO_MAX_PACING_RATE, 8))[0] == round(250 / 0.08)


def test_reno_paces_no_faster_than_the_window_in_user_space_would_be():
    def rate(window, **changed):
        with socket.socket() as sock:
            kind = senders.Kind.__new__(senders.Kind)
            kind.places, kind._paced, kind._windows = [0], True, [window]
            kind.world = SimpleNamespace(flows=SimpleNamespace(sender_fd=lambda flow: os.dup(sock.fileno())))
            then = {"mss_bytes": 1000, "unacked_packets": 5, "rtt_min_s": 0.05}
            kind._then = [then | changed]
            kind._pace(0)
            return struct.unpack("=Q", sock.getsockopt(socket.SOL_SOCKET, senders.SO_MAX_PACING_RATE, 8))[0]

    assert rate(50_000) == 1.2 * 50_000 / 0.05
    assert rate(2000) == 1.2 * 5000 / 0.05  # what is out already is acknowledged at that rate
    assert rate(50_000, rtt_min_s=math.nan) == rate(math.nan) == 2**64 - 1  # nothing known yet: as it was


# ---- by a clock of its own


class Told:
    """A world of two senders, whose clock sleeps alone drive; what is set, and when."""

    def __init__(self, **parameters):
        self.now_ns = 0
        self.set = []
        world = LiveWorld.__new__(LiveWorld)
        setup = {"places": [0, 1], "parameters": parameters, "flows": [{}, {}], "seed": 3}
        world.setup, world.emulator, world.flows, world.started = setup, self, SimpleNamespace(failure="", failures=list), True
        world._since_ns = world._due_ns = 0
        self.failure, self.world = "", world
        kind = senders.Kind.__new__(senders.Kind)
        kind.places = setup["places"]
        kind._draw_delays(world)
        kind.begin, kind.observe, kind.apply = lambda: None, list, self.apply
        world.kind = kind

    def apply(self, control):
        self.set += [(self.now_ns, at, row[0]) for at, row in enumerate(control) if not math.isnan(row[0])]

    def sleep_unless_message(self, seconds):
        self.now_ns += round(seconds * 1e9)
        return False

    def step(self, *windows):
        message = {"control": [[window] for window in windows], "interval_ns": 100 * MS, "until": "interval", "most": 1}
        self.world.step(message, self)
        told, self.set = self.set, []
        return told


def test_agents_have_their_decisions_in_order_of_time():
    world = Told(latency_s=0.0, latency_high_s=0.05, jitter_s=0.0, jitter_high_s=0.02)
    times = np.array([[at for at, *_ in sorted(world.step(1.0, 2.0), key=lambda one: one[1])] for _ in range(20)])
    assert world.now_ns == 20 * 100 * MS  # intervals are the clock's
    delays = times - np.arange(20)[:, None] * 100 * MS
    assert (delays > 0).all() and (delays < 70 * MS).all()
    own = delays.min(axis=0)
    assert abs(own[0] - own[1]) > MS  # a latency of its own
    assert (np.ptp(delays, axis=0) > MS).all() and (np.ptp(delays, axis=0) < 20 * MS).all()
    again = Told(latency_s=0.0, latency_high_s=0.05, jitter_s=0.0, jitter_high_s=0.02)
    assert sorted(at for at, *_ in again.step(1.0, 2.0)) == sorted(times[0])


def test_a_decision_takes_an_interval_at_most():
    world = Told(latency_s=0.3, latency_high_s=0.3)
    assert world.step(1.0, 2.0) == [(100 * MS, 0, 1.0), (100 * MS, 1, 2.0)]
    assert world.step(math.nan, 3.0) == [(200 * MS, 1, 3.0)]
    assert Told().step(1.0, 2.0) == [(0, 0, 1.0), (0, 1, 2.0)]
