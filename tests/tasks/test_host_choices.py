"""The recipe in which a host chooses its congestion control: actions, estimates, worlds, and the rule that uses them."""

import gymnasium as gym
import numpy as np
import pytest

import netbuf_gym as nb
from netbuf_gym import scenarios
from netbuf_gym.errors import ConfigError
from netbuf_gym.tasks.host_buffers import AdaptiveControl, HostBuffers, HostPaths
from netbuf_gym.tasks.host_buffers.observations import CONTROL_FEATURES
from netbuf_gym.tasks.host_buffers.tracker import CONTROL
from tests.tasks import hand_made_host as made

NAMES = [feature.name for feature in CONTROL_FEATURES]
CHOSEN, ANEW = CONTROL["congestion_control"], CONTROL["slow_start"]


def decoded(task, tracker, action):
    return task.decode(np.array(action), tracker, np.empty((1, len(CONTROL))))[0]


def test_flat_actions_choose_or_scale():
    task, tracker = HostBuffers("control"), made.tracker()
    most = CONTROL["tcp_wmem_max_bytes"]
    assert task.action_space.n == 7 + 3 + 1
    keep = decoded(task, tracker, [0])
    assert np.isnan(keep[CHOSEN]) and np.isnan(keep[ANEW]) and keep[most] == tracker.settings[0, most]
    larger = decoded(task, tracker, [6])
    assert larger[most] == 4 * tracker.settings[0, most] and np.isnan(larger[CHOSEN])
    for action, number in ((7, 0), (8, 1), (9, 2)):
        row = decoded(task, tracker, [action])
        assert row[CHOSEN] == number == tracker.settings[0, CHOSEN] and row[most] == tracker.settings[0, most]
    anew = decoded(task, tracker, [10])
    assert anew[CHOSEN] == 2 and anew[ANEW] == 1


def test_several_things_at_once_and_fewer_choices():
    task, tracker = HostBuffers("control", actions="multi", controls=["vegas", "cubic"]), made.tracker()
    assert task.action_space.nvec.tolist() == [7, 4] and task.controls == ("cubic", "vegas")
    assert task.kind.parameters == {"choices": 0b101}
    row = decoded(task, tracker, [[6, 2]])
    assert row[CHOSEN] == 2 and row[CONTROL["tcp_rmem_max_bytes"]] == 4 * 6_291_456
    assert task.to_dict()["controls"] == ["cubic", "vegas"] and "controls" not in HostBuffers().to_dict()


def test_a_slow_start_of_what_is_not_known_is_none():
    tracker = made.tracker(settings=[made.settings(congestion_control=np.nan)])
    row = decoded(HostBuffers("control"), tracker, [10])
    assert np.isnan(row[CHOSEN]) and np.isnan(row[ANEW])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"recipe": "default", "controls": ["bbr"]}, "controls = .*with recipe 'default'; valid: recipe 'control'"),
        ({"recipe": "control", "controls": ["reno"]}, "controls = 'reno'"),
        ({"recipe": "control", "controls": []}, "controls is empty"),
        ({"recipe": "control", "controls": ["bbr", "bbr"]}, "each once"),
    ],
)
def test_bad_choices_are_named(arguments, message):
    with pytest.raises(ConfigError, match=message):
        HostBuffers(**arguments)


def test_estimates_are_of_intervals_that_no_buffer_bound():
    tracker = made.tracker()
    tracker.update(made.sent(mbps=8.0))
    assert tracker.bound[0] == 0 and tracker.unbound_rate[0] == 8e6
    tracker.update(made.sent(mbps=2.0, sndbuf_limited_s=1.0))  # a third of the busy time
    assert tracker.bound[0] == 1 and tracker.unbound_rate[0] == 8e6 and tracker.unbound_ago_s[0] == 3
    tracker.update(made.sent(mbps=9.0, sndbuf_limited_s=1.0))  # at least that much goes
    assert tracker.unbound_rate[0] == 9e6 and tracker.unbound_ago_s[0] == 6
    tracker.update(made.sent(mbps=2.0))
    assert tracker.unbound_rate[0] == pytest.approx(9e6 * np.exp(-3 / 120)) and tracker.unbound_ago_s[0] == 0


def test_a_full_buffer_binds_though_no_program_tells():
    tracker = made.tracker(tcp=400_000)
    tracker.update(made.sent(send_buffer_bytes=400_000, cwnd_bytes=200_000))  # two windows
    assert tracker.bound[0] == 0
    tracker.update(made.sent(send_buffer_bytes=400_000, cwnd_bytes=260_000))
    assert tracker.bound[0] == 1
    tracker.update(made.sent(send_buffer_bytes=300_000, cwnd_bytes=260_000))  # autotuning may still enlarge it
    assert tracker.bound[0] == 0


def test_features_by_hand():
    task, tracker = HostBuffers("control"), made.tracker(tcp=400_000)
    task.decode(np.array([9]), tracker, np.empty((1, len(CONTROL))))
    tracker.update(made.sent(mbps=8.0, rtt_s=0.112))
    tracker.update(made.sent(mbps=4.0, rtt_s=0.112, sndbuf_limited_s=1.0))
    seen = dict(zip(NAMES, task.observe(tracker, np.empty((task.width, 1), np.float32))[:, 0].tolist(), strict=True))
    waits = 0.012 * np.exp(-3 / 300)  # the least round trip moves on towards 112 ms
    least = 0.112 - waits
    packet = 8 * 1500
    assert seen["buffer_near_unbound_bdp"] == pytest.approx(np.log(400_000 / (1e6 * least)) / np.log(4), abs=0.02)
    assert seen["rate_in_unbound"] == pytest.approx(1 + np.log(0.5) / np.log(64), abs=1e-5)
    assert seen["own_queue"] == pytest.approx(np.log(1 + 4e6 * waits / packet) / np.log(1024), abs=2e-3)
    assert seen["queue_at_unbound"] == pytest.approx(np.log(1 + 8e6 * waits / packet) / np.log(1024), abs=2e-3)
    assert seen["unbound_ago"] == pytest.approx(np.log(2) / np.log(64))
    assert seen["chosen_ago"] == pytest.approx(np.log(3) / np.log(64))
    assert (seen["bound"], seen["cubic"], seen["bbr"], seen["vegas"]) == (1, 0, 0, 1)


def test_the_first_features_are_the_default_recipes():
    tracker = made.tracker()
    tracker.update(made.sent())
    seen = {}
    for recipe in ("default", "control"):
        task = HostBuffers(recipe)
        seen[recipe] = task.observe(tracker, np.empty((task.width, 1), np.float32))
    np.testing.assert_array_equal(seen["control"][: len(seen["default"])], seen["default"])


def play(actions, **world):
    """Play a path of 20 Mbit/s and 40 ms; each decision's latency over 40 ms and throughput in Mbit/s."""
    env = gym.make(
        "netbuf/HostBuffers-v0",
        recipe="control",
        scenario={
            "name": "auter/local",
            "rate_mbps": 20,
            "extra_ms": 36,
            "buffer_bdp": 4,
            "duration_s": 3 * len(actions),
            **world,
        },
    )
    env.reset(seed=1)
    seen = []
    for action in actions:
        env.step(action)
        show = env.unwrapped.engine.show(0)
        seen.append((show["latency_ms"] / 40, show["throughput_mbps"]))
    env.close()
    return np.array(seen).T


def test_what_is_chosen_is_what_connections_have():
    latency, rate = play([9, *[0] * 5, 7, *[0] * 5, 8, *[0] * 5], buffer_bdp=8)
    vegas, cubic, bbr = latency[5], latency[11], latency[17]
    assert vegas < 2.5 < cubic and bbr < 2 and min(rate[5], rate[11], rate[17]) > 15


def test_vegas_takes_a_queue_that_stands_for_the_paths_delay():
    """As tcp_vegas_init forgets the least round trip: its connections keep what CUBIC has filled."""
    latency, _ = play([0, 0, 0, 9, *[0] * 10])
    assert latency[-1] > 3


def test_connections_that_are_opened_later_have_it_too():
    from_the_start = {action: play([action, *[0] * 9], connections=4, buffer_bdp=8)[0][-1] for action in (0, 9)}
    assert from_the_start[9] < 0.6 * from_the_start[0]


def test_a_slow_start_finds_what_a_rise_has_left():
    rates = {}
    for anew in (0, 10):
        scenario = scenarios.get("auter/rises", rate_mbps=(4, 4.001), rtt_ms=(100, 100.001), rise_factor=(10, 10.001))
        world = scenario.sample(np.random.default_rng(1))
        env = gym.make("netbuf/HostBuffers-v0", recipe="control", actions="flat", scenario=world)
        env.reset(seed=1)
        rises = int(world.links[1].trace.time_s[-1] / 3) + 1
        for step in range(40):
            env.step(9 if step == 0 else anew if step == rises else 0)
            if step == rises + 1:
                rates[anew] = env.unwrapped.engine.show(0)["throughput_mbps"]
        env.close()
    assert rates[10] > 1.3 * rates[0]


def test_rivals_share_the_bottleneck():
    world = scenarios.get("auter/rivals").sample(np.random.default_rng(3))
    rivals = [flow for flow in world.flows if flow.sender_host is None]
    assert 1 <= len(rivals) <= 3 and {str(flow.cc) for flow in rivals} == {"cubic"}
    alone = nb.tasks.host_buffers.make_host_world(rate_mbps=10, duration_s=30)
    beside = nb.tasks.host_buffers.make_host_world(rate_mbps=10, duration_s=30, rivals=1)
    carried = [nb.simulate(one, seed=1).flows[0].goodput_mbps for one in (alone, beside)]
    assert carried[1] < 0.8 * carried[0]


def test_worlds_without_the_options_are_drawn_as_before():
    plain, more = HostPaths(), HostPaths(rise_probability=1e-9, rival_probability=1e-9)
    for seed in range(20):
        assert plain.sample(np.random.default_rng(seed)) == more.sample(np.random.default_rng(seed))


def test_rises_are_of_what_was_asked_for():
    paths = HostPaths(rise_probability=1.0, rise_factor=(4, 12))
    for seed in range(20):
        trace = paths.sample(np.random.default_rng(seed)).links[1].trace
        before, after = trace.rate_mbps
        assert 4 <= after / before <= 12 and 60 <= trace.time_s[1] <= 150


def observation(**raw):
    """A vector of one host by raw values; what is not said is the least."""
    row = np.array([feature.floor for feature in CONTROL_FEATURES], np.float32)
    given = {
        "rtt_inflation": 1.0,
        "rate_in_unbound": 1.0,
        "own_queue": 4.0,
        "queue_at_unbound": 4.0,
        "busy": 1.0,
        "loss": 0.0,
        "buffer_in_use": 64.0,
    }
    for name, value in {**given, **raw}.items():
        feature = CONTROL_FEATURES[NAMES.index(name)]
        if feature.low > 0:
            value = feature.floor + (1 - feature.floor) * np.log(value / feature.low) / np.log(feature.high / feature.low)
        row[NAMES.index(name)] = value
    return row[None]


def decide(rule, *rows):
    """The rule's decisions for these observations, after the first."""
    policy = rule.start(HostBuffers("control", 1, actions="multi"), [1])
    first, state = policy(observation(), None, np.ones(1, bool))
    assert first.tolist() == [[3, 3]]  # Vegas
    found = []
    for row in rows:
        action, state = policy(row, state, np.zeros(1, bool))
        found.append(action[0].tolist())
    return found


KEEP, LARGER = 3, 6
CUBIC, BBR, VEGAS, NEW = 1, 2, 3, 4
LOSSY = float(np.sqrt(4 * 0.02))


def choices(rule, *rows):
    return [row[1] for row in decide(rule, *rows)]


def test_the_rule_tries_cubic_beside_rivals_and_keeps_what_is_worth_more():
    rule = AdaptiveControl(trial=3, stay=4)
    crowd = observation(loss=LOSSY, rtt_inflation=2.0, buffer_in_use=64.0)
    better = observation(rtt_inflation=2.0, buffer_in_use=16.0)  # four times the rate
    found = choices(rule, *[crowd] * 3, *[better] * 7)
    assert found == [0, 0, CUBIC, 0, 0, 0, 0, 0, BBR, 0]  # kept for four decisions; then by BBR to Vegas


def test_the_rule_goes_back_from_what_is_worth_no_more():
    rule = AdaptiveControl(trial=3)
    crowd = observation(loss=LOSSY, rtt_inflation=2.0, buffer_in_use=64.0)
    worse = observation(rtt_inflation=4.0, buffer_in_use=64.0)
    found = choices(rule, *[crowd] * 3, *[worse] * 6)
    assert found == [0, 0, CUBIC, 0, 0, BBR, 0, VEGAS, 0]


def test_queues_of_its_own_are_no_rivals():
    own = observation(queue_at_unbound=200.0, rate_in_unbound=0.95, rtt_inflation=2.0)  # the rate is what it was
    assert choices(AdaptiveControl(), *[own] * 8) == [0] * 8


def test_the_rule_tries_bbr_where_losses_come_without_a_queue():
    lossy = observation(loss=LOSSY, rtt_inflation=1.02)
    assert choices(AdaptiveControl(), *[lossy] * 3) == [0, 0, BBR]


def test_the_rule_starts_slowly_anew_where_the_rate_grows_and_nothing_waits():
    rates = [100.0, 100.0, 100.0, 80.0, 70.0, 70.0, 70.0]  # of the buffer over what is in flight
    grows = [observation(own_queue=1.2, rtt_inflation=1.01, buffer_in_use=one) for one in rates]
    assert choices(AdaptiveControl(), *grows) == [0, 0, 0, NEW, 0, 0, 0]
    queued = [observation(own_queue=9.0, rtt_inflation=1.3, buffer_in_use=one) for one in rates]
    assert NEW not in choices(AdaptiveControl(), *queued)


def test_a_buffer_that_binds_grows():
    found = decide(AdaptiveControl(), observation(bound=1.0), observation(bound=1.0, rtt_inflation=3.0), observation())
    assert [row[0] for row in found] == [LARGER, KEEP, KEEP]


@pytest.mark.parametrize("arguments", [{"share": 2}, {"stay": 0}, {"loss": -1}, {"inflation": 0.5}])
def test_bad_arguments_of_the_rule_are_named(arguments):
    with pytest.raises(ConfigError, match=next(iter(arguments))):
        AdaptiveControl(**arguments)
