"""How long suites of the field take (benchmarks/suites.py): its parts in short."""

import importlib
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="not in a checkout")


@pytest.fixture
def benchmark(monkeypatch):
    """The script, with one short suite in the place of the long ones."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    module = importlib.import_module("suites")
    short = {"LEAGUES": ("bbr3/conformance",), "CLASSIC": ("cubic",), "LONGEST": ("bbr3/conformance",)}
    for name, value in short.items():
        monkeypatch.setattr(module, name, value)
    return module


@pytest.mark.slow
def test_every_figure_is_measured(benchmark, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["suites.py", "--runs", "1", "--json", str(tmp_path / "suites.json")])
    benchmark.main()
    rows = json.loads((tmp_path / "suites.json").read_text())["rows"]
    assert len(rows) == 3 and all(0 < row["median"] < row["target"] for row in rows)
    assert [row["unit"] for row in rows] == ["s of processors", "s", "s"]


@pytest.mark.slow
def test_a_suite_that_fails_ends_it(benchmark):
    with pytest.raises(SystemExit, match="nobody"):
        benchmark.fresh("bbr3/conformance", "nobody")
