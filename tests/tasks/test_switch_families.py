"""Families of switch worlds to train on."""

import dataclasses

import numpy as np
import pytest

from netbuf_gym import rollout, scenarios
from netbuf_gym.envs.vector_env import VectorEnv
from netbuf_gym.errors import ScenarioError
from netbuf_gym.scenarios.switches import StrictPriority
from netbuf_gym.tasks.queue_threshold.families import FAMILIES, PRIORITIES


def draw(number=200, **kwargs):
    made = scenarios.get("switch/families", **kwargs)
    return [made.sample(np.random.default_rng(seed)) for seed in range(number)]


def test_worlds_are_within_the_ranges_of_their_family():
    found = draw()
    assert {world.name for world in found} == {f"switch/{name}" for name in FAMILIES}
    for world in found:
        own, senders = FAMILIES[world.name.removeprefix("switch/")], world.traffic.senders
        assert own.rate_mbps[0] <= world.capacity_mbps <= own.rate_mbps[1]
        rtt_ms = sum(2 * world.links[k].delay_ms for k in senders[0].path)
        assert own.rtt_ms[0] * (1 - 1e-9) <= rtt_ms <= own.rtt_ms[1] * (1 + 1e-9)
        assert own.hosts[0] <= len(senders) <= own.hosts[1] and {one.cc for one in senders} <= set(own.cc)
        assert own.load[0] <= world.traffic.offered_mbps / world.capacity_mbps - own.incast * incast_load(world) <= own.load[1]
        assert isinstance(world.switches[0].scheduler, StrictPriority) == (own.scheduler == "strict_priority")
        assert world.duration_s == min(60.0, round(max(10.0, 1500 / world.capacity_mbps), 1))
    assert {world.switches[0].drop for world in found} == {"head", "tail"}


def incast_load(world):
    return len(world.traffic.senders) * 20_000 * 8e-6 / world.capacity_mbps


@pytest.mark.parametrize("queues", PRIORITIES)
def test_more_queues_change_nothing_else(queues):
    ours, plain = draw(20, queues=queues), draw(20)
    for one, other in zip(ours, plain, strict=True):
        assert one.switches[0].queues == queues and len(one.traffic.priority_below) == queues - 1
        traffic = dataclasses.replace(one.traffic, priority_below=other.traffic.priority_below)
        assert dataclasses.replace(one, traffic=traffic, switches=other.switches) == other
    envs = VectorEnv(2, task="queue_threshold", scenario={"name": "switch/families", "queues": queues}, reward="switch_log")
    assert envs.reset(seed=1)[0].shape[0] == 2 and envs.single_action_space.shape == (queues,)
    envs.close()


def test_families_are_chosen_and_their_worlds_run():
    shorter = {"families": ["near", "mice", "mice"], "duration_s": 5, "drop": "head"}
    found = draw(60, **shorter)
    names = [world.name for world in found]
    assert set(names) == {"switch/near", "switch/mice"} and names.count("switch/mice") > names.count("switch/near")
    assert all(world.duration_s == 5 and world.switches[0].drop == "head" for world in found)
    (report,) = rollout.evaluate("brief_pulse", "queue_threshold", {"name": "switch/families", **shorter})
    assert report["flows_completed"] > 0


@pytest.mark.parametrize(
    ("kwargs", "field"),
    [
        ({"families": ["nowhere"]}, "families = 'nowhere'"),
        ({"families": []}, "families"),
        ({"queues": 5}, "queues = 5"),
        ({"queue_packets": [100, 10]}, "queue_packets"),
        ({"drop": "middle"}, "drop = 'middle'"),
        ({"most_mbit": 0}, "most_mbit = 0"),
    ],
)
def test_bad_arguments_name_the_field(kwargs, field):
    with pytest.raises(ScenarioError, match=field):
        scenarios.get("switch/families", **kwargs)
