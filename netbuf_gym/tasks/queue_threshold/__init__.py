"""The queue-threshold task: a shared-buffer switch decides how long its queues may grow."""

from netbuf_gym.tasks.queue_threshold.actions import GRIDS
from netbuf_gym.tasks.queue_threshold.baselines import CONTROLLERS, BufferScheme, FixedThresholds
from netbuf_gym.tasks.queue_threshold.brief_pulse import BriefPulse
from netbuf_gym.tasks.queue_threshold.families import SwitchFamilies
from netbuf_gym.tasks.queue_threshold.metrics import MEASURES
from netbuf_gym.tasks.queue_threshold.report import switch_report
from netbuf_gym.tasks.queue_threshold.rewards import REWARDS, SwitchLog, SwitchUtility, ThesisCode, ThesisText
from netbuf_gym.tasks.queue_threshold.scenarios import CELLS, QUEUE_PACKETS, SCENARIOS, RandomSharedBuffer
from netbuf_gym.tasks.queue_threshold.switch_rules import Limits, Pulse, PulseBurst
from netbuf_gym.tasks.queue_threshold.task import QueueThreshold
from netbuf_gym.tasks.queue_threshold.telemetry import switch_kind, switch_telemetry
from netbuf_gym.tasks.record import TaskRecord

RECORD = TaskRecord(
    rules=QueueThreshold,
    ids=("netbuf/QueueThreshold-v0",),
    summary="a shared-buffer switch: how long each of its queues may grow, every 100 or 10 ms",
    rewards=REWARDS,
    controllers=CONTROLLERS,
    measures=MEASURES,
    scenarios=SCENARIOS,
    patterns=(CELLS,),
    page="queue_threshold.md",
)

__all__ = [
    "CONTROLLERS",
    "GRIDS",
    "MEASURES",
    "QUEUE_PACKETS",
    "RECORD",
    "REWARDS",
    "SCENARIOS",
    "BriefPulse",
    "BufferScheme",
    "FixedThresholds",
    "Limits",
    "Pulse",
    "PulseBurst",
    "QueueThreshold",
    "RandomSharedBuffer",
    "SwitchFamilies",
    "SwitchLog",
    "SwitchUtility",
    "ThesisCode",
    "ThesisText",
    "switch_kind",
    "switch_report",
    "switch_telemetry",
]
