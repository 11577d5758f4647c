"""Worlds over folders of trace files."""

import numpy as np
import pytest

from netbuf_gym import scenarios, traces
from netbuf_gym.errors import ScenarioError, ScenarioTypeError, TraceError
from netbuf_gym.evaluation import rollout
from netbuf_gym.scenarios import Scenario
from netbuf_gym.tasks.receiver_window.trace_paths import compute_buffer_packets, read_windows, trace_files, trace_world
from netbuf_gym.traces import RateTrace
from netbuf_gym.traces.calibration import SPLIT


@pytest.fixture
def folder(tmp_path):
    """Three files of 30 s: deliveries, rates, and rates of which the second ten seconds are an outage."""
    traces.write(traces.generate("4g", duration_s=30, seed=1, mean_mbps=6), tmp_path / "a.down")
    traces.write(traces.generate("5g", duration_s=30, seed=2, mean_mbps=9), tmp_path / "b.csv", header="mbit")
    rate = np.r_[np.full(10, 4.0), np.zeros(10), np.full(10, 2.0)]
    traces.write(RateTrace(np.arange(30.0), rate, 30.0), tmp_path / "c.csv")
    (tmp_path / ".hidden").write_text("no trace")
    return tmp_path


def draw(path, count=60, **kwargs):
    distribution = scenarios.get("nuwa/traces", path=path, duration_s=10, **kwargs)
    return [distribution.sample(np.random.default_rng(seed)) for seed in range(count)]


def test_each_seed_is_another_file_and_window(folder):
    worlds = draw(str(folder))
    assert {world.links[0].trace.name for world in worlds} == {"a.down", "b.csv", "c.csv"}
    assert all(world.duration_s == world.links[0].trace.duration_s == 10 for world in worlds)
    of_c = {float(world.links[0].trace.mean_mbps()) for world in worlds if world.links[0].trace.name == "c.csv"}
    assert of_c == {4.0, 2.0}  # never the outage between
    assert len({world.links[0].trace for world in worlds if world.links[0].trace.name == "a.down"}) == 3
    assert {world.flows[0].timestamp_resolution_us for world in worlds} == {1, 1000}
    assert len({world.flows[0].clock_offset_ms for world in worlds}) == 60
    assert worlds[7] == draw(str(folder))[7]
    assert Scenario.from_dict(worlds[3].to_dict()) == worlds[3]


def test_round_trips_and_buffers_are_drawn_from_what_is_given(folder):
    worlds = draw(str(folder / "c.csv"), rtt_ms=[20, 100], buffer_bdp=[1, 4], n=2)
    assert all(len(world.flows) == 2 for world in worlds)
    seen = {(world.propagation_rtt_ms(), world.links[0].mean_mbps(10), world.buffer_packets) for world in worlds}
    assert seen == {
        (rtt, mbps, max(10, round(bdp * mbps * rtt * 1e3 / 8 / 1500))) for rtt in (20, 100) for mbps in (2, 4) for bdp in (1, 4)
    }
    assert {world.buffer_packets for world in draw(str(folder), buffer_packets=250)} == {250}
    assert {world.links[0].on_outage for world in draw(str(folder), on_outage="drop")} == {"drop"}


def test_files_are_found_alone_in_lists_and_by_the_split(folder):
    assert [path.name for path in trace_files(folder)] == ["a.down", "b.csv", "c.csv"]
    assert trace_files([str(folder / "b.csv"), folder / "a.down"]) == [folder / "b.csv", folder / "a.down"]
    name = SPLIT["4g"]["validation"][0]
    (folder / "deep").mkdir()
    traces.write(traces.generate("4g", duration_s=12, seed=3), folder / "deep" / name)
    assert trace_files(folder, "4g", "validation") == [folder / "deep" / name]
    assert {world.links[0].trace.name for world in draw(str(folder), network="4g", part="validation")} == {name}


def test_a_file_that_is_written_anew_is_read_anew(folder):
    path = folder / "c.csv"
    assert read_windows(path, 10.0)[1] == (0, 20)
    traces.write(RateTrace([0.0], [3.0], 20.0), path)
    assert len(read_windows(path, 10.0)[1]) >= 1 and read_windows(path, 10.0)[0].peak_mbps == 3


@pytest.mark.parametrize(
    "arguments, error, says",
    [
        ({"path": 3}, ScenarioTypeError, "path = 3; valid: a trace file"),
        ({"path": []}, ScenarioTypeError, "path"),
        ({"path": "nowhere.down"}, TraceError, "nowhere.down"),
        ({"path": "FOLDER", "network": "4g"}, TraceError, "holds no trace file of the evaluation of 4g: ATT-LTE-driving.down"),
        ({"path": "FOLDER", "network": "6g"}, ScenarioError, "network"),
        ({"path": "FOLDER", "network": "4g", "part": "test"}, ScenarioError, "part"),
        ({"path": "FOLDER", "rtt_ms": [40, 0]}, ScenarioError, r"rtt_ms\[1\]"),
        ({"path": "FOLDER", "buffer_bdp": "one"}, ScenarioTypeError, "buffer_bdp"),
        ({"path": "FOLDER", "timestamp_us": (1000,) * 50 + (7,)}, ScenarioError, r"timestamp_us\[50\] = 7"),
        ({"path": "FOLDER", "duration_s": 0.1}, ScenarioError, "duration_s"),
        ({"path": "FOLDER", "on_outage": "wait"}, ScenarioError, "on_outage"),
        ({"path": "FOLDER", "senders": ["nope"]}, ScenarioError, "nope"),
        ({"path": "FOLDER", "senders": [0.5]}, ScenarioTypeError, r"senders\[0\] = 0.5; valid: a name"),
    ],
)
def test_bad_arguments_are_named(folder, arguments, error, says):
    arguments = {key: str(folder) if value == "FOLDER" else value for key, value in arguments.items()}
    with pytest.raises(error, match=says):
        scenarios.get("nuwa/traces", **arguments)


def test_files_with_outages_throughout_are_refused(tmp_path):
    traces.write(RateTrace([0.0], [0.1], 30.0), tmp_path / "dead.csv")
    with pytest.raises(TraceError, match=r"dead\.csv.*never carries"):
        scenarios.get("nuwa/traces", path=str(tmp_path))


def test_controllers_meet_the_same_worlds(folder):
    scenario = {"name": "nuwa/traces", "path": str(folder), "duration_s": 10}
    for name in ("nuwa", "vegas", "keep"):
        reports = rollout.evaluate(name, task="receiver_window", scenario=scenario, seeds=range(3))
        assert [report["scenario"] for report in reports] == ["nuwa/traces"] * 3
        assert all(report["data_mb"] > 0.1 for report in reports)


def test_buffers_are_products_of_the_windows_rate():
    window = RateTrace([0.0], [12.0], 10.0)
    assert (
        compute_buffer_packets(window, 40.0, 1.0) == 40
        and compute_buffer_packets(window, 40.0, 4.0) == 160
        and compute_buffer_packets(window, 1.0, 1.0) == 10
    )
    assert trace_world(window, rtt_ms=40.0, buffer_bdp=4.0).buffer_packets == 160
    assert trace_world(window, rtt_ms=40.0, buffer_packets=77).buffer_packets == 77
