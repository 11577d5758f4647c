"""Profile of the core: instructions a data packet by function, counted by valgrind's callgrind.

    python benchmarks/instructions.py [--update docs/appendix/benchmarks.md] [--most N]

Counts do not depend on what else the machine does, and are the same again with the same compiler. Needs valgrind and a C++
compiler; builds benchmarks/instructions.cc with the core, link-time optimised as the module is, under build/instructions.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from measure import replace_section

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "instructions"
COMMAND = "python benchmarks/instructions.py"
CASES = {
    "one": ("20", "1 CUBIC flow, 100 Mbit/s, 48 ms, 400 packets"),
    "many": ("20", "64 CUBIC flows, the same link"),
    "path": ("20", "16 CUBIC flows, each over three links, the second of which they share"),
    "codel": ("20", "1 CUBIC flow, the same link with CoDel"),
    "datagrams": ("20", "90 Mbit/s of datagrams over three links"),
    "worlds": ("60", "16 worlds of an agent's sender, 10 Mbit/s, 48 ms, link full, 100 ms steps"),
    "receivers": ("60", "16 worlds of an agent's receiver, Nuwa's rule on every ACK, the same link"),
    "switch": ("60", "a shared-buffer switch, ten senders of finite flows, 10 Mbit/s"),
}


def build() -> Path:
    """The program, compiled where sources are newer than it."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if compiler is None or shutil.which("valgrind") is None:
        sys.exit("benchmarks/instructions.py needs a C++ compiler and valgrind (Debian: apt install g++ valgrind)")
    sources = [ROOT / "benchmarks" / "instructions.cc", *sorted((ROOT / "cpp" / "src").rglob("*.cc"))]
    headers = [*(ROOT / "cpp").rglob("*.h")]
    program = BUILD / "instructions"
    newest = max(path.stat().st_mtime for path in [*sources, *headers])
    if program.exists() and program.stat().st_mtime > newest:
        return program
    BUILD.mkdir(parents=True, exist_ok=True)
    flags = ["-std=c++20", "-O3", "-g", "-flto=auto", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off"]
    flags += [f"-I{ROOT / 'cpp' / 'include'}", f"-I{ROOT / 'cpp' / 'src'}"]
    print(f"compiling {len(sources)} files", file=sys.stderr)
    subprocess.run([compiler, *flags, *map(str, sources), "-o", str(program), "-pthread"], check=True)
    return program


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
        elif match := re.match(r"[+\-*\d]\S* (\d+)$", line):
            if not call_follows:
                cost[current] += int(match[1])
            call_follows = False
    return collections.Counter({names.get(number, number): count for number, count in cost.items()})


def readable(name: str) -> str:
    """A function's name without arguments and namespaces."""
    name = re.sub(r"netbuf::|\(anonymous namespace\)::|\[clone [^]]*\]|'\d+$", "", name)
    return re.sub(r"\(.*", "", name).strip()


def count(program: Path, case: str) -> tuple[int, collections.Counter[str]]:
    """Data packets, and instructions by function."""
    profile = BUILD / f"{case}.callgrind"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", str(program), case, CASES[case][0]]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    merged: collections.Counter[str] = collections.Counter()
    for name, instructions in by_function(profile).items():
        merged[readable(name)] += instructions
    return int(done.stdout), merged


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=12, metavar="N", help="functions a table (12)")
    parser.add_argument("--update", type=Path, metavar="PAGE", help="put the tables into this Markdown page")
    options = parser.parse_args()
    program = build()
    compiler = subprocess.run([os.environ.get("CXX") or "c++", "--version"], capture_output=True, text=True, check=True)
    parts = [f"Instructions a data packet, {compiler.stdout.splitlines()[0]}."]
    for case, (_, what) in CASES.items():
        packets, functions = count(program, case)
        total = sum(functions.values())
        parts += ["", f"**{what}**: {total / packets:.0f} in all, {packets:,} packets", ""]
        parts += ["| function | instructions | |", "|:--|--:|--:|"]
        for name, instructions in functions.most_common(options.most):
            parts.append(f"| `{name}` | {instructions / packets:.0f} | {100 * instructions / total:.0f} % |")
    text = "\n".join(parts)
    print(text)
    if options.update:
        replace_section(options.update, "instructions", COMMAND, text)


if __name__ == "__main__":
    main()
