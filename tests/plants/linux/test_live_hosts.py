"""What the kernel tells of a host's connections, beside what the simulator does."""

import dataclasses

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym  # noqa: F401
from netbuf_gym.tasks.host_buffers.observations import DEFAULT_FEATURES
from netbuf_gym.tasks.host_buffers.random_paths import make_host_world
from netbuf_gym.tasks.host_buffers.settings import NAMED
from tests.helpers.busy_machine import undisturbed
from tests.helpers.machines import needs_live_worlds
from tests.helpers.release_cases import for_release

LIMITED = [feature.name for feature in DEFAULT_FEATURES].index("sndbuf_limited")


def limited(plant, polls, most):
    """The share of the time in which the send buffer held a connection of 100 ms up, after its beginning."""
    settings = dataclasses.replace(NAMED["autotuning"], wmem_max_bytes=most)
    world = make_host_world(rate_mbps=50, rtt_ms=100, buffer_bdp=2, duration_s=9, settings=settings, polls=polls)
    env = gym.make("netbuf/HostBuffers-v0", scenario=world, acts_on=["tcp", "socket"], history=1, plant=plant)
    seen, over = [], False
    try:
        env.reset(seed=1)
        while not over:
            observation, _, terminated, over, _ = env.step(0)  # keeps everything
            assert not terminated
            seen.append(observation[LIMITED])
    finally:
        env.close()
    return float(np.mean(seen[1:]))


@pytest.mark.slow
@undisturbed
@pytest.mark.parametrize("polls, most, share", [(True, 2**19, 1.0), *for_release((False, 2**19, 0.0), (True, 2**17, 0.0))])
def test_what_send_buffers_limit_is_counted_alike(polls, most, share):
    """Where somebody asks for room between writes, where nobody does, and where a few writes fill the buffer."""
    needs_live_worlds()
    assert limited("sim", polls, most) == pytest.approx(share, abs=0.1)
    assert limited("linux", polls, most) == pytest.approx(share, abs=0.1)
