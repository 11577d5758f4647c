import math
from dataclasses import replace

import numpy as np
import pytest

from netbuf_gym.errors import ScenarioError, ScenarioTypeError
from netbuf_gym.plants.simulator import Simulator
from netbuf_gym.scenarios import (
    AGENT,
    CONGESTION_CONTROLS,
    WEB_SEARCH,
    DeliveryTrace,
    Flow,
    FlowList,
    Incast,
    Link,
    PoissonArrivals,
    Probe,
    RateTrace,
    Scenario,
    Sender,
    SizeDistribution,
    Switch,
    Traffic,
    shared_buffer,
)
from netbuf_gym.scenarios import traffic as traffic_module
from netbuf_gym.simulation.runner import simulate

HEADER = "flow_id,start_s,sender,size_bytes,priority\n"
POISSON = PoissonArrivals(flows_per_s=1, sizes=WEB_SEARCH)
SENDER = Sender(path=[0], return_path=[1])


def flows(**changes) -> FlowList:
    fields = {"start_s": [3, 1, 2, 1], "sender": [0, 1, 2, 3], "size_bytes": [10, 20, 30, 40], "priority": [0, 1, 0, 1]}
    return FlowList(**{**fields, **changes})


def test_a_flow_list_is_put_in_order_and_keeps_what_flows_are_called():
    made = flows()
    assert made.start_s.tolist() == [1, 1, 2, 3] and made.sender.tolist() == [1, 3, 2, 0]  # equal starts as given
    assert made.flow_id.tolist() == [1, 3, 2, 0] and flows(flow_id=[9, 8, 7, 6]).flow_id.tolist() == [8, 6, 7, 9]
    assert len(made) == 4 and made == flows() and hash(made) == hash(flows()) and made != flows(priority=[0, 0, 0, 0])
    with pytest.raises(ValueError):
        made.start_s[0] = 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start_s": [0, 1, 2, -1]}, r"flows.start_s\[3\] = -1 is out of range"),
        ({"size_bytes": [0, 1, 1, 1]}, r"flows.size_bytes\[0\] = 0 is out of range; valid: 1 to"),
        ({"size_bytes": [1.5, 1, 1, 1]}, r"flows.size_bytes\[0\] = 1.5 is out of range; valid: .* a whole number"),
        ({"priority": [0]}, "flows.priority has 1 values for 4 in start_s"),
        ({"flow_id": [1, 2, 1, 3]}, "flows.flow_id = 1 is given twice"),
        ({"start_s": []}, "flows.start_s is empty"),
        ({"start_s": "now"}, "flows.start_s = 'now' is not a list"),
        ({"sender": ["a", "b", "c", "d"]}, "is not a list of numbers"),
    ],
)
def test_bad_flows_are_named(changes, message):
    with pytest.raises(ScenarioError, match=message):
        flows(**changes)


def test_flow_lists_from_and_to_files(tmp_path):
    path = tmp_path / "flows.csv"
    path.write_text(HEADER + "0,0.5,9,1000,1\n\n7,0.25,0,2000,0\n")
    made = FlowList.read_csv(path, senders=10, queues=2)
    assert made.start_s.tolist() == [0.25, 0.5] and made.flow_id.tolist() == [7, 0] and made.priority.tolist() == [0, 1]
    made.write_csv(tmp_path / "again.csv")
    assert FlowList.read_csv(tmp_path / "again.csv") == made
    path.write_text("priority, fct_s, size_bytes, sender, start_s\n1,,1000,9,0.5\n")  # any order, others passed over, no ids
    made = FlowList.read_csv(path)
    assert (made.priority[0], made.size_bytes[0], made.sender[0], made.start_s[0], made.flow_id[0]) == (1, 1000, 9, 0.5, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "flows.csv:1: is empty"),
        (HEADER, "flows.csv:1: has a header but no flows"),
        ("0,0.5,3,1000,0\n", r"flows.csv:1: column start_s is not in the header; valid: flow_id,start_s"),
        ("start_s,sender,priority\n1,2,3\n", r"flows.csv:1: column size_bytes is not in the header"),
        (HEADER.replace("flow_id", "sender") + "1,1,1,1,1\n", r"flows.csv:1: column sender is twice in the header"),
        (HEADER + "0,0.5,3,1000\n", r"flows.csv:2: has 4 fields; valid: 5"),
        (HEADER + "0,-0.5,3,1000,0\n", r"flows.csv:2: start_s = -0.5 is out of range; valid: 0 to 1e\+06"),
        (HEADER + "0,nan,3,1000,0\n", r"flows.csv:2: start_s = nan"),
        (HEADER + "0,0.5,3,1000,0\n1,0.6,3,0,0\n", r"flows.csv:3: size_bytes = 0 is out of range; valid: 1"),
        (HEADER + "0,0.5,3,-7,0\n", r"flows.csv:2: size_bytes = -7"),
        (HEADER + "0,0.5,-1,10,0\n", r"flows.csv:2: sender = -1"),
        (HEADER + "0,0.5,12,10,0\n", r"flows.csv:2: sender = 12 is out of range; valid: 0..9"),
        (HEADER + "0,0.5,1.5,10,0\n", r"flows.csv:2: sender = 1.5 is not a whole number"),
        (HEADER + "0,0.5,a,10,0\n", r"flows.csv:2: sender = 'a' is not a number"),
        (HEADER + "0,0.5,1,10,2\n", r"flows.csv:2: priority = 2 is out of range; valid: 0..1"),
        (HEADER + "0,0.5,1,10,1\n1,0.6,1,10,1\n0,0.7,1,10,1\n", r"flows.csv:4: flow_id = 0 is on line 2 too"),
    ],
)
def test_bad_files_are_named_with_their_line(tmp_path, text, message):
    path = tmp_path / "flows.csv"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=message):
        FlowList.read_csv(path, senders=10, queues=2)


def test_what_a_world_lacks_is_named_with_the_lists_line(tmp_path):
    path = tmp_path / "flows.csv"
    path.write_text(HEADER + "0,0.5,3,1000,0\n1,0.25,10,1000,0\n")
    with pytest.raises(ScenarioError, match=r"flows.csv:3: sender = 10 is not there; valid: 0..9"):
        shared_buffer(arrivals=FlowList.read_csv(path))
    path.write_text(HEADER + "0,0.5,3,1000,3\n1,0.25,9,1000,0\n")
    with pytest.raises(
        ScenarioError, match=r"flows.csv:2: priority = 3 is beyond the 2 queues of switch 'switch'; valid: 0..1"
    ):
        shared_buffer(arrivals=FlowList.read_csv(path))
    with pytest.raises(ScenarioError, match=r"flow 5: sender = 10 is not there"):
        shared_buffer(arrivals=FlowList(start_s=[1], sender=[10], size_bytes=[1], priority=[0], flow_id=[5]))


def test_the_rate_of_arrivals_from_the_load():
    arrivals = PoissonArrivals.for_load(0.6, 10, WEB_SEARCH)
    assert arrivals.flows_per_s == pytest.approx(0.6 * 10e6 / (8 * 1.711e6), rel=1e-3)
    assert arrivals.offered_mbps == pytest.approx(6) and arrivals == PoissonArrivals.for_load(0.6, 10, "web_search")
    assert Incast(interval_s=0.5, fan_in=4, size_bytes=1000).offered_mbps == pytest.approx(4 * 8000 / 0.5 / 1e6)
    both = Traffic(senders=[SENDER] * 4, arrivals=[arrivals, Incast(interval_s=0.5, fan_in=4, size_bytes=1000), flows()])
    assert both.offered_mbps == pytest.approx(6.064)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PoissonArrivals(flows_per_s=1, sizes="web_search"), "poisson.sizes = 'web_search' is not a law"),
        (lambda: PoissonArrivals(flows_per_s=1, sizes=WEB_SEARCH, start_s=2, stop_s=2), "poisson.stop_s = 2 is not after"),
        (lambda: PoissonArrivals(flows_per_s=9e-10, sizes=WEB_SEARCH), "poisson.flows_per_s = 9e-10 .* valid: 1e-09 to"),
        (lambda: PoissonArrivals.for_load(-1, 10, WEB_SEARCH), "load = -1"),
        (lambda: PoissonArrivals.for_load(1, "10", WEB_SEARCH), "rate_mbps = '10' is not a number"),
        (lambda: PoissonArrivals.for_load(1, 0, WEB_SEARCH), "rate_mbps = 0"),
        (lambda: PoissonArrivals.for_load(1, 10**400, WEB_SEARCH), "rate_mbps = inf"),
        (lambda: PoissonArrivals.for_load(1, 10, "unknown"), "sizes = 'unknown' is unknown; valid: web_search"),
        (lambda: PoissonArrivals.for_load(1, 10, None), "sizes = None is unknown; valid: web_search"),
        (lambda: PoissonArrivals.for_load(1e-300, 10, WEB_SEARCH), "load = 1e-300 .* flows a second .* valid: 1.369e-09 to"),
        (lambda: Incast(interval_s=0, fan_in=1, size_bytes=1), "incast.interval_s = 0"),
        (
            lambda: Sender(cc="agent", path=[0], return_path=[0]),
            f"sender.cc = 'agent' is unknown; valid: {', '.join(name for name in CONGESTION_CONTROLS if name != AGENT)}",
        ),
        (lambda: Sender(cc=3, path=[0], return_path=[0]), "sender.cc = 3; valid: a name, or a dict of name and parameters"),
        (lambda: Sender(path=[], return_path=[0]), "sender.path is empty"),
        (lambda: Traffic(senders=[], arrivals=[POISSON]), "traffic.senders is empty"),
        (lambda: Traffic(senders=[SENDER], arrivals=[]), "traffic.arrivals is empty"),
        (lambda: Traffic(senders=[3], arrivals=[POISSON]), r"traffic.senders\[0\] = 3 is not a Sender"),
        (lambda: Traffic(senders=[SENDER], arrivals=[3]), r"traffic.arrivals\[0\] = 3; valid: PoissonArrivals"),
        (
            lambda: Traffic(senders=[SENDER], arrivals=[Incast(interval_s=1, fan_in=2, size_bytes=1)]),
            r"traffic.arrivals\[0\]: fan_in = 2 of 1 senders",
        ),
        (
            lambda: Traffic(senders=[SENDER], arrivals=[POISSON], priority_below=[5, 5]),
            r"priority_below = \(5, 5\) does not rise",
        ),
        (lambda: Traffic(senders=[SENDER], arrivals=[POISSON], priority_below=[0]), r"priority_below\[0\] = 0"),
        (lambda: Traffic(senders=[SENDER], arrivals=[POISSON], priority_below=5), "priority_below = 5 is not a list"),
        (lambda: Probe(path=[]), "probe.path is empty"),
        (lambda: Probe(path=[0], interval_s=0), "probe.interval_s = 0"),
    ],
)
def test_fields_out_of_range_are_named(make, message):
    with pytest.raises(ScenarioError, match=message):
        make()


def world(**changes) -> Scenario:
    links = [Link(name="bottleneck", rate_mbps=10, delay_ms=3), Link(name="back", delay_ms=7)]
    traffic = Traffic(senders=[Sender(path=["bottleneck"], return_path=["back"])] * 2, arrivals=[POISSON])
    return Scenario(**{"links": links, "traffic": traffic, "duration_s": 1, **changes})


def test_a_world_needs_flows_or_traffic():
    assert world().flows == () and world().traffic.senders[0].path == (0,)
    with pytest.raises(ScenarioError, match="flows is empty"):
        world(traffic=None)
    with pytest.raises(ScenarioTypeError, match="traffic = 3 is not a Traffic"):
        world(traffic=3)
    with pytest.raises(ScenarioTypeError, match="probes = 3 is not a list"):
        world(probes=3)
    with pytest.raises(ScenarioError, match=r"traffic.senders\[0\].path has no link 'c'"):
        world(traffic=Traffic(senders=[Sender(path=["c"], return_path=["back"])], arrivals=[POISSON]))
    with pytest.raises(ScenarioError, match=r"traffic.senders\[0\].cc = 'linuxreno' is not in the linux stack; .*, westwood$"):
        world().with_senders("linuxreno")


def test_a_world_of_traffic_has_the_measures_of_its_senders():
    made = world()
    assert made.propagation_rtt_ms() == 10 and made.ideal_s(1, 1e6) == pytest.approx(0.01 + 0.8)
    assert made.base_rtt_ms() == pytest.approx(10 + 1500 * 8e-3 / 10) and made.bottleneck == 0
    assert [s.cc for s in made.with_senders(["bbr", "vegas"]).traffic.senders] == ["bbr", "vegas"]
    with pytest.raises(ScenarioError, match="senders has 1 names for 2 flows"):
        made.with_senders(["bbr"])


def test_segments_time_outs_and_acks_may_differ_from_the_stacks():
    made = world(mss_bytes=1000, min_rto_ms=10, delayed_ack=1)
    assert (made.mss, made.data_bytes) == (1000, 1052) and (world().mss, world().data_bytes) == (1448, 1500)
    for field, value in (
        ("mss_bytes", 99),
        ("mss_bytes", 1.5),
        ("min_rto_ms", 0),
        ("min_rto_ms", math.nan),
        ("delayed_ack", 0),
    ):
        with pytest.raises(ScenarioError, match=f"{field} = {value}"):
            world(**{field: value})


def test_priorities_need_queues():
    switch = Switch(name="s", ports=[0], queues=1, buffer_packets=5)
    traffic = Traffic(senders=[SENDER], arrivals=[POISSON], priority_below=[1000])
    with pytest.raises(ScenarioError, match=r"priority_below makes 2 priorities for 1 queues of switch 's'; valid: at most 0"):
        world(switches=[switch], traffic=traffic)
    one = FlowList(start_s=[1], sender=[0], size_bytes=[5], priority=[0])
    world(switches=[switch], traffic=Traffic(senders=[SENDER], arrivals=[one], priority_below=[1000]))  # nothing is drawn


def test_arrays_are_taken_as_they_are():
    made = FlowList(
        start_s=np.array([1.0]), sender=np.array([0], np.uint8), size_bytes=np.array([5.0]), priority=np.array([1], np.int32)
    )
    assert made.size_bytes.dtype == np.int64 and made.size_bytes[0] == 5


@pytest.mark.parametrize(
    ("arrivals", "message"),
    [
        ([PoissonArrivals(flows_per_s=1e6, sizes=WEB_SEARCH)], r"flows_per_s = 1e\+06 makes 1e\+07 .*: 5e\+05 or less"),
        ([Incast(interval_s=1e-6, fan_in=2, size_bytes=1)], r"arrivals\[0\].interval_s = 1e-06 makes 2e\+07 .*: 4e-06 or more"),
        (
            [PoissonArrivals(flows_per_s=4e5, sizes=WEB_SEARCH), Incast(interval_s=1e-5, fan_in=2, size_bytes=1, stop_s=6)],
            r"arrivals\[1\].interval_s = 1e-05 makes 1.2e\+06 flows in duration_s = 10; valid: 1.2e-05 or more, for 5000000",
        ),
    ],
)
def test_random_arrivals_make_no_more_flows_than_can_be_remembered(arrivals, message):
    traffic = Traffic(senders=[SENDER] * 2, arrivals=arrivals)
    with pytest.raises(ScenarioError, match=message):
        world(traffic=traffic, duration_s=10)
    assert world(traffic=traffic, duration_s=1).duration_s == 1


def test_the_least_rate_of_arrivals_runs():
    rare = Traffic(senders=[SENDER], arrivals=[PoissonArrivals(flows_per_s=1e-9, sizes=WEB_SEARCH)])
    made = simulate(world(traffic=rare, duration_s=1e6), sample_interval_s=None)
    assert len(made.opened) == 0


def test_a_file_that_never_ends_is_refused():
    for read in (FlowList.read_csv, SizeDistribution.read_csv):
        with pytest.raises(ScenarioError, match="/dev/zero: cannot be read: not a regular file"):
            read("/dev/zero")
        with pytest.raises(ScenarioError, match="cannot be read: the name holds a null character"):
            read("a\0b")


@pytest.mark.parametrize("text", ["1_000", "\u0661\u0660", "1__0", "0x10", "1 0"])
@pytest.mark.parametrize("column", range(5))
def test_numbers_are_of_ascii_digits_that_stand_together(tmp_path, column, text):
    path = tmp_path / "flows.csv"
    row = ["1", "0.5", "3", "1000", "0"]
    row[column] = text
    path.write_text(HEADER + "0,0.5,3,1000,0\n" + ",".join(row) + "\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"flows.csv:3: \w+ = .* is not a number"):
        FlowList.read_csv(path)


def test_only_line_feeds_and_carriage_returns_end_lines(tmp_path):
    path = tmp_path / "flows.csv"
    path.write_bytes((HEADER + "0,0.5,3\x0c,1000,0\r\n1,0.5,3,1000,0\x1c\r2,0.5,3,1000,0\x85\n3,0.5,x,1000,0\n").encode())
    with pytest.raises(ScenarioError, match=r"flows.csv:5: sender = 'x' is not a number"):
        FlowList.read_csv(path)


def test_long_lists_are_parsed_at_once_and_as_row_by_row(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    made = FlowList(
        start_s=rng.random(5000) * 100,
        sender=rng.integers(0, 10, 5000),
        size_bytes=rng.integers(1, 2**40, 5000),
        priority=rng.integers(0, 2, 5000),
        flow_id=rng.permutation(5000) + 2**52,
    )
    made.write_csv(tmp_path / "flows.csv")
    slow = traffic_module._parse_row_by_row
    monkeypatch.setattr(traffic_module, "_parse_row_by_row", None)
    at_once = FlowList.read_csv(tmp_path / "flows.csv")
    monkeypatch.setattr(traffic_module, "_parse_row_by_row", slow)
    monkeypatch.setattr(traffic_module, "_parse_all_rows", lambda *_: None)
    by_row = FlowList.read_csv(tmp_path / "flows.csv")
    assert at_once == by_row and [at_once.describe_entry(k) for k in (0, 4999)] == [by_row.describe_entry(k) for k in (0, 4999)]
    assert at_once.flow_id.tolist() == made.flow_id.tolist() and at_once.start_s == pytest.approx(made.start_s, abs=1e-9)


def test_priorities_matter_at_the_switches_that_are_crossed():
    links = [Link(name=name, rate_mbps=10, delay_ms=1) for name in ("a", "b", "back")]
    one_queue, two = (Switch(name=f"s{q}", ports=[port], queues=q, buffer_packets=5) for q, port in ((1, "b"), (2, "a")))
    sender = Sender(path=["a"], return_path=["back"])
    traffic = Traffic(senders=[sender], arrivals=[POISSON], priority_below=[1000])
    made = world(links=links, switches=[one_queue, two], traffic=traffic)  # nobody crosses the one with one queue
    simulate(made, sample_interval_s=None)
    back = replace(one_queue, ports=["back"])
    with pytest.raises(ScenarioError, match="priority_below makes 2 priorities for 1 queues of switch 's1'"):
        world(links=links, switches=[back, two], traffic=traffic)
    flow = Flow(path=["a"], return_path=["back"], priority=1)
    with pytest.raises(ScenarioError, match=r"flows\[0\].priority = 1 is beyond the 1 queues of switch 's1'"):
        world(links=links, switches=[back, two], traffic=None, flows=[flow])


VARYING = {
    "constant": {"rate_mbps": 7.3},
    "square": {"trace": RateTrace([0, 1.5], [3, 11], period_s=4)},
    "outage first": {"trace": RateTrace([0, 2, 5], [0, 4, 9])},
    "outage until its last step": {"trace": RateTrace([0, 2], [0, 4])},
    "one step": {"trace": RateTrace([0], [6])},
    "one step, repeated": {"trace": RateTrace([0], [6], period_s=0.7)},
    "deliveries": {"trace": DeliveryTrace([0, 3, 3, 11], period_ms=17)},
    "infinitely fast": {},
}


@pytest.mark.parametrize("name", VARYING)
@pytest.mark.parametrize("duration_s", [1, 30])
def test_the_ideal_is_the_cores(name, duration_s):
    links = [Link(name="first", rate_mbps=50, delay_ms=1.25), Link(name="bottleneck", delay_ms=3, **VARYING[name])]
    links.append(Link(name="back", delay_ms=7))
    sender = Sender(path=[0, 1], return_path=[2])
    made = world(links=links, traffic=Traffic(senders=[sender], arrivals=[POISSON]), duration_s=duration_s)
    core = Simulator(made, 1)
    for size in (1, 1448, 10**9):
        for start_s in (0, 0.3, 1.4999, 3.99, 1234.5):
            ideal_s = core.ideal_s(0, size, round(start_s * 1e9))
            assert made.ideal_s(0, size, start_s) == pytest.approx(ideal_s, rel=1e-12, abs=2e-9)


def test_the_ideal_is_what_the_trace_carries_from_the_handshake_on():
    """1 Mbit/s for 2 s, then nothing for 1 s, then 8 Mbit/s; 0.1 s there and back."""
    trace = RateTrace([0, 2, 3], [1, 0, 8])
    links = [Link(name="bottleneck", delay_ms=50, trace=trace), Link(name="back", delay_ms=50)]
    sender = Sender(path=[0], return_path=[1])
    made = world(links=links, traffic=Traffic(senders=[sender], arrivals=[POISSON]), duration_s=10)
    assert made.ideal_s(0, 100_000) == pytest.approx(0.1 + 0.8)
    assert made.ideal_s(0, 100_000, start_s=1.5) == pytest.approx(0.1 + 1.4 + 0.4 / 8)  # 0.4 Mbit before the outage
    assert made.ideal_s(0, 100_000, start_s=20) == pytest.approx(0.1 + 0.1)
    deliveries = replace(made, links=(replace(links[0], trace=DeliveryTrace([100, 1000])), links[1]))
    assert deliveries.ideal_s(0, 1504) == pytest.approx(0.1)  # an opportunity just when the handshake is over
    assert deliveries.ideal_s(0, 1505) == pytest.approx(0.1 + 0.9)
    assert deliveries.ideal_s(0, 1, start_s=0.95) == pytest.approx(0.1 + 0.05)


@pytest.mark.parametrize("seed", range(12))
def test_no_flow_is_faster_than_the_ideal(seed):
    rng = np.random.default_rng(seed)
    if seed % 3:
        edges = np.append(0, np.cumsum(rng.exponential(0.5, 7) + 1e-3)).round(6)
        rates = np.where(rng.random(7) < 0.3, 0.0, 10 ** rng.uniform(-2, 2, 7))
        trace = RateTrace(edges[:-1], np.append(rates[:-1], 5.0), period_s=float(edges[-1]))
    else:
        trace = DeliveryTrace(np.sort(rng.uniform(0, 3000, 400)).round(3))
    rtt_ms = round(10 ** rng.uniform(0, 3), 3)
    links = [Link(name="bottleneck", delay_ms=rtt_ms / 2, trace=trace), Link(name="back", delay_ms=rtt_ms / 2)]
    links.insert(int(rng.integers(2)), Link(name="other", rate_mbps=20, delay_ms=1, queue_packets=50))
    names = [link.name for link in links if link.name != "back"]
    sender = Sender(path=names, return_path=["back"])
    sizes = [int(10 ** rng.uniform(0, 5.5)) for _ in range(20)]
    flows = FlowList(start_s=np.sort(rng.uniform(0, 20, 20)), sender=[0] * 20, size_bytes=sizes, priority=[0] * 20)
    made = world(links=links, traffic=Traffic(senders=[sender], arrivals=[flows]), duration_s=100)
    done = simulate(made, seed=seed, sample_interval_s=None).completions
    assert len(done) > 10 and (done["slowdown"] >= 1).all()
    for row in done:
        ideal_s = made.ideal_s(0, int(row["size_bytes"]), float(row["start_s"]))
        assert row["ideal_s"] == pytest.approx(ideal_s, rel=1e-9, abs=2e-9)
