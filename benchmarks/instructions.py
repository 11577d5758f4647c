"""Instructions, cache misses and bytes that the core and the environment take, now and before, counted by valgrind.

    python benchmarks/instructions.py [CASE ...] [--most N] [--update docs/appendix/benchmarks.md]
    python benchmarks/instructions.py [CASE ...] --check | --record | --baseline COMMIT [--update docs/appendix/benchmarks.md]

Counts do not depend on what else the machine does, and are the same again with the same compiler. Each case is counted once
it has settled, so that its start does not enter. Without an option: a profile by function. `--check` compares with the
figures in results/benchmarks/instructions.json where compiler, flags, valgrind and C library are those of the record (of what
goes through Python, that, numpy and Gymnasium, too), and where they are not, with the recorded commit, built here with the same
settings; a clone without it leaves those cases out. Exit status 1 if a figure is more than 2 % above (misses of caches, which
the places of allocations move: 10 %). `--record` writes that file, `--baseline` builds any commit since b5283eb and prints its
figures beside today's.

Needs valgrind, a C++ compiler, and the build tools of `make .venv/.tools`; builds under build/instructions.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from measure import positive, replace_section

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "instructions"
RECORD = ROOT / "results" / "benchmarks" / "instructions.json"
COMMAND = "python benchmarks/instructions.py"
CACHES = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=2097152,16,64"]
TOLERANCE = {"instructions": 0.02, "bytes": 0.02, "first-level misses": 0.1, "last-level misses": 0.1}
LEAST_MISSES = 0.05
"""Misses a unit that a figure may move by in any case: fewer cost nothing that could be measured."""
SOURCES = ("CMakeLists.txt", "conf", "cpp", "netbuf_gym")
"""Paths of a commit that figures depend on."""
OF_PYTHON = {"python", "numpy", "gymnasium"}
"""Tools that only what goes through Python depends on."""
Figures = dict[str, dict[str, float]]
"""By case, what a unit took: instructions, misses of first- and last-level data caches, bytes."""


@dataclass(frozen=True)
class Case:
    """One case: what runs, what a unit of its figures is, and how long it settles and is counted (seconds, or steps)."""

    text: str
    settle: int
    length: int
    unit: str = "data packet"
    misses: bool = False
    recipe: str | None = None


STEP = "step of a world"
CASES = {
    "one": Case("1 CUBIC flow, 100 Mbit/s, 48 ms, 400 packets", 5, 60, misses=True),
    "many": Case("64 CUBIC flows, the same link", 5, 60, misses=True),
    "flows4096": Case("4,096 CUBIC flows, the same link", 5, 20, misses=True),
    "path": Case("16 CUBIC flows, each over three links, the second of which they share", 5, 20),
    "codel": Case("1 CUBIC flow, the same link with CoDel", 5, 20),
    "datagrams": Case("90 Mbit/s of datagrams over three links", 5, 20),
    "world": Case("1 world of an agent's sender, 10 Mbit/s, 48 ms, link full, 100 ms steps", 20, 200, misses=True),
    "worlds": Case("16 worlds of the same", 20, 60),
    "worlds1024": Case("1,024 worlds of the same", 12, 6, misses=True),
    "receivers": Case("16 worlds of an agent's receiver, Nuwa's rule on every ACK, the same link", 20, 60),
    "switch": Case("a shared-buffer switch, ten senders of finite flows, 10 Mbit/s", 5, 60),
    "switches": Case("256 such switches, which decide every 10 ms", 300, 20, "decision", misses=True),
    "step_ppcc": Case("256 environments on ppcc/4, recipe ppcc, action 5", 40, 40, STEP, recipe="ppcc"),
    "step_default": Case("256 environments on ppcc/4, recipe default, action 5", 40, 40, STEP, recipe="default"),
    "memory": Case("20,000 CUBIC flows, the same link as one has, after 5 s", 0, 5, "flow"),
}


@dataclass(frozen=True)
class Built:
    """A commit, or the working tree, as it is counted."""

    source: Path
    program: Path
    module: Path
    counting: Path


def find_tool(name: str) -> str:
    """Path of a program, that beside this Python first; ends the process with a message where there is none."""
    beside = str(Path(sys.executable).parent)
    if (found := shutil.which(name, path=beside) or shutil.which(name)) is None:
        sys.exit(f"{COMMAND} needs {name}; valid: after apt install valgrind g++ (Debian) and make .venv/.tools")
    return found


def run(command: Sequence[str | Path], **options: object) -> str:
    """Standard output of a command; ends the process with the command's own errors where it fails."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))[:400]}\n{(done.stderr or done.stdout)[:4000]}")
    return str(done.stdout)


def get_compiler() -> str:
    """The compiler that CMake takes."""
    return os.environ.get("CXX") or find_tool("c++")


def read_settings(folder: Path) -> dict[str, str]:
    """What a build was configured with, by name."""
    return dict(re.findall(r"^(\w+):\w+=(.*)$", (folder / "CMakeCache.txt").read_text(), re.MULTILINE))


def build(source: Path, folder: Path, like: Mapping[str, str] | None = None) -> Built:
    """The module, optimised as wheels are, or `like` another build's settings, and the program, linked of the module's objects.

    What is there already is kept.
    """
    print(f"building {source}", file=sys.stderr)
    cmake, ninja = find_tool("cmake"), find_tool("ninja")
    if not (folder / "build.ninja").exists():
        settings = {"CMAKE_CXX_COMPILER": get_compiler(), "NETBUF_LTO": "ON", **(like or {})}
        settings |= {"CMAKE_MAKE_PROGRAM": ninja, "Python_EXECUTABLE": sys.executable}
        settings |= {"CMAKE_CXX_COMPILER_LAUNCHER": shutil.which("ccache") or ""}
        given = [f"-D{name}={value}" for name, value in settings.items()]
        run([cmake, "-S", source, "-B", folder, "-G", "Ninja", *given])
    run([cmake, "--build", folder, "--target", "_core"])
    compiler = read_settings(folder)["CMAKE_CXX_COMPILER"]
    inputs = run([ninja, "-C", folder, "-t", "inputs", "_core"]).splitlines()
    objects = [folder / path for path in inputs if re.match(r"CMakeFiles/netbuf(_plain)?\.dir/.*\.o$", path)]
    (module,) = folder.glob("_core*.so")
    own = [ROOT / "benchmarks" / name for name in ("instructions.cc", "counting.cc")]
    made = folder / "counted"
    program, counting = made / "instructions", made / "counting.so"
    if not program.exists() or program.stat().st_mtime < max(path.stat().st_mtime for path in [module, *own]):
        made.mkdir(exist_ok=True)
        flags = ["-std=c++20", "-O3", "-DNDEBUG", "-flto=auto", "-fPIC", "-fvisibility=hidden", "-w", "-pthread"]
        run([compiler, *flags, "-I", source / "cpp/include", *own, *objects, "-o", program, "-ldl"])
        run([compiler, "-O2", "-fPIC", "-shared", own[1], "-o", counting])
    return Built(source, program, module, counting)


def find_commit(commit: str) -> str:
    """The full name of a commit; empty: it is not in this clone, or this is none."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def build_commit(commit: str, like: Path) -> Built:
    """A commit's sources, and what is built of them with the settings of the build `like`, below build/instructions."""
    if not (name := find_commit(commit)):
        sys.exit(f"commit = {commit} is not in this clone; valid: one that is (git fetch --unshallow)")
    kept = ("CMAKE_CXX_COMPILER", "CMAKE_CXX_FLAGS", "CMAKE_BUILD_TYPE", "NETBUF_LTO")
    settings = {key: value for key, value in read_settings(like).items() if key in kept}
    folder = BUILD / name
    source = folder / "source"
    if not source.is_dir():
        held = run(["git", "-C", ROOT, "ls-tree", "--name-only", name]).split()
        wanted = [path for path in SOURCES if path in held]
        unfinished = folder / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        archive = subprocess.run(["git", "-C", str(ROOT), "archive", name, *wanted], capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", str(unfinished)], input=archive.stdout, check=True)
        unfinished.rename(source)
    digest = hashlib.sha256(json.dumps([settings, describe_tools(like)]).encode()).hexdigest()[:8]
    return build(source, folder / f"build-{digest}", settings)


def describe_tools(folder: Path) -> dict[str, str]:
    """Everything besides the sources that figures depend on; `folder` is that of a build."""
    cache = read_settings(folder)
    flags = [cache.get(f"CMAKE_CXX_FLAGS{kind}", "") for kind in ("", f"_{cache['CMAKE_BUILD_TYPE'].upper()}")]
    compiler = cache["CMAKE_CXX_COMPILER"]
    vectors = " avx2" if Path("/proc/cpuinfo").exists() and " avx2 " in Path("/proc/cpuinfo").read_text() else ""
    return {
        "compiler": run([compiler, "--version"]).splitlines()[0].removeprefix(Path(compiler).name).strip(),
        "flags": " ".join([*filter(None, flags), f"NETBUF_LTO={cache['NETBUF_LTO']}"]),
        "valgrind": run([find_tool("valgrind"), "--version"]).strip(),
        "libc": " ".join(platform.libc_ver()),
        "machine": platform.machine() + vectors,
        "python": f"{platform.python_version()}, {platform.python_compiler()}",
        "numpy": version("numpy"),
        "gymnasium": version("gymnasium"),
    }


def count(built: Built, name: str) -> tuple[dict[str, float], Path] | None:
    """Figures of a case, by unit, and callgrind's profile; None: the commit does not know the case."""
    case = CASES[name]
    profile = built.program.parent / f"{name}.callgrind"
    lengths = [str(case.settle), str(case.length)]
    if case.recipe is None:
        command = [str(built.program), name, *lengths]
    else:
        steps = str(ROOT / "benchmarks" / "counted_steps.py")
        command = [sys.executable, steps, case.recipe, *lengths, str(built.module), str(built.counting)]
    if case.unit != "flow":
        tool = [find_tool("valgrind"), "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={profile}"]
        command = [*tool, *(CACHES if case.misses else []), *command]
    environment = {**os.environ, "PYTHONPATH": str(built.source), "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode == 2 and "is unknown to this commit" in done.stderr:
        return None
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr[-4000:]}")
    units, held = map(int, done.stdout.split())
    if case.unit == "flow":
        return {"bytes": held / units}, profile
    events, counts = (re.search(rf"{word} *: (.*)", done.stderr) for word in ("Events", "Collected"))
    assert events is not None and counts is not None
    cost = dict(zip(events[1].split(), map(int, counts[1].split()), strict=True))
    figures = {"instructions": cost["Ir"] / units}
    if case.misses:
        figures["first-level misses"] = (cost["D1mr"] + cost["D1mw"]) / units
        figures["last-level misses"] = (cost["DLmr"] + cost["DLmw"]) / units
    return figures, profile


def count_all(built: Built, names: Sequence[str], jobs: int) -> Figures:
    """Figures by case, so many at a time, of the cases that the commit knows."""
    with ThreadPoolExecutor(jobs) as pool:
        counted = list(pool.map(lambda name: count(built, name), names))
    return {name: found[0] for name, found in zip(names, counted, strict=True) if found is not None}


def by_function(profile: Path) -> collections.Counter[str]:
    """Self cost of every function in a callgrind output file."""
    names: dict[str, str] = {}
    cost: collections.Counter[str] = collections.Counter()
    current, call_follows = "", False
    for line in profile.read_text().splitlines():
        if match := re.match(r"c?fn=\((\d+)\)(?: (.*))?", line):
            if match[2]:
                names[match[1]] = match[2]
            if line.startswith("fn="):
                current = match[1]
        elif line.startswith("calls="):
            call_follows = True
        elif match := re.match(r"[+\-*\d]\S* (\d+)", line):
            if not call_follows:
                cost[current] += int(match[1])
            call_follows = False
    merged: collections.Counter[str] = collections.Counter()
    for number, instructions in cost.items():
        merged[readable(names.get(number, number))] += instructions
    return merged


def readable(name: str) -> str:
    """A function's name without arguments and namespaces."""
    name = re.sub(r"netbuf::|\(anonymous namespace\)::|\[clone [^]]*\]|'\d+$", "", name)
    return re.sub(r"\(.*", "", name).strip()


def profile_cases(built: Built, names: Sequence[str], most: int, jobs: int) -> str:
    """Tables of functions, a case each."""
    names = [name for name in names if CASES[name].unit != "flow"]
    with ThreadPoolExecutor(jobs) as pool:
        counted = list(pool.map(lambda name: count(built, name), names))
    parts = [f"Instructions of the functions themselves, c++ {describe_tools(built.module.parent)['compiler']}."]
    for name, found in zip(names, counted, strict=True):
        assert found is not None  # the working tree knows all cases
        figures, profile = found
        functions = by_function(profile)
        total = sum(functions.values())
        unit = CASES[name].unit
        parts += ["", f"**{CASES[name].text}**: {figures['instructions']:,.0f} a {unit}", ""]
        parts += ["| function | instructions | |", "|:--|--:|--:|"]
        for function, instructions in functions.most_common(most):
            share = instructions / total
            parts.append(f"| `{function}` | {share * figures['instructions']:,.0f} | {100 * share:.0f} % |")
    return "\n".join(parts)


def compare(before: Figures, now: Figures) -> tuple[list[str], bool]:
    """A line a figure, and whether none is above what it was by more than its tolerance."""
    lines, held = [], True
    for name, figures in now.items():
        for what, figure in figures.items():
            old = before.get(name, {}).get(what)
            label = f"{name}: {show(figure)} {what} a {CASES[name].unit}"
            if old is None:
                lines.append(f"{label}, not recorded: record it with --record")
                continue
            slack = max(TOLERANCE[what] * old, LEAST_MISSES if "misses" in what else 0)
            moved = f"{label}, {show(old)} before"
            if old:
                moved += f" ({100 * (figure / old - 1):+.1f} %)"
            if figure > old + slack:
                held = False
                moved += f": SLOWER by more than {show(100 * TOLERANCE[what])} %"
            elif figure < old - slack:
                moved += f": better by more than {show(100 * TOLERANCE[what])} %, record it with --record"
            lines.append(moved)
    return lines, held


def show(figure: float) -> str:
    """A figure with thousands separated, and digits behind the point where it is small."""
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def tabulate(commit: str, before: Figures, now: Figures, compiler: str) -> str:
    """A Markdown table of each figure at a commit and now."""
    lines = [f"Of {commit} and of today's code, c++ {compiler}; {' '.join(CACHES[2:])}.", ""]
    lines += [f"| case | a unit takes | {commit} | now | times |", "|:--|:--|--:|--:|--:|"]
    for name, figures in now.items():
        for what, figure in figures.items():
            old = before.get(name, {}).get(what)
            pair = ("-", "-") if old is None else (show(old), f"{figure / old:.2f}" if old else "-")
            lines.append(f"| {CASES[name].text} | {what} a {CASES[name].unit} | {pair[0]} | {show(figure)} | {pair[1]} |")
    return "\n".join(lines)


def check(built: Built, names: Sequence[str], jobs: int) -> int:
    """Print the comparison with the record, or with its commit where the tools are not the recorded ones; the exit status."""
    if not RECORD.is_file():
        sys.exit(f"{RECORD} is missing; valid: after benchmarks/instructions.py --record")
    record = json.loads(RECORD.read_text())
    tools = describe_tools(built.module.parent)
    differing = {key: f"{key} {tools[key]}, not {record.get(key)}" for key in tools if tools[key] != record.get(key)}
    others = [name for name in names if differing.keys() - (set() if CASES[name].recipe else OF_PYTHON)]
    before: Figures = {name: figures for name, figures in record["figures"].items() if name not in others}
    print(f"compared with the figures of {record['commit']}")
    if others and not find_commit(record["commit"]):
        print(f"not of {', '.join(others)}: tools are not the recorded ones, and the commit is not in this clone")
        names = [name for name in names if name not in others]
    elif others:
        print(f"as counted here of {', '.join(others)}, since tools are not the recorded ones: {'; '.join(differing.values())}")
        before |= count_all(build_commit(record["commit"], built.module.parent), others, jobs)
    lines, held = compare(before, count_all(built, names, jobs))
    print("\n".join(lines))
    return int(not held)


def record_figures(built: Built, names: Sequence[str], jobs: int) -> None:
    """Write the figures of cases, beside the others that are kept, with the tools and the commit that they are of."""
    if changed := run(["git", "-C", ROOT, "status", "--porcelain", "--", *SOURCES]):
        sys.exit(f"--record is of a commit, and these are not committed: {' '.join(changed.split()[1::2])}")
    if set(names) != set(CASES):
        sys.exit("--record is of all cases; valid: without CASE")
    counted = count_all(built, names, jobs)
    commit = run(["git", "-C", ROOT, "log", "-1", "--format=%h", "--abbrev=12", "--", *SOURCES]).strip()
    figures = {name: {what: float(f"{figure:.6g}") for what, figure in found.items()} for name, found in counted.items()}
    about = {"commit": commit, **describe_tools(built.module.parent), "figures": figures}
    RECORD.write_text(json.dumps(about, indent=1) + "\n")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options; an unknown case ends the process with a message."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", metavar="CASE", nargs="*", help=f"of {', '.join(CASES)} (all)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="compare with the record; exit status 1 if slower")
    what.add_argument("--record", action="store_true", help="write results/benchmarks/instructions.json")
    what.add_argument("--baseline", metavar="COMMIT", help="build a commit, and print its figures beside today's")
    parser.add_argument("--most", type=positive, default=12, metavar="N", help="functions a table (12)")
    parser.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, metavar="N", help="cases at a time (a core each)")
    parser.add_argument("--build", type=Path, default=BUILD / "now", metavar="DIR", help="CMake's build folder of this tree")
    parser.add_argument("--update", type=Path, metavar="PAGE", help="put the tables into this Markdown page")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.cases if name not in CASES]:
        parser.error(f"case = {', '.join(unknown)} is unknown; valid: {', '.join(CASES)}")
    options.cases = options.cases or list(CASES)
    return options


def main() -> int:
    options = parse()
    find_tool("valgrind")
    built = build(ROOT, options.build.resolve())
    if options.check:
        return check(built, options.cases, options.jobs)
    if options.record:
        record_figures(built, options.cases, options.jobs)
        return 0
    if options.baseline:
        before = count_all(build_commit(options.baseline, built.module.parent), options.cases, options.jobs)
        now = count_all(built, options.cases, options.jobs)
        section, command = "instructions-baseline", f"{COMMAND} --baseline {options.baseline}"
        text = tabulate(options.baseline, before, now, describe_tools(built.module.parent)["compiler"])
    else:
        section, command = "instructions", COMMAND
        text = profile_cases(built, options.cases, options.most, options.jobs)
    print(text)
    if options.update:
        replace_section(options.update, section, command, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
