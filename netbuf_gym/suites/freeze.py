"""Draws the worlds of a suite anew and writes them as a version: python -m netbuf_gym.suites.freeze gate --version 2"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from netbuf_gym.errors import ConfigError
from netbuf_gym.suites import frozen
from netbuf_gym.suites.catalogue import DRAWN


def freeze(name: str, version: int) -> str:
    """Writes the worlds of a version of a suite; returns their digest.

    Raises:
        ConfigError: The file has other worlds of this version.
    """
    worlds, file = DRAWN[name](version), frozen.file_of(name)
    digest = frozen.digest_of(worlds)
    if file.is_file():
        old = json.loads(file.read_text(encoding="utf-8"))
        if old["version"] == version and old["digest"] != digest:
            valid = f"--version {version + 1}"
            raise ConfigError(f"{file}: version {version} of {name} has other worlds, digest {old['digest']}; valid: {valid}")
    frozen.write(file, name, version, worlds)
    return digest


def main(argv: Sequence[str] | None = None) -> int:
    """Freezes one suite, or all."""
    parser = argparse.ArgumentParser(prog="python -m netbuf_gym.suites.freeze", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("suite", nargs="*", choices=[*DRAWN, []], help="those to freeze (default: all)")
    parser.add_argument("--version", type=int, default=1, help="of their worlds (default: 1)")
    options = parser.parse_args(argv)
    for name in options.suite or DRAWN:
        print(f"{frozen.file_of(name)}: version {options.version}, digest {freeze(name, options.version)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
