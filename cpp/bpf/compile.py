"""Compiles the BPF programs of this folder into netbuf_gym/plants/linux/bpf, with clang and llvm-strip.

Each object has the hash of its sources beside it (`sources.json`), by which a test tells that the two agree, and what has not
changed is left alone.

    python cpp/bpf/compile.py
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OBJECTS = ROOT / "netbuf_gym" / "plants" / "linux" / "bpf"
FLAGS = ("-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-fdebug-compilation-dir=.")
"""The objects name their lines (BTF) by paths from the checkout, wherever that is."""


def fingerprint(source: Path) -> str:
    """Of a program's source and of the headers here, which all of them may include, and of those elsewhere that it does."""
    digest = hashlib.sha256()
    elsewhere = [HERE / name for name in re.findall(r'#include "(\.\./[^"]+)"', source.read_text(encoding="utf-8"))]
    for path in (source, *sorted(HERE.glob("*.h")), *elsewhere):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def tool(name: str) -> str:
    """The newest there is of a tool that distributions give their version in the name."""
    given = os.environ.get(name.upper().replace("-", "_"))
    names = [given] if given else [name, *(f"{name}-{version}" for version in range(25, 11, -1))]
    found = next((path for path in map(shutil.which, names) if path), None)
    return found or sys.exit(f"{name} is not installed (Debian: apt install clang llvm)")


def main() -> None:
    clang, strip = tool("clang"), tool("llvm-strip")
    kept = OBJECTS / "sources.json"
    hashes = json.loads(kept.read_text(encoding="utf-8"))
    for source in sorted(HERE.glob("*.bpf.c")):
        if hashes.get(source.with_suffix(".o").name) == fingerprint(source):
            continue
        target = OBJECTS / source.with_suffix(".o").name
        subprocess.run([clang, *FLAGS, "-c", source.relative_to(ROOT), "-o", target], check=True, cwd=ROOT)
        subprocess.run([strip, "-g", target], check=True)
        hashes[target.name] = fingerprint(source)
    kept.write_text(json.dumps(hashes, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
