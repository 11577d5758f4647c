"""Former module names, which import the present modules with a DeprecationWarning.

Version 0.1 had `netbuf_gym.stats`, for example, which is `netbuf_gym.utils.statistics` now.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any, cast

from netbuf_gym.errors import NetbufError

PACKAGE, STUDIES = "netbuf_gym", "studies"
MOVED = {
    "adding": "utils.sums",
    "arguments": "utils.arguments",
    "baselines": "evaluation.baselines",
    "checkout": "utils.checkout",
    "checks": "utils.checks",
    "commands": "cli",
    "completion": "cli.completion",
    "contenders": "controllers",
    "contenders.contender": "controllers.protocol",
    "contenders.deciding": "controllers.policies",
    "contenders.own": "controllers.user_code",
    "contenders.words": "controllers.code_references",
    "described": "utils.docstrings",
    "engine": "envs.engine",
    "env": "envs.env",
    "evaluation.suites.rows": "leaderboard.rows",
    "evaluation.suites.runner": "leaderboard.play",
    "evaluation.suites.scoring": "leaderboard.scoring",
    "exclusive": "utils.thread_guard",
    "executors": "utils.executors",
    "extensions": "utils.extensions",
    "files": "utils.files",
    "flow_results": "simulation.results.flows",
    "isolated": "utils.sandbox",
    "leaderboard.scores": "leaderboard.standings",
    "live": "host",
    "live.deciding": "host.decider",
    "live.fence": "host.rate_limits",
    "live.host": "host.targets",
    "live.known": "host.journal_paths",
    "live.lock": "host.locks",
    "live.machine": "host.capabilities",
    "live.record": "host.log",
    "multiagent": "envs.parallel_env",
    "nearest": "utils.suggestions",
    "overrides": "utils.overrides",
    "page_blocks": "pages.blocks",
    "plants.linux.wire": "plants.linux.messages",
    "plants.sim": "plants.simulated",
    "plots": "utils.plots",
    "progress": "utils.progress",
    "registration": "envs.registration",
    "rendering": "envs.rendering",
    "reproduce": "studies",
    "reproduce.agents": "studies.common.agents",
    "reproduce.auter.auter": "studies.auter.experiment",
    "reproduce.campaign": "studies.common.campaign",
    "reproduce.cells": "studies.common.cells",
    "reproduce.drawing": "studies.common.drawing",
    "reproduce.experiment": "studies.common.experiment",
    "reproduce.judging": "studies.common.judging",
    "reproduce.nuwa.nuwa": "studies.nuwa.experiment",
    "reproduce.page": "studies.pages",
    "reproduce.ppcc.ppcc": "studies.ppcc.experiment",
    "reproduce.results": "studies.common.results",
    "reproduce.rlbm.families": "studies.switch.families",
    "reproduce.settings": "studies.common.settings",
    "reproduce.showing": "studies.common.showing",
    "reproduce.table": "studies.common.table",
    "result_parts": "simulation.results.parts",
    "result_plots": "simulation.results.plots",
    "result_tables": "simulation.results.tables",
    "results": "simulation.results.result",
    "rewards.making": "rewards.specs",
    "rewards.own": "rewards.custom",
    "rewards.running": "rewards.episode_means",
    "rollout": "evaluation.rollout",
    "running": "simulation.monitor",
    "scenarios.own_control": "scenarios.python_control",
    "scenarios.wire": "scenarios.impairments",
    "scripts": "utils.scripts",
    "stats": "utils.statistics",
    "suites": "evaluation.suites",
    "suites.drawing": "evaluation.suites.sampling",
    "suites.field.document": "leaderboard.field_reports",
    "suites.field.league": "leaderboard.rows",
    "suites.field.overview": "leaderboard.field_reports",
    "suites.field.telling": "leaderboard.field_reports",
    "suites.field.worlds": "evaluation.suites.field.suite",
    "suites.figures": "leaderboard.reports",
    "suites.of_tasks": "evaluation.suites.task_suites",
    "suites.recording": "evaluation.suites.recorder",
    "suites.report": "leaderboard.reports",
    "suites.rows": "leaderboard.rows",
    "suites.running": "leaderboard.play",
    "suites.scoring": "leaderboard.scoring",
    "suites.settings": "evaluation.suites.config",
    "suites.telling": "leaderboard.reports",
    "tables": "utils.tables",
    "tasks.congestion_window.company": "tasks.congestion_window.hidden_traffic",
    "tasks.congestion_window.contenders": "tasks.congestion_window.baselines",
    "tasks.congestion_window.features": "tasks.congestion_window.observations",
    "tasks.congestion_window.measures": "tasks.congestion_window.metrics",
    "tasks.congestion_window.rounds": "tasks.congestion_window.path_tracker",
    "tasks.congestion_window.rules": "tasks.congestion_window.task",
    "tasks.host_buffers.contenders": "tasks.host_buffers.baselines",
    "tasks.host_buffers.features": "tasks.host_buffers.observations",
    "tasks.host_buffers.measures": "tasks.host_buffers.metrics",
    "tasks.host_buffers.meter": "tasks.host_buffers.tracker",
    "tasks.host_buffers.rules": "tasks.host_buffers.task",
    "tasks.host_buffers.worlds": "tasks.host_buffers.random_paths",
    "tasks.measures": "tasks.metrics",
    "tasks.pages": "tasks.tables",
    "tasks.queue_threshold.contenders": "tasks.queue_threshold.baselines",
    "tasks.queue_threshold.features": "tasks.queue_threshold.observations",
    "tasks.queue_threshold.measures": "tasks.queue_threshold.metrics",
    "tasks.queue_threshold.rules": "tasks.queue_threshold.task",
    "tasks.receiver_window.contenders": "tasks.receiver_window.baselines",
    "tasks.receiver_window.features": "tasks.receiver_window.observations",
    "tasks.receiver_window.measures": "tasks.receiver_window.metrics",
    "tasks.receiver_window.rules": "tasks.receiver_window.task",
    "tasks.receiver_window.trace_worlds": "tasks.receiver_window.trace_paths",
    "tasks.receiver_window.worlds": "tasks.receiver_window.random_paths",
    "traffic_results": "simulation.results.traffic",
    "udp_results": "simulation.results.udp",
    "validate": "validation",
    "validate.ks": "validation.judging",
    "validate.reading": "validation.reference",
    "validate.running": "validation.runner",
    "validate.settings": "validation.host_settings",
    "validate.worlds": "validation.runner",
    "vector": "envs.vector_env",
    "video_results": "simulation.results.video",
    "worlds": "scenarios.sources",
    "zoo.archive": "training.checkpoints.archive",
    "zoo.beside_defaults": "training.tuning.compare_tuned",
    "zoo.callbacks": "training.callbacks",
    "zoo.campaign": "training.campaign",
    "zoo.checkpoint": "training.checkpoints.checkpoint",
    "zoo.cloning": "training.algorithms.cloning",
    "zoo.config": "training.config",
    "zoo.constants": "leaderboard.standings",
    "zoo.contending": "leaderboard.controllers",
    "zoo.curriculum": "training.curriculum",
    "zoo.curves": "training.curves",
    "zoo.demo": "training.demo",
    "zoo.digest": "training.checkpoints.digest",
    "zoo.evaluate": "training.evaluate",
    "zoo.evaluation": "evaluation.summary",
    "zoo.gate": "leaderboard.results",
    "zoo.greedy": "training.algorithms.greedy",
    "zoo.guessing": "training.algorithms.ppo_lstm",
    "zoo.hydra_views": "training.hydra_views",
    "zoo.imitation": "training.algorithms.imitation",
    "zoo.launching": "training.sweep",
    "zoo.leaderboard": "leaderboard.standings",
    "zoo.leaderboard_page": "leaderboard.page",
    "zoo.learning": "training.learning",
    "zoo.lstm": "training.algorithms.lstm",
    "zoo.mistakes": "training.config_errors",
    "zoo.models": "training.models",
    "zoo.moment": "training.checkpoints.learner_state",
    "zoo.on_suites": "training.campaign_suites",
    "zoo.packing": "training.checkpoints.packing",
    "zoo.playing": "leaderboard.play",
    "zoo.ppo": "training.algorithms.ppo",
    "zoo.ppo_lstm": "training.algorithms.ppo_lstm",
    "zoo.processes": "training.tuning.processes",
    "zoo.ranges": "training.ranges",
    "zoo.recording": "zoo.datasets",
    "zoo.reference": "training.config_reference",
    "zoo.replay": "training.checkpoints.replay",
    "zoo.resolve": "leaderboard.controllers",
    "zoo.results": "leaderboard.results",
    "zoo.running": "evaluation.comparison",
    "zoo.saved": "training.checkpoints.saved_agent",
    "zoo.schema": "training.schema",
    "zoo.scores": "leaderboard.standings",
    "zoo.search": "training.tuning.search_space",
    "zoo.selection": "training.selection",
    "zoo.studies": "training.tuning.study",
    "zoo.submission": "leaderboard.submission",
    "zoo.tables": "leaderboard.page",
    "zoo.tracking": "leaderboard.submission",
    "zoo.train": "training.train",
    "zoo.trials": "training.tuning.trials",
    "zoo.tune": "training.tune",
    "zoo.versions": "training.checkpoints.versions",
    "zoo.wandb_log": "training.wandb_log",
    "zoo.worlds": "training.environment",
}
"""Present module names by former ones, relative to the package or, for studies, to the checkout.

Submodules of a former name are found below the present one.
"""
RENAMED = {name: {"Contender": "Controller"} for name in ("controllers", "controllers.protocol")}
"""Present names of a module's attributes by former ones."""
GONE = dict.fromkeys(("zoo.tables", "reproduce.page"), "netbuf-gym results pages")
"""Commands in place of modules that `python -m` ran."""


def _look_up(table: dict[str, str], name: str) -> str | None:
    """Return the present name by the longest former one that `name` is, or is below."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        present = table.get(".".join(parts[:end]))
        if present is not None:
            return ".".join([present, *parts[end:]])
    return None


def _list_children() -> dict[str, str]:
    """Return present names by the child's former name below its parent's present one.

    `from netbuf_gym.suites import running` asks for `evaluation.suites.running` once `netbuf_gym.suites` is imported.
    """
    found = {}
    for name, present in MOVED.items():
        parent, _, child = name.rpartition(".")
        below = f"{_look_up(MOVED, parent)}.{child}"
        if below != present and not below.startswith("None."):
            found[below] = present
    return found


KNOWN = {**_list_children(), **MOVED}
"""Present names by all that may be asked for."""


def find_present_name(name: str) -> str | None:
    """Return the present name of a module by its former one, both fully qualified; None if it has not moved."""
    package, _, rest = name.partition(".")
    if package not in (PACKAGE, STUDIES):
        return None
    found = _look_up(KNOWN, rest if package == PACKAGE else name)
    return found if found is None or found.partition(".")[0] == STUDIES else f"{PACKAGE}.{found}"


def warn(name: str, present: str, stacklevel: int = 3) -> None:
    """Warn the caller's caller that it uses a former name."""
    warnings.warn(f"{name} is {present} now", DeprecationWarning, stacklevel=stacklevel)


def import_present(present: str) -> ModuleType:
    """Import a module by its present name, a study's from the checkout.

    Raises:
        ImportError: There is no such module, or no checkout that has it.
    """
    top, _, rest = present.partition(".")
    if top != STUDIES:
        return importlib.import_module(present)
    from netbuf_gym.utils.checkout import import_studies, require_checkout

    try:
        return import_studies(require_checkout(), rest)
    except NetbufError as error:
        raise ImportError(str(error), name=present) from None


def find_renamed(module: str, name: str) -> Any:
    """Return a module's attribute by its former name, with a DeprecationWarning; for the `__getattr__` of modules in `RENAMED`.

    Raises:
        AttributeError: The module has no attribute of this name.
    """
    present = RENAMED.get(module.partition(".")[2], {}).get(name)
    if present is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warn(f"{module}.{name}", f"{module}.{present}", stacklevel=4)
    return getattr(sys.modules[module], present)


class MovedFinder:
    """Finder of modules by former names; first in `sys.meta_path`, so that no module is loaded under two names."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec that loads a former name, or None if `name` is not one."""
        present = find_present_name(name)
        if present is None or present == name:
            return None
        loader = MovedLoader(present)
        loader.spec = ModuleSpec(name, cast(Any, loader))
        return loader.spec


class MovedLoader:
    """Loader that binds a former name to the present module."""

    spec: ModuleSpec

    def __init__(self, present: str):
        self.present = present

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None, so that the import system creates a module, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        """Warn, and put the present module in the place of the former one."""
        name = module.__name__
        warn(name, self.present)
        sys.modules[name] = import_present(self.present)

    def get_code(self, name: str) -> CodeType:
        """Return the present module's code, for `python -m` with a former name.

        Raises:
            ImportError: The module cannot be run any more; names the command in its place.
        """
        former = name.partition(".")[2]
        if former in GONE:
            raise ImportError(f"{name} has gone; valid: {GONE[former]}")
        package = hasattr(import_present(self.present), "__path__")
        found = importlib.util.find_spec(f"{self.present}.__main__" if package else self.present)
        if found is None or found.loader is None:
            raise ImportError(f"{name} is {self.present} now, a package that cannot be run")
        print(f"{name} is {self.present} now", file=sys.stderr)
        self.spec.origin = found.origin
        return cast(CodeType, cast(Any, found.loader).get_code(found.name))


def install() -> None:
    """Add the finder of former names to Python's import system; further calls change nothing."""
    if not any(isinstance(one, MovedFinder) for one in sys.meta_path):
        sys.meta_path.insert(0, cast(Any, MovedFinder()))
