"""Golden values, computed by hand, of what hosts' actions mean, what they observe and what they are rewarded with."""

import math

import numpy as np
import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.tasks.host_buffers import AUTER_FEATURES, DEFAULT_FEATURES, GRID, NAMED, AuterReward, HostBuffers, HostUtility
from netbuf_gym.tasks.host_buffers.actions import FACTORS, RANGES, to_unit
from netbuf_gym.tasks.host_buffers.telemetry import CONTROLS, TELEMETRY
from netbuf_gym.tasks.host_buffers.tracker import CONTROL
from tests.tasks.hand_made_host import sent, settings, telemetry, tracker

MIB = 2**20

GOLDEN = {
    "rtt_inflation": math.log(2) / math.log(8),  # 200 over 100 ms
    "queueing": 1.0,  # beyond 1.5
    "buffer_in_bdp": 2 * math.log(6_291_456 / 200_000 * 16) / math.log(65_536) - 1,  # 16 Mbit/s * 100 ms = 200 kB
    "buffer_near_bdp": 1.0,
    "buffer_in_use": math.log(6_291_456 / 200_000) / math.log(4096),
    "buffer_near_use": 1.0,
    "cwnd_in_bdp": math.log(1.5) / math.log(16),
    "cwnd_in_buffer": math.log(0.5) / math.log(64),
    "send_buffer": 1 - math.log(6_291_456 / 600_000) / math.log(64),
    "receive_buffer": 1 - math.log(48) / math.log(64),  # 131072 of 6 MiB
    "rate_change": 0.5,
    "latency_change": 0.5,
    "tcp_change": 0.0,
    "tcp_default": math.log(6_291_456 / 131_072) / math.log(4096),
    "socket_in_bdp": 2 * math.log(212_992 / 200_000 * 16) / math.log(65_536) - 1,
    "ring_in_bdp": math.log(256 * 1500 / 200_000) / math.log(256),
    "memory_in_bdp": 2 * math.log((1e6 + 256 * 2048) / 2 / 200_000 * 4) / math.log(16_384) - 1,  # two connections
    "bdp_packets": math.log(200_000 / 1500) / math.log(256),
    "round_trips": math.log(30) / math.log(1024),
    "connections": math.log(3) / math.log(4096),
    "rwnd_limited": 0.25,
    "sndbuf_limited": 0.5,
    "busy": 4 / 9,  # 4 of 3 connections' 3 s
    "rate": 1.0,
    "loss": 0.2,  # sqrt(0.01 * 4)
    "unsent": 0.75,
    "send_fill": -0.5,
    "receive_fill": 131_072 / 262_144 / 1 - 1,
    "memory_use": 0.1,
    "pressure": 0.125,
    "turnover": 1 / 3,
    "receives": 0.2,
    "ring_fill": 0.5,
    "ring_loss": 0.1,
    "interrupted": 0.7,
}


def after_two_intervals():
    """8, then 16 Mbit/s; 100, then 200 ms; two connections at the end, and one that was opened and closed."""
    made = tracker()
    made.update(sent(8.0))
    second = {
        "rtt_s": 0.2,
        "cwnd_bytes": 300_000,
        "send_buffer_bytes": 600_000,
        "memory_bytes": 1e6,
        "connections": 2,
        "connections_opened": 1,
        "connections_closed": 1,
        "rwnd_limited_s": 1.0,
        "sndbuf_limited_s": 2.0,
        "busy_s": 4.0,
        "loss": 0.01,
        "unsent_bytes": 300_000,
        "send_queued_bytes": 600_000,
        "receive_queued_bytes": 131_072,
        "memory_limit_bytes": 1e7,
        "memory_pressure": 0.125,
        "received_bytes": 1.5e6,
        "ring_packets": 256,
        "ring_queue_packets": 64,
        "packets_sent": 4000,
        "ring_drops": 40,
        "interrupted_s": 2.1,
    }
    made.update(sent(16.0, **second))
    return made


def observed(task, made):
    return task.observe(made, np.empty((task.width, made.rows), np.float32))[:, 0]


def test_default_observation_golden():
    task = HostBuffers()
    assert list(GOLDEN) == [feature.name for feature in DEFAULT_FEATURES]
    np.testing.assert_allclose(observed(task, after_two_intervals()), list(GOLDEN.values()), atol=2e-5)


def test_auter_observation_golden():
    task, made = HostBuffers("auter"), tracker(settings=[settings(ring=512, tcp=MIB)])
    made.update(sent(10.0, rtt_s=0.1, loss=0.25))
    socket, tcp_default = math.log(212_992 / 5120) / math.log(67_108_864 / 5120), math.log(256) / math.log(131_072)
    golden = [0.5, 2 / 3, 0.25, 0.5, socket, tcp_default, math.log(2048) / math.log(131_072)]
    np.testing.assert_allclose(observed(task, made), golden, atol=1e-6)
    assert [feature.name for feature in AUTER_FEATURES][:3] == ["throughput", "latency", "loss"] and len(AUTER_FEATURES) == 7


@pytest.mark.parametrize("recipe", ["default", "auter", "direct", "control"])
def test_observations_are_defined_whatever_was_measured(recipe):
    task = HostBuffers(recipe)
    for ring in (256, math.nan):
        made = tracker(settings=[settings(ring=ring)])
        for interval in (telemetry(), sent(), telemetry(), np.full((1, len(TELEMETRY.fields)), np.nan), sent(1e9, rtt_s=50.0)):
            out = observed(task, made)
            assert np.isfinite(out).all() and (np.abs(out) <= 1).all()
            made.update(interval)
        out = observed(task, made)
        assert np.isfinite(out).all() and (np.abs(out) <= 1).all()


def decoded(task, made, action):
    """What an action sets, by name, without what stays as it is."""
    out = task.decode(task.check_actions([action], 1), made, np.empty((1, len(CONTROLS))))[0]
    return {control.name: value for control, value in zip(CONTROLS, out.tolist(), strict=True) if value == value}


def applied(made, control):
    """The settings after a plant was told this."""
    fields = {name: value for name, value in control.items() if name in TELEMETRY.names}
    made.update(sent(**fields))


def test_the_papers_steps():
    task, made = HostBuffers("auter"), tracker(settings=[settings(tcp_wmem_default_bytes=65_536)])
    before = dict(zip((one.name for one in CONTROLS), made.settings[0], strict=True))
    after = decoded(task, made, [1, 2, 0])
    assert after["socket_bytes"] == before["socket_bytes"] + 1024 and after["ring_packets"] == 256
    for side in ("rmem", "wmem"):
        for which in ("default", "max"):
            name = f"tcp_{side}_{which}_bytes"
            assert after[name] == before[name] - 1024
    flat = HostBuffers("auter", actions="flat")
    assert flat.action_space.n == 27 and decoded(flat, made, 9 * 1 + 3 * 2 + 0) == after
    assert flat.keep_action == 13 and task.keep_action.tolist() == [1, 1, 1]
    for rules in (task, flat):
        assert all(before[name] == value for name, value in decoded(rules, made, rules.keep_action).items())


def test_steps_that_leave_the_range_are_rejected():
    task = HostBuffers("auter", ring_requests=0)
    most = {"socket_bytes": 67_108_864 - 1000, "ring_packets": 4092}
    made = tracker(settings=[settings(tcp=67_108_864, **most)])
    after = decoded(task, made, [2, 2, 2])
    assert after["socket_bytes"] == most["socket_bytes"] and after["ring_packets"] == 4092
    assert after["tcp_wmem_max_bytes"] == 67_108_864 and after["tcp_wmem_default_bytes"] == 16_384 + 1024
    least = {"socket_bytes": 5120 + 1024, "ring_packets": 72, "tcp_wmem_default_bytes": 1500, "tcp_wmem_max_bytes": 1500}
    made = tracker(settings=[settings(**least)])
    after = decoded(task, made, [0, 0, 0])
    assert after["socket_bytes"] == 5120 and after["ring_packets"] == 64
    assert after["tcp_wmem_default_bytes"] == 1500 == after["tcp_wmem_max_bytes"]  # 476 would be below 512


def test_a_default_takes_its_maximum_along():
    task = HostBuffers("auter")
    made = tracker(settings=[settings(tcp_wmem_default_bytes=67_107_000, tcp_wmem_max_bytes=67_108_000)])
    after = decoded(task, made, [1, 1, 2])
    assert after["tcp_wmem_default_bytes"] == 67_108_024 == after["tcp_wmem_max_bytes"]  # 67109024 would leave the range


def rings(task, made, steps, connections=1):
    """The ring after each of some requests, as a plant follows them."""
    found = []
    for step in steps:
        control = decoded(task, made, [step + 1, 1, 1])
        applied(made, {**control, "connections": connections})
        found.append(int(made.settings[0, CONTROL["ring_packets"]]))
    return found


def test_algorithm_1_by_hand():
    task = HostBuffers("auter", ring_requests=2)
    assert rings(task, tracker(), [1, 1, 1, 1]) == [256, 256, 264, 272]  # more than two in a row
    assert rings(task, tracker(), [1, 0, 1, 0, 1]) == [256, 256, 256, 256, 264]  # a zero leaves the count
    assert rings(task, tracker(), [1, 1, -1, 1, 1, 1]) == [256, 256, 256, 256, 256, 264]  # the other way clears it
    assert rings(task, tracker(), [-1, -1, -1, 1, -1, -1, -1]) == [256, 256, 248, 248, 248, 248, 240]
    assert rings(HostBuffers("auter", ring_requests=0), tracker(), [1, -1, 1]) == [264, 256, 264]
    assert HostBuffers("auter").ring_requests == 3 and HostBuffers("auter").ring_connections == 100


def test_algorithm_1_waits_for_few_connections():
    task, made = HostBuffers("auter", ring_requests=0, ring_connections=4), tracker()
    made.update(sent(connections=5))
    assert decoded(task, made, [2, 1, 1])["ring_packets"] == 256
    made.update(sent(connections=4))
    assert decoded(task, made, [2, 1, 1])["ring_packets"] == 264


def test_counts_are_forgotten_with_the_world():
    task, made = HostBuffers("auter", ring_requests=1), tracker()
    assert rings(task, made, [1]) == [256]
    fresh = {"capacity_bps": [8e6], "share_bps": [8e6], "base_rtt_s": [0.1]}
    made.reset(slice(0, 1), settings=[settings()], **fresh)
    assert rings(task, made, [1, 1]) == [256, 264]


def test_factors_of_one_layer():
    task = HostBuffers()
    assert task.action_space.n == 1 + sum(len(FACTORS[layer]) for layer in ("tcp", "socket", "ring")) == 11
    made = tracker(tcp=MIB)
    for action, factor in enumerate(FACTORS["tcp"], 1):
        after = decoded(task, made, action)
        assert after["tcp_wmem_max_bytes"] == after["tcp_rmem_max_bytes"] == round(MIB * factor)
        assert after["tcp_rmem_default_bytes"] == 131_072 and after["tcp_wmem_default_bytes"] == 16_384
        assert after["ring_packets"] == 256 and after["socket_bytes"] == 212_992
    assert decoded(task, made, 7)["socket_bytes"] == 53_248 and decoded(task, made, 8)["socket_bytes"] == 851_968
    assert decoded(task, made, 9)["ring_packets"] == 128 and decoded(task, made, 10)["ring_packets"] == 512
    keep = decoded(task, made, task.keep_action)
    assert keep["tcp_wmem_max_bytes"] == MIB and keep["ring_packets"] == 256 and keep["socket_bytes"] == 212_992


def test_factors_stay_within_ranges_and_defaults_below_maxima():
    task = HostBuffers()
    low, high = tracker(tcp=20_000), tracker(tcp=2**25)
    after = decoded(task, low, 1)
    assert after["tcp_rmem_max_bytes"] == after["tcp_rmem_default_bytes"] == 16_384  # the floor
    assert decoded(task, high, 6)["tcp_wmem_max_bytes"] == 67_108_864
    applied(low, after)
    again = decoded(task, low, 6)
    assert again["tcp_rmem_max_bytes"] == 65_536 == again["tcp_rmem_default_bytes"]  # on its way back to 131072
    assert decoded(task, tracker(settings=[settings(ring=math.nan)]), 10).get("ring_packets") is None


def test_factors_of_several_layers_at_once():
    layers = ["ring", "limit_output", "notsent_lowat", "window_clamp", "tcp"]
    task, made = HostBuffers(acts_on=layers, actions="multi"), tracker(tcp=MIB)
    assert task.acts_on == ("tcp", "ring", "limit_output", "notsent_lowat", "window_clamp")
    assert task.action_space.nvec.tolist() == [7, 3, 3, 3, 3]
    after = decoded(task, made, [6, 0, 2, 0, 2])
    assert after["tcp_wmem_max_bytes"] == 4 * MIB and after["ring_packets"] == 128
    assert after["limit_output_bytes"] == 2 * MIB and after["notsent_lowat_bytes"] == 32 * MIB
    assert after["window_clamp_bytes"] == 64 * MIB  # the most
    applied(made, after)
    assert decoded(task, made, [3, 1, 2, 1, 0])["limit_output_bytes"] == 4 * MIB  # telemetry does not tell it
    assert "socket_bytes" not in after
    assert decoded(task, made, task.keep_action)["tcp_wmem_max_bytes"] == 4 * MIB


def test_settings_themselves():
    task, made = HostBuffers("direct"), tracker()
    after = decoded(task, made, to_unit(1024, 5120, 2**22, 2**21))
    assert after["ring_packets"] == 1024 and after["socket_bytes"] == 5120
    assert after["tcp_wmem_max_bytes"] == pytest.approx(2**21, rel=1e-5) == after["tcp_rmem_max_bytes"]
    assert after["tcp_wmem_default_bytes"] == after["tcp_wmem_max_bytes"]  # never above it
    assert decoded(task, made, np.ones(4))["tcp_wmem_max_bytes"] == 67_108_864
    assert decoded(task, tracker(settings=[settings(ring=math.nan)]), np.zeros(4)).get("ring_packets") is None


@pytest.mark.parametrize("recipe", ["default", "auter", "direct", "control"])
def test_whatever_is_decided_plants_take_it(recipe):
    task, made = HostBuffers(recipe), tracker(8)
    task.action_space.seed(1)
    for _ in range(200):
        action = np.array([task.action_space.sample() for _ in range(8)])
        out = task.decode(task.check_actions(action, 8), made, np.empty((8, len(CONTROLS))))
        for control, values in zip(CONTROLS, out.T, strict=True):
            values = values[~np.isnan(values)]
            low, high = RANGES[control.name]
            assert (values >= max(low, control.low)).all() and (values <= min(high, control.high)).all(), control.name
            assert (values == np.rint(values)).all()
        for side in ("rmem", "wmem"):
            default, most = (out[:, CONTROL[f"tcp_{side}_{which}_bytes"]] for which in ("default", "max"))
            assert (default <= most).all()
        told = {name: out[:, CONTROL[name]] for name in CONTROL if name in TELEMETRY.names}
        made.update(sent(rows=8, **told))


def rewarded(reward, made):
    out = np.empty((len(reward.terms), made.rows), np.float32)
    reward(made, out)
    return dict(zip(reward.terms, out[:, 0].tolist(), strict=True))


def test_the_papers_reward_by_hand():
    reward, made = AuterReward(1.0, -0.5, -0.25), tracker()
    made.update(sent(8.0, 0.1, loss=0.0))
    assert rewarded(reward, made) == {"throughput": 0, "latency": 0, "loss": 0}  # all samples are alike
    made.update(sent(16.0, 0.3, loss=0.02))
    assert rewarded(reward, made) == pytest.approx({"throughput": 1, "latency": -0.5, "loss": -0.25})
    made.update(sent(10.0, 0.15, loss=0.01))
    assert rewarded(reward, made) == pytest.approx({"throughput": 0.25, "latency": -0.125, "loss": -0.125})
    made.update(telemetry())  # nothing was measured: the last values, and no further samples
    assert rewarded(reward, made) == pytest.approx({"throughput": 0.25, "latency": -0.125, "loss": -0.125})


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"throughput_weight": 0}, "throughput_weight = 0"),
        ({"latency_weight": 0.1}, "latency_weight = 0.1"),
        ({"loss_weight": 0}, "loss_weight = 0"),
        ({"throughput_weight": 0.5}, "throughput_weight = 0.5 beside latency_weight = -0.5"),
        ({"loss_weight": -2}, "beside loss_weight = -2"),
        ({"memory": 1}, "memory = 1"),
    ],
)
def test_the_papers_weights_are_checked(weights, message):
    with pytest.raises(ConfigError, match=message):
        AuterReward(**weights)


def test_host_utility_by_hand():
    made = tracker(capacity_bps=[16e6], share_bps=[8e6])
    made.update(sent(4.0, 0.15, memory_bytes=400_000 * 3 - 256 * 2048))
    found = rewarded(HostUtility(), made)
    holds = 2 * 16e6 * 0.1 / 8  # 400 kB
    assert found["throughput"] == pytest.approx(3 * math.log(0.5)) and found["delay"] == pytest.approx(-3 * 0.2 * 0.5, rel=1e-5)
    assert found["memory"] == pytest.approx(-3 * 0.03 * math.log(1 + 1.2e6 / holds), rel=1e-5) and found["loss"] == 0
    made.update(telemetry(memory_bytes=400_000 * 3 - 256 * 2048))
    assert rewarded(HostUtility(), made) == pytest.approx(found)  # what was last measured
    assert made.meter.compute_results(0)["utility"] == pytest.approx(sum(found.values()) / 3, rel=1e-5)


def test_nothing_is_rewarded_before_something_is_sent():
    made = tracker()
    made.update(telemetry())
    assert set(rewarded(HostUtility(), made).values()) == {0.0}
    assert math.isnan(made.meter.compute_results(0)["utility"])


def test_progress_is_what_became_better():
    reward, made = HostUtility(delay_weight=0, memory_weight=0, progress=1.0), tracker()
    made.update(sent(4.0))
    assert sum(rewarded(reward, made).values()) == 0
    made.update(sent(8.0))
    assert sum(rewarded(reward, made).values()) == pytest.approx(3 * math.log(2))
    made.update(sent(8.0))
    assert sum(rewarded(reward, made).values()) == 0
    fresh = {"capacity_bps": [8e6], "share_bps": [8e6], "base_rtt_s": [0.1]}
    made.reset(slice(0, 1), settings=[settings()], **fresh)
    made.update(sent(2.0))
    assert sum(rewarded(reward, made).values()) == 0  # another world


def test_the_least_round_trip_follows_a_longer_path():
    made = tracker()
    made.update(sent(rtt_s=0.1))
    for _ in range(300):
        made.update(sent(rtt_s=0.2, rtt_min_s=0.2))
    assert 0.19 < float(made.least_rtt[0]) < 0.2
    made.update(sent(rtt_s=0.05, rtt_min_s=0.05))
    assert float(made.least_rtt[0]) == pytest.approx(0.05)


def test_a_host_that_only_receives_has_a_rate():
    made = tracker()
    made.update(telemetry(received_bytes=3e6, connections=2, memory_bytes=0))
    assert float(made.rate[0]) == pytest.approx(4e6)


def test_the_papers_settings():
    default = NAMED["default"]
    assert (default.ring_packets, default.wmem_default_bytes, default.socket_bytes) == (256, 65_536, 212_992)
    assert NAMED["tune-1"].wmem_max_bytes == 4_194_304 and NAMED["tune-2"].wmem_default_bytes == 87_380
    assert NAMED["max"].ring_packets == 4096 and NAMED["max"].rmem_default_bytes == NAMED["max"].rmem_max_bytes == 67_108_864
    assert all(one.wmem_default_bytes <= one.wmem_max_bytes for one in (*NAMED.values(), *GRID.values()))
    assert len(GRID) == 75


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"recipe": "paper"}, "recipe = 'paper'"),
        ({"acts_on": "cpu"}, "acts_on = 'cpu'"),
        ({"acts_on": []}, "acts_on is empty"),
        ({"acts_on": ["tcp", "tcp"]}, "names a layer twice"),
        ({"acts_on": "tcp", "recipe": "auter"}, "acts_on = 'tcp' with recipe 'auter'"),
        ({"actions": "flat", "recipe": "direct"}, "actions = 'flat' with recipe 'direct'"),
        ({"actions": "box"}, "actions = 'box'"),
        ({"ring_requests": -1}, "ring_requests = -1"),
        ({"ring_connections": 1.5}, "ring_connections = 1.5"),
        ({"ring_requests": 3, "recipe": "direct"}, "ring_requests = 3 with recipe 'direct' would do nothing"),
        ({"ring_connections": 3, "acts_on": "tcp"}, "ring_connections = 3 with recipe 'default' would do nothing"),
        ({"history": 0}, "history = 0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ConfigError, match=message):
        HostBuffers(**arguments)


@pytest.mark.parametrize("action", [11, -1, 1.5, [1, 2]])
def test_bad_actions_are_refused(action):
    with pytest.raises(ConfigError, match="action"):
        task = HostBuffers()
        task.check_actions(task.check_single_action(action), 1)
