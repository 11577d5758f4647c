import warnings
from dataclasses import replace

import pytest

import netbuf_gym as nb
from netbuf_gym import scenarios
from netbuf_gym.errors import ScenarioWarning
from netbuf_gym.scenarios import Flow, Link, Policer, Probe, Scenario, Switch, UdpSource

SIZE = 1500
WAYS = {"fifo": None, "droptail": "droptail", "codel": "codel", "fq_codel": "fq_codel", "pie": "pie", "red": "red"}


def world(stack="linux", **link):
    given = {"rate_mbps": 10, "delay_ms": 10, **link}
    links = [Link(name="bottleneck", **given), Link(name="return", delay_ms=10)]
    flow = Flow(path=("bottleneck",), return_path=("return",), receive_buffer_bytes=50_000)
    return Scenario(links=links, flows=[flow], duration_s=3, stack=stack)


def warned(make):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = make()
    return made, [str(one.message) for one in caught if one.category is ScenarioWarning]


@pytest.mark.parametrize("discipline", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("rate_mbps", [10, None], ids=["finite", "infinite"])
def test_a_queue_below_one_packet_lets_none_pass_whatever_manages_it(discipline, rate_mbps):
    small, told = warned(lambda: world(queue_bytes=1000, discipline=discipline, rate_mbps=rate_mbps))
    assert told == [
        "links[0].queue_bytes = 1000 is less than a packet of 1500 bytes, so that every such packet is dropped; "
        "valid: 1500 or more"
    ]
    flow = nb.simulate(small, 1).flows[0]
    assert flow.packets_sent > 0 and flow.queue_drops == flow.packets_sent and flow.delivered_bytes == 0
    enough, told = warned(lambda: world(queue_bytes=SIZE, discipline=discipline, rate_mbps=rate_mbps))
    assert not told and nb.simulate(enough, 1).flows[0].delivered_bytes > 100_000


@pytest.mark.parametrize("name", ["tbf", "policer"])
def test_a_burst_below_one_packet_lets_none_pass(name):
    def make(burst):
        return world(discipline={"name": name, "rate_mbps": 5, "burst_bytes": burst})

    small, told = warned(lambda: make(1499))
    assert told == [
        "links[0].discipline.burst_bytes = 1499 is less than a packet of 1500 bytes, so that every such packet is dropped; "
        "valid: 1500 or more"
    ]
    flow = nb.simulate(small, 1).flows[0]
    assert 0 < flow.packets_sent == flow.queue_drops
    enough, told = warned(lambda: make(1500))
    assert not told and nb.simulate(enough, 1).flows[0].delivered_bytes > 0


def test_the_packet_is_the_longest_that_crosses_the_link():
    ack_path = [Link(name="bottleneck", rate_mbps=10), Link(name="return", rate_mbps=1, queue_bytes=100)]
    flow = Flow(path=("bottleneck",), return_path=("return",))
    quiet, told = warned(lambda: Scenario(links=ack_path, flows=[flow], duration_s=1))  # ACKs only
    assert not told
    _, told = warned(lambda: replace(quiet, udp=[UdpSource(path=("return",), rate_mbps=0.1, packet_bytes=500)]))
    assert told and "links[1].queue_bytes = 100 is less than a packet of 500 bytes" in told[0]
    _, told = warned(lambda: replace(quiet, probes=[Probe(path=("return",), interval_s=0.1, bytes=101)]))
    assert "packet of 101 bytes" in told[0]
    _, told = warned(lambda: world(queue_bytes=1501, stack="ns3"))
    assert "packet of 1502 bytes" in told[0]
    _, told = warned(lambda: replace(world(queue_bytes=1100), mss_bytes=1000))
    assert not told[1:]  # a segment of 1000 bytes makes 1052


def test_a_datagram_longer_than_the_queue_is_dropped_though_tcp_fits():
    mixed, told = warned(
        lambda: replace(world(queue_bytes=2000), udp=[UdpSource(path=("bottleneck",), rate_mbps=1, packet_bytes=3000)])
    )
    assert "packet of 3000 bytes" in told[0]
    result = nb.simulate(mixed, 1)
    assert result.udp[0].packets_received == 0 < result.udp[0].packets_sent and result.flows[0].delivered_bytes > 0


def test_a_buffer_of_a_switch_below_one_packet_is_told():
    links = [Link(name="bottleneck", rate_mbps=10), Link(name="return")]
    flow = Flow(path=("bottleneck",), return_path=("return",))

    def make(**switch):
        return Scenario(links=links, flows=[flow], duration_s=1, switches=[Switch(**switch)])

    assert "switches[0].buffer_bytes = 1400" in warned(lambda: make(buffer_bytes=1400))[1][0]
    assert "switches[0].queue_cap = 1400" in warned(lambda: make(buffer_bytes=60000, queue_cap=1400))[1][0]
    assert not warned(lambda: make(buffer_packets=1, queue_cap=1))[1]


def test_the_warning_names_the_line_of_the_caller():
    with pytest.warns(ScenarioWarning) as caught:
        scenarios.dumbbell(discipline=Policer(burst_bytes=100))
    assert caught[0].filename == __file__


def test_the_command_warns_in_one_line(capsys):
    from netbuf_gym.cli.program import main

    small = '{"name": "tbf", "burst_bytes": 1499}'
    assert main(["simulate", "--set", f"discipline={small}", "--duration", "1"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("netbuf-gym: warning: links[0].discipline.burst_bytes = 1499") and err.count("\n") == 1
