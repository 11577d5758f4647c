"""All suites by name. A further one is an entry here: worlds, what is measured in each, families."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from netbuf_gym.evaluation.suites import field, paths, task_suites
from netbuf_gym.evaluation.suites.suite import Suite
from netbuf_gym.utils.arguments import choice
from netbuf_gym.utils.tables import markdown_table

V1 = "v1"
"""Of the suite that agents of all tasks are ranked by: `v1/TASK`. That of senders is the gate."""
_GATE, _VALIDATION = paths.SUITES[0], paths.SUITES[2]
_AS_V1 = replace(_GATE, name=f"{V1}/{paths.TASK}", summary=f"the gate: {_GATE.summary}")
_OWN = (*paths.SUITES, _AS_V1, *task_suites.SUITES, *field.SUITES)
SUITES: dict[str, Suite] = {one.name: one for one in _OWN}
for _kind in {type(one) for one in _OWN}:  # other processes look a suite up by its name
    copyreg.pickle(_kind, lambda one: (suite, (one.name,)))

CHOOSE_ON = {paths.TASK: _VALIDATION.name} | {task: f"{task_suites.CHOOSING}/{task}" for task in task_suites.TASKS}
"""By task the suite that settings and constant actions are chosen on; no world of it is in `v1`."""

DRAWN: dict[str, Callable[[int], list[dict[str, Any]]]] = {
    **{name: partial(paths.drawn, name) for name in paths.PLANS},
    **{one.name: partial(task_suites.drawn, one.name) for one in task_suites.SUITES},
}
"""What draws the worlds of a version, by the name of each suite that is kept in a file of its own."""


def catalogue_table() -> str:
    """A Markdown table of all suites, with as many worlds and families as they have."""
    rows = []
    for one in SUITES.values():
        edition = one.load()
        worlds = [str(len(edition.cells)), str(len(edition.families)), str(edition.version)]
        rows.append([f"`{one.name}`", one.task, *worlds, one.summary])
    return markdown_table(["suite", "task", "worlds", "families", "version", "for"], rows)


def suite(name: str) -> Suite:
    """The one of a name; raises ConfigError, naming the valid ones, for another."""
    return SUITES[choice("suite", name, SUITES)]
