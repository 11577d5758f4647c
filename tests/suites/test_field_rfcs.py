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
    cubic = {"m": {"harm": 0.5, "starved": 0.0}, "c": {"sends": 6.0}}
    bully = {"m": {"harm": 0.9, "starved": 1.0}, "c": {"sends": 900.0}}
    told = rfc9743.judge(made({"bully": bully, "cubic": cubic}, about))
    assert told.ranking == ["cubic", "bully"]
    assert [row[1] for row in told.tables[0].rows] == ["0", "3"]
    flagged = [row for row in told.tables[1].rows if row[-1] == "FLAG"]
    assert [row[3:5] for row in flagged] == [["900.0", "6.0"], ["0.400", "0.000"], ["1", "0"]]


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
    (breaker,) = of_section(found, "7.2")
    assert breaker.value == pytest.approx(10), "what a sender loses that is told of no loss says nothing of it"


def test_marks_are_to_be_answered():
    about = {
        "alone": {"family": "ecn", "cubic": False},
        "beside": {"family": "ecn", "cubic": True},
        "late": {"family": "reorder"},
    }
    shared = {"utilisation": 0.9, "queue_ms": 10.0}
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
