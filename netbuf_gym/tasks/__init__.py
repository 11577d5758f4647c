"""Tasks: one folder and one record each, with pure, batch-first rules and everything else that belongs to a task.

Every folder here is a task, with its `TaskRecord` as `RECORD`. `names()` lists the registered tasks, `get(name)` returns the
record of one, and `register(record)` adds a task defined elsewhere.
"""

import importlib
import pkgutil

from netbuf_gym.tasks.features import Feature, documented, feature_table
from netbuf_gym.tasks.record import (
    TaskRecord,
    find_task,
    get,
    make_task_reward,
    names,
    records,
    register,
    register_module,
    register_reward,
    unregister,
)
from netbuf_gym.tasks.schema import require_schema
from netbuf_gym.tasks.tables import spaces_table, telemetry_table
from netbuf_gym.tasks.task import Panel, Task
from netbuf_gym.utils.late_members import late_members
from netbuf_gym.utils.startup import IDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netbuf_gym.tasks.congestion_window.task import CongestionWindow
    from netbuf_gym.tasks.host_buffers.task import HostBuffers
    from netbuf_gym.tasks.queue_threshold.task import QueueThreshold
    from netbuf_gym.tasks.receiver_window.task import ReceiverWindow

__getattr__, __dir__ = late_members(
    __name__,
    {
        "congestion_window.task": ["CongestionWindow"],
        "host_buffers.task": ["HostBuffers"],
        "queue_threshold.task": ["QueueThreshold"],
        "receiver_window.task": ["ReceiverWindow"],
    },
)

FIRST = "congestion_window"
"""Task of environments created without a task."""

_folders = {module.name for module in pkgutil.iter_modules(__path__) if module.ispkg}
for _name in (FIRST, *sorted(_folders - {FIRST})):
    if _name in IDS.values():
        register_module(_name, f"{__name__}.{_name}")
for _name in sorted(_folders - set(IDS.values())):  # of a task that was added, its record alone knows the ids
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
    "find_task",
    "get",
    "make_task_reward",
    "names",
    "records",
    "register",
    "register_reward",
    "require_schema",
    "spaces_table",
    "telemetry_table",
    "unregister",
]
