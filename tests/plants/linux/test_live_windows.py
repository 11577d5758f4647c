"""Kernel senders and receivers steered by agents, beside the simulator's in the same worlds."""

import math
import os
import subprocess
import sys
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import plants
from netbuf_gym.plants.linux import steering
from netbuf_gym.tasks.congestion_window.telemetry import SENDER, sender
from netbuf_gym.tasks.receiver_window.telemetry import RECEIVER
from tests.helpers import machines
from tests.helpers.busy_machine import undisturbed
from tests.helpers.release_cases import for_release
from tests.plants.linux import alone

INTERVAL_NS = 100_000_000
BDP = 10e6 * 0.048 / 8


def path(**changes):
    world = {"rate_mbps": 10, "rtt_ms": 48, "buffer_packets": 150, "senders": ["agent"], "duration_s": 10}
    return nb.scenarios.dumbbell(**world | changes)


def steered(scenario, **changes):
    flows = (replace(flow, cc="receiver_driven", receiver="agent", **changes) for flow in scenario.flows)
    return replace(scenario, flows=tuple(flows))


def run(plant, scenario, kind, decide, steps):
    """Telemetry `(steps, fields)` by name, the report, and what the world runs on."""
    made = plants.make(plant, 1, 1, kind)
    try:
        made.reset(0, scenario, 1)
        rows = []
        for step in range(steps):
            made.control[0, 0] = np.nan
            for name, value in decide(step).items():
                made.control[0, 0, [one.name for one in kind.controls].index(name)] = value
            made.apply(made.control)
            assert not made.advance(INTERVAL_NS).failures
            rows.append(made.telemetry[0, 0].copy())
        table = dict(zip(kind.telemetry.names, np.array(rows).T, strict=True))
        return table, made.report(0)[0], made.about(0)
    finally:
        made.close()


@pytest.fixture(scope="module", autouse=True)
def live():
    machines.needs_bpf()


@pytest.mark.slow
@undisturbed
def test_a_senders_window_is_the_agents():
    def decide(step):
        return {"cwnd_bytes": 1.5 * BDP} if step else {}

    there, told, about = run("linux", path(), SENDER, decide, 25)
    here, simulated, _ = run("sim", path(), SENDER, decide, 25)
    assert about["window"] == "in the kernel (BPF)"
    settled = slice(12, None)
    for name in ("bytes_in_flight_mean", "rtt_mean_s", "throughput_bps", "goodput_bps", "queue_delay_mean_s", "cwnd_bytes"):
        assert np.median(there[name][settled]) == pytest.approx(np.median(here[name][settled]), rel=0.05), name
    for name in ("mss_bytes", "timeouts", "packets_lost", "queue_drops"):
        assert there[name][-1] == here[name][-1], name
    assert np.isnan(there["ssthresh_bytes"]).all()
    assert np.nanmin(there["rtt_min_ever_s"]) == pytest.approx(0.0492, abs=0.002)
    assert told["rtt_min_s"] == pytest.approx(simulated["rtt_min_s"], abs=0.002)
    assert told["timeouts"] == simulated["timeouts"] == 0


@pytest.mark.slow
@undisturbed
@pytest.mark.parametrize(("rate_mbps", "rtt_ms", "buffer_packets"), [(50, 50, 208), *for_release((50, 50, 52), (20, 100, 667))])
def test_a_slow_start_is_the_simulators(rate_mbps, rtt_ms, buffer_packets):
    """Of the same windows on the way, and at its end, after the delay rose or after losses."""
    world = path(rate_mbps=rate_mbps, rtt_ms=rtt_ms, buffer_packets=buffer_packets)
    there, _, _ = run("linux", world, sender(paced=True, slow_start=True), lambda step: {}, 16)
    here, _, _ = run("sim", world, sender(paced=True, slow_start=True), lambda step: {}, 16)
    product = rate_mbps * 1e6 * rtt_ms * 1e-3 / 8 / 1500 * 1448
    for plant, rows in (("linux", there), ("sim", here)):
        course = f"{plant}: windows {rows['cwnd_bytes']}, lost {rows['packets_lost']}, RTTs {rows['rtt_mean_s']}"
        assert 0.9 * product < rows["cwnd_bytes"][-1] < 1.15 * product, course
        assert np.isnan(rows["ssthresh_bytes"][0]) and np.isfinite(rows["ssthresh_bytes"][-1])
    assert there["cwnd_bytes"][-1] == pytest.approx(here["cwnd_bytes"][-1], rel=0.05)
    growing = np.isnan(here["ssthresh_bytes"]) & np.isnan(there["ssthresh_bytes"]) & (here["acks"] > 0) & (there["acks"] > 0)
    assert growing.sum() >= 3
    np.testing.assert_allclose(there["cwnd_bytes"][growing], here["cwnd_bytes"][growing], rtol=0.2)


@pytest.mark.slow
@undisturbed
@pytest.mark.parametrize(("rate_mbps", "rtt_ms", "buffer_packets"), [(5, 20, 17), *for_release((10, 30, 60), (5, 60, 100))])
def test_a_slow_start_ends_with_the_simulators_window(rate_mbps, rtt_ms, buffer_packets):
    """To the segment: one acknowledgement more or less makes another pattern of delayed ones, which then remains."""
    world = path(rate_mbps=rate_mbps, rtt_ms=rtt_ms, buffer_packets=buffer_packets)
    windows = [
        run(plant, world, sender(paced=True, slow_start=True), lambda step: {}, 8)[0]["cwnd_bytes"][-1] / 1448
        for plant in ("sim", *["linux"] * 3)
    ]
    assert np.median(windows[1:]) == windows[0], windows


@pytest.mark.slow
@undisturbed
def test_a_slow_start_goes_on_past_losses_at_random():
    """One packet of a hundred is lost of either's; what ends it is the delay."""
    world = path(rate_mbps=50, rtt_ms=50, buffer_packets=416, loss=0.01)
    product = 50e6 * 0.05 / 8 / 1500 * 1448
    for plant in ("linux", "sim"):
        rows, _, _ = run(plant, world, sender(paced=True, slow_start=True), lambda step: {}, 16)
        growing = np.isnan(rows["ssthresh_bytes"])
        assert np.nansum(rows["packets_lost"][growing]) >= 1, plant
        assert 0.8 * product < rows["cwnd_bytes"][-1] < 1.25 * product, plant
        assert np.isfinite(rows["ssthresh_bytes"][-1]), plant


@pytest.mark.slow
@undisturbed
def test_a_decision_ends_the_kernels_slow_start():
    kind = sender(paced=True, slow_start=True)
    rows, _, _ = run("linux", path(rate_mbps=100), kind, lambda step: {"cwnd_bytes": 2 * BDP} if step == 2 else {}, 12)
    assert np.isnan(rows["ssthresh_bytes"]).all()
    assert rows["cwnd_bytes"][1] > 12 * 1448 and (rows["cwnd_bytes"][3:] == 2 * BDP).all()


@pytest.mark.slow
def test_losses_leave_the_window_alone():
    rows, told, _ = run("linux", path(loss=0.01), SENDER, lambda step: {"cwnd_bytes": 0.8 * BDP}, 25)
    assert told["random_losses"] > 3
    assert np.nansum(rows["packets_lost"]) >= told["random_losses"] / 2
    assert np.nansum(rows["packets_retransmitted"]) > 0
    assert rows["cwnd_bytes"][-1] == pytest.approx(0.8 * BDP)
    assert np.median(rows["in_flight_bytes"][10:]) > 0.7 * BDP
    assert not np.isnan(rows["ssthresh_bytes"][-1])


@pytest.mark.slow
def test_time_stamps_of_whole_milliseconds_shorten_no_least_round_trip():
    """An ACK of retransmitted packets alone: 10.3 ms of propagation and 0.12 ms of a packet are 10 by time stamps, or 11."""
    world = path(rate_mbps=100, rtt_ms=10.3, loss=0.02)
    rows, told, _ = run("linux", world, SENDER, lambda step: {"cwnd_bytes": 40 * 1448}, 20)
    assert told["random_losses"] > 20
    assert 0.01042 <= told["rtt_min_s"] == np.nanmin(rows["rtt_min_s"]) == rows["rtt_min_ever_s"][-1] < 0.012


@pytest.mark.slow
def test_a_time_out_halts_until_the_next_decision():
    silent = nb.traces.RateTrace([0, 1, 2.5], [10, 0, 10], 20)
    world = path(rate_mbps=None, trace=silent)
    rows, told, _ = run("linux", world, SENDER, lambda step: {"cwnd_bytes": BDP} if step == 2 else {}, 30)
    assert told["timeouts"] >= 1
    assert rows["cwnd_bytes"][-1] == rows["mss_bytes"][-1]


@pytest.mark.slow
@undisturbed
def test_a_receivers_window_is_advertised():
    # From early on: slow start's own end would empty the queue, and take its share of the window.
    def decide(step):
        return {"k": 0, "window_bytes": 40_000 if step < 15 else 80_000} if step in (1, 15) else {}

    rows, _, about = run("linux", steered(path()), RECEIVER, decide, 25)
    assert about["window"] == "TCP_WINDOW_CLAMP"
    assert about["receiver_driven"] == "in the kernel (BPF)"
    assert np.median(rows["advertised_bytes"][8:15]) == pytest.approx(40_000, abs=4000)
    assert np.median(rows["advertised_bytes"][18:]) == pytest.approx(80_000, abs=4000)
    assert np.median(rows["receive_rate_bps"][10:15]) == pytest.approx(40_000 * 8 / 0.0504, rel=0.1)


@pytest.mark.slow
@undisturbed
def test_nuwas_rule_keeps_the_queue_where_the_simulators_does():
    there, _, _ = run("linux", steered(path()), RECEIVER, lambda step: {}, 50)
    here, _, _ = run("sim", steered(path()), RECEIVER, lambda step: {}, 50)
    for name in ("window_bytes", "queue_delay_s", "true_queue_delay_mean_s", "rtt_s"):
        assert np.median(there[name][35:]) == pytest.approx(np.median(here[name][35:]), rel=0.2), name
    assert np.nanmax(np.abs(there["queue_delay_mean_s"] - there["true_queue_delay_mean_s"])[35:]) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1, *for_release(1000)])
def test_delay_by_time_stamps(unit):
    if unit == 1:
        machines.needs_linux(6, 7)  # tcp_usec_ts
    scenario = steered(path(), timestamp_resolution_us=unit, clock_offset_ms=500, clock_drift_ppm=20)
    rows, _, _ = run("linux", scenario, RECEIVER, lambda step: {"k": 0, "window_bytes": 2 * BDP}, 30)
    error = np.abs(rows["queue_delay_mean_s"] - rows["true_queue_delay_mean_s"])[15:]
    assert np.nanmedian(error) < (0.002 if unit == 1000 else 0.001)


@pytest.mark.slow
@pytest.mark.parametrize("env", ["CongestionWindow", "ReceiverWindow"])
def test_environments(env):
    single = gym.make(f"netbuf/{env}-v0", plant="linux", disable_env_checker=True)
    try:
        _, info = single.reset(seed=1)
        assert "kernel" in info["plant"]["window"] or info["plant"]["window"] == "TCP_WINDOW_CLAMP"
        for _ in range(3):
            observation, reward, *_, info = single.step(single.action_space.sample())
            assert np.isfinite(observation).all() and math.isfinite(reward) and "failure" not in info
    finally:
        single.close()
    many = gym.make_vec(f"netbuf/{env}-v0", num_envs=2, plant="linux")
    try:
        _, info = many.reset(seed=1)
        assert info["_plant"].all()
        ways = [told.get("receiver_driven", told["window"]) for told in info["plant"]]
        assert ways == ["in the kernel (BPF)"] * 2  # each its own: names are the whole machine's
        for _ in range(3):
            observations, rewards, *_ = many.step(many.action_space.sample())
            assert np.isfinite(observations).all() and np.isfinite(rewards).all()
    finally:
        many.close()


@pytest.mark.slow
def test_without_privileges_the_window_is_kept_from_user_space():
    machines.needs_user_namespaces()
    code = (
        "import tests.plants.linux.test_live_windows as t; "
        "rows, _, about = t.run('linux', t.path(), t.SENDER, lambda step: {'cwnd_bytes': t.BDP}, 15); "
        "print(about['window']); print(t.np.median(rows['throughput_bps'][8:]))"
    )
    command = ["unshare", "-Ur", sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(alone.CHECKOUT)}
    child = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert child.returncode == 0, child.stderr
    window, rate = child.stdout.splitlines()[-2:]
    assert window.startswith("from user space") and "BPF" in window
    assert float(rate) == pytest.approx(9e6, rel=0.15)


def test_why_there_is_no_control_of_ours(monkeypatch):
    monkeypatch.setattr(steering, "explain_unavailable", lambda: "no types")
    assert steering.make_steered_sockets("agent", 1) == (None, "no types")
