"""The script that a world's process runs: `python -I -S boot.py SOCKET OWNER`.

SOCKET is the descriptor of its end of a socket pair, OWNER the process that it serves. The packages above this one are
made known without running them, so that what a world needs is all that is imported.
"""

import os
import sys
import types


def known(name: str, path: str) -> None:
    """Makes a package known without running it."""
    module = types.ModuleType(name)
    module.__path__ = [path]
    sys.modules[name] = module


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    plants = os.path.dirname(here)
    known("netbuf_gym", os.path.dirname(plants))
    known("netbuf_gym.plants", plants)
    known("netbuf_gym.plants.linux", here)
    from netbuf_gym.plants.linux.guard import main

    main(int(sys.argv[1]), int(sys.argv[2]))
