"""Who decides on a host: settings ask for themselves, everything else begins with what is in force there."""

import math

import numpy as np
import pytest

from netbuf_gym.cli.live import resolve_controller, resolve_interval_s
from netbuf_gym.controllers import Callback, RandomAction
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.host.decider import TASK, make_decider
from netbuf_gym.tasks.host_buffers.actions import FACTORS
from netbuf_gym.tasks.host_buffers.settings import NAMED

HERE = {
    "socket_bytes": 8388608.0,
    "tcp_rmem_default_bytes": 262144.0,
    "tcp_rmem_max_bytes": 33554432.0,
    "tcp_wmem_default_bytes": 65536.0,
    "tcp_wmem_max_bytes": 16777216.0,
}
"""A host whose administrator has tuned it."""


def made(name, **env):
    return make_decider(rollout.get_controller(name, TASK), 5.0, HERE, **env)


def told(**more):
    return {**HERE, "elapsed_s": 5.0, "busy_s": 5.0, "connections": 3.0, "latency_s": 0.05, **more}


@pytest.mark.parametrize("name", ["default", "tune-1", "tune-2", "max", "autotuning"])
def test_settings_ask_for_themselves_always(name):
    one, own = made(name), NAMED[name]
    for telemetry in (told(), told(tcp_rmem_max_bytes=1e6)):
        asked = one.decide(telemetry)
        assert asked["tcp_rmem_max_bytes"] == own.rmem_max_bytes and asked["tcp_wmem_max_bytes"] == own.wmem_max_bytes
        assert asked["socket_bytes"] == own.socket_bytes and asked["ring_packets"] == own.ring_packets
        assert asked["tcp_rmem_default_bytes"] == own.rmem_default_bytes and len(asked) == 6
    assert one.name == name


def test_bpftune_begins_with_what_is_in_force():
    rule = made("bpftune")
    assert rule.decide(told(send_buffer_bytes=1e6, receive_buffer_bytes=1e6)) == {}
    assert rule.decide(told(send_buffer_bytes=1e6, receive_buffer_bytes=1e6)) == {}
    grown = rule.decide(told(send_buffer_bytes=30e6, receive_buffer_bytes=1e6))
    assert set(grown) == {"tcp_rmem_max_bytes", "tcp_wmem_max_bytes"}  # the only ones that the rule is about
    assert grown["tcp_rmem_max_bytes"] == pytest.approx(1.25 * HERE["tcp_rmem_max_bytes"], rel=1e-5)
    again = rule.decide(told(send_buffer_bytes=1e6, receive_buffer_bytes=1e6))
    assert again == grown  # it does not go back


@pytest.mark.parametrize("name", ["keep", "random"])
def test_others_begin_with_what_is_in_force(name):
    decided = made(name).decide(told())
    for control, value in HERE.items():
        factor = decided.get(control, value) / value
        assert factor == pytest.approx(1.0) or (name == "random" and 1 / 4 - 0.01 < factor < 4.01), control
    if name == "keep":
        assert {control: decided[control] for control in HERE} == HERE


def test_an_agents_steps_are_of_what_is_in_force():
    action, factor = 4, FACTORS["tcp"][3]  # of the TCP maxima; action 0 leaves all as it is
    assert factor > 1
    larger = Callback(lambda observations: np.full(len(observations), action), "somewhat more")
    decided = make_decider(larger, 5.0, HERE).decide(told())
    assert decided["tcp_rmem_max_bytes"] == pytest.approx(factor * HERE["tcp_rmem_max_bytes"])
    assert decided["tcp_wmem_max_bytes"] == pytest.approx(factor * HERE["tcp_wmem_max_bytes"])
    assert decided["tcp_rmem_default_bytes"] == HERE["tcp_rmem_default_bytes"]


@pytest.mark.parametrize("name", ["bbr", "cubic", "max+bbr"])
def test_a_congestion_control_is_not_tuned_here(name):
    with pytest.raises(ConfigError, match=r"controller '.*' sets congestion control '(bbr|cubic)', which is not tuned here"):
        made(name)


def test_words_that_would_do_nothing_are_refused():
    with pytest.raises(ConfigError, match="recipe = 'direct' does nothing with controller 'max'"):
        made("max", recipe="direct")


class Trained(RandomAction):
    """As a saved agent is: it has an interval of its own."""

    def __init__(self, interval_s):
        super().__init__()
        self.interval_s = interval_s

    @property
    def env(self):
        return {} if math.isnan(self.interval_s) else {"interval_s": self.interval_s}


def test_intervals():
    assert resolve_interval_s(None, None) == resolve_interval_s(None, Trained(math.nan)) == 5.0
    assert resolve_interval_s(None, Trained(3)) == 3.0 and resolve_interval_s(7.0, Trained(3)) == 7.0
    with pytest.raises(ConfigError, match="the model decides every 1 s; valid here: 3 to 10 s"):
        resolve_interval_s(None, Trained(1))


def test_a_model_of_another_task_is_refused_by_both_names(monkeypatch):
    from netbuf_gym import zoo

    agent = type("Agent", (), {"env_id": "netbuf/CongestionWindow-v0", "controller": None})
    monkeypatch.setattr(zoo, "load", lambda name: agent)
    with pytest.raises(ConfigError, match=r"model = 'x' is an agent of task 'congestion_window'; .* 'host_buffers'"):
        resolve_controller({"model": "x"})
