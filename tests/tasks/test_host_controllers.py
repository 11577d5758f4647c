"""What plays the host-buffers task without learning."""

import numpy as np
import pytest

from netbuf_gym import scenarios, tasks
from netbuf_gym.controllers import ConstantAction
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.tasks.host_buffers import Bpftune, HostBuffers, Setting, Settings, WithCongestionControl
from netbuf_gym.tasks.host_buffers.observations import DEFAULT_FEATURES
from netbuf_gym.tasks.host_buffers.settings import constant_settings

SMALL = {"name": "auter/local", "rate_mbps": 5, "duration_s": 9}
CONTROLLERS = tasks.get("host_buffers").controllers


def placed(controller, **arguments):
    return controller.place(HostBuffers().control(scenarios.get("auter/local", **arguments)))


@pytest.mark.parametrize("name", list(CONTROLLERS))
def test_every_controller_plays(name):
    report = rollout.evaluate(name, task="host_buffers", scenario=SMALL, seeds=[1])[0]
    assert 0 < report["throughput_mbps"] <= 5 and np.isfinite(report["utility"])


def test_settings_are_in_force_from_the_start():
    world = placed(CONTROLLERS["tune-1"]())
    host = world.hosts[0]
    assert host.tcp_wmem == (4096, 1_048_576, 4_194_304) == host.tcp_rmem
    assert host.ring_packets == 512 and host.socket_bytes == 4_194_304 and host.agent
    assert world.hosts[1] == scenarios.get("auter/local").hosts[1]  # clients' are not the host's
    tiny = placed(Setting(Settings(64, 5120, 512, 512, 512, 512))).hosts[0]
    assert tiny.tcp_wmem == (512, 512, 512)


def test_settings_stay():
    seen = []

    def look(view):
        seen.append(view.show())

    controller = Setting(constant_settings(512, 300_000, 5120))
    worlds = rollout.draw_worlds("host_buffers", SMALL, [1])
    rollout.play(controller, worlds, lambda view: None, task="host_buffers", scenario=SMALL, watch={0: look})
    assert {(one["tcp_max_kib"], one["ring_packets"]) for one in seen} == {(300_000 / 1024, 512.0)} and len(seen) == 3


@pytest.mark.parametrize("recipe", ["default", "auter"])
def test_settings_speak_both_recipes(recipe):
    report = rollout.evaluate("max", task="host_buffers", scenario=SMALL, seeds=[1], recipe=recipe)[0]
    assert report["tcp_memory_mb"] > 10


def test_congestion_controls_of_what_the_host_sends():
    for name, cc in (("bbr", "bbr"), ("tune-2+bbr", "bbr"), ("vegas", "vegas"), ("autotuning+vegas", "vegas")):
        assert {str(flow.cc) for flow in placed(CONTROLLERS[name](), connections=2).flows} == {cc}
    assert placed(CONTROLLERS["bbr"]()).hosts[0].tcp_wmem[2] == 212_992
    short = placed(CONTROLLERS["bbr"](), traffic="short")
    assert str(short.traffic.senders[0].cc) == "bbr"


def test_an_agent_with_bbr():
    agent = WithCongestionControl(ConstantAction(0, name="mine"))
    assert agent.name == "mine+bbr" and agent.env == {}
    assert str(placed(agent).flows[0].cc) == "bbr"
    assert rollout.evaluate(agent, task="host_buffers", scenario=SMALL, seeds=[1])[0]["throughput_mbps"] > 3
    with pytest.raises(ConfigError, match="cc = 'bbbr'"):
        WithCongestionControl(ConstantAction(0), "bbbr")


def test_bad_controllers_are_named():
    with pytest.raises(ConfigError, match="settings = 'tune-9'"):
        Setting("tune-9")
    with pytest.raises(ConfigError, match="growth = -1"):
        Bpftune(growth=-1)
    with pytest.raises(ConfigError, match="does not support recipe 'direct'"):
        rollout.evaluate("max", task="host_buffers", scenario=SMALL, seeds=[1], recipe="direct")


def observation(send=0.5, receive=0.1, inflation=1.0, connections=1):
    """Two stacked vectors of two hosts: of the second one no buffer is in use."""
    width, names = len(DEFAULT_FEATURES), [feature.name for feature in DEFAULT_FEATURES]
    vectors = np.zeros((2, 2 * width), np.float32)
    for name, value in (("send_buffer", send), ("receive_buffer", receive)):
        vectors[0, width + names.index(name)] = 1 + np.log(value) / np.log(64)
    vectors[:, width] = np.log(inflation) / np.log(8)
    vectors[:, width + names.index("connections")] = np.log(1 + connections) / np.log(4096)
    return vectors


def maxima(actions):
    return 512 * (131_072.0) ** ((actions[:, 3] + 1) / 2)


def test_bpftunes_rule_by_hand():
    policy = Bpftune().start(HostBuffers("direct"), [1, 2])
    actions, state = policy(observation(0.9), None, np.ones(2, bool))
    np.testing.assert_allclose(maxima(actions), 6_291_456, rtol=1e-5)  # before anything was measured
    actions, state = policy(observation(0.74), state, np.zeros(2, bool))
    np.testing.assert_allclose(maxima(actions), 6_291_456, rtol=1e-5)  # not near
    actions, state = policy(observation(0.76), state, np.zeros(2, bool))
    np.testing.assert_allclose(maxima(actions), [6_291_456 * 1.25, 6_291_456], rtol=1e-5)
    actions, state = policy(observation(0.1, 0.8), state, np.zeros(2, bool))
    np.testing.assert_allclose(maxima(actions), [6_291_456 * 1.25**2, 6_291_456], rtol=1e-5)
    for _ in range(20):
        actions, state = policy(observation(0.9), state, np.zeros(2, bool))
    np.testing.assert_allclose(maxima(actions), [67_108_864, 6_291_456], rtol=1e-5)  # the most


def test_bpftune_grows_nothing_without_connections():
    policy = Bpftune().start(HostBuffers("direct"), [1, 2])
    _, state = policy(observation(1.0), None, np.ones(2, bool))
    for _ in range(3):
        actions, state = policy(observation(1.0, connections=0), state, np.zeros(2, bool))
    np.testing.assert_allclose(maxima(actions), 6_291_456, rtol=1e-5)
    actions, state = policy(observation(1.0), state, np.zeros(2, bool))
    np.testing.assert_allclose(maxima(actions), [6_291_456 * 1.25, 6_291_456], rtol=1e-5)


def test_bpftune_stops_where_buffers_only_add_delay():
    policy = Bpftune().start(HostBuffers("direct"), [1, 2])
    actions, state = policy(observation(), None, np.ones(2, bool))
    for step in range(9):
        actions, state = policy(observation(0.9, inflation=1 + step / 10), state, np.zeros(2, bool))
    before = maxima(actions)[0]
    assert before == pytest.approx(6_291_456 * 1.25**9, rel=1e-4)
    actions, state = policy(observation(0.9, inflation=1.9), state, np.zeros(2, bool))  # the tenth sample
    assert maxima(actions)[0] == pytest.approx(before, rel=1e-5)
    actions, state = policy(observation(0.9, inflation=1.0), state, np.zeros(2, bool))
    assert maxima(actions)[0] == pytest.approx(before, rel=1e-5)  # for good
