"""Commands killed at a few moments; `make kills` does more of it."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.kills.killing import Damage, Job, kill, require_whole

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_command_that_is_killed_and_given_again(tmp_path):
    output = tmp_path / "found.json"
    words = ["--command", "train", "--job", "ppo", "--kills", "1", "--output", str(output)]
    done = subprocess.run([sys.executable, "-m", "tools.kills", *words], cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    ((name, found),) = json.loads(output.read_text())["commands"].items()
    assert name == "train" and found["kills"] == 1 and not found["damage"]
    assert str(ROOT) not in str(found["commands"])


def writer(argv, whole):
    """A command that takes a while over two files, and does or does not make use of what it finds."""
    folder = Path(argv[0])
    folder.mkdir(exist_ok=True)
    if (folder / "a").is_file() and (folder / "b").is_file():
        return 0
    for name in "ab":
        if whole:
            time.sleep(0.05)
            (folder / f".{name}").write_text("x" * 100)
            (folder / f".{name}").rename(folder / name)
        else:
            with open(folder / name, "w") as file:
                for _ in range(10):
                    time.sleep(0.005)
                    file.write("x" * 10)
                    file.flush()
    return 0


def cut(folder):
    for path in folder.glob("[ab]"):
        if len(path.read_text()) != 100:
            raise Damage(f"{path.name} is cut")


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False])
def test_what_is_not_whole_is_found(whole, tmp_path, monkeypatch):
    """The harness itself: files written in place are found cut, those that are renamed are not."""
    monkeypatch.setattr("netbuf_gym.cli.program.main", lambda argv: writer(argv, whole))
    job = Job("writer", lambda: None, lambda folder: [str(folder)], cut, lambda folder: {"ab": True})
    found = kill([job], 8, 1, tmp_path)
    assert bool(found["damage"]) != whole
    assert found["kills"] == 8 and {one["moment"] for case in found["cases"] for one in case["kills"]} >= {"any", "begun"}


def test_other_figures_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr("netbuf_gym.cli.program.main", lambda argv: writer(argv, True))
    job = Job("writer", lambda: None, lambda folder: [str(folder)], cut, lambda folder: {"name": folder.name.split("-")[0]})
    assert "name is not that of an undisturbed run" in kill([job], 1, 1, tmp_path)["damage"][0]


CUT = [("a.png", b"\x89PNG\r\n\x1a\nx"), ("a.csv", b"a,b\n1\n"), ("a.csv", b"a,b\n1,2"), ("a.md", b"x\n"), ("a.x", b"")]


@pytest.mark.parametrize(("name", "data"), CUT)
def test_files_that_are_cut_are_found(name, data, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(Damage):
        require_whole(tmp_path / name)
