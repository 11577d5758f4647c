"""Evaluations over a list of a user's own worlds."""

import json

import pytest

import netbuf_gym as nb
from netbuf_gym.errors import ConfigError
from netbuf_gym.evaluation import rollout
from netbuf_gym.evaluation.worlds import read_worlds

TASK = "congestion_window"
OWN = nb.scenarios.dumbbell(rate_mbps=5, rtt_ms=20, buffer_packets=50, senders=["cubic"], duration_s=2, name="own")
WORLDS = [{"name": "ppcc/1", "duration_s": 2}, {"name": "ppcc/random", "duration_s": 2}, OWN]


def test_a_list_is_drawn_world_by_world_under_every_seed():
    drawn = rollout.draw_worlds(TASK, WORLDS, [3, 4])
    assert [world.episode for world in drawn] == [3, 4] * 3
    for k, one in enumerate(WORLDS):
        assert drawn[2 * k : 2 * k + 2] == rollout.draw_worlds(TASK, one, [3, 4])
    with pytest.raises(ConfigError, match="holds no world"):
        rollout.draw_worlds(TASK, [], [1])


def test_reports_of_a_list_are_those_of_its_worlds():
    apart = [report for one in WORLDS for report in rollout.evaluate("cubic", TASK, one, seeds=[3, 4])]
    assert rollout.evaluate("cubic", TASK, WORLDS, seeds=[3, 4]) == apart
    assert nb.baselines.evaluate(["cubic"], task=TASK, scenario=WORLDS, seeds=[3, 4])["cubic"] == apart
    assert len(rollout.evaluate("random", TASK, WORLDS, seeds=[3])) == 3


def test_worlds_are_read_from_yaml_and_json(tmp_path):
    path = tmp_path / "worlds"
    path.write_text("- ppcc/2\n- {name: ppcc/1, duration_s: 2, loss: 1e-3}\n")
    assert read_worlds(path) == ["ppcc/2", {"name": "ppcc/1", "duration_s": 2, "loss": 0.001}]
    path.write_text(json.dumps([OWN.to_dict()]))
    (world,) = rollout.draw_worlds(TASK, read_worlds(path), [1])
    assert world.scenario == rollout.draw_worlds(TASK, OWN, [1])[0].scenario


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds None; valid: a YAML or JSON list"),
        ("[]", "holds \\[\\]"),
        ("name: ppcc/1\n", "holds {'name': 'ppcc/1'}"),
        ("- 3\n", r"worlds\[0\] = 3"),
        ("[1,", "cannot be parsed"),
        ("- &a {name: ppcc/1}\n- *a\n", "cannot be parsed: it has an alias"),
        ("[" * 100_000, "cannot be parsed"),
        (b"\xff\xfe\x00", "is not text"),
    ],
)
def test_what_is_no_list_of_worlds_is_named(tmp_path, text, message):
    path = tmp_path / "worlds"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=message):
        read_worlds(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_worlds(tmp_path / "none")


def test_the_command_takes_a_file_of_worlds(tmp_path, capsys):
    pytest.importorskip("torch")
    from netbuf_gym.cli import program

    path, out = tmp_path / "worlds.json", tmp_path / "out"
    path.write_text(json.dumps([*WORLDS[:2], OWN.to_dict()]))
    words = ["evaluate", "model=null", "env=congestion_window", "baselines=[cubic,bbr]", f"worlds={path}", "plots=false"]
    assert program.main([*words, "seeds=2", f"run_dir={out}"]) == 0
    table, result = (out / "table.md").read_text(), json.loads((out / "result.json").read_text())
    assert table.startswith("3 worlds of worlds.json, 2 seeds each\n") and "| 3. own | 2 |" in table
    assert result["worlds"] == json.loads(path.read_text()) and result["scenario"] is None
    seeds = [1_000_000, 1_000_001]
    reports = rollout.evaluate("cubic", TASK, WORLDS, seeds=seeds)
    assert result["controllers"]["cubic"]["episodes"]["utility"] == pytest.approx([one["utility"] for one in reports])
    assert result["controllers"]["cubic"]["seeds"] == seeds * 3
    capsys.readouterr()
    assert program.main([*words, "scenario=ppcc/1"]) == 2
    assert "worlds = " in capsys.readouterr().err
