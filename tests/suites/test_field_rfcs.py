"""RFC 9743's, RFC 7928's and BBR's suites: worlds as their sources have them, and criteria on rows made by hand."""

import numpy as np
import pytest
from hand_made_field import cell, made

from netbuf_gym.scenarios import Policer, Sized
from netbuf_gym.suites import SUITES, running
from netbuf_gym.suites.field import bbr3, rfc7928, rfc9743, rfc9743_worlds
from netbuf_gym.suites.field.rfc9743_criteria import CRITERIA, REFERENCE, Flag, less
from netbuf_gym.zoo import contending


def played(suite, *names, controller="cubic"):
    """What some worlds have come to, by their names."""
    cells = [cell(suite, name) for name in names]
    own = SUITES[suite]
    return dict(zip(names, running.run(own, cells, contending.contender(controller, own)).values, strict=True))


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
    over_ten, over_one = (one for one in rfc9743.found(results, "breaks") if one.criterion.sections == "7.2")
    assert (over_ten.value, over_ten.cubic, over_ten.flagged) == (pytest.approx(60), pytest.approx(10), True)
    assert over_one.value == pytest.approx(70) and over_one.flagged is None
    assert not any(one.flagged for one in rfc9743.found(results, REFERENCE))


def test_worlds_of_the_grid_without_a_figure_are_bad_ones():
    about = {q: {"family": "grid"} for q in "abc"}
    fine, silent = {"utilisation": 0.9, "drops": 0.01}, {"utilisation": np.nan, "drops": np.nan}
    results = made({"mute": {"a": fine, "b": fine, "c": silent}, "cubic": dict.fromkeys(about, fine)}, about)
    assert rfc9743.found(results, "mute")[0].value == 1 and rfc9743.found(results, "mute")[0].flagged


def test_loads_of_short_flows_are_what_they_say():
    for load in (0.1, 0.3, 0.5):
        for seed in range(20):
            flows = rfc9743_worlds.short_flows("cubic", load, seed)
            carried = sum(flow.app.size_bytes for flow in flows) * 8e-6 / (20 * 109)
            assert carried == pytest.approx(load, rel=1e-3)
            assert all(1 <= flow.start_s <= 110 for flow in flows)
    assert rfc9743_worlds.short_flows("cubic", 0.3, 1) != rfc9743_worlds.short_flows("cubic", 0.3, 2)


def test_paths_without_a_rate_of_their_own_have_that_of_their_family():
    for kind in ("4g", "5g", "wifi"):
        means = [cell("rfc9743", f"wireless-path{kind}-{seed}").scenario.links[0].trace.mean_mbps(60) for seed in (1, 2, 3)]
        assert all(10 <= mean <= 40 for mean in means), (kind, means)


def test_the_queue_of_the_slow_phase_is_seen_though_few_packets_cross_it():
    found = played("rfc9743", "path-q1-reverseFalse-1")["path-q1-reverseFalse-1"]
    assert found["phase_queue_ms"] > 2 * found["queue_ms"]


def test_warm_up_is_of_ten_seconds_but_in_worlds_of_a_few(monkeypatch):
    spans = []
    real = rfc9743_worlds._dropped
    monkeypatch.setattr(rfc9743_worlds, "_dropped", lambda record, own, span: spans.append(span) or real(record, own, span))
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
        less(0.8): "under 0.8 times CUBIC's",
        Flag(0.5, 3, " s", "under"): "under 0.5 times CUBIC's and under 3 s",
    }.items():
        assert str(flag) == says
    assert Flag(2, 20)(21, 10) and not Flag(2, 20)(20, 9) and not Flag(2, 20)(21, 11)
    assert less(0.8)(7.9, 10) and not less(0.8)(8, 10)
    assert Flag(1)(1, 0) and not Flag(1)(-0.1, 0) and not Flag(1)(0, 0)


def test_counts_in_criteria_are_those_of_their_worlds():
    cells = SUITES["rfc9743"].load().cells
    for family, section in (("grid", "6.1"), ("mixed", "5.2")):
        number = sum(one.family == family for one in cells)
        assert any(f"worlds of {number} " in one.says for one in CRITERIA if section in one.sections.split(", "))


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
    found = rfc9743.found(made({"counts": counts, "cubic": cubic}, about), "counts")
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
    flagged = [one.criterion.says.split(": ")[1] for one in rfc9743.found(results, "deaf") if one.flagged]
    assert flagged == [
        "queue, 95th percentile (ms)",
        "packets marked (%)",
        "Jain's index",
        "use of the link (%)",
        "arrivals that were there before (%)",
    ]
    assert not any(one.flagged for one in rfc9743.found(results, REFERENCE))


def test_late_packets_are_late_by_places():
    late = rfc9743_worlds._late(0.01, 10, 20, 20, 7)  # 0.6 ms a packet
    slots = late.delay_at_ms((np.arange(rfc9743_worlds.SLOTS) + 0.5) * 0.6e-3)
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


def test_published_orders_are_of_the_published_figures():
    about = {aqm: {"aqm": aqm, "number": "5.1.1"} for aqm in rfc7928.MANAGED}
    as_there = {aqm: {"queue_ms": ms, "goodput": mbps} for aqm, (ms, mbps) in rfc7928.PUBLISHED.items()}
    signs = rfc7928.signs(made({"cubic": {aqm: as_there[aqm] for aqm in about}}, about))
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
    (sign,) = bbr3.signs(made({"bbr3": {name: {"passed": float(name != "loss-a")} for name in about}}, about))
    assert sign.holds is False and sign.shown == "2 of 3; not loss-a" and sign.reason == f"loss: {bbr3.REASONS['loss']}"
    (sign,) = bbr3.signs(made({"bbr3": {name: {"passed": float(name != "policer-loss-a")} for name in about}}, about))
    assert sign.reason == ""
