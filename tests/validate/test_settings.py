"""Settings of hosts against a kernel: recorded runs, and the command that makes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netbuf_gym.cli import main
from netbuf_gym.errors import ConfigError
from netbuf_gym.validate import settings
from netbuf_gym.validate.settings import Cell, Compared, Measured, SettingsReport

RECORDED = Path(__file__).parents[1] / "data" / "settings_linux.json"


def test_the_simulator_does_what_the_kernel_did():
    cells = settings.recorded(json.loads(RECORDED.read_text()))
    assert len(cells) == len(settings.cells()) == 40
    compared = [Compared(cell, live, settings.measure("sim", cell)) for cell, live in cells]
    assert [(one.cell.id, one.error) for one in compared if not one.within] == []


def test_a_report_is_written_and_read():
    cell = Cell("cubic", 1 << 20, 40.0)
    good = Compared(cell, Measured(40.0, 50.0), Measured(43.0, 55.0))
    bad = Compared(cell, Measured(40.0, 50.0), Measured(45.0, 50.0))
    late = Compared(cell, Measured(40.0, 50.0), Measured(40.0, 61.0))
    assert good.within and not bad.within and not late.within
    report = SettingsReport((good, bad), "linux", "6.18", "2026-01-01")
    assert not report.within and "1 of 2 settings" in report.text() and "OUT" in report.markdown()
    assert settings.recorded(json.loads(json.dumps(report.to_dict()))) == [(cell, good.live), (cell, bad.live)]
    with pytest.raises(ConfigError, match="schema"):
        settings.recorded({})


def test_settings_are_chosen_by_name():
    assert [cell.id for cell in settings.cells("cubic/1 mib/100")] == ["settings/cubic/1 MiB/100"]
    assert len(settings.cells("settings/bbr/*")) == 20
    with pytest.raises(ConfigError, match="matches no setting"):
        settings.cells("vegas")


def test_a_comparison_runs_both_plants(monkeypatch):
    asked = []

    def measure(plant, cell):
        asked.append((plant, cell.id))
        return Measured(10.0, 20.0)

    monkeypatch.setattr(settings, "measure", measure)
    report = settings.compare("linux", "settings/cubic/*/40", watch=lambda line: None)
    assert report.within and len(report.cells) == 4
    assert sorted(asked) == sorted((plant, one.cell.id) for one in report.cells for plant in ("linux", "sim"))


def test_the_command_takes_a_folder_or_a_plant(capsys, tmp_path):
    assert main(["validate"]) == 2
    assert "neither DIR nor --against" in capsys.readouterr().err
    assert main(["validate", str(tmp_path), "--against", "linux"]) == 2
