"""The congestion-window task: a TCP sender decides how much data it may have in flight."""

from netbuf_gym.tasks.congestion_window.baselines import (
    CONTROLLERS,
    PLAIN_CONTROLLERS,
    CongestionControl,
    KeepWindow,
    QueueTarget,
)
from netbuf_gym.tasks.congestion_window.metrics import MEASURES
from netbuf_gym.tasks.congestion_window.observations import DEFAULT_FEATURES, PPCC_FEATURES
from netbuf_gym.tasks.congestion_window.report import episode_report
from netbuf_gym.tasks.congestion_window.rewards import REWARDS
from netbuf_gym.tasks.congestion_window.scenarios import SCENARIOS
from netbuf_gym.tasks.congestion_window.task import FACTORS, PPCC_STEPS, CongestionWindow
from netbuf_gym.tasks.congestion_window.telemetry import SENDER, TELEMETRY
from netbuf_gym.tasks.record import TaskRecord

RECORD = TaskRecord(
    rules=CongestionWindow,
    ids=("netbuf/CongestionWindow-v0",),
    summary="a TCP sender: how many bytes it may have in flight, every 100 ms or on every ACK",
    page="congestion_window.md",
    rewards=REWARDS,
    controllers=CONTROLLERS,
    measures=MEASURES,
    scenarios=SCENARIOS,
)

__all__ = [
    "CONTROLLERS",
    "DEFAULT_FEATURES",
    "FACTORS",
    "MEASURES",
    "PLAIN_CONTROLLERS",
    "PPCC_FEATURES",
    "PPCC_STEPS",
    "RECORD",
    "REWARDS",
    "SCENARIOS",
    "SENDER",
    "TELEMETRY",
    "CongestionControl",
    "CongestionWindow",
    "KeepWindow",
    "QueueTarget",
    "episode_report",
]
