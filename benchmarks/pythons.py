"""Tries the package with other Pythons: from the source distribution to a wheel, and from the wheel to tests.

    python benchmarks/pythons.py debian:trixie /opt/python3.12/bin/python3.12 [--extra train] [--update docs/installation.md]

Each is an interpreter with `venv` and headers, or `debian:RELEASE`: that release's own, which debootstrap brings with its
compiler into a folder of its own, in which all that follows then runs (needs root). A wheel is built as pip does it, in an
environment of its own; it is installed into a fresh one, in the versions of constraints.txt; and there, away from the checkout,
run the commands and tests that pyproject.toml has cibuildwheel run, and README.md's blocks: the one that needs no extra, and
with `--extra train` the first one, too. The last try of each Python that passed is kept (`results/benchmarks/pythons.json`).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from measure import replace_section

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "results" / "benchmarks" / "pythons.json"
COMMAND = "python benchmarks/pythons.py PYTHON... --update docs/installation.md"
PACKAGES = "python3,python3-venv,python3-dev,g++"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
"""This machine's, which may have a proxy's among them: a release's folder gets them, too."""
WITHOUT_EXTRA, WITH_TRAIN = 1, 0
"""README.md's blocks of Python: an environment, and an agent of the zoo's."""
ABOUT = """
import json, platform, subprocess
from importlib.metadata import version
compiler = subprocess.run(["c++", "--version"], capture_output=True, text=True).stdout.split("\\n")[0]
names = ("numpy", "scipy", "gymnasium")
print(json.dumps({"python": platform.python_version(), "compiler": compiler, **{name: version(name) for name in names}}))
"""
ENTER = """
set -euo pipefail
cd {folder}
"""
INSTALL = """
{python} -m venv --clear build
{python} -m venv --clear fresh
build/bin/pip wheel -q --no-deps -w wheel *.tar.gz
fresh/bin/pip install -q -c constraints.txt {installed}
"""
TRY = """
export PATH="$PWD/fresh/bin:$PATH" PYTEST_ADDOPTS="--junitxml=$PWD/tests.xml -p no:cacheprovider"
python about.py >about.json
cd away
{commands}
"""


def tried_by_cibuildwheel() -> tuple[list[str], list[str]]:
    """What its commands need, and these commands, as pyproject.toml has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["cibuildwheel"]
    return settings["test-requires"], settings["test-command"]


def source_distribution(folder: Path) -> Path:
    """Made of the checkout, by the build frontend in an environment of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder / "tools"], check=True)
    subprocess.run([folder / "tools/bin/pip", "install", "-q", "build"], check=True)
    subprocess.run([folder / "tools/bin/python", "-m", "build", "-q", "--sdist", "-o", folder, ROOT], check=True)
    (made,) = folder.glob("*.tar.gz")
    return made


def release_of(python: str, folder: Path) -> Path | None:
    """The folder that a release of Debian is in, laid out where it is not yet; None: `python` is an interpreter."""
    if not python.startswith("debian:"):
        return None
    root = folder / python.replace(":", "-")
    if not (root / "laid-out").exists():
        shutil.rmtree(root, ignore_errors=True)
        subprocess.run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", python.split(":")[1], root], check=True)
        if CERTIFICATES.exists():
            (root / CERTIFICATES.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CERTIFICATES, root / CERTIFICATES.relative_to("/"))
        (root / "laid-out").touch()
    return root


def within(root: Path | None, script: str) -> list[str | Path]:
    """A command that runs a script here, or in a release's folder with processes and devices to be seen."""
    if root is None:
        return ["bash", "-c", script]
    enter = 'mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; exec chroot "$0" bash -c "$1"'
    return ["unshare", "--mount", "bash", "-euc", enter, root, script]


def tried(python: str, sources: Path | None, extras: Sequence[str], folder: Path) -> dict[str, Any]:
    """What came of one Python.

    Args:
        sources: The source distribution; None: what was installed by the last try is tried again.

    Raises:
        SystemExit: Something failed, and has said so.
    """
    root = release_of(python, folder)
    seen = Path("/try") if root else folder / re.sub(r"\W+", "-", python).strip("-")
    place = root / "try" if root else seen
    if sources is not None:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for path in (sources, ROOT / "constraints.txt"):
            shutil.copy(path, place)
    shutil.rmtree(place / "away", ignore_errors=True)
    shutil.copytree(ROOT / "tests", place / "away" / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    (place / "about.py").write_text(ABOUT)
    requires, commands = tried_by_cibuildwheel()
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    for number in [WITHOUT_EXTRA] + [WITH_TRAIN] * ("train" in extras):
        (place / f"block-{number}.py").write_text(blocks[number])
        commands = [*commands, f"python ../block-{number}.py"]
    wheel = '"$(echo wheel/netbuf_gym-*.whl)' + (f"[{','.join(extras)}]" if extras else "") + '"'
    script = (ENTER + INSTALL * (sources is not None) + TRY).format(
        folder=shlex.quote(str(seen)),
        python="python3" if root else shlex.quote(python),
        installed=f"{wheel} {' '.join(map(shlex.quote, requires))}",
        commands="\n".join(commands),
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if subprocess.run(within(root, script), env=environment | {"LANG": "C.UTF-8"}).returncode:
        sys.exit(f"{python} failed; its folder: {place}")
    cases = list(ET.parse(place / "tests.xml").getroot().iter("testcase"))
    skipped = sum(case.find("skipped") is not None for case in cases)
    about = json.loads((place / "about.json").read_text())
    counts = {"tests": len(cases) - skipped, "skipped": skipped, "extras": list(extras)}
    return about | counts | {"from": python if root else "an interpreter"}


def promised() -> list[str]:
    """The Pythons that the metadata names, as "3.10"."""
    return re.findall(r"Programming Language :: Python :: (3\.\d+)", (ROOT / "setup.cfg").read_text(encoding="utf-8"))


def ordered(pythons: Iterable[str]) -> list[str]:
    """Versions from the oldest to the newest."""
    return sorted(pythons, key=lambda one: [int(part) for part in one.split(".")])


def table(kept: Mapping[str, Mapping[str, Any]]) -> str:
    """What is kept, and which Pythons that the metadata names were not tried, in Markdown."""
    lines = ["| Python | Compiler | numpy, SciPy, Gymnasium | Extras | Tests passed |", "|---|---|---|---|--:|"]
    for python in ordered({*kept, *promised()}):
        one = kept.get(python)
        if one is None:
            lines.append(f"| {python} | not tried | | | |")
            continue
        source = f" (`{one['from']}`)" if one["from"].startswith("debian:") else ""
        versions = f"{one['numpy']}, {one['scipy']}, {one['gymnasium']}"
        extras = ", ".join(f"`{name}`" for name in one["extras"]) or "none"
        lines.append(f"| {one['python']}{source} | {one['compiler']} | {versions} | {extras} | {one['tests']} |")
    return "\n".join(lines)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("pythons", nargs="+", metavar="PYTHON", help="an interpreter, or debian:RELEASE")
    arguments.add_argument("--extra", action="append", default=[], dest="extras", help="installed with the package")
    arguments.add_argument("--folder", type=Path, default=ROOT / "build" / "pythons", help="of all that is made")
    arguments.add_argument("--update", type=Path, metavar="PAGE", help="keep what passed, and put its table into this page")
    arguments.add_argument("--again", action="store_true", help="build and install nothing: what the last try installed")
    options = arguments.parse_args()
    folder = options.folder.resolve()
    sources = None if options.again else source_distribution(folder / "sources")
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for python in options.pythons:
        one = tried(python, sources, options.extras, folder)
        kept[".".join(one["python"].split(".")[:2])] = one
        print(table(kept), flush=True)
        if options.update:
            KEPT.write_text(json.dumps({name: kept[name] for name in ordered(kept)}, indent=1) + "\n")
            replace_section(options.update, "pythons", COMMAND, table(kept))


if __name__ == "__main__":
    main()
