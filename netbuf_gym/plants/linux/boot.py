"""The script that a world's process runs: `python -I -S boot.py SOCKET OWNER`.

SOCKET is the descriptor of the process's end of a socket pair, OWNER the process that it serves. The packages above this one
are registered without running them, so that nothing is imported beyond what a world needs.
"""

import os
import sys
import types


def register_package(name: str, path: str) -> None:
    """Register a package without running its `__init__`."""
    module = types.ModuleType(name)
    module.__path__ = [path]
    sys.modules[name] = module


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    plants = os.path.dirname(here)
    register_package("netbuf_gym", os.path.dirname(plants))
    register_package("netbuf_gym.plants", plants)
    register_package("netbuf_gym.plants.linux", here)
    from netbuf_gym.plants.linux.guard import main

    main(int(sys.argv[1]), int(sys.argv[2]))
