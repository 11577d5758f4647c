"""The suites of the Sussex testbeds: worlds as in their scripts, measures by hand, ranking and signs on rows made by hand."""

import math
from random import Random

import numpy as np
import pytest

from netbuf_gym.evaluation.suites import SUITES
from netbuf_gym.evaluation.suites.field import sage, sussex
from netbuf_gym.leaderboard import controllers, play
from netbuf_gym.scenarios import TBF, DelaySchedule, Flow, FqCoDel, Scenario, UdpSource
from netbuf_gym.simulation.runner import simulate
from tests.evaluation.hand_made_field import cell, made


@pytest.mark.slow
def test_sussex_worlds_are_the_testbed_s():
    assert sussex.buffer_bytes(100, 20, 1) == int(100 * 2**20 * 0.02 / 8)
    assert sussex.buffer_bytes(1, 1, 0.2) == 1500
    one = cell("testbed/2025", "intra-rtt-30ms-0.2-1").scenario
    assert one.duration_s == 120 and one.propagation_rtt_ms() == 60
    link = one.links[0]
    assert [round(flow.start_s) for flow in one.flows] == [0, 30] and link.queue_bytes == int(0.2 * 100 * 2**20 * 0.06 / 8)
    assert link.discipline == TBF(rate_mbps=100, burst_bytes=524_288) and one.capacity_mbps == 100
    assert [one.links[i].name for i in one.flows[0].path] == ["netem-0", "bottleneck"]
    other = cell("testbed/2025", "inter-rtt-100ms-1-2").scenario
    assert [other.propagation_rtt_ms(i) for i in (0, 1)] == [20, 200]
    draw, drawn = Random(7), cell("testbed/2024", "responsive-draw-7").scenario
    pairs = [(draw.randint(1, 100), draw.randint(20, 200)) for _ in range(30)]
    assert drawn.links[0].trace.rate_mbps.tolist() == [rate for rate, _ in pairs] and drawn.links[0].discipline is None
    assert isinstance(drawn.links[2].delay_ms, DelaySchedule) and drawn.links[2].delay_ms.delay_ms.tolist() == [
        r for _, r in pairs
    ]
    assert drawn.links[0].queue_bytes == 131_072
    down = cell("testbed/2025", "leo-inter-rtt-50ms-1-1").scenario
    assert down.links[0].on_outage == "drop" and down.links[0].trace.rate_mbps.min() == 0 and down.links[1].loss_on_acks
    assert down.links[0].discipline == TBF(rate_mbps=100, burst_bytes=524_288) and down.capacity_mbps == 100
    cut = cell("testbed/2025", "handover-200ms-1").scenario
    assert cut.links[2].loss.time_s[:3].tolist() == [0, 4.95, 5.2] and cut.links[1].loss.time_s[:3].tolist() == [0, 5, 5.2]
    lot = cell("testbed/2025", "parking-lot-6switches-10ms-1-1").scenario
    assert lot.agents == 6 and sum(link.discipline is not None for link in lot.links) == 5
    managed = {q: cell("testbed/2025", f"aqm-fq_codel-10ms-{q}-1").scenario.links[0] for q in (0.2, 1, 4)}
    assert {q: link.queue_packets for q, link in managed.items()} == {0.2: 34, 1: 174, 4: 699}
    assert all(link.discipline == FqCoDel(flows=100) for link in managed.values())
    assert not cell("testbed/2025", "aqm-codel-10ms-1-1").scenario.links[0].discipline.ecn, "tc's CoDel marks when asked to"


@pytest.mark.parametrize("family", ["leo", "leo-loss", "leo-outages"])
def test_sussex_orbits_are_drawn_as_the_scripts_draw(family):
    draw, drawn = Random(7), []
    for _ in range(20):
        drawn.append((draw.randint(50, 100), draw.randint(5, 100), round(draw.uniform(0, 1), 2) / 100))
        if family == "leo-outages":
            draw.randint(45, 120)
    rates, rtts, losses = map(list, zip(*drawn, strict=True))
    bottleneck, _, netem = cell("testbed/2025", f"{family}-draw-7").scenario.links
    assert bottleneck.trace.rate_at_mbps(15.0 * np.arange(20) + 7).tolist() == rates
    assert netem.delay_ms.delay_ms.tolist() == rtts
    assert netem.loss.loss.tolist() == losses if family == "leo-loss" else netem.loss == 0


def test_sussex_starts_and_sawtooth():
    draw, beside = Random(3 * 5), cell("testbed/2025", "many-cubic-4cubic-1-3").scenario
    assert [int(flow.start_s) for flow in beside.flows[1:]] == [draw.randint(1, 15) for _ in range(4)]
    starlink = cell("testbed/2025", "starlink-46.6ms-1-1").scenario.links[2].delay_ms
    assert starlink.period_s == 15 and np.all(np.diff(starlink.delay_ms) > 0), "a sawtooth rises and falls back"
    delays = starlink.delay_ms
    assert delays[[0, -1]].tolist() == pytest.approx([36.6, 56.6]) and delays.mean() == pytest.approx(46.6)


@pytest.mark.parametrize("year", [2024, 2025])
def test_sussex_runs_differ_from_the_scripts_by_seconds_that_nobody_scores(year):
    cells = SUITES[f"testbed/{year}"].load().cells
    cut = [one for one in cells if one.family in ("rates", "friendly-rates")]
    assert all(one.scenario.duration_s == 100 == one.scenario.flows[1].stop_s for one in cut)
    said = [one.worlds for one in SUITES[f"testbed/{year}"].not_run if one.worlds.startswith("the last 50 s")]
    assert len(said) == 1 and said[0].endswith(f": {len(cut)} runs")
    if year == 2024:
        assert sum(one.scenario.duration_s for one in cells) + 50 * len(cut) == 212_250


def test_sussex_pairs_are_moved_to_the_first_bucket_and_back():
    one = cell("testbed/2025", "cross-inter-5ms-0.2-1").scenario
    assert [one.propagation_rtt_ms(i) for i in range(4)] == [50, 50, 10, 10] and one.duration_s == 300
    assert [link.queue_bytes for link in one.links[:2]] == [int(0.2 * 100 * 2**20 * rtt / 8) for rtt in (0.05, 0.01)]
    assert [len(flow.routes) for flow in one.flows] == [0, 0, 2, 2]
    there, back = one.flows[3].routes
    assert [there.at_s, back.at_s] == pytest.approx([99.99, 199.99]), "netem's 10 ms lie before the routers"
    assert [one.links[i].name for i in there.path] == ["netem-1", "bottleneck"] and back.path == one.flows[3].path


def test_sussex_bucket_passes_its_burst_and_then_its_rate():
    link = sussex.make_bucket(100, sussex.buffer_bytes(100, 20, 0.2))
    flood = UdpSource(path=[0], rate_mbps=400, stop_s=1)
    never = Flow(path=[0], return_path=[0], start_s=1.5)
    played = simulate(Scenario(links=[link], udp=[flood], flows=[never], duration_s=1.2), seed=1).links["bottleneck"]
    queue = 52_428 // 1500
    assert played.packets_out == pytest.approx((100e6 / 8 + 524_288) / 1500 + queue, abs=2)
    assert played.queue_max_packets_total == queue
    alone = sussex.make_dumbbell(sussex.make_bucket(100, 262_144), [20], [("cubic", 0.0, 30.0)], 30, "alone")
    found = simulate(alone, seed=1).flows[0]
    assert found.goodput_mbps == pytest.approx(100 * 1448 / 1500, rel=0.01)


class Seen:
    """Flows of 30, 60 and more Mbit/s in odd seconds; in even ones the first rests."""

    def __init__(self, flows, duration_s=10.0):
        self.scenario = type("S", (), {"flows": (0,) * flows, "duration_s": duration_s})

    def goodput_mbps(self, flow, times):
        return np.array([30.0 * (flow + 1) if int(t) % 2 or flow else 0.0 for t in times[:-1]])


def test_sussex_scores_by_hand():
    two = Seen(2)
    assert sussex.measure_fairness(0, 10)(two) == {
        "fairness_r1": pytest.approx(0.25),
        "second_share": pytest.approx(0.8),
    }
    assert sussex.measure_fairness(0, 10, (9, 10))(two)["fairness_r1_end"] == pytest.approx(0.5)  # an odd second
    ends = {"leo-inter-rtt-10ms-1-1": 49 / 99, "inter-rtt-50ms-1-1": 6 / 12, "rates-10mbps-1-1": 13 / 25}
    for name, odd in ends.items():  # 100 to 199 s, 188 to 200 s, 75 to 100 s
        assert cell("testbed/2025", name).measure(two)["fairness_r1_end"] == pytest.approx(0.5 * odd), name
    found = sussex.measure_friendliness(0, 10, (8, 9))(two)
    assert found["friendliness_r2"] == pytest.approx((1 / 61 + 31 / 61) / 2)
    assert found["friendliness_r2_end"] == pytest.approx(1 / 61) and found["second_share"] == pytest.approx(0.8)
    assert found["friendliness_r3"] == pytest.approx((60 / 1 + 60 / 30) / 2), "one that rests counts as 1 Mbit/s"
    assert sussex.measure_against_cubic(Seen(3))["friendliness_r4"] == pytest.approx(30 / 75 / 2)
    assert sussex.measure_spine(0, 10)(Seen(3))["spine_r5"] == pytest.approx(30 / 90 / 2)


def test_sussex_efficiency_is_of_each_second():
    class Joined:
        """Two flows of 5 Mbit/s each in their windows, 0 to 4 and 2 to 6 s: alone at the base RTT, both at twice that."""

        scenario = type("S", (), {"flows": (0, 0), "base_rtt_ms": lambda self, i: 20.0})()

        def capacity_mbps(self, times):
            return np.array([10.0])

        def goodput_mbps(self, flow, times):
            return np.full(len(times) - 1, 5.0)  # outside its window too: what is still on its way

        def retransmitted_mbps(self, flow, times):
            return np.full(len(times) - 1, 1.0)

        def rtt_ms(self, flow, times):
            alone = [t < 2 or t >= 4 for t in times[:-1]]
            return np.where(alone, 20.0, 40.0) if len(times) > 2 else np.array([30.0])

    found = sussex.measure_efficiency([(0, 4), (2, 6)], 10)(Joined())
    assert found["efficiency_e1"] == pytest.approx((4 * 0.5 / 1 + 2 * 1 / 2) / 6), "the ratio of the means is 0.44"
    assert found["efficiency_e2"] == pytest.approx((4 * 0.4 / 1 + 2 * 0.8 / 2) / 6)
    assert found["use"] == pytest.approx(40 / 60) and found["inflation"] == pytest.approx(1.5)


def test_sussex_phases_by_hand():
    class Moved(Seen):
        """Four flows of 50 Mbit/s, but from 2 to 5 s, when they share one bucket 10, 20, 30, 40, and the first then none."""

        def goodput_mbps(self, flow, times):
            if len(times) == 2 and times[0] == 0:
                return np.array([(5 * 50 + 3 * 10 * (flow + 1)) / 9 if flow else (2 * 50 + 3 * 10) / 9])
            return np.array([10.0 * (flow + 1) if 2 <= t < 5 else 50.0 if flow or t < 5 else 0.0 for t in times[:-1]])

    found = sussex.measure_phases(2, 5, 100)(Moved(4, 9.0))
    assert [found[f"fairness_{key}"] for key in ("before", "moved", "after")] == pytest.approx([1, 0.25, 0])
    assert found["fairness_r1"] == pytest.approx(1.25 / 3)
    assert found["use"] == pytest.approx((3 * 5 * 50 + 2 * 50 + 3 * 100) / (6 * 200 + 3 * 100))


def test_sussex_families_are_scored_and_ranked_by_what_they_are_about():
    r3, e1 = sussex.R3, sussex.E1
    assert [r3.score_world({r3.key: value}) for value in (0.0, 0.5, 4.0)] == [0, 0.5, 0.25]
    assert e1.score_world({e1.key: 1.2}) == 1 and math.isnan(r3.score_world({r3.key: math.nan}))
    assert r3.to_rank_values(np.array([0.0, 1.0, 2.0])).tolist() == pytest.approx([math.log(100), 0, math.log(2)])
    about = {"f": {"family": "friendly"}, "m": {"family": "many-cubic"}}

    def results(**ratios):
        key = {"f": "friendliness_r3", "m": "friendliness_r4"}
        return made({name: {w: {key[w]: value} for w, value in own.items()} for name, own in ratios.items()}, about)

    three = results(a={"f": 0.5, "m": 1.0}, b={"f": 4.0, "m": 1.0}, c={"f": 1.0, "m": 1.0})
    told = sussex.judge(2025, three)
    assert told.ranking == ["c", "a", "b"]
    at = told.tables[0].header.index("|ln R3|, R4")
    assert [row[at] for row in told.tables[0].rows] == ["0.000", f"{math.log(2) / 2:.3f}", f"{math.log(4) / 2:.3f}"]
    assert "R2" in sussex.judge(2024, three).tables[0].header and "R5" not in sussex.judge(2024, three).tables[0].header
    assert sage.judge(made({"a": {"w": {}}}, {"w": {"set": 1}})).first == ["no controller has results in all worlds"]


def test_sussex_signs_are_of_the_sender_and_of_whoever_is_no_agent():
    about = {"r": {"family": "responsive"}}
    about |= {f"{kind}{d}": {"family": f"{kind}-rtt", "d": d, "q": 1} for kind in ("inter", "intra") for d in (20, 50, 100)}

    def sign(says, results):
        return next(one for one in sussex.check_2025_signs(results) if says in one.says)

    def g(**values):
        return {name.replace("__", "/"): {"r": {"adaptation_g": g}} for name, g in values.items()}

    results = made(g(congestion_window__a2c=0.9, congestion_window__sender=0.5, vegas=math.nan, cubic=0.8), about)
    behind = sign("fall behind", results)
    assert behind.holds and behind.shown == "congestion_window/sender G 0.50, the best that is no agent 0.80"
    assert sign("fall behind", made(g(cubic=0.8, mine__a=0.9, mine__b=0.1), about)).holds is False
    assert sign("fall behind", made(g(cubic=0.8), about)).holds is None
    assert sign("favours the shorter", results).holds is None

    def shares(**longer):
        """Of CUBIC the longer flow's by its round trip; of two equal ones the second has 40 %."""
        second = {"inter20": 0.9, "intra20": 0.1, "intra50": 0.4, "intra100": 0.4} | longer
        return made({"cubic": {world: {"second_share": share} for world, share in second.items()}}, about)

    favours = sign("favours the shorter", shares(inter50=0.3, inter100=0.31))
    assert favours.holds and favours.shown.startswith("30 and 40 %, in points -9.5 [-15.9, -3.1]")
    late = sign("favours the shorter", shares(inter50=0.3, inter100=0.41))  # by the round trips, not more than by chance
    assert late.holds is False and late.reason
    assert sign("Astraea", results).holds is None and sussex.check_2024_signs(results)[-1].holds is None
    rules = " ".join(SUITES["testbed/2025"].rules)
    assert "inverse, aqm, jump, leo-inter-rtt, wide, starlink, starlink-two." in rules


@pytest.mark.slow
def test_sussex_families_measure_what_they_are_scored_by():
    suite = SUITES["testbed/2025"]
    shortest = {}
    for one in suite.load().cells:
        if one.scenario.duration_s < shortest.get(one.family, one).scenario.duration_s or one.family not in shortest:
            shortest[one.family] = one
    names = ["intra-rtt", "friendly", "many-cubic", "cross-intra", "cross-inter", "handover", "inter-rtt", "jump"]
    shortest["jump"] = cell("testbed/2025", "jump-10ms-4-1")
    chosen = [shortest[name] for name in names]
    values = dict(zip(names, play.run(suite, chosen, controllers.resolve_controller("cubic", suite)).values, strict=True))
    for name, found in values.items():
        score = sussex.get_experiments(2025)[name].score
        assert 0 < found["score"] <= 1 and found["score"] == pytest.approx(score.score_world(found)), name
        assert set(found) == {metric.key for metric in suite.metrics} and 0.5 < found["use"] < 1, name
    for name in ("cross-intra", "cross-inter"):
        found = values[name]
        assert found["fairness_moved"] < found["fairness_after"], "pairs that meet share less evenly than each alone"
        phases = [found[f"fairness_{key}"] for key in ("before", "moved", "after")]
        assert found["fairness_r1"] == pytest.approx(np.mean(phases)) and math.isnan(found["adaptation_g"])
    assert values["jump"]["inflation"] < 2, "the new path's own round trip is four times the first"
    assert 0 < values["intra-rtt"]["queue_ms"] < 20 and math.isnan(values["cross-intra"]["second_share"])
    assert not math.isnan(values["inter-rtt"]["fairness_r1_end"])
