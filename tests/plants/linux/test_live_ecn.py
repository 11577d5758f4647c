"""ECN of the kernel's TCP behind queues that mark, against the simulator's."""

import math
from dataclasses import replace

import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import scenarios
from netbuf_gym.errors import ConfigError
from netbuf_gym.plants.linux.setup import Agents, Setup, available_controls
from netbuf_gym.scenarios import Flow, LossSchedule, Scenario
from tests.helpers.busy_machine import undisturbed
from tests.helpers.machines import needs_live_worlds

PATH = {"rate_mbps": 10, "rtt_ms": 40, "buffer_packets": 200}
QUEUES = ["codel", "pie", {"name": "red", "hard_drop": False}, {"name": "droptail", "mark_packets": 20}]


def read_medians(world, plant):
    """Goodput, marks, retransmissions and mean RTT of the first flow, each in the middle of three runs."""
    runs = [nb.simulate(world, 1 + i, plant=plant, sample_interval_s=None) for i in range(3)]
    assert all(0 <= run.links["bottleneck"].marks - run.flows[0].marks < 20 for run in runs)  # some are on their way
    flows = [run.flows[0] for run in runs]
    return np.median([(one.goodput_mbps, one.marks, one.packets_retransmitted, one.rtt_mean_ms) for one in flows], axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: queue if isinstance(queue, str) else queue["name"])
@undisturbed
def test_marks_of_a_queue_are_the_simulators(queue):
    needs_live_worlds()
    world = scenarios.dumbbell(**PATH, senders=["cubic"], discipline=queue, ecn=True, duration_s=10)
    simulated, live = (read_medians(world, plant) for plant in ("sim", "linux"))
    assert live[0] == pytest.approx(simulated[0], rel=0.05)
    assert live[1] == pytest.approx(simulated[1], rel=0.35, abs=4) and live[1] > 0
    assert live[2] == simulated[2] == 0
    assert live[3] == pytest.approx(simulated[3], rel=0.1)


def test_only_flows_that_speak_ecn_are_marked():
    needs_live_worlds()
    base = scenarios.dumbbell(**PATH, senders=["cubic"], discipline={"name": "droptail", "mark_packets": 5}, duration_s=1.5)
    flows = [Flow(path=(0,), return_path=(1,), ecn=ecn) for ecn in (True, False)]
    result = nb.simulate(Scenario(links=base.links, flows=flows, duration_s=1.5), 1, plant="linux")
    assert result.flows[0].marks > 0 == result.flows[1].marks
    assert math.isnan(result.flows[0].mark_responses)


@pytest.mark.slow
def test_a_syn_that_is_sent_again_asks_for_ecn_too():
    """The kernel's own setting would give it up then (`tcp_ecn_fallback`)."""
    needs_live_worlds()
    made = scenarios.dumbbell(
        **PATH, senders=["cubic"], discipline={"name": "droptail", "mark_packets": 5}, ecn=True, duration_s=3
    )
    lossy = replace(made.links[0], loss=LossSchedule([0, 0.5, 99], [1, 0, 0]))
    flow = nb.simulate(replace(made, links=[lossy, *made.links[1:]]), 1, plant="linux").flows[0]
    assert flow.marks > 0 and 0 < flow.goodput_mbps < 8


@pytest.mark.skipif("dctcp" not in available_controls(), reason="needs dctcp in the kernel")
@undisturbed
def test_dctcp_keeps_the_queue_at_its_mark():
    needs_live_worlds()
    queue = {"name": "droptail", "mark_packets": 20}
    world = scenarios.dumbbell(**PATH, senders=["dctcp"], discipline=queue, duration_s=6)
    simulated, live = (read_medians(world, plant) for plant in ("sim", "linux"))
    assert live[0] == pytest.approx(simulated[0], rel=0.05) and live[1] == pytest.approx(simulated[1], rel=0.35)


def test_accurate_ecn_is_refused_by_name():
    flow = Flow(path=(0,), return_path=(1,), ecn="accurate")
    world = Scenario(links=scenarios.dumbbell(**PATH).links, flows=[flow], duration_s=1)
    with pytest.raises(ConfigError, match=r"flows\[0\].ecn = 'accurate'; valid on plant 'linux': False or True"):
        Setup(world, Agents())
