"""benchmarks/pythons.py: what it has a Python do, and what it keeps of that."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="not in a checkout")
ABOUT = {"python": "3.12.6", "compiler": "c++ 14", "numpy": "2.5", "scipy": "1.18", "gymnasium": "1.4"}
CASES = "<testsuites><testsuite><testcase/><testcase/><testcase><skipped/></testcase></testsuite></testsuites>"


@pytest.fixture
def pythons(monkeypatch):
    """The script."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("pythons")


@pytest.fixture
def started(pythons, monkeypatch):
    """Commands that are not run: each leaves what a try leaves in its folder, and succeeds while `fails` is not among them."""
    commands = []

    def run(command, **_):
        commands.append([str(word) for word in command])
        if command[0] == "debootstrap":
            Path(command[-1]).mkdir()
        for about in Path(commands[-1][-2] if command[0] == "unshare" else "/").glob("try/about.py"):
            leave(about.parent)
        return subprocess.CompletedProcess(command, int("fails" in commands[-1][-1]))

    monkeypatch.setattr(pythons.subprocess, "run", run)
    return commands


def leave(place):
    (place / "tests.xml").write_text(CASES)
    (place / "about.json").write_text(json.dumps(ABOUT))


def test_what_is_kept_is_of_pythons_of_the_metadata(pythons):
    assert set(json.loads(pythons.KEPT.read_text())) <= set(pythons.promised()), "Pythons that setup.cfg does not name"


def test_a_table_names_every_python_of_the_metadata(pythons):
    rows = pythons.table({"3.12": {**ABOUT, "tests": 2, "extras": ["train"], "from": "debian:x"}}).splitlines()[2:]
    assert [row.split(" ")[1] for row in rows] == ["3.10", "3.11", "3.12.6", "3.13"]
    assert rows[2] == "| 3.12.6 (`debian:x`) | c++ 14 | 2.5, 1.18, 1.4 | `train` | 2 |"
    assert rows[3] == "| 3.13 | not tried | | | |"
    assert pythons.ordered(["3.13", "3.9", "3.10"]) == ["3.9", "3.10", "3.13"]


def test_a_release_is_laid_out_once_and_tried_within(pythons, started, tmp_path):
    sources = tmp_path / "netbuf_gym-1.tar.gz"
    sources.write_text("")
    one = pythons.tried("debian:x", sources, ["train"], tmp_path)
    assert one == {**ABOUT, "tests": 2, "skipped": 1, "extras": ["train"], "from": "debian:x"}
    again = pythons.tried("debian:x", None, [], tmp_path)
    assert again == {**one, "extras": []}
    laid_out, first, second = started
    assert laid_out[0] == "debootstrap" and laid_out[-2:] == ["x", str(tmp_path / "debian-x")]
    assert first[0] == second[0] == "unshare" and "bin/pip wheel -q --no-deps -w wheel *.tar.gz" in first[-1]
    assert '"$(echo wheel/netbuf_gym-*.whl)[train]" ' in first[-1] and "block-0.py" in first[-1]
    assert "bin/pip" not in second[-1] and "block-0.py" not in second[-1]
    for script in (first[-1], second[-1]):
        assert "cd /try\n" in script and "block-1.py" in script
        assert all(one in script for one in pythons.tried_by_cibuildwheel()[1])
    place = tmp_path / "debian-x" / "try"
    assert (place / "away" / "tests" / "test_pythons.py").is_file() and (place / sources.name).is_file()
    assert "gym.make(" in (place / "block-1.py").read_text() and "zoo.load(" in (place / "block-0.py").read_text()


def test_a_python_that_fails_is_not_kept(pythons, started, tmp_path):
    (tmp_path / "a.tar.gz").write_text("")
    with pytest.raises(SystemExit, match="fails/python3 failed; its folder"):
        pythons.tried("fails/python3", tmp_path / "a.tar.gz", [], tmp_path)
    assert started[0][:2] == ["bash", "-c"] and "fails/python3 -m venv --clear build" in started[0][2]


def test_a_script_runs_where_it_is_told(pythons):
    done = subprocess.run(pythons.within(None, f"{sys.executable} -c 'print(1)'"), capture_output=True, text=True)
    assert done.stdout == "1\n"
