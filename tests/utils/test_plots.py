"""Pictures: files of the right kind, whatever the numbers are."""

import builtins

import numpy as np
import pytest

import netbuf_gym
from netbuf_gym.errors import ConfigError, MissingExtraError
from netbuf_gym.utils import plots

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


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_draws_every_picture(tmp_path, suffix, magic):
    plots.plot_throughput_delay(POINTS, tmp_path / f"a.{suffix}", "title", capacity_mbps=10)
    plots.plot_time_series(SERIES, tmp_path / f"b.{suffix}", ROWS)
    plots.plot_learning_curves(CURVES, tmp_path / f"c.{suffix}", "utility")
    for name in "abc":
        assert (tmp_path / f"{name}.{suffix}").read_bytes().startswith(magic)
    assert len(list(tmp_path.iterdir())) == 3


def test_fifteen_controllers_can_be_told_apart():
    styles = [plots.get_style(k) for k in range(30)]
    assert len({colour for colour, *_ in styles[:15]}) == len({marker for _, marker, _ in styles[:15]}) == 15
    assert len({(colour, dashes) for colour, _, dashes in styles}) == 30


def test_runs_without_one_of_two_values_are_left_out(tmp_path):
    plots.plot_throughput_delay({"a": ([1.0, np.nan, 3.0, 4.0], [1.0, 2.0, np.nan, 3.0])}, tmp_path / "a.png")
    assert (tmp_path / "a.png").exists()


def test_another_kind_of_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="valid: png, pdf, svg"):
        plots.plot_time_series(SERIES, tmp_path / "a.docx", ROWS)
    assert not list(tmp_path.iterdir())


def test_says_what_to_install(tmp_path, monkeypatch):
    load = builtins.__import__

    def without_matplotlib(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(MissingExtraError, match=r"netbuf-gym\[plots\]"):
        plots.plot_throughput_delay(POINTS, tmp_path / "a.png")


def figures(monkeypatch):
    """The figures that are written, as they are written."""
    made = []
    write = plots.write_figure
    monkeypatch.setattr(plots, "write_figure", lambda figure, path, *rest: (made.append(figure), write(figure, path, *rest)))
    return made


@pytest.mark.parametrize(
    "delays", [([0.0, 2.0, 400.0],), ([0.0, 0.0, 0.0],), ([-1.0, 3.0, 5.0],), ([np.nan] * 3,), ([1e-9, 1.0, 2.0],), ()]
)
def test_values_of_zero_and_below_stay_where_they_are_on_log_axes(tmp_path, monkeypatch, delays):
    made = figures(monkeypatch)
    points = {f"one {k}": (values, [5.0, 6.0, 7.0]) for k, values in enumerate((*delays, [1.0, 10.0, 100.0]))}
    plots.plot_throughput_delay(points, tmp_path / "a.png")
    axes = made[0].axes[0]
    drawn = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 3]
    for values in delays:
        assert any(np.array_equal(values, x) for x in drawn) or np.isnan(values).all()
    low, high = axes.get_xlim()
    everything = np.concatenate(drawn)
    assert low <= np.nanmin(everything) and np.nanmax(everything) <= high
    if (everything <= 0).any():
        assert axes.get_xscale() == "asinh"
    else:
        assert axes.get_xscale() == "log"


def test_limits_are_drawn_as_steps_behind_the_lines(tmp_path, monkeypatch):
    made = figures(monkeypatch)
    steps = (np.array([0.0, 1.0, 3.0, 10.0]), np.array([4.0, np.inf, 8.0]))
    plots.plot_time_series(SERIES, tmp_path / "a.png", ROWS, limits={"cwnd_packets": ("capacity", steps)})
    line = next(line for line in made[0].axes[0].lines if line.get_label() == "capacity")
    assert line.get_xdata().tolist() == [0, 1, 1, 3, 3, 4] and line.get_zorder() < 2  # no longer than the series
    np.testing.assert_array_equal(line.get_ydata(), [4, 4, np.nan, np.nan, 8, 8])
    assert not any(line.get_label() == "capacity" for axes in made[0].axes[1:] for line in axes.lines)
    plots.plot_throughput_delay(POINTS, tmp_path / "b.png", capacity_mbps=float("inf"))
    assert not any("capacity" in line.get_label() for line in made[1].axes[0].lines)


def test_many_controllers_are_all_drawn_and_named(tmp_path, monkeypatch):
    made = figures(monkeypatch)
    many = {f"c{k}": SERIES["agent"] for k in range(14)}
    plots.plot_time_series(many, tmp_path / "a.png", ROWS)
    assert len(made[0].axes[0].lines) == 14
    assert [text.get_text() for text in made[0].legends[0].get_texts()] == list(many)


def test_pictures_of_nothing_are_drawn(tmp_path):
    empty = {"a": {key: np.zeros(0) for key in ("time_s", *dict(ROWS))}}
    plots.plot_time_series(empty, tmp_path / "a.png", ROWS)
    plots.plot_time_series({}, tmp_path / "b.png", ROWS)
    plots.plot_throughput_delay({}, tmp_path / "c.png")
    plots.plot_learning_curves({"a": [([1.0, 2.0], [np.nan, 1.0])], "b": [([1.0], [np.nan])]}, tmp_path / "d.png", "y")
    assert len(list(tmp_path.iterdir())) == 4


def test_there_is_one_style():
    """Figures are made, dressed and written by `plots`; nobody else sets sizes, grids or colours of text by hand."""
    import re
    from pathlib import Path

    root = Path(plots.__file__).parents[1]
    places = root.rglob("*.py")
    wrong = []
    for path in places:
        if path == Path(plots.__file__):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r"pyplot|rcParams|savefig|\.grid\(|fontsize=\d|tick_params", line):
                wrong.append(f"{path.name}:{number}: {line.strip()}")
    assert wrong == []


def test_decades_without_values_take_no_room_and_legends_are_not_crossed_out(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(plots, "write_figure", lambda figure, path: drawn.append(figure))
    time_s = np.arange(5.0)
    one = {"time_s": time_s, "rtt_ms": np.array([50.0, 90.0, 800.0, 1e4, 1e5]), "queue": np.array([0.0, 3.0, 800.0, 1.0, 0.0])}
    plots.plot_time_series({"a": one}, tmp_path / "t.png", (("rtt_ms", "RTT"), ("queue", "queue")))
    rtt, queue = drawn[0].axes
    assert rtt.get_yscale() == "log" and 10 < rtt.get_ylim()[0] <= 50
    assert queue.get_yscale() == "symlog" and queue.get_ylim()[0] == 0
    frame = rtt.get_legend().get_frame()
    assert rtt.get_legend().get_frame_on() and frame.get_facecolor()[:3] == (1, 1, 1) and frame.get_alpha() > 0.5


def test_short_names_are_written_out_in_pictures():
    result = netbuf_gym.simulate(netbuf_gym.scenarios.dumbbell(duration_s=2), seed=1)
    labels = " ".join(axes.get_ylabel() for axes in result.plot().axes)
    assert "congestion window" in labels and "round-trip time" in labels


def test_what_others_draw_leaves_pyplot_as_it_was(tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")
    before = plt.get_backend()
    plt.switch_backend("svg")
    try:
        plots.write_current_figure(lambda: plt.plot([1, 2]), tmp_path / "x.png")
        assert plt.get_backend() == "svg" and not plt.get_fignums() and (tmp_path / "x.png").read_bytes()[1:4] == b"PNG"
        with pytest.raises(ZeroDivisionError):
            plots.write_current_figure(lambda: plt.plot([1, 1 / 0]), tmp_path / "y.png")
        assert plt.get_backend() == "svg" and not plt.get_fignums() and not (tmp_path / "y.png").exists()
    finally:
        plt.switch_backend(before)
