"""Mutation tests: 100 one-line changes of core and rules, drawn by seed, and six fixed ones; which of them does no test see?

    python -m tools.mutation                    106 mutations of seed 0, two at a time
    python -m tools.mutation --seed 3 --list    what would be drawn, without building anything
    python -m tools.mutation --only sender.cc   from files whose path ends so

Works on copies in a temporary folder, each built once. A mutation that does not compile, or compiles to the same code, is
replaced by the next one drawn. For each the digests come first (they see most, but say nothing of why), then the C++
tests, then the Python tests, those first that run the mutated lines; a test that runs for ever has found its mutation.
Where the digests find it, the others are asked too, the quicker quarter of Python tests: "digests only" means none of these.
Interrupted, it goes on where it was as long as the tree is the same (--anew: it does not). Exit status 1 where more than
--most of the mutations survive, or one without an explanation in explanations.json.

Why neither mutmut nor cosmic-ray does the Python half: what takes the time, and most of this code, is to judge a mutation
(copies that are built once, digests first, then the tests that run the mutated lines, limits of time and memory), and is
shared with the C++ half, which neither has. mutmut 3.8 mutates functions without decorators only, where a fifth of our
places stand outside of functions (defaults of dataclasses, ranges, tables), and cannot draw a sample by seed; cosmic-ray 8.7
runs one fixed command for each of some ten thousand mutations, whichever lines they change.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from tools.mutation.sites import Mutation, draw_mutations, find_fixed, list_pool, list_sites
from tools.mutation.summary import find_explanation, format_summary
from tools.mutation.tree_copy import Baseline, Copy, Fault, tree_digest

ROOT = Path(__file__).resolve().parents[2]
EXPLANATIONS = Path(__file__).with_name("explanations.json")
FOLDERS = ("netbuf_gym", "cpp", "tests", "zoo", "conf", "benchmarks", "docs", "studies", "tools", ".ci")


def parse_arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100, help="mutations drawn, beside the fixed ones")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="mutations at a time, each in a copy")
    parser.add_argument("--only", action="append", help="draw from files whose path ends so; without the fixed ones")
    parser.add_argument("--most", type=float, default=0.15, help="share that may survive")
    parser.add_argument("--quick", action="store_true", help="do not look for another test where the digests have found it")
    parser.add_argument("--share", type=float, default=1.0, help="of the Python tests, by time, to run: a quicker look")
    parser.add_argument("--list", action="store_true", help="show what would be drawn, do nothing")
    parser.add_argument("--json", type=Path, help="write all results there")
    parser.add_argument("--anew", action="store_true", help="forget what an interrupted run has found")
    parser.add_argument("--folder", type=Path, help="of the copies; by default a temporary one")
    return parser.parse_args(given)


def list_tracked() -> list[str]:
    """List the files of the tree: tracked ones, and new ones that are not ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:  # a copy without a repository
        found = [*ROOT.glob("*"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]
        return sorted(str(path.relative_to(ROOT)) for path in found if path.is_file() and path.suffix not in (".so", ".pyc"))
    return sorted({name for name in listed.stdout.splitlines() if (ROOT / name).is_file()})


class Run:
    """The mutations in the order drawn; workers take them one by one until enough have been judged."""

    def __init__(self, options: argparse.Namespace, files: list[str], folder: Path):
        self.options, self.files, self.folder = options, files, folder
        names = list_pool(ROOT, files)
        if options.only:
            names = [name for name in names if name.endswith(tuple(options.only))]
        self.fixed = [] if options.only else find_fixed(ROOT, names)
        found = [mutation for name in names for mutation in list_sites(ROOT, name)]
        self.order: Iterator[Mutation] = draw_mutations(found, options.seed)
        self.lock = threading.Condition()
        self.entries: list[dict[str, Any]] = []  # in the order drawn
        self.wanted = options.count + len(self.fixed)
        self.stages: dict[int, str] = {}
        self.fault: BaseException | None = None
        self.done: dict[str, dict[str, Any]] = {}
        self.journal: Path | None = None

    def valid(self) -> list[dict[str, Any]]:
        return [one for one in self.entries if one["status"] in ("survived", "killed")]

    def take(self) -> dict[str, Any] | None:
        """The next mutation to judge, or None; waits while those under way may not be enough."""
        with self.lock:
            while True:
                under_way = sum(one["status"] == "under way" for one in self.entries)
                if self.fault or len(self.valid()) >= self.wanted:
                    return None
                if len(self.valid()) + under_way < self.wanted:
                    number = len(self.entries)
                    mutation = self.fixed[number] if number < len(self.fixed) else next(self.order, None)
                    if mutation is None:
                        return None
                    entry = {"mutation": mutation, "status": "under way"}
                    self.entries.append(entry)
                    return entry
                self.lock.wait()

    def work(self, number: int, copy: Copy, base: Baseline) -> None:
        try:
            while (entry := self.take()) is not None:
                mutation: Mutation = entry["mutation"]
                key = f"{mutation.path}:{mutation.line}:{mutation.column}:{mutation.new}"
                found = self.done.get(key)
                if found is None:
                    began = time.monotonic()
                    told = partial(self._stage, number, mutation)
                    found = copy.judge(mutation, base, not self.options.quick, self.options.share, told)
                    found["seconds"] = round(time.monotonic() - began, 1)
                    self._note(key, found)
                with self.lock:
                    entry.update(found)
                    self.lock.notify_all()
                self._stage(number, mutation, "")
        except BaseException as error:
            with self.lock:
                self.fault = self.fault or error
                self.lock.notify_all()

    def _note(self, key: str, found: dict[str, Any]) -> None:
        with self.lock, self.journal.open("a") as file:
            file.write(json.dumps({"key": key, **found}) + "\n")

    def _stage(self, number: int, mutation: Mutation, stage: str) -> None:
        with self.lock:
            self.stages[number] = f"{Path(mutation.path).name}:{mutation.line} {stage}" if stage else ""
            entries = self.valid()
            alive = sum(one["status"] == "survived" for one in entries)
            width, share = 24, len(entries) / self.wanted
            bar = "#" * round(width * share) + "." * (width - round(width * share))
            state = "   ".join(text for text in self.stages.values() if text)
            if sys.stderr.isatty():
                text = f"\r\033[K[{bar}] {len(entries)}/{self.wanted}, {alive} survive   {state}"
                print(text[:150], end="", file=sys.stderr, flush=True)
            elif not stage:
                say(f"{len(entries)}/{self.wanted}, {alive} survive")

    def resume(self, digest: str) -> None:
        """Take over what an earlier run found of the same tree."""
        mode = f"{'quick' if self.options.quick else 'full'}-{self.options.share:g}"
        self.journal = self.folder / f"journal-{digest}-{mode}.jsonl"
        if self.options.anew:
            self.journal.unlink(missing_ok=True)
        if self.journal.exists():
            for line in self.journal.read_text().splitlines():
                found = json.loads(line)
                self.done[found.pop("key")] = found

    def baseline(self, copy: Copy, digest: str) -> Baseline:
        """Measure the tests without a mutation, once for a tree."""
        kept = self.folder / f"baseline-{digest}.json"
        if not kept.exists():
            say("runs the tests without a mutation")
            kept.write_text(json.dumps(asdict(copy.measure())))
        base = Baseline(**json.loads(kept.read_text()))
        if base.failed:
            say("fails without a mutation and is left out: " + ", ".join(base.failed))
        return base

    def __call__(self) -> list[dict[str, Any]]:
        digest = tree_digest(ROOT, self.files)
        self.resume(digest)
        cores = max(1, (os.cpu_count() or 1) // self.options.jobs)
        copies = [Copy(ROOT, self.folder / str(number), self.files, cores) for number in range(self.options.jobs)]
        try:
            for number, copy in enumerate(copies):
                say(f"builds copy {number + 1} of {len(copies)} in {copy.folder}")
                copy.prepare()
            base = self.baseline(copies[0], digest)
            threads = [threading.Thread(target=self.work, args=(n, copy, base), daemon=True) for n, copy in enumerate(copies)]
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)
        except BaseException:
            Copy.stop()
            raise
        if self.fault:
            raise self.fault
        if sys.stderr.isatty():
            print(file=sys.stderr)
        return self.entries


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def main(given: list[str] | None = None) -> int:
    options = parse_arguments(given)
    for number in (signal.SIGINT, signal.SIGTERM):  # in the background a shell lets the former be ignored
        signal.signal(number, interrupt)
    files = list_tracked()
    own = hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]
    folder = (options.folder or Path(tempfile.gettempdir()) / f"netbuf-mutation-{own}").resolve()
    try:
        run = Run(options, files, folder)
    except LookupError as error:
        say(str(error))
        return 2
    if options.list:
        first = [*run.fixed, *(one for one, _ in zip(run.order, range(options.count), strict=False))]
        for one in first:
            print(f"{one.path}:{one.line}: {one.operator}\n    {one.before}\n    {one.after}")
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say(f"another run works in {folder}; --folder chooses another place")
            return 2
        began = time.monotonic()
        try:
            entries = run()
        except Fault as fault:
            say(str(fault))
            return 2
        except KeyboardInterrupt:
            say("\ninterrupted; the same command goes on from here")
            return 130
    explained = json.loads(EXPLANATIONS.read_text())
    print(format_summary(entries, explained, options.seed, time.monotonic() - began))
    if options.json:
        rows = [{**asdict(one["mutation"]), **{key: one[key] for key in one if key != "mutation"}} for one in entries]
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    valid = run.valid()
    survivors = [one["mutation"] for one in valid if one["status"] == "survived"]
    unexplained = any(find_explanation(explained, one) is None for one in survivors)
    return int(len(survivors) > options.most * max(1, len(valid)) or unexplained)


if __name__ == "__main__":
    sys.exit(main())
