"""Tasks of the package are imported when they are first asked for, and known by name and id before."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADED = "[name for name in tasks.names() if f'netbuf_gym.tasks.{name}.task' in sys.modules]"


def run(code):
    code = f"import sys\nfrom netbuf_gym import scenarios, tasks\nfrom netbuf_gym.errors import ConfigError\n{code}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        ("tasks.names()", "[]"),
        ("assert tasks.find_task('netbuf/HostBuffers-v0') == 'host_buffers' and tasks.find_task('other') is None", "[]"),
        ("assert tasks.get('host_buffers').name == 'host_buffers'", "['host_buffers']"),
        ("assert tasks.get().name == 'congestion_window' and scenarios.get('ppcc/2').name", "['congestion_window']"),
        ("assert tasks.HostBuffers.name == 'host_buffers'", "['host_buffers']"),
        ("scenarios.get('rlbm/default')", "['congestion_window', 'host_buffers', 'queue_threshold', 'receiver_window']"),
    ],
)
def test_what_is_asked_for_is_imported(code, loaded):
    assert run(f"{code}\nprint({LOADED})") == loaded


def test_the_scheme_of_agents_is_known_without_a_task():
    code = (
        "arrivals = [scenarios.PoissonArrivals(flows_per_s=1, sizes=scenarios.WEB_SEARCH)]\n"
        "world = scenarios.shared_buffer(senders=['cubic'] * 2, arrivals=arrivals)\n"
        "print(type(world.with_scheme('agent').switches[0].admission).__name__)"
    )
    assert run(f"{code}\nprint({LOADED})") == "AgentThresholds\n[]"


def test_a_task_is_unregistered_whether_it_was_imported_or_not():
    code = (
        "import gymnasium as gym\n"
        "tasks.unregister('queue_threshold')\n"
        "print(tasks.names(), tasks.find_task('netbuf/QueueThreshold-v0'), 'netbuf/QueueThreshold-v0' in gym.registry)"
    )
    assert run(code) == "['congestion_window', 'host_buffers', 'receiver_window'] None False"


def test_a_name_of_a_task_that_was_not_imported_is_taken():
    code = (
        "from netbuf_gym.tasks.congestion_window import CongestionWindow\n"
        "class Own(CongestionWindow):\n"
        "    name = 'own'\n"
        "own = {'rlbm/default': print}\n"
        "try: tasks.register(tasks.TaskRecord(rules=Own, ids=('own/Own-v0',), summary='x', rewards={}, scenarios=own))\n"
        "except ConfigError as error: print(error)"
    )
    assert run(code) == "scenario 'rlbm/default' is registered already"
    code = (
        "try: scenarios.register('rlbm/default', print)\n"
        "except ConfigError as error: print(error)\n"
        "print(len(tasks.records()), len(scenarios.names()) > 10)"
    )
    assert run(code) == "scenario 'rlbm/default' is registered already\n4 True"


def test_an_id_is_of_the_task_that_has_it():
    code = (
        "rules = tasks.get('congestion_window').rules\n"
        "tasks.unregister('congestion_window')\n"
        "tasks.register(tasks.TaskRecord(rules=rules, ids=('own/Own-v0',), summary='x', rewards={}))\n"
        "print(tasks.find_task('netbuf/CongestionWindow-v0'), tasks.find_task('own/Own-v0'))"
    )
    assert run(code) == "None congestion_window"


def test_threads_may_ask_at_once():
    code = (
        "import threading\n"
        "found = []\n"
        "asked = [lambda name=name: tasks.get(name).name for name in tasks.names()]\n"
        "classes = 'CongestionWindow', 'HostBuffers', 'QueueThreshold', 'ReceiverWindow'\n"
        "asked += [lambda name=name: getattr(tasks, name).name for name in classes]\n"
        "threads = [threading.Thread(target=lambda ask=ask: found.append(ask())) for ask in asked]\n"
        "for one in threads: one.start()\n"
        "for one in threads: one.join()\n"
        "print(*found)"
    )
    assert sorted(run(code).split()) == sorted(2 * ["congestion_window", "host_buffers", "queue_threshold", "receiver_window"])
