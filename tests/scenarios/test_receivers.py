"""Receivers in scenarios: what they may be, to and from files, and what they come to in a run."""

from dataclasses import replace

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import _core
from netbuf_gym.errors import ScenarioError
from netbuf_gym.plants.simulator import Simulator
from netbuf_gym.scenarios import RECEIVER_CONTROLS, TARGET_DELAYS_MS, Flow, Link, Scenario
from netbuf_gym.scenarios.native import build_world_config


def path(flows=1, rate_mbps=10.0, queue_packets=500, duration_s=30.0, stagger_s=10.0, cc="receiver_driven", **flow):
    ends = {"path": ["there"], "return_path": ["back"], "cc": cc, **flow}
    there = Link(name="there", rate_mbps=rate_mbps, delay_ms=20, queue_packets=queue_packets)
    return Scenario(
        links=[there, Link(name="back", delay_ms=20)],
        flows=[Flow(**ends, start_s=i * stagger_s) for i in range(flows)],
        duration_s=duration_s,
    )


def test_the_catalogue_has_what_the_core_has():
    assert set(RECEIVER_CONTROLS) == {"agent", "fixed", "nuwa", "rledbat"} == {d["name"] for d in _core.receiver_controls()}
    assert [name for name, record in RECEIVER_CONTROLS.items() if record.agent] == ["agent"]


@pytest.mark.parametrize(
    ("field", "value", "valid"),
    [
        ("receiver", "dune", "nuwa"),
        ("receiver", {"name": "nuwa", "gains": 1}, "parameter"),
        ("receiver", {"name": "nuwa", "k": 65}, "0 to 64"),
        ("receiver", {"name": "nuwa", "target_ms": "films"}, "video"),
        ("receiver", 7, "name"),
        ("clock_offset_ms", 1e10, "1e"),
        ("clock_drift_ppm", float("nan"), "-100000 to 100000"),
        ("timestamp_resolution_us", 10, "1000 or 1"),
        ("clamp_interval_ms", -1, "0 to 10000"),
        ("read_mbps", 0, "1e-06"),
        ("read_mbps", 3, "without receive_buffer_bytes"),
        ("receiver", {"name": "fixed", "window_bytes": 1}, "100..1073741824"),
        ("receiver", {"name": "fixed", "window_bytes": 1447}, "window_bytes = 1447 is less than a full segment; valid: 1448"),
    ],
)
def test_bad_receivers_are_refused(field, value, valid):
    with pytest.raises(ScenarioError, match=field) as error:
        path(**{field: value})
    assert valid in str(error.value)


def test_a_window_holds_a_segment_of_the_world():
    small = path(receiver={"name": "fixed", "window_bytes": 1448})
    with pytest.raises(ScenarioError, match=r"flows\[0\].receiver.window_bytes = 1448 .* valid: 9000 to 1073741824"):
        replace(small, mss_bytes=9000)
    assert nb.simulate(small, seed=1).flows[0].goodput_mbps > 0.1


def test_targets_have_names():
    for name, target in TARGET_DELAYS_MS.items():
        flow = path(receiver={"name": "nuwa", "target_ms": name}).flows[0]
        assert dict(flow.receiver.parameters) == {"target_ms": target}


def test_receivers_go_to_files_and_back():
    clocks = {"clock_offset_ms": 50, "clock_drift_ppm": -5, "timestamp_resolution_us": 1}
    world = path(receiver={"name": "nuwa", "k": 7}, read_mbps=3, receive_buffer_bytes=100_000, **clocks)
    assert Scenario.from_dict(world.to_dict()) == world
    assert world.to_dict()["flows"][0]["receiver"] == {"name": "nuwa", "k": 7.0}
    assert path(receiver="agent", flows=2).agent_receivers == (0, 1) and world.agent_receivers == ()


@pytest.mark.parametrize(("resolution_us", "within_s"), [(1, 2e-3), (1000, 3e-3)])
def test_the_queueing_delay_is_known_under_offset_and_drift(resolution_us, within_s):
    for drift in (50, -50):
        world = path(receiver="agent", clock_offset_ms=50, clock_drift_ppm=drift, timestamp_resolution_us=resolution_us)
        batch = _core.Batch(1, 1, 1, kind="receiver")
        batch.reset(0, build_world_config(world), 1)
        rows = []
        for _ in range(300):
            batch.advance(100_000_000)
            rows.append(batch.telemetry[0, 0].copy())
        seen = dict(zip(batch.fields, np.array(rows).T, strict=True))
        assert np.nanmedian(np.abs(seen["queue_delay_s"] - seen["true_queue_delay_mean_s"])) < within_s


def test_flows_that_join_share_alike_within_10_s():
    world = path(flows=4, receiver="nuwa", duration_s=40)
    simulator = Simulator(world, 1)
    for n in (2, 3, 4):
        delivered = []
        for moment_s in (n * 10 - 2, n * 10):
            simulator.run(moment_s * 1_000_000_000)
            delivered.append(np.array([flow["delivered_bytes"] for flow in simulator.flow_stats()[:n]], float))
        got = delivered[1] - delivered[0]
        assert got.sum() ** 2 / (n * (got**2).sum()) >= 0.95


def test_an_application_that_reads_slowly_slows_the_sender():
    result = nb.simulate(path(cc="cubic", receive_buffer_bytes=100_000, read_mbps=3), seed=1, warmup_s=5)
    assert result.flows[0].goodput_mbps == pytest.approx(3, rel=0.05)


def test_a_window_that_is_set_by_a_clamp():
    """Much the same as the kernel's own, if it is set often; with more ACKs: of every segment while the window grows."""
    rule = {"name": "nuwa", "target_ms": 25}
    own, at_once, often, rarely = (
        nb.simulate(path(receiver=rule, clamp_interval_ms=interval), seed=1).flows[0] for interval in (None, 0, 10, 2000)
    )
    assert at_once.goodput_mbps == pytest.approx(own.goodput_mbps, rel=0.05)
    assert often.goodput_mbps == pytest.approx(own.goodput_mbps, rel=0.05)
    assert at_once.acks_received > own.acks_received
    assert rarely.goodput_mbps != own.goodput_mbps
