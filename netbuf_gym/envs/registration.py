"""Makes the environments known to Gymnasium. Importing `netbuf_gym` does it; doing it again changes nothing."""

from __future__ import annotations

from typing import Any

from gymnasium.envs.registration import EnvSpec

from netbuf_gym import tasks
from netbuf_gym.errors import ConfigError
from netbuf_gym.rewards import reward_spec
from netbuf_gym.scenarios import Scenario
from netbuf_gym.tasks.record import register_ids
from netbuf_gym.tasks.tables import markdown_table
from netbuf_gym.utils.thread_guard import refuse_copies_of_wrapped


class OfItsTask:
    """An environment that an id of another task cannot be given to, as `gym.make(id, task=...)` would."""

    engine: Any
    _spec: EnvSpec | None = None

    @property
    def spec(self) -> EnvSpec | None:
        """How Gymnasium's registry made it, None when it was made without."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        task, own = self.engine.task.name, None if spec is None else tasks.task_of(spec.id)
        if spec is not None and own not in (None, task):
            self.engine.close()
            raise ConfigError(f"task = {task!r} is not that of {spec.id}; valid: {own!r}, which need not be said")
        if spec is not None:
            spec.kwargs = _as_json(spec.kwargs, self.engine.record)
        self._spec = spec
        refuse_copies_of_wrapped()


def _as_json(kwargs: dict[str, Any], record: tasks.TaskRecord) -> dict[str, Any]:
    """The same arguments, a scenario and a reward of the task's as the dicts that stand for them, for `spec.to_json()`."""
    plain = dict(kwargs)
    if isinstance(plain.get("scenario"), Scenario) and not plain["scenario"].own_controls:  # Python code stays an object
        plain["scenario"] = plain["scenario"].to_dict()
    if type(plain.get("reward")) in record.rewards.values():
        plain["reward"] = reward_spec(plain["reward"])
    return plain


def environments() -> dict[str, tasks.TaskRecord]:
    """Every environment's id, and the record of its task."""
    return {name: record for record in tasks.records() for name in record.ids}


def environment_table(linked: bool = False) -> str:
    """A Markdown table of the environments and of where their reference pages are; `linked`: with pages of `docs/`."""
    rows = []
    for name, record in environments().items():
        reference = f"`{record.rules.__module__.removesuffix('.task')}.{record.rules.__name__}`"
        page = f", [page]({record.page})" if linked and record.page else ""
        rows.append([f"`{name}`", record.summary, reference + page])
    return markdown_table(["Id", "Who decides what", "Reference"], rows)


def register_environments() -> None:
    """Registers every id of every task that Gymnasium does not know yet."""
    for record in tasks.records():
        register_ids(record)
