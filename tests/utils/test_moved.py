"""Former names of modules: what pages of version 0.1 named is still imported, and said to have moved."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import netbuf_gym
from netbuf_gym.errors import ConfigError
from netbuf_gym.utils import checkout, moved, statistics

DOCUMENTED = """
baselines.evaluate cli.main contenders.Callback contenders.ConstantAction contenders.Contender contenders.Decider
contenders.Model
contenders.Named contenders.RandomAction env.Env errors.ConfigError executors.executor integrations.normalizing
integrations.sb3.VectorEnvAdapter multiagent.ParallelEnv page_blocks pages plants.Advance plants.AgentKind plants.Plant
plants.counters.sender_counters plants.linux.diag.TcpSockets plants.linux.machine plants.linux.readings.LiveReadings
plants.linux.tcp_info plants.register plots.COLOURS plots.log_ticks results rewards.Telemetry rewards.ThreeSigmaRange
rewards.in_range rewards.reward_of rollout.draw rollout.evaluate rollout.play rollout.player scenarios.dumbbell simulate
stats.mean_interval suites.field.suite.FieldSuite suites.freeze suites.recording.Record suites.running suites.scoring
suites.suite
tasks.CongestionWindow tasks.HostBuffers tasks.QueueThreshold tasks.ReceiverWindow tasks.Task tasks.TaskRecord
tasks.congestion_window.CongestionWindow tasks.congestion_window.contenders.CongestionControl
tasks.congestion_window.contenders.names tasks.congestion_window.telemetry.SENDER tasks.get tasks.host_buffers.GRID
tasks.host_buffers.HostBuffers tasks.host_buffers.Setting tasks.host_buffers.Settings tasks.host_buffers.WithCongestionControl
tasks.measures.Measures tasks.names tasks.pages.documented tasks.pages.feature_table tasks.queue_threshold.BufferScheme
tasks.queue_threshold.FixedThresholds tasks.queue_threshold.Limits tasks.queue_threshold.Pulse
tasks.queue_threshold.QueueThreshold tasks.receiver_window.ReceiverControl tasks.receiver_window.ReceiverWindow
tasks.record.TaskRecord tasks.register tasks.register_reward tasks.task.Feature tasks.task.Task traces.generate traces.read
traffic_results.ProbeResult traffic_results.SwitchResult traffic_results.TrafficResult udp_results.UdpResult
validate.dumbbells.NS3_DISCIPLINES vector.VectorEnv video_results.VideoResult wrappers.exchange_reward zoo.agent.Agent zoo.build
zoo.campaign zoo.cloning zoo.config.Source zoo.contending zoo.curves zoo.leaderboard zoo.load zoo.names zoo.ppo.BatchPPO
zoo.recording zoo.scores zoo.studies zoo.tables zoo.train.train zoo.tune
""".split()
"""Names below `netbuf_gym` that README, pages, notebooks and tutorials used at commit 54368972."""
STUDIES = "auter.auter auter.paper auter.trained auter.tune_constant nuwa.claims ppcc.paper rlbm.compare rlbm.families".split()
"""Likewise below `netbuf_gym.reproduce`, now in the checkout's `studies`; scripts that were run once have gone."""


def find(name):
    """Whatever a dotted name stands for: a module, or an attribute of one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise ImportError(name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* now:DeprecationWarning")
@pytest.mark.parametrize("name", DOCUMENTED)
def test_documented_names_are_found(name):
    assert find(f"netbuf_gym.{name}") is not None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* now:DeprecationWarning")
@pytest.mark.skipif(not Path(netbuf_gym.__file__).parents[1].joinpath("studies").is_dir(), reason="not in a checkout")
@pytest.mark.parametrize("name", STUDIES)
def test_studies_are_found_by_their_former_names(name):
    present = moved.find_present_name(f"netbuf_gym.reproduce.{name}")
    assert importlib.import_module(f"netbuf_gym.reproduce.{name}").__name__ == present


@pytest.mark.parametrize("name", sorted(moved.KNOWN))
def test_the_present_name_is_a_module(name):
    present = moved.find_present_name(name if name.startswith("studies") else f"netbuf_gym.{name}")
    assert present.startswith("studies") or importlib.util.find_spec(present) is not None
    assert moved.find_present_name(present) is None, "moved twice"


@pytest.mark.slow
def test_former_names_are_imported_from_their_packages():
    """`from PACKAGE import MODULE`, each before anything else has imported the module."""
    lines = []
    for name in sorted(moved.MOVED):
        package, _, module = f"netbuf_gym.{name}".rpartition(".")
        if not (package.startswith("netbuf_gym.reproduce") or name == "reproduce"):
            present = moved.find_present_name(f"netbuf_gym.{name}")
            lines.append(f"from {package} import {module}; assert {module}.__name__ == {present!r}")
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True)
    assert done.returncode == 0 and len(lines) > 150, done.stderr


def test_a_former_name_is_one_module_and_warns():
    sys.modules.pop("netbuf_gym.stats", None)
    with pytest.warns(DeprecationWarning, match=r"^netbuf_gym\.stats is netbuf_gym\.utils\.statistics now$") as told:
        import netbuf_gym.stats  # noqa: F401
    assert sys.modules["netbuf_gym.stats"] is statistics and told[0].filename == __file__


@pytest.mark.parametrize(("module", "former"), [(module, name) for module, names in moved.RENAMED.items() for name in names])
def test_renamed_members_are_found_by_their_former_names(module, former):
    package = importlib.import_module(f"netbuf_gym.{module}")
    present = moved.RENAMED[module][former]
    with pytest.warns(DeprecationWarning, match=rf"\.{former} is netbuf_gym\.{module}\.{present} now$") as told:
        assert getattr(package, former) is getattr(package, present)
    assert told[0].filename == __file__


def test_what_has_not_moved_is_left_to_python():
    for name in ("netbuf_gym", "netbuf_gym.tasks.task", "netbuf_gym.cli", "netbuf_gym.nothing", "stats", "other.stats"):
        assert moved.find_present_name(name) is None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        netbuf_gym.nothing  # noqa: B018


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "status", "says"),
    [
        ("suites.freeze", 0, "netbuf_gym.suites.freeze is netbuf_gym.evaluation.suites.freeze now"),
        ("zoo.tables", 1, "netbuf_gym.zoo.tables has gone; valid: netbuf-gym results pages"),
        ("suites", 1, "netbuf_gym.suites is netbuf_gym.evaluation.suites now, a package that cannot be run"),
    ],
)
def test_a_command_runs_under_its_former_name(name, status, says):
    done = subprocess.run([sys.executable, "-m", f"netbuf_gym.{name}", "--help"], capture_output=True, text=True)
    assert done.returncode == status and says in done.stderr
    assert status or "usage: python -m netbuf_gym.evaluation.suites.freeze" in done.stdout


def test_studies_outside_of_a_checkout_are_no_attribute(monkeypatch):
    def refuse():
        raise ConfigError("no checkout")

    monkeypatch.setattr(checkout, "require_checkout", refuse)
    monkeypatch.delattr(netbuf_gym, "reproduce", raising=False)
    with pytest.warns(DeprecationWarning):
        assert not hasattr(netbuf_gym, "reproduce")
