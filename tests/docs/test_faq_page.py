"""docs/faq.md: each of its Python blocks is a script that runs, and the commands that it names are there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from netbuf_gym.cli.program import build_parser
from studies.pages import blocks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "faq.md").read_text()
BLOCKS = [block for block in blocks.parse_blocks(PAGE) if block.language == "python"]


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.section)
def test_each_block_is_a_script(block, tmp_path):
    command = [sys.executable, "-W", "error", "-c", block.text]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_its_commands_are_there():
    (commands,) = (action.choices for action in build_parser()._actions if isinstance(action.choices, dict))
    named = set(re.findall(r"netbuf-gym (\w+)", PAGE))
    assert len(named) > 5 and named <= set(commands)
