import csv
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import netbuf_gym as nb
from netbuf_gym import scenarios
from netbuf_gym.errors import ScenarioError
from netbuf_gym.plants.simulator import Simulator
from netbuf_gym.scenarios import (
    SCHEMES,
    AgentThresholds,
    Flow,
    FlowList,
    Link,
    PoissonArrivals,
    Probe,
    RateTrace,
    Scenario,
    Sender,
    SizeDistribution,
    StaticThresholds,
    Switch,
    Traffic,
    shared_buffer,
)
from netbuf_gym.simulation.results.traffic import percentile
from netbuf_gym.utils import files

SMALL = SizeDistribution(name="small", size_bytes=(100, 20_000, 3_000_000), cumulative=(0, 0.8, 1))
BUSY = PoissonArrivals(flows_per_s=8, sizes=SMALL)


def busy(**changes) -> Scenario:
    return shared_buffer(**{"arrivals": BUSY, "buffer_packets": 60, "duration_s": 15, **changes})


def one_flow(size_bytes=100_000, **changes) -> Scenario:
    flow = FlowList(start_s=[0.25], sender=[3], size_bytes=[size_bytes], priority=[1])
    return shared_buffer(**{"arrivals": flow, "duration_s": 20, **changes})


def check_conservation(result):
    """What must hold in any world: every flow, packet and byte is somewhere, and the buffer holds what it can."""
    opened, done = result.opened, result.completions
    assert (opened["flow"] == np.arange(len(opened))).all() and (np.diff(opened["start_s"]) >= 0).all()
    assert len(np.unique(done["flow"])) == len(done)
    for name in ("start_s", "sender", "size_bytes", "priority"):
        assert (done[name] == opened[name][done["flow"]]).all()
    finished = np.isin(opened["flow"], done["flow"])
    assert (opened["received_bytes"][finished] == opened["size_bytes"][finished]).all()
    assert (opened["received_bytes"][~finished] < opened["size_bytes"][~finished]).all()
    assert (done["fct_s"] > 0).all() and (done["start_s"] + done["fct_s"] <= result.scenario.duration_s).all()
    assert (np.diff(done["start_s"] + done["fct_s"]) > -1e-9).all()
    assert (done["slowdown"] > 1).all()  # the ideal counts neither headers nor the handshake
    t = result.traffic
    assert (t.flows_started, t.flows_completed) == (len(opened), len(done)) and t.flows_connected <= t.flows_started
    assert t.delivered_bytes == opened["received_bytes"].sum()
    for switch in result.switches:
        for queue in switch.queues:
            assert queue.arrivals == queue.departures + queue.drops + queue.packets
            assert queue.packets_mean <= queue.packets_max and queue.packets_p99 <= queue.packets_max
            if not switch.in_bytes:
                assert queue.packets_max <= switch.capacity
        assert 0 <= switch.occupancy_mean <= switch.occupancy_max <= 1 and switch.occupancy_p99 <= 1
        assert sum(queue.packets_mean for queue in switch.queues) <= switch.capacity
    for probe in result.probes:
        assert probe.received <= probe.sent
        assert not len(probe.delays_s) or probe.delays_s.min() > 0.0101


@pytest.mark.parametrize("scheme", sorted(SCHEMES))
@pytest.mark.parametrize("stack", ["linux", "ns3"])
def test_flows_and_packets_are_conserved_under_every_scheme(scheme, stack):
    result = nb.simulate(busy(scheme=scheme, stack=stack), seed=3)
    check_conservation(result)
    assert len(result.opened) > 80 and result.flows_completed() > 10
    assert sum(queue.drops for switch in result.switches for queue in switch.queues) + result.links[0].queue_drops > 0


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**40),
    scheme=st.sampled_from(
        ["naive", "sophisticated", "abm", {"name": "dt", "alphas": [0, 3]}, {"name": "agent", "betas": [1, 0.5]}]
    ),
    scheduler=st.sampled_from(["round_robin", "drr", "strict_priority"]),
    buffer=st.sampled_from([{"buffer_packets": 1}, {"buffer_packets": 7}, {"buffer_bytes": 1500}, {"buffer_bytes": 40_000}]),
    cc=st.sampled_from(["cubic", "newreno", "bbr", "vegas"]),
    incast=st.booleans(),
    options=st.sampled_from([{}, {"mss_bytes": 500}, {"min_rto_ms": 10}, {"delayed_ack": 1}, {"queue_cap": 3}]),
)
def test_flows_and_packets_are_conserved_in_random_worlds(seed, scheme, scheduler, buffer, cc, incast, options):
    arrivals = [BUSY, scenarios.Incast(interval_s=0.5, fan_in=7, size_bytes=5000, random=True)] if incast else [BUSY]
    world = shared_buffer(
        arrivals=arrivals, scheme=scheme, scheduler=scheduler, senders=cc, duration_s=4, **{**buffer, **options}
    )
    result = nb.simulate(world, seed, sample_interval_s=0.25)
    check_conservation(result)
    capacity = world.switches[0].capacity
    unit = "switch_bytes" if world.switches[0].in_bytes else "switch_packets"
    assert (result.series[unit].sum(axis=2) <= capacity).all()
    if "queue_cap" in options:
        assert (result.series[unit] <= options["queue_cap"]).all()


def test_one_seed_is_the_same_traffic_under_every_scheme():
    base = nb.simulate(busy(), seed=5).opened
    for changes in ({"scheme": "abm"}, {"scheme": "codel"}, {"senders": "bbr"}, {"buffer_packets": 1000}, {"stack": "ns3"}):
        other = nb.simulate(busy(**changes), seed=5).opened
        for name in ("start_s", "sender", "size_bytes", "priority"):
            assert (base[name] == other[name]).all()
    assert len(nb.simulate(busy(), seed=6).opened) != len(base) or (nb.simulate(busy(), seed=6).opened != base).any()


def test_arrivals_have_their_rate_sizes_and_priorities():
    opened = nb.simulate(busy(duration_s=200, buffer_packets=5, scheme="naive"), seed=1, sample_interval_s=None).opened
    assert len(opened) == pytest.approx(1600, abs=4 * 40)
    assert opened["size_bytes"].mean() == pytest.approx(SMALL.mean_bytes, rel=0.15)
    assert (opened["size_bytes"] <= 20_000).mean() == pytest.approx(0.8, abs=0.05)
    assert (opened["priority"] == (opened["size_bytes"] >= 2_000_000)).all()
    assert np.bincount(opened["sender"], minlength=10) == pytest.approx(np.full(10, 160), abs=4 * 13)
    gaps = np.diff(opened["start_s"])
    assert gaps.mean() == pytest.approx(1 / 8, rel=0.1) and gaps.std() == pytest.approx(1 / 8, rel=0.15)


def test_bursts_start_at_once_from_different_senders():
    world = scenarios.get("rlbm/incast", interval_s=2, fan_in=6, load=0.05, duration_s=11)
    opened = nb.simulate(world, seed=2).opened
    bursts = opened[opened["size_bytes"] == 20_000]
    assert sorted(set(bursts["start_s"].tolist())) == pytest.approx([0, 2, 4, 6, 8, 10])
    for start in np.unique(bursts["start_s"]):
        senders = bursts["sender"][bursts["start_s"] == start]
        assert len(senders) == 6 == len(set(senders.tolist()))


def test_arrivals_keep_to_their_span():
    arrivals = PoissonArrivals(flows_per_s=50, sizes=SMALL, start_s=2, stop_s=4)
    start_s = nb.simulate(busy(arrivals=arrivals), seed=1).opened["start_s"]
    assert start_s.min() > 2 and start_s.max() < 4 and len(start_s) > 60


def test_a_flow_alone_takes_what_it_must():
    result = nb.simulate(one_flow())
    done = result.completions[0]
    assert (done["flow"], done["sender"], done["size_bytes"], done["priority"]) == (0, 3, 100_000, 1)
    assert done["start_s"] == 0.25 and done["ideal_s"] == pytest.approx(0.0202 + 0.08)
    assert done["fct_s"] == result.fct_mean_s() == result.fct_s(99) and done["slowdown"] == done["fct_s"] / done["ideal_s"]
    assert done["difference_s"] == pytest.approx(done["fct_s"] - done["ideal_s"])
    # a handshake, slow start from ten segments on a queue that never empties from then on, headers
    assert 0.0202 + 0.08 * 1500 / 1448 < done["fct_s"] < 3 * 0.0202 + 0.08 * 1500 / 1448
    queue = result.switches["switch"].queues[1]
    assert queue.arrivals == queue.departures >= 70 and queue.drops == 0 and queue.bytes_out > 100_000
    assert (queue.port, queue.queue, queue.packets) == ("bottleneck", 1, 0)
    assert result.flows == () and result.loss_rate == 0 and result.goodput_mbps == pytest.approx(8 * 0.1 / 20)


def test_the_probe_sees_propagation_and_the_queue():
    quiet = nb.simulate(one_flow(size_bytes=1)).probes[0]
    assert quiet.sent == quiet.received == 20
    wire_s = 92 * 8 / 100e6 + 92 * 8 / 10e6
    assert quiet.mean_ms == pytest.approx((0.0101 + wire_s) * 1e3) == quiet.percentile_ms(99)
    busy_link = nb.simulate(one_flow(size_bytes=10**8)).probes[0]
    assert busy_link.mean_ms > 1.05 * quiet.mean_ms  # round robin: at most a packet or two before it
    assert nb.simulate(one_flow(size_bytes=10**8, scheme="droptail")).probes[0].mean_ms > 10 * quiet.mean_ms


def test_segments_time_outs_and_acks_take_effect():
    base, small = nb.simulate(one_flow()), nb.simulate(one_flow(mss_bytes=1000))
    assert base.switches[0].queues[1].arrivals < small.switches[0].queues[1].arrivals
    assert small.switches[0].queues[1].bytes_out - base.switches[0].queues[1].bytes_out == pytest.approx(
        52 * (math.ceil(1e5 / 1000) - math.ceil(1e5 / 1448)), abs=200
    )
    each, pairs = (nb.simulate(one_flow(delayed_ack=n, stack="ns3"), sample_interval_s=None) for n in (1, 2))
    assert each.links["return"].packets_in > 1.5 * pairs.links["return"].packets_in
    eager, patient = (nb.simulate(busy(stack="ns3", min_rto_ms=rto), sample_interval_s=None) for rto in (10, None))
    assert eager.traffic.timeouts > 1.2 * patient.traffic.timeouts > 0


def test_replaying_what_was_drawn_is_the_same_run(tmp_path):
    world = busy()
    drawn = nb.simulate(world, seed=4)
    drawn.write_flows_csv(tmp_path / "flows.csv")
    for flows in (drawn.flow_list(), FlowList.read_csv(tmp_path / "flows.csv", senders=10, queues=2)):
        again = nb.simulate(busy(arrivals=flows), seed=99)
        assert (again.completions == drawn.completions).all() and (again.opened == drawn.opened).all()
    rows = list(csv.DictReader((tmp_path / "flows.csv").open()))
    assert len(rows) == len(drawn.opened) and sum(bool(row["fct_s"]) for row in rows) == len(drawn.completions)
    by_id = {int(row["flow"]): row for row in drawn.completions}
    for row in rows:
        if row["fct_s"]:
            assert float(row["slowdown"]) == pytest.approx(by_id[int(row["flow_id"])]["slowdown"], rel=1e-8)
    with pytest.raises(ScenarioError, match="no finite flow started"):
        nb.simulate(one_flow(duration_s=0.2)).flow_list()


def test_summaries_are_of_flows_that_started_in_the_window():
    scenario = busy(priority_below=10_000)  # so that both are many
    whole, late = nb.simulate(scenario, seed=2), nb.simulate(scenario, seed=2, warmup_s=5)
    assert (whole.completions == late.completions).all() and late.window_s == (5, 15)
    kept = whole.completions[whole.completions["start_s"] >= 5]
    assert late.flows_completed() == len(kept) < whole.flows_completed()
    assert late.fct_mean_s() == pytest.approx(kept["fct_s"].mean())
    for p in (0, 1):
        mine = kept[kept["priority"] == p]
        assert len(mine) > 5
        assert late.flows_completed(p) == len(mine) and late.slowdown(100, p) == mine["slowdown"].max()
        assert late.slowdown(50, p) == np.sort(mine["slowdown"])[math.ceil(len(mine) / 2) - 1]
        assert late.difference_s(100, p) == mine["difference_s"].max()
        assert late.slowdown_mean(p) == pytest.approx(mine["slowdown"].mean())
    assert math.isnan(late.fct_mean_s(7)) and math.isnan(late.slowdown(99, 7))
    assert late.traffic.delivered_bytes < whole.traffic.delivered_bytes
    assert late.traffic.goodput_mbps == pytest.approx(late.traffic.delivered_bytes * 8e-6 / 10)
    rows = late.by_priority()
    assert [row["priority"] for row in rows] == [0, 1] and sum(row["completed"] for row in rows) == late.flows_completed()


def test_nearest_rank_percentiles():
    values = np.arange(1.0, 101)
    assert [percentile(values, share) for share in (0, 1, 50, 99, 99.5, 100)] == [1, 1, 50, 99, 100, 100]
    assert math.isnan(percentile(np.zeros(0), 50))


def test_series_agree_with_the_statistics():
    world = busy(scheme={"name": "dt", "alphas": [2, 0.5]})
    result = nb.simulate(world, seed=1, sample_interval_s=0.1)
    series, switch = result.series, result.switches[0]
    assert series["switch_packets"].shape == (150, 1, 2) and series["flows_alive"].shape == (150,)
    assert series["switch_drops"].sum(axis=(0, 1)).tolist() == [queue.drops for queue in switch.queues]
    assert [int(n) for n in series["switch_packets"][-1, 0]] == [queue.packets for queue in switch.queues]
    free = 60 - series["switch_packets"].sum(axis=2)
    assert np.allclose(series["switch_threshold"][:, :, 0], 2 * free)
    assert np.allclose(series["switch_threshold"][:, :, 1], 0.5 * free)
    assert series["traffic_goodput_mbps"].sum() * 0.1 * 1e6 / 8 == pytest.approx(result.traffic.delivered_bytes)
    assert series["flows_alive"][-1] == len(result.opened) - len(result.completions)
    plain = nb.simulate(world, seed=1, sample_interval_s=None)
    assert (plain.completions == result.completions).all() and plain.switches == result.switches


@pytest.mark.slow
def test_thresholds_keep_queues_where_they_belong():
    result = nb.simulate(busy(scheme=StaticThresholds(limits=[5, 9])), seed=1)
    assert [queue.packets_max for queue in result.switches[0].queues] == [5, 9]
    assert result.switches[0].occupancy_max == pytest.approx(14 / 60)
    large = PoissonArrivals(flows_per_s=2, sizes=SizeDistribution(name="l", size_bytes=(1e7,), cumulative=(1,)))
    naive = nb.simulate(busy(arrivals=large, buffer_packets=600, duration_s=30), seed=1)
    assert naive.switches[0].queues[1].packets_max == 300  # one queue alone: half of the buffer
    both = nb.simulate(scenarios.get("rlbm/thesis-text", queue_packets=300), seed=1)
    assert both.switches[0].occupancy_p99 == pytest.approx(2 / 3, abs=0.01)  # two: two thirds
    favoured = nb.simulate(scenarios.get("rlbm/thesis-text", queue_packets=300, scheme="sophisticated"), seed=1)
    assert favoured.switches[0].occupancy_p99 == pytest.approx(9 / 10, abs=0.02)  # 8 and 1 of what is free
    agent = nb.simulate(busy(scheme=AgentThresholds(betas=[1, 0.5], alphas=[1, 0.5]), arrivals=large), seed=1)
    assert agent.switches[0].queues[1].packets_max == 12  # n < (60 - n) / 4


def test_schedulers_share_the_link_as_they_should():
    long = FlowList(start_s=[0, 0], sender=[0, 1], size_bytes=[10**9] * 2, priority=[0, 1])
    share = {}
    for scheduler in ("round_robin", "drr", "strict_priority", {"kind": "drr", "quanta_bytes": [4500, 1500]}):
        result = nb.simulate(busy(arrivals=long, scheduler=scheduler, buffer_packets=200, ping=False), seed=1)
        out = [queue.bytes_out for queue in result.switches[0].queues]
        share[str(scheduler)] = out[0] / sum(out)
    assert share["round_robin"] == pytest.approx(0.5, abs=0.02) == share["drr"]
    assert share["strict_priority"] > 0.97
    assert share[str(scheduler)] == pytest.approx(0.75, abs=0.03)


def test_static_flows_beside_traffic_and_two_switches():
    links = [Link(name="bottleneck", rate_mbps=10, delay_ms=5), Link(name="second", rate_mbps=8, delay_ms=5)]
    links += [Link(name="back", delay_ms=10)]
    world = Scenario(
        links=links,
        duration_s=10,
        flows=[Flow(path=["bottleneck", "second"], return_path=["back"], priority=2)],
        traffic=Traffic(senders=[Sender(path=["bottleneck"], return_path=["back"])], arrivals=[BUSY], priority_below=[2000]),
        switches=[
            Switch(name="one", ports=["bottleneck"], queues=3, buffer_packets=50),
            Switch(name="two", ports=["second"], queues=4, buffer_bytes=90_000),
        ],
        probes=[Probe(path=["second"], priority=3)],
    )
    result = nb.simulate(world)
    check_conservation_of_parts(result)
    assert result.switches["two"] is result.switches[1] and len(result.switches["two"].queues) == 4
    assert result.series["switch_packets"].shape == (100, 2, 4) and np.isnan(result.series["switch_packets"][:, 0, 3]).all()
    assert result.goodput_mbps == pytest.approx(result.flows[0].goodput_mbps + result.traffic.goodput_mbps)
    with pytest.raises(KeyError, match="no switch 'x'; there are one, two"):
        result.switches["x"]


def check_conservation_of_parts(result):
    for switch in result.switches:
        for queue in switch.queues:
            assert queue.arrivals == queue.departures + queue.drops + queue.packets
    assert result.flows[0].delivered_bytes > 0 and len(result.completions) > 0


def test_results_are_written_as_json_and_csv(tmp_path):
    result = nb.simulate(busy(duration_s=3), sample_interval_s=0.5)
    result.write_json(tmp_path / "a.json")
    data = json.loads((tmp_path / "a.json").read_text())
    assert Scenario.from_dict(data["scenario"]) == result.scenario
    assert data["completions"]["fct_s"] == result.completions["fct_s"].tolist()
    assert data["opened"]["size_bytes"] == result.opened["size_bytes"].tolist()
    assert data["traffic"]["flows_started"] == len(result.opened) and data["traffic"]["by_priority"] == files.to_plain_values(
        result.by_priority()
    )
    assert data["switches"][0]["queues"][1]["arrivals"] == result.switches[0].queues[1].arrivals
    assert data["probes"][0]["sent"] == 3
    assert "completions" not in result.to_dict(series=False) and "traffic" in result.to_dict(series=False)
    result.write_csv(tmp_path / "a.csv")
    rows = list(csv.DictReader((tmp_path / "a.csv").open()))
    assert (
        len(rows) == 6
        and rows[0]["flow"] == ""
        and float(rows[-1]["switch_packets_1"]) == result.series["switch_packets"][-1, 0, 1]
    )
    assert float(rows[-1]["switch_threshold_0"]) == result.series["switch_threshold"][-1, 0, 0]
    assert float(rows[-1]["traffic_goodput_mbps"]) == pytest.approx(result.series["traffic_goodput_mbps"][-1])


def test_random_losses_of_finite_flows_are_losses():
    world = busy()
    lossy = replace(world.links[0], loss=0.02)
    result = nb.simulate(replace(world, links=(lossy, *world.links[1:])), seed=4)
    traffic = result.traffic
    handshakes = result.links["bottleneck"].random_losses - traffic.random_losses  # SYNs are lost too, but are no data
    assert traffic.random_losses > 50 and 0 <= handshakes < 20
    assert result.loss_rate == (traffic.queue_drops + traffic.random_losses) / traffic.packets_sent
    assert result.to_dict(series=False)["traffic"]["random_losses"] == traffic.random_losses


def test_slowdowns_go_by_the_cores_ideal():
    trace = RateTrace([0, 1], [0, 9], period_s=3)
    world = busy(duration_s=10)
    world = replace(world, links=(replace(world.links[0], rate_mbps=None, trace=trace), *world.links[1:]))
    done = nb.simulate(world, seed=2).completions
    core = Simulator(world, 2)
    assert len(done) > 10
    ideal = [core.ideal_s(int(row["sender"]), int(row["size_bytes"]), round(row["start_s"] * 1e9)) for row in done]
    assert done["ideal_s"] == pytest.approx(ideal, rel=1e-12)
