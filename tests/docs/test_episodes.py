"""Pictures of episodes on the environments' pages are drawn from what is played."""

import importlib
import json
from pathlib import Path

import pytest

from netbuf_gym import tasks

pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "website").is_dir(), reason="not in a checkout")


@pytest.fixture
def episodes(monkeypatch):
    """The script that draws them."""
    monkeypatch.syspath_prepend(str(ROOT / "website"))
    return importlib.import_module("episodes")


def test_a_picture_is_drawn(episodes, monkeypatch, tmp_path):
    monkeypatch.setattr(episodes, "FOLDER", tmp_path / "new")
    short = ("host_buffers/dqn", {"name": "auter/training", "duration_s": 15}, 2, 4)
    monkeypatch.setitem(episodes.EPISODES, "host_buffers", short)
    with Image.open(episodes.draw("host_buffers")) as picture:
        assert picture.n_frames == 2 and picture.info["loop"] == 0 and json.loads(picture.info["comment"])["decisions"] == 5
        picture.seek(1)
        assert picture.info["duration"] == episodes.LAST_MS
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 24)}
    panels = tasks.get("host_buffers").rules().panels
    assert {panel.color for panel in panels} <= colours, "lines are drawn in their panels' colours"
