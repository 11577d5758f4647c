"""The rule of short pulses: what it decides by hand-made telemetry, and that it plays as agents do."""

import math

import numpy as np
import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.tasks.queue_threshold import BriefPulse, QueueThreshold
from netbuf_gym.tasks.queue_threshold.actions import PULSE_LEVELS_S
from netbuf_gym.tasks.queue_threshold.tracker import BURST_MEMORY_S, STARTS_MEMORY_S
from tests.tasks.hand_made_switch import telemetry, tracker

TASK = "queue_threshold"


class Played:
    """The rule over hand-made intervals of 10 ms; by default 10 Mbit/s and packets of 1500 bytes."""

    def __init__(self, rule, rows=1, queues=2, drop=None, head=False, **world):
        self.rules = QueueThreshold(actions="pulse_grid", queues=queues, history=1, drop=drop)
        self.tracker = tracker(rows, queues, betas=(1.0,) * queues, drop_head=head, **world)
        self.policy, self.head = rule.start(self.rules, range(rows)), head
        self.rows, self.queues = rows, queues

    def __call__(self, queued_ms, started=0):
        """What is said of each queue, `(limit in ms, pulse in ms)`, of the first row, after an interval that ends so.

        `started`: flows of queue 0 whose SYN arrived in it.
        """
        octets = np.multiply(queued_ms, self.tracker.capacity_bps[0] / 8e3)
        packets = octets / 1500
        made = telemetry(self.rows, self.queues, elapsed_s=0.01, queue_bytes_0=octets, queue_packets_0=packets, syns_0=started)
        made[:, self.rules.telemetry.index("drop_head")] = self.head
        self.tracker.update(made)
        now = self.rules.observe(self.tracker, np.empty((self.rules.width, self.rows), np.float32)).T
        actions, _ = self.policy(now, None, np.zeros(self.rows, bool))
        self.actions = self.rules.check_actions(actions, self.rows)
        self.rules.decode(self.actions, self.tracker, np.empty((self.rows, 2 * self.queues + 2)))
        number = int(self.actions[0]) // (2 if self.rules.places_drops else 1)
        digits = np.unravel_index(number, (len(PULSE_LEVELS_S),) * self.queues)
        return [tuple(1000 * value for value in PULSE_LEVELS_S[digit]) for digit in digits]


def test_it_cuts_for_a_few_packets_time_and_waits():
    play = Played(BriefPulse())
    assert play(4.9) == [(1000, 0), (20, 0)] and play(19.9) == [(1000, 0), (1, 0)]
    said = [play(20.2)[0] for _ in range(21)]
    assert [k for k, one in enumerate(said) if one == (1000, 3)] == [0, 10, 20] and set(said) == {(1000, 0), (1000, 3)}
    assert [Played(BriefPulse(shut_ms=one))(30)[1] for one in (29, 31, None)] == [(1, 0), (20, 0), (20, 0)]


def test_further_queues_may_be_closed_while_flows_of_queue_0_are_under_way():
    for shut_flows in (None, 1, 2):
        play = Played(BriefPulse(shut_flows=shut_flows))
        play.tracker.flows_seen[0] = 1
        assert play(1)[1] == ((1, 0) if shut_flows == 1 else (20, 0))


@pytest.mark.parametrize(
    ("rate", "packets", "pulse_ms"), [(10e6, 2, 3), (25e6, 2, 1), (10e6, 0.5, 1), (1e6, 2, 10), (10e6, 9, 10)]
)
def test_pulses_are_of_packets(rate, packets, pulse_ms):
    assert Played(BriefPulse(packets=packets), capacity_bps=rate)(50)[0] == (1000, pulse_ms)


def test_the_drop_place_has_its_own_target_and_may_be_chosen():
    assert [Played(BriefPulse(), head=True)(ms)[0] for ms in (14.8, 15.2)] == [(1000, 0), (1000, 3)]
    chosen = Played(BriefPulse(), drop="agent")
    assert chosen(16)[0] == (1000, 3) and chosen.actions[0] % 2 == 1
    assert Played(BriefPulse(), queues=1)(21) == [(1000, 3)] and len(Played(BriefPulse(), queues=3)(21)) == 3


def test_between_cuts_queue_0_rests_limited_unless_bursts_were_seen():
    for head, limit_ms in ((False, 50), (True, 20)):
        rule = BriefPulse(tail_rest_ms=60, head_rest_ms=16, many=4)
        play = Played(rule, head=head)
        assert play(1) == [(limit_ms, 0), (20, 0)] and play(30, 3)[0] == (1000, 3)  # 3 ms of another limit, and open after it
        assert play(1)[0] == (limit_ms, 0)
        said = [play(1, started)[0] for started in (3, *[0] * 600)]  # 3, and what is not yet forgotten of the 3 before
        most = 3 + 3 * math.exp(-0.02 / STARTS_MEMORY_S)
        first = math.ceil(math.log(most / 4) * BURST_MEMORY_S / 0.01)
        assert 300 < first < 500 and said == [(1000, 0)] * first + [(limit_ms, 0)] * (601 - first)
    assert Played(BriefPulse())(1)[0] == (1000, 0)


def test_where_flows_start_queues_may_be_longer_if_asked():
    """Three flows have just started: with a power of 1/2 a target of 20 ms is one of 20 (1 + 3)^0.5, which is 40."""
    for bursts, first_cut in ((0, 20.2), (0.5, 40.3)):
        said = {queued: Played(BriefPulse(bursts=bursts))(queued, 3)[0][1] for queued in (19.8, 20.2, 39.7, 40.3)}
        assert said == {queued: 3 if queued >= first_cut else 0 for queued in said}
    rule = Played(BriefPulse(bursts=0.5))
    rule(20.2, 3)
    cut = next(k for k in range(1, 300) if rule(20.2)[0][1])
    assert cut == pytest.approx(math.log(3 / 0.0201) / (0.01 / STARTS_MEMORY_S), abs=2)  # till 20 (1 + 0.0201)^0.5 = 20.2


def test_queues_may_be_longer_where_bursts_were_seen_alone():
    """Three flows that start do not count where bursts are of five; nor does a burst, once its ten seconds are forgotten."""
    rule = BriefPulse(bursts=1, bursts_from=5)
    assert [Played(rule)(queued, 3)[0][1] for queued in (19.8, 20.2)] == [0, 3]
    for head, target_ms in ((False, 20), (True, 15)):
        assert [Played(rule, head=head)(queued, 9)[0][1] for queued in (target_ms + 1, 10 * target_ms + 5)] == [0, 3]
    play = Played(rule)
    play(1, 9)
    for _ in range(math.ceil(100 * STARTS_MEMORY_S * math.log(9 / 0.5))):  # the burst of 9 is 0.5 starts
        play(1)
    assert [play(29.5)[0][1], play(31)[0][1]] == [0, 3]
    for _ in range(math.ceil(100 * BURST_MEMORY_S * math.log(9 / 5))):  # and the most that there were is less than 5
        play(1)
    play(1, 0.9)
    assert play(20.5)[0][1] == 3


def test_settings_can_be_named():
    rule = rollout.get_controller("brief_pulse:every_ms=300:bursts=0.6", TASK)
    assert (rule.every_ms, rule.bursts, rule.tail_ms) == (300, 0.6, BriefPulse().tail_ms)
    assert rule.name == "brief_pulse:every_ms=300:bursts=0.6" and BriefPulse().name == "brief_pulse"
    world = {"name": "rlbm/default", "duration_s": 5.0, "load": 0.9}
    own = BriefPulse(every_ms=300, bursts=0.6)
    assert repr(rollout.evaluate(rule, TASK, world, [1])) == repr(rollout.evaluate(own, TASK, world, [1]))


@pytest.mark.parametrize("below", [[], [100_000], [50_000, 1_000_000]])
def test_it_plays_one_to_three_queues(below):
    world = {"name": "rlbm/default", "duration_s": 2.0, "priority_below": below, "load": 0.9}
    reports = [rollout.evaluate("brief_pulse", TASK, world, [1, 2], interval_s=0.02, threads=threads) for threads in (1, 2)]
    assert repr(reports[0]) == repr(reports[1]) and 0 < reports[0][0]["goodput_mbps"] < 10


def test_the_queue_is_shorter_than_under_the_naive_buffer_and_as_much_is_delivered():
    world = {"name": "rlbm/default", "load": 0.9, "duration_s": 30.0}
    pulsed, naive = (rollout.evaluate(one, TASK, world, range(4)) for one in ("brief_pulse", "naive"))
    queue, goodput = (
        [np.mean([one[name] for one in reports]) for reports in (pulsed, naive)]
        for name in ("queue_mean_packets_0", "goodput_mbps")
    )
    assert queue[0] < 0.5 * queue[1] and goodput[0] > 0.95 * goodput[1]  # long flows are late


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: BriefPulse(tail_ms=0), "tail_ms = 0.0 is out of range; valid: 1 to 1000"),
        (lambda: BriefPulse(head_ms=1001), "head_ms = 1001"),
        (lambda: BriefPulse(every_ms=-1), "every_ms = -1"),
        (lambda: BriefPulse(packets=0), "packets = 0"),
        (lambda: BriefPulse(shut_ms=-1), "shut_ms = -1"),
        (lambda: BriefPulse(bursts=5), "bursts = 5.0 is out of range; valid: 0 to 4"),
        (lambda: BriefPulse(bursts_from=101), "bursts_from = 101.0 is out of range; valid: 0 to 100"),
        (lambda: BriefPulse(tail_rest_ms=0), "tail_rest_ms = 0.0 is out of range; valid: 1 to 1000"),
        (lambda: BriefPulse(head_rest_ms=2000), "head_rest_ms = 2000"),
        (lambda: BriefPulse(shut_flows=101), "shut_flows = 101"),
        (lambda: BriefPulse(many=-1), "many = -1.0 is out of range; valid: 0 to 100"),
        (lambda: rollout.get_controller("brief_pulse:", TASK), "'brief_pulse:': '' is unknown; valid: brief_pulse:SET"),
        (lambda: rollout.get_controller("brief_pulse:tail=3", TASK), "'tail=3' is unknown; .* settings of tail_ms, head_ms"),
        (lambda: rollout.get_controller("brief_pulse:tail_ms=x", TASK), "'tail_ms=x' is no number"),
        (lambda: rollout.get_controller("brief_pulse:tail_ms=nan", TASK), "'tail_ms=nan'"),
        (lambda: rollout.get_controller("brief_pulse:tail_ms=9:tail_ms=9", TASK), "'tail_ms=9' is there twice; valid"),
        (lambda: rollout.get_controller("brief_pulse:every_ms=-1", TASK), "every_ms = -1"),
        (lambda: rollout.evaluate("brief_pulse", TASK, "rlbm/default", actions="limits"), "'limits'; valid: \"pulse_grid\""),
    ],
)
def test_bad_arguments_are_refused(make, said):
    with pytest.raises(ConfigError, match=said):
        make()
