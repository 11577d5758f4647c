"""Results as users hold them: short to look at, by name, as data frames, as pictures; each flow with its own bottleneck."""

import builtins
import copy
import csv
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import netbuf_gym as nb
from netbuf_gym.errors import ConfigError, MissingExtraError
from netbuf_gym.scenarios import Flow, Link, Scenario
from netbuf_gym.simulation.results.tables import FLOW_SERIES, LINK_SERIES, TABLES
from netbuf_gym.traces import DeliveryTrace, RateTrace, capacity_steps


def two_bottlenecks(**kwargs) -> Scenario:
    """The first flow is held up by `front`, the second by `rear`; the scenario's own bottleneck is neither's name."""
    return Scenario(
        links=(
            Link(name="front", rate_mbps=8, delay_ms=5, queue_packets=60),
            Link(name="rear", rate_mbps=2, delay_ms=5, queue_packets=25),
            Link(name="back", delay_ms=10),
        ),
        flows=(
            Flow(cc="cubic", path=["front"], return_path=["back"]),
            Flow(cc="newreno", path=["front", "rear"], return_path=["back"], name="through"),
        ),
        **{"duration_s": 8, "name": "two", **kwargs},
    )


@pytest.fixture(scope="module")
def two():
    return nb.simulate(two_bottlenecks(), sample_interval_s=0.2)


@pytest.fixture(scope="module")
def switched():
    return nb.simulate(nb.scenarios.get("rlbm/default", duration_s=12, load=0.9), seed=2, sample_interval_s=0.1)


def test_reprs_are_short_and_say_what_happened(two, switched):
    text = repr(two)
    assert len(text.splitlines()) <= 5 and len(text) < 500
    for word in ("two", "seed 1", "0 to 8 s", "40 samples", "flow-0 (cubic)", "through (newreno)", "Mbit/s", "front"):
        assert word in text
    for part in (*two.flows, *two.links, *switched.switches, *switched.switches[0].queues, switched.traffic, *switched.probes):
        assert len(repr(part)) < 160 and "\n" not in repr(part)
    assert repr(two.flows).count("\n") == 2 and "Links (3)" in repr(two.links) and "Switches (1)" in repr(switched.switches)
    assert "completed" in repr(switched) and len(repr(switched)) < 400
    many = nb.simulate(nb.scenarios.dumbbell(senders=["cubic"] * 30, duration_s=1), sample_interval_s=None)
    assert len(repr(many).splitlines()) <= 12 and "and 22 more" in repr(many)


def test_flows_and_links_are_found_by_index_name_and_slice(two):
    assert two.flows["through"] is two.flows[1] and two.links["rear"] is two.links[1] and len(two.flows[:1]) == 1
    with pytest.raises(KeyError, match="no flow 'none'; there are flow-0, through"):
        two.flows["none"]


def test_series_that_are_not_there_are_told_from_those_that_are(two):
    for part, there in ((two, "cwnd_packets"), (two.flows[0], "cwnd_packets"), (two.links["rear"], "queue_packets")):
        assert there in part.series and part.series.get("cwnd") is None
        with pytest.raises(KeyError, match=f"no series 'cwnd'; there are time_s, .*{there}"):
            part.series["cwnd"]
    bare = nb.simulate(nb.scenarios.dumbbell(senders=["cubic"], duration_s=1), sample_interval_s=None)
    for part in (bare, bare.flows[0]):
        with pytest.raises(KeyError, match="the simulation took none: simulate"):
            part.series["cwnd_packets"]


def test_series_by_flow_and_by_link_make_data_frames(two):
    for part, names, columns in ((two.flows[1], FLOW_SERIES, 1), (two.links["rear"], LINK_SERIES, 1)):
        frame = pd.DataFrame(part.series)
        assert list(frame) == ["time_s", *names] and len(frame) == 40
        for name in names:
            np.testing.assert_array_equal(frame[name], two.series[name][:, columns])
    assert pd.DataFrame(two.flow_series["through"]).equals(pd.DataFrame(two.flows[1].series))
    assert list(two.link_series) == ["front", "rear", "back"]
    assert two.series["cwnd_packets"].shape == (40, 2)
    bare = nb.simulate(two_bottlenecks(duration_s=1), sample_interval_s=None)
    assert bare.flows[0].series == {} and pd.DataFrame(bare.links["front"].series).empty


def test_flows_of_one_name_keep_their_series_apart():
    flows = tuple(replace(flow, name="twin") for flow in two_bottlenecks().flows)
    result = nb.simulate(replace(two_bottlenecks(), flows=flows))
    assert list(result.flow_series) == ["twin#0", "twin#1"]
    assert set(result.to_dataframe("flow_series")["flow"]) == {"twin#0", "twin#1"}


def test_results_survive_pickle_and_copy(two):
    for again in (pickle.loads(pickle.dumps(two)), copy.deepcopy(two)):
        assert repr(again) == repr(two) and again.flows["through"].cc == "newreno"
        np.testing.assert_array_equal(again.links["rear"].series["queue_packets"], two.links["rear"].series["queue_packets"])


def test_data_frames_hold_what_the_result_holds(two, switched):
    flows = two.to_dataframe()
    assert flows.set_index("name").loc["through", "goodput_mbps"] == two.flows["through"].goodput_mbps
    assert flows["packets_sent"].dtype.kind == "i" and flows["goodput_mbps"].dtype.kind == "f"
    links = two.to_dataframe("links").set_index("name")
    assert links.loc["rear", "queue_drops"] == two.links["rear"].queue_drops
    tidy = two.to_dataframe("flow_series")
    assert len(tidy) == 80 and set(tidy["flow"]) == {"flow-0", "through"}
    np.testing.assert_array_equal(tidy[tidy["flow"] == "through"]["srtt_ms"], two.series["srtt_ms"][:, 1])
    tidy = two.to_dataframe("link_series")
    np.testing.assert_array_equal(tidy[tidy["link"] == "rear"]["queue_packets"], two.series["queue_packets"][:, 1])
    done = switched.to_dataframe("completions")
    assert len(done) == len(switched.completions) > 0 and done["slowdown"].max() == switched.slowdown(100)
    assert len(switched.to_dataframe("opened")) == len(switched.opened)
    assert switched.to_dataframe("priorities")["started"].sum() == len(switched.opened)
    queues = switched.to_dataframe("switch_series")
    np.testing.assert_array_equal(queues[queues["queue"] == 1]["packets"], switched.series["switch_packets"][:, 0, 1])
    assert queues["switch"].unique().tolist() == ["switch"]
    assert switched.to_dataframe("queues")["drops"].sum() == switched.switches[0].drops
    assert len(switched.to_dataframe("probes")) == switched.probes[0].received
    assert switched.to_dataframe("traffic_series")["flows_alive"].iloc[-1] == switched.series["flows_alive"][-1]
    assert len(switched.to_dataframe("flows")) == 0 and "goodput_mbps" in switched.to_dataframe("flows")


@pytest.mark.parametrize("what", TABLES)
def test_every_table_is_rectangular_whatever_was_run(two, switched, what):
    bare = nb.simulate(two_bottlenecks(duration_s=1), sample_interval_s=None)
    for result in (two, switched):
        assert len(result.to_dataframe(what).columns) > 1
    if "series" in what:
        with pytest.raises(ConfigError, match="sample_interval_s"):
            bare.to_dataframe(what)
    else:
        bare.to_dataframe(what)


def test_another_table_is_refused_by_name(two):
    with pytest.raises(ConfigError, match=r"what = 'flow' is unknown; did you mean 'flows'\? valid: flows, links"):
        two.to_dataframe("flow")


@pytest.mark.parametrize(("package", "extra"), [("pandas", "analysis"), ("matplotlib", "plots")])
def test_what_is_missing_is_named(two, monkeypatch, package, extra):
    load = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=rf"netbuf-gym\[{extra}\]"):
        two.to_dataframe() if package == "pandas" else two.plot()


def test_csv_gives_each_flow_the_queue_of_its_own_bottleneck(two, tmp_path):
    assert [two.scenario.bottleneck_of(i) for i in range(2)] == [0, 1]
    two.write_csv(tmp_path / "a.csv")
    rows = list(csv.DictReader((tmp_path / "a.csv").open()))
    assert [row["bottleneck"] for row in rows[:2]] == ["front", "rear"]
    for k, (name, link) in enumerate((("flow-0", 0), ("through", 1))):
        own = [row for row in rows if row["name"] == name]
        assert {row["flow"] for row in own} == {str(k)} and len(own) == 40
        for column in ("queue_packets", "queue_drops", "throughput_mbps"):
            found = [float(row[f"bottleneck_{column}"]) for row in own]
            assert found == pytest.approx(two.series[column][:, link].tolist(), rel=1e-8)
    different = two.series["queue_packets"][:, 0] != two.series["queue_packets"][:, 1]
    assert different.any()
    frame = two.to_dataframe("series")
    assert list(frame) == list(rows[0]) and len(frame) == len(rows)


def test_of_equally_tight_links_the_scenarios_bottleneck_counts():
    links = [Link(name=name, rate_mbps=5, delay_ms=5) for name in ("edge", "bottleneck")]
    flow = Flow(cc="cubic", path=["edge", "bottleneck"], return_path=["edge"])
    world = Scenario(links=links, flows=[flow, replace(flow, path=["edge"])], duration_s=1)
    assert [world.bottleneck_of(i) for i in range(2)] == [1, 0]


def test_arrivals_are_never_faster_than_the_link_where_in_order_delivery_is():
    """A hole that is filled hands the application much at once; what arrives is paced by the link."""
    result = nb.simulate(nb.scenarios.get("rlbm/default", duration_s=30, load=0.9), seed=1, sample_interval_s=0.1)
    series = result.series
    assert series["traffic_goodput_mbps"].max() > 15 > 10 >= series["traffic_arrival_mbps"].max() > 8
    arrived, delivered = (series[f"traffic_{name}_mbps"].sum() for name in ("arrival", "goodput"))
    assert arrived >= delivered > 0.9 * arrived
    lossy = nb.simulate(nb.scenarios.dumbbell(senders=["cubic", "bbr"], loss=0.02, duration_s=20), sample_interval_s=0.05)
    arriving = lossy.series["arrival_mbps"].sum(axis=1)
    assert arriving.max() <= 10.5 < lossy.series["goodput_mbps"].sum(axis=1).max()
    total = lossy.series["arrival_mbps"].sum(axis=0) * 0.05 * 1e6 / 8
    assert (total + 1 >= [flow.delivered_bytes for flow in lossy.flows]).all()


def rates_of(figure):
    """The lines of the uppermost panel by their labels."""
    return {line.get_label(): line for line in figure.axes[0].lines}


def test_the_picture_shows_arrivals_and_capacity(two, switched, tmp_path):
    figure = two.plot(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG") and len(list(tmp_path.iterdir())) == 1
    lines = rates_of(figure)
    np.testing.assert_array_equal(lines["newreno (through)"].get_ydata(), two.series["arrival_mbps"][:, 1])
    assert set(lines["capacity of front, on the wire"].get_ydata()) == {8.0}
    assert set(lines["capacity of rear, on the wire"].get_ydata()) == {2.0}
    lines = rates_of(switched.plot())
    assert set(lines["capacity of bottleneck, on the wire"].get_ydata()) == {10.0}
    with pytest.raises(ConfigError, match="valid: png, pdf, svg"):
        two.plot(tmp_path / "a.gif")
    with pytest.raises(ConfigError, match="sample_interval_s"):
        nb.simulate(two_bottlenecks(duration_s=1), sample_interval_s=None).plot(tmp_path / "b.png")
    assert len(list(tmp_path.iterdir())) == 1


TRACES = {
    "rates": RateTrace([0, 2, 3], [4, 0, 8], period_s=5),
    "deliveries": DeliveryTrace(np.arange(1, 4001, 2)),
    "once": RateTrace([0, 3], [6, 2]),
}


@pytest.mark.parametrize("kind", TRACES)
def test_the_capacity_of_traces_is_drawn(kind):
    trace = TRACES[kind]
    links = (Link(name="bottleneck", trace=trace, delay_ms=5, queue_packets=40), Link(name="back", delay_ms=5))
    world = Scenario(links=links, flows=[Flow(cc="cubic", path=[0], return_path=[1])], duration_s=12)
    line = rates_of(nb.simulate(world).plot())["capacity of bottleneck, on the wire"]
    x, y = line.get_xdata(), line.get_ydata()
    assert x[0] == 0 and x[-1] == 12 and len(y) > 2
    carried = float((y[::2] * (x[1::2] - x[::2])).sum())
    assert carried == pytest.approx(trace.mean_mbps(12) * 12)


def test_capacity_steps_are_the_traces_own_where_they_are_few():
    edges, rates = capacity_steps(TRACES["rates"], 12)
    assert edges.tolist() == [0, 2, 3, 5, 7, 8, 10, 12] and rates.tolist() == [4, 0, 8, 4, 0, 8, 4]
    edges, rates = capacity_steps(TRACES["once"], 2)
    assert edges.tolist() == [0, 2] and rates.tolist() == [6]
    fine = RateTrace(np.arange(50_000) / 1000, np.tile([1.0, 3.0], 25_000), period_s=50)
    edges, rates = capacity_steps(fine, 1000)
    assert len(rates) == 1000 and rates == pytest.approx(np.full(1000, 2.0))


def test_frames_without_rows_have_the_types_of_those_with():
    pytest.importorskip("pandas")
    switch = nb.simulate(nb.scenarios.get("rlbm/default", duration_s=3.0), seed=1)
    flows = nb.simulate(nb.scenarios.dumbbell(senders=["cubic"], duration_s=1.0), seed=1)
    for what, empty, full in (("flows", switch, flows), ("priorities", flows, switch), ("queues", flows, switch)):
        none, some = empty.to_dataframe(what), full.to_dataframe(what)
        assert len(none) == 0 < len(some) and list(none) == list(some)
        numbers = [name for name in some if some[name].dtype.kind in "if"]
        assert (none[numbers].dtypes == some[numbers].dtypes).all()
        assert all(none[name].dtype.kind not in "if" for name in some if name not in numbers)


def test_an_index_that_there_is_not_is_answered_with_those_that_there_are():
    result = nb.simulate(nb.scenarios.dumbbell(senders=["cubic"] * 2, duration_s=0.1), seed=1)
    with pytest.raises(IndexError, match="no flow 2; valid: 0 to 1"):
        result.flows[2]
