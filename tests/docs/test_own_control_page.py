"""docs/own_control.md, followed to the letter in an empty folder: its files, scripts and commands, and what they print."""

import doctest
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from studies.pages import blocks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "own_control.md").read_text()
BLOCKS = list(blocks.parse_blocks(PAGE))


def run(command, folder):
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(folder / "cache")}
    command = f'netbuf-gym() {{ {sys.executable} -m netbuf_gym "$@"; }}; {command}'
    return subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.release
def test_the_page_can_be_followed(tmp_path):
    pytest.importorskip("torch")
    for block in BLOCKS:
        if block.file:
            (tmp_path / block.file).write_text(block.text)
        elif block.language == "python":
            (tmp_path / "script.py").write_text(block.text)
            done = run(f"{sys.executable} script.py", tmp_path)
            assert done.returncode == 0, done.stderr
        for command, expected in block.commands if block.language == "console" else []:
            done = run(command, tmp_path)
            printed = done.stdout
            assert done.returncode == 0, f"{command}\n{printed}\n{done.stderr}"
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            assert doctest.OutputChecker().check_output(expected, printed, flags), f"{command}\n{printed}"


def test_the_example_in_python_falls_back_to_something_whatever_is_in_flight():
    made = {}
    exec(next(block.text for block in BLOCKS if block.file == "gentle.py"), made)
    assert made["Gentle"]().on_loss(SimpleNamespace(in_flight_bytes=0, mss_bytes=1448)) == 1448
