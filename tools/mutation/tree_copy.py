"""A copy of the tree that is built once, mutated, rebuilt where it must be, and tested."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.mutation.python import find_function, is_same_code
from tools.mutation.sites import Mutation

DIGESTS = "tests/envs/test_digests.py"
CPP_TESTS = "netbuf_tests"
MEMORY_BYTES = 6 << 30
SECOND = 0.25
"""The share of the Python tests, by time, that is tried when the digests have killed it already: the quicker ones."""
BUILD = """
# A shared library, so that a mutant relinks one thing only; little optimisation, so that it compiles quickly.
target_compile_options(netbuf PRIVATE -O1 -fno-semantic-interposition)
set_target_properties(_core PROPERTIES CXX_VISIBILITY_PRESET default VISIBILITY_INLINES_HIDDEN OFF)
"""
SHARED = (
    ("set(CMAKE_CXX_VISIBILITY_PRESET hidden)", "set(CMAKE_CXX_VISIBILITY_PRESET default)"),  # one catalogue for all
    ("set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)", "set(CMAKE_VISIBILITY_INLINES_HIDDEN OFF)"),
    ("foreach(core netbuf netbuf_plain)", "foreach(core netbuf)"),
    ("add_library(${core} OBJECT EXCLUDE_FROM_ALL ", "add_library(${core} SHARED "),
    (
        "set_target_properties(netbuf_plain PROPERTIES INTERPROCEDURAL_OPTIMIZATION_RELEASE OFF)",
        "add_library(netbuf_plain ALIAS netbuf)",
    ),
)
"""Lines of CMakeLists.txt that make two libraries of objects of the core, and those that make one shared library instead."""


class Fault(Exception):
    """The tree cannot be built or tested even without a mutation."""


@dataclass
class Baseline:
    """The tests' times and calls without a mutation.

    Attributes:
        modules: of Python, each with its seconds, what it calls, and whether that reaches the core.
        programs: C++ tests, with their seconds.
        failed: tests that fail anyway and say nothing.
    """

    modules: dict[str, dict[str, Any]] = field(default_factory=dict)
    programs: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def ordered(self, mutation: Mutation, source: str, share: float = 1.0) -> list[str]:
        """Modules of tests, the ones most likely to see it first, among them the quickest; this share of all their time."""
        native = not mutation.path.endswith(".py")
        line = None if native else find_function(source, mutation.line)
        stem = Path(mutation.path).stem

        def rank(name: str) -> tuple[int, float]:
            module = self.modules[name]
            if native:
                return (0 if module["core"] else 1, module["seconds"])
            lines = module["called"].get(mutation.path, ())
            sees = 1 if line in lines or (lines and line is None) else 2
            return (0 if stem in name and sees == 1 else sees, module["seconds"])

        order = sorted((name for name in self.modules if name != DIGESTS), key=rank)
        most = share * sum(module["seconds"] for module in self.modules.values())
        spent = itertools.accumulate(self.modules[name]["seconds"] for name in order)
        return [name for name, total in zip(order, spent, strict=True) if share == 1 or total <= most]

    def sees(self, module: str, mutation: Mutation, source: str) -> bool:
        """Whether a module of tests runs the mutated function; a line outside functions, and the core, may be seen by all."""
        if not mutation.path.endswith(".py"):
            return True
        line = find_function(source, mutation.line)
        return line is None or line in self.modules.get(module, {"called": {}})["called"].get(mutation.path, ())


def tree_digest(root: Path, files: list[str]) -> str:
    """Digest the name and content of every file that tests can see."""
    sha = hashlib.sha256()
    for name in files:
        if name.startswith("docs/") or name.endswith((".md", "explanations.json")):
            continue
        sha.update(name.encode() + b"\0" + (root / name).read_bytes() + b"\0")
    return sha.hexdigest()[:16]


class Copy:
    """One copy in `folder`; `cores` are for its builds."""

    running: set[subprocess.Popen] = set()
    stopped = threading.Event()

    def __init__(self, root: Path, folder: Path, files: list[str], cores: int):
        self.root, self.folder, self.files, self.cores = root, folder, files, cores
        self.build_folder = folder / "build" / "mutation"
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "CCACHE_BASEDIR": str(folder),
            "CCACHE_NOHASHDIR": "1",
        }
        self.hashes: list[str] = []

    # ---- the copy

    def sync(self) -> None:
        """Make the copy's files those of the tree; what is as it was keeps its time, so that builds go on."""
        self.folder.mkdir(parents=True, exist_ok=True)
        keep = set(self.files)
        for path in [one for one in self.folder.rglob("*") if one.is_file() and not one.is_symlink()]:
            name = str(path.relative_to(self.folder))
            if name not in keep and not name.startswith("build/") and not name.endswith(".so"):
                path.unlink()
        for name in self.files:
            self.write(name, self._adapted(name))
        shared, beside = self.root.parent / "shared", self.folder.parent / "shared"
        if shared.is_dir() and not beside.exists():
            beside.symlink_to(shared)

    def _adapted(self, name: str) -> bytes:
        data = (self.root / name).read_bytes()
        if name != "CMakeLists.txt":
            return data
        text = data.decode()
        for old, new in SHARED:
            if text.count(old) != 1:
                raise Fault(f"CMakeLists.txt has no {old!r}, in whose place the core becomes one shared library")
            text = text.replace(old, new)
        return (text + BUILD).encode()

    def write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        if path.exists() and path.read_bytes() == data:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        shutil.copymode(self.root / name, path)

    # ---- running things

    def run(self, command: list[str], usual_s: float, **environment: str) -> tuple[int, str]:
        """Exit status and output of what usually takes `usual_s` of the processor; the whole process group ends with it.

        Five times that, and half a minute, end it by a signal; so does ten times that, and a minute, by the clock.
        """
        if self.stopped.is_set():
            raise KeyboardInterrupt
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=lambda: _limit(usual_s),
        )
        self.running.add(process)
        try:
            output, _ = process.communicate(timeout=60 + 10 * usual_s)
            status = process.returncode
        except subprocess.TimeoutExpired:
            status, output = -signal.SIGXCPU, ""
        finally:
            _end(process)
            self.running.discard(process)
        if self.stopped.is_set():
            raise KeyboardInterrupt
        return status, output

    @classmethod
    def stop(cls) -> None:
        """End everything that runs for any copy."""
        cls.stopped.set()
        for process in list(cls.running):
            _end(process)

    # ---- building

    def configure(self) -> None:
        command = [_tool("cmake"), "-S", ".", "-B", str(self.build_folder), "-G", "Ninja"]
        command += [f"-DCMAKE_MAKE_PROGRAM={_tool('ninja')}", f"-DPython_EXECUTABLE={sys.executable}"]
        command += ["-DNETBUF_TESTS=ON", "-DNETBUF_LTO=OFF"]
        command += ["-DCMAKE_LINK_DEPENDS_NO_SHARED=ON", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG"]
        if shutil.which("ccache"):
            command += ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]
        status, output = self.run(command, 100)
        if status:
            raise Fault(f"cmake failed:\n{output}")

    def build(self, *targets: str) -> tuple[bool, str]:
        status, output = self.run([_tool("ninja"), "-C", str(self.build_folder), "-j", str(self.cores), *targets], 400)
        return status == 0, output

    def build_core(self) -> tuple[bool, str]:
        """The module, and its place in the package."""
        done, output = self.build("_core")
        if done:
            for module in self.build_folder.glob("_core*.so"):
                self.write_module(module)
        return done, output

    def write_module(self, module: Path) -> None:
        place = self.folder / "netbuf_gym" / module.name
        if not place.exists() or place.read_bytes() != module.read_bytes():
            place.unlink(missing_ok=True)
            shutil.copy2(module, place)

    def built(self) -> list[str]:
        """Hashes of what was built."""
        found = sorted([*self.build_folder.glob("_core*.so"), *self.build_folder.glob("libnetbuf*")])
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in found]

    def prepare(self) -> None:
        self.sync()
        self.configure()
        for step in (self.build_core, self.build):
            done, output = step()
            if not done:
                raise Fault(f"the tree does not build:\n{output}")
        self.hashes = self.built()

    # ---- testing

    def programs(self) -> list[str]:
        """C++ tests: files of them, all in one executable."""
        return sorted(Path(name).stem for name in self.files if name.startswith("cpp/") and name.endswith("_test.cc"))

    def _program(self, name: str) -> list[str]:
        return [str(self.build_folder / "cpp" / "tests" / CPP_TESTS), name]

    def measure(self) -> Baseline:
        """Run every test without a mutation."""
        found = Baseline()
        for name in self.programs():
            began = os.times()
            status, _ = self.run(self._program(name), 200)
            if status:
                found.failed.append(name)
            else:
                found.programs[name] = sum(os.times()[2:4]) - sum(began[2:4])
        out = self.folder / "build" / "calls.json"
        out.unlink(missing_ok=True)
        _, output = self.run(self._pytest([], first=False), 1000, NETBUF_CALLS=str(out))
        if not out.exists():
            raise Fault(f"the tests do not run:\n{output[-3000:]}")
        read = json.loads(out.read_text())
        found.modules, found.failed = read["modules"], found.failed + read["failed"]
        for module in found.modules.values():
            called = (self.root / path for path in module["called"] if path.startswith("netbuf_gym/"))
            module["core"] = any("_core." in path.read_text() for path in called)
        if DIGESTS not in found.modules:
            raise Fault(f"{DIGESTS} is not among the tests")
        return found

    def _pytest(self, modules: list[str], first: bool = True, without: Iterable[str] = ()) -> list[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tools.mutation.calls"]
        command += ["-m", "not release", "--tb=line", "-W", "ignore", "--hypothesis-seed=0"]  # what CI runs
        return [*command, *(["-x"] if first else []), *(f"--deselect={one}" for one in without), *modules]

    def _killer(self, output: str, status: int) -> str:
        found = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.M)
        return found[1] if found else _ended(status)

    def test_python(self, modules: list[str], base: Baseline) -> str | None:
        """The test that fails first, or None."""
        if not modules:
            return None
        expected = sum(base.modules[name]["seconds"] for name in modules)
        slowest = max(base.modules[name]["seconds"] for name in modules)
        failed = [one for one in base.failed if "::" in one or one.endswith(".py")]
        limit = {"NETBUF_LIMIT_S": str(round(30 + 5 * slowest))}
        status, output = self.run(self._pytest(modules, without=failed), 10 + expected, **limit)
        return None if status == 0 else self._killer(output, status)

    def test_cpp(self, base: Baseline) -> str | None:
        """The C++ test that fails first, or that they do not compile any more, or None."""
        if not self.build(CPP_TESTS)[0]:
            return "cpp: does not compile"
        for name in sorted(base.programs, key=base.programs.__getitem__):
            status, output = self.run(self._program(name), base.programs[name])
            if status:
                case = re.search(r"^FAIL (\S+)", output, re.M)
                return f"{name}: {case[1] if case else _ended(status)}"
        return None

    def judge(
        self, mutation: Mutation, base: Baseline, second: bool, share: float, told: Callable[[str], None]
    ) -> dict[str, Any]:
        """Judge a mutation: `status`, whether the digests kill it, which `other` test (if not, or if `second`)."""
        source = (self.folder / mutation.path).read_text()
        mutated = mutation.apply(source)
        result: dict[str, Any] = {"status": "survived", "digests": False, "other": None}
        native = not mutation.path.endswith(".py")
        shutil.rmtree(self.folder / ".hypothesis", ignore_errors=True)  # no examples of other mutations
        try:
            if not native:
                try:
                    if is_same_code(source, mutated):
                        return {**result, "status": "same code"}
                except SyntaxError:
                    return {**result, "status": "does not compile"}
            self.write(mutation.path, mutated.encode())
            if native:
                told("builds")
                done, output = self.build_core()
                if not done:
                    return {**result, "status": "does not compile", "why": output[-2000:]}
                if self.built() == self.hashes:
                    return {**result, "status": "same code"}
            told("digests")
            if base.sees(DIGESTS, mutation, source) and self.test_python([DIGESTS], base):
                result |= {"status": "killed", "digests": True}
                if not second:
                    return result
            told("other tests")
            result["other"] = (self.test_cpp(base) if native else None) or self.test_python(
                base.ordered(mutation, source, SECOND if result["digests"] else share), base
            )
            if result["other"]:
                result["status"] = "killed"
            return result
        finally:
            self.write(mutation.path, source.encode())
            if native and not self.stopped.is_set():
                self.build_core()


def _limit(usual_s: float) -> None:
    """Limit a child process in memory, and in time of the processor."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    seconds = round(30 + 5 * usual_s)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))


def _ended(status: int) -> str:
    return "runs for ever" if -status in (signal.SIGPROF, signal.SIGXCPU) else f"exit status {status}"


def _end(process: subprocess.Popen) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _tool(name: str) -> str:
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        raise Fault(f"{name} is neither beside {sys.executable} nor in PATH")
    return found
