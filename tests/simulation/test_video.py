"""Video clients: what they play, what they take the path for, and how results show it."""

import json

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym.cli.simulate import format_result
from netbuf_gym.errors import ConfigError, ScenarioError, ScenarioTypeError
from netbuf_gym.scenarios import Flow, Link, RateTrace, Scenario, Video
from netbuf_gym.scenarios.codec import parse_application
from netbuf_gym.simulation.results.video import CHUNK

LADDER = (0.5, 1, 2, 4, 8)


def world(app=None, rate_mbps=10.0, duration_s=60.0, **flow):
    capacity = {"trace": rate_mbps} if isinstance(rate_mbps, RateTrace) else {"rate_mbps": rate_mbps}
    links = [Link(name="bottleneck", delay_ms=20, queue_packets=100, **capacity), Link(name="back", delay_ms=20)]
    made = Flow(path=[0], return_path=[1], app=app or Video(bitrates_mbps=LADDER), **flow)
    return Scenario(links=links, flows=[made], duration_s=duration_s)


@pytest.mark.parametrize("abr", ["rate", "buffer"])
def test_what_is_played(abr):
    app = Video(bitrates_mbps=LADDER, abr=abr)
    video = nb.simulate(world(app), seed=1, sample_interval_s=None).videos[0]
    chunks = video.chunks
    assert video.name == "flow-0" and video.abr == abr and chunks.dtype == CHUNK
    assert video.played_s + video.buffered_s == pytest.approx(len(chunks) * 4, abs=1e-9)
    assert video.played_s + video.stalled_s + video.startup_s == pytest.approx(60, abs=1e-9)
    assert video.stalls == 0 and video.startup_s < 1 and video.buffered_s <= 30
    np.testing.assert_allclose(chunks["size_bytes"] * 8e-6, chunks["bitrate_mbps"] * 4)
    np.testing.assert_allclose(
        chunks["estimate_mbps"], chunks["size_bytes"] * 8e-6 / (chunks["ended_s"] - chunks["begun_s"]), rtol=1e-9
    )
    assert chunks["bitrate_mbps"][0] == 0.5 and chunks["bitrate_mbps"][-1] >= 4
    assert video.switches >= 1 and video.bitrate_mean_mbps == chunks["bitrate_mbps"].mean()


def test_what_the_client_takes_the_path_for():
    video = nb.simulate(world(Video(bitrates_mbps=[2])), seed=1).videos[0]
    assert video.chunks["capacity_mbps"] == pytest.approx(10 * 1448 / 1500)
    assert (video.chunks["estimate_mbps"] < video.chunks["capacity_mbps"]).all()  # round trips, and slow start anew
    assert video.error_median() == pytest.approx(-video.error_median(absolute=False)) and 0.02 < video.error_median() < 0.6
    assert np.isnan(video.chunks["window_mbps"]).all() and np.isnan(video.error_median("window_mbps"))
    for wrong in ("foo", "size_bytes"):
        with pytest.raises(ConfigError, match=f"estimate = '{wrong}' is unknown; valid: estimate_mbps, window_mbps"):
            video.error_median(wrong)


def test_the_receivers_window_as_estimate():
    app = Video(bitrates_mbps=[20])  # more than there is: the client always downloads
    result = nb.simulate(world(app, cc="receiver_driven", receiver="nuwa"), seed=1, sample_interval_s=None)
    assert result.videos[0].error_median("window_mbps") < 0.15
    assert result.videos["flow-0"].stalls > 0 and result.videos[0].stalled_share > 0.3


def test_the_truth_follows_the_link():
    trace = RateTrace([0, 30], [8, 2], 60)
    chunks = nb.simulate(world(Video(bitrates_mbps=[1]), trace), seed=1, sample_interval_s=None).videos[0].chunks
    inside = chunks["ended_s"] < 30
    assert chunks["capacity_mbps"][inside] == pytest.approx(8 * 1448 / 1500)
    assert chunks["capacity_mbps"][chunks["begun_s"] > 30] == pytest.approx(2 * 1448 / 1500)


def test_no_stall_where_the_lowest_bitrate_fits_and_stalls_where_not():
    slow = nb.simulate(world(Video(bitrates_mbps=[4]), 2.0), seed=1, sample_interval_s=None).videos[0]
    assert slow.stalls >= 3 and slow.stalled_s > 20


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bitrates_mbps": []}, "bitrates_mbps is empty"),
        ({"bitrates_mbps": [1, 1]}, r"bitrates_mbps\[1\] = 1 is not above 1"),
        ({"bitrates_mbps": [0]}, r"bitrates_mbps\[0\] = 0.0 is out of range"),
        ({"bitrates_mbps": range(1, 102)}, "bitrates_mbps has 101 bitrates"),
        ({"buffer_s": 3}, "buffer_s = 3.0 is out of range; valid: 4 to 3600"),
        ({"abr": "best"}, "abr = 'best' is unknown"),
    ],
)
def test_refused(changes, message):
    with pytest.raises(ScenarioError, match=message):
        Video(**changes)


def test_refused_in_a_flow():
    with pytest.raises(ScenarioError, match=r"flow.read_mbps = 1 beside app = Video\(...\)"):
        world(read_mbps=1)
    with pytest.raises(ScenarioTypeError, match=r"valid: Bulk\(\), Sized\(...\), OnOff\(...\), Paused\(...\) or Video\(...\)"):
        world("video")


def test_files():
    made = world(Video(bitrates_mbps=[1, 2], abr="buffer", reservoir_s=5))
    data = json.loads(json.dumps(made.to_dict()))
    assert data["flows"][0]["app"] == {"kind": "video", "bitrates_mbps": [1, 2], "abr": "buffer", "reservoir_s": 5}
    assert Scenario.from_dict(data) == made
    assert (
        parse_application("--app", "video") == Video()
        and parse_application("--app", {"kind": "video", "chunk_s": 2}).chunk_s == 2
    )
    with pytest.raises(ScenarioError, match=r"--app\.kind = .film. is unknown"):
        parse_application("--app", "film")


def test_results(tmp_path):
    pytest.importorskip("matplotlib"), pytest.importorskip("pandas")
    result = nb.simulate(world(cc="receiver_driven", receiver="nuwa"), seed=1)
    videos, chunks = result.to_dataframe("videos"), result.to_dataframe("chunks")
    assert videos["played_s"][0] == result.videos[0].played_s and videos["chunks"][0] == len(chunks)
    assert list(chunks.columns) == ["video", *CHUNK.names] and (chunks["video"] == "flow-0").all()
    data = result.to_dict()["videos"][0]
    assert data["stalls"] == 0 and len(data["chunk_table"]["ended_s"]) == len(chunks)
    assert "chunk_table" not in result.to_dict(series=False)["videos"][0]
    assert "flow-0 (video, rate)" in repr(result) and "bitrate Mbit/s" in format_result(result)
    assert result.plot(tmp_path / "run.png") and (tmp_path / "run.png").stat().st_size > 10_000
    plain = nb.simulate(nb.scenarios.dumbbell(duration_s=1), seed=1, sample_interval_s=None)
    assert not plain.videos and "videos" not in plain.to_dict() and len(plain.to_dataframe("chunks")) == 0
