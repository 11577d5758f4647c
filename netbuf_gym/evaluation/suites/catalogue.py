"""All suites by name. A new one is an entry here: its worlds, the metrics measured in each, its families."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from netbuf_gym.evaluation.suites import field, paths, task_suites
from netbuf_gym.evaluation.suites.suite import Suite
from netbuf_gym.utils.arguments import check_choice
from netbuf_gym.utils.tables import markdown_table

V1 = "v1"
"""Prefix of the suites that agents of all tasks are ranked by, `v1/TASK`; that of senders is the gate."""
_GATE, _VALIDATION = paths.SUITES[0], paths.SUITES[2]
_AS_V1 = replace(_GATE, name=f"{V1}/{paths.TASK}", summary=f"the gate: {_GATE.summary}")
_OWN = (*paths.SUITES, _AS_V1, *task_suites.SUITES, *field.SUITES)
SUITES: dict[str, Suite] = {one.name: one for one in _OWN}
for _kind in {type(one) for one in _OWN}:  # other processes look a suite up by its name
    copyreg.pickle(_kind, lambda one: (get_suite, (one.name,)))

CHOOSE_ON = {paths.TASK: _VALIDATION.name} | {task: f"{task_suites.CHOOSING}/{task}" for task in task_suites.TASKS}
"""By task the suite that settings and constant actions are chosen on; no world of it is in `v1`."""

DRAW_WORLDS: dict[str, Callable[[int], list[dict[str, Any]]]] = {
    **{name: partial(paths.draw_worlds, name) for name in paths.PLANS},
    **{one.name: partial(task_suites.draw_worlds, one.name) for one in task_suites.SUITES},
}
"""By name of each suite that is kept in a file of its own, the function that draws the worlds of a version."""


def format_catalogue() -> str:
    """Return a Markdown table of all suites, with their numbers of worlds and families."""
    rows = []
    for one in SUITES.values():
        edition = one.load()
        worlds = [str(len(edition.cells)), str(len(edition.families)), str(edition.version)]
        rows.append([f"`{one.name}`", one.task, *worlds, one.summary])
    return markdown_table(["suite", "task", "worlds", "families", "version", "for"], rows)


def get_suite(name: str) -> Suite:
    """Return a suite by name; raise ConfigError, naming the valid ones, for an unknown name."""
    return SUITES[check_choice("suite", name, SUITES)]
