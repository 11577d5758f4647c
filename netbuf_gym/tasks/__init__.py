"""Tasks: one folder and one record each, of pure, batch-first rules, and whatever else is known of a task.

Every folder here is a task, its `RECORD` the record. `names()` are those registered, `get(name)` a task's record, and
`register(record)` adds one that lives elsewhere.
"""

import importlib
import pkgutil

from netbuf_gym.tasks.congestion_window.task import CongestionWindow
from netbuf_gym.tasks.host_buffers.task import HostBuffers
from netbuf_gym.tasks.queue_threshold.task import QueueThreshold
from netbuf_gym.tasks.receiver_window.task import ReceiverWindow
from netbuf_gym.tasks.record import TaskRecord, get, names, records, register, register_reward, reward_for, task_of, unregister
from netbuf_gym.tasks.schema import require_schema
from netbuf_gym.tasks.tables import documented, feature_table, spaces_table, telemetry_table
from netbuf_gym.tasks.task import Feature, Panel, Task

FIRST = "congestion_window"
"""What environments are of that are not told their task."""

_folders = {module.name for module in pkgutil.iter_modules(__path__) if module.ispkg}
for _name in (FIRST, *sorted(_folders - {FIRST})):
    register(importlib.import_module(f"{__name__}.{_name}").RECORD)

__all__ = [
    "FIRST",
    "CongestionWindow",
    "Feature",
    "HostBuffers",
    "Panel",
    "QueueThreshold",
    "ReceiverWindow",
    "Task",
    "TaskRecord",
    "documented",
    "feature_table",
    "get",
    "names",
    "records",
    "register",
    "register_reward",
    "require_schema",
    "reward_for",
    "spaces_table",
    "task_of",
    "telemetry_table",
    "unregister",
]
