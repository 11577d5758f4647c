"""Markdown tables of tasks for the reference pages."""

from __future__ import annotations

from netbuf_gym.tasks.features import documented, feature_table, markdown_table
from netbuf_gym.tasks.task import Task

__all__ = ["documented", "feature_table", "markdown_table", "spaces_table", "telemetry_table"]


def spaces_table(task: type[Task]) -> str:
    """Return a Markdown table of the default observation and action spaces of each recipe."""
    made = {recipe: task(recipe) for recipe in task.recipes}
    observed = [f"{one.width} features, the last {one.history} vectors of them" for one in made.values()]
    rows = [["Observation", *observed], ["Action", *(f"`{one.action_space}`" for one in made.values())]]
    return markdown_table(["", *(f"`{recipe}`" for recipe in made)], rows)


def telemetry_table(task: type[Task] | Task) -> str:
    """Return a Markdown table of the telemetry available to a task's rewards: the fields, then the quantities.

    Fields that a real agent could not know are marked as privileged.
    """
    rules = task() if isinstance(task, type) else task
    rows = [[f"`{one.name}`", one.unit, one.meaning + " (privileged)" * one.privileged] for one in rules.telemetry.fields]
    rows += [[f"`{one.name}`", one.unit, f"{one.meaning} (quantity)"] for one in rules.make_tracker(1, 1.0).quantities]
    return markdown_table(["Name", "Unit", "Meaning"], rows)
