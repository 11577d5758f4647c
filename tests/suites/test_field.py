"""Suites of the field: their worlds as published, their rankings on rows made by hand, their reports, and what is kept."""

import csv
import gzip
import io
import json
import math
from random import Random

import numpy as np
import pytest
from hand_made_field import cell, made

from netbuf_gym import cli
from netbuf_gym.errors import ConfigError
from netbuf_gym.scenarios import TBF, DelaySchedule, Flow, FqCoDel, Scenario, UdpSource
from netbuf_gym.simulation import simulate
from netbuf_gym.suites import SUITES, field, recording, running
from netbuf_gym.suites.field import (
    ccbench,
    document,
    games,
    league,
    overview,
    pantheon,
    sage,
    sussex,
    sussex_measures,
    sussex_worlds,
)
from netbuf_gym.suites.field.suite import Sign, Table
from netbuf_gym.suites.field.telling import signs_table
from netbuf_gym.zoo import contending

RUNS = {
    "ccbench/solo": 660,
    "ccbench/friendly": 125,
    "testbed/2024": 1030,
    "testbed/2025": 2271,
    "rfc9743": (243 + 16 + 4 + 8 + 9) * 3,
    "rfc7928": 4 * 25 + 72,
    "pantheon": 36 * 5,
    "mvfst-rl": 18 * 3,
    "genet/synthetic": 572,
    "sage": 500 + 125,
    "bbr3/conformance": 15 * 4,
}


# ---- worlds


@pytest.mark.parametrize("suite", field.SUITES, ids=lambda suite: suite.name)
def test_every_suite_has_its_worlds(suite):
    edition = suite.load()
    names = [one.name for one in edition.cells]
    assert len(names) == len(set(names)) == RUNS[suite.name]
    assert set(edition.families) == set(suite.families)
    assert all(one.scenario.agents >= 1 for one in edition.cells)
    assert all(one.worlds and one.feature for one in suite.not_run)
    assert set(suite.scatter) <= {metric.key for metric in suite.metrics}


def test_ccbench_worlds_are_the_league_s():
    one = cell("ccbench/solo", "48-20-4x-d-8B").scenario
    link = one.links[0]
    assert link.queue_packets == 8 * 48 * 20 // 6 and one.propagation_rtt_ms() == 40 and one.duration_s == 24
    assert link.trace.time_s.tolist() == [0, 7, 14, 21] and link.trace.rate_mbps.tolist() == [48, 12, 48, 12]
    assert cell("ccbench/solo", "12-5-constant-0.5B").scenario.links[0].queue_packets == 5
    names = {one.name for one in SUITES["ccbench/solo"].load().cells}
    assert not any(name.startswith(("96-80-4x-u", "192-5-2x-u", "192-5-4x-u")) for name in names)
    beside = cell("ccbench/friendly", "192-80-16B").scenario
    assert [(flow.cc, flow.start_s) for flow in beside.flows] == [("cubic", 0.0), ("agent", 5.0)]
    assert beside.links[0].queue_packets == 16 * 192 * 80 // 6


def test_sussex_worlds_are_the_testbed_s():
    assert sussex_worlds.buffer_bytes(100, 20, 1) == int(100 * 2**20 * 0.02 / 8)
    assert sussex_worlds.buffer_bytes(1, 1, 0.2) == 1500
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
    link = sussex_worlds.bucket(100, sussex_worlds.buffer_bytes(100, 20, 0.2))
    flood = UdpSource(path=[0], rate_mbps=400, stop_s=1)
    never = Flow(path=[0], return_path=[0], start_s=1.5)
    played = simulate(Scenario(links=[link], udp=[flood], flows=[never], duration_s=1.2), seed=1).links["bottleneck"]
    queue = 52_428 // 1500
    assert played.packets_out == pytest.approx((100e6 / 8 + 524_288) / 1500 + queue, abs=2)
    assert played.queue_max_packets_total == queue
    alone = sussex_worlds.dumbbell(sussex_worlds.bucket(100, 262_144), [20], [("cubic", 0.0, 30.0)], 30, "alone")
    found = simulate(alone, seed=1).flows[0]
    assert found.goodput_mbps == pytest.approx(100 * 1448 / 1500, rel=0.01)


def test_other_worlds_are_as_published():
    policed, shallow = pantheon.job(12, 1), pantheon.job(15, 3)
    assert [link.queue_packets for link in policed.links] == [1, 1] and policed.links[0].rate_mbps == 108
    assert shallow.links[0].queue_bytes == 9000 and [flow.start_s for flow in shallow.flows] == [0, 10, 20]
    one = cell("sage", "quarter-96-160-16").scenario
    assert one.links[0].trace.rate_mbps.tolist() == [96, 24] and one.links[0].trace.period_s == 14
    assert [flow.cc for flow in cell("sage", "friendly-12-10-1").scenario.flows] == ["agent", "cubic"]


# ---- scores


def test_solo_wins_by_rounded_power():
    mbps, delay = (
        np.array([[10.4, 0.3, 0.2], [9.6, 5.0, 0.1], [9.4, 5.0, 0.0]]),
        np.array([[10.0, 1.0, 5.0]] * 2 + [[10, 1.1, np.nan]]),
    )
    assert games.power(mbps, delay).tolist() == [[10, 0, 0], [10, 25, 0], [8.1, 25, 0]]
    won = games.solo_wins(games.power(mbps, delay))
    assert won.tolist() == [[True, False, False], [True, True, False], [False, True, False]]
    assert games.solo_wins(games.power(mbps, delay), 0.2)[2].tolist() == [True, True, False]


def test_friendly_wins_by_the_nearest_to_half():
    mbps = np.array([[6.0, 8.2], [5.0, 3.0], [10.0, 12.0]])
    won = games.friendly_wins(mbps, np.array([6.0, 6.0]))
    assert won.tolist() == [[True, True], [False, False], [False, False]]  # m = 0: 5.4 to 6.6; m = 2: 3.6 to 8.8
    assert games.friendly_wins(mbps, np.array([6.0, 6.0]), 0.5).tolist() == [[True, True], [True, True], [False, True]]


def test_league_ranks_who_played_everything():
    games = {f"{key}_{k}": value for k in range(4) for key, value in (("mbps", 10.0), ("delay_ms", 20.0))}
    worse = games | {f"delay_ms_{k}": 40.0 for k in range(4)}
    about = {"w1": {"family": "constant", "rate": 12}, "w2": {"family": "2x-u", "rate": 12}}
    results = made({"a": {"w1": worse, "w2": games}, "b": {"w1": games, "w2": games}, "c": {"w1": games}}, about)
    told = ccbench.solo(results)
    assert told.ranking == ["b", "a"] and [row[:3] for row in told.tables[0].rows] == [
        ["1", "b", "100.00"],
        ["2", "a", "50.00"],
    ]
    assert told.first[0].startswith("b wins most games of solo: 100.00 % of 8")


class Seen:
    """Flows of 30, 60 and more Mbit/s in odd seconds; in even ones the first rests."""

    def __init__(self, flows, duration_s=10.0):
        self.scenario = type("S", (), {"flows": (0,) * flows, "duration_s": duration_s})

    def goodput_mbps(self, flow, times):
        return np.array([30.0 * (flow + 1) if int(t) % 2 or flow else 0.0 for t in times[:-1]])


def test_sussex_scores_by_hand():
    two = Seen(2)
    assert sussex_measures.even(0, 10)(two) == {"fairness_r1": pytest.approx(0.25), "second_share": pytest.approx(0.8)}
    assert sussex_measures.even(0, 10, (9, 10))(two)["fairness_r1_end"] == pytest.approx(0.5)  # an odd second
    found = sussex_measures.friendly(0, 10, (8, 9))(two)
    assert found["friendliness_r2"] == pytest.approx((1 / 61 + 31 / 61) / 2)
    assert found["friendliness_r2_end"] == pytest.approx(1 / 61) and found["second_share"] == pytest.approx(0.8)
    assert found["friendliness_r3"] == pytest.approx((60 / 1 + 60 / 30) / 2), "one that rests counts as 1 Mbit/s"
    assert sussex_measures.against(Seen(3))["friendliness_r4"] == pytest.approx(30 / 75 / 2)
    assert sussex_measures.spine(0, 10)(Seen(3))["spine_r5"] == pytest.approx(30 / 90 / 2)


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

    found = sussex_measures.efficiency([(0, 4), (2, 6)], 10)(Joined())
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

    found = sussex_measures.phases(2, 5, 100)(Moved(4, 9.0))
    assert [found[f"fairness_{key}"] for key in ("before", "moved", "after")] == pytest.approx([1, 0.25, 0])
    assert found["fairness_r1"] == pytest.approx(1.25 / 3)
    assert found["use"] == pytest.approx((3 * 5 * 50 + 2 * 50 + 3 * 100) / (6 * 200 + 3 * 100))


def test_sussex_families_are_scored_and_ranked_by_what_they_are_about():
    r3, e1 = sussex_measures.R3, sussex_measures.E1
    assert [r3.of({r3.key: value}) for value in (0.0, 0.5, 4.0)] == [0, 0.5, 0.25]
    assert e1.of({e1.key: 1.2}) == 1 and math.isnan(r3.of({r3.key: math.nan}))
    assert r3.ranked(np.array([0.0, 1.0, 2.0])).tolist() == pytest.approx([math.log(100), 0, math.log(2)])
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
    assert sage.judge(made({"a": {"w": {}}}, {"w": {"set": 1}})).first == ["nobody has played"]


def test_sussex_signs_are_of_the_sender_and_of_whoever_is_no_agent():
    about = {"r": {"family": "responsive"}, "i": {"family": "inter-rtt", "d": 50}}

    def sign(says, results):
        return next(one for one in sussex.later_signs(results) if says in one.says)

    def g(**values):
        return {name.replace("__", "/"): {"r": {"adaptation_g": g}, "i": {"second_share": 0.3}} for name, g in values.items()}

    results = made(g(congestion_window__a2c=0.9, congestion_window__ppo=0.5, vegas=math.nan, cubic=0.8), about)
    behind = sign("fall behind", results)
    assert behind.holds and behind.shown == "congestion_window/ppo G 0.50, the best that is no agent 0.80"
    assert sign("fall behind", made(g(cubic=0.8, mine__a=0.9, mine__b=0.1), about)).holds is False
    assert sign("fall behind", made(g(cubic=0.8), about)).holds is None
    favours = sign("favours the shorter", results)
    assert favours.holds and "30 %" in favours.shown
    assert sign("Astraea", results).holds is None and sussex.earlier_signs(results)[-1].holds is None
    rules = " ".join(SUITES["testbed/2025"].rules)
    assert "inverse, aqm, jump, leo-inter-rtt, wide, starlink, starlink-two." in rules


def test_sussex_families_measure_what_they_are_scored_by():
    suite = SUITES["testbed/2025"]
    shortest = {}
    for one in suite.load().cells:
        if one.scenario.duration_s < shortest.get(one.family, one).scenario.duration_s or one.family not in shortest:
            shortest[one.family] = one
    names = ["intra-rtt", "friendly", "many-cubic", "cross-intra", "cross-inter", "handover", "inter-rtt", "jump"]
    shortest["jump"] = cell("testbed/2025", "jump-10ms-4-1")
    chosen = [shortest[name] for name in names]
    values = dict(zip(names, running.run(suite, chosen, contending.contender("cubic", suite)).values, strict=True))
    for name, found in values.items():
        score = sussex.families(2025)[name].score
        assert 0 < found["score"] <= 1 and found["score"] == pytest.approx(score.of(found)), name
        assert set(found) == {metric.key for metric in suite.metrics} and 0.5 < found["use"] < 1, name
    for name in ("cross-intra", "cross-inter"):
        found = values[name]
        assert found["fairness_moved"] < found["fairness_after"], "pairs that meet share less evenly than each alone"
        phases = [found[f"fairness_{key}"] for key in ("before", "moved", "after")]
        assert found["fairness_r1"] == pytest.approx(np.mean(phases)) and math.isnan(found["adaptation_g"])
    assert values["jump"]["inflation"] < 2, "the new path's own round trip is four times the first"
    assert 0 < values["intra-rtt"]["queue_ms"] < 20 and math.isnan(values["cross-intra"]["second_share"])
    assert not math.isnan(values["inter-rtt"]["fairness_r1_end"])


def test_record_says_what_simulate_says():
    one = cell("ccbench/friendly", "12-20-B")
    suite = SUITES["ccbench/friendly"]
    played = running.run(suite, [one], contending.contender("bbr", suite))
    result = simulate(one.scenario.with_senders(["cubic", "bbr"]), seed=one.seed, sample_interval_s=5.0)
    arrival = result.series["arrival_mbps"][:, 1] * 1500 / 1448
    assert played.values[0]["mbps_0"] == pytest.approx(arrival[1:7].mean(), rel=1e-9)
    assert played.values[0]["mbps_3"] == pytest.approx(arrival[19:24].mean(), rel=1e-9)


def test_weighted_quantile():
    values, weights = np.array([3.0, 1.0, 2.0, np.nan]), np.array([1.0, 8.0, 1.0, 5.0])
    assert recording.weighted_quantile(values, weights, 0.8) == 1 and recording.weighted_quantile(values, weights, 0.95) == 3
    assert math.isnan(recording.weighted_quantile(values[3:], weights[3:], 0.5))


# ---- reports and what is kept


def test_command_ranks_among_the_kept(tmp_path, capsys):
    words = ["suite", "bbr3/conformance", "controller=[cubic,vegas]", "families=[tiny,rate-up]", "beside=[]", "threads=2"]
    assert cli.main([*words, f"output={tmp_path}"]) == 0
    page, text = (tmp_path / "report.html").read_text(), (tmp_path / "report.md").read_text()
    assert 'src="data:image/png;base64,' in page and "http" not in page.split("<body>")[1].split("base64")[0]
    assert "## Not run" in text and "| spurious fast recovery | nothing: " in text and "beside kept" not in text
    rows = list(csv.DictReader(io.StringIO((tmp_path / "worlds.csv").read_text().partition("\n")[2])))
    assert {row["controller"] for row in rows} == {"cubic", "vegas", "bbr3"} and len(rows) == 3 * 8  # bbr3 is needed beside
    found = json.loads((tmp_path / "result.json").read_text())
    assert found["ranking"] == [row[0] for row in found["tables"][0]["rows"]] and found["first"][0] in capsys.readouterr().out
    again = [
        *words[:2],
        "controller=bbr",
        *words[3:4],
        f"beside=[{tmp_path}/worlds.csv]",
        f"output={tmp_path}/b",
        "figures=false",
    ]
    assert cli.main(again) == 0
    assert "beside kept results of cubic, vegas, bbr3" in (tmp_path / "b" / "report.md").read_text()
    again[3] = "families=[tiny,drain]"
    assert cli.main(again) == 2, "two of its families are not those two"
    said = capsys.readouterr().err
    assert "beside has cubic without 4 of the 8 worlds, drain-1mbps-100ms among them; valid: whoever has played" in said


def test_one_that_fails_is_a_row_and_the_suite_goes_on(tmp_path, capsys, monkeypatch):
    real = running.run

    def failing(suite, cells, contender, **more):
        if contender.name == "vegas":
            raise ConfigError("its window is NaN; valid: a number")
        return real(suite, cells, contender, **more)

    monkeypatch.setattr(running, "run", failing)
    words = ["suite", "bbr3/conformance", "controller=[vegas,bbr3]", "families=[tiny]", "beside=[]", "figures=false"]
    assert cli.main([*words, f"output={tmp_path}"]) == 1
    assert capsys.readouterr().err.count("vegas failed: its window is NaN") == 1
    text = (tmp_path / "report.md").read_text()
    assert "vegas failed: its window is NaN" in text and "| vegas | failed |  |" in text
    assert json.loads((tmp_path / "result.json").read_text())["failed"] == {"vegas": "its window is NaN; valid: a number"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["families=[none]"], "families holds 'none'; valid: startup-plateau"),
        (["against=x.json"], "against = x.json: bbr3/conformance ranks its contenders; valid: beside="),
        (["beside=[missing.csv]"], "beside = missing.csv: cannot be read: No such file or directory; valid: a worlds.csv"),
    ],
)
def test_bad_words(words, says, capsys, tmp_path):
    assert cli.main(["suite", "bbr3/conformance", "controller=bbr3", *words, f"output={tmp_path}"]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("word", ["missing.cc", "missing.py:Name"])
def test_a_file_that_is_not_there_is_bad_input(word, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(running, "run", lambda *given, **more: pytest.fail("something is played"))
    words = ["suite", "bbr3/conformance", f"controller=[cubic,'{word}']", "beside=[]", f"output={tmp_path}"]
    assert cli.main(words) == 2
    assert f"controller = '{word}': there is no file {word.partition(':')[0]}; valid: one" in capsys.readouterr().err


@pytest.mark.parametrize("suite", ["bbr3/conformance", "gate"])
def test_families_are_listed(suite, capsys):
    assert cli.main(["suite", suite, "--families"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    cells = SUITES[suite].load().cells
    assert {row[0]: int(row[1]) for row in rows} == {
        family: sum(one.family == family for one in cells) for family in SUITES[suite].families
    }


def test_beside_is_of_the_field_and_of_the_same_worlds(tmp_path, capsys):
    assert cli.main(["suite", "gate", "controller=cubic", "beside=[]", f"output={tmp_path}"]) == 2
    assert "beside = []: gate ranks nobody; valid: no beside" in capsys.readouterr().err
    (tmp_path / "worlds.csv").write_text("# netbuf-gym suite sage; suite sage, version 0, digest 0\ncontroller,world\n")
    assert cli.main(["suite", "sage", "controller=cubic", f"beside=[{tmp_path}/worlds.csv]", f"output={tmp_path}"]) == 2
    assert "valid: suite sage, version 1, digest" in capsys.readouterr().err


def test_a_damaged_file_beside_is_told_by_its_line(tmp_path):
    suite = SUITES["mvfst-rl"]
    edition, path = suite.load(), tmp_path / "worlds.csv"
    columns = ",".join([*league.ABOUT, *(metric.key for metric in suite.metrics)])
    row = ",".join(["a", "job 1", "w", "1", "2", *["0.5"] * len(suite.metrics)])

    def read(text):
        path.write_text(f"# x; {league.stamp(suite, edition)}\n{text}")
        return league.read(path, suite, edition)

    found = read(f"{columns}\n{row}\n{row.removesuffix('0.5').replace('a,', 'b,')}\n")
    assert found["a"]["w"]["power"] == 0.5 and math.isnan(found["b"]["w"][suite.metrics[-1].key])
    for text, says in {
        f"{columns}\n{row}\n{row[:-1]}": "line 4 is damaged: 'a,job 1,w",
        f"{columns}\n{row.removesuffix(',0.5')}\n{row}\n": "line 3 is damaged",
        f"{columns}\n{row}x\n": "line 3 is damaged",
        f"{columns}\n\n{row}\n": "line 3 is damaged: ''",
        f"{columns.replace('power', 'powder')}\n{row}\n": "has columns .*; valid: those of mvfst-rl, controller,family",
        "": r"has columns \[\]",
    }.items():
        with pytest.raises(ConfigError, match=f"beside = {path}: {says}"):
            read(text)


def test_nobody_who_has_come_to_anything_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.cc").write_text("nonsense")
    assert cli.main(["suite", "rfc7928", "controller=wrong.cc", "beside=[]", "output=out"]) == 1
    said = capsys.readouterr().out
    assert "nobody has played" in said and "| wrong.cc | failed |" in said
    assert "failed" in (tmp_path / "out" / "report.html").read_text()


def test_kept_results_are_renewed_by_contender(tmp_path):
    path = tmp_path / "kept.csv.gz"
    league.keep(path, "# run one; suite x\ncontroller,world\na,1\nb,1\n")
    league.keep(path, "# run two; suite x\ncontroller,world\nb,2\nc,2\n")
    rows = gzip.decompress(path.read_bytes()).decode().splitlines()[1:]
    assert rows == ["controller,world", "a,1", "b,2", "c,2"]
    league.keep(path, "# run three; suite y\ncontroller,world\nb,3\n")
    assert gzip.decompress(path.read_bytes()).decode().splitlines()[2:] == ["b,3"]


KEPT = [one for one in field.SUITES if league.committed(one).is_file()]


@pytest.mark.parametrize("suite", KEPT, ids=lambda suite: suite.name)
def test_kept_results_are_today_s(suite):
    edition = suite.load()
    kept = league.read(league.committed(suite), suite, edition)
    shortest = sorted(edition.cells, key=lambda one: one.scenario.duration_s)[:2]
    assert "cubic" in kept
    for name in sorted({"cubic", "bbr"} & set(kept)):
        values = running.run(suite, shortest, contending.contender(name, suite)).values
        for one, found in zip(shortest, values, strict=True):
            for key, value in found.items():
                assert kept[name][one.name][key] == pytest.approx(value, rel=1e-5, nan_ok=True), (name, one.name, key)


SENDER = "congestion_window/ppo"
HELD = [one for one in KEPT if SENDER.encode() in gzip.decompress(league.committed(one).read_bytes())]


@pytest.mark.parametrize("suite", HELD, ids=lambda suite: suite.name)
def test_kept_results_of_the_sender_are_of_the_one_that_ships(suite):
    edition = suite.load()
    kept = league.read(league.committed(suite), suite, edition)[SENDER]
    light = sorted(Random(1).sample(edition.cells, 40), key=lambda one: len(one.scenario.flows) * one.scenario.duration_s)[:6]
    values = running.run(suite, light, contending.contender(SENDER, suite)).values
    same = [kept[one.name] == pytest.approx(found, rel=1e-4, nan_ok=True) for one, found in zip(light, values, strict=True)]
    assert sum(same) >= 5, "python benchmarks/field.py " + suite.name  # networks round otherwise on another processor


def test_signs_and_documents():
    table = signs_table(
        [Sign("a", "b", False, "1 < 2", "because"), Sign("c", "d", None, "-"), Sign("e", "f", True, "x", "unused")]
    )
    assert [row[-2:] for row in table.rows] == [["because", "no"], ["", "not known"], ["", "yes"]]
    page = document.page("<t>", [document.Heading("a & b"), table, document.Lines(["`x<y`"], listed=True)])
    assert "<title>&lt;t&gt;</title>" in page and "<code>x&lt;y</code>" in page and page.count('class="flag"') == 1
    assert "| a | b | 1 < 2 | because | no |" in document.markdown([Table("t", table.header, table.rows)], None)
    assert set(overview.TABLES) == {"field suites", "field signs", "field leagues", "field firsts"}


def test_places_are_of_whoever_took_part(monkeypatch):
    rankings = [(SUITES["pantheon"], ["cubic", "bbr", "vegas"]), (SUITES["sage"], ["bbr", "cubic"])]
    monkeypatch.setattr(overview, "ranked", lambda task: rankings if task == "congestion_window" else [])
    table = overview.places("congestion_window")
    assert table.header == ["", "contender", "ahead of", "pantheon (3)", "sage (2)"]
    assert table.rows == [["1", "bbr", "0.75", "2", "1"], ["2", "cubic", "0.50", "1", "2"], ["3", "vegas", "0.00", "3", "-"]]
    assert overview.places("queue_threshold") is None


def test_suites_that_rank_nobody_have_no_places():
    ranked = overview.ranked("congestion_window")
    assert ranked and all(len(names) > 1 and suite.task == "congestion_window" for suite, names in ranked)
    assert overview.ranked("host_buffers") == []
