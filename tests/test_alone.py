"""Tests that go by the clock have the machine for themselves, where others run beside each other."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TESTS = """
import time
from pathlib import Path
import pytest

def note(name):
    began = time.monotonic()
    time.sleep(0.1)
    with Path("when.txt").open("a") as when:
        when.write(f"{name} {began} {time.monotonic()}\\n")

@pytest.mark.alone
@pytest.mark.parametrize("number", range(4))
def test_alone(number):
    note("alone")

@pytest.mark.parametrize("number", range(12))
def test_beside(number):
    note("beside")
"""


@pytest.mark.release
def test_who_goes_by_the_clock_is_last_and_alone(tmp_path):
    shutil.copytree(HERE / "helpers", tmp_path / "tests" / "helpers")
    for name in ("__init__.py", "conftest.py"):
        shutil.copy(HERE / name, tmp_path / "tests")
    for name in ("test_one.py", "test_other.py"):
        (tmp_path / "tests" / name).write_text(TESTS)
    words = [sys.executable, "-m", "pytest", "-q", "-n2", "--dist=loadfile", "--no-loadscope-reorder", "-p", "no:cacheprovider"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "32 passed" in done.stdout, done.stdout + done.stderr
    rows = [line.split() for line in (tmp_path / "when.txt").read_text().splitlines()]
    spans = [(name, float(began), float(ended)) for name, began, ended in rows]

    def together(name, other):
        return sum(a[0] == name and b[0] == other and a[1] < b[2] and b[1] < a[2] for a in spans for b in spans if a is not b)

    assert together("beside", "beside") > 4
    assert not together("alone", "beside") and not together("alone", "alone")
