"""Fair queues in whole worlds: shares of hosts, what a line's framing costs, what fq makes of its host's senders; HyStart++."""

from dataclasses import replace

import pytest

import netbuf_gym as nb
from netbuf_gym.scenarios import CAKE, Flow, FlowList, Host, Link, OnOff, Scenario, Sender, Traffic, dumbbell


def hosts_world(discipline, cc="cubic", busy=10):
    links = [Link(name="line", rate_mbps=20, delay_ms=10, discipline=discipline), Link(name="back", delay_ms=10)]
    ways = {"path": ["line"], "return_path": ["back"], "cc": cc}
    flows = [*(Flow(sender_host="busy", **ways) for _ in range(busy)), Flow(sender_host="calm", **ways)]
    return Scenario(links=links, flows=flows, hosts=[Host(name="busy"), Host(name="calm")], duration_s=40, start_jitter_ms=100)


@pytest.mark.parametrize(
    ("isolation", "share"),
    [("triple-isolate", 1 / 2), ("dual-srchost", 1 / 2), ("srchost", 1 / 2), ("flows", 1 / 11), ("dual-dsthost", 1 / 11)],
)
def test_a_host_of_one_flow_beside_one_of_ten(isolation, share):
    flows = nb.simulate(hosts_world(CAKE(isolation=isolation, rtt_ms=300)), 1, warmup_s=5).flows
    goodput = [flow.goodput_mbps for flow in flows]
    assert goodput[-1] / sum(goodput) == pytest.approx(share, rel=0.06)
    assert sum(goodput) == pytest.approx(20 * 1448 / 1500, rel=0.03)


@pytest.mark.parametrize(
    ("line", "bytes_on_the_line"),
    [
        ({}, 1500),
        ({"overhead_bytes": 44}, 1544),
        ({"framing": "atm", "overhead_bytes": 40}, 33 * 53),
        ({"framing": "ptm"}, 1524),
    ],
)
def test_a_shaped_flow_gets_what_the_framing_leaves(line, bytes_on_the_line):
    line = CAKE(rate_mbps=8, rtt_ms=300, **line)
    world = dumbbell(rate_mbps=100, senders=["cubic"] * 4, discipline=line, duration_s=40, buffer_packets=None)
    result = nb.simulate(world, 1, warmup_s=10)
    assert sum(flow.goodput_mbps for flow in result.flows) == pytest.approx(8 * 1448 / bytes_on_the_line, rel=0.01)


@pytest.mark.parametrize("cc", ["cubic", "bbr"])
def test_fq_at_the_sender_spares_the_bottleneck_its_bursts(cc):
    """Its senders are paced: after a rest a window does not leave at once."""
    device = {"rate_mbps": 1000, "queue_packets": 10_000}

    def longest_queue(discipline):
        links = [
            Link(name="device", discipline=discipline, **device),
            Link(name="bottleneck", rate_mbps=20, delay_ms=20, queue_packets=1000),
            Link(name="back", delay_ms=20),
        ]
        app = OnOff(on_s=0.3, off_s=0.3)
        flow = Flow(cc=cc, path=["device", "bottleneck"], return_path=["back"], send_buffer_bytes=64 * 1448, app=app)
        world = Scenario(links=links, flows=[flow], duration_s=20, slow_start_after_idle=False)
        return nb.simulate(world, 1).links["bottleneck"].queue_max_packets_total

    paced, plain = longest_queue("fq"), longest_queue("droptail")
    assert paced == plain if cc == "bbr" else paced <= 0.85 * plain  # bbr paces itself
    assert longest_queue({"name": "fq", "pacing": False}) == plain


def test_each_connection_is_new_to_fq():
    """Short connections, of which each takes the place of the one before, all have their first quantum beside bulk flows."""
    world = dumbbell(senders=["cubic"] * 8, rate_mbps=20, rtt_ms=20, buffer_packets=2000, discipline="fq", duration_s=30)
    links = {"path": ["bottleneck"], "return_path": ["return"]}
    starts = [10 + 0.5 * i for i in range(20)]
    flows = FlowList(start_s=starts, sender=[0] * 20, size_bytes=[10 * 1448] * 20, priority=[0] * 20)
    world = replace(world, traffic=Traffic(senders=[Sender(**links)], arrivals=[flows]))
    times = nb.simulate(world, 1).completions["fct_s"]
    assert len(times) == 20 and times.max() < 1.2 * times.min()


@pytest.mark.parametrize("cc", ["cubic", "newreno"])
def test_hystart_plus_plus_overshoots_less(cc):
    def drops(hystart, **control):
        world = dumbbell(senders=[{"name": cc, **control}], rtt_ms=100, buffer_packets=300, duration_s=6, hystart=hystart)
        return nb.simulate(world, 1).links["bottleneck"].queue_drops

    without, with_it = drops(False), drops("rfc9406")
    assert 0 < with_it < without / 3
    assert drops(False, hystart_plus_plus=True) == with_it and drops("rfc9406", hystart_plus_plus=False) == without


def test_controls_without_it_do_as_before():
    world = dumbbell(senders=["vegas", "bbr"], duration_s=10)
    assert repr(nb.simulate(world, 1).flows[0]) == repr(nb.simulate(replace(world, hystart="rfc9406"), 1).flows[0])


def test_priorities_choose_tins():
    """At 10 Mbit/s diffserv4 leaves bulk (CS1) a sixteenth beside best effort."""
    line = CAKE(rate_mbps=10, diffserv="diffserv4", rtt_ms=300)
    world = dumbbell(senders=["cubic"] * 8, rate_mbps=100, discipline=line, duration_s=60, buffer_packets=None)
    world = replace(world, flows=[replace(flow, priority=8 if i < 4 else 0) for i, flow in enumerate(world.flows)])
    goodput = [flow.goodput_mbps for flow in nb.simulate(world, 1, warmup_s=20).flows]
    assert sum(goodput[:4]) / sum(goodput) == pytest.approx(1 / 16, rel=0.1)
