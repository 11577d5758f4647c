"""The study of a sender among strangers: its worlds, measures, targets, and trials."""

import math

import numpy as np
import pytest

from netbuf_gym.errors import NetbufError
from studies.sender import sender_claims, strangers, strangers_claims, strangers_quick
from studies.sender.sender_experiment import SENDER
from studies.sender.sender_sections import format_tables
from studies.sender.sender_worlds import StudyWorld
from tests.studies.hand_made_runs import make_runs

SEED = 1_000_000


def first_world(row, at=0, seed=SEED, duration_s=10.0):
    return strangers.make_world(strangers.ROWS[row].list_cells()[at], seed, duration_s)


def test_every_cell_has_a_world_of_its_own_that_a_seed_decides():
    assert len(set(strangers.CELLS)) == len(strangers.CELLS) == sum(len(row.places) for row in strangers.ROWS.values())
    for row in strangers.ROWS:
        one, same, other = (first_world(row, -1, seed) for seed in (SEED, SEED, SEED + 1))
        assert one == same and one.agents <= len(one.scenario.flows) and one.scenario.duration_s <= 10
        if row not in (
            "jitter",
            "reordering",
            "jitter8",
            "correlated",
            "policer",
            "plain",
        ):  # where the simulator's seed decides
            assert one != other


def test_worlds_have_what_their_row_says():
    kinds = {row: first_world(row, 2).scenario.links[0] for row in strangers.JITTERED_ROWS}
    jitter = {row: link.jitter for row, link in kinds.items() if link.jitter}
    assert {row: one.scale_ms for row, one in jitter.items()} == {
        "jitter": 20,
        "reordering": 20,
        "jitter8": 8,
        "correlated": 20,
    }
    assert [row for row, one in jitter.items() if one.reorder] == ["reordering"]
    per_s = kinds["correlated"].rate_mbps * 1e6 / 12000
    assert jitter["correlated"].correlation ** (0.1 * per_s) == pytest.approx(math.exp(-1))  # after a tenth of a second
    delays = kinds["walk"].delay_ms.delay_ms
    assert np.ptp(delays) <= 20 and len(delays) == 500 and np.abs(np.diff(delays)).max() < 20

    short_ms, long_ms = (first_world("round_trips").scenario.propagation_rtt_ms(flow) for flow in (0, 1))
    assert long_ms == pytest.approx(5 * short_ms)
    policed = first_world("policer").scenario
    assert policed.capacity_mbps == 4 and policed.links[0].rate_mbps == 20
    assert first_world("crowd").agents == 16 and len(first_world("cubic3").scenario.flows) == 4
    for row, share in (("way_back", 1), ("thin_back", 1 / 3)):
        there, back = first_world(row).scenario.links
        assert back.rate_mbps == pytest.approx(share * there.rate_mbps)
    faded = first_world("fades").scenario.links[0].trace
    assert faded.peak_mbps <= 200 and faded.rate_mbps.min() < 20


def test_shares_and_what_rivals_keep_are_of_the_bottleneck():
    beside = first_world("cubic3", 4)
    rate = beside.scenario.capacity_mbps
    found = strangers.measure_deliveries(beside, [0.4 * rate, 0.3 * rate, 0.2 * rate, 0.05 * rate], 100.0)
    assert found["share"] == pytest.approx(0.4 / 0.95)
    assert found["rivals_keep"] == pytest.approx(0.55 / 3 * 4) and found["rivals_least"] == pytest.approx(0.2)
    assert found["standing_ms"] == pytest.approx(100 - beside.scenario.base_rtt_ms(0))
    assert "jain" not in found and "ratio" not in found
    two = strangers.measure_deliveries(first_world("round_trips"), [1.0, 4.0], 100.0)
    assert two["ratio"] == 0.25 and two["jain"] == pytest.approx(25 / (2 * 17)) and "share" not in two
    back = strangers.measure_deliveries(first_world("way_back"), [3.0, 8.0], 50.0)  # what goes back is no rival
    assert set(back) == {"standing_ms"}


def row(scheme, cell, seed=0, **values):
    return {"study": "strangers", "cell": cell, "scheme": scheme, "step": 0.0, "seed": float(seed)} | values


def judge(rows, text):
    runs = make_runs(SENDER, rows)
    claim = next(one for one in strangers_claims.CLAIMS if one.text == text)
    return sender_claims.format_row_claim(claim, runs.where(study="strangers"), "agent")


def test_targets_are_judged_beside_others_in_the_same_worlds():
    cells = strangers.ROWS["jitter"].list_cells()[:3]
    rows = [row("bbr", cell, seed, use=0.9) for cell in cells for seed in range(2)]
    rows += [row("agent", cell, seed, use=0.81 if at else 0.45) for at, cell in enumerate(cells) for seed in range(2)]
    assert judge(rows, "jitter of 20 ms, in order: 0.85 of BBR's share of the link").startswith("0.77 [0.50, 0.90]: not shown")
    assert judge(rows, "jitter of 20 ms, in order: at least 0.6 of BBR's in every world") == "0.50 [0.50, 0.50]: does not hold"
    assert judge(rows[:6], "jitter of 20 ms, in order: 0.85 of BBR's share of the link") == "-"
    assert judge(rows[6:], "jitter of 20 ms, in order: 0.85 of BBR's share of the link") == "-"

    cells = strangers.ROWS["round_trips"].list_cells()[:2]
    rows = [row("agent", cell, ratio=ratio) for cell, ratio in zip(cells, (0.25, 4.0), strict=True)]
    assert judge(rows, "round trips 1 to 5: goodput of the short over the long 0.5 to 2").startswith("1.00 [0.25, 4.00]")

    cells = strangers.ROWS["shared"].list_cells()[:4]
    rows = [row("cubic", cell, rivals_least=least) for cell, least in zip(cells, (0.1, 0.3, 0.3, 0.3), strict=True)]
    rows += [row("agent", cell, rivals_least=least) for cell, least in zip(cells, (0.1, 0.2, 0.25, 0.9), strict=True)]
    assert judge(rows, "shared worlds: starves nobody who is not starved beside CUBIC") == "1.00 [1.00, 1.00]: does not hold"

    cells = strangers.ROWS["policer"].list_cells()[:2]
    rows = [row("cubic", cell, loss=loss, use=0.5) for cell, loss in zip(cells, (0.0, 0.04), strict=True)]
    rows += [row("agent", cell, loss=0.03, use=0.6) for cell in cells]
    assert judge(rows, "policer: at most twice CUBIC's loss").startswith("1.50 ")
    tables = format_tables(make_runs(SENDER, rows), "strangers")
    assert "| a policer of a fifth of the link's rate | share lost (most) | 0.030 (0.030) | 0.020 (0.040) |" in tables[1]


def test_targets_speak_of_rows_and_measures_that_there_are():
    for claim in strangers_claims.CLAIMS:
        assert claim.row in strangers.ROWS and claim.measure in strangers.SHORT, claim
        assert claim.low > -math.inf or claim.high < math.inf
    for one in strangers.ROWS.values():
        assert set(one.measures) <= set(strangers.SHORT)


def test_the_study_runs_and_is_no_part_of_the_usual_ones(tmp_path):
    words = ["studies=[strangers]", "schemes=[cubic,bbr]", "seeds=1", "duration_s=3"]
    settings = SENDER.parse([*words, f"output={tmp_path}"]).settings
    work = SENDER.work(settings)
    assert len(work.parts) == 2 * len(strangers.CELLS)
    assert "strangers" not in SENDER.parse([]).settings.studies
    study = work._studies["strangers"]
    for name, measure in (("cubic3", "rivals_keep"), ("crowd", "jain"), ("round_trips", "ratio"), ("short", "standing_ms")):
        (found,) = study.play(work.controllers["cubic"], settings, strangers.ROWS[name].list_cells()[0], [SEED])
        assert found[measure] > 0, name
        again = strangers_quick.play(work.controllers["cubic"], [strangers.ROWS[name].list_cells()[0]], SEED, 3.0)
        assert next(iter(again.values()))[measure] == pytest.approx(found[measure], rel=0.05)


def test_trials_print_a_line_a_row(capsys):
    assert strangers_quick.main(["newreno", "--rows", "plain,newreno", "--duration", "3"]) == 0
    said = capsys.readouterr().out
    assert "newreno: " in said and "rivals keep" in said and "utility" in said and "cubic3" not in said
    with pytest.raises(SystemExit):
        strangers_quick.main(["newreno", "--rows", "plane"])
    assert "--rows has 'plane'; valid: jitter, " in capsys.readouterr().err
    assert strangers_quick.main(["cubic", "bbr", "--rows", "plain", "--duration", "1"]) == 0
    first, *_, last = [line for line in capsys.readouterr().out.splitlines() if "worlds in" in line]
    assert first.startswith("cubic: ") and last.startswith("bbr: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nobody"], "controller = 'nobody' is no controller"),
        (["vegas", "--times", "0"], "--times = 0 is out of range; valid: 1..100"),
        (["vegas", "--seed", "-1"], "--seed = -1 is out of range; valid: 0.."),
        (["vegas", "--duration", "nan"], "--duration = nan is out of range; valid: 1 to 30"),
    ],
)
def test_trials_refuse_bad_words_before_anything_is_played(words, said, monkeypatch):
    monkeypatch.setattr(strangers_quick, "play", None)
    with pytest.raises(NetbufError, match=said):
        strangers_quick.main(words)


def test_cells_of_trials_are_spread_and_grow_with_the_number():
    few, many = (strangers_quick.choose_cells(strangers.ROWS["jitter"], number) for number in (4, 9))
    assert set(few) < set(many) < set(strangers.ROWS["jitter"].list_cells()) and len(many) == 9
    assert isinstance(first_world("plain"), StudyWorld)
