"""Results that are committed: of today's worlds and models, and what pages say of them."""

from pathlib import Path

import pytest

from netbuf_gym import stats
from netbuf_gym.suites import scoring
from netbuf_gym.zoo import constants, gate, leaderboard, leaderboard_page, library, scores

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "v1"
COMMITTED = sorted(path.parent.name for path in RESULTS.glob("*/constants.json"))


@pytest.mark.slow
@pytest.mark.parametrize("name", library.names())
def test_every_agent_that_ships_has_a_result_that_the_gate_holds_it_to(name):
    own = scores.ranked_by(name.partition("/")[0])  # a task without a suite has no gate
    edition = own.load()
    assert scores.is_current(scores.file_of(RESULTS, own.task, name), name, edition), f"leaderboard fill task={own.task}"
    assert {cell.family for cell in gate.sample(edition)} == set(edition.families)
    assert "leaderboard check\n" in (RESULTS.parents[2] / "Makefile").read_text().partition("\ngate:")[2]


@pytest.mark.slow
def test_the_best_of_each_kind_stand_in_short():
    standing = leaderboard.standings("host_buffers", RESULTS)
    best = leaderboard_page.firsts(standing)
    assert [*best] == [scoring.AGENT, scoring.HEURISTIC, scoring.CONSTANT, scoring.OTHER]
    for kind, one in best.items():
        assert one.middle.mean == max(other.middle.mean for other in standing if other.role == kind)
    row = leaderboard_page.in_short({"host_buffers": standing}).splitlines()[-1]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[0] == "`netbuf/HostBuffers-v0`" and cells[1] == f"**dqn {best[scoring.AGENT].middle.mean:.2f}**"
    agent = best[scoring.AGENT]
    assert cells[-1] == leaderboard.signed(min(agent.over_rules, agent.over_constant, key=lambda one: one.mean))
    axes = leaderboard_page.picture({"host_buffers": standing, "queue_threshold": standing}).axes
    shown = [label.get_text() for label in axes[0].get_yticklabels()]
    assert {"dqn", "default", "best constant", best[scoring.OTHER].name} <= set(shown) and len(axes) == 2
    assert "random" not in shown


@pytest.mark.slow
def test_the_first_page_says_what_the_leaderboard_does():
    standings = {task: leaderboard.standings(task, RESULTS) for task in COMMITTED}
    text = (RESULTS.parents[2] / "README.md").read_text()
    assert leaderboard_page.in_short(standings) in text, "netbuf-gym leaderboard page"
    zoo = RESULTS.parents[2] / "zoo" / "README.md"
    assert leaderboard_page.with_claims(zoo, standings) == zoo.read_text(), "netbuf-gym leaderboard page"
    for task, standing in standings.items():
        assert f"On [suite v1](../docs/leaderboard.md): {' '.join(leaderboard_page.claims(standing))}" in zoo.read_text(), task


@pytest.mark.slow
@pytest.mark.parametrize("task", COMMITTED)
def test_committed_results_are_of_todays_worlds_and_models(task):
    own = scores.ranked_by(task)
    edition = own.load()
    for word in scores.words_of(task, constants.constant_of(RESULTS, task)):
        assert scores.is_current(scores.file_of(RESULTS, task, word), word, edition), word
    standing = leaderboard.standings(task, RESULTS)
    for one in standing:
        assert isinstance(one.middle, stats.Interval) and len(one.scores) == len(edition.families)
    assert {one.role for one in standing} >= {scoring.CHANCE, scoring.HEURISTIC, scoring.CONSTANT, scoring.AGENT}
    text = (RESULTS.parents[2] / "docs" / "leaderboard.md").read_text()
    for part in (leaderboard.table(task, standing), *leaderboard_page.on_the_field(task)):
        assert part in text, "netbuf-gym leaderboard page"
