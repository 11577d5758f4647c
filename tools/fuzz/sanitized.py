"""The native module under sanitizers: found in its build folder, in a process that has their run time preloaded."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

NAME = "netbuf_gym._core"
RUN_TIMES = ("libasan", "libubsan", "libstdc++")
"""Libraries that a module that is loaded later needs first; without libstdc++ the sanitizers miss what throws."""
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:detect_odr_violation=0:quarantine_size_mb=16",
    "UBSAN_OPTIONS": "halt_on_error=1:abort_on_error=1:print_stacktrace=1",
}


class Finder:
    """Finds the native module, and nothing else, in a file of one's own."""

    def __init__(self, path: Path):
        self.path = path

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None):
        """See `importlib.abc.MetaPathFinder`."""
        if name != NAME:
            return None
        loader = importlib.machinery.ExtensionFileLoader(name, str(self.path))
        return importlib.util.spec_from_file_location(name, self.path, loader=loader)


def find_module(build: Path) -> Path:
    """Find the module in a build folder.

    Raises:
        SystemExit: there is none.
    """
    found = sorted(build.glob("_core*.so"))
    if not found:
        raise SystemExit(f"{build}: holds no _core*.so; valid: a build folder with the module, as `make fuzz` makes one")
    return found[0].resolve()


def list_run_times(module: Path) -> list[str]:
    """List the sanitizers' libraries that a module was linked with, and that of C++; none of a module without sanitizers."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    linked = subprocess.run(["ldd", str(module)], capture_output=True, text=True, check=True, env=environment).stdout
    found = dict(re.findall(r"(lib[\w+]+)\.so\S* => (\S+)", linked))
    if "libasan" not in found:
        return []
    return [found[name] for name in RUN_TIMES if name in found]


def enter_sanitized(build: Path | None) -> str:
    """Make this process one that loads the module of a build folder, by starting it anew where a run time is to be preloaded.

    Returns:
        What the module is checked by, for reports.
    """
    if build is None:
        return "none"
    module = find_module(build)
    libraries = list_run_times(module)
    if libraries and not os.environ.get("LD_PRELOAD", "").startswith(libraries[0]):
        environment = {**os.environ, **OPTIONS, "LD_PRELOAD": ":".join(libraries)}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
    sys.meta_path.insert(0, Finder(module))
    return "address, undefined" if libraries else "none"
