"""Tasks: pure, batch-first rules of what an agent observes and what its decisions mean. One file per task."""

from netbuf_gym.tasks.congestion_window import CongestionWindow
from netbuf_gym.tasks.schema import require_schema

TASKS = {CongestionWindow.name: CongestionWindow}

__all__ = ["TASKS", "CongestionWindow", "require_schema"]
