"""docs/research.md: its blocks are one script, which runs, draws, and passes `mypy --strict`."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import pytest

from studies.pages import blocks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "research.md").read_text()
BLOCKS = list(blocks.parse_blocks(PAGE))
SCRIPT = "\n".join(block.text for block in BLOCKS if block.language == "python")


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    folder = tmp_path_factory.mktemp("research")
    (folder / "study.py").write_text(SCRIPT)
    return folder


def numbers(line):
    return [float(word) for word in re.findall(r"-?\d+(?:\.\d+)?", line)]


@pytest.mark.release
def test_it_runs_and_draws(script):
    done = subprocess.run([sys.executable, "-W", "error", "study.py"], cwd=script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    objective = {line.split()[0]: numbers(line)[0] for line in done.stdout.splitlines()[-6:]}
    assert len(objective) == 6 and min(objective["ours"], objective["cubic"]) > objective["random"]
    picture = matplotlib.image.imread(script / "queues.png")
    colours = {tuple(colour) for colour in picture.reshape(-1, picture.shape[2])}
    assert picture.shape[0] > 200 and picture.shape[1] > 500 and len(colours) > 10
    assert {path.name for path in script.iterdir() if path.is_file()} == {"study.py", "queues.png"}


@pytest.mark.release
def test_it_passes_mypy_strict(script):
    site = script / "site"
    code = shutil.ignore_patterns("*.so", "__pycache__", "*.csv", "*.json", "agents")
    shutil.copytree(ROOT / "netbuf_gym", site / "netbuf_gym", ignore=code)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "study.py"]
    environment = {**os.environ, "PYTHONPATH": str(site)}  # so that it is found as installed packages are
    done = subprocess.run(command, cwd=script, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "no issues found" in done.stdout, done.stdout + done.stderr
