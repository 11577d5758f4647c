"""Settings of the kernel have the same effect in the simulator and on this machine's kernel."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import scenarios
from netbuf_gym.errors import ConfigError
from netbuf_gym.scenarios import LossSchedule, OnOff
from tests.helpers.busy_machine import undisturbed
from tests.helpers.machines import needs_live_worlds


@pytest.fixture(autouse=True)
def live():
    needs_live_worlds()


def both(world):
    return [nb.simulate(world, 1, plant=plant, sample_interval_s=0.02) for plant in ("sim", "linux")]


@pytest.mark.parametrize("max_rto_ms", [None, 1000])
@undisturbed
def test_as_many_time_outs_come_up_to_the_largest(max_rto_ms):
    if max_rto_ms is not None and not Path("/proc/sys/net/ipv4/tcp_rto_max_ms").exists():
        pytest.skip("this kernel has no tcp_rto_max_ms (Linux 6.15)")
    dead = LossSchedule([0, 0.5, 900], [0, 1, 0])
    world = scenarios.dumbbell(rate_mbps=10, rtt_ms=40, buffer_packets=100, loss=dead, duration_s=6)
    simulated, live = both(replace(world, max_rto_ms=max_rto_ms))
    assert simulated.flows[0].timeouts == (4 if max_rto_ms is None else 6)
    assert abs(simulated.flows[0].timeouts - live.flows[0].timeouts) <= 1


@undisturbed
def test_windows_without_scaling_carry_as_much():
    world = scenarios.dumbbell(rate_mbps=30, rtt_ms=40, buffer_packets=300, duration_s=2)
    simulated, live = both(replace(world, window_scaling=False, timestamps=False))
    assert simulated.flows[0].goodput_mbps == pytest.approx(live.flows[0].goodput_mbps, rel=0.15)
    assert live.flows[0].goodput_mbps < 14  # 65,535 bytes a round trip


@pytest.mark.parametrize("anew", [True, False])
@undisturbed
def test_windows_outlive_silence_alike(anew):
    app = OnOff(on_s=0.5, off_s=1.5)
    world = scenarios.dumbbell(rate_mbps=30, rtt_ms=40, buffer_packets=300, app=app, duration_s=2.2)
    for result in both(replace(world, slow_start_after_idle=anew)):
        window, time_s = result.series["cwnd_packets"][:, 0], result.series["time_s"]
        before, after = (window[np.searchsorted(time_s, at)] for at in (1.9, 2.08))
        assert (after < before / 2) == anew


def test_what_its_links_do_not_do_is_refused():
    world = scenarios.dumbbell(duration_s=1)
    world = replace(world, links=[replace(world.links[0], corrupt=0.1), world.links[1]])
    with pytest.raises(ConfigError, match=r"links\[0\].corrupt = 0.1"):
        nb.simulate(world, plant="linux")
