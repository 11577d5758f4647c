"""The pages whose code is Python: it runs as it is printed, block after block."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from netbuf_gym import recipes, rewards, tasks, wrappers

ROOT = Path(__file__).parent.parent
TASKS = ("queue_threshold.md", "receiver_window.md", "host_buffers.md")
NAMES = ("rewards.md", "environment.md", "simulator.md", *TASKS, "../README.md")
PAGES = {name: (ROOT / "docs" / name).read_text() for name in NAMES}


@pytest.mark.parametrize("name", PAGES)
def test_every_block_runs_as_printed(name, tmp_path):
    blocks = [block for block in recipes.blocks(PAGES[name]) if block.language == "python"]
    assert PAGES[name].count("\n```python") == len(blocks) > 1
    script = tmp_path / "page.py"
    script.write_text("\n".join(block.text for block in blocks))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", script]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_there_is_is_on_the_page():
    page = PAGES["rewards.md"]
    for name in wrappers.__all__:
        assert f"`{name}`" in page or f"wrappers.{name}" in page or name == "DurationLimit", name
    for kind in rewards.UTILITIES:
        assert f"`{kind.name}`" in page
    for record in tasks.records():
        assert tasks.telemetry_table(record.rules) in page
    assert "rewards.md" in (ROOT / "mkdocs.yml").read_text()
