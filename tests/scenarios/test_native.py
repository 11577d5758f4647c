import pytest

from netbuf_gym import scenarios
from netbuf_gym.scenarios import (
    DRR,
    RED,
    AgentThresholds,
    DeliveryTrace,
    Flow,
    FlowList,
    GilbertElliott,
    Incast,
    Link,
    OnOff,
    PoissonArrivals,
    Probe,
    RateTrace,
    Scenario,
    Sender,
    Sized,
    StaticThresholds,
    Switch,
    Traffic,
)
from netbuf_gym.scenarios.native import build_world_config


def test_units_become_the_cores():
    scenario = Scenario(
        links=[
            Link(name="a", rate_mbps=10.5, delay_ms=1.25, queue_packets=7, queue_bytes=9000, loss=0.25, loss_on_acks=True),
            Link(name="b", trace=RateTrace([0, 0.1], [5, 6], period_s=0.2)),
            Link(name="c", trace=DeliveryTrace([1, 1, 2.5], period_ms=4)),
            Link(name="d", gilbert_elliott=GilbertElliott(p_good_to_bad=0.1, p_bad_to_good=0.2, loss_good=0.3, loss_bad=0.4)),
        ],
        flows=[
            Flow(cc="agent", path=(0, 1), return_path=(3,), start_s=0.1, stop_s=0.3, initial_cwnd_packets=4),
            Flow(cc="bbr", path=(2,), return_path=(3, 0), app=Sized(size_bytes=99), send_buffer_bytes=5000),
            Flow(path=(2,), return_path=(3,), app=OnOff(on_s=0.5, off_s=0.25, rate_mbps=2, random=True)),
        ],
        duration_s=1,
        hystart=False,
    )
    config = build_world_config(scenario)
    a, b, c, d = config.links
    assert (a.name, a.rate_bps, a.delay_ns, a.queue_limit_packets, a.queue_limit_bytes) == ("a", 10.5e6, 1_250_000, 7, 9000)
    assert (a.loss, a.loss_on_acks) == (0.25, True)
    assert (b.rate_bps, list(b.schedule_time_ns), list(b.schedule_rate_bps)) == (0, [0, 100_000_000], [5e6, 6e6])
    assert (b.schedule_period_ns, b.queue_limit_packets) == (200_000_000, 0)
    assert (list(c.trace_ns), c.trace_period_ns) == ([1_000_000, 1_000_000, 2_500_000], 4_000_000)
    assert list(d.ge) == [0.1, 0.2, 0.3, 0.4]
    agent, sized, on_off = config.flows
    assert (agent.cc, agent.controlled, list(agent.path), list(agent.return_path)) == ("agent", True, [0, 1], [3])
    assert (agent.start_ns, agent.stop_ns, agent.app, agent.initial_cwnd_packets) == (100_000_000, 300_000_000, "bulk", 4)
    assert (sized.controlled, sized.app, sized.size_bytes, sized.send_buffer_bytes) == (False, "sized", 99, 5000)
    assert (sized.stop_ns, sized.receive_buffer_bytes) == (0, 0)
    assert (on_off.app, on_off.on_ns, on_off.off_ns) == ("on_off", 500_000_000, 250_000_000)
    assert (on_off.app_rate_bps, on_off.random_on_off) == (2e6, True)
    assert config.hystart is False


@pytest.mark.parametrize("stack", ["linux", "ns3"])
def test_the_stack_is_handed_on(stack):
    assert str(build_world_config(scenarios.dumbbell(stack=stack)).stack).lower().endswith(stack)


def test_switches_traffic_and_probes_become_the_cores():
    scenario = Scenario(
        links=[
            Link(name="a", rate_mbps=10, device_packets=1),
            Link(name="b", rate_mbps=5),
            Link(name="c", rate_mbps=5, queue_packets=9, discipline=RED(min_packets=3, max_packets=9, wait=True)),
        ],
        duration_s=1,
        switches=[
            Switch(
                name="one",
                ports=["a"],
                buffer_bytes=5000,
                queue_cap=4000,
                drop="head",
                protect_syn=True,
                admission=AgentThresholds(betas=[1, 0.5], alphas=[0.25, 2]),
                scheduler=DRR(quanta_bytes=[100, 200]),
            ),
            Switch(name="two", ports=["b"], queues=3, buffer_packets=7, admission=StaticThresholds(limits=[1, 2, 3])),
        ],
        flows=[Flow(path=["a"], return_path=["c"], priority=1)],
        traffic=Traffic(
            senders=[Sender(cc="newreno", path=["a", "b"], return_path=["c"], initial_cwnd_packets=2)],
            arrivals=[
                PoissonArrivals(flows_per_s=3, sizes=scenarios.WEB_SEARCH, start_s=0.5, stop_s=2),
                Incast(interval_s=0.25, fan_in=1, size_bytes=77, random=True),
                FlowList(start_s=[0.2, 0.1], sender=[0, 0], size_bytes=[10, 20], priority=[1, 0]),
            ],
            priority_below=[1000],
        ),
        probes=[Probe(path=["a"], priority=1, interval_s=0.5, start_s=0.25, bytes=99)],
        mss_bytes=1000,
        min_rto_ms=12.5,
        delayed_ack=1,
    )
    config = build_world_config(scenario)
    one, two = config.switches
    assert (one.name, list(one.ports), one.queues, one.capacity, one.in_bytes) == ("one", [0], 2, 5000, True)
    assert (one.admission, list(one.alphas), list(one.betas), one.queue_cap) == ("agent", [0.25, 2], [1, 0.5], 4000)
    assert (one.scheduler, list(one.quanta)) == ("drr", [100, 200])
    assert (two.admission, list(two.thresholds), two.capacity, two.in_bytes) == ("static", [1, 2, 3], 7, False)
    assert (one.drop, one.protect_syn, two.drop, two.protect_syn) == ("head", True, "tail", False)
    assert (two.queue_cap, two.scheduler) == (0, "round_robin")
    a, _, c = config.links
    assert (a.device_packets, a.discipline, c.discipline) == (1, "", "red")
    assert {"min_packets": 3, "max_packets": 9, "wait": 1, "gentle": 1}.items() <= dict(c.discipline_parameters).items()
    assert config.flows[0].priority == 1
    sender = config.traffic.senders[0]
    assert (sender.cc, list(sender.path), list(sender.return_path), sender.initial_cwnd_packets) == ("newreno", [0, 1], [2], 2)
    poisson, incast, listed = config.traffic.arrivals
    assert (poisson.kind, poisson.rate_per_s, poisson.start_ns, poisson.stop_ns) == ("poisson", 3, 500_000_000, 2_000_000_000)
    assert list(poisson.size_bytes) == list(scenarios.WEB_SEARCH.size_bytes) and poisson.cumulative[-1] == 1
    assert (incast.kind, incast.interval_ns, incast.fan_in, incast.random) == ("incast", 250_000_000, 1, True)
    assert (list(incast.size_bytes), incast.stop_ns) == ([77], 0)
    assert (listed.kind, list(listed.list_start_ns)) == ("list", [100_000_000, 200_000_000])
    assert (list(listed.list_size), list(listed.list_sender), list(listed.list_priority)) == ([20, 10], [0, 0], [0, 1])
    assert list(config.traffic.priority_below) == [1000]
    probe = config.probes[0]
    assert (list(probe.path), probe.priority, probe.bytes) == ([0], 1, 99)
    assert (probe.interval_ns, probe.start_ns) == (500_000_000, 250_000_000)
    assert (config.mss, config.min_rto_ns, config.delayed_ack_packets) == (1000, 12_500_000, 1)


def test_worlds_with_the_same_links_share_their_conversion_and_others_do_not():
    one = scenarios.get("rlbm/default")
    two = one.with_scheme("abm")
    three = scenarios.get("rlbm/default", access_mbps=50)
    rates = [build_world_config(world).links[2].rate_bps for world in (one, two, three, one)]
    assert rates == [100e6, 100e6, 50e6, 100e6] and two.links is one.links
    managed = one.with_scheme("codel")
    assert build_world_config(managed).links[0].discipline == "codel" and build_world_config(one).links[0].discipline == ""
