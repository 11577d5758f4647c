"""`netbuf-gym live run`: what was measured is kept, however it ends."""

import json
import warnings

import pytest

from netbuf_gym.cli import live, program
from netbuf_gym.errors import LateDecisionsWarning
from netbuf_gym.evaluation import rollout


class Shown:
    def __init__(self, time_s):
        self.time_s = time_s

    def show(self):
        return {"time_s": self.time_s, "throughput_mbps": 5.0}

    def report(self):
        return [{"utility": 1.0}]


@pytest.mark.parametrize("intervals", [0, 3])
def test_what_was_measured_before_an_interruption_is_written(monkeypatch, tmp_path, capsys, intervals):
    played = []

    def play(controller, worlds, each, *, watch, **_):
        played.append(controller.name)
        for step in range(3 if len(played) == 1 else intervals):
            watch[0](Shown(5.0 * (step + 1)))
        if len(played) == 2:
            raise KeyboardInterrupt
        each(Shown(15.0))

    monkeypatch.setattr(rollout, "draw_worlds", lambda *_, **__: [None])
    monkeypatch.setattr(rollout, "play", play)
    drawn = []
    monkeypatch.setattr(live.plots, "plot_time_series", lambda series, *_: drawn.append(set(series)))
    file, plot = tmp_path / "run.json", tmp_path / "run.png"
    words = ["controller=autotuning,max,default", "task=host_buffers", "--json", str(file), "--plot", str(plot)]
    assert program.main(["live", "run", *words]) == 130
    kept, said = json.loads(file.read_text()), capsys.readouterr()
    assert played == ["autotuning", "max"] and kept["interrupted"] == "max" and set(kept["reports"]) == {"autotuning"}
    assert len(kept["series"]["autotuning"]["time_s"]) == 3
    assert kept["series"].get("max", {}).get("time_s", []) == [5.0, 10.0, 15.0][:intervals]
    assert drawn == [set(kept["series"])]
    assert f"max has no report, {intervals} intervals of it were measured, written to {file} and {plot}" in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("control", "message"), [("linuxreno", "is not in the linux stack"), ("bbr3", "valid on plant 'linux'")]
)
def test_all_controllers_are_looked_at_before_the_first_is_run(monkeypatch, capsys, control, message):
    monkeypatch.setattr(rollout, "play", lambda *_, **__: pytest.fail("one was run"))
    words = [f"controller=cubic,{control}", "task=congestion_window", "scenario=ppcc/4"]
    assert program.main(["live", "run", *words]) == 2
    said = capsys.readouterr()
    assert message in said.err and said.err.count("\n") == 1 and said.out == ""


def test_the_table_has_what_any_of_the_reports_has():
    table = live.format_reports({"cubic": {"utility": 1.0}, "random": {"utility": 2.0, "decisions": 20}})
    assert [line.split() for line in table.splitlines()[2:]] == [["utility", "1.000", "2.000"], ["decisions", "-", "20.00"]]


def test_a_warning_of_late_decisions_is_a_line(monkeypatch, capsys):
    def play(controller, worlds, each, **_):
        warnings.warn("agents decide late", LateDecisionsWarning, stacklevel=1)
        each(Shown(1.0))

    monkeypatch.setattr(rollout, "play", play)
    assert program.main(["live", "run", "controller=random", "task=congestion_window", "scenario=ppcc/4"]) == 0
    assert capsys.readouterr().err == "netbuf-gym: warning: agents decide late\n"
