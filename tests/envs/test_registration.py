import os
import resource
import subprocess
import sys

import gymnasium as gym
import pytest

from netbuf_gym.envs.registration import environment_records, register_environments
from netbuf_gym.errors import ConfigError

pytestmark = pytest.mark.filterwarnings("error")


def test_importing_registers_and_doing_it_again_is_silent():
    before = {name: gym.spec(name) for name in environment_records()}
    register_environments()
    assert {name: gym.spec(name) for name in environment_records()} == before


@pytest.mark.parametrize("name", environment_records())
def test_both_entry_points_are_registered(name):
    spec = gym.spec(name)
    assert spec.entry_point and spec.vector_entry_point and not spec.nondeterministic


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
    """Processor time of imports from byte code, as pip leaves it: 0.3 s, or on a slower machine twice what Gymnasium takes."""
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
    assert both - without < max(0.3, 2 * (without - neither)), (neither, without, both)


@pytest.mark.parametrize("make", [gym.make, gym.make_vec])
def test_an_id_is_not_given_to_another_task(make):
    with pytest.raises(ConfigError, match=r"task = 'congestion_window'.*netbuf/QueueThreshold-v0"):
        make("netbuf/QueueThreshold-v0", task="congestion_window")
    made = make("netbuf/QueueThreshold-v0", task="queue_threshold")
    assert made.spec.id == "netbuf/QueueThreshold-v0"
