"""Packages that register something are imported with the package, in each of its processes."""

import os
import re
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from netbuf_gym.utils import extensions
from studies.pages import blocks

ROOT = Path(__file__).parents[2]

PAGE = (ROOT / "docs" / "extending.md").read_text()
BLOCKS = list(blocks.parse_blocks(PAGE))
TASK = next(block for block in BLOCKS if block.file == "netbuf_gym/tasks/short_wait/__init__.py")
ENTRY = re.sub(r"\[project\.entry-points\.(\w+)\]", r"[\1]", next(block.text for block in BLOCKS if block.language == "toml"))
"""As pip writes what the page has into `pyproject.toml`."""


@pytest.fixture
def installed(tmp_path):
    """Makes a package as pip installs it, and gives a way to run Python beside it."""

    def make(text, module="short_wait"):
        (tmp_path / f"{module}.py").write_text(text)
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(ENTRY.replace('"', "").replace("short_wait", module))
        path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)])])

        def run(*words):
            command = [sys.executable, *words]
            done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr

        return run

    return make


@pytest.mark.slow
def test_what_it_registers_is_there(installed):
    run = installed(TASK.text + "\n\nfrom netbuf_gym.tasks import register\n\nregister(RECORD)\n")
    status, printed = run("-m", "netbuf_gym", "list", "environments")
    assert status == 0 and "mine/ShortWait-v0" in printed
    status, printed = run("-c", "import short_wait, gymnasium; gymnasium.make('mine/ShortWait-v0').reset(seed=1)")
    assert status == 0, printed  # whichever of the two is imported first


@pytest.mark.release
def test_commands_train_and_judge_it_in_processes_of_their_own(installed, tmp_path):
    run = installed(TASK.text + "\n\nfrom netbuf_gym.tasks import register\n\nregister(RECORD)\n")
    training = ["env=short_wait", "total_timesteps=512", "env.num_envs=4", "algo.num_envs=4", "algo.kwargs.n_steps=16"]
    training += ["algo.kwargs.batch_size=32", "tensorboard=false", "progress=false"]
    words = ["seeds=2", "evaluation_seeds=2", "executor=joblib", "jobs=2", "runs=runs", "out=agent"]
    status, printed = run("-m", "netbuf_gym.training.campaign", *training, *words)
    assert status == 0, printed
    assert (tmp_path / "agent" / "model.zip").is_file() and "ShortWait" in (tmp_path / "agent" / "card.md").read_text()
    status, printed = run("-m", "netbuf_gym", "evaluate", f"model={tmp_path / 'agent' / 'model.zip'}", "seeds=1", "plots=false")
    assert status == 0 and "thermostat" in printed, printed


def test_one_that_fails_is_said_and_left_out(installed):
    run = installed("raise ValueError('not today')\n", module="of_today")
    status, printed = run("-c", "import netbuf_gym; print(netbuf_gym.tasks.names())")
    assert status == 0 and "congestion_window" in printed
    assert "entry point 'of_today' of of_today, of_today, was not imported: ValueError: not today" in printed


def test_metadata_is_read_only_where_an_extension_may_be(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "missing")])
    monkeypatch.setattr(sys, "meta_path", [PathFinder])
    assert not extensions.may_be_installed()
    for name, section, expected in (("a-1.dist-info", "console_scripts", False), ("b.EGG-INFO", "netbuf_gym", True)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "entry_points.txt").write_text(f"[{section}]\nnetbuf_gym = netbuf_gym:x\n")
        assert extensions.may_be_installed() is expected
    (tmp_path / "archive.zip").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "archive.zip")])
    assert extensions.may_be_installed()
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, type("Finder", (), {"find_distributions": None})])
    assert extensions.may_be_installed()
