"""The receiver-window task: a TCP receiver decides how much the sender may have in flight."""

from netbuf_gym.controllers import KeepAction
from netbuf_gym.rewards import RunningUtility
from netbuf_gym.tasks.receiver_window.actions import FACTORS, NUWA_FACTORS
from netbuf_gym.tasks.receiver_window.baselines import CONTROLLERS, RECEIVERS, CongestionControl, ReceiverControl
from netbuf_gym.tasks.receiver_window.meter import UtilityMeter, nuwa_utility
from netbuf_gym.tasks.receiver_window.metrics import MEASURES
from netbuf_gym.tasks.receiver_window.observations import DEFAULT_FEATURES, NUWA_FEATURES
from netbuf_gym.tasks.receiver_window.random_paths import NETWORKS, ReceiverPaths, receiver_world
from netbuf_gym.tasks.receiver_window.refill import DataRefill, Refill
from netbuf_gym.tasks.receiver_window.report import episode_reports
from netbuf_gym.tasks.receiver_window.rewards import REWARDS
from netbuf_gym.tasks.receiver_window.scenarios import SCENARIOS
from netbuf_gym.tasks.receiver_window.task import ReceiverWindow
from netbuf_gym.tasks.receiver_window.telemetry import RECEIVER, TELEMETRY
from netbuf_gym.tasks.record import TaskRecord

RECORD = TaskRecord(
    rules=ReceiverWindow,
    ids=("netbuf/ReceiverWindow-v0",),
    summary="a TCP receiver: how many bytes it lets the sender have in flight, every 100 ms, Nuwa's rule beneath it or not",
    rewards=REWARDS,
    controllers=CONTROLLERS,
    measures=MEASURES,
    scenarios=SCENARIOS,
    page="receiver_window.md",
)

__all__ = [
    "CONTROLLERS",
    "DEFAULT_FEATURES",
    "FACTORS",
    "MEASURES",
    "NETWORKS",
    "NUWA_FACTORS",
    "NUWA_FEATURES",
    "RECEIVER",
    "RECEIVERS",
    "RECORD",
    "REWARDS",
    "SCENARIOS",
    "TELEMETRY",
    "CongestionControl",
    "DataRefill",
    "KeepAction",
    "ReceiverControl",
    "ReceiverPaths",
    "ReceiverWindow",
    "Refill",
    "RunningUtility",
    "UtilityMeter",
    "episode_reports",
    "nuwa_utility",
    "receiver_world",
]
