"""RFC 9743's, RFC 7928's and BBR's suites: worlds as their sources have them, and criteria on rows made by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from netbuf_gym.evaluation.suites import SUITES
from netbuf_gym.evaluation.suites.field import bbr3, rfc7928, rfc9743
from netbuf_gym.evaluation.suites.field.rfc9743 import CRITERIA, REFERENCE, Flag, flag_less
from netbuf_gym.evaluation.suites.field.suite import Results
from netbuf_gym.evaluation.suites.recorder import FLOW, LINK, STATE, Record
from netbuf_gym.leaderboard import controllers, play
from netbuf_gym.scenarios import PIE, RED, Bulk, CoDel, FqCoDel, Policer, Sized
from tests.evaluation.hand_made_field import cell, made


def played(suite, *names, controller="cubic"):
    """What some worlds have come to, by their names."""
    cells = [cell(suite, name) for name in names]
    own = SUITES[suite]
    return dict(zip(names, play.run(own, cells, controllers.resolve_controller(controller, own)).values, strict=True))


def recorded(scenario, time_s, flow=(), link=()):
    """A record of cumulative counters of the first flow and of the bottleneck, by name, `(readings,)` each; the rest is 0."""
    flows = np.zeros((len(time_s), len(scenario.flows), len(FLOW) + 1))
    links = np.zeros((len(time_s), len(scenario.links), len(LINK)))
    for key, values in dict(flow).items():
        flows[:, 0, (*FLOW, "arrived_bytes").index(key)] = values
    for key, values in dict(link).items():
        links[:, scenario.bottleneck, LINK.index(key)] = values
    states = np.full((len(time_s), len(scenario.flows), len(STATE)), np.nan)
    return Record(scenario, time_s, flows, links, states, None)


# ---- RFC 9743


def test_rfc_page_has_every_level_of_the_rfc():
    by_level = {level: " ".join(one.sections for one in rfc9743.CRITERIA if one.level == level) for level in ("MUST", "SHOULD")}
    for section in ("5.1.1", "5.1.2", "5.1.3", "5.1.5", "5.2", "5.2.1", "5.2.3", "6.1", "7.9"):
        assert section in by_level["MUST"].replace(",", "").split()
    for section in ("5.1.4", "5.2.2", "6.3", "6.4", "7.1", "7.2", "7.3", "7.6", "7.7", "7.8"):
        assert section in by_level["SHOULD"].replace(",", "").split()


def test_rfc_flags_are_against_cubic():
    about = {"m": {"family": "mixed"}, "c": {"family": "collapse", "lost": "data"}}
    cubic = {"m": {"harm": 0.5, "starved": 0.0, "others_drops": 0.01, "queue_rtt": 1.0}, "c": {"sends": 4.0}}
    bully = {"m": {"harm": 0.9, "starved": 1.0, "others_drops": 0.02, "queue_rtt": 1.3}, "c": {"sends": 9.0}}
    told = rfc9743.judge(made({"bully": bully, "cubic": cubic}, about))
    assert told.ranking == ["cubic", "bully"]
    assert [row[1] for row in told.tables[0].rows] == ["0", "5"]
    flagged = [row for row in told.tables[1].rows if row[-1] == "FLAG"]
    assert [row[3:5] for row in flagged] == [["9.0", "4.0"], ["0.400", "0.000"], ["1", "0"], ["2.00", "1.00"], ["1.30", "1.00"]]


def test_worlds_in_which_cubic_itself_breaks_do_not_hide_who_breaks_in_others():
    about = {"slow": {"family": "collapse"}, "wide": {"family": "shallow"}}
    cubic = {"slow": {"loss_10s": 0.69, "loss_1s": 0.9}, "wide": {"loss_10s": 0.1, "loss_1s": 0.3}}
    breaks = {"slow": {"loss_10s": 0.65, "loss_1s": 0.8}, "wide": {"loss_10s": 0.6, "loss_1s": 0.7}}
    results = made({"breaks": breaks, "cubic": cubic}, about)
    over_ten, over_one = (one for one in rfc9743.evaluate_criteria(results, "breaks") if one.criterion.sections == "7.2")
    assert (over_ten.value, over_ten.cubic, over_ten.flagged) == (pytest.approx(60), pytest.approx(10), True)
    assert over_one.value == pytest.approx(70) and over_one.flagged is None
    assert not any(one.flagged for one in rfc9743.evaluate_criteria(results, REFERENCE))


def test_worlds_of_the_grid_without_a_figure_are_bad_ones():
    about = {q: {"family": "grid"} for q in "abc"}
    fine, silent = {"utilisation": 0.9, "drops": 0.01}, {"utilisation": np.nan, "drops": np.nan}
    results = made({"mute": {"a": fine, "b": fine, "c": silent}, "cubic": dict.fromkeys(about, fine)}, about)
    assert rfc9743.evaluate_criteria(results, "mute")[0].value == 1 and rfc9743.evaluate_criteria(results, "mute")[0].flagged


def test_loads_of_short_flows_are_what_they_say():
    for load in (0.1, 0.3, 0.5):
        for seed in range(20):
            flows = rfc9743.make_short_flows("cubic", load, seed)
            carried = sum(flow.app.size_bytes for flow in flows) * 8e-6 / (20 * 109)
            assert carried == pytest.approx(load, rel=1e-3)
            assert all(1 <= flow.start_s <= 110 for flow in flows)
    assert rfc9743.make_short_flows("cubic", 0.3, 1) != rfc9743.make_short_flows("cubic", 0.3, 2)


@pytest.mark.slow
def test_paths_without_a_rate_of_their_own_have_that_of_their_family():
    for kind in ("4g", "5g", "wifi"):
        means = [cell("rfc9743", f"wireless-path{kind}-{seed}").scenario.links[0].trace.mean_mbps(60) for seed in (1, 2, 3)]
        assert all(10 <= mean <= 40 for mean in means), (kind, means)


@pytest.mark.slow
def test_the_queue_of_the_slow_phase_is_seen_though_few_packets_cross_it():
    found = played("rfc9743", "path-q1-reverseFalse-1")["path-q1-reverseFalse-1"]
    assert found["phase_queue_ms"] > 2 * found["queue_ms"]


def test_warm_up_is_of_ten_seconds_but_in_worlds_of_a_few(monkeypatch):
    spans = []
    real = rfc9743._drop_share
    monkeypatch.setattr(rfc9743, "_drop_share", lambda record, own, span: spans.append(span) or real(record, own, span))
    found = played("rfc9743", "grid-rate4-rtt10-q1-1", "dc-flows2-1")
    assert spans == [(10.0, 60.0), (0.2, 2.0)] and all(one["drops"] < 0.5 for one in found.values())


def test_incasts_come_every_ten_milliseconds_and_differ_by_seed():
    one, two = (
        np.array([flow.start_s for flow in cell("rfc9743", f"dc-incast16-{seed}").scenario.flows]).reshape(64, 16)
        for seed in (1, 2)
    )
    late = one - 0.01 * np.arange(1, 65)[:, None]
    assert ((late >= 0) & (late <= 1.01e-4)).all() and not np.array_equal(one, two)


def test_flags_say_what_they_do():
    for flag, says in {
        Flag(1): "over CUBIC's",
        Flag(2, 20): "over twice CUBIC's and over 20",
        Flag(1.5, 0.5, " %"): "over 1.5 times CUBIC's and over 0.5 %",
        flag_less(0.8): "under 0.8 times CUBIC's",
        Flag(0.5, 3, " s", "under"): "under 0.5 times CUBIC's and under 3 s",
    }.items():
        assert str(flag) == says
    assert Flag(2, 20)(21, 10) and not Flag(2, 20)(20, 9) and not Flag(2, 20)(21, 11)
    assert flag_less(0.8)(7.9, 10) and not flag_less(0.8)(8, 10)
    assert Flag(1)(1, 0) and not Flag(1)(-0.1, 0) and not Flag(1)(0, 0)


def test_percentiles_of_short_flows_say_of_how_many():
    cells = SUITES["rfc9743"].load().cells
    results = Results(cells, {})
    for one in CRITERIA:
        says = one.describe(results)
        assert ("slowdown" in one.says) == bool(one.short_flows) == (says != one.says)
        if one.short_flows:
            chosen = results.select_cells(**one.short_flows)
            numbers = [sum(flow.app != Bulk() for flow in cell.scenario.flows) for cell in chosen]
            few = f"{min(numbers)} to {max(numbers)}" if min(numbers) < max(numbers) else f"{numbers[0]:,}"
            assert says == f"{one.says}, of {few} flows" and (few in rfc9743.SUITE.metric("slowdown_p99").says)
            assert few == "1,024" or any(f"there are {few}." in rule for rule in rfc9743.SUITE.rules)


def of_section(found, section):
    return [one for one in found if one.criterion.sections == section]


def test_lying_receivers_are_judged_beside_honest_ones():
    places = [(receiver, q) for receiver in ("honest", "split", "spoofed", "optimistic") for q in (1, 4)]
    about = {f"{r}{q}": {"family": "misbehave", "receiver": r, "q": q} for r, q in places}

    def row(receiver, sent):
        lost = {"optimistic": 0.96}.get(receiver, 0.1)
        return {"sent_mbps": sent, "starved": float(sent > 40), "others_share": 1 / sent, "loss_10s": lost}

    cubic = {f"{r}{q}": row(r, 400.0 if r == "optimistic" else 10.0) for r, q in places}
    counts = {f"{r}{q}": row(r, {"split": 41.0, "optimistic": 400.0}.get(r, 10.0)) for r, q in places}
    found = rfc9743.evaluate_criteria(made({"counts": counts, "cubic": cubic}, about), "counts")
    told = of_section(found, "7.6")
    assert [one.value for one in told] == pytest.approx([25.5, 2.55, 2, 40, 0.0025])
    assert [one.cubic for one in told] == pytest.approx([10, 1, 0, 40, 0.0025])
    assert [one.flagged for one in told] == [True, True, True, None, None], "who anticipates ACKs flags nobody"
    breaker, _ = of_section(found, "7.2")
    assert breaker.value == pytest.approx(10), "what a sender loses that is told of no loss says nothing of it"


def test_marks_are_to_be_answered():
    about = {
        "alone": {"family": "ecn", "cubic": False},
        "beside": {"family": "ecn", "cubic": True},
        "late": {"family": "reorder"},
    }
    shared = {"utilisation": 0.9, "queue_ms": 10.0, "queue_p50_ms": 8.0}
    cubic = {
        "alone": {**shared, "marked": 0.001},
        "beside": {**shared, "marked": 0.002, "jain": 1.0},
        "late": {"utilisation": 0.9, "duplicates": 0.01},
    }
    deaf = {
        "alone": {**shared, "queue_ms": 40.0, "marked": 0.3},
        "beside": {**shared, "marked": 0.3, "jain": 0.5},
        "late": {"utilisation": 0.5, "duplicates": 0.2},
    }
    results = made({"deaf": deaf, "cubic": cubic}, about)
    flagged = [one.criterion.says.split(": ")[1] for one in rfc9743.evaluate_criteria(results, "deaf") if one.flagged]
    assert flagged == [
        "queue, 95th percentile (ms)",
        "packets marked (%)",
        "Jain's index",
        "use of the link (%)",
        "arrivals that were there before (%)",
    ]
    assert not any(one.flagged for one in rfc9743.evaluate_criteria(results, REFERENCE))


def test_late_packets_are_late_by_places():
    late = rfc9743._make_late_schedule(0.01, 10, 20, 20, 7)  # 0.6 ms a packet
    slots = late.delay_at_ms((np.arange(rfc9743.SLOTS) + 0.5) * 0.6e-3)
    assert late.reorder and (slots > 20).sum() == 100 and late.period_s == pytest.approx(6)
    assert set(np.round(slots, 6)) == {20, 26.3}
    names = [f"reorder-share0.1-places{places}-1" for places in (1, 100)]
    near, far = played("rfc9743", *names).values()
    assert near["utilisation"] > 0.95 and near["duplicates"] < 1e-3, "RACK waits for what is a little late"
    assert far["duplicates"] > 0.01, "and sends again what is very late"


def test_marking_worlds_mark_and_lying_receivers_lie():
    marked, dropped = (f"{family}-aqmcodel-flows8-cubicFalse-1" for family in ("ecn", "aqm"))
    assert all(flow.ecn for flow in cell("rfc9743", marked).scenario.flows)
    found = played("rfc9743", marked, dropped)
    assert found[marked]["marked"] > 0 == found[marked]["drops"] and found[dropped]["drops"] > 0
    (deaf,) = played("rfc9743", dropped, controller="dctcp").values()
    assert deaf["marked"] == 0 < deaf["drops"], "where no queue marks, who always speaks ECN is dropped too"
    names = [f"misbehave-receiver{receiver}-q1-1" for receiver in ("honest", "split", "optimistic")]
    honest, split, optimistic = played("rfc9743", *names).values()
    assert split["sent_mbps"] == honest["sent_mbps"], "bytes are counted, not ACKs"
    assert optimistic["sent_mbps"] > 10 * honest["sent_mbps"] and optimistic["starved"] == 1 > honest["starved"]
    of = [cell("rfc9743", name).scenario.flows for name in names]
    assert [flows[0].misbehaviour for flows in of] == [None, "split", "optimistic"]
    assert [flows[1].misbehaviour for flows in of] == [None] * 3
    assert len({flows[0].start_s for flows in of}) == 1, "nothing else is different"


# ---- RFC 7928


def test_paths_are_those_of_ns_3():
    def of(name):
        return cell("rfc7928", name).scenario

    for name, rtts in {
        "codel-5.1.1": [100],
        "red-6-5ms": [100, 5],
        "pie-6-100ms": [100, 100],
        "droptail-6-500ms": [100, 500],
        "red-8.2.2": [94, 94],
        "red-8.2.3": [100] * 5,
    }.items():
        assert [of(name).propagation_rtt_ms(i) for i in range(len(rtts))] == pytest.approx(rtts), name
    assert [link.delay_ms for link in of("red-6-5ms").links_of(1)] == pytest.approx([0.25, 2, 0.25])
    red = of("red-5.1.2")
    assert red.mss == 698 and red.links[0].queue_packets == 45
    assert [flow.app for flow in red.flows][1] == Sized(size_bytes=69_800) and red.flows[1].initial_cwnd_packets == 10
    own = [link.name for flow in range(5) for link in of("red-8.2.3").links_of(flow) if link.name != "bottleneck"]
    assert len(set(own)) == len(own) == 10, "each flow has links of its own at both ends"
    assert [link.rate_mbps for link in of("red-8.2.6.1").links_of(0)] == [500, None, 500]
    assert [link.name for link in of("red-5.3.2").links if link.name.endswith("udp 0")] == ["from udp 0", "to udp 0"]


def test_a_flow_that_ends_is_not_in_the_fairness():
    found = played("rfc7928", "droptail-5.1.2")["droptail-5.1.2"]
    assert found["jain"] == 1 and found["goodput"] > 0.99


@pytest.mark.parametrize(("number", "holds_s"), [("8.2.6.1", 20.0), ("8.2.6.2", 0.1)])
def test_full_use_of_a_rate_that_changes_is_one(number, holds_s):
    scenario = cell("rfc7928", f"droptail-{number}").scenario
    time_s = np.arange(3001) * 0.1

    def carried(t):
        """Mbit of 100 and 10 Mbit/s in turn."""
        periods, rest = np.divmod(np.maximum(t, 0), 2 * holds_s)
        return 110 * holds_s * periods + np.where(rest < holds_s, 100 * rest, 90 * holds_s + 10 * rest)

    waits_s = np.random.default_rng(0).uniform(0.01, 0.03, len(time_s))
    link = {"offered_bits": carried(time_s) * 1e6, "packets_in": 10.0 * np.arange(3001), "queue_drops": np.arange(3001)}
    link |= {"sojourn_count": np.arange(3001), "sojourn_sum_s": waits_s.cumsum()}
    handed = carried(time_s - 0.049) * 1e6 / 8 * 698 / 750
    found = rfc7928.measure_world(recorded(scenario, time_s, {"delivered_bytes": handed}, link))
    assert found["goodput"] == pytest.approx(1, abs=1e-3) and found["area"] < 1e-3
    assert found["distance"] == pytest.approx(-found["queue_ms"] / 100, abs=1e-3)
    assert found["drops"] == 0.1, "of what came, dropped or not"


def test_datagrams_count_as_use_and_only_a_flow_that_ends_has_a_completion_time():
    found = played("rfc7928", "pie-5.3.2", "droptail-5.1.2")
    beside, short = found.values()
    assert 0.97 < beside["goodput"] <= 1.001, "0.8 of 1 Mbit/s are datagrams"
    assert np.isnan(beside["fct_s"]) and 0.3 < short["fct_s"] < 10
    shown = next(metric for metric in SUITES["rfc7928"].metrics if metric.key == "fct_s")
    assert SUITES["rfc7928"].metrics.index(shown) < 8, "what a report explains"


def test_a_flow_that_does_not_end_counts_to_the_end_of_its_world():
    record = recorded(cell("rfc7928", "droptail-5.1.2").scenario, np.array([0.0, 300.0]))
    for done, took in ((2.0, 1.5), (np.nan, 299.5)):
        stats = [{"completion_s": np.nan}, {"completion_s": done}]
        record.world = SimpleNamespace(flow_stats=lambda own=stats: own)
        assert rfc7928._completion_s(record) == took


def test_disciplines_are_those_of_ns_3_and_mark_only_where_it_is_said():
    def middle(name):
        return cell("rfc7928", name).scenario.links[0].discipline

    assert middle("red-5.1.1") == RED(min_packets=5, max_packets=15, mean_packet_bytes=750, wait=True, ecn=False)
    assert middle("codel-5.1.1") == CoDel(mtu_bytes=749, ecn=False)
    assert middle("pie-5.1.1") == PIE(burst_quiet_s=1.5, mean_packet_bytes=750, ecn=False)
    for name, ecn in (("flent-fq_codel-3-80mbps-40ms", False), ("flent-fq_codel-3-80mbps-40ms-ecn", True)):
        scenario = cell("rfc7928", name).scenario
        assert {flow.ecn for flow in scenario.flows} == {ecn}
        there, back = scenario.links_of(0), scenario.links[scenario.flows[0].return_path[0]]
        assert [link.rate_mbps for link in there] == [800, 80, 800] and back.rate_mbps == 80
        assert there[1].discipline == back.discipline == FqCoDel(ecn=ecn)
        assert scenario.propagation_rtt_ms() == 40


def test_published_orders_are_of_the_published_figures():
    about = {aqm: {"aqm": aqm, "number": "5.1.1"} for aqm in rfc7928.MANAGED}
    as_there = {aqm: {"queue_ms": ms, "goodput": mbps} for aqm, (ms, mbps) in rfc7928.PUBLISHED.items()}
    signs = rfc7928.check_signs(made({"cubic": {aqm: as_there[aqm] for aqm in about}}, about))
    assert [one.holds for one in signs] == [True, True, None, None]
    assert signs[0].says == "cubic, queue delay: CoDel < PIE < RED < drop-tail"
    assert signs[1].says == "cubic, goodput: RED > drop-tail > PIE > CoDel"
    assert "45 packets are 2.7 times what the path holds" in signs[1].reason and "0.72 to 0.81" in signs[1].reason


# ---- BBR version 3


def test_a_policer_is_used_and_not_overrun():
    names = [f"{family}-10mbps-20ms" for family in ("policer", "policer-loss")]
    link = cell("bbr3/conformance", names[0]).scenario.links[0]
    assert link.rate_mbps == 40 and link.discipline == Policer(rate_mbps=10, burst_bytes=25_000)
    use, lost = played("bbr3/conformance", *names, controller="bbr3").values()
    assert use["passed"] == lost["passed"] == 1 and use["value"] == use["use"] > 0.9 and 0 < lost["value"] < 0.05
    (pushing,) = played("bbr3/conformance", names[1], controller="copa").values()
    assert not pushing["passed"] and pushing["value"] > 0.2, "Copa hears no loss"


def test_reasons_are_of_cases_that_fail():
    about = {name: {"family": name.rpartition("-")[0]} for name in ("loss-a", "policer-loss-a", "drain-a")}
    (sign,) = bbr3.check_signs(made({"bbr3": {name: {"passed": float(name != "loss-a")} for name in about}}, about))
    assert sign.holds is False and sign.shown == "2 of 3; not loss-a" and sign.reason == f"loss: {bbr3.REASONS['loss']}"
    (sign,) = bbr3.check_signs(made({"bbr3": {name: {"passed": float(name != "policer-loss-a")} for name in about}}, about))
    assert sign.reason == ""


def test_every_case_of_the_draft_is_played_or_said_not_to_be():
    played_ones = {case.draft for case in bbr3.CASES.values() if case.draft}
    assert not played_ones & {*bbr3.UNSEEN, bbr3.REORDERED}
    assert len({*played_ones, *bbr3.UNSEEN, bbr3.REORDERED}) == 22
    told = " ".join(one.worlds for one in bbr3.SUITE.not_run)
    assert all(name in told for name in (*bbr3.UNSEEN, bbr3.REORDERED)) and "PROBE_RTT During STARTUP" in told
    assert bbr3.OURS == ["startup-rounds", "startup-loss", "probe-bw", "loss"]
    assert any(", ".join(bbr3.OURS) in rule for rule in bbr3.SUITE.rules)
    assert any("1 to 500 Mbit/s and 10 to 100 ms" in rule for rule in bbr3.SUITE.rules)


@pytest.mark.slow
def test_start_up_that_ends_on_loss_is_told_from_a_plateau():
    names = [f"startup-loss-{path}" for path in ("1mbps-100ms", "10mbps-20ms", "100mbps-40ms", "500mbps-10ms")]
    assert [cell("bbr3/conformance", name).scenario.links[0].queue_packets for name in names] == [4, 8, 167, 208]
    assert all(found["passed"] for found in played("bbr3/conformance", *names, controller="bbr3").values())
    plateau = played("bbr3/conformance", *names, controller="bbr")
    assert not any(found["passed"] for found in plateau.values()), "version 1 hears no loss"


def changed(family, arrived=None, sojourn_ms=0.0):
    """What the case of 1 Mbit/s comes to with so many packets arrived at each time, or waiting so long."""
    one = cell("bbr3/conformance", f"{family}-1mbps-100ms")
    time_s = np.arange(1501) * 0.02
    rates = (0.1, 1.0) if family == "rate-up" else (1.0, 0.1)
    offered = np.where(time_s < 10, rates[0] * time_s, rates[0] * 10 + rates[1] * (time_s - 10)) * 1e6
    link = {"offered_bits": offered, "sojourn_count": np.arange(1501), "sojourn_sum_s": np.arange(1501) * sojourn_ms * 1e-3}
    flow = {} if arrived is None else {"arrived_bytes": arrived(time_s) * one.scenario.mss}
    return one.measure(recorded(one.scenario, time_s, flow, link))


def test_a_queue_of_before_the_change_is_no_use_of_the_new_rate():
    def drains(t):
        """The queue of 33 packets at the new rate, and what comes at the old one; from 15 s on at the new one."""
        return np.interp(t, [0, 10, 10.05, 10.45, 15, 30], [0, 83, 83, 116, 154, 154 + 83 * 15])

    found = changed("rate-up", drains)
    assert 4.5 < found["value"] < 5.1, "the queue is gone after 0.4 s"
    (filling,) = played("bbr3/conformance", "rate-down-1mbps-100ms").values()
    assert not filling["passed"], "what CUBIC had in the queue before it grew says nothing"


def test_a_queue_is_small_from_four_packets_on():
    four_ms = 4 * 1500 * 8 / 0.1e6 * 1e3
    assert changed("rate-down", sojourn_ms=four_ms - 1)["passed"] and not changed("rate-down", sojourn_ms=four_ms + 1)["passed"]
