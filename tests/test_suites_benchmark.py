"""How long suites of the field take (benchmarks/suites.py): its parts in short, and the page that its table goes into."""

import importlib
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
    page = tmp_path / "benchmarks.md"
    page.write_text((ROOT / "docs" / "benchmarks.md").read_text())
    monkeypatch.setattr(sys, "argv", ["suites.py", "--runs", "1", "--update", str(page)])
    benchmark.main()
    table = page.read_text().partition("<!-- suites: written")[2].partition("<!-- end of suites -->")[0]
    assert table.count("at most") >= 3 and "a C++ file is saved, until its score" in table


def test_a_suite_that_fails_ends_it(benchmark):
    with pytest.raises(SystemExit, match="nobody"):
        benchmark.fresh("bbr3/conformance", "nobody")
