"""Steps of 256 worlds, counted by valgrind between two points: what benchmarks/instructions.py runs for its Python cases.

    valgrind --tool=callgrind --instr-atstart=no python benchmarks/counted_steps.py RECIPE SETTLE LENGTH MODULE COUNTING

MODULE is the native module that the package on PYTHONPATH takes, COUNTING the shared library of benchmarks/counting.cc.
Prints the steps of single worlds that were counted.
"""

import ctypes
import importlib.util
import sys
from pathlib import Path

WORLDS = 256
ACTION = 5


def load_native(path: Path) -> None:
    """Import a file as the package's native module."""
    spec = importlib.util.spec_from_file_location("netbuf_gym._core", path)
    assert spec is not None and spec.loader is not None
    sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[spec.name])


def main() -> None:
    recipe, settle, length, module, counting = sys.argv[1:]
    load_native(Path(module))
    import gymnasium as gym
    import numpy as np

    import netbuf_gym  # noqa: F401

    count = ctypes.CDLL(counting)
    env = gym.make_vec("netbuf/CongestionWindow-v0", num_envs=WORLDS, scenario="ppcc/4", recipe=recipe)
    actions = np.full(WORLDS, ACTION)
    env.reset(seed=1)
    for step in range(int(settle) + int(length)):
        if step == int(settle):
            count.start_counting()
        env.step(actions)
    count.stop_counting()
    env.close()
    print(WORLDS * int(length), 0)


if __name__ == "__main__":
    main()
