"""What live worlds cost (benchmarks/live.py): its parts in short, and the page that its table goes into."""

import importlib
import json
import sys
from pathlib import Path

import machines
import pytest

pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="not in a checkout")


@pytest.fixture
def live(monkeypatch):
    """The script, with runs of fractions of a second."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    module = importlib.import_module("live")
    short = {"DECIDED_S": 0.5, "BEGINNING_S": 0.2, "MADE": 2, "CARRIED_S": 1.5, "LINKS_MBPS": (10.0,), "PROXIED_S": 0.5}
    for name, value in short.items():
        monkeypatch.setattr(module, name, value)
    return module


def written(live, monkeypatch, tmp_path):
    page = tmp_path / "benchmarks.md"
    page.write_text((ROOT / "docs" / "appendix" / "benchmarks.md").read_text())
    words = ["--runs", "1", "--json", str(tmp_path / "live.json"), "--update", str(page)]
    monkeypatch.setattr(sys, "argv", ["live.py", *words])
    live.main()
    return json.loads((tmp_path / "live.json").read_text()), page.read_text()


@pytest.mark.slow
def test_every_figure_is_measured(live, monkeypatch, tmp_path):
    machines.needs_live_worlds()
    data, page = written(live, monkeypatch, tmp_path)
    assert len(data["rows"]) == 1 + 2 + 2 + 1 + len(live.LATE) + 3
    asked = {row["unit"]: row["target"] for row in data["rows"] if row["target"] is not None}
    assert asked == {"ms": 5.0, "% of a core": 2.0, "s": 0.2, "%": 0.1, "packet-hops/s": 10e6, "x real time": 100.0}
    assert all(value >= 0 for row in data["rows"] for value in row["runs"] if row["unit"] != "%")
    for row in data["rows"]:
        assert f"| {row['name']} ({row['unit']}) |" in page
    assert "real-time priority" in page


def test_a_machine_without_live_worlds_has_the_simulators_figures(live, monkeypatch, tmp_path):
    monkeypatch.setattr(live.machine, "look", lambda: live.machine.Machine("no devices"))
    data, page = written(live, monkeypatch, tmp_path)
    assert [row["name"].startswith("simulated") for row in data["rows"]] == [True] * 3
    assert "no live worlds: no devices" in page
