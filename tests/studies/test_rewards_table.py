"""The table of rewards: what stands in it, and what is refused. Trainings themselves are tested with the zoo."""

import csv
from pathlib import Path

import pytest

from netbuf_gym.errors import ConfigError
from netbuf_gym.tasks.queue_threshold import BriefPulse
from studies.rlbm import rewards


@pytest.mark.slow
def test_agents_stand_beside_the_rule(tmp_path, monkeypatch, capsys):
    asked = []

    def trained(reward, seed, steps, runs):
        asked.append((reward, seed, steps))
        return BriefPulse() if reward == "switch_excess" else BriefPulse(head_ms=200, tail_ms=200)

    monkeypatch.setattr(rewards, "_trained", trained)
    output = tmp_path / "t.csv"
    arguments = ["rewards=switch_excess,switch_tail", "seeds=2", "steps=7", "worlds=8", f"output={output}"]
    assert rewards.main(arguments) == 0
    comment, *lines = output.read_text().splitlines()
    found = list(csv.DictReader(lines))
    assert comment.endswith("rewards rewards=switch_excess,switch_tail seeds=2 steps=7 worlds=8")
    assert [(row["drop"], row["reward"]) for row in found] == [
        (drop, reward) for drop in ("tail", "head") for reward in ("none, the rule", "switch_excess", "switch_tail")
    ]
    assert [float(row["over_rule"]) == 1 for row in found] == [True, True, False] * 2
    assert asked == [(f"switch_{name}", seed, 7) for name in ("excess", "tail") for seed in (0, 1)]
    assert len(capsys.readouterr().out.splitlines()) == 8


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["reward=x"], "argument 'reward=x' is unknown; valid: rewards="),
        (["rewards=log"], "rewards = 'log' is unknown"),
        (["seeds=0"], "seeds = 0 is out of range; valid: 1"),
        (["worlds=many"], "worlds = 'many' is not"),
        (["output=/nonexistent/t.csv"], "output = '/nonexistent/t.csv': its folder cannot be written"),
    ],
)
def test_bad_arguments_are_refused(arguments, said):
    with pytest.raises(ConfigError, match=said):
        rewards.main(arguments)


def test_the_page_says_what_is_kept():
    comment, *lines = rewards.TABLE.read_text().splitlines()
    page = (Path(__file__).parents[2] / "docs" / "switch.md").read_text()
    assert f"`{comment.partition(': ')[2]}`" in " ".join(page.split())
    found = list(csv.DictReader(lines))
    assert {row["reward"] for row in found} == {rewards.RULE, *rewards.REWARDS}
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    numbers = [{key: value if key in ("drop", "reward") else float(value) for key, value in row.items()} for row in found]
    assert all(rewards._line(row) in shown for row in numbers)
