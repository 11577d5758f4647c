"""Extras by name, in prose, in commands and in messages: each is one that the package has, and all are in the page's table."""

import ast
import configparser
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "setup.cfg").is_file(), reason="not in a checkout")

KINDS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "setup.cfg", "docs/**/*.md", "zoo/**/*.md")
FILES = sorted({path for kind in (*KINDS, "netbuf_gym/**/*.py", "notebooks/*", "conf/**/*.yaml") for path in ROOT.glob(kind)})
LISTED = re.compile(r"netbuf-gym\[([\w,]+)\]|[\"' ]\.\[([\w,]+)\]")
"""As pip is told them: `netbuf-gym[plots,train]`, `.[train]`."""
CHOSEN = re.compile(r"netbuf-gym\[\{([^}\n]+)\}\]")
"""As a message tells them: `netbuf-gym[{'tune' if job == 'tune' else 'train'}]`."""
NAMED = re.compile(r"\b[Ee]xtras?:? ((?:`[\w-]+`(?:, | and )?)+)")
"""As a sentence does: extras `plots` and `video`."""


def extras():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    return set(setup["options.extras_require"])


def named(text):
    """All extras that a text names."""
    found = {name for groups in LISTED.findall(text) for group in groups for name in group.split(",") if name}
    found |= {name for choice in CHOSEN.findall(text) for name in re.findall(r"'(\w+)'", choice)}
    return found | {name for names in NAMED.findall(text) for name in re.findall(r"`([\w-]+)`", names)}


def raised(text):
    """Those that a module's errors ask for, where they are written out: `require_extra(what, "train")`."""
    for node in ast.walk(ast.parse(text)):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Name) and called.id in ("require_extra", "MissingExtraError") and len(node.args) > 1:
            yield from (part.value for part in ast.walk(node.args[1]) if isinstance(part, ast.Constant))


@pytest.mark.slow
def test_every_extra_that_is_named_is_there():
    missing, seen = set(), set()
    for path in FILES:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        names = named(text) | (set(raised(text)) if path.suffix == ".py" else set())
        seen |= names
        missing |= {f"{path.relative_to(ROOT)}: {name}" for name in names - extras()}
    assert missing == set()
    assert {"analysis", "leaderboard", "minari", "multiagent", "notebooks", "onnx", "plots", "ray", "train", "tune"} <= seen


def test_the_page_has_a_row_for_every_extra():
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    table = page.partition("| Extra |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.M)) == extras()
