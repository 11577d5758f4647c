"""The table of the rule's settings at rest: what stands in it, what is refused, and that the agent begins with them."""

import csv
from pathlib import Path

import pytest

from netbuf_gym.errors import NetbufError
from studies.rlbm import resting
from studies.rlbm.tune_limits import FAMILIES

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_settings_stand_beside_the_rules_own(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(resting, "FAMILIES", {name: {**FAMILIES[name], "duration_s": 10.0} for name in resting.SHOWN})
    output = tmp_path / "t.csv"
    assert resting.main(["worlds=4", "threads=1", f"output={output}"]) == 0
    comment, *lines = output.read_text().splitlines()
    assert comment.endswith("python -m studies.rlbm.resting worlds=4")
    found = {(row["drop"], row["settings"]): row for row in csv.DictReader(lines)}
    assert list(found) == [(drop, name) for drop in ("tail", "head") for name in resting.SETTINGS["0.1"]]
    for drop in ("tail", "head"):
        assert [float(found[drop, resting.OWN][one]) for one in ("all", "random", "incast", "goodput")] == [1, 1, 1, 1]
        figures = {name: tuple(found[drop, name].values())[2:] for name in resting.SETTINGS["0.1"]}
        same = {resting.ALL, "queue 0 rests open", "bursts are not remembered"} if drop == "tail" else {resting.ALL}
        assert {name for name in figures if figures[name] == figures[resting.ALL]} == same | (
            {"limited at the tail, too"} if drop == "head" else set()
        )
        own = found[drop, resting.ALL]
        assert float(own["all"]) == pytest.approx((float(own["random"]) * float(own["incast"])) ** 0.5, rel=1e-5)
    assert sum(line.startswith("|") for line in capsys.readouterr().out.splitlines()) == 2 + 2 * len(resting.SETTINGS["0.1"])


@pytest.mark.slow
def test_settings_of_decisions_that_are_close_have_a_table_of_their_own(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(resting, "FAMILIES", {name: {**FAMILIES[name], "duration_s": 5.0} for name in resting.SHOWN})
    monkeypatch.setattr(resting, "HERE", tmp_path)
    assert resting.main(["interval_s=0.01", "worlds=2", "threads=1"]) == 0
    comment, *lines = (tmp_path / "sparing.csv").read_text().splitlines()
    assert comment.endswith("python -m studies.rlbm.resting interval_s=0.01 worlds=2")
    found = {(row["drop"], row["settings"]): tuple(row.values())[2:] for row in csv.DictReader(lines)}
    assert list(found) == [(drop, name) for drop in ("tail", "head") for name in resting.SETTINGS["0.01"]]
    assert found["head", resting.OWN] != found["head", resting.ALL] != found["head", "targets do not grow"]
    assert capsys.readouterr().out.count("| tail") == len(resting.SETTINGS["0.01"])


@pytest.mark.parametrize(("name", "interval_s"), [("queue_threshold", "0.1"), ("queue_threshold_10ms", "0.01")])
def test_agents_begin_with_them(name, interval_s):
    settings = ":".join(f"{key}={value:g}" for key, value in resting.SETTINGS[interval_s][resting.ALL].items())
    assert f'  rule: "brief_pulse:{settings}"\n' in (ROOT / f"conf/experiment/{name}.yaml").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["world=3"], "argument 'world=3' is unknown; valid: interval_s="),
        (["worlds=1"], "worlds = 1 is out of range; valid: 2"),
        (["interval_s=0.2"], "interval_s = .*0.2.*valid: .*0.1.*0.01"),
        (["threads=0"], "threads = 0 is out of range; valid: 1"),
        (["output=/nonexistent/t.csv"], "output = '/nonexistent/t.csv': its folder cannot be written"),
    ],
)
def test_bad_arguments_are_refused(arguments, said):
    with pytest.raises(NetbufError, match=said):
        resting.main(["worlds=2", *arguments])
