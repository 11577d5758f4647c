"""What keeps tuning harmless: ranges, pace, watchdog."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netbuf_gym.errors import ConfigError
from netbuf_gym.host.rate_limits import ChangeRateLimit, Watchdog
from netbuf_gym.host.settings import Setting
from netbuf_gym.host.targets import HostSettings

FREE = ChangeRateLimit(1000.0, 0.0)


@given(
    wanted=st.lists(st.integers(1, 10**9), min_size=1, max_size=30),
    factor=st.floats(1.01, 8),
    gaps=st.lists(st.floats(0.1, 20), min_size=30, max_size=30),
)
def test_within_the_time_no_value_is_further_than_the_factor_from_another(wanted, factor, gaps):
    pace, now, time_s, held = ChangeRateLimit(factor, 10.0), 10**6, 0.0, [(-math.inf, 0.0, 10**6)]
    for wish, gap in zip(wanted, gaps, strict=False):
        time_s += gap
        became = pace.clip("x", now, wish, time_s)
        if became != now:
            pace.record_value("x", now, time_s)
            held[-1] = (held[-1][0], time_s, now)
            held.append((time_s, math.inf, became))
            now = became
            last = [value for begin, end, value in held if end > time_s - 10.0]
            assert max(last) <= min(last) * factor * (1 + 1e-9) + 1


def test_a_wish_is_reached_step_by_step():
    pace, now, seen = ChangeRateLimit(2.0, 10.0), 100, []
    for step in range(6):
        became = pace.clip("x", now, 1000, step * 5.0)
        if became != now:
            pace.record_value("x", now, step * 5.0)
        now = became
        seen.append(now)
    assert seen == [200, 200, 400, 400, 800, 800]


class Memory(Setting):
    def __init__(self, name, value, labels=("",)):
        self.name, self.value, self.labels = name, value, labels

    def read(self):
        return self.value

    def write(self, value):
        self.value = value

    def require_writable(self):
        pass

    def limits(self, index):
        return 1, 2**31


def host(**ranges):
    rmem = Memory("net.ipv4.tcp_rmem", (4096, 131072, 6291456), ("min", "default", "max"))
    return HostSettings([rmem, Memory("net.core.rmem_max", (212992,)), Memory("net.core.wmem_max", (4194304,))], ranges)


def test_wishes_are_kept_in_range_and_in_order():
    one = host()
    values = one.read()

    def wished(**controls):
        return one.plan_changes(values, controls, FREE, 0.0, ())

    assert wished(tcp_rmem_max_bytes=1e12) == {"net.ipv4.tcp_rmem": (4096, 131072, 64 << 20)}
    assert wished(tcp_rmem_max_bytes=65536.2) == {"net.ipv4.tcp_rmem": (4096, 65536, 65536)}
    assert wished(tcp_rmem_default_bytes=1) == {"net.ipv4.tcp_rmem": (4096, 4096, 6291456)}
    assert wished(socket_bytes=212992) == {"net.core.wmem_max": (212992,)}
    assert wished(tcp_rmem_max_bytes=math.nan, ring_packets=5, window_clamp_bytes=1) == {}
    assert one.plan_changes(values, {"socket_bytes": 1e6}, FREE, 0.0, ["net.core.wmem_max"]) == {
        "net.core.rmem_max": (1000000,)
    }
    assert one.telemetry(values) == {
        "socket_bytes": 212992.0,
        "tcp_rmem_default_bytes": 131072.0,
        "tcp_rmem_max_bytes": 6291456.0,
    }
    narrow = host(tcp_rmem_max_bytes=(5000000, 7000000))
    assert narrow.plan_changes(values, {"tcp_rmem_max_bytes": 1}, FREE, 0.0, ()) == {
        "net.ipv4.tcp_rmem": (4096, 131072, 5000000)
    }
    for ranges, message in (
        ({"tcp_rmem_max_bytes": (5, 4)}, "LOW <= HIGH"),
        ({"nothing": (1, 2)}, "no such control"),
        ({"ring_packets": (64, 128)}, "range of ring_packets = 64:128 would do nothing: no ring is tuned; valid: --ring"),
        ({"tcp_rmem_max_bytes": (1, 4095)}, "1:4095 holds nothing that the max of net.ipv4.tcp_rmem takes; valid: within 4096"),
        ({"tcp_wmem_max_bytes": (1, 2)}, r"net\.ipv4\.tcp_wmem is not tuned here; valid controls: socket_bytes, tcp_r"),
    ):
        with pytest.raises(ConfigError, match=message):
            host(**ranges)


def test_what_is_out_of_range_is_moved_into_it_only_by_who_wants_that():
    one = host(tcp_rmem_max_bytes=(4096, 5000000))
    values = one.read()
    assert one.plan_changes(values, {"tcp_rmem_max_bytes": 6291456}, FREE, 0.0, ()) == {}
    assert one.plan_changes(values, {"tcp_rmem_max_bytes": 7e6}, FREE, 0.0, ()) == {}
    assert one.plan_changes(values, {"tcp_rmem_max_bytes": 6e6}, FREE, 0.0, ()) == {
        "net.ipv4.tcp_rmem": (4096, 131072, 5000000)
    }


@pytest.mark.parametrize(
    ("numbers", "said", "set_to"),
    [
        ({"max": 4.5e6}, [], (4096, 131072, 4500000)),
        ({"max": 9e6}, ["is out of its range, 1 to 5000000 (--range): 5000000 is aimed at"], (4096, 131072, 5000000)),
        ({"max": 4}, ["4096 is aimed at, the least that the max of net", "131072, which is lowered"], (4096, 4096, 4096)),
        ({"max": 1e5}, ["= 100000 is below the default in force, 131072, which is lowered with it"], (4096, 100000, 100000)),
        ({"default": 7e6}, ["is above the maximum in force, 6291456, "], (4096, 6291456, 6291456)),
        ({"default": 3e6, "max": 4e6}, [], (4096, 3000000, 4000000)),
    ],
)
def test_where_something_else_than_a_number_is_aimed_at_that_is_said(numbers, said, set_to):
    one = host(tcp_rmem_max_bytes=(1, 5000000))
    aims, notes = one.resolve_targets({f"tcp_rmem_{name}_bytes": number for name, number in numbers.items()})
    assert len(notes) == len(said) and all(part in note for part, note in zip(said, notes, strict=True)), notes
    assert one.plan_changes(one.read(), aims, FREE, 0.0, ()) == {"net.ipv4.tcp_rmem": set_to}


def test_a_default_above_the_maximum_is_refused_where_both_are_asked_for():
    one = host(tcp_rmem_max_bytes=(1, 5000000))
    for default, most in ((4e6, 3e6), (6e6, 7e6)):  # the second only by its range
        valid = f"at most tcp_rmem_max_bytes, {min(most, 5e6):.0f}"
        message = f"tcp_rmem_default_bytes = {default:.0f} is above the maximum .* {valid}"
        with pytest.raises(ConfigError, match=message):
            one.resolve_targets({"tcp_rmem_default_bytes": default, "tcp_rmem_max_bytes": most})


def measured(mbps=50.0, latency_s=0.05, busy_s=5.0):
    return {"elapsed_s": 5.0, "busy_s": busy_s, "sent_bytes": mbps * 1e6 / 8 * busy_s, "latency_s": latency_s}


def test_the_watchdog_restores_the_last_good_settings():
    dog, time_s = Watchdog(2.0, 10.0, 30.0), 0.0
    dog.start({"a": 1})

    def after(telemetry, settings):
        nonlocal time_s
        time_s += 5.0
        return dog.judge(telemetry, settings, time_s)

    for _ in range(4):
        assert after(measured(), {"a": 1}) == {}
    for _ in range(3):
        assert after(measured(45), {"a": 2}) == {}
    assert dog.good == {"a": 2}  # well for ten seconds
    assert after(measured(20), {"a": 3}) == {}  # once
    assert after(measured(50, 0.15), {"a": 3}) == {"a": 2}
    assert "latency is 150 ms where" in dog.why and "for 10 s" in dog.why
    assert dog.is_paused(time_s) and dog.is_paused(time_s + 29) and not dog.is_paused(time_s + 31)


def test_users_who_want_less_are_no_reason():
    dog = Watchdog(2.0, 5.0)
    dog.start({"a": 1})
    for step in range(4):
        dog.judge(measured(), {"a": 1}, 5.0 * step)
    for step in range(4, 9):
        assert dog.judge(measured(50, busy_s=0.6), {"a": 2}, 5.0 * step) == {}
        assert dog.judge(measured(0.1, 1.0, busy_s=0.1), {"a": 2}, 5.0 * step) == {}


IDLE = measured(0.1, busy_s=0.0)


def judged(dog, intervals, settings, begin=0):
    """What is to be restored after intervals of 5 s, one by one."""
    return [dog.judge(one, settings, 5.0 * (begin + step + 1)) for step, one in enumerate(intervals)]


def test_only_intervals_that_tell_add_up():
    dog = Watchdog(2.0, 15.0)
    dog.start({"a": 1})
    judged(dog, [measured()] * 4, {"a": 1})
    quiet = [IDLE] * 100
    worse = [measured(10), *quiet, measured(10), *quiet]
    assert not any(judged(dog, worse, {"a": 2}, 4)) and not dog.why  # 10 s worse, and an hour of quiet
    assert judged(dog, [measured(10)], {"a": 2}, 300) == [{"a": 1}]
    dog.start({"a": 1})
    judged(dog, [measured(), *quiet, measured(), *quiet], {"a": 2}, 400)
    assert dog.good == {"a": 1}  # well for 10 s only
    judged(dog, [measured()], {"a": 2}, 700)
    assert dog.good == {"a": 2}


def test_what_others_took_over_is_not_waited_for():
    dog = Watchdog(2.0, 10.0)
    dog.start({"a": 1, "b": 1})
    judged(dog, [measured()] * 4, {"a": 1, "b": 1})
    assert judged(dog, [measured(10)] * 2, {"a": 1}, 4) == [{}, {}]  # b is somebody else's from here on
    assert "the network has changed" in dog.why
    dog.start({"a": 1, "b": 1})
    judged(dog, [measured()] * 4, {"a": 1, "b": 1}, 6)
    assert judged(dog, [measured(10)] * 2, {"a": 2}, 10) == [{}, {"a": 1}]


def test_a_network_that_has_changed_is_learnt_anew():
    dog = Watchdog(2.0, 10.0)
    dog.start({"a": 1})
    for step in range(1, 5):
        dog.judge(measured(), {"a": 1}, 5.0 * step)
    said = []
    for step in range(5, 12):
        assert dog.judge(measured(10), {"a": 1}, 5.0 * step) == {}
        said.append(dog.why)
    assert sum("the network has changed" in one for one in said) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ChangeRateLimit(1.0), "factor"),
        (lambda: ChangeRateLimit(2.0, -1), "per_s"),
        (lambda: Watchdog(math.nan), "factor"),
        (lambda: Watchdog(2.0, -1), "hold_s"),
        (lambda: Watchdog(2.0, 1, -1), "pause_s"),
    ],
)
def test_arguments_out_of_range(make, message):
    with pytest.raises(ConfigError, match=f"^{message} = .*valid: "):
        make()
