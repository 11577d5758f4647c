"""Pictures: files of the right kind, whatever the numbers are."""

import builtins

import numpy as np
import pytest

from netbuf_gym import plots
from netbuf_gym.errors import ConfigError, MissingExtraError

SERIES = {
    name: {
        "time_s": np.arange(5.0),
        "cwnd_packets": np.arange(5.0) * top,
        "rtt_ms": np.full(5, np.nan),
        "queue_packets": np.ones(5),
    }
    for name, top in (("agent", 3), ("newreno", 4000))
}
POINTS = {"agent": ([1.0, 2.0, 3.0], [9.0, 9.1, 9.3]), "one": ([0.0], [5.0]), "none": ([np.nan], [1.0])}
CURVES = {"ppo": [(np.arange(1, 5), np.arange(4.0)), (np.arange(2, 7), np.arange(5.0))], "empty": []}
ROWS = (("cwnd_packets", "cwnd (packets)"), ("rtt_ms", "RTT (ms)"), ("queue_packets", "queue (packets)"))


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_draws_every_picture(tmp_path, suffix, magic):
    plots.throughput_delay(POINTS, tmp_path / f"a.{suffix}", "title", capacity_mbps=10)
    plots.time_series(SERIES, tmp_path / f"b.{suffix}", ROWS)
    plots.learning_curves(CURVES, tmp_path / f"c.{suffix}", "utility")
    for name in "abc":
        assert (tmp_path / f"{name}.{suffix}").read_bytes().startswith(magic)
    assert len(list(tmp_path.iterdir())) == 3


def test_fifteen_contenders_can_be_told_apart():
    styles = [plots.style(k) for k in range(30)]
    assert len({colour for colour, *_ in styles[:15]}) == len({marker for _, marker, _ in styles[:15]}) == 15
    assert len({(colour, dashes) for colour, _, dashes in styles}) == 30


def test_runs_without_one_of_two_values_are_left_out(tmp_path):
    plots.throughput_delay({"a": ([1.0, np.nan, 3.0, 4.0], [1.0, 2.0, np.nan, 3.0])}, tmp_path / "a.png")
    assert (tmp_path / "a.png").exists()


def test_another_kind_of_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="valid: png, pdf, svg"):
        plots.time_series(SERIES, tmp_path / "a.docx", ROWS)
    assert not list(tmp_path.iterdir())


def test_says_what_to_install(tmp_path, monkeypatch):
    load = builtins.__import__

    def without_matplotlib(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(MissingExtraError, match=r"netbuf-gym\[plots\]"):
        plots.throughput_delay(POINTS, tmp_path / "a.png")
