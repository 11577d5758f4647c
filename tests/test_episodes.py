"""Pictures of episodes on the environments' pages: each task has one, it shows what is played today, and it is not large."""

import importlib
import json
import re
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


def test_every_task_has_its_picture_on_its_page(episodes):
    assert sorted(episodes.EPISODES) == OURS
    for task in OURS:
        path = episodes.FOLDER / f"{task}.gif"
        assert path.stat().st_size <= 400_000, f"{path.name} is too large"
        page = (ROOT / "docs" / f"{task}.md").read_text(encoding="utf-8")
        assert re.search(rf"^!\[[^\]]+\]\(figures/episodes/{task}\.gif\)$", page, re.M), task
        agent, scenario, _, _ = episodes.EPISODES[task]
        assert f"The agent `{agent}` on `{scenario['name']}`" in page, task


@pytest.mark.parametrize("task", OURS)
def test_a_picture_shows_what_is_played_today(episodes, task):
    rewards = [reward for _, reward in episodes.played(task)]
    with Image.open(episodes.FOLDER / f"{task}.gif") as picture:
        said, frames = json.loads(picture.info["comment"]), picture.n_frames
    now = episodes.about(task, rewards)
    assert said.pop("return") == pytest.approx(now.pop("return"), rel=1e-3), f"python website/episodes.py {task}"
    assert said == now and frames == len(rewards) // episodes.EPISODES[task][2], f"python website/episodes.py {task}"


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
