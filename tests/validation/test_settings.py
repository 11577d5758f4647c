"""Settings of hosts against a kernel: recorded runs, and the command that makes them."""

from __future__ import annotations

import json
import math
import threading
import time
from pathlib import Path

import pytest

from netbuf_gym.cli.program import main
from netbuf_gym.errors import ConfigError
from netbuf_gym.validation import host_settings
from netbuf_gym.validation.host_settings import Cell, CellComparison, Measurement, SettingsReport

RECORDED = Path(__file__).parents[1] / "data" / "settings_linux.json"


def test_the_simulator_does_what_the_kernel_did():
    cells = host_settings.read_recorded(json.loads(RECORDED.read_text()))
    assert len(cells) == len(host_settings.select_cells()) == 40
    compared = [CellComparison(cell, live, host_settings.measure("sim", cell)) for cell, live in cells]
    assert [(one.cell.id, one.error) for one in compared if not one.within] == []


def test_a_report_is_written_and_read():
    cell = Cell("cubic", 1 << 20, 40.0)
    good = CellComparison(cell, Measurement(40.0, 50.0), Measurement(43.0, 55.0))
    bad = CellComparison(cell, Measurement(40.0, 50.0), Measurement(45.0, 50.0))
    late = CellComparison(cell, Measurement(40.0, 50.0), Measurement(40.0, 61.0))
    assert good.within and not bad.within and not late.within
    report = SettingsReport((good, bad), "linux", "6.18", "2026-01-01")
    assert not report.within and "1 of 2 settings" in report.text() and "OUT" in report.markdown()
    assert host_settings.read_recorded(json.loads(json.dumps(report.to_dict()))) == [(cell, good.live), (cell, bad.live)]
    with pytest.raises(ConfigError, match="schema"):
        host_settings.read_recorded({})


def test_settings_are_chosen_by_name():
    assert [cell.id for cell in host_settings.select_cells("cubic/1 mib/100")] == ["settings/cubic/1 MiB/100"]
    assert len(host_settings.select_cells("settings/bbr/*")) == 20
    with pytest.raises(ConfigError, match="matches no setting"):
        host_settings.select_cells("vegas")


def test_a_comparison_runs_both_plants(monkeypatch):
    asked = []

    def measure(plant, cell, look):
        asked.append((plant, cell.id))
        return Measurement(10.0, 20.0)

    monkeypatch.setattr(host_settings, "measure", measure)
    report = host_settings.compare("linux", "settings/cubic/*/40", watch=lambda line: None)
    assert report.within and len(report.cells) == 4
    assert sorted(asked) == sorted((plant, one.cell.id) for one in report.cells for plant in ("linux", "sim"))
    assert [plant for plant, _ in asked] == ["linux"] * 4 + ["sim"] * 4  # simulations would disturb live worlds


@pytest.mark.parametrize("stopped_by", [KeyboardInterrupt, ConfigError])
def test_what_ends_a_comparison_ends_its_worlds(monkeypatch, stopped_by):
    begun, running = [], threading.Event()

    def measure(plant, cell, look):
        begun.append(cell.id)
        if len(begun) == 1:
            assert running.wait(10)
            raise stopped_by
        running.set()
        for _ in range(1000):
            look()
            time.sleep(0.01)
        raise AssertionError("a world ran on")

    monkeypatch.setattr(host_settings, "measure", measure)
    with pytest.raises(stopped_by):
        host_settings.compare("linux", "settings/cubic/*")
    assert 2 <= len(begun) < 5  # of twenty


def test_a_run_looks_whether_it_shall_end():
    def look():
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        host_settings.measure("sim", host_settings.select_cells("cubic/1 mib/100")[0], look)


def test_nothing_delivered_is_out_of_tolerance():
    for simulated in (0.0, 40.0):
        silent = CellComparison(Cell("cubic", 1 << 20, 40.0), Measurement(0.0, math.nan), Measurement(simulated, 50.0))
        assert not silent.within
        assert "OUT" in SettingsReport((silent,), "linux", "6.18", "2026-01-01").text()


def test_the_command_takes_a_folder_or_a_plant(capsys, tmp_path):
    assert main(["validate"]) == 2
    assert "neither DIR nor --against" in capsys.readouterr().err
    assert main(["validate", str(tmp_path), "--against", "linux"]) == 2
    assert main(["validate", "--against", "linux", "--seeds", "40"]) == 2
    assert "--seeds 40 beside --against" in capsys.readouterr().err


def test_a_comparison_is_written_as_markdown(monkeypatch, tmp_path):
    page = tmp_path / "page.md"
    monkeypatch.setattr(host_settings, "measure", lambda plant, cell, look: Measurement(10.0, 20.0))
    assert main(["validate", "--against", "linux", "--only", "settings/bbr/*/40", "--markdown", str(page)]) == 0
    assert page.read_text().count("| bbr ") == 4
