"""Members that are imported when they are first asked for are those that their packages say, and cost nothing before."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = [path.parent for path in (ROOT / "netbuf_gym").rglob("__init__.py") if "= late_members(" in path.read_text()]


def find_typed(path):
    """Yield module and name of what a package imports for type checking alone."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            yield from ((one.module, name.name) for one in node.body for name in one.names)


@pytest.mark.parametrize("folder", PACKAGES, ids=[path.name for path in PACKAGES])
def test_packages_offer_what_type_checkers_see(folder):
    package = importlib.import_module(".".join(folder.relative_to(ROOT).parts))
    for module, name in find_typed(folder / "__init__.py"):
        assert getattr(package, name) is getattr(importlib.import_module(module), name)
        assert name in package.__all__ and name in dir(package)
    assert all(hasattr(package, name) for name in package.__all__)
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing'"):
        package.nothing  # noqa: B018
    assert getattr(package, "no.thing", None) is None


def test_modules_below_a_package_are_its_attributes():
    code = "import netbuf_gym as nb; print(nb.tasks.queue_threshold.SCENARIOS['rlbm/default'] and nb.traces.reading.FORMATS)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert "mahimahi" in done.stdout.lower(), done.stderr


def test_an_environment_imports_its_own_task_alone():
    code = "import gymnasium as gym, netbuf_gym, sys\ngym.make('netbuf/ReceiverWindow-v0').reset(seed=1)\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    loaded = set(done.stdout.split())
    assert "netbuf_gym.tasks.receiver_window.task" in loaded, done.stderr
    others = {f"netbuf_gym.tasks.{name}" for name in ("congestion_window", "host_buffers", "queue_threshold")}
    assert loaded & (others | {"netbuf_gym.utils.plots"}) == set()
