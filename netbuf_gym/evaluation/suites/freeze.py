"""Draw the worlds of a suite anew and write them as a version.

python -m netbuf_gym.evaluation.suites.freeze gate --version 2
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from netbuf_gym.evaluation.suites import frozen
from netbuf_gym.evaluation.suites.catalogue import DRAWN


def freeze(name: str, version: int) -> str:
    """Writes the worlds of a version of a suite; returns their digest.

    Raises:
        ConfigError: This version was of other worlds.
    """
    worlds = DRAWN[name](version)
    frozen.write(frozen.file_of(name), name, version, worlds)
    return frozen.digest_of(worlds)


def main(argv: Sequence[str] | None = None) -> int:
    """Freezes one suite, or all."""
    parser = argparse.ArgumentParser(
        prog="python -m netbuf_gym.evaluation.suites.freeze", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("suite", nargs="*", choices=[*DRAWN, []], help="those to freeze (default: all)")
    parser.add_argument("--version", type=int, default=1, help="of their worlds (default: 1)")
    options = parser.parse_args(argv)
    for name in options.suite or DRAWN:
        print(f"{frozen.file_of(name)}: version {options.version}, digest {freeze(name, options.version)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
