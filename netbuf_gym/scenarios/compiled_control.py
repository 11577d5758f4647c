"""Congestion controls of one's own in C++: one file, compiled on the spot, as fast as the core's.

    world = nb.scenarios.dumbbell(rate_mbps=10, senders=["cubic", nb.scenarios.compiled("mine.cc", gain=2)])

The file is what a congestion control's is in the core (`cpp/src/cc`): a class that derives from `CongestionControl`, and one
`Entry<CongestionControlRecord>`; it includes `netbuf/tcp.h`. docs/own_control.md writes one step by step.

Shared objects are kept in `~/.cache/netbuf-gym/controls` by what they were made of: the preprocessed file, compiler and flags.
The compiler is `$CXX`, or the first of c++, g++ and clang++ that there is; `$CXXFLAGS` follow the package's own.

A file's code runs in this very process, and what it does wrong it does to the process; `netbuf-gym suite`, `evaluate` and
whatever else is given the file's name run it in a process beside (`netbuf_gym.utils.sandbox`).
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from netbuf_gym import _core
from netbuf_gym.errors import ControlError, shown
from netbuf_gym.scenarios.python_control import OwnControl

SUFFIXES = (".cc", ".cpp", ".cxx")
"""Of files in C++."""

COMPILERS = ("c++", "g++", "clang++")
LIMIT_S = 120.0
"""That a compiler may take."""

_PACKAGE = Path(__file__).parents[1]
HEADERS = ("catalogue", "own_control", "parameter", "rng", "tcp", "types")
"""What a file is compiled against, of `netbuf/`; CMakeLists.txt has the same list."""


@dataclass(frozen=True)
class CompiledControl(OwnControl):
    """What `compiled` makes, for `Flow.cc` and `Sender.cc`.

    Attributes:
        control: The file, as it was given.
        library: The shared object.
        parameters: Pairs of name and value, in the order of the names.
    """

    control: str
    library: str
    parameters: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        pass  # nothing of it can be seen before it is loaded

    @property
    def name(self) -> str:
        """Of the file, and the parameters."""
        own = Path(self.control).name
        return f"{own}({', '.join(f'{key}={value:g}' for key, value in self.parameters)})" if self.parameters else own

    def __str__(self) -> str:
        return self.name

    def set_in(self, config: _core.FlowConfig) -> None:
        """See `OwnControl.set_in`. A world refuses one that is not for its stack, or has no such parameter.

        Raises:
            ControlError: It cannot be loaded.
        """
        config.set_compiled_control(self.library, self.name, dict(self.parameters))


def compiled(file: str | os.PathLike[str], **parameters: float) -> CompiledControl:
    """A congestion control from a file in C++, compiled unless it was before.

    Args:
        file: Its path; ends in .cc, .cpp or .cxx.
        parameters: Of its record; checked when the first world is made with it.

    Raises:
        ControlError: There is no such file, no compiler, or it does not compile: says where, and the compiler's first error.
    """
    path = Path(file)
    if path.suffix not in SUFFIXES:
        raise ControlError(f"congestion control {shown(str(file))}; valid: a file that ends in {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise ControlError(f"congestion control {shown(str(file))}: there is no such file; valid: one in C++")
    values = []
    for key, value in sorted(parameters.items()):
        try:
            values.append((key, float(value)))
        except (TypeError, ValueError):
            raise ControlError(f"congestion control {path.name}: {key} = {shown(value)}; valid: a number") from None
    return CompiledControl(str(file), str(_library(path)), tuple(values))


def headers() -> Path:
    """The folder that `#include "netbuf/tcp.h"` is found in: a checkout's, or the installed one.

    Raises:
        ControlError: There is none, or it is not of the core's build.
    """
    for folder in (_PACKAGE.parent / "cpp" / "include", _PACKAGE / "include"):
        if (folder / "netbuf" / "own_control.h").is_file():
            break
    else:
        said = f"the headers of congestion controls are not in {_PACKAGE / 'include'}"
        raise ControlError(f"{said}; valid: netbuf-gym installed anew")
    files = [hashlib.sha256((folder / "netbuf" / f"{name}.h").read_bytes()).hexdigest() for name in HEADERS]
    digest = hashlib.sha256("".join(files).encode()).hexdigest()[:16]
    if digest != _core.OWN_CONTROL_HEADERS:
        built = f"{folder} has headers {digest}, and the core was built with {_core.OWN_CONTROL_HEADERS}"
        raise ControlError(f"{built}; valid: the core built anew (`make native`, or netbuf-gym installed anew)")
    return folder


def _compiler() -> list[str]:
    asked = shlex.split(os.environ.get("CXX", ""))
    for command in [asked] if asked else [[name] for name in COMPILERS]:
        if shutil.which(command[0]):
            return command
    tried = f"CXX = {shown(os.environ['CXX'])}" if asked else f"none of {', '.join(COMPILERS)} is installed"
    raise ControlError(f"no C++ compiler: {tried}; valid: one of C++20, e.g. g++ 10 (Debian: apt install g++)")


def _library(path: Path) -> Path:
    """The shared object of a file, made unless it is there."""
    include = headers()
    command = [
        *_compiler(),
        *("-std=c++20", "-O2", "-g1", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", f"-I{include}"),
        *("-DNETBUF_OWN_CONTROL", f'-DNETBUF_HEADERS="{_core.OWN_CONTROL_HEADERS}"'),
        *(f"-D_GLIBCXX_USE_CXX11_ABI={_core.OWN_CONTROL_STRINGS}", "-include", "netbuf/own_control.h"),
        *shlex.split(os.environ.get("CXXFLAGS", "")),
    ]
    source = _run([*command, "-E", "-P", str(path)], path)
    key = hashlib.sha256("\0".join([source, *command]).encode()).hexdigest()[:32]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "netbuf-gym", "controls")
    library = cache / f"{key}.so"
    if library.is_file():
        return library
    try:
        cache.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(dir=cache)
    except OSError as error:
        said = f"compiled congestion controls cannot be kept in {cache}: {error.strerror or error}"
        raise ControlError(f"{said}; valid: XDG_CACHE_HOME = a folder that can be written") from None
    with folder as made:
        _run([*command, "-shared", str(path), "-o", f"{made}/own.so"], path)
        os.replace(f"{made}/own.so", library)
    return library


def _run(command: list[str], path: Path) -> str:
    """What a compiler prints; raises ControlError with its first error."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        raise ControlError(f"congestion control {path.name}: {command[0]} took more than {LIMIT_S:g} s; valid: less") from None
    if done.returncode == 0:
        return done.stdout
    raise ControlError(f"congestion control {path.name} does not compile: {_first_error(done.stderr, str(path))}")


def _first_error(said: str, file: str) -> str:
    """A compiler's first error; of one in a header also the line of the file that it comes from, in front."""
    lines = said.splitlines()
    errors = [index for index, line in enumerate(lines) if re.search(r"\berror\b|undefined reference", line)]
    if not errors:
        return "".join(lines[:1]).strip()
    first, own = lines[errors[0]].strip(), re.compile(rf"{re.escape(file)}(:\d+)+")
    if own.match(first):
        return first
    # GCC says before an error where what is in the header is asked for, Clang behind it.
    around = [line for line in lines[: (errors[1:] or [len(lines)])[0]] if re.search("required (from|by)|requested here", line)]
    asked = next((found for line in around if (found := own.match(line))), None)
    return f"{asked[0]}: {first}" if asked else first
