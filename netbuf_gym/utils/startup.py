"""Registrations of the package with Python and Gymnasium, done on its import, without importing the tasks that come with it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from netbuf_gym.utils import moved

IDS = {
    "netbuf/CongestionWindow-v0": "congestion_window",
    "netbuf/HostBuffers-v0": "host_buffers",
    "netbuf/QueueThreshold-v0": "queue_threshold",
    "netbuf/ReceiverWindow-v0": "receiver_window",
}
"""Tasks that come with the package by the ids of their environments."""
TASKS = Path(__file__).parents[1] / "tasks"


def prepare() -> None:
    """Make former names of modules importable, and register the package's environments once Gymnasium is imported."""
    moved.install()
    if "gymnasium" in sys.modules:
        register_own_ids()
    elif not any(isinstance(one, GymnasiumFinder) for one in sys.meta_path):
        sys.meta_path.insert(0, GymnasiumFinder())


def register_own_ids() -> None:
    """Register the environments of the package's tasks with Gymnasium."""
    for name, task in IDS.items():
        register_ids([name], task)
    if {path.parent.name for path in TASKS.glob("*/__init__.py")} - set(IDS.values()):
        importlib.import_module("netbuf_gym.tasks")  # of a task that was added, its record alone knows the ids


def import_tasks() -> None:
    """Import all tasks of the package, which register the scenarios that they bring."""
    importlib.import_module("netbuf_gym.tasks").records()


def register_ids(names: Iterable[str], task: str) -> None:
    """Register environments of a task with Gymnasium unless they are registered already."""
    from gymnasium.envs import registration

    for name in names:
        if name not in registration.registry:
            registration.register(
                name,
                entry_point="netbuf_gym.envs.env:make",
                vector_entry_point="netbuf_gym.envs.vector_env:VectorEnv",
                kwargs={"task": task},
            )


class GymnasiumFinder(MetaPathFinder):
    """Finder of Gymnasium alone, which has the package's environments registered as soon as Gymnasium is imported."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return Gymnasium's spec as the other finders have it, with a loader that registers afterwards; else None."""
        if name != "gymnasium":
            return None
        others = [one for one in sys.meta_path if one is not self and hasattr(one, "find_spec")]
        spec = next((found for one in others if (found := one.find_spec(name, path, target)) is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                register_own_ids()

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec
