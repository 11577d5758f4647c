"""Commands killed at a few moments; `make kills` does more of it."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from killing_cases import Damage, Job, kill

HERE = Path(__file__).parent


def test_commands_that_are_killed_and_given_again(tmp_path):
    output = tmp_path / "found.json"
    commands = ["--command", "evaluate", "--command", "reproduce"]
    words = [sys.executable, str(HERE / "run.py"), *commands, "--kills", "2", "--output", str(output)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    for found in json.loads(output.read_text())["commands"].values():
        assert found["commands_killed"] == 2 and found["kills"] >= 1 and not found["damage"]
        assert str(HERE.parents[1]) not in found["command"]


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


def differ(one, other):
    if one != other:
        raise Damage("other figures")


@pytest.mark.parametrize("whole", [True, False])
def test_what_is_not_whole_is_found(whole, tmp_path, monkeypatch):
    """The harness itself: files written in place are found cut, those that are renamed are not."""
    monkeypatch.setattr("netbuf_gym.cli.main", lambda argv: writer(argv, whole))
    job = Job("writer", lambda: None, lambda folder: [str(folder)], cut, lambda folder: sorted(map(str.encode, "ab")), differ)
    found = kill(job, 6, 1, tmp_path)
    assert bool(found["damage"]) != whole
    assert found["kills"] >= 4 and signal.SIGKILL == 9
