"""Pictures of episodes on the environments' pages: each task has one that is not large, and the script draws them."""

import importlib
import json
from pathlib import Path

import pytest

from netbuf_gym import tasks

pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "website").is_dir(), reason="not in a checkout")
OURS = sorted(record.name for record in tasks.records() if record.ids[0].startswith("netbuf/"))


@pytest.fixture
def episodes(monkeypatch):
    """The script that draws them."""
    monkeypatch.syspath_prepend(str(ROOT / "website"))
    return importlib.import_module("episodes")


def test_every_task_has_its_picture(episodes):
    assert sorted(episodes.EPISODES) == OURS
    for task in OURS:
        path = episodes.FOLDER / f"{task}.gif"
        assert path.stat().st_size <= 400_000, f"{path.name} is too large"


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
