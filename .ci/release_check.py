"""Check that this commit can be released: everything that CI checks, and what takes too long for it.

    python .ci/release_check.py [--anew] [--list] [STEP...]

Steps run one after the other, each with its log in build/release-check/, and go on after one that fails. Their verdicts and
seconds are in results/release-check.json, which is written as each ends: the same command goes on with an interrupted check.
A step that has passed for this commit is not run again. Exit status: 0 all have passed, 1 not all, 2 bad arguments or changes
that are not committed.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from netbuf_gym.errors import ConfigError
from netbuf_gym.utils.files import write_json
from netbuf_gym.utils.suggestions import did_you_mean
from netbuf_gym.version import __version__

ROOT = Path(__file__).resolve().parents[1]
SUMMARY = Path("results", "release-check.json")
LOGS = ROOT / "build" / "release-check"
SCHEMA = "netbuf-gym/release-check/1"
PYTHON = str(ROOT / ".venv" / "bin" / "python")
NETBUF_GYM = [PYTHON, "-m", "netbuf_gym"]
MOST_WHEEL_BYTES = 14_000_000
PASSED, FAILED, NOT_RUN = "passed", "failed", {"verdict": "not run"}


def run(*command: object, **options: object) -> None:
    """Runs a command in the checkout, its output in the log; raises CalledProcessError where it fails."""
    subprocess.run([str(word) for word in command], check=True, **{"cwd": ROOT, **options})  # type: ignore[call-overload]


def make(*words: str) -> Callable[[], None]:
    """A step that makes a target."""
    return lambda: run("make", *words)


def imported(source: str) -> set[str]:
    """The top-level packages that a module's source imports, wherever the imports stand; relative ones are its own."""
    nodes = list(ast.walk(ast.parse(source)))
    names = [one.name for node in nodes if isinstance(node, ast.Import) for one in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return {name.partition(".")[0] for name in names}


def check_wheel() -> None:
    """Build a wheel of the sources that are committed, weigh it, and look for imports of what it has not."""
    with tempfile.TemporaryDirectory() as folder:
        run("git", "clone", "-q", ROOT, Path(folder, "clone"))
        run(PYTHON, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, Path(folder, "clone"))
        (wheel,) = Path(folder).glob("*.whl")
        size = wheel.stat().st_size
        print(f"{wheel.name}: {size / 1e6:.1f} MB; valid: up to {MOST_WHEEL_BYTES / 1e6:g} MB")
        with zipfile.ZipFile(wheel) as file:
            names = file.namelist()
            modules = [name for name in names if name.endswith(".py")]
            astray = [name for name in modules if "studies" in imported(file.read(name).decode())]
        astray += [name for name in names if name.startswith("studies/")]
        print(f"{len(modules)} modules; of the studies, or importing them: {', '.join(astray) or 'none'}")
        if size > MOST_WHEEL_BYTES or astray or not modules:
            raise SystemExit(1)


def follow_readme() -> None:
    """The two commands of README.md in a fresh clone."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder, "clone")
        run("git", "clone", "-q", ROOT, clone)
        for target in ("demo", "test"):
            began = time.monotonic()
            run("make", target, cwd=clone)
            print(f"make {target}: {time.monotonic() - began:.0f} s")


STEPS: dict[str, Callable[[], None]] = {
    "lint": make("lint"),
    "includes": make("includes"),
    "test": make("test"),
    "test-slow": make("test-slow"),
    "test-release": make("test-release"),
    "test-clients": make("test-clients"),
    "sanitize": make("sanitize"),
    "fuzz": make("fuzz", "SECONDS=600"),
    "gate": make("gate"),
    "kills": make("kills"),
    "kills-live": make("kills-live", "KILLS_ARGS=--kills 20"),
    "results": lambda: run(*NETBUF_GYM, "results", "status"),
    "leaderboard": lambda: run(*NETBUF_GYM, "results", "status", "leaderboard", "--all"),
    "docs": make("docs"),
    "notebooks": lambda: run(PYTHON, "notebooks/run.py", "--check"),
    "validate": lambda: run(*NETBUF_GYM, "validate", "studies/validation/reference"),
    "wheel": check_wheel,
    "readme": follow_readme,
}
"""By name; the quick ones that find most stand first."""


def git(*words: str) -> str:
    """What git says."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def checked_commit() -> str:
    """The last commit that changed more than results, whose marks are among what this check writes.

    Raises:
        ConfigError: something is changed and not committed.
    """
    others = (".", ":(exclude)results")
    if changed := git("status", "--porcelain", "--", *others):
        raise ConfigError(f"changes that are not committed: {changed.splitlines()[0].strip()}; valid: a tree that is committed")
    return git("log", "-1", "--format=%H", "--", *others)


def begun(commit: str) -> dict[str, dict[str, object]]:
    """The steps that have ended for a commit."""
    try:
        kept = json.loads((ROOT / SUMMARY).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return kept["steps"] if (kept.get("schema"), kept.get("commit")) == (SCHEMA, commit) else {}


def write_summary(commit: str, steps: dict[str, dict[str, object]]) -> None:
    """Writes what has come of the steps so far, in their order."""
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"
    ordered = {name: steps.get(name, NOT_RUN) for name in STEPS}
    seconds = sum(float(str(step.get("seconds", 0))) for step in ordered.values())
    about = {"version": __version__, "commit": commit, "date": time.strftime("%Y-%m-%d"), "machine": machine}
    passed = all(step["verdict"] == PASSED for step in ordered.values())
    (ROOT / SUMMARY).parent.mkdir(exist_ok=True)
    write_json(ROOT / SUMMARY, {"schema": SCHEMA, **about, "passed": passed, "seconds": round(seconds), "steps": ordered})


def take(name: str) -> bool:
    """Runs a step in a process group of its own, with its log; whether it has passed."""
    with (LOGS / f"{name}.log").open("wb") as log:
        command = [sys.executable, __file__, "--inside", name]
        child = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return child.wait() == 0
        except BaseException:
            os.killpg(child.pid, signal.SIGTERM)
            child.wait()
            raise


def arguments(argv: list[str]) -> argparse.Namespace:
    """Of the command line."""
    parser = argparse.ArgumentParser(prog="python .ci/release_check.py", description=__doc__.split("\n")[0])
    parser.add_argument("steps", metavar="STEP", nargs="*", help=f"of {', '.join(STEPS)} (default: all)")
    parser.add_argument("--anew", action="store_true", help="run again what has passed for this commit")
    parser.add_argument("--list", action="store_true", help="tell what has come of the steps so far, and run none")
    parser.add_argument("--inside", metavar="STEP", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    for name in given.steps:
        if name not in STEPS:
            raise ConfigError(f"STEP = {name!r} is unknown; {did_you_mean(name, STEPS)}valid: {', '.join(STEPS)}")
    return given


def main(argv: list[str]) -> int:
    """Runs the check; returns the exit status."""
    given = arguments(argv)
    if given.inside:
        STEPS[given.inside]()
        return 0
    commit = checked_commit()
    steps = begun(commit)
    chosen = [name for name in STEPS if name in given.steps or not given.steps]
    if given.anew:
        steps = {name: step for name, step in steps.items() if name not in chosen}
    LOGS.mkdir(parents=True, exist_ok=True)
    print(f"netbuf-gym {__version__}, commit {commit[:12]}; logs: {LOGS.relative_to(ROOT)}/", flush=True)
    for number, name in enumerate(chosen, 1):
        place = f"[{number}/{len(chosen)}] {name}:"
        if given.list or steps.get(name, {}).get("verdict") == PASSED:
            step = steps.get(name, NOT_RUN)
            print(place, step["verdict"], *([f"in {step['seconds']} s"] if "seconds" in step else []))
            continue
        print(place, end=" ", flush=True)
        began = time.monotonic()
        verdict = PASSED if take(name) else FAILED
        steps[name] = {"verdict": verdict, "seconds": round(time.monotonic() - began)}
        write_summary(commit, steps)
        print(verdict, f"in {steps[name]['seconds']} s", flush=True)
    return 0 if all(steps.get(name, {}).get("verdict") == PASSED for name in chosen) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ConfigError as error:
        print(f"release_check.py: error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
