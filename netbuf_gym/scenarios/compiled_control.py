"""User-defined congestion controls in C++: one file, compiled on demand, as fast as the core's own.

    world = nb.scenarios.dumbbell(rate_mbps=10, senders=["cubic", nb.scenarios.compiled("mine.cc", gain=2)])

The file has the form of a congestion control in the core (`cpp/src/cc`): a class that derives from `CongestionControl`, and one
`Entry<CongestionControlRecord>`; it includes `netbuf/tcp.h`. docs/own_control.md is a step-by-step guide.

Shared objects are cached in `~/.cache/netbuf-gym/controls`, keyed by the preprocessed file, compiler and flags.
The compiler is `$CXX`, or the first of c++, g++ and clang++ that is installed; `$CXXFLAGS` follow the package's own flags.

The compiled code runs in the calling process, which its faults can crash; `netbuf-gym suite`, `evaluate` and other commands
that take the file's name run it in a separate process (`netbuf_gym.utils.sandbox`).
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
from netbuf_gym.errors import ControlError, quote
from netbuf_gym.scenarios.python_control import OwnControl

SUFFIXES = (".cc", ".cpp", ".cxx")
"""Suffixes of C++ files."""

COMPILERS = ("c++", "g++", "clang++")
LIMIT_S = 120.0
"""Time limit of a compiler run, seconds."""

_PACKAGE = Path(__file__).parents[1]
HEADERS = ("catalogue", "own_control", "parameter", "rng", "tcp", "types")
"""Headers of `netbuf/` that a file is compiled against; CMakeLists.txt has the same list."""


@dataclass(frozen=True)
class CompiledControl(OwnControl):
    """Congestion control compiled from a C++ file, for `Flow.cc` and `Sender.cc`; see `compiled`.

    Attributes:
        control: Path of the file, as it was given.
        library: Path of the shared object.
        parameters: Pairs of name and value, sorted by name.
    """

    control: str
    library: str
    parameters: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        pass  # a shared object cannot be checked before it is loaded

    @property
    def name(self) -> str:
        """Name of the file, with the parameters."""
        own = Path(self.control).name
        return f"{own}({', '.join(f'{key}={value:g}' for key, value in self.parameters)})" if self.parameters else own

    def __str__(self) -> str:
        return self.name

    def configure_flow(self, config: _core.FlowConfig) -> None:
        """Set the control as the congestion control of a flow; see `OwnControl.configure_flow`.

        The world refuses a control for another stack, and parameters that the control does not have.

        Raises:
            ControlError: The shared object cannot be loaded.
        """
        config.set_compiled_control(self.library, self.name, dict(self.parameters))


def compiled(file: str | os.PathLike[str], **parameters: float) -> CompiledControl:
    """Compile a congestion control from a C++ file, unless the cache has it.

    Args:
        file: Path that ends in .cc, .cpp or .cxx.
        parameters: Parameters of the control's record; checked when the first world is made with the control.

    Raises:
        ControlError: No such file, no compiler, or a compile error; the message has the compiler's first error and its place.
    """
    path = Path(file)
    if path.suffix not in SUFFIXES:
        raise ControlError(f"congestion control {quote(str(file))}; valid: a file that ends in {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise ControlError(f"congestion control {quote(str(file))}: there is no such file; valid: one in C++")
    values = []
    for key, value in sorted(parameters.items()):
        try:
            values.append((key, float(value)))
        except (TypeError, ValueError):
            raise ControlError(f"congestion control {path.name}: {key} = {quote(value)}; valid: a number") from None
    return CompiledControl(str(file), str(_compile_library(path)), tuple(values))


def find_headers() -> Path:
    """Return the include folder with `netbuf/tcp.h`: the checkout's, or the installed one.

    Raises:
        ControlError: No such folder, or headers other than those that the core was built with.
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


def _find_compiler() -> list[str]:
    asked = shlex.split(os.environ.get("CXX", ""))
    for command in [asked] if asked else [[name] for name in COMPILERS]:
        if shutil.which(command[0]):
            return command
    tried = f"CXX = {quote(os.environ['CXX'])}" if asked else f"none of {', '.join(COMPILERS)} is installed"
    raise ControlError(f"no C++ compiler: {tried}; valid: one of C++20, e.g. g++ 10 (Debian: apt install g++)")


def _compile_library(path: Path) -> Path:
    """Return the path of a file's shared object, compiling the file unless the cache has it."""
    include = find_headers()
    command = [
        *_find_compiler(),
        *("-std=c++20", "-O2", "-g1", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", f"-I{include}"),
        *("-DNETBUF_OWN_CONTROL", f'-DNETBUF_HEADERS="{_core.OWN_CONTROL_HEADERS}"'),
        *(f"-D_GLIBCXX_USE_CXX11_ABI={_core.OWN_CONTROL_STRINGS}", "-include", "netbuf/own_control.h"),
        *shlex.split(os.environ.get("CXXFLAGS", "")),
    ]
    source = _run_compiler([*command, "-E", "-P", str(path)], path)
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
        _run_compiler([*command, "-shared", str(path), "-o", f"{made}/own.so"], path)
        os.replace(f"{made}/own.so", library)
    return library


def _run_compiler(command: list[str], path: Path) -> str:
    """Run a compiler and return its standard output; raise ControlError with the first error."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        raise ControlError(f"congestion control {path.name}: {command[0]} took more than {LIMIT_S:g} s; valid: less") from None
    if done.returncode == 0:
        return done.stdout
    raise ControlError(f"congestion control {path.name} does not compile: {_find_first_error(done.stderr, str(path))}")


def _find_first_error(said: str, file: str) -> str:
    """Return a compiler's first error; for an error in a header, prefixed with the line of `file` that caused it."""
    lines = said.splitlines()
    errors = [index for index, line in enumerate(lines) if re.search(r"\berror\b|undefined reference", line)]
    if not errors:
        return "".join(lines[:1]).strip()
    first, own = lines[errors[0]].strip(), re.compile(rf"{re.escape(file)}(:\d+)+")
    if own.match(first):
        return first
    # GCC prints the line that instantiates the header's code before the error, Clang after it.
    around = [line for line in lines[: (errors[1:] or [len(lines)])[0]] if re.search("required (from|by)|requested here", line)]
    asked = next((found for line in around if (found := own.match(line))), None)
    return f"{asked[0]}: {first}" if asked else first
