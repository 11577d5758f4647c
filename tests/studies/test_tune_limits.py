"""The search of constant limits: what it measures, takes up again and calls best."""

import csv
import math

import numpy as np
import pytest

from netbuf_gym import rollout
from netbuf_gym.errors import ConfigError
from netbuf_gym.scenarios.switches import DROPS
from studies.rlbm import tune_limits

NAIVE = (math.inf, math.inf)


def row(family, limits, slowdown, goodput=1.0, drop="tail"):
    given = {"drop": drop, "family": family, "limit_0_ms": limits[0], "limit_1_ms": limits[1]}
    return {**given, "slowdown_p99_p0": slowdown, "goodput_over_naive": goodput}


def test_the_best_limits_of_families_and_of_all_together():
    rows = [
        *(row("a", NAIVE, 1.0), row("a", (5, 5), 2.0, 0.98), row("a", (20, 50), 3.0, 0.995), row("a", (9, 9), 1.5)),
        *(row("b", NAIVE, 1.0), row("b", (5, 5), 8.0, 0.999), row("b", (20, 50), 4.0), row("b", (5, 5), 1.0, drop="head")),
    ]
    assert tune_limits.best(rows, "tail", "a") is rows[3] and tune_limits.best(rows, "tail", "b") is rows[6]
    assert tune_limits.best(rows[:3], "tail", "a") is rows[1]
    assert tune_limits.best(rows[:3], "tail", "a", 0.99) is rows[2]  # what delivers enough, though slower
    together = tune_limits.best(rows, "tail")
    assert (together["limit_0_ms"], together["limit_1_ms"]) == (20, 50)  # (9, 9) was not tried everywhere
    assert together["slowdown_p99_p0"] == pytest.approx(math.sqrt(12))
    assert together["goodput_over_naive"] == pytest.approx(math.sqrt(0.995))
    assert tune_limits.best(rows, "head") is rows[7]
    for nothing in (lambda: tune_limits.best(rows[:2], "tail", "a", 0.99), lambda: tune_limits.best(rows[:1], "tail")):
        with pytest.raises(ConfigError, match="no limits in"):
            nothing()


def test_families_are_worlds_with_drops_at_either_place():
    for family, world in tune_limits.FAMILIES.items():
        for drop in DROPS:
            drawn = rollout.draw("queue_threshold", {**world, "drop": drop}, range(6))
            assert {one.scenario.switches[0].drop for one in drawn} == {drop}
            if family in ("high_load", "light_load"):
                low, high = world["load"]
                assert all(low <= one.scenario.traffic.offered_mbps / 10 <= high for one in drawn)
            if family == "incast":
                assert all(len(one.scenario.traffic.arrivals) == 2 for one in drawn)


def test_a_search_is_written_as_it_goes_and_taken_up_again(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(tune_limits, "FAMILIES", {"a": {"name": "rlbm/cubic-100-0.9", "duration_s": 8.0}})
    table, measured = tmp_path / "table.csv", []
    play = tune_limits.measure
    monkeypatch.setattr(tune_limits, "measure", lambda key, worlds: measured.append(key) or play(key, worlds))
    arguments = ["worlds=3", "jobs=1", "drops=tail", f"output={table}"]
    assert tune_limits.main([*arguments, "limits=20"]) == 0
    assert measured == [("tail", "a", *NAIVE), ("tail", "a", 20.0, 20.0)]
    assert tune_limits.main([*arguments, "limits=20,1000"]) == 0
    assert len(measured) == 5 and len(set(measured)) == 5
    said = capsys.readouterr().out
    assert [line.split()[:2] for line in said.splitlines()[2:4]] == [["tail", "a"], ["tail", "all"]]

    comment, *lines = table.read_text().splitlines()
    assert comment.startswith("# netbuf-gym") and comment.endswith("tune_limits worlds=3; seeds 0 to 2")
    rows = {(one["limit_0_ms"], one["limit_1_ms"]): one for one in csv.DictReader(lines)}
    assert list(rows) == [("20", "20"), ("20", "1000"), ("1000", "20"), ("1000", "1000"), ("inf", "inf")]
    reports = rollout.evaluate("limits:20", "queue_threshold", tune_limits.FAMILIES["a"], range(3))
    mean = np.exp(np.mean(np.log([one["slowdown_p99_p0"] for one in reports])))
    goodput = np.mean([one["goodput_mbps"] for one in reports])
    own, naive = rows["20", "20"], rows["inf", "inf"]
    assert float(own["slowdown_p99_p0"]) == pytest.approx(mean, rel=1e-5) and own["worlds"] == "3"
    assert float(own["slowdown_p99_p0_low"]) < mean < float(own["slowdown_p99_p0_high"])
    assert float(own["goodput_over_naive"]) == pytest.approx(goodput / float(naive["goodput_mbps"]), rel=1e-4)
    assert naive["goodput_over_naive"] == "1"

    with pytest.raises(ConfigError, match="begins with '# netbuf-gym"):
        tune_limits.main(["worlds=4", f"output={table}"])


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("worlds=1", "worlds = 1 is out of range"),
        ("seeds=3", "argument 'seeds=3' is unknown"),
        ("families=randon", "families = 'randon' is unknown"),
        ("drops=both", "drops = 'both' is unknown"),
        ("limits=a", "limits = 'a'; valid: milliseconds"),
        ("limits=10,0", "limits = 0.0 is out of range; valid: 1 to 1000"),
    ],
)
def test_what_the_search_refuses(argument, said, tmp_path):
    with pytest.raises(ConfigError, match=said):
        tune_limits.main([argument, f"output={tmp_path / 'table.csv'}"])
    assert not (tmp_path / "table.csv").exists()


@pytest.mark.parametrize(
    ("column", "value", "valid"), [(5, "", "a number"), (1, "randon", "one of random, high_load"), (8, "2.5", "a whole number")]
)
def test_a_damaged_cell_is_named(column, value, valid, tmp_path):
    comment, names, *lines = tune_limits.TABLE.read_text().splitlines()
    path, cells = tmp_path / "t.csv", lines[6].split(",")
    cells[column] = value
    path.write_text("\n".join([comment, names, *lines[:6], ",".join(cells), *lines[7:]]))
    with pytest.raises(ConfigError, match=rf"t.csv', line 9: {names.split(',')[column]} = '{value}'; valid: {valid}"):
        tune_limits.read(path, comment.removeprefix("# "))


def test_the_committed_table_is_whole_and_can_be_taken_up():
    found = tune_limits.read(tune_limits.TABLE, tune_limits.TABLE.read_text().splitlines()[0].removeprefix("# "))
    pairs = 1 + len(tune_limits.GRID_MS) ** 2
    assert len(found) == len(tune_limits.FAMILIES) * len(DROPS) * pairs
    assert all(0 < row["worlds"] <= 200 and row["slowdown_p99_p0"] >= 1 for row in found.values())
    for drop in DROPS:
        best = tune_limits.best(tune_limits.rows_of(found), drop, "random", tune_limits.LEAST_GOODPUT)
        assert best["slowdown_p99_p0"] < found[(drop, "random", *tune_limits.NAIVE)]["slowdown_p99_p0"]
