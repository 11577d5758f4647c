"""docs/tutorials/own_agent.md, followed to the letter: its task becomes a wheel, is installed, and all commands know it."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from studies.pages import blocks

ROOT = Path(__file__).parents[2]
BLOCKS = list(blocks.parse_blocks((ROOT / "docs" / "tutorials" / "own_agent.md").read_text()))
FILES = {block.file: block.text for block in BLOCKS if block.file}
SHORTER = {"learn(20_000)": "learn(256)", "total_timesteps=16384": "total_timesteps=2048", "16,384 steps": "2,048 steps"}
"""What of the page's text is replaced, in order to be quicker."""


def shorten(text):
    for long, short in SHORTER.items():
        text = text.replace(long, short)
    return text


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """The folder of a reader, and a way to run commands beside the wheel that was made of the page's files."""
    folder, site = tmp_path_factory.mktemp("reader"), tmp_path_factory.mktemp("site")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    path = os.pathsep.join(filter(None, [str(site), str(ROOT), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "agg"}

    def run(command):
        known = f'netbuf-gym() {{ {sys.executable} -m netbuf_gym "$@"; }}; '
        done = subprocess.run(["bash", "-c", known + command], cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    offline = ["-q", "--no-deps", "--no-index"]
    run(" ".join([*pip, "wheel", *offline, "--no-build-isolation", "-w", "dist", "."]))
    run(" ".join([*pip, "install", *offline, "--target", str(site), "dist/segment_sender-0.1-py3-none-any.whl"]))
    (folder / "segment_sender.py").unlink()  # what is imported from here on is what was installed
    return folder, run


@pytest.mark.release
def test_the_page_can_be_followed(reader):
    pytest.importorskip("stable_baselines3")
    folder, run = reader
    script = ""
    for block in BLOCKS:
        if block.language == "python" and not block.file:
            script += shorten(block.text)
            (folder / "script.py").write_text(script)
        for command, expected in block.commands if block.language == "console" else []:
            if script:
                run(f"{sys.executable} script.py")
                script = ""
            if command.startswith("pip "):
                continue
            printed, flags = run(shorten(command)), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            assert doctest.OutputChecker().check_output(shorten(expected), printed, flags), f"{command}\n{printed}"
    assert script
    run(f"{sys.executable} script.py")


@pytest.mark.slow
def test_the_installed_task_is_a_whole_one(reader):
    """Gymnasium's checker, vectors that agree with it, several agents, and a saved schema that tells other actions apart."""
    _, run = reader
    check = """
import gymnasium as gym, numpy as np, netbuf_gym, segment_sender
from netbuf_gym.envs.parallel_env import ParallelEnv
from netbuf_gym.evaluation import rollout
from gymnasium.utils.env_checker import check_env
ID = "mine/SegmentSender-v0"
check_env(gym.make(ID).unwrapped, skip_render_check=True)
env, rows = gym.make(ID, info="telemetry"), gym.make_vec(ID, num_envs=2)
seen, seen_rows = env.reset(seed=3)[0], rows.reset(seed=[3, 4])[0]
assert (seen == seen_rows[0]).all() and rows.single_observation_space.shape == (16,)
windows = []
for step in range(6):
    seen, *_, info = env.step(4)
    assert (seen == rows.step(np.array([4, 2]))[0][0]).all()
    windows.append(info["telemetry"]["cwnd_bytes"] / 1448)
assert windows == [10, 14, 18, 22, 26, 30], windows
shared = ParallelEnv(task="segment_sender", agents=2, scenario="ppcc/2")
assert len(shared.reset(seed=1)[0]) == 2
saved = env.unwrapped.schema()
assert saved["actions"] == [-8, -2, 0, 1, 4, 16] and saved["task"] == "segment_sender" and len(saved["features"]) == 4
print(rollout.evaluate("cubic", "segment_sender", "ppcc/4", [1])[0]["utility"])
"""
    assert re.match(r"-\d", run(f"{sys.executable} -c '{check}'"))
