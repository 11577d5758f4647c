"""`rate_mbps=None` is infinitely fast wherever a rate may be left out, and is refused by name where there must be one."""

import json

import gymnasium as gym
import pytest

import netbuf_gym as nb
from netbuf_gym.cli.program import main
from netbuf_gym.errors import ConfigError, ScenarioError
from netbuf_gym.scenarios import RateTrace, Scenario, dumbbell, last_hop

TRACE = RateTrace([0, 1], [1, 2])


def test_a_dumbbells_rate_is_10_unless_said_otherwise():
    assert dumbbell().links[0].rate_mbps == 10 and type(dumbbell().links[0].rate_mbps) is float
    assert dumbbell(trace=TRACE).links[0].rate_mbps is None and dumbbell(trace=TRACE, rate_mbps=None).links[0].trace == TRACE
    for rate_mbps in (10, 10.0, 20):
        with pytest.raises(ScenarioError, match="beside a trace"):
            dumbbell(trace=TRACE, rate_mbps=rate_mbps)


@pytest.mark.parametrize("stack", ["linux", "ns3"])
def test_none_is_infinitely_fast(stack):
    world = dumbbell(rate_mbps=None, stack=stack)
    assert world.links[0].rate_mbps is None and world.capacity_mbps == float("inf")
    assert Scenario.from_dict(json.loads(json.dumps(world.to_dict()))) == world
    for name in ("dumbbell", "ppcc/2", "ppcc/4"):
        assert nb.scenarios.get(name, rate_mbps=None).links[0].rate_mbps is None
    links = last_hop(trace=TRACE, return_rate_mbps=None, access_mbps=None).links
    assert [link.rate_mbps for link in links[:3]] == [None, None, None] and links[0].trace == TRACE


def test_an_infinitely_fast_bottleneck_leaves_the_access_links():
    """Through 100 Mbit/s at either end more passes than 10 Mbit/s, and nothing waits in between."""
    world = dumbbell(rate_mbps=None, access_mbps=100, duration_s=2)
    result = nb.simulate(world)
    assert 30 < result.goodput_mbps < 100 and result.links["bottleneck"].queue_delay_mean_ms == 0


@pytest.mark.parametrize("name", ["rlbm/default", "rlbm/incast", "rlbm/thesis-code"])
def test_a_switch_needs_a_rate(name):
    with pytest.raises(ScenarioError, match="rate"):
        nb.scenarios.get(name, rate_mbps=None)


def test_there_is_nothing_to_control():
    with pytest.raises(ConfigError, match="no link of finite rate"):
        gym.make("netbuf/CongestionWindow-v0", scenario={"name": "dumbbell", "rate_mbps": None})


def test_from_the_command_line(capsys, tmp_path):
    arguments = ["simulate", "--scenario", "dumbbell", "--set", "rate_mbps=null", "--duration", "1"]
    assert main(arguments) == 2 and "finite rate" in capsys.readouterr().err  # no limit at all: refused
    path = tmp_path / "result.json"
    assert main([*arguments, "--set", "access_mbps=100", "--json", str(path)]) == 0
    links = json.loads(path.read_text())["scenario"]["links"]
    assert links[0].get("rate_mbps") is None and links[2]["rate_mbps"] == 100
