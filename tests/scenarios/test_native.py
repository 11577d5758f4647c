import pytest

from netbuf_gym import scenarios
from netbuf_gym.scenarios import DeliveryTrace, Flow, GilbertElliott, Link, OnOff, RateTrace, Scenario, Sized


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
    config = scenario.to_core()
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
    assert str(scenarios.dumbbell(stack=stack).to_core().stack).lower().endswith(stack)
