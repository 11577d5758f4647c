"""Tasks: one folder and one record each, of pure, batch-first rules, and whatever else is known of a task.

`names()` are those registered, `get(name)` a task's record, and `register(record)` adds one of your own.
"""

from netbuf_gym.tasks import congestion_window, queue_threshold
from netbuf_gym.tasks.congestion_window.rules import CongestionWindow
from netbuf_gym.tasks.pages import documented, feature_table
from netbuf_gym.tasks.queue_threshold.rules import QueueThreshold
from netbuf_gym.tasks.record import TaskRecord, get, names, records, register, register_reward, task_of, unregister
from netbuf_gym.tasks.schema import require_schema
from netbuf_gym.tasks.task import Feature, Panel, Task

for _module in (congestion_window, queue_threshold):
    register(_module.RECORD)

__all__ = [
    "CongestionWindow",
    "Feature",
    "Panel",
    "QueueThreshold",
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
    "task_of",
    "unregister",
]
