"""Modules that a start must not import: each takes a tenth of a second or more, and is needed by few."""

import subprocess
import sys

import pytest

HEAVY = {"hydra", "matplotlib", "pandas", "scipy", "stable_baselines3", "sympy", "torch"}
STARTS = {
    "help": ("from netbuf_gym.__main__ import main; sys.argv[1:] = ['--help']; main()", {*HEAVY, "gymnasium", "numpy"}),
    "import": ("import netbuf_gym", {*HEAVY, "gymnasium", "numpy"}),
    "env": (
        "import gymnasium, netbuf_gym; env = gymnasium.make('netbuf/CongestionWindow-v0'); env.reset(seed=1); env.close()",
        HEAVY,
    ),
    "trace": ("import netbuf_gym; netbuf_gym.traces.generate('wifi', duration_s=10, seed=1)", HEAVY),
    "leaderboard": ("from netbuf_gym.__main__ import main; sys.argv[1:] = ['leaderboard', 'show']; main()", HEAVY),
    "agent": (
        "import numpy, netbuf_gym; agent = netbuf_gym.zoo.load('congestion_window/ppo')\n"
        "agent.predict(numpy.zeros(agent.observation_space.shape, numpy.float32))",
        {"matplotlib", "scipy", "sympy", "torch._dynamo"},
    ),
}
"""Code of each start, and what it does without."""


@pytest.mark.parametrize("start", STARTS)
def test_a_start_imports_no_more_than_it_uses(start):
    code, without = STARTS[start]
    code = f"import sys\n{code}\nprint('imported:', *sorted({without!r} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1].split() == ["imported:"]


def test_a_help_reads_no_metadata_of_packages():
    code = "import sys; sys.argv, sys.orig_argv = ['-m', '--help'], ['netbuf_gym']; before = {*sys.modules}\n"
    code += "from netbuf_gym.__main__ import main; main(); print(*{'importlib.metadata'} & ({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""
