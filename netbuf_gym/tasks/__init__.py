"""Tasks: pure, batch-first rules of what an agent observes and what its decisions mean. One file per task."""

from netbuf_gym.tasks.congestion_window import CongestionWindow
from netbuf_gym.tasks.queue_threshold import QueueThreshold
from netbuf_gym.tasks.schema import require_schema
from netbuf_gym.tasks.task import Feature, Task

TASKS: dict[str, type[Task]] = {kind.name: kind for kind in (CongestionWindow, QueueThreshold)}

__all__ = ["TASKS", "CongestionWindow", "Feature", "QueueThreshold", "Task", "require_schema"]
