"""Scores between chance and the best rule, and what is said of who is ahead."""

import math
from dataclasses import replace

import numpy as np
import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation.suites import Cell, Edition, get_suite
from netbuf_gym.leaderboard import standings
from netbuf_gym.leaderboard.scoring import (
    AGENT,
    CHANCE,
    CONSTANT,
    HEURISTIC,
    OTHER,
    Result,
    best_heuristic,
    compute_standings,
    get_role,
    profile,
)
from netbuf_gym.scenarios import get
from netbuf_gym.utils import statistics
from studies.pages import leaderboard_page

SUITE, CONSTANT_OF = get_suite("v1/queue_threshold"), "limits:20:20"
WORLD = get("rlbm/default")
EDITION = Edition(1, "abc", tuple(Cell(f"{f}-{k}", f, WORLD, k) for f, n in (("a", 30), ("b", 10)) for k in range(n)))
LEVEL = {cell.name: 10.0 * cell.seed for cell in EDITION.cells}
"""Worlds differ far more than controllers."""


def result(name, gain, **about):
    """What a controller has above chance: a number for all worlds, or one by family."""
    of = gain if isinstance(gain, dict) else {"a": gain, "b": gain}
    return Result(name, {cell.name: LEVEL[cell.name] + of[cell.family] for cell in EDITION.cells}, about)


FIELD = [
    result("random", 0.0),
    result(CONSTANT_OF, {"a": 1.0, "b": -3.0}),
    result("limits", {"a": 1.0, "b": 2.0}),
    result("pulse", {"a": 4.0, "b": 1.0}),
    result("fq_codel", 9.0),
]


def ranked(*more, field=FIELD):
    return {one.name: one for one in compute_standings(SUITE, EDITION, [*field, *more], CONSTANT_OF)}


def test_chance_is_nothing_and_the_best_rule_of_a_family_one():
    found = ranked()
    assert found["random"].middle == (0, 0, 0) and set(found["pulse"].scores["a"].ravel()) == {1.0}
    assert set(found["limits"].scores["b"].ravel()) == {1.0} and set(found["pulse"].scores["b"].ravel()) == {0.5}
    assert best_heuristic(list(found.values())) == "pulse", "0.75 of families that weigh alike, limits has 0.625"
    assert next(iter(found)) == "fq_codel" and [one.role for one in found.values()].count(HEURISTIC) == 2


def test_differences_are_paired_by_world_and_families_weigh_alike():
    one = ranked(result("mine", {"a": 6.0, "b": 1.0}))["mine"]
    assert one.over_heuristic == pytest.approx((1.0, 1.0, 1.0)), "2 in one of two families, though that has 30 of 40 worlds"
    assert one.over_constant.mean == pytest.approx(4.5) and not one.behind_constant
    assert one.improvement.mean == pytest.approx(0.75), "ahead in all worlds of a, level in those of b"


def test_an_agent_is_set_against_every_rule():
    rules = result("limits", {"a": 1.0, "b": 5.5}), result("pulse", {"a": 4.0, "b": 2.0})
    found = ranked(result("mine", {"a": 6.0, "b": 1.0}), field=[*FIELD[:2], *rules])
    assert best_heuristic(list(found.values())) == "pulse", "ranked by shares of what the best of a family has"
    assert found["mine"].over_heuristic.mean == pytest.approx(0.5) and found["mine"].over_rules.mean == pytest.approx(0.25)
    assert found["pulse"].over_rules is None


def test_a_price_is_over_that_of_the_controller_it_names_and_families_weigh_alike():
    """Of everybody whose results say it in all worlds; worlds in which that controller has none do not count."""

    def paying(name, shares, gain=1.0):
        price = {cell.name: shares[cell.family] * (0.0 if cell.seed == 3 else 2.0 + cell.seed) for cell in EDITION.cells}
        return replace(result(name, gain), price=price)

    lacking = replace(result("droptail", 1.0), price={"a-0": 1.0})
    halves = paying("mine", {"a": 0.5, "b": 1.0})
    found = ranked(paying("naive", {"a": 1.0, "b": 1.0}), halves, lacking)
    assert found["naive"].price == 1.0 and found["mine"].price == pytest.approx(0.75)
    assert found["droptail"].price is None and found["limits"].price is None
    assert ranked(halves)["mine"].price is None, "naive is not there"
    group = [replace(paying("one", {"a": s, "b": s}), about={"group": "team", "seed": k}) for k, s in enumerate((0.5, 0.7))]
    assert ranked(paying("naive", {"a": 1.0, "b": 1.0}), *group)["team"].price == pytest.approx(0.6), "mean of training seeds"


def test_tables_have_the_number_of_flows_beside_scores_that_are_percentiles():
    few = {"a-0": 3.0, "a-1": 1200.0, "b-0": 250.0}
    found = list(ranked(field=[*FIELD[:-1], replace(FIELD[-1], flows=few)]).values())
    own = found[0]
    assert own.flows == {"a": (3, 1200), "b": (250, 250)} and not found[1].flows
    head, _, row, other, *_ = standings.format_table("queue_threshold", found).splitlines()
    assert head.split(" | ")[3:5] == ["score", "flows"] and row.split(" | ")[4] == "3 to 1,200" and other.split(" | ")[4] == ""
    assert "| score | flows | over best rule |" in standings.format_short_table(found)
    by_family = standings.format_families(found).splitlines()
    assert by_family[0].startswith("| family | worlds | flows | pulse") and "| a | 30 | 3 to 1,200 |" in by_family[2]
    assert standings.describe_flows(found).startswith("Scores are of percentiles over 3 to 1,200 flows in a world; below 200")
    many = list(ranked(field=[*FIELD[:-1], replace(FIELD[-1], flows={"a-0": 200.0})]).values())
    assert standings.describe_flows(many) == "Scores are of percentiles over 200 flows in a world."
    plain = list(ranked().values())
    assert "flows" not in standings.format_table("queue_threshold", plain) + standings.format_families(plain)
    assert standings.describe_flows(plain) == ""


def test_claims_say_who_is_first():
    def claim(*more):
        return leaderboard_page.list_claims(list(ranked(*more).values()))[0]

    assert claim() == "fq_codel (other control) is first."
    assert claim(result("mine", 20.0, seed=1)) == "mine (agent) is first."
    assert claim(result("mine", 5.0, seed=1)) == "fq_codel (other control) is first; the best agent, mine, is number 2."
    assert claim(replace(result("mine", 20.0, seed=1), checked=False)) == "fq_codel (other control) is first."


def test_an_agent_that_does_not_surely_beat_the_constant_is_marked():
    assert ranked(result("mine", {"a": 1.0, "b": -3.0}))["mine"].behind_constant
    rng = np.random.default_rng(0)
    noisy = Result("mine", {name: LEVEL[name] + 3 * rng.normal() for name in LEVEL})
    found = ranked(noisy)["mine"]
    assert found.over_constant.low < found.over_constant.mean < found.over_constant.high
    assert found.behind_constant == (found.over_constant.low <= 0)
    assert not any(one.behind_constant for one in ranked().values()), "rules and constants are not agents"


def test_training_seeds_are_one_row_and_their_worlds_stay_together():
    two = [result("x", 2.0, group="mine", seed=1), result("y", 6.0, group="mine", seed=2)]
    found = ranked(*two)["mine"]
    assert found.role == AGENT and len(found.results) == 2 and found.scores["a"].shape == (30, 2)
    assert found.scores["a"].mean() == pytest.approx(1.0) and found.average_entry("seed") == 1.5


def test_a_world_without_a_score_counts_against_whoever_has_none():
    def silent(one, names):
        return Result(one.name, {**one.worlds, **dict.fromkeys(names, math.nan)})

    mine = silent(result("mine", 4.0), ["a-0"])
    found = ranked(mine)
    assert found["mine"].scores["a"][0, 0] == 0.0 < found["mine"].scores["a"][1, 0], "as whoever did worst there: chance"
    field = [silent(one, ["a-0"]) if one.name == "random" else one for one in FIELD]
    assert ranked(mine, field=field)["mine"].scores["a"].shape == (29, 1), "of chance it leaves the world out"


def test_what_cannot_be_set_in_relation_is_refused():
    with pytest.raises(ConfigError, match=r"lack random, .*results make v1/queue_threshold"):
        ranked(field=FIELD[1:])
    with pytest.raises(ConfigError, match="lack limits:20:20"):
        ranked(field=[FIELD[0], *FIELD[2:]])
    with pytest.raises(ConfigError, match="lack a heuristic"):
        ranked(field=FIELD[:2])
    with pytest.raises(ConfigError, match="family 'b': nothing beats chance"):
        ranked(field=[*FIELD[:2], result("pulse", {"a": 1.0, "b": 0.0})])
    with pytest.raises(ConfigError, match="result of mine lacks 39 worlds, 'a-1'"):
        ranked(Result("mine", {"a-0": 1.0}))


def test_kinds_are_told_by_the_tasks_record():
    kinds = {"random": CHANCE, "pulse": HEURISTIC, "limits:5:10": CONSTANT, "fq_codel": OTHER, "queue_threshold/ppo": AGENT}
    assert {name: get_role("queue_threshold", name) for name in kinds} == kinds


def test_profiles_fall_from_one_to_nothing():
    share = profile(ranked()["pulse"], np.array([-1.0, 0.4, 0.6, 1.0]))
    assert share.tolist() == [1.0, 1.0, 0.5, 0.0]


def test_grouped_intervals_are_those_of_equal_groups_where_groups_are_equal():
    scores = np.random.default_rng(1).normal(size=(20, 6))
    ours, usual = statistics.grouped_interval(list(scores.T)), statistics.bootstrap_interval(scores)
    assert ours.mean == pytest.approx(usual.mean) and ours.low == pytest.approx(usual.low, abs=0.05)
    assert statistics.grouped_interval([np.ones(3), np.zeros(300)], middle=False).mean == pytest.approx(0.5)
    together = statistics.grouped_interval([np.array([[0.0, 1.0]] * 9)], middle=False)
    assert together == (0.5, 0.5, 0.5), "what stays together has no chance of its own"
    with pytest.raises(ConfigError, match="groups is empty"):
        statistics.grouped_interval([])
