"""Compiled agents as congestion controls of live worlds."""

import pytest

import netbuf_gym as nb
from netbuf_gym import zoo
from netbuf_gym.errors import ConfigError
from netbuf_gym.plants.linux.bpf import senders
from netbuf_gym.plants.linux.setup import Agents, Setup
from netbuf_gym.scenarios.compiled_agent import write_compiled_agent
from netbuf_gym.zoo import compile as compiling
from tests.helpers import machines
from tests.helpers.busy_machine import undisturbed
from tests.plants.linux.test_bpf_policy import random_policy


def compiled_world(policy, **changes):
    """A world of one flow whose control is a compiled agent."""
    return nb.scenarios.dumbbell(senders=[{"name": "compiled", "agent": str(policy)}], **changes)


@pytest.mark.slow
@undisturbed
@pytest.mark.parametrize("rate_mbps, rtt_ms, buffer_packets", [(5, 20, 30), (20, 60, 100)])
def test_a_sender_of_the_zoo_does_as_in_the_simulator(tmp_path, rate_mbps, rtt_ms, buffer_packets):
    machines.needs_bpf()
    agent = zoo.load("congestion_window/sender")
    compiling.write_compiled(compiling.compile_agent(agent), tmp_path / "sender.policy")
    given = {"rate_mbps": rate_mbps, "rtt_ms": rtt_ms, "buffer_packets": buffer_packets, "duration_s": 6.0}
    scenario = compiled_world(tmp_path / "sender.policy", **given)
    simulated, live = (nb.simulate(scenario, plant=plant).flows[0] for plant in ("sim", "linux"))
    assert live.goodput_mbps == pytest.approx(simulated.goodput_mbps, rel=0.1)
    assert live.rtt_mean_ms == pytest.approx(simulated.rtt_mean_ms, rel=0.1)


def test_a_world_without_privileges_has_no_compiled_agents(tmp_path, monkeypatch):
    write_compiled_agent(tmp_path / "drawn.policy", random_policy("tanh", "default"), {"agent": "drawn"})
    monkeypatch.setattr(senders, "explain_unavailable", lambda: "no BTF")
    with pytest.raises(ConfigError, match=r"flows\[0\].cc = 'drawn.policy'; valid on plant 'linux': cubic.*no BTF"):
        Setup(compiled_world(tmp_path / "drawn.policy", rate_mbps=5), Agents())
