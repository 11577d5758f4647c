"""Judging of switch controllers: figures by hand, rows that are kept and gone on with, and what is refused."""

import numpy as np
import pytest

from netbuf_gym.errors import ConfigError, ReferenceDataError
from netbuf_gym.tasks.queue_threshold.families import FAMILIES as TRAINED
from studies.common import kept
from studies.switch import judging
from studies.switch import judging_tables as tables
from studies.switch.judging_tables import FAIR, NAIVE, Measured

QUICK = [
    "judging",
    "worlds=2",
    "duration_s=4",
    "families=random,incast_12",
    "drops=tail",
    "controllers=brief_pulse",
    "threads=1",
]


def made(short, long, goodput):
    return Measured(*(np.array(one, float) for one in (short, long, goodput)))


def test_figures_by_hand():
    """Families weigh the same whatever their worlds; a world without a value is left out; bounds are judged one by one."""
    found = {
        ("tail", "random", NAIVE): made([4, 4], [10, np.nan], [8, 8]),
        ("tail", "random", FAIR): made([2, 2], [10, 10], [8, 8]),
        ("tail", "random", "mine"): made([1, 4], [12, 10], [8, 8]),
        ("tail", "incast_12", NAIVE): made([9, np.nan], [10, 10], [8, 8]),
        ("tail", "incast_12", FAIR): made([3, 3], [10, 10], [8, 8]),
        ("tail", "incast_12", "mine"): made([12, np.nan], [10, 10], [4, 16]),
    }
    both = ["random", "incast_12"]
    assert tables.compute_ratio(found, "tail", both, "mine", FAIR, "slowdown_p99_p0").mean == pytest.approx(2.0)
    assert tables.compute_ratio(found, "tail", ["random"], "mine", NAIVE, "slowdown_p99_p1") == pytest.approx((1.2, 1.2, 1.2))
    low, high = tables.compute_ratio(found, "tail", ["random"], "mine", FAIR, "slowdown_p99_p0")[1:]
    assert (low, high) == pytest.approx((0.5, 2.0))  # both worlds the one, or the other
    assert np.isnan(tables.compute_ratio(found, "tail", [], "mine", FAIR, "goodput_mbps").mean)
    rows = {line.split("|")[2].strip(): line for line in tables.format_tables(found).split("\n\n")[0].splitlines()}
    assert rows["mine"].rstrip(" |").endswith("p99, incast") and rows[FAIR].rstrip(" |").endswith("nothing")
    halved = found | {("tail", "incast_12", "mine"): made([3, 3], [20, 20], [7.9, 7.9])}
    assert "long flows, goodput" in tables.format_tables(halved).split("\n\n")[0]


def test_judged_families_are_23_of_other_parameters_and_equal_at_both_drop_places():
    assert len(tables.FAMILIES) == 23 and len(tables.INCAST) == 2
    shapes = {(one.rate_mbps, one.rtt_ms, one.hosts, one.load) for one in TRAINED.values()}
    assert not shapes & {(one.rate_mbps, one.rtt_ms, one.hosts, one.load) for one in tables.FAMILIES.values()}
    for family in tables.FAMILIES:
        tail, head = (judging.draw_judged_world(family, drop, 60.0, np.random.default_rng(1)) for drop in ("tail", "head"))
        assert (tail.switches[0].drop, head.switches[0].drop) == ("tail", "head")
        assert (tail.links, tail.traffic, tail.duration_s) == (head.links, head.traffic, head.duration_s)


def test_worlds_are_of_judging_seeds(monkeypatch):
    asked = []

    def note(player, task, scenario, seeds, **how):
        asked.append(seeds)
        return [dict.fromkeys(tables.METRICS, 1.0)] * len(seeds)

    monkeypatch.setattr(judging, "evaluate", note)
    for family in tables.FAMILIES:
        judging.measure(None, "tail", family, range(3), 60.0)
    assert (
        min(map(min, asked)) == judging.FIRST_SEED == 7_000_000 and len({seed for seeds in asked for seed in seeds}) == 3 * 23
    )


@pytest.mark.slow
def test_rows_are_kept_and_playing_goes_on(tmp_path, capsys, monkeypatch):
    assert judging.main([*QUICK, f"output={tmp_path / 'whole'}"]) == 0
    assert "| tail | brief_pulse" in capsys.readouterr().out
    rows = kept.read_rows(tmp_path / "whole", "switch", "judging")
    found = tables.parse_rows(rows)
    assert list(found) == [("tail", family, who) for who in (NAIVE, FAIR, "brief_pulse") for family in ("random", "incast_12")]
    assert judging.explain_staleness(rows) == ""
    measure, played = judging.measure, []

    def stop_after_three(*arguments):
        played.append(arguments[1:3])
        if len(played) == 4:
            raise KeyboardInterrupt
        return measure(*arguments)

    monkeypatch.setattr(judging, "measure", stop_after_three)
    with pytest.raises(KeyboardInterrupt):
        judging.main([*QUICK, f"output={tmp_path / 'parts'}"])
    assert judging.main([*QUICK, f"output={tmp_path / 'parts'}"]) == 0 and len(played) == 4 + 3
    ours, theirs = (kept.build_path(tmp_path / one, "switch", "judging").read_bytes() for one in ("whole", "parts"))
    assert ours == theirs
    other = {key: made(one.slowdown_p99_p0 + 1, one.slowdown_p99_p1, one.goodput_mbps) for key, one in found.items()}
    kept.write_rows(tmp_path / "other", "switch", "judging", rows.header, tables.format_rows(other))
    monkeypatch.undo()
    assert "slowdown_p99_p0" in judging.explain_staleness(kept.read_rows(tmp_path / "other", "switch", "judging"))
    fewer = {**rows.header, "worlds": 3}
    kept.write_rows(tmp_path / "other", "switch", "judging", fewer, tables.format_rows(found))
    with pytest.raises(ReferenceDataError, match="another number of worlds than 3"):
        tables.parse_rows(kept.read_rows(tmp_path / "other", "switch", "judging"))


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("families=nowhere", "families = 'nowhere'"),
        ("drops=middle", "drops = 'middle'"),
        ("controllers=nobody", "controller = 'nobody'"),
        ("worlds=1", "worlds = 1"),
        ("world=3", "world"),
    ],
)
def test_bad_arguments_are_refused(argument, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        judging.main(["judging", argument, f"output={tmp_path}"])
