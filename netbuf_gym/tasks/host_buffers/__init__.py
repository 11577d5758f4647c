"""The host-buffers task: a host decides how large its ring, its socket buffers and its TCP buffers are."""

from netbuf_gym.tasks.host_buffers.adaptive import AdaptiveControl
from netbuf_gym.tasks.host_buffers.baselines import CONTROLLERS, Bpftune, KeepSettings, Setting, WithCongestionControl
from netbuf_gym.tasks.host_buffers.metrics import MEASURES
from netbuf_gym.tasks.host_buffers.observations import AUTER_FEATURES, CONTROL_FEATURES, DEFAULT_FEATURES
from netbuf_gym.tasks.host_buffers.random_paths import HostPaths, make_host_world
from netbuf_gym.tasks.host_buffers.report import episode_reports
from netbuf_gym.tasks.host_buffers.rewards import REWARDS, AuterReward, HostUtility
from netbuf_gym.tasks.host_buffers.scenarios import SCENARIOS
from netbuf_gym.tasks.host_buffers.settings import CHOICES, DEFAULT, GRID, NAMED, Settings
from netbuf_gym.tasks.host_buffers.task import HostBuffers
from netbuf_gym.tasks.host_buffers.telemetry import HOST, TELEMETRY
from netbuf_gym.tasks.host_buffers.tracker import Meter
from netbuf_gym.tasks.record import TaskRecord

RECORD = TaskRecord(
    rules=HostBuffers,
    ids=("netbuf/HostBuffers-v0",),
    summary="a host: the sizes of its ring, socket and TCP buffers, every 3 s",
    rewards=REWARDS,
    controllers=CONTROLLERS,
    measures=MEASURES,
    scenarios=SCENARIOS,
    page="host_buffers.md",
)

__all__ = [
    "AUTER_FEATURES",
    "CHOICES",
    "CONTROLLERS",
    "CONTROL_FEATURES",
    "DEFAULT",
    "DEFAULT_FEATURES",
    "GRID",
    "HOST",
    "MEASURES",
    "NAMED",
    "RECORD",
    "REWARDS",
    "SCENARIOS",
    "TELEMETRY",
    "AdaptiveControl",
    "AuterReward",
    "Bpftune",
    "HostBuffers",
    "HostPaths",
    "HostUtility",
    "KeepSettings",
    "Meter",
    "Setting",
    "Settings",
    "WithCongestionControl",
    "episode_reports",
    "make_host_world",
]
