"""Draw the worlds of a suite anew and write them as a version.

python -m netbuf_gym.evaluation.suites.freeze gate --version 2
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from netbuf_gym.evaluation.suites import frozen
from netbuf_gym.evaluation.suites.catalogue import DRAW_WORLDS
from netbuf_gym.utils.overrides import read_whole


def draw_worlds(name: str, version: int) -> list[dict[str, Any]]:
    """Return the worlds of a version of a suite, as they are written to its file."""
    worlds = DRAW_WORLDS[name](version)
    return worlds if version == 1 else [one | {"start_jitter_ms": frozen.START_JITTER_MS} for one in worlds]


def freeze(name: str, version: int) -> str:
    """Write the worlds of a version of a suite and return their digest; from the second on flows' starts are drawn by the seed.

    Raises:
        ConfigError: If this version already has other worlds.
    """
    worlds = draw_worlds(name, version)
    frozen.write(frozen.get_file(name), name, version, worlds)
    return frozen.compute_digest(worlds)


def main(argv: Sequence[str] | None = None) -> int:
    """Freeze the given suites, or all of them."""
    parser = argparse.ArgumentParser(
        prog="python -m netbuf_gym.evaluation.suites.freeze", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("suite", nargs="*", choices=[*DRAW_WORLDS, []], help="those to freeze (default: all)")
    parser.add_argument("--version", type=read_whole, default=1, help="of their worlds (default: 1)")
    options = parser.parse_args(argv)
    for name in options.suite or DRAW_WORLDS:
        print(f"{frozen.get_file(name)}: version {options.version}, digest {freeze(name, options.version)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
