import os
import resource
import subprocess
import sys

import gymnasium as gym
import pytest

from netbuf_gym.envs.registration import environment_records
from netbuf_gym.errors import ConfigError
from netbuf_gym.utils import startup

pytestmark = pytest.mark.filterwarnings("error")


def test_importing_registers_and_doing_it_again_is_silent():
    before = {name: gym.spec(name) for name in environment_records()}
    startup.register_own_ids()
    assert {name: gym.spec(name) for name in environment_records()} == before


def test_what_is_registered_before_the_tasks_are_imported_is_theirs():
    assert {name: record.name for name, record in environment_records().items() if name in startup.IDS} == startup.IDS


@pytest.mark.parametrize("first", ["netbuf_gym, gymnasium", "gymnasium, netbuf_gym", "netbuf_gym.envs.vector_env, gymnasium"])
def test_ids_are_registered_whichever_is_imported_first(first):
    code = f"import {first}; import importlib.util; print(*[name for name in gymnasium.registry if 'netbuf' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == list(startup.IDS)


def test_a_look_for_gymnasium_does_not_lose_the_ids():
    code = "import netbuf_gym; from importlib.util import find_spec; find_spec('gymnasium'); import gymnasium as gym"
    code += "; print(gym.make('netbuf/CongestionWindow-v0').spec.id, gym.__spec__.loader)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("netbuf/CongestionWindow-v0")


def test_gymnasium_imports_the_package_by_the_name_of_the_id():
    code = "import gymnasium as gym; print(gym.make('netbuf_gym:netbuf/CongestionWindow-v0').spec.id)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "netbuf/CongestionWindow-v0"


def test_environments_need_no_learning_library():
    code = """
import sys
import gymnasium, netbuf_gym
gymnasium.make_vec("netbuf/CongestionWindow-v0", num_envs=2).reset(seed=0)
heavy = {"torch", "stable_baselines3", "hydra", "omegaconf", "matplotlib", "pandas", "pettingzoo"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_importing_takes_little_beyond_gymnasium(tmp_path):
    """Processor time of imports from byte code, as pip leaves it: at most as much again as Gymnasium takes."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def seconds(code):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    seconds("import netbuf_gym")
    neither, without, both = (
        min(seconds(code) for _ in range(5)) for code in ("pass", "import gymnasium", "import gymnasium, netbuf_gym")
    )
    assert both - without < without - neither, (neither, without, both)


@pytest.mark.parametrize("make", [gym.make, gym.make_vec])
def test_an_id_is_not_given_to_another_task(make):
    with pytest.raises(ConfigError, match=r"task = 'congestion_window'.*netbuf/QueueThreshold-v0"):
        make("netbuf/QueueThreshold-v0", task="congestion_window")
    made = make("netbuf/QueueThreshold-v0", task="queue_threshold")
    assert made.spec.id == "netbuf/QueueThreshold-v0"
