"""The environments' ids and their tasks, as Gymnasium and the documentation have them."""

from __future__ import annotations

from typing import Any

from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError
from netbuf_gym.rewards import reward_spec
from netbuf_gym.scenarios import Scenario
from netbuf_gym.tasks.tables import markdown_table
from netbuf_gym.utils.thread_guard import separate_wrapper_copies


class TaskIdCheck:
    """Mixin of environments: their settings, and the refusal of another task's id, as in `gym.make(id, task=...)`."""

    engine: Any
    _spec: EnvSpec | None = None

    def schema(self) -> dict[str, Any]:
        """Return the settings that a saved model must agree with; compare with `netbuf_gym.tasks.require_schema`."""
        return self.engine.schema()

    @property
    def spec(self) -> EnvSpec | None:
        """The specification in Gymnasium's registry; None for an environment made without it."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        task, own = self.engine.task.name, None if spec is None else tasks.find_task(spec.id)
        if spec is not None and own not in (None, task):
            self.engine.close()
            raise ConfigError(f"task = {task!r} is not that of {spec.id}; valid: {own!r}, or no task")
        if spec is not None:
            spec.kwargs = _convert_to_json(spec.kwargs, self.engine.record)
        self._spec = spec
        separate_wrapper_copies()


def _convert_to_json(kwargs: dict[str, Any], record: tasks.TaskRecord) -> dict[str, Any]:
    """Return the same arguments with scenario and reward of the task as dicts, for `spec.to_json()`."""
    plain = dict(kwargs)
    if isinstance(plain.get("scenario"), Scenario) and not plain["scenario"].has_own_controls:  # Python code stays an object
        plain["scenario"] = plain["scenario"].to_dict()
    if isinstance(plain.get("autoreset_mode"), AutoresetMode):
        plain["autoreset_mode"] = plain["autoreset_mode"].value
    if type(plain.get("reward")) in record.rewards.values():
        plain["reward"] = reward_spec(plain["reward"])
    return plain


def environment_records() -> dict[str, tasks.TaskRecord]:
    """Return the record of the task of every environment id."""
    return {name: record for record in tasks.records() for name in record.ids}


def environment_table(linked: bool = False) -> str:
    """Return a Markdown table of the environments and their reference pages; `linked`: with links to pages of `docs/`."""
    rows = []
    for name, record in environment_records().items():
        reference = f"`{record.rules.__module__.removesuffix('.task')}.{record.rules.__name__}`"
        page = f", [page]({record.page})" if linked and record.page else ""
        rows.append([f"`{name}`", record.summary, reference + page])
    return markdown_table(["Id", "Who decides what", "Reference"], rows)
