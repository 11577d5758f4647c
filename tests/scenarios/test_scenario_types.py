import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from netbuf_gym import scenarios
from netbuf_gym.errors import ScenarioError, ScenarioTypeError
from netbuf_gym.plants.simulator import Simulator
from netbuf_gym.scenarios import Bulk, Flow, GilbertElliott, Host, Link, OnOff, RateTrace, Scenario, Sized, Switch

LINK = {"name": "a", "rate_mbps": 10}
FLOW = {"cc": "cubic", "path": (0,), "return_path": (0,)}


def world(**changes) -> Scenario:
    fields = {"links": [Link(**LINK)], "flows": [Flow(**FLOW)], "duration_s": 10}
    return Scenario(**{**fields, **changes})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("queue_packets", 1.5),
        ("loss", 1),
    ],
)
def test_link_fields_out_of_range_are_named(field, value):
    with pytest.raises(ScenarioError, match=f"link 'a': {field} = {value}"):
        Link(**LINK, **{field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rate_mbps", "10"),
        ("rate_mbps", [10]),
        ("delay_ms", None),
        ("queue_packets", "1"),
        ("loss", True),
        ("loss_on_acks", 1),
        ("gilbert_elliott", 0.1),
        ("trace", [1, 2]),
        ("trace", "file.csv"),
    ],
)
def test_link_fields_of_a_wrong_type_are_named(field, value):
    with pytest.raises(ScenarioTypeError, match=f"link 'a': {field} = "):
        Link(**{**LINK, field: value})


def test_link_names_and_contradictions():
    with pytest.raises(ScenarioError, match=r"link.name is empty"):
        Link(name="")
    with pytest.raises(ScenarioTypeError, match=r"link.name = 3"):
        Link(name=3)
    with pytest.raises(ScenarioError, match="rate_mbps = 10 beside a trace"):
        Link(**LINK, trace=RateTrace([0], [5]))
    with pytest.raises(ScenarioError, match=r"loss = 0.1 beside gilbert_elliott"):
        Link(**LINK, loss=0.1, gilbert_elliott=GilbertElliott(p_good_to_bad=0.1, p_bad_to_good=0.5))


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda name: Link(name=name), "link.name"),
        (lambda name: Host(name=name), "host.*name"),
        (lambda name: Switch(name=name, buffer_packets=10), "switch.name"),
        (lambda name: Flow(**FLOW, sender_host=name), "flow.sender_host"),
    ],
)
def test_names_that_the_core_holds_are_unicode(make, field):
    with pytest.raises(ScenarioError, match=rf"{field} = 'a\\ud800' is no valid Unicode; valid: "):
        make("a\ud800")
    make("ä \U0001f600")


def test_gilbert_elliott_mean_loss():
    assert GilbertElliott(p_good_to_bad=0.1, p_bad_to_good=0.3, loss_good=0.0, loss_bad=0.4).mean_loss == pytest.approx(0.1)
    assert GilbertElliott(p_good_to_bad=0, p_bad_to_good=0, loss_good=0.2).mean_loss == 0.2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cc": "tahoe"}, "flow.cc = 'tahoe' is unknown; valid: .*newreno"),
        ({"path": []}, "flow.path is empty"),
        ({"return_path": ()}, "flow.return_path is empty"),
        ({"path": 0}, "flow.path = 0 is not a list"),
        ({"path": "bottleneck"}, "flow.path = 'bottleneck' is not a list"),
        ({"start_s": -1}, "flow.start_s = -1"),
        ({"start_s": 5, "stop_s": 5}, "flow.stop_s = 5 is not after start_s = 5"),
        ({"app": "bulk"}, "flow.app = 'bulk'"),
    ],
)
def test_flow_fields_are_named(changes, message):
    with pytest.raises(ScenarioError, match=message):
        Flow(**{**FLOW, **changes})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Link(name="a", rate_mbps=0), r"link 'a': rate_mbps = 0.*valid: 1e-06 to 1e\+06"),
        (lambda: GilbertElliott(p_good_to_bad=-0.1, p_bad_to_good=0.5), "gilbert_elliott.p_good_to_bad = -0.1"),
        (lambda: Sized(size_bytes=0), "size_bytes = 0"),
        (lambda: OnOff(on_s=0, off_s=1), "on_s = 0"),
        (lambda: OnOff(on_s=1, off_s=1, random="yes"), "random = 'yes'"),
    ],
)
def test_application_fields_are_named(make, message):
    with pytest.raises(ScenarioError, match=message):
        make()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"links": []}, "links is empty"),
        ({"flows": []}, "flows is empty"),
        ({"links": Link(**LINK)}, "links = .* is not a list"),
        ({"links": [LINK]}, r"links\[0\] = .* is not a Link"),
        ({"flows": [FLOW]}, r"flows\[0\] = .* is not a Flow"),
        ({"duration_s": -5}, "duration_s = -5"),
        ({"duration_s": "10"}, "duration_s = '10' is not a number"),
        ({"stack": "bsd"}, "stack = 'bsd' is unknown; valid: linux, ns3"),
        ({"hystart": None}, "hystart = None"),
        ({"hystart": "linux"}, "hystart = 'linux' is unknown; valid: true, false, 'rfc9406'"),
        ({"hystart": "rfc9406", "stack": "ns3"}, "hystart = 'rfc9406' is not in the ns3 stack; valid: True, False"),
        ({"links": [Link(**LINK), Link(**LINK)]}, r"links\[1\].name = 'a' is taken by links\[0\]"),
        ({"flows": [Flow(**{**FLOW, "path": (1,)})]}, r"flows\[0\].path link = 1 is out of range; valid: 0..0"),
        ({"flows": [Flow(**{**FLOW, "return_path": (-1,)})]}, r"flows\[0\].return_path link = -1"),
        ({"flows": [Flow(**{**FLOW, "path": (0.5,)})]}, r"flows\[0\].path link = 0.5"),
        ({"flows": [Flow(**{**FLOW, "path": ("b",)})]}, r"flows\[0\].path has no link 'b'; valid: a"),
        ({"flows": [Flow(**{**FLOW, "cc": "linuxreno"})]}, "not in the linux stack"),
    ],
)
def test_scenario_fields_are_named(changes, message):
    with pytest.raises(ScenarioError, match=message):
        world(**changes)


def test_paths_may_name_links():
    links = [Link(name="x", rate_mbps=5, delay_ms=1), Link(name="y", delay_ms=2)]
    scenario = world(links=links, flows=[Flow(cc="cubic", path=("x", 1), return_path=["y"])])
    assert scenario.flows[0].path == (0, 1) and scenario.flows[0].return_path == (1,)
    assert scenario.propagation_rtt_ms() == 5


def test_scenarios_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        world().duration_s = 5
    assert hash(world()) == hash(world()) and world() == world()


def test_the_bottleneck_is_the_link_of_that_name_or_the_slowest_on_the_path():
    links = [Link(name="x", rate_mbps=5), Link(name="y", rate_mbps=2), Link(name="z", rate_mbps=1), Link(name="back")]
    flows = [Flow(path=(0, 1), return_path=(3,))]
    assert world(links=links, flows=flows).bottleneck == 1
    assert world(links=[*links, Link(name="bottleneck", rate_mbps=50)], flows=flows).bottleneck == 4


def test_base_rtt_of_both_stacks():
    # ns-3's own least RTT of data packets in the reference: 49.269695 ms
    assert scenarios.dumbbell(stack="ns3").base_rtt_ms() == pytest.approx(49.269695, abs=2e-6)
    assert scenarios.dumbbell().base_rtt_ms() == pytest.approx(48 + 1500 * 8e-3 / 10)
    with pytest.raises(ScenarioError, match="flow = 1"):
        scenarios.dumbbell().base_rtt_ms(1)


def test_capacity_buffer_and_bdp():
    scenario = scenarios.dumbbell(rate_mbps=10, rtt_ms=48, buffer_packets=150)
    assert (scenario.capacity_mbps, scenario.buffer_packets) == (10, 150)
    assert scenario.bdp_packets == pytest.approx(40)
    varying = scenarios.dumbbell(trace=RateTrace([0, 5], [10, 20]), duration_s=20)
    assert varying.capacity_mbps == pytest.approx((5 * 10 + 15 * 20) / 20)
    assert varying.base_rtt_ms() == pytest.approx(48 + 1500 * 8e-3 / 20)


def test_with_senders_and_with_agents():
    scenario = scenarios.dumbbell(senders=["cubic", "bbr"])
    assert [f.cc for f in scenario.with_senders("vegas").flows] == ["vegas", "vegas"]
    assert [f.cc for f in scenario.with_senders(["vegas", "cubic"]).flows] == ["vegas", "cubic"]
    assert [f.cc for f in scenario.with_agents(1).flows] == ["agent", "bbr"]
    assert scenario.with_agents().agents == 2 and scenario.agents == 0
    assert scenario.with_agents() == scenario.with_senders("agent")
    with pytest.raises(ScenarioError, match="senders has 3 names for 2 flows"):
        scenario.with_senders(["cubic"] * 3)
    with pytest.raises(ScenarioError, match=r"agents = 3 is out of range; valid: 1\.\.2"):
        scenario.with_agents(3)
    with pytest.raises(ScenarioError, match="agents = 0"):
        scenario.with_agents(0)


def test_default_application_is_bulk():
    assert Flow(**FLOW).app == Bulk()


def test_the_lowest_rates_are_the_cores():
    links = [Link(name="a", rate_mbps=1e-6), Link(name="b", trace=RateTrace([0, 1], [1e-6, 0], period_s=2))]
    flow = Flow(path=[0, 1], return_path=[1], app=OnOff(on_s=1, off_s=1, rate_mbps=1e-6))
    Simulator(world(links=links, flows=[flow]), 1).run(10**9)
    with pytest.raises(ScenarioError, match="rate_mbps = 5e-07 is out of range; valid: 1e-06"):
        OnOff(on_s=1, off_s=1, rate_mbps=5e-7)
    with pytest.raises(ScenarioError, match=r"rate_mbps\[0\] = 1e-09 is out of range; valid: 1e-06"):
        scenarios.RandomDumbbell(rate_mbps=(1e-9, 1))


def test_whole_numbers_of_any_type_are_indices():
    links = [Link(name=name, rate_mbps=10, delay_ms=1) for name in "abc"]
    flow = Flow(path=[2.0, 0.0], return_path=[np.int64(1)])
    switch = scenarios.Switch(ports=[0.0], buffer_packets=9)
    probe = scenarios.Probe(path=(np.float64(0),))
    sender = scenarios.Sender(path=[0.0], return_path=(np.uint8(1),))
    arrivals = [scenarios.PoissonArrivals(flows_per_s=1, sizes=scenarios.WEB_SEARCH)]
    traffic = scenarios.Traffic(senders=[sender], arrivals=arrivals)
    made = world(links=links, flows=[flow], switches=[switch], probes=[probe], traffic=traffic)
    assert made.flows[0].path == (2, 0) and made.to_dict()["switches"][0]["ports"] == [0]
    placed = [made.flows[0].path, made.flows[0].return_path, made.switches[0].ports, made.probes[0].path,
              made.traffic.senders[0].path, made.traffic.senders[0].return_path]  # fmt: skip
    assert all(type(link) is int for path in placed for link in path)
    Simulator(made, 1).run(10**9)
    assert made.base_rtt_ms() > 0


@pytest.mark.parametrize("name", ["ppcc/4", "ppcc/fluctuating", "parking_lot", "pantheon/3"])
def test_what_a_path_offers_is_what_is_asked_of_it_piece_by_piece(name):
    world = scenarios.get(name)
    for flow in range(len(world.flows)):
        path = world.measure_path(flow)
        assert path.tightest == world.tightest_link(flow)
        assert path.capacity_mbps == world.links[path.tightest].mean_mbps(world.duration_s)
        assert path.fair_share_mbps == world.fair_share_mbps(flow)
        assert path.propagation_rtt_ms == world.propagation_rtt_ms(flow)
        assert path.base_rtt_ms == world.base_rtt_ms(flow) and path.mss_bytes == world.mss_of(flow)


def test_a_plain_world_needs_no_records_of_other_worlds():
    late = ["disciplines", "laws", "senders", "sizes", "switched", "switches", "traffic", "udp"]
    program = (
        "import sys, netbuf_gym as nb\n"
        "from netbuf_gym.scenarios.native import build_world_config\n"
        "build_world_config(nb.scenarios.dumbbell(rate_mbps=10, rtt_ms=48, buffer_packets=150, senders=['cubic']))\n"
        f"print([name for name in {late} if f'netbuf_gym.scenarios.{{name}}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
