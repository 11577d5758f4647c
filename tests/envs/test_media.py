"""Agents in worlds whose links share Wi-Fi or a cell: every environment runs in them, and is finite and deterministic."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from netbuf_gym import scenarios


def put_on_medium(world, medium, down, up=None):
    """The world with one link a downlink of the medium, and perhaps another an uplink."""
    links = list(world.links)
    links[down] = replace(links[down], rate_mbps=None, medium=medium)
    if up is not None:
        links[up] = replace(links[up], rate_mbps=None, medium=medium, uplink=True)
    return replace(world, links=links)


def make_world(env, medium):
    if env == "QueueThreshold":
        world = scenarios.get("rlbm/default", duration_s=10)
        return put_on_medium(world, medium, world.switches[0].ports[0])
    if env == "HostBuffers":
        return put_on_medium(scenarios.get("auter/es-ea"), medium, 1, 2)
    return scenarios.dumbbell(medium=medium, duration_s=10)


@pytest.mark.parametrize("medium", [scenarios.wifi(stations=1), scenarios.cellular(users=2)], ids=["wifi", "cellular"])
@pytest.mark.parametrize("env", ["CongestionWindow", "ReceiverWindow", "QueueThreshold", "HostBuffers"])
def test_every_environment_runs_on_media(env, medium):
    found = []
    for _ in range(2):
        made = gymnasium.make(f"netbuf/{env}-v0", scenario=make_world(env, medium))
        made.action_space.seed(1)
        observations = [made.reset(seed=1)[0]]
        for _ in range(6):
            observation, reward, *_ = made.step(made.action_space.sample())
            assert np.isfinite(reward)
            observations.append(observation)
        found.append(np.concatenate([np.ravel(one) for one in observations]))
    assert np.isfinite(found[0]).all() and np.array_equal(*found)
