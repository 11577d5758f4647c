"""`netbuf-gym live run`: what was measured is kept, however it ends."""

import json

import pytest

from netbuf_gym.cli import live, program
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

    monkeypatch.setattr(rollout, "draw", lambda *_, **__: [None])
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
