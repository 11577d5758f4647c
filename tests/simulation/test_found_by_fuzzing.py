"""What fuzzing found, mended: a case each, as small as it gets."""

import math

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym  # noqa: F401
from netbuf_gym.errors import ConfigError, ScenarioTypeError
from netbuf_gym.scenarios import FlowList, Scenario

SCHEMA = "netbuf-gym/scenario/1"
OUTAGE = {"kind": "rates", "time_s": [0.0, 5.0], "rate_mbps": [0.0, 10.0]}


def a_world(links, duration_s=1.0, **parts):
    flow = {"path": [0], "return_path": [len(links) - 1]}
    data = {"schema": SCHEMA, "links": links, "flows": [flow], "duration_s": duration_s, **parts}
    return Scenario.from_dict(data).to_dict()


def test_columns_of_a_flow_list_that_hold_lists_are_refused():
    columns = {"sender": [0, 0], "size_bytes": [1, 1], "priority": [0, 0]}
    with pytest.raises(ScenarioTypeError, match=r"flows\.start_s .* is not a list of numbers"):
        FlowList(start_s=[0.0, [1.0, 2.0]], **columns)


def test_a_world_that_is_an_outage_has_nothing_to_control():
    """Its capacity is what rewards and features are divided by: they were NaN, or a ZeroDivisionError."""
    links = [{"name": "bottleneck", "trace": OUTAGE}, {"name": "back"}]
    with pytest.raises(ConfigError, match=r"carries nothing in its duration_s = 1"):
        gym.make("netbuf/CongestionWindow-v0", scenario=a_world(links), reward="power", disable_env_checker=True)
    switch = {"ports": [0], "buffer_packets": 9, "admission": {"kind": "dynamic", "alphas": [1, 1]}}
    with pytest.raises(ConfigError, match=r"carries nothing in its duration_s = 1"):
        gym.make(
            "netbuf/QueueThreshold-v0", scenario=a_world(links, switches=[switch | {"scheduler": {"kind": "round_robin"}}])
        )


def test_a_sender_on_a_path_without_delay_gets_finite_rewards():
    """A Mahimahi trace takes no time of its own, so that the base RTT can be 0."""
    links = [{"name": "bottleneck", "trace": {"kind": "deliveries", "time_ms": [1, 2, 5]}}, {"name": "back"}]
    for reward in ("power", "linear_utility", "log_utility", "alpha_fair"):
        env = gym.make("netbuf/CongestionWindow-v0", scenario=a_world(links), reward=reward, disable_env_checker=True)
        env.reset(seed=1)
        rewards = [env.step(5)[1] for _ in range(9)]
        assert np.isfinite(rewards).all()
        report = env.unwrapped.report()
        assert report["base_rtt_ms"] == 0 and math.isnan(report["utility"])


def test_a_world_that_the_core_refuses_is_a_configuration_error_in_environments_too():
    """A flow beside the agent's own, on links without any rate, which the simulator could not bound."""
    free = {"path": [1], "return_path": [1]}
    links = [{"name": "bottleneck", "rate_mbps": 5, "delay_ms": 5}, {"name": "back"}]
    world = a_world(links)
    env = gym.make("netbuf/CongestionWindow-v0", scenario=world | {"flows": [*world["flows"], free]}, disable_env_checker=True)
    with pytest.raises(ConfigError, match=r"flows\[1\]\.path = links without rate and delay"):
        env.reset(seed=1)
